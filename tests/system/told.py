# SPDX-License-Identifier: BSD-3-Clause
"""What nodes told in a run, as records again (doc/developer/node-protocol.md): of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from switchbench.records.schema import columns_of, flow_side
from switchbench.records.store import Tables

Record = dict[str, Any]
_TABLES = {
    "flow": "flows",
    "reorder": "flows",
    "port": "ports",
    "phase": "phases",
    "clock": "phases",
    "histogram": "histograms",
    "execution": "histograms",
    "interval": "intervals",
}


def records_in(directory: Path, *types: str) -> Iterator[Record]:
    """All records of these types; none: of all types. Those of phases come last."""
    tables = Tables(directory)
    yield from (event for event in tables.events() if not types or event["type"] in types)
    for phase in tables.phases():
        for kind, table in _TABLES.items():
            if not types or kind in types:
                for row in phase.rows(table).records():
                    yield from ({"type": kind} | record for record in _of_row(kind, row))


def _of_row(kind: str, row: Record) -> Iterator[Record]:
    if kind == "flow":
        ends = {name: row[name] for name in ("trial", "repeat", "network", "phase", "src", "dst")}
        for side in ("source", "destination"):
            names = flow_side(side)
            if row[f"{side}_reported"]:
                node = row["src" if side == "source" else "dst"].partition(":")[0]
                yield {"side": side, "node": node, **ends} | {
                    key: row.get(name) for key, name in names.items()
                }
    elif kind == "reorder":
        if "extent_max" in row:
            yield row
    elif kind == "clock":
        names = {column.key: column.name for column in columns_of("phases").values() if column.key}
        yield row | {key: row.get(name) for key, name in names.items()}
    elif (kind == "execution") == (row.get("kind") == "execution"):
        table = _TABLES[kind]
        yield dict.fromkeys(columns_of(table)) | row
