# SPDX-License-Identifier: BSD-3-Clause
"""The page of a comparison, drawn by headless Chromium from disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compared import Repeats, make
from switchbench.cli.main import main

FAST = [(7700, 7710), (7720, 7690), (7710, 7700)]
SLOW = [(7000, 6800), (7010, 6810), (6990, 6790)]
LOADS = (95.0, 80.0, 60.0)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Two results with three matrices."""
    fast = make(tmp_path / "a", *(Repeats(FAST, load=load) for load in LOADS))
    slow = make(tmp_path / "b", *(Repeats(SLOW, load=load) for load in LOADS))
    path = tmp_path / "page.html"
    assert main(["compare", f"new <1>={fast}", f"old={slow}", "--html", str(path)]) == 0
    return path


def test_the_page_is_one_file_that_asks_for_nothing(page: Path) -> None:
    text = page.read_text()
    assert "<h1>new &lt;1&gt; and old beside each other</h1>" in text
    assert not re.search(r'(?:src|href)="(?!#)', text)
    contents = text.split("<nav", 1)[1].split("</nav>", 1)[0]
    titles = re.findall(r'href="#section-[^"]*">([^<]*)<', contents)
    assert titles == [
        "What is compared",
        "By pattern",
        "By flow",
        "What the numbers mean",
    ]


def test_another_measurement_is_said_above_all(tmp_path: Path) -> None:
    one = make(tmp_path / "a", Repeats(FAST))
    two = make(tmp_path / "b", Repeats(FAST, settings={"window": "9s"}))
    path = tmp_path / "page.html"
    assert main(["compare", str(one), str(two), "--html", str(path)]) == 2
    notice = path.read_text().split('role="alert"', 1)[1].split("</div>", 1)[0]
    assert "window is 1s and 9s" in notice
