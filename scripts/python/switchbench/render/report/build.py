# SPDX-License-Identifier: BSD-3-Clause
"""The report of a results directory: one HTML file that opens offline (doc/how-to/report.md).

Which sections it has and what is in each; frame.py is what is around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ... import __version__
from ...analysis.data import Measured
from ...records.directory import CONFIGURATION, REPORT, replace_bytes
from ...records.document.summary import RunEntry, SummaryDocument
from .. import tables
from ..first_screen import named
from ..tables import sections as s
from . import overview
from .figure import Figure
from .figures import KINDS
from .frame import Details, PageWords, Part, Section, TablePart, meanings, render

# In their order: those of figures are between the page's own.
_SECTIONS = tuple(value for name, value in vars(s).items() if name.isupper())
# The first screen does not fold; these are open at first.
_OPEN = (s.VERDICT, s.FINDINGS, s.RESULTS)
_FOREMOST = ("heat-map", "phases", "nodes", "pairs")  # figures for the first screen, the best first
_FOREMOST_PX = 520
# What a summary of another version, or a damaged one, may make of code that reads it.
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)

T = TypeVar("T")


@dataclass(frozen=True)
class Report:
    """A finished page, and what it could not show, a sentence each."""

    text: str
    damage: list[str]


def write(directory: Path, out: Path | None = None) -> Path:
    """Write the report of a results directory; DIRECTORY/report.html unless `out` is given."""
    path = out or directory / REPORT
    replace_bytes(path, make(Measured.load(directory)).text.encode())
    return path


def make(measured: Measured) -> Report:
    """Return the page of what was measured."""
    return _Page(replace(measured, summary=named(measured.summary))).finish()


@dataclass
class _Page:
    """A page in the making."""

    measured: Measured
    sections: dict[str, Section] = field(
        default_factory=lambda: {title: Section(title) for title in _SECTIONS}
    )
    damage: list[str] = field(default_factory=list)

    def finish(self) -> Report:
        """Return all sections, then what is around them: damage is known only at the end."""
        self.damage += self.measured.damage
        figures = list(self._figures())
        first = _foremost(figures)
        self._words(first and replace(first, height=min(first.height, _FOREMOST_PX)))
        for figure in figures:
            if figure is not first:
                self.sections[figure.section].add(figure)
        self.damage += [one for one in self.measured.damage if one not in self.damage]
        for title, specs in tables.BY_SECTION.items():
            for spec in specs:
                table = self._try(partial(spec, self._summary), f"the table of {spec.name}")
                self.sections[title].add(TablePart(table) if table else None)
        self.sections[s.MEANINGS].add(*meanings(self.sections.values()))
        self._fold()
        run = self._summary["run"]
        words = PageWords(
            f"{run.get('id', 'unknown')} · {run.get('started', 'unknown time')}",
            f"Results of run {run.get('id', 'unknown')}",
            [_footer(run)],
            "This report is not whole.",
            self.damage,
        )
        return Report(render(words, self.sections.values()), self.damage)

    @property
    def _summary(self) -> SummaryDocument:
        return self.measured.summary

    def _try(self, making: Callable[[], T], what: str) -> T | None:
        """Return what `making` gives.

        Where the results don't allow it, one more sentence of damage.
        """
        try:
            return making()
        except UNREADABLE as error:
            self.damage.append(
                f"{what} can't be shown: the results lack what it is made of "
                f"({type(error).__name__}: {error})"
            )
            return None

    def _words(self, figure: Figure | None) -> None:
        """Add the sections' own words, those above figures and tables."""
        makers: tuple[tuple[str, Callable[[SummaryDocument], list[Part | None]]], ...] = (
            (s.GLANCE, lambda summary: [overview.glance(summary, figure)]),
            (s.VERDICT, overview.verdict),
            (s.SET_UP, overview.set_up),
            (s.FINDINGS, overview.found),
            (s.SUITE, overview.suite),
            (s.NOT_MEASURED, overview.not_measured),
        )
        for title, maker in makers:
            self.sections[title].add(*(self._try(partial(maker, self._summary), title) or ()))
        if figure is not None and not self.sections[s.GLANCE].parts:
            self.sections[figure.section].add(figure)
        notes = overview.sentences("Not drawn", self.measured.notes, "warn")
        self.sections[s.NOT_MEASURED].add(notes)
        self.sections[s.CONFIGURATION].add(_configuration(self.measured.directory))

    def _figures(self) -> Iterator[Figure]:
        """Yield the figures of all kinds; data that can't be read cost their kind, and no other.

        No two have one title.
        """
        titles: dict[str, int] = {}
        for kind in KINDS:
            words = f"a figure of {getattr(kind, 'name', kind.__module__.rpartition('.')[2])}"
            made = kind(self.measured)
            while (drawn := self._try(partial(next, made, None), words)) is not None:
                number = titles[drawn.title] = titles.get(drawn.title, 0) + 1
                yield drawn if number == 1 else replace(drawn, title=f"{drawn.title} ({number})")

    def _fold(self) -> None:
        self.sections[s.GLANCE].folds = False
        for title, section in self.sections.items():
            section.open = title in _OPEN
        if self._summary.get("suite"):  # whose rows follow from phases
            self.sections[s.SUITE].open, self.sections[s.RESULTS].open = True, False
        predicted = [part for part in self.sections[s.PREDICTED].parts if isinstance(part, Figure)]
        self.sections[s.PREDICTED].open = any(figure.disagrees for figure in predicted)


def _foremost(figures: list[Figure]) -> Figure | None:
    """Return the one for the first screen: a suite's own, if it was one."""
    if any(figure.section == s.SUITE for figure in figures):
        return next(figure for figure in figures if figure.section == s.SUITE)
    for kind in _FOREMOST:
        for figure in figures:
            if figure.name.startswith(kind) and figure.section != s.LOSS:
                return figure
    return next(iter(figures), None)


def _configuration(directory: Path) -> Details | None:
    """As the run understood it: it can be run again."""
    try:
        text = (directory / CONFIGURATION).read_text("utf-8")
    except (OSError, ValueError):
        return None
    return Details("configuration.yaml, with every default filled in", text)


def _footer(run: RunEntry) -> str:
    version = (run.get("versions") or {}).get("switchbench")
    return (
        f"Measured with Switchbench {version}, reported with {__version__}. "
        "How to cite it: CITATION.cff. Figures are drawn by Plotly, which is in this file."
    )
