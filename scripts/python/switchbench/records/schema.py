# SPDX-License-Identifier: BSD-3-Clause
"""Forms of tables and records: kind and meaning of each column and key.

`switchbench run` writes the tables of a results directory, all other commands read them.
tables.toml declares their columns. It is the source of the page on results, of the metadata of
columns and of the checks of values. A value that could not be observed is null, never 0.

record_forms.toml declares the nodes' records (doc/developer/node-protocol.md, "Records"). A line
may be damaged or forged, and may come from another run's node. So each record is checked here:
counts are whole and below 2^63, figures are finite, text is safe for a terminal. Unknown keys and
types come from a newer version, and are accepted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict, get_type_hints

from ..base.errors import ConfigurationError, RunError, printable

if TYPE_CHECKING:
    import pyarrow as pa

FORM: Final = "switchbench-results/1"  # name of the form in each file's metadata

MOST: Final = (1 << 63) - 1
GREATEST: Final = 1e15  # max of a figure, so that products stay finite

Row = dict[str, Any]  # values by key: of a table, a record or a part of the summary
PhaseData = Mapping[str, "pa.RecordBatch"]  # batches of an ended phase, by table

_DECLARED = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))


@dataclass(frozen=True)
class ResultColumn:
    """Declaration of a column of a table."""

    name: str
    kind: str  # count, whole, number, text, flag, or counts (a list of counts)
    unit: str
    meaning: str
    null: str = "not observed"  # reason for a null value
    key: str = ""  # key in the node's record, if it differs from the name


def _group(name: str) -> list[ResultColumn]:
    """Return the columns of a group in tables.toml; `sent` and `received` share declarations."""
    if name in ("sent", "received"):
        return [
            replace(one, name=f"{name}_{one.name}", meaning=one.meaning.format(name), key=one.name)
            for one in _group("both_ends")
        ]
    nulls = _DECLARED["nulls"]
    rows = ([*row[:4], nulls.get(row[4], row[4]), *row[5:]] if row[4:] else row
            for row in _DECLARED["groups"][name])  # fmt: skip
    return [ResultColumn(*row) for row in rows]


TITLES: dict[str, str] = {name: one["title"] for name, one in _DECLARED["tables"].items()}
TABLES: dict[str, tuple[ResultColumn, ...]] = {
    name: tuple(
        column
        for group in one["groups"]
        for column in _group(group)
        if (name, column.name) != ("phases", "network")  # rows of `phases` apply to all networks
    )
    for name, one in _DECLARED["tables"].items()
}
BY_PHASE = ("flows", "ports", "phases", "histograms", "intervals")
MOMENT = ("trial", "repeat", "phase")


def typed(name: str, keys: Mapping[str, str], known: Mapping[str, object]) -> Any:
    """Create a `TypedDict` with the given keys; `known`: the types by the names in annotations."""
    hints = get_type_hints(SimpleNamespace(__annotations__=keys), dict(known), include_extras=True)
    make: Any = TypedDict  # a name of type Any, since type checkers cannot know the keys
    return make(name, hints)


@cache
def flow_side(side: str) -> dict[str, str]:
    """Return the columns of one end of a flow by the keys of the flow's record."""
    found = {"role": "role"} if side == "source" else {}
    found |= {one.key: one.name for one in _group("sent" if side == "source" else "received")}
    return found | {one.name: one.name for one in _group(side)}


@cache
def columns_of(table: str) -> dict[str, ResultColumn]:
    """Return a table's columns by name."""
    return {column.name: column for column in TABLES[table]}


@cache
def arrow_schema(table: str) -> Any:
    """Return a table's Arrow schema; its fields have unit, meaning and null rule as metadata."""
    import pyarrow as pa

    def arrow_type(kind: str) -> Any:
        alias = _DECLARED["kinds"][kind][0]
        return pa.list_(pa.int64()) if alias == "list<int64>" else pa.type_for_alias(alias)

    fields = [
        pa.field(
            column.name,
            arrow_type(column.kind),
            nullable=column.null != "never",
            metadata={"unit": column.unit, "meaning": column.meaning, "null": column.null},
        )
        for column in TABLES[table]
    ]
    return pa.schema(fields, metadata={"form": FORM, "table": table})


def record_batch(table: str, rows: Sequence[Row]) -> Any:
    """Convert rows of a table to an Arrow record batch; a missing key becomes null."""
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
        raise RunError(f"table {table}: a number does not fit its column: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- records --------------------------------------------------------------------------------------

Record = Row  # record of a node

LONGEST_LINE = 1 << 16  # bytes; nodes write at most 1,000
REPEATS = 1 << 16

_Count = Annotated[int, Field(ge=0, le=MOST)]
_Figure = Annotated[float, Field(ge=-GREATEST, le=GREATEST)]
_Name = Annotated[str, Field(max_length=256)]
# `index:count` of the 2,240 buckets of rows.py.
_BUCKET = r"(?:\d{1,3}|1\d{3}|2[01]\d{2}|22[0-3]\d):\d{1,18}"
_KINDS: Record = {
    "Literal": Literal, "NotRequired": NotRequired, "Count": _Count, "Figure": _Figure,
    "Name": _Name, "Text": Annotated[str, Field(max_length=4096)],
    "Whole": Annotated[int, Field(ge=-MOST, le=MOST)],
    "Number": Annotated[int, Field(ge=0, lt=1 << 31)],  # number of a trial
    "Repeat": Annotated[int, Field(ge=0, lt=REPEATS)],
    "PhaseNumber": Annotated[int, Field(ge=-1, lt=1 << 31)],  # -1: the connectivity check
    "Buckets": Annotated[str, Field(pattern=rf"^(?:{_BUCKET}(?: |$))*$")],
    "Span": Annotated[tuple[_Name, list[_Count]], Field(strict=False)],
    "Rate": Annotated[
        tuple[_Name, _Figure | None, _Figure | None, _Figure | None], Field(strict=False)
    ],
}  # fmt: skip

_RECORDS = tomllib.loads(Path(__file__).with_name("record_forms.toml").read_text("utf-8"))
_RECORD = {"type": "str", "node": "Name"}
TYPES = frozenset(_RECORDS["records"])  # types of records that this version knows


def _keys(form: Record) -> dict[str, str]:
    """Return the type of each key of a record; optional keys may also be null."""
    found = _keys(_RECORDS["forms"][form["has"]]) if "has" in form else {}
    table = form.get("columns", "")
    columns = {name: one for name, one in columns_of(table).items() if not one.key} if table else {}
    if table == "flows":
        sides = {**flow_side("source"), **flow_side("destination")}
        columns = {key: columns_of(table)[name] for key, name in sides.items()}
    kinds = _DECLARED["kinds"]
    may = [(key, kinds[one.kind][1]) for key, one in columns.items() if key not in found]
    may += [(key, kind) for kind, keys in form.get("may", {}).items() for key in keys.split()]
    found |= {key: f"NotRequired[{kind} | None]" for key, kind in may}
    return {**found, **form.get("must", {})}


class DamagedRecord(ConfigurationError):
    """Error: a line is no record, or a record contradicts its form or its run."""


def parse(line: bytes) -> Record:
    """Parse and check a line as a record; raise DamagedRecord if it is not valid."""
    if len(line) > LONGEST_LINE:
        raise DamagedRecord(
            f"the line has {len(line):,} bytes, but a record has at most {LONGEST_LINE:,}"
        )
    try:
        found = from_json(line, allow_inf_nan=False)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise DamagedRecord("the line is not a record, which is a JSON object with a type")
    record: Record = found
    if b"\\" in line or b"\x7f" in line or not line.isascii():
        record = printable(record)
    return checked(record)


def checked(record: Record) -> Record:
    """Check a record against the form of its type; return the record, or raise DamagedRecord."""
    if record["type"] not in TYPES:
        return record
    try:
        found: Record = _adapter(record["type"]).validator.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][:3])
        what = first["msg"]
        if first["type"] == "string_pattern_mismatch":
            what = "must be `number:count number:count ...`, with numbers in range"
        kind = record["type"]
        raise DamagedRecord(f"a {kind} record's `{place}` is invalid: {what}") from None
    return found


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    form = typed("Record", _RECORD | _keys(_RECORDS["records"][kind]) | _RECORD, _KINDS)
    form.__pydantic_config__ = ConfigDict(strict=True, extra="allow")
    return TypeAdapter(form)
