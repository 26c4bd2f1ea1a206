# SPDX-License-Identifier: BSD-3-Clause
"""What is around the figures and tables of a page that opens offline: one HTML file.

Everything that is long stands in it compressed and is unpacked by page.js when it comes into
sight: Plotly once, each figure's traces, each table's values.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from ... import __version__
from ..tables.table import Table
from .figure import Figure
from .markup import Html, join, listed, packed, paragraph, tag

_BLOCK = '<div class="block">'  # what paper keeps together


@dataclass(frozen=True)
class Words:
    """What a page says of itself."""

    what: str  # in its title and above it
    heading: str
    footer: Html
    warning: str = ""  # above the damage
    damage: Sequence[str] = ()  # what could not be shown, a sentence each


@dataclass
class Section:
    """One part of the page: words, figures and tables below a heading."""

    title: str
    parts: list[Html | None] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)  # anchor and title of each part

    @property
    def name(self) -> str:
        """Its anchor."""
        return "section-" + self.title.lower().replace(" ", "-")

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return all(part is None for part in self.parts)


@dataclass
class Frame:
    """A page in the making: data of its figures and tables, and what their numbers mean."""

    blocks: list[Html] = field(default_factory=list)
    # Of what is shown: a column's title, what it means, and in which tables.
    meanings: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def figure(self, section: Section, drawn: Figure) -> None:
        """Adds a figure to a section."""
        layout = {**drawn.layout, "height": drawn.height}
        self.blocks.append(_block(drawn.name, {"data": drawn.data, "layout": layout}))
        place = tag(
            "div", class_="figure", style=f"min-height:{drawn.height}px",
            data_figure=drawn.name, data_title=drawn.title,
            role="img", aria_label=f"{drawn.title}. {drawn.definition}",
        )  # fmt: skip
        title, about = tag("h3", drawn.title, id=drawn.name), paragraph(drawn.definition, "about")
        section.parts.append(tag("div", title, about, place, class_="block"))
        section.entries.append((drawn.name, drawn.title))

    def table(self, section: Section, table: Table | None) -> None:
        """Adds a table to a section; None adds nothing."""
        if table is None:
            return
        about = paragraph(" ".join(filter(None, (table.about, table.shared))), "about")
        if len(table.columns) < 2:  # all rows are alike: what they share is said
            section.parts += [tag("h3", table.title), about]
            return
        name = f"table-{table.name}"  # a figure may have the same
        self.blocks.append(_block(name, table.data()))
        for column in table.columns:
            some = self.meanings.setdefault(column.title, {})
            some.setdefault(column.definition, []).append(table.title)
        section.parts += [
            tag("h3", table.title),
            about,
            tag("div", id=name, data_table=table.name, data_title=table.title),
            paragraph(table.unseen, "about"),
        ]
        section.entries.append((name, table.title))

    def definitions(self) -> Html | None:
        """What the numbers of all tables mean."""
        return _meanings(self.meanings)

    def page(self, words: Words, sections: Iterable[Section]) -> str:
        """The whole file; sections without anything are left out."""
        shown = [section for section in sections if not section.empty]
        inside = [tag("h1", words.heading), _notice(words)]
        inside += [tag("section", *_headed(one), id=one.name) for one in shown]
        self.blocks.append(packed("plotly", _plotly()))
        return _filled(
            version=html.escape(__version__),
            title=html.escape(f"Switchbench: {words.what}"),
            what=html.escape(words.what),
            style=_asset("page.css"),
            script=_asset("table.js") + _asset("page.js"),
            contents=join(_contents(section) for section in shown),
            main=join(inside),
            footer=words.footer,
            blocks="\n".join(self.blocks),
        )


def _headed(section: Section) -> Iterator[Html | None]:
    """A section's parts below its title, which stays on the page of the first figure."""
    first, *rest = section.parts
    title = tag("h2", section.title)
    if first is not None and first.startswith(_BLOCK):
        yield tag("div", title, first, class_="block")
    else:
        yield title
        yield first
    yield from rest


def _notice(words: Words) -> Html | None:
    if not words.damage:
        return None
    title = tag("strong", words.warning)
    return tag("div", title, listed(words.damage), class_="notice", role="alert")


def _block(name: str, value: Any) -> Html:
    """Data of one figure or table, for page.js."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return packed(f"data-{name}", text.encode())


def _contents(section: Section) -> Html:
    entries = [tag("li", tag("a", title, href=f"#{name}")) for name, title in section.entries]
    within = tag("ol", *entries) if len(entries) > 1 else None
    return tag("li", tag("a", section.title, href=f"#{section.name}"), within)


def _meanings(meanings: Mapping[str, Mapping[str, Sequence[str]]]) -> Html | None:
    """A title that means different things in different tables is told apart by them."""
    if not meanings:
        return None
    rows: Iterator[Html] = (
        join([tag("dt", title if len(some) == 1 else f"{title} ({tables[0]})"), tag("dd", words)])
        for title, some in sorted(meanings.items())
        for words, tables in some.items()
    )
    about = "The same words appear when the pointer rests on a number. Formulas: doc/measures.md."
    return join([paragraph(about, "about"), tag("dl", *rows)])


def _plotly() -> bytes:
    """Plotly for browsers, as its Python package brings it."""
    code = files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")
    # A few Chinese letters in strings would make browsers hold and read all of it twice as wide.
    return code.encode("ascii", "backslashreplace")


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
