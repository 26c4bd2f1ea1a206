# SPDX-License-Identifier: BSD-3-Clause
"""The report of a results directory: one HTML file that opens offline (doc/report.md).

Which sections it has and what is in each; frame.py is what is around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ... import __version__
from ...analysis.data import Measured
from ...records.directory import CONFIGURATION, replace_bytes
from .. import tables
from ..tables import sections
from . import overview
from .figures import KINDS
from .frame import Frame, Section, Words
from .markup import Html, tag

REPORT = "report.html"

# In their order: those of figures are between the page's own.
_SECTIONS = tuple(value for name, value in vars(sections).items() if name.isupper())
# What a summary of another version, or a damaged one, may make of code that reads it.
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)

T = TypeVar("T")


@dataclass(frozen=True)
class Report:
    """A finished page, and what it could not show, a sentence each."""

    text: str
    damage: list[str]


def write(directory: Path, out: Path | None = None) -> Path:
    """Writes the report of a results directory; DIRECTORY/report.html unless `out` is given."""
    path = out or directory / REPORT
    replace_bytes(path, make(Measured.load(directory)).text.encode())
    return path


def make(measured: Measured) -> Report:
    """The page of what was measured."""
    return _Page(measured).finish()


@dataclass
class _Page:
    """A page in the making."""

    measured: Measured
    frame: Frame = field(default_factory=Frame)
    damage: list[str] = field(default_factory=list)

    def finish(self) -> Report:
        """All by_title, then what is around them: damage is known only at the end."""
        self.damage += self.measured.damage
        by_title = {title: Section(title) for title in _SECTIONS}
        self._words(by_title)
        self._figures(by_title)
        self.damage += [one for one in self.measured.damage if one not in self.damage]
        by_title[sections.NOT_MEASURED].parts.append(overview.not_drawn(self.measured.notes))
        for title, makers in tables.BY_SECTION.items():
            for maker in makers:
                words = f"the table of {maker.name}"
                self.frame.table(by_title[title], self._try(partial(maker, self._summary), words))
        by_title[sections.MEANINGS].parts.append(self.frame.definitions())
        run = self._summary.get("run") or {}
        words_of_page = Words(
            f"{self.measured.directory.resolve().name} · {run.get('started', 'unknown time')}",
            "What this network does when every port is busy",
            _footer(run),
            "This report is not whole.",
            self.damage,
        )
        return Report(self.frame.page(words_of_page, by_title.values()), self.damage)

    @property
    def _summary(self) -> Mapping[str, Any]:
        return self.measured.summary

    def _try(self, making: Callable[[], T], what: str) -> T | None:
        """What `making` gives; where the results don't allow it, one more sentence of damage."""
        try:
            return making()
        except UNREADABLE as error:
            self.damage.append(
                f"{what} can't be shown: the results lack what it is made of "
                f"({type(error).__name__}: {error})"
            )
            return None

    def _words(self, by_title: Mapping[str, Section]) -> None:
        """The sections' own words, those above figures and tables."""
        makers: tuple[tuple[str, Callable[[Mapping[str, Any]], Html]], ...] = (
            (sections.VERDICT, overview.verdict),
            (sections.VERDICT, overview.tiles),
            (sections.SET_UP, overview.set_up),
            (sections.FINDINGS, overview.found),
            (sections.NOT_MEASURED, overview.not_measured),
        )
        for title, maker in makers:
            part = self._try(partial(maker, self._summary), title)
            by_title[title].parts.append(part)
        by_title[sections.CONFIGURATION].parts.append(_configuration(self.measured.directory))

    def _figures(self, by_title: Mapping[str, Section]) -> None:
        """A kind whose data can't be read costs that kind, and no other."""
        for kind in KINDS:
            words = f"a figure of {kind.__module__.rpartition('.')[2]}"
            made = kind(self.measured)
            while (drawn := self._try(partial(next, made, None), words)) is not None:
                self.frame.figure(by_title[drawn.section], drawn)


def _configuration(directory: Path) -> Html | None:
    """As the run understood it: it can be run again."""
    try:
        text = (directory / CONFIGURATION).read_text("utf-8")
    except (OSError, ValueError):
        return None
    summary = tag("summary", "configuration.yaml, with every default filled in")
    return tag("details", summary, tag("pre", text))


def _footer(run: Mapping[str, Any]) -> Html:
    version = (run.get("versions") or {}).get("switchbench")
    return tag(
        "p",
        f"Measured with Switchbench {version}, reported with {__version__}. "
        "How to cite it: CITATION.cff. Figures are drawn by Plotly, which is in this file.",
    )
