# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a results directory: each column with its name, kind, unit, meaning and null rule.

`switchbench run` writes the tables, all other commands read them. tables.toml declares the columns;
the page on results, the code book and the checks of tables are made from the declaration. Null
stands for a value that could not be observed, never for 0.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import TypedDict, get_type_hints

from ..base.errors import RunError

FORM: Final = "switchbench-results/1"  # form in each file's metadata

MOST: Final = (1 << 63) - 1
GREATEST: Final = 1e15  # bound of figures, so that products of a few stay finite
LONGEST_TEXT: Final = 1 << 16

Row = dict[str, Any]  # values by key: of a table, a record or a part of the summary

_NEVER = "never"
_DECLARED = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))


@dataclass(frozen=True)
class ResultColumn:
    """Column of a table."""

    name: str
    kind: str  # count, whole, number, text, flag, or counts (a list of counts)
    unit: str
    meaning: str
    null: str = "not observed"  # when the value is null
    key: str = ""  # key in the node's record, if it differs from the name


def _group(name: str) -> list[ResultColumn]:
    """Return the columns of a group; `sent` and `received` are columns of both ends."""
    if name in ("sent", "received"):
        return [
            ResultColumn(
                f"{name}_{one.name}",
                one.kind,
                one.unit,
                one.meaning.format(name),
                one.null,
                one.name,
            )
            for one in _group("both_ends")
        ]
    nulls = _DECLARED["nulls"]
    rows = ([*row[:4], nulls.get(row[4], row[4]), *row[5:]] if row[4:] else row
            for row in _DECLARED["groups"][name])  # fmt: skip
    return [ResultColumn(*row) for row in rows]


EXPORT: list[list[str]] = _DECLARED["export"]["rows"]
TITLES: dict[str, str] = {name: one["title"] for name, one in _DECLARED["tables"].items()}
TABLES: dict[str, tuple[ResultColumn, ...]] = {
    name: tuple(
        column
        for group in one["groups"]
        for column in _group(group)
        if (name, column.name) != ("phases", "network")  # every network has the rows of all nodes
    )
    for name, one in _DECLARED["tables"].items()
}
BY_PHASE = ("flows", "ports", "phases", "histograms", "intervals")
MOMENT = ("trial", "repeat", "phase")


def typed(name: str, keys: Mapping[str, str], known: Mapping[str, object]) -> Any:
    """Return a `TypedDict` with keys whose kinds are annotations over the `known` names."""
    hints = get_type_hints(SimpleNamespace(__annotations__=keys), dict(known), include_extras=True)
    make: Any = TypedDict  # a name of type Any, since type checkers can't know the keys
    return make(name, hints)


@cache
def flow_side(side: str) -> dict[str, str]:
    """Return the column names of one end of a flow, `source` or `destination`, by record key."""
    verb, first = {"source": ("sent", "role"), "destination": ("received", "")}[side]
    own = {column.name: column.name for column in _group(side)}
    return (
        ({first: first} if first else {})
        | {column.key: column.name for column in _group(verb)}
        | own
    )


@cache
def columns_of(table: str) -> dict[str, ResultColumn]:
    """Return the columns of a table by name."""
    return {column.name: column for column in TABLES[table]}


@cache
def arrow_schema(table: str) -> Any:
    """Return a table's Arrow schema; its fields carry unit, meaning and null rule."""
    import pyarrow as pa

    kinds = {
        "count": pa.int64(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "text": pa.string(),
        "flag": pa.bool_(),
        "counts": pa.list_(pa.int64()),
    }
    fields = [
        pa.field(
            column.name,
            kinds[column.kind],
            nullable=column.null != _NEVER,
            metadata={"unit": column.unit, "meaning": column.meaning, "null": column.null},
        )
        for column in TABLES[table]
    ]
    return pa.schema(fields, metadata={"form": FORM, "table": table})


def record_batch(table: str, rows: Sequence[Row]) -> Any:
    """Return rows of a table as an Arrow record batch; a missing key is null."""
    import pyarrow as pa

    schema = arrow_schema(table)
    known = set().union(*rows)
    try:
        arrays = [
            pa.array([row.get(field.name) for row in rows], field.type)
            if field.name in known
            else pa.nulls(len(rows), field.type)
            for field in schema
        ]
    except (pa.ArrowException, OverflowError) as error:
        raise RunError(f"{table}: a number does not fit its column: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
