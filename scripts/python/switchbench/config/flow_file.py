# SPDX-License-Identifier: BSD-3-Clause
"""A file of flows: source, destination and, where there is one, share; a line each (CSV)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .sets import Flow, flow

MOST_FLOWS = 500_000  # of a list that the engine's documents hold (engine/document)
_HEADER = ["source", "destination", "share"]


class FlowLine(NamedTuple):
    """One flow of a file, and where it stands."""

    flow: Flow
    place: str


def read_flows(path: Path) -> tuple[FlowLine, ...]:
    """The flows of a file in its order; ValueError with the line of a mistake. A share without a
    unit is percent."""
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
