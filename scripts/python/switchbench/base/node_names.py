# SPDX-License-Identifier: BSD-3-Clause
"""How many names a ClusterShell node set stands for, before anybody makes them.

`NodeSet` and `RangeSet` make every name of a range as soon as they read it, so that a slip of the
finger (`n[1-999999999]`) would take all memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from .words import shown

NAMES_MOST = 65_536
"""Names in one text: a network has no more ranks."""

_BRACKETS_MOST = 8

_OPERATOR = re.compile(r"[,!&^](?![^\[]*\])")  # of a set, outside of brackets
_BRACKETS = re.compile(r"\[([^\]]*)\]")


HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def refuse_strange(names: Iterable[str]) -> None:
    """Raise ValueError for a name that no host has.

    Names are words of command lines (ssh, salloc, ip) and are shown on terminals.
    """
    for name in names:
        if not HOST.fullmatch(name):
            raise ValueError(
                f"{shown(name)} can't be a host's name: letters, digits, '.', '_' and '-', with a "
                "letter or digit first"
            )


class TooManyError(ValueError):
    """A text stands for more names than there can be."""


def refuse_many(names: str, most: int = NAMES_MOST) -> None:
    """TooManyError for a node set of more names; what is no node set is left to its reader.

    What a set takes away (`!`, `&`) counts too: it would be made as well.
    """
    parts = _OPERATOR.split(names)
    if max(part.count("[") for part in parts) > _BRACKETS_MOST:
        raise TooManyError(f"{_shown(names)} has more than {_BRACKETS_MOST} brackets in one name")
    if sum(math.prod(map(count, _BRACKETS.findall(part))) for part in parts) > most:
        raise TooManyError(f"{_shown(names)} stands for more than {most} names, which is the most")


def _shown(names: str) -> str:
    return f'"{names}"' if len(names) <= 60 else f'"{names[:57]}..."'


def padded(names: str) -> str:
    """Return a node set with each range's numbers in one width, as ClusterShell reads them.

    Slurm, pdsh and Flux write `node[08-101]` for node08 to node99, node100 and node101. In
    `node[005,4]` Flux means node004 and Slurm node4: ValueError says so.
    """
    return _BRACKETS.sub(lambda found: f"[{_same_width(found[1])}]", names)


def _same_width(ranges: str) -> str:
    spans, width = [], 0
    for span in ranges.split(","):
        bounds, slash, step = span.partition("/")
        first, dash, last = bounds.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return ranges  # its reader says what is wrong
        if len(first) < width:
            raise ValueError(
                f'"[{ranges}]" has numbers of several widths, which Slurm and Flux read in two '
                "ways: write all of one width"
            )
        if first.startswith("0") and len(first) > 1:
            width = width or len(first)
        while dash and first.startswith("0") and len(first) < len(last) and not slash:
            spans.append(f"{first}-{'9' * len(first)}")
            first = f"1{'0' * len(first)}"
        spans.append(f"{first}{dash}{last}{slash}{step}")
    return ",".join(spans)


def count(ranges: str) -> int:
    """Return the numbers of `1-3,7` or `1-16/5`, those that stand there twice counted twice."""
    return sum(map(_span, ranges.split(",")))


def _span(text: str) -> int:
    """As RangeSet reads it; 1 of what it refuses."""
    bounds, _, step = text.partition("/")
    first, dash, last = bounds.partition("-")
    try:
        return max(1, (int(last) - int(first)) // max(1, int(step or 1)) + 1) if dash else 1
    except ValueError:
        return 1
