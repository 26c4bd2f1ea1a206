#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The report of simulated all-to-alls: how long it takes to build, how large it is, how soon it
answers in a browser; and summary and check of the largest.

The tables are simulated first (tests/python/simulated.py): all four patterns over both transports.
Then, in turn for each number of ranks: `switchbench report` as a user starts it; its file opened in
headless Chromium until a table has answered a click that sorts it, and from there until the first
figure has been scrolled to and drawn. Of an AAPC over dpdk alone, 1,023 phases of 1,024 flows, also
`switchbench table --again`, which makes the summary of the tables, and `switchbench verify`: time,
and memory. There is no peer.

    tests/bench/report.py [--ranks 64 1024] [--rounds 5]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ROOT, Figures, arguments, medians_in_turn, skip, switchbench, verdict

sys.path[:0] = [str(ROOT / "tests" / name) for name in ("python", "system")]

PATIENCE_MS = 60_000
# By ranks: seconds to build, megabytes, seconds to answer.
REACHES = {64: (10, 10, 2), 1024: (60, 40, 2)}
TABLES_MB, SUMMARY_AND_REPORT_S, VERIFY_S, MEMORY_GIB = 120.0, 60.0, 10.0, 1.0  # of 1,024 ranks


def answer(chromium: Any, report: Path) -> Figures:
    """Return seconds until the page answers a click, and until its first figure is drawn then."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    begun = time.monotonic()
    page.goto(report.as_uri(), timeout=PATIENCE_MS)
    table = page.locator("#table-phases")
    table.scroll_into_view_if_needed(timeout=PATIENCE_MS)
    table.locator("thead button", has_text="slowest").first.click(timeout=PATIENCE_MS)
    table.locator("th[aria-sort=ascending]").wait_for(timeout=PATIENCE_MS)
    sorted_at = time.monotonic()
    figure = page.locator("[data-figure]").first
    figure.scroll_into_view_if_needed(timeout=PATIENCE_MS)
    figure.and_(page.locator("[data-state=drawn]")).wait_for(timeout=PATIENCE_MS)
    drawn_at = time.monotonic()
    context.close()
    return {"s": sorted_at - begun, "s to its first figure": drawn_at - sorted_at}


def measure(ranks: int, rounds: int, chromium: Any) -> None:
    """Print all figures of the report of one number of ranks."""
    from simulated import Choice, simulate

    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        directory = simulate(Path(temporary) / "run", Choice(ranks))
        report = directory / "report.html"
        parts = {
            "build": lambda: switchbench("report", str(directory))[1],
            "answer": lambda: answer(chromium, report),
        }
        medians = medians_in_turn(rounds, parts)
        size = report.stat().st_size / 1e6
    figures = ((medians["build"]["s"], "s"), (size, "MB"), (medians["answer"]["s"], "s"))
    words = ("built", "in size", "answers")
    for (value, unit), word, reach in zip(figures, words, REACHES[ranks], strict=True):
        verdict(f"report of {ranks} ranks {word}", value, reach, unit=unit, at_most=True)


def measure_largest(ranks: int = 1024) -> None:
    """Print what summary, check and report of one pattern cost."""
    from simulated import Choice, simulate

    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        choice = Choice(ranks, transports=("dpdk",), patterns=("aapc",))
        directory = str(simulate(Path(temporary) / "run", choice))
        held = sum(file.stat().st_size for file in Path(directory).glob("*.parquet")) / 1e6
        verdict("tables", held, TABLES_MB, unit="MB", at_most=True)
        summary, verify, report = (
            switchbench(*words)[1]
            for words in (
                ("table", directory, "--again"), ("verify", directory), ("report", directory)
            )
        )  # fmt: skip
    together = summary["s"] + report["s"]
    verdict("summary and report", together, SUMMARY_AND_REPORT_S, unit="s", at_most=True)
    verdict("verify", verify["s"], VERIFY_S, unit="s", at_most=True)
    most = max(taken["GiB"] for taken in (summary, verify, report))
    verdict("memory", most, MEMORY_GIB, unit="GiB", at_most=True)


def main() -> None:
    """Measure each number of ranks."""
    asked = arguments(__doc__, ranks=list(REACHES)).parse_args()
    if 1024 in asked.ranks:
        measure_largest()
    from playwright.sync_api import sync_playwright

    from switchbench.base.errors import ConfigurationError
    from switchbench.render.report import build

    try:
        program = build.find_browser()
    except ConfigurationError as error:
        skip(str(error))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for ranks in asked.ranks:
            measure(ranks, asked.rounds, chromium)
        chromium.close()


if __name__ == "__main__":
    main()
