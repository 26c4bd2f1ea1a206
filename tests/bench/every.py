# SPDX-License-Identifier: BSD-3-Clause
"""Runs the benchmarks one after the other and closes with every row that has a reach.

    every.py BUILD [--all] [NAME]...

The core ones, which take at most 12 minutes on two cores; all; or those named, with or without
their suffix. A benchmark is an executable file in this folder and runs in the build folder BUILD. A
row is a line that ends in `: PASS` or `: RED`. Status 1 when a benchmark failed (a red row is a
figure, not a failure), else 0.

Before and after each benchmark a bare loop is timed. Where it takes more than 1.5 times its least
of this call, other work had the cores: a red row is then "machine too busy".
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import SKIPPED

# Options that make the core ones short.
CORE = {
    **dict.fromkeys(("dpdk_send", "dpdk_forward", "dpdk_pair"), ("--seconds", "0.5")),
    **dict.fromkeys(("dpdk_receive", "tcp_iperf3", "barrier_mpi", "turnround", "start"), ()),
}
BUSY = 1.5  # times the bare loop's least
ROW = re.compile(r"^\s*(?P<what>.*): (?P<verdict>PASS|RED)\s*$")
LONGEST_S = 900.0


def bare_loop() -> float:
    """Return the seconds of a fixed piece of work, about 0.1 s, the median of some."""
    times = []
    for _ in range(40):
        begun = time.perf_counter()
        for _ in range(50_000):
            pass
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def benchmarks() -> Iterator[tuple[str, list[str]]]:
    """Yield names, without suffix, and commands of all."""
    for file in sorted(Path(__file__).parent.iterdir()):
        if file.is_file() and os.access(file, os.X_OK):
            yield file.stem, [sys.executable, str(file)]  # the environment with what it imports


def chosen(asked: Sequence[str]) -> dict[str, list[str]]:
    """Return what to run. An unknown name ends the program."""
    every = dict(benchmarks())
    if list(asked) == ["--all"]:
        return every
    options = {name.removesuffix(".py"): () for name in asked} or CORE
    if unknown := options.keys() - every.keys():
        names = ", ".join(sorted(unknown))
        print(f"no benchmark {names}; there are {', '.join(every)}", file=sys.stderr)
        raise SystemExit(2)
    return {name: [*every[name], *more] for name, more in options.items()}


def run(command: Sequence[str], build: Path) -> tuple[int, list[re.Match[str]]]:
    """Run one, its output passed on line by line; return its status and its rows."""
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=build) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            rows += [row] if (row := ROW.match(line)) else []
        return process.wait(LONGEST_S), rows


def main(arguments: Sequence[str]) -> int:
    """Run the chosen comparisons, then print all their results."""
    build = Path(arguments[0]).resolve()
    loops, ends = [bare_loop()], []
    for name, command in chosen(arguments[1:]).items():
        print(f"== {name}", flush=True)
        ends.append((name, *run(command, build)))
        loops.append(bare_loop())
    print("== all rows with a reach")
    counts: Counter[str] = Counter()
    for (name, status, rows), *around in zip(ends, loops, loops[1:], strict=False):
        loop = max(around) / min(loops)
        end = {0: "done", SKIPPED: "skipped"}.get(status, "failed")
        counts[end] += 1
        print(f"{name}: {end}, bare loop {loop:.2f} of its least")
        for row in rows:
            red = "machine too busy" if loop > BUSY else "RED"
            word = "PASS" if row["verdict"] == "PASS" else red
            counts[word] += 1
            print(f"  {word}  {row['what']}")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
