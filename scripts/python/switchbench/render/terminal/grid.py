# SPDX-License-Identifier: BSD-3-Clause
"""Tables without frames, and the terminal that they are for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...base import format
from .columns import PrintedColumn
from .rows import PrintedRow

PLAIN_WIDTH = 120  # where there is no terminal to ask


def make_console() -> Console:
    """Standard output: its own width on a terminal, else 120 columns and nothing but text."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=PLAIN_WIDTH, no_color=True)


def make_canvas() -> Console:
    """For a picture of the table: with colours, on no terminal."""
    return Console(width=PLAIN_WIDTH, record=True, file=io.StringIO(), force_terminal=True)


def all_zero(cells: Sequence[str]) -> bool:
    return all(cell in ("0", format.UNKNOWN) for cell in cells)


def listed_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def rich_table(columns: Sequence[PrintedColumn], rows: Sequence[PrintedRow], cells: Any) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(
            *(escape(cells[column][number]) for column in columns),
            style="bold" if row.of_plan else None,
        )
    return table


def plain_table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number == 0 else "right")
    return table
