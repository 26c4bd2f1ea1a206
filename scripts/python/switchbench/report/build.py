# SPDX-License-Identifier: BSD-3-Clause
"""The report of a results directory: one HTML file that opens offline (doc/report.md).

Everything that is long stands in it compressed and is unpacked by page.js when it comes into
sight: Plotly once, each figure's traces, each table's values.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from .. import __version__
from ..results.directory import CONFIGURATION, replace_bytes
from . import figure, overview, tables
from .data import Measured
from .figures import figures
from .markup import Html, join, listed, packed, paragraph, tag
from .table import Table

REPORT = "report.html"

# The page's sections: its own, and those of the figures between them.
_NOT_MEASURED = "What was not measured"
_CONFIGURATION = "The configuration"
_MEANINGS = "What the numbers mean"
_SECTIONS = (
    tables.VERDICT,
    tables.SET_UP,
    tables.FINDINGS,
    tables.RESULTS,
    *figure.SECTIONS,
    tables.PORTS,
    _NOT_MEASURED,
    _CONFIGURATION,
    _MEANINGS,
)
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
class _Section:
    title: str
    parts: list[Html | None] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)  # anchor and title of each part

    @property
    def name(self) -> str:
        """Its anchor."""
        return "section-" + self.title.lower().replace(" ", "-")

    @property
    def empty(self) -> bool:
        return all(part is None for part in self.parts)


@dataclass
class _Page:
    """A page in the making."""

    measured: Measured
    blocks: list[Html] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    meanings: dict[str, str] = field(default_factory=dict)  # title -> definition, of what is shown

    def finish(self) -> Report:
        """All sections, then what is around them: damage is known only at the end."""
        self.damage += self.measured.damage
        sections = {title: _Section(title) for title in _SECTIONS}
        self._words(sections)
        self._figures(sections)
        for title, makers in tables.BY_SECTION.items():
            for maker in makers:
                words = f"the table of {maker.__name__.replace('_', ' ')}"
                self._table(sections[title], self._try(partial(maker, self._summary), words))
        sections[_MEANINGS].parts.append(_meanings(self.meanings))
        shown = [section for section in sections.values() if not section.empty]
        return Report(self._whole(shown), self.damage)

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

    def _words(self, sections: Mapping[str, _Section]) -> None:
        """The sections' own words, those above figures and tables."""
        makers: tuple[tuple[str, Callable[[Mapping[str, Any]], Html]], ...] = (
            (tables.VERDICT, overview.verdict),
            (tables.VERDICT, overview.tiles),
            (tables.SET_UP, overview.set_up),
            (tables.FINDINGS, overview.found),
            (_NOT_MEASURED, overview.not_measured),
        )
        for title, maker in makers:
            part = self._try(partial(maker, self._summary), title)
            sections[title].parts.append(part)
        sections[_CONFIGURATION].parts.append(_configuration(self.measured.directory))

    def _figures(self, sections: Mapping[str, _Section]) -> None:
        made = iter(figures(self.measured))
        while (drawn := self._try(lambda: next(made, None), "a figure")) is not None:
            self._figure(sections[drawn.section], drawn)

    def _figure(self, section: _Section, drawn: figure.Figure) -> None:
        layout = {**drawn.layout, "height": drawn.height}
        self.blocks.append(_block(drawn.name, {"data": drawn.data, "layout": layout}))
        section.parts += [
            tag("h3", drawn.title, id=drawn.name),
            paragraph(drawn.definition, "about"),
            tag(
                "div", class_="figure", style=f"min-height:{drawn.height}px",
                data_figure=drawn.name, data_title=drawn.title,
                role="img", aria_label=f"{drawn.title}. {drawn.definition}",
            ),
        ]  # fmt: skip
        section.entries.append((drawn.name, drawn.title))

    def _table(self, section: _Section, table: Table | None) -> None:
        if table is None:
            return
        name = f"table-{table.name}"  # a figure may have the same
        self.blocks.append(_block(name, table.data()))
        for column in table.columns:
            self.meanings.setdefault(column.title, column.definition)
        section.parts += [
            tag("h3", table.title),
            paragraph(" ".join(filter(None, (table.about, table.shared))), "about"),
            tag("div", id=name, data_table=table.name, data_title=table.title),
            paragraph(table.unseen, "about"),
        ]
        section.entries.append((name, table.title))

    def _whole(self, sections: Iterable[_Section]) -> str:
        shown = list(sections)
        run = self._summary.get("run") or {}
        what = f"{self.measured.directory.resolve().name} · {run.get('started', 'unknown time')}"
        inside = [tag("h1", "What this network does when every port is busy"), self._notice()]
        inside += [tag("section", tag("h2", one.title), *one.parts, id=one.name) for one in shown]
        self.blocks.append(packed("plotly", _plotly()))
        return _filled(
            version=html.escape(__version__),
            title=html.escape(f"Switchbench: {what}"),
            what=html.escape(what),
            style=_asset("page.css"),
            script=_asset("table.js") + _asset("page.js"),
            contents=join(_contents(section) for section in shown),
            main=join(inside),
            footer=_footer(run),
            blocks="\n".join(self.blocks),
        )

    def _notice(self) -> Html | None:
        if not self.damage:
            return None
        title = tag("strong", "This report is not whole.")
        return tag("div", title, listed(self.damage), class_="notice", role="alert")


def _block(name: str, value: Any) -> Html:
    """Data of one figure or table, for page.js."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return packed(f"data-{name}", text.encode())


def _contents(section: _Section) -> Html:
    entries = [tag("li", tag("a", title, href=f"#{name}")) for name, title in section.entries]
    within = tag("ol", *entries) if len(entries) > 1 else None
    return tag("li", tag("a", section.title, href=f"#{section.name}"), within)


def _configuration(directory: Path) -> Html | None:
    """As the run understood it: it can be run again."""
    try:
        text = (directory / CONFIGURATION).read_text("utf-8")
    except (OSError, ValueError):
        return None
    summary = tag("summary", "configuration.yaml, with every default filled in")
    return tag("details", summary, tag("pre", text))


def _meanings(meanings: Mapping[str, str]) -> Html | None:
    if not meanings:
        return None
    rows: Iterator[Html] = (
        join([tag("dt", title), tag("dd", words)]) for title, words in sorted(meanings.items())
    )
    about = "The same words appear when the pointer rests on a number. Formulas: doc/measures.md."
    return join([paragraph(about, "about"), tag("dl", *rows)])


def _footer(run: Mapping[str, Any]) -> Html:
    version = (run.get("versions") or {}).get("switchbench")
    return tag(
        "p",
        f"Measured with Switchbench {version}, reported with {__version__}. "
        "How to cite it: CITATION.cff. Figures are drawn by Plotly, which is in this file.",
    )


def _plotly() -> bytes:
    """Plotly for browsers, as its Python package brings it."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_bytes()


def _asset(name: str) -> str:
    return files(__package__).joinpath(f"page/{name}").read_text("utf-8")


def _filled(**parts: str) -> str:
    """The page's frame with its parts in their places."""
    frame = _asset("page.html")
    pieces = frame.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)
