# SPDX-License-Identifier: BSD-3-Clause
"""A page that opens offline: one HTML file (page/page.html), made of sections of parts.

Everything that is long stands in it compressed and is unpacked by page.js when it comes into
sight: Plotly once, each figure's traces, each table's values. Most sections are folded, so that a
page is some screens long however much a run has.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from ... import __version__
from ...base import format
from ..tables.table import Table
from .figure import Figure

_ROW_PX, _MOST_ROWS_PX = 29, 544  # as page.css has them
_UNFILTERED_ROWS = 5  # as table.js has it
_FIRST_SENTENCES, _MOST_SENTENCES = 8, 200


# --- parts of a section; each has a macro of its name in page.html -------------------------------


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class Sentences:
    """A list."""

    title: str
    every: Sequence[str]
    mark: str = ""  # bad, warn

    @property
    def lines(self) -> Sequence[str]:
        """Those that are seen at first."""
        return self.every[:_FIRST_SENTENCES]

    @property
    def rest(self) -> Sequence[str]:
        """Those that are folded."""
        return self.every[_FIRST_SENTENCES:_MOST_SENTENCES]

    @property
    def more(self) -> str:
        """How many are not even folded."""
        left = len(self.every) - _MOST_SENTENCES
        return f"and {left:,} more in summary.json" if left > 0 else ""


@dataclass(frozen=True)
class Facts:
    """Names and what each of them is."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Details:
    """A long text, folded."""

    title: str
    text: str


@dataclass(frozen=True)
class Tile:
    """A number of the first screen; `mood`: good, warn or bad."""

    label: str
    value: str
    text: str
    about: str = ""
    mood: str = ""


@dataclass(frozen=True)
class Glance:
    """The first screen: the verdict, tiles, and one figure."""

    word: str
    text: str
    tiles: Sequence[Tile]
    verdict: str = ""  # PASS, FAIL, INCONCLUSIVE
    sign: str = ""
    figure: Figure | None = None


@dataclass(frozen=True)
class TablePart:
    """A table."""

    table: Table

    def __getattr__(self, name: str) -> Any:
        """Return what the table has."""
        return getattr(self.table, name)

    @property
    def drawn(self) -> bool:
        """Else all rows are alike, and what they share is said."""
        return len(self.table.columns) > 1

    @property
    def words(self) -> str:
        """What stands above it."""
        return " ".join(filter(None, (self.table.about, self.table.shared)))

    @property
    def room(self) -> int:
        """Pixels that it takes when it is drawn, so that nothing moves then."""
        filters = 35 if self.table.rows > _UNFILTERED_ROWS else 0
        return 46 + min(52 + filters + _ROW_PX * self.table.rows, _MOST_ROWS_PX)


Part = Words | Sentences | Facts | Details | Glance | TablePart | Figure


@dataclass
class Section:
    """One part of the page: words, figures and tables below a heading."""

    title: str
    parts: list[Part] = field(default_factory=list)
    folds: bool = True
    open: bool = True

    def add(self, *parts: Part | None) -> None:
        """Add what there is."""
        self.parts += [part for part in parts if part is not None]

    @property
    def name(self) -> str:
        """Its anchor."""
        return "section-" + self.title.lower().replace(" ", "-")

    @property
    def anchors(self) -> list[tuple[str, str]]:
        """Name and title of each figure and table, for the list of contents."""
        return [
            (f"table-{part.name}" if isinstance(part, TablePart) else part.name, part.title)
            for part in self.parts
            if isinstance(part, Figure) or (isinstance(part, TablePart) and part.drawn)
        ]

    @property
    def contents(self) -> str:
        """What is in it, beside its heading."""
        figures = sum(isinstance(part, Figure) for part in self.parts)
        tables = sum(isinstance(part, TablePart) for part in self.parts)
        counts = ((figures, "figure"), (tables, "table"))
        return ", ".join(format.of(count, noun) for count, noun in counts if count)


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PageWords:
    """What a page says of itself."""

    what: str  # in its title and above it
    heading: str
    footer: Sequence[str]
    warning: str = ""  # above the damage
    damage: Sequence[str] = ()  # what could not be shown, a sentence each


def render(page: PageWords, sections: Iterable[Section]) -> str:
    """Return the whole file; sections without anything are left out."""
    import jinja2  # a run that writes no report does without

    shown = [section for section in sections if section.parts]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["prose"] = _prose
    return environment.from_string(_asset("page.html")).render(
        page=page,
        sections=shown,
        version=__version__,
        style=_asset("page.css"),
        script=_asset("table.js") + _asset("page.js"),
        blocks=[(name, _packed(data)) for name, data in _blocks(shown)],
    )


def _prose(text: str) -> str:
    """Return a sentence, in which `names` look as they are typed."""
    from markupsafe import Markup, escape  # jinja2's own

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _blocks(sections: Iterable[Section]) -> Iterator[tuple[str, bytes]]:
    """Yield data of figures and tables for page.js, and Plotly."""
    for section in sections:
        for part in section.parts:
            found = part.figure if isinstance(part, Glance) else part
            if isinstance(found, Figure):
                layout = {**found.layout, "height": found.height}
                yield f"data-{found.name}", _json({"data": found.data, "layout": layout})
            elif isinstance(found, TablePart) and found.drawn:
                yield f"data-table-{found.table.name}", _json(found.table.data())
    code = files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")
    # A few Chinese letters in strings would make browsers hold and read all of it twice as wide.
    yield "plotly", code.encode("ascii", "backslashreplace")


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _packed(data: bytes) -> str:
    """Return what the page's script unpacks: gzip in base64, which nobody takes for code."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def _asset(name: str) -> str:
    return files(__package__).joinpath(f"page/{name}").read_text("utf-8")


def meanings(sections: Iterable[Section]) -> list[Part]:
    """Return what the numbers of all tables mean.

    A title of different meanings is told by its tables.
    """
    found: dict[str, dict[str, str]] = {}
    parts = [part for section in sections for part in section.parts]
    for table in (part.table for part in parts if isinstance(part, TablePart) and part.drawn):
        for column in table.columns:
            found.setdefault(column.title, {}).setdefault(column.definition, table.title)
    rows = [
        (title if len(some) == 1 else f"{title} ({table})", words)
        for title, some in sorted(found.items())
        for words, table in some.items()
    ]
    about = (
        "The same words appear when the pointer rests on a number. "
        "Formulas: doc/reference/measures.md."
    )
    return [Words(about, "about"), Facts(rows)] if rows else []
