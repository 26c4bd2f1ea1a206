#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The report of simulated all-to-alls: how long it takes to build, how large it is, how soon it
answers in a browser.

The records are made first (tests/python/simulated.py): all four patterns over both transports, as
nodes write them. Then, in turn for each number of ranks: `switchbench report` as a user starts it;
its file opened in headless Chromium until a table has answered a click that sorts it, and from
there until the first figure has been scrolled to and drawn. There is no peer.

    tests/bench/report.py [--ranks 64 1024] [--rounds 5]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ROOT, arguments, in_turn, skip, switchbench, verdict

PATIENCE_MS = 60_000

sys.path.insert(0, str(ROOT / "tests" / "python"))


# By ranks: seconds to build, megabytes, seconds to answer.
REACHES = {64: (10, 10, 2), 1024: (60, 40, 2)}


def answer(chromium: Any, report: Path) -> tuple[float, float]:
    """Seconds until the page answers a click, and until its first figure is drawn after that."""
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
    return sorted_at - begun, drawn_at - sorted_at


def measure(ranks: int, rounds: int, chromium: Any) -> None:
    """Prints all figures of one number of ranks."""
    from simulated import Choice, simulate

    with tempfile.TemporaryDirectory(prefix="switchbench-bench-") as temporary:
        directory = simulate(Path(temporary) / "run", Choice(ranks))
        held = sum(file.stat().st_size for file in directory.glob("*.parquet"))
        print(f"{ranks} ranks, {held / 1e6:,.0f} MB of tables")
        report = directory / "report.html"
        drawn: list[float] = []

        def open_it() -> float:
            seconds, figure = answer(chromium, report)
            drawn.append(figure)
            return seconds

        parts = {
            "build": lambda: switchbench("report", str(directory))[1]["s"],
            "answer": open_it,
        }
        medians = in_turn(rounds, parts, unit="s")
        size = report.stat().st_size / 1e6
    print(f"its first figure, once it is scrolled to: {sorted(drawn)[len(drawn) // 2]:.2f} s")
    figures = ((medians["build"], "s"), (size, "MB"), (medians["answer"], "s"))
    words = ("built", "in size", "answers")
    for (value, unit), word, reach in zip(figures, words, REACHES[ranks], strict=True):
        verdict(f"report of {ranks} ranks {word}", value, reach, unit=unit, at_most=True)


def main() -> None:
    """Measures each number of ranks."""
    parser = arguments(__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(REACHES), choices=REACHES)
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    from switchbench.base.errors import ConfigurationError
    from switchbench.render.report import build

    try:
        program = build.find_browser()
    except ConfigurationError as error:
        skip(str(error))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for ranks in args.ranks:
            measure(ranks, args.rounds, chromium)
        chromium.close()


if __name__ == "__main__":
    main()
