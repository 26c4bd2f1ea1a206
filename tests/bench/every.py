# SPDX-License-Identifier: BSD-3-Clause
"""Runs the benchmarks one after the other and closes with every row that has a reach.

    every.py BUILD [--all] [NAME]...

The core ones, which take at most 12 minutes on two cores; all; or those named, with or without
their suffix. A benchmark is an executable file in this folder or one of Meson's benchmarks in the
build folder BUILD. A row is a line that ends in `: PASS` or `: RED`. Status 1 when a benchmark
failed (a red row is a figure, not a failure), else 0.

Before and after each benchmark a bare loop is timed. Where it takes more than 1.5 times its least
of this call, other work had the cores: a red row is then "machine too busy".
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from common import SKIPPED

# Name, and options that make it short: medians of 5, the two subjects in turn.
CORE: dict[str, tuple[str, ...]] = {
    "dpdk_send": ("--seconds", "0.5"),
    "dpdk_receive": (),
    "dpdk_forward": ("--seconds", "0.5"),
    "dpdk_pair": ("--seconds", "0.5"),
    "tcp_iperf3": ("--seconds", "1"),
    "barrier_mpi": (),
    "turnround": (),
    "start": (),
}
BUSY = 1.5  # times the bare loop's least
LOOPS, STEPS = 40, 50_000  # about 0.1 s
ROW = re.compile(r"^\s*(?P<what>.*): (?P<verdict>PASS|RED)\s*$")
LONGEST_S = 900.0


@dataclass
class Outcome:
    """What one benchmark came to."""

    name: str
    met: list[str] = field(default_factory=list)
    red: list[str] = field(default_factory=list)
    busy: float = 1.0  # the bare loop around it, by its least
    status: int = 0
    seconds: float = 0.0

    def take(self, line: str) -> None:
        """Counts the line if it is a row."""
        row = ROW.match(line)
        if row:
            (self.met if row["verdict"] == "PASS" else self.red).append(row["what"])


def bare_loop() -> float:
    """Seconds of a fixed piece of work, the median of some."""
    times = []
    for _ in range(LOOPS):
        begun = time.perf_counter()
        for _ in range(STEPS):
            pass
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def benchmarks(build: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Names and commands of all."""
    for file in sorted(pathlib.Path(__file__).parent.iterdir()):
        if file.is_file() and os.access(file, os.X_OK):
            yield file.name, [sys.executable, str(file)]  # the environment with what it imports
    listed = subprocess.run(
        ["meson", "introspect", "--benchmarks", str(build)], check=True, stdout=subprocess.PIPE
    )
    for benchmark in json.loads(listed.stdout):
        yield benchmark["name"], benchmark["cmd"]


def chosen(every: Mapping[str, list[str]], arguments: Sequence[str]) -> dict[str, list[str]]:
    """What to run. An unknown name ends the program."""
    if list(arguments) == ["--all"]:
        return dict(every)
    if not arguments:
        return {name: [*every[name], *options] for name, options in named(every, CORE).items()}
    return {name: every[name] for name in named(every, dict.fromkeys(arguments, ()))}


def named(
    every: Mapping[str, list[str]], asked: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The benchmarks' full names for those that were asked for."""
    full = {name.removesuffix(".py"): name for name in every}
    unknown = [name for name in asked if name.removesuffix(".py") not in full]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(full)}", file=sys.stderr)
        raise SystemExit(2)
    return {full[name.removesuffix(".py")]: options for name, options in asked.items()}


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
    met = red = too_busy = 0
    for outcome in outcomes:
        note = {0: "", SKIPPED: ", skipped"}.get(outcome.status, f", status {outcome.status}")
        loop = f", bare loop {outcome.busy:.2f} of its least"
        print(f"{outcome.name} ({outcome.seconds:.0f} s{loop}{note})")
        busy = outcome.busy > BUSY
        for row in outcome.met:
            print(f"  PASS  {row}")
        for row in outcome.red:
            print(f"  {'machine too busy' if busy else 'RED'}  {row}")
        met += len(outcome.met)
        too_busy += len(outcome.red) if busy else 0
        red += 0 if busy else len(outcome.red)
    failed = [outcome.name for outcome in outcomes if outcome.status not in (0, SKIPPED)]
    skipped = [outcome.name for outcome in outcomes if outcome.status == SKIPPED]
    print(
        f"{met} passed, {red} red, {too_busy} on a machine too busy, {len(skipped)} benchmarks "
        f"skipped, {len(failed)} failed"
    )
    return 1 if failed else 0


def main(arguments: Sequence[str]) -> int:
    """The program."""
    build = pathlib.Path(arguments[0]).resolve()
    subjects = chosen(dict(benchmarks(build)), arguments[1:])
    loops = [bare_loop()]
    outcomes = []
    for name, command in subjects.items():
        outcomes.append(run(name, command, build))
        loops.append(bare_loop())
    for outcome, (before, after) in zip(outcomes, itertools.pairwise(loops), strict=True):
        outcome.busy = max(before, after) / min(loops)
    return close(outcomes)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
