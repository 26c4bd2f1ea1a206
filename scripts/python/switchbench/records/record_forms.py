# SPDX-License-Identifier: BSD-3-Clause
"""The form of each type of record (doc/developer/node-protocol.md, "Records"), and its parser.

record_forms.toml declares the forms.

A file of records may be damaged or forged, and a node may belong to another run. Checked records
have the types that other modules rely on: counts are integers below 2^63, figures are finite, text
is safe for a terminal. Unknown keys and types of records come from a newer version, and pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from ..base.errors import ConfigurationError, printable
from .schema import GREATEST, MOST, Row, columns_of, flow_side, typed

Record = Row  # record in one of the declared forms

LONGEST_LINE = 1 << 16  # bytes; nodes write 1,000 at most, imported figures some more
REPEATS = 1 << 16

_Count = Annotated[int, Field(ge=0, le=MOST)]
_Figure = Annotated[float, Field(ge=-GREATEST, le=GREATEST)]
_Name = Annotated[str, Field(max_length=256)]
# `index:count` of the 2,240 buckets of rows.py, and `displacement:frames`.
_BUCKET = r"(?:\d{1,3}|1\d{3}|2[01]\d{2}|22[0-3]\d):\d{1,18}"
_DISPLACED = r"-?\d{1,2}:\d{1,18}"
_KINDS: Record = {
    "Literal": Literal, "NotRequired": NotRequired, "Count": _Count, "Figure": _Figure,
    "Name": _Name, "Text": Annotated[str, Field(max_length=4096)],
    "Whole": Annotated[int, Field(ge=-MOST, le=MOST)],
    "Number": Annotated[int, Field(ge=0, lt=1 << 31)],  # number of a trial
    "Repeat": Annotated[int, Field(ge=0, lt=REPEATS)],
    "PhaseNumber": Annotated[int, Field(ge=-1, lt=1 << 31)],  # -1: the probe
    "Buckets": Annotated[str, Field(pattern=rf"^(?:{_BUCKET}(?: |$))*$")],
    "Displaced": Annotated[str, Field(pattern=rf"^(?:{_DISPLACED}(?: |$))*$")],
    "Span": Annotated[tuple[_Name, list[_Count]], Field(strict=False)],
    "Rate": Annotated[
        tuple[_Name, _Figure | None, _Figure | None, _Figure | None], Field(strict=False)
    ],
}  # fmt: skip
_OF_COLUMN = {"count": "Count", "whole": "Whole", "number": "Figure", "text": "Text",
              "flag": "bool", "counts": "list[Count]"}  # fmt: skip
_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_RECORD = {"type": "str", "node": "Name"}
TYPES = frozenset(_DECLARED["records"])  # types that this version knows


def _keys(form: Record) -> dict[str, str]:
    """Return the kinds of a form's keys; an optional key may be null."""
    found = _keys(_DECLARED["forms"][form["has"]]) if "has" in form else {}
    table = form.get("columns", "")
    columns = {name: one for name, one in columns_of(table).items() if not one.key} if table else {}
    if table == "flows":
        sides = {**flow_side("source"), **flow_side("destination")}
        columns = {key: columns_of(table)[name] for key, name in sides.items()}
    may = [(key, _OF_COLUMN[one.kind]) for key, one in columns.items() if key not in found]
    may += [(key, kind) for kind, keys in form.get("may", {}).items() for key in keys.split()]
    found |= {key: f"NotRequired[{kind} | None]" for key, kind in may}
    return {**found, **form.get("must", {})}


def _form(keys: Mapping[str, str]) -> Any:
    found = typed("Record", keys, _KINDS)
    found.__pydantic_config__ = ConfigDict(strict=True, extra="allow")
    return found


_KINDS["Computed"] = _form(_keys(_DECLARED["forms"]["Computed"]))


class DamagedRecord(ConfigurationError):
    """Error: a line is no record, or a record has another form.

    The text says why, without a place.
    """


def parse(line: bytes) -> Record:
    """Return the record of a line; DamagedRecord if the line is none."""
    if len(line) > LONGEST_LINE:
        raise DamagedRecord(f"the line has {len(line):,} bytes, more than {LONGEST_LINE:,}")
    try:
        found = from_json(line, allow_inf_nan=False)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise DamagedRecord("the line is no record")
    record: Record = found
    if b"\\" in line or b"\x7f" in line or not line.isascii():
        record = printable(record)
    return checked(record)


def checked(record: Record) -> Record:
    """Return a record checked by its type's form; DamagedRecord if the record has another form."""
    if record["type"] not in TYPES:
        return record
    try:
        found: Record = _adapter(record["type"]).validator.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][:3])
        what = first["msg"]
        if first["type"] == "string_pattern_mismatch":
            what = "takes `number:count number:count ...` within its limits"
        kind = record["type"]
        raise DamagedRecord(
            f"a {kind} record's `{place}` is not what it has to be: {what}"
        ) from None
    return found


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_form(_RECORD | _keys(_DECLARED["records"][kind]) | _RECORD))
