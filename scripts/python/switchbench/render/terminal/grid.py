# SPDX-License-Identifier: BSD-3-Clause
"""Tables on a terminal (tables/table.py)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..tables.table import WORDS, Column, Table

_GAP = "  "
_NARROWEST = 16  # of words that are folded


def say(console: Console, text: str, style: str = "", hang: int = 0) -> None:
    """Print a line of words, in which nothing is markup; a newline before it is an empty line.

    `hang`: it is folded to the terminal's width, and goes on so far from the margin.
    """
    lines = [text]
    if hang and console.width > 2 * hang:
        words = text.removeprefix("\n")
        lines = [""] * (len(text) - len(words))
        lines += wrap(words, console.width, subsequent_indent=" " * hang, break_on_hyphens=False)
    for line in lines:
        console.print(Text(line, style), highlight=False, soft_wrap=True)


def heading(console: Console, text: str) -> None:
    """Above a table or a list."""
    say(console, f"\n{text}", "bold", hang=2)


def listed(
    console: Console, title: str, sentences: Sequence[str], style: str, most: int | None = None
) -> None:
    """Sentences below a heading, at most so many; nothing where there are none."""
    if not sentences:
        return
    heading(console, title)
    shown = sentences[:most]
    for sentence in shown:
        say(console, f"  {sentence}", style)
    if len(shown) < len(sentences):
        say(console, f"  and {len(sentences) - len(shown)} more (--all)", style)


def note_lines(console: Console, *notes: str) -> None:
    """Below a table, folded; empty ones are none."""
    for line in (line for note in notes for line in wrap(note, console.width - 2)):
        say(console, f"  {line}", "dim")


def show(
    table: Table | None,
    console: Console,
    title: str = "",
    styles: Sequence[str] = (),
    groups: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> None:
    """Print a table below its title, and below it what was left out.

    On a narrow terminal columns go, of which the declaration says so, then the widest words are
    folded; no figure is cut.

    `styles`: of the rows; `groups`: what stands above each row that has another than the one
    before.
    """
    if table is None:
        return
    if title:
        heading(console, title)
    laid = _fitting(
        [_Laid(c, v) for c, v in zip(table.columns, table.values, strict=True)], console
    )
    height = max(len(one.title) for one in laid)
    for line in range(height):
        parts = [one.title[line] if line < len(one.title) else "" for one in laid]
        say(console, _line(laid, parts), "bold")
    if any(one.unit for one in laid):
        say(console, _line(laid, [one.unit for one in laid]))
    say(console, ("-" if console.options.ascii_only else "─") * _width(laid), "dim")
    for row in range(table.rows):
        if groups and (row == 0 or groups[row] != groups[row - 1]):
            say(console, groups[row], "bold")
        cells = [one.folded(row) for one in laid]
        for folded in zip_longest(*cells, fillvalue=""):
            say(console, _line(laid, folded), styles[row] if styles else "")
    note_lines(console, table.shared, table.unseen, *notes)


class _Laid:
    """A column as it is printed."""

    def __init__(self, column: Column, values: Sequence[object]) -> None:
        self.drop = column.drop
        self.left = column.kind in WORDS
        self.cells = [column.show(value) for value in values]
        self.heading = column.title
        words = [*column.title.split(), column.unit]
        self.width = max(map(cell_len, (*self.cells, *words)))
        self.unit = column.unit

    @property
    def title(self) -> list[str]:
        """Its lines."""
        return wrap(self.heading, self.width)

    def folded(self, row: int) -> list[str]:
        """Return the lines of a cell."""
        cell = self.cells[row]
        if cell_len(cell) <= self.width:
            return [cell]
        return wrap(cell, self.width, subsequent_indent="  ", break_on_hyphens=False)

    def pad(self, text: str) -> str:
        """To the column's width."""
        space = " " * (self.width - cell_len(text))
        return text + space if self.left else space + text


def _line(laid: Sequence[_Laid], parts: Sequence[str]) -> str:
    return _GAP.join(one.pad(part) for one, part in zip(laid, parts, strict=True)).rstrip()


def _width(laid: Sequence[_Laid]) -> int:
    return sum(one.width + len(_GAP) for one in laid) - len(_GAP)


def _fitting(laid: list[_Laid], console: Console) -> list[_Laid]:
    """Return those that there is room for; those of one order go together.

    Then the widest words.
    """
    while (excess := _width(laid) - console.width) > 0:
        soonest = min((one.drop for one in laid if one.drop), default=0)
        if not soonest:
            widest = max((one for one in laid if one.left), key=lambda one: one.width, default=None)
            if widest is not None:
                widest.width = min(widest.width, max(widest.width - excess, _NARROWEST))
            break
        laid = [one for one in laid if one.drop != soonest]
    return laid
