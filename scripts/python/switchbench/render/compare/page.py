# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one HTML file that opens offline.

In the frame of the report (render/report/frame.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ... import __version__
from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ...records.directory import replace_bytes
from ..report.frame import PageWords, Section, TablePart, Words, meanings, render
from ..report.overview import sentences
from ..tables.table import Spec
from . import tables

_WHAT, _PATTERNS, _PHASES, _FLOWS, _NOT, _MEANINGS = _SECTIONS = (
    "What is compared", "By pattern", "By phase", "By flow", "What is not compared",
    "What the numbers mean",
)  # fmt: skip


def write(comparison: Comparison, path: Path) -> None:
    """Write the page whole or not at all."""
    replace_bytes(path, make_page(comparison).encode())


def make_page(comparison: Comparison) -> str:
    """Return the page."""
    sections = {title: Section(title) for title in _SECTIONS}
    if not comparison.question:
        said = "Switch, site and versions are the same as far as they were written down."
        sections[_WHAT].add(Words(said))
    _add(sections[_WHAT], tables.results(comparison), tables.question(comparison))
    for number, one in enumerate(comparison.compared):
        for title, spec in _differences(number, one):
            _add(sections[title], spec)
    alone = [sentence for one in comparison.compared for sentence in one.match.alone]
    differing = [one.sentence for one in comparison.differing]
    sections[_NOT].add(
        sentences("In one result only", alone),
        sentences("Not the same measurement", differing),
        sentences("Damaged", comparison.damage),
    )
    sections[_MEANINGS].add(*meanings(sections.values()))
    sections[_MEANINGS].open = False
    names = " and ".join(subject.name for subject in comparison.subjects)
    words = PageWords(
        names,
        f"{names} beside each other",
        [f"Compared with Switchbench {__version__} (doc/how-to/compare.md)."],
        "These results are not the same measurement, or not whole.",
        [*differing, *comparison.damage],
    )
    return render(words, sections.values())


def _add(section: Section, *specs: Spec) -> None:
    made = (spec({}) for spec in specs)
    section.add(*(TablePart(table) for table in made if table is not None))


def _differences(number: int, one: Compared) -> Iterator[tuple[str, Spec]]:
    some = f"The foremost of {one.flow_count:,} flows of each pattern and measure."
    kinds: tuple[tuple[str, str, Sequence[DifferenceRow], str], ...] = (
        (_PATTERNS, "plans", one.plans, " ".join(one.notes)),
        (_PHASES, "phases", one.phases, ""),
        (_FLOWS, "flows", one.flows, some),
    )
    for title, kind, rows, about in kinds:
        yield title, tables.differences(f"{kind}-{number}", one, rows, about)
