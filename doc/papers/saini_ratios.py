#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the balance of communication and computing as Saini et al. 2005 (HPCC and IMB) do.

    doc/papers/saini_ratios.py [--hpl GFLOPS] [--stream GBYTES] [--json] RESULTS [RESULTS ...]

RESULTS are results directories: of HPCC's hpccoutf.txt (`switchbench import`), or runs of random
rings (`pattern: ring`, `natural: false`), which need --hpl. Every run in a directory is a system at
one number of processes. The first table has the values of Figures 1 to 4, the second the axes of
Figure 5: each is divided by the best result's, which Table 2 prints.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GIGA = 1e9
BYTES_PER_MBIT = 1e6 / 8
# Field, title and unit of each axis of Figure 5; all but the first and the last are by HPL.
AXES = (
    ("hpl", "HPL", "Flop/s"),
    ("dgemm", "DGEMM / HPL", "Flop/Flop"),
    ("fft", "FFT / HPL", "Flop/Flop"),
    ("ptrans", "PTRANS / HPL", "B/Flop"),
    ("stream", "STREAM Copy / HPL", "B/Flop"),
    ("ring", "random ring / HPL", "B/Flop"),
    ("random_access", "RandomAccess / HPL", "Update/Flop"),
    ("ring_latency", "1 / random ring latency", "1/us"),
)
NOT_BY_HPL = ("hpl", "ring_latency")


@dataclass
class System:
    """All processes of one system together: Flop/s, B/s, Update/s and 1/us."""

    name: str
    processes: int
    values: dict[str, float] = field(default_factory=dict)

    def axis(self, name: str) -> float | None:
        """Return the value of an axis of Figure 5; None where it is not known."""
        value, hpl = self.values.get(name), self.values.get("hpl")
        if value is None or name in NOT_BY_HPL:
            return value
        return value / hpl if hpl else None


def systems_of(name: str, summary: dict[str, Any]) -> list[System]:
    """Return the systems of a results directory, by number of processes."""
    found: dict[int, System] = {}

    def put(processes: int, key: str, value: float) -> None:
        found.setdefault(processes, System(name, processes)).values[key] = value

    for entry in summary.get("imported", ()):
        same = entry["comparable"]
        if entry["tool"] != "hpcc" or same is None:
            continue
        measure, processes, value = same["measure"], same["ranks"], same["value"]
        if measure == "random_ring_rate":  # of one of a process's two flows, Mbit/s
            put(processes, "ring", 2 * value * BYTES_PER_MBIT * processes)
        elif measure == "random_ring_time":
            put(processes, "ring_latency", 1 / value)
        elif same["size"] is None:
            put(processes, measure.removesuffix("_copy"), value)
    for plan in summary.get("plans", ()):
        if plan["pattern"] == "ring" and plan["parameters"].get("natural") is False:
            total = plan["throughput"]["total"]  # of all flows, Mbit/s
            if total is not None:
                put(plan["ranks"], "ring", total * BYTES_PER_MBIT)
    return [found[processes] for processes in sorted(found)]


def figures_1_to_4(systems: list[System]) -> list[dict[str, Any]]:
    """Return a row for each system with HPL: ring and STREAM, and their ratios to HPL."""
    return [
        {
            "system": one.name,
            "processes": one.processes,
            "HPL, GFlop/s": one.values["hpl"] / GIGA,
            **{
                title: None if value is None else factor * value
                for title, value, factor in (
                    ("random ring, GB/s", one.values.get("ring"), 1 / GIGA),
                    ("ring / HPL, B/kFlop", one.axis("ring"), 1e3),
                    ("STREAM Copy, GB/s", one.values.get("stream"), 1 / GIGA),
                    ("STREAM / HPL, B/Flop", one.axis("stream"), 1.0),
                )
            },
        }
        for one in systems
        if one.values.get("hpl")
    ]


def figure_5(systems: list[System]) -> list[dict[str, Any]]:
    """Return a row for each axis that all systems have; the best of each is 1."""
    rows = []
    for name, title, unit in AXES:
        values = [one.axis(name) for one in systems]
        known = [value for value in values if value]
        if known and len(known) == len(values):
            best = max(known)
            shares = {f"{one.name} {one.processes}": value / best
                      for one, value in zip(systems, known, strict=True)}  # fmt: skip
            rows.append({"ratio": title, **shares, "1 is": best, "unit": unit})
    return rows


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    if not rows:
        return
    shown = [[_word(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(list(rows[0]), *shown, strict=True)]
    print(title)
    for line in (list(rows[0]), *shown):
        print("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)))
    print()


def _word(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def main(words: list[str]) -> int:
    """Print both tables, or write them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--hpl", type=float, help="GFlop/s of systems whose results lack it")
    parser.add_argument("--stream", type=float, help="GB/s of STREAM Copy, likewise")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    systems: list[System] = []
    for path in args.results:
        try:
            summary = json.loads((path / "summary.json").read_text())
            systems += systems_of(path.resolve().name, summary)
        except (OSError, ValueError, LookupError, TypeError) as error:
            parser.error(f"{path} is not a results directory: {error}")
    for one in systems:
        for key, value in (("hpl", args.hpl), ("stream", args.stream)):
            if value is not None:
                one.values.setdefault(key, value * GIGA)
    small, ratios = figures_1_to_4(systems), figure_5(systems)
    if not small:
        parser.error("no system has HPL: import HPCC's hpccoutf.txt, or say --hpl")
    if args.json:
        print(json.dumps({"systems": small, "ratios": ratios}))
        return 0
    show("Communication and memory by computing (Figures 1 to 4)", small)
    show("Ratios, the best of each is 1 (Figure 5)", ratios)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
