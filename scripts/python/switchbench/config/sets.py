# SPDX-License-Identifier: BSD-3-Clause
"""Sets of hosts, ports and cores as people write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from ..base.node_names import padded, refuse_many
from ..base.quantities import percentage
from ..base.words import listed, meant, shown

NamedGroups = tuple[tuple[str, ...], ...]
NamedPairs = tuple[tuple[str, str], ...]
Flow = tuple[str | int, str | int, float | None]
"""Source and destination, names or rank numbers; its share in percent, if it has one."""


def several(values: list[Any]) -> list[Any]:
    """Refuse an empty list, and one that says a thing twice."""
    if not values:
        raise ValueError("is an empty list")
    twice = first_double(values)
    if twice is not None:
        raise ValueError(f"duplicate value {shown(twice)}")
    return values


def first_double(values: Iterable[Any]) -> Any:
    """Return the first value that comes a second time, or None."""
    seen = set()
    for value in values:
        key = value if isinstance(value, str | int) else repr(value)
        if key in seen:
            return value
        seen.add(key)
    return None


def word(value: object) -> str:
    """Read a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"found {shown(value)}, but a name is needed")
    return value


def written_order(names: str) -> list[str]:
    """Return the names of a ClusterShell node set in the order written: `n[3,1-2]` is n3, n1, n2.

    NodeSet sorts, but the written order is the physical one; so each comma inside of brackets is
    opened here, and NodeSet reads the ranges. No group is looked up: `@all` is refused.
    """
    refuse_user(names)
    if "@" in names:
        raise ValueError(f"{shown(names)}: node groups (@) are not read here")
    refuse_many(names)
    try:
        found = [
            str(name)
            for piece in _pieces(padded(names))
            for name in NodeSet(piece, resolver=RESOLVER_NOGROUP)
        ]
    except NodeSetException as error:
        raise ValueError(f"{shown(names)} is no node set: {error}") from None
    if not found:
        raise ValueError("names no node")
    return several(found)


def refuse_user(names: str) -> None:
    """Refuse `root@node1`, which would be read as a group of that name."""
    user = _USER.search(names)
    if user:
        raise ValueError(
            f"{shown(user[0])} names a user: write the host alone, and `ssh: {{user: {user[1]}}}` "
            "in the site"
        )


_USER = re.compile(r"(?:^|[\s,])([A-Za-z_][\w.-]*)@[\w.\[-]+")


def _pieces(names: str) -> list[str]:
    """`a[1,3-4]b,c` as `a[1]b`, `a[3-4]b`, `c`: at most one range in each bracket."""
    pieces = []
    for part in _split(names):
        before, bracket, rest = part.partition("[")
        inside, closed, after = rest.partition("]")
        if not bracket or not closed:
            pieces.append(part)
            continue
        for span in inside.split(","):
            pieces += [f"{before}[{span}]{tail}" for tail in (_pieces(after) if after else [""])]
    return pieces


def _split(names: str) -> list[str]:
    """Split at the commas and white space outside of brackets, as host files do."""
    parts, depth = [""], 0
    for letter in names:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth == 0 and (letter == "," or letter.isspace()):
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part]


def _pair(value: object) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"found {shown(value)}, but a pair of two ports or hosts is needed")
    return word(value[0]), word(value[1])


PARTNERS = ("neighbours", "halves", "shift", "inside", "across", "random")


def partners(value: object) -> str | NamedPairs:
    """Read who partners are: a word for it, or pairs of names."""
    if isinstance(value, str):
        if value in PARTNERS:
            return value
        raise ValueError(
            f"found {shown(value)}; valid values are {listed(PARTNERS)}, or a list of pairs"
            f"{meant(value, PARTNERS)}"
        )
    if not isinstance(value, list) or not value:
        raise ValueError(f"found {shown(value)}; valid values are {', '.join(PARTNERS)}, or a list")
    return tuple(_pair(pair) for pair in value)


def flows(value: object) -> str | tuple[Flow, ...]:
    """`[source, destination]` or `[source, destination, 25%]`, each; or a file that lists them."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(
            f"found {shown(value)}, but a list of [source, destination], or a file, is needed"
        )
    return tuple(flow(item) for item in value)


def flow(value: object) -> Flow:
    """Return one of them: names of ports or hosts, or rank numbers.

    The share as percent, or None.
    """
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise ValueError(
            f"found {shown(value)}, but [source, destination] or [source, destination, share] is "
            "needed"
        )
    source, destination = (
        end if isinstance(end, int) and not isinstance(end, bool) else word(end)
        for end in value[:2]
    )
    return source, destination, _share(value[2]) if len(value) == 3 else None


def _share(value: object) -> float:
    percent = percentage(value)
    if percent is None or not 0 < percent <= 100 or percent != round(percent, 7):
        raise ValueError(
            f"found {shown(value)}, but a share is more than 0% and at most 100%, as 12.5%, with 7 "
            "decimals at most"
        )
    return float(percent)


def groups(value: object) -> NamedGroups:
    """Names of groups, node sets or ports; each entry is one group, itself a word or a list."""
    if not isinstance(value, list):
        raise ValueError(f"found {shown(value)}, but a list of groups is needed")
    return tuple(
        tuple(word(item) for item in (entry if isinstance(entry, list) else [entry]))
        for entry in several(value)
    )


def written_partners(value: str | NamedPairs) -> str | list[list[str]]:
    """Return partners as they are written."""
    return value if isinstance(value, str) else [list(pair) for pair in value]


def written_groups(value: NamedGroups) -> list[str | list[str]]:
    """Return groups as they are written."""
    return [group[0] if len(group) == 1 else list(group) for group in value]


CORES_MOST = 1024  # what a node can name (engine/platform/cpu_placement.h)


def cores(value: object) -> tuple[int, ...]:
    """Return a cpuset (`2-5,8`), a list of numbers, or one number; in the order written."""
    words = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, bool | float | dict) or not words:
        raise ValueError(f'found {shown(value)}, but cores are needed, as "2-5" or [2, 3]')
    cores = tuple(core for word in words for core in _core_span(word))
    twice = first_double(cores)
    if twice is not None:
        raise ValueError(f"duplicate core {twice}")
    return cores


def _core_span(word: object) -> range:
    first, dash, last = str(word).strip().partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise ValueError(f'found {shown(word)}, but a core or a span of cores is needed, as "2-5"')
    span = range(int(first), int(last if dash else first) + 1)
    if not span or span[-1] >= CORES_MOST:
        raise ValueError(
            f"found {shown(word)}: a span counts up, and cores are 0 to {CORES_MOST - 1}"
        )
    return span


# --- flow file ------------------------------------------------------------------------------------
# A file of flows: source, destination and, where there is one, share; a line each (CSV).


MOST_FLOWS = 500_000  # of a list that the engine's documents hold (engine/document)
_HEADER = ["source", "destination", "share"]


class FlowLine(NamedTuple):
    """One flow of a file, and where it stands."""

    flow: Flow
    place: str


def read_flows(path: Path) -> tuple[FlowLine, ...]:
    """Return the flows of a file in its order; ValueError with the line of a mistake.

    A share without a unit is percent.
    """
    found: list[FlowLine] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.reader(file), start=1):
                fields = [text.strip() for text in row]
                if not any(fields) or fields[0].startswith("#") or fields == _HEADER[: len(fields)]:
                    continue
                place = f"{path.name}:{line}"
                found.append(FlowLine(_flow(fields, place), place))
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name}:{len(found) + 1}: no text of CSV: {error}") from None
    if not found:
        raise ValueError(f"{path} lists no flow")
    if len(found) > MOST_FLOWS:
        raise ValueError(f"{path} lists {len(found)} flows: {MOST_FLOWS} at most")
    return tuple(found)


def written_flows(values: Iterable[Flow | FlowLine]) -> list[list[str | int]]:
    """Flows as a user writes them in a list."""
    flows = (item.flow if isinstance(item, FlowLine) else item for item in values)
    return [list(ends) if share is None else [*ends, f"{share:.10g}%"] for *ends, share in flows]


def _flow(fields: list[str], place: str) -> Flow:
    ends = [int(text) if text.isdecimal() else text for text in fields[:2]]
    shares = [f"{text}%" if _is_number(text) else text for text in fields[2:] if text]
    try:
        return flow([*ends, *shares])
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()
