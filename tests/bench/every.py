# SPDX-License-Identifier: BSD-3-Clause
"""Runs the benchmarks one after the other and closes with every row that has a reach.

    every.py BUILD [NAME]...

A benchmark is an executable file in this folder or one of Meson's benchmarks in the build folder
BUILD. A row is a line that ends in `: PASS` or `: RED`. Status 1 when a benchmark failed (a red
row is a figure, not a failure), else 0.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from common import SKIPPED

ROW = re.compile(r"^\s*(?P<what>.*): (?P<verdict>PASS|RED)\s*$")
LONGEST_S = 900.0


@dataclass
class Outcome:
    """What one benchmark came to."""

    name: str
    met: list[str] = field(default_factory=list)
    red: list[str] = field(default_factory=list)
    status: int = 0
    seconds: float = 0.0

    def take(self, line: str) -> None:
        """Counts the line if it is a row."""
        row = ROW.match(line)
        if row:
            (self.met if row["verdict"] == "PASS" else self.red).append(row["what"])


def benchmarks(build: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Names and commands of all."""
    for file in sorted(pathlib.Path(__file__).parent.iterdir()):
        if file.is_file() and os.access(file, os.X_OK):
            yield file.name, [str(file)]
    listed = subprocess.run(
        ["meson", "introspect", "--benchmarks", str(build)], check=True, stdout=subprocess.PIPE
    )
    for benchmark in json.loads(listed.stdout):
        yield benchmark["name"], benchmark["cmd"]


def run(name: str, command: Sequence[str], build: pathlib.Path) -> Outcome:
    """Runs one, its output passed on line by line."""
    outcome = Outcome(name)
    begun = time.monotonic()
    print(f"== {name}", flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=build) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            outcome.take(line)
        outcome.status = process.wait(LONGEST_S)
    outcome.seconds = time.monotonic() - begun
    return outcome


def close(outcomes: Sequence[Outcome]) -> int:
    """Prints what all came to; the exit status."""
    print("== all rows with a reach")
    for outcome in outcomes:
        note = {0: "", SKIPPED: ", skipped"}.get(outcome.status, f", status {outcome.status}")
        print(f"{outcome.name} ({outcome.seconds:.0f} s{note})")
        for verdict, rows in (("met", outcome.met), ("RED", outcome.red)):
            for row in rows:
                print(f"  {verdict}  {row}")
    met = sum(len(outcome.met) for outcome in outcomes)
    red = sum(len(outcome.red) for outcome in outcomes)
    failed = [outcome.name for outcome in outcomes if outcome.status not in (0, SKIPPED)]
    skipped = [outcome.name for outcome in outcomes if outcome.status == SKIPPED]
    print(f"{met} met, {red} red, {len(skipped)} skipped, {len(failed)} failed")
    return 1 if failed else 0


def main(arguments: Sequence[str]) -> int:
    """The program."""
    build = pathlib.Path(arguments[0]).resolve()
    every = dict(benchmarks(build))
    names = arguments[1:] or list(every)
    unknown = [name for name in names if name not in every]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(every)}", file=sys.stderr)
        return 2
    return close([run(name, every[name], build) for name in names])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
