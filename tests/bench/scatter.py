#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten million single times: stored as they come from the nodes, and read back into a table.

The records are made first, as nodes write them. Measured are the ways that a run takes: `lines`,
the controller's (each record parsed, its line appended to samples.ndjson), which goes on while
nodes measure; `store`, samples.parquet made of them when the run is over; `read`, the whole table
back into memory; and `fit`, the line through all points with its outliers.

    tests/bench/scatter.py [--samples 10000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common import in_turn, verdict

from switchbench.analysis import scatter
from switchbench.records.directory import SAMPLES, RunDirectory

A_RECORD = 32  # samples, as engine/report/report_messages.c writes them
READ_REACH_S = 5.0  # "in seconds"
LINES_REACH = 1e6  # samples a second; nodes of the lab measure some ten thousand


def records(count: int) -> Iterator[bytes]:
    """Lines of `samples` records: log-uniform sizes, times about a line, some far out."""
    random = np.random.default_rng(1)
    size = np.exp(random.uniform(np.log(4), np.log(1 << 20), count)).astype("<u4")
    time_ns = ((100_000 + 80.0 * size) * random.lognormal(0, 0.05, count)).astype("<u8")
    time_ns[::1000] *= 50
    samples = np.zeros(count, dtype=[("place", "<u8"), ("size", "<u4"), ("begun_us", "<u4")])
    samples["place"] = time_ns | (random.integers(0, 16, count).astype("<u8") << np.uint64(48))
    samples["size"] = size
    samples["begun_us"] = np.arange(count) % (1 << 32)
    for i in range(0, count, A_RECORD):
        record = {
            "type": "samples", "node": "node1", "trial": 0, "repeat": 0, "phase": 0,
            "network": "lab", "rank": i // A_RECORD % 16,
            "data": base64.b64encode(samples[i : i + A_RECORD].tobytes()).decode(),
        }  # fmt: skip
        yield json.dumps(record).encode() + b"\n"


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def take_lines(lines: list[bytes], folder: Path) -> None:
    """As the controller takes them."""
    with RunDirectory(folder).open_lines(scatter.LINES, late=True) as file:
        for line in lines:
            if json.loads(line)["type"] == "samples":
                file.write(line)


def fit_all(folder: Path) -> None:
    """As the summary does."""
    table = scatter.read(folder, "size", "time_ns")
    scatter.fit(
        table["size"].to_numpy().astype(float), table["time_ns"].to_numpy().astype(float) / 2000
    )


def main() -> None:
    """Prints each part's time, and the reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    lines = list(records(args.samples))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"

        def again() -> float:
            shutil.rmtree(folder, ignore_errors=True)
            return seconds(lambda: take_lines(lines, folder))

        parts = {
            "lines": again,
            "store": lambda: seconds(lambda: scatter.store(folder)),
            "read": lambda: seconds(lambda: scatter.read(folder)),
            "fit": lambda: seconds(lambda: fit_all(folder)),
        }
        medians = in_turn(args.rounds, parts, unit="s")
        held = (folder / SAMPLES).stat().st_size
        rows = scatter.read(folder, "size").num_rows
    if rows != args.samples:
        raise SystemExit(f"{rows} samples came back of {args.samples}")
    print(f"{held / args.samples:.1f} bytes a sample on disk")
    verdict("read into a table", medians["read"], READ_REACH_S, unit="s", at_most=True)
    verdict("taken while measuring", args.samples / medians["lines"], LINES_REACH, unit="samples/s")


if __name__ == "__main__":
    main()
