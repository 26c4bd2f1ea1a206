# SPDX-License-Identifier: BSD-3-Clause
"""The terminal that everything is printed on."""

from __future__ import annotations

from rich.console import Console

FILE_WIDTH = 160  # a file or a pipe gets long lines instead of folded ones


def make_console() -> Console:
    """Return standard output: its own width on a terminal, else long lines of text alone."""
    terminal = Console(highlight=False)
    if terminal.is_terminal:
        return terminal
    return Console(width=FILE_WIDTH, no_color=True, highlight=False)
