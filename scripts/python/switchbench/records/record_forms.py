# SPDX-License-Identifier: BSD-3-Clause
"""What each type of record holds (doc/developer/node-protocol.md, "Records").

And how a line becomes one.

A file of records may be damaged or made up, and a node may be another's. What is read here has the
types that all others rely on: counts are whole and below 2^63, figures are finite, text shows on a
terminal as what it is. Keys and types of records that are not known here are of a newer version,
and pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from ..base.errors import ConfigurationError, printable
from .schema import ResultColumn, columns_of, flow_side

Record = dict[str, Any]  # as one of the forms below has it

LONGEST_LINE = 1 << 16  # bytes; nodes write 1,000 at the most, imported figures some more
_MOST = (1 << 63) - 1
_GREATEST = 1e15  # of figures: products of a few of them stay finite

Count = Annotated[int, Field(ge=0, le=_MOST)]
Whole = Annotated[int, Field(ge=-_MOST, le=_MOST)]
Number = Annotated[int, Field(ge=0, lt=1 << 31)]  # of a trial
REPEATS = 1 << 16
Repeat = Annotated[int, Field(ge=0, lt=REPEATS)]
Figure = Annotated[float, Field(ge=-_GREATEST, le=_GREATEST)]
Phase = Annotated[int, Field(ge=-1, lt=1 << 31)]  # -1: the probe
Name = Annotated[str, Field(max_length=256)]
Text = Annotated[str, Field(max_length=4096)]

# `index:count` of results.latency's 2,240 buckets, and `displacement:frames`.
_INDEX = r"(?:\d{1,3}|1\d{3}|2[01]\d{2}|22[0-3]\d)"
BUCKETS = rf"^(?:{_INDEX}:\d{{1,18}}(?: |$))*$"
Buckets = Annotated[str, Field(pattern=BUCKETS)]
Displaced = Annotated[str, Field(pattern=r"^(?:-?\d{1,2}:\d{1,18}(?: |$))*$")]

_KINDS: dict[str, Any] = {
    "name": Name,
    "text": Text,
    "count": Count,
    "whole": Whole,
    "number": Figure,
    "flag": bool,
    "counts": list[Count],
}
_TRIAL = {"trial": Number, "repeat": NotRequired[Repeat | None]}
_PHASE = {**_TRIAL, "phase": Phase}
_NETWORK = {**_PHASE, "network": Name}
_ENDS = {"src": Name, "dst": Name}
_Span = Annotated[tuple[Name, list[Count]], Field(strict=False)]
_Rate = Annotated[tuple[Name, Figure | None, Figure | None, Figure | None], Field(strict=False)]


def _form(must: Mapping[str, object], **may: str | Iterable[str]) -> Any:
    """Return the form of a record: keys that it must have, and by kind those that it may have.

    What it may have, it may have as null.
    """
    more = {
        key: NotRequired[_KINDS[kind] | None]
        for kind, keys in may.items()
        for key in (keys.split() if isinstance(keys, str) else keys)
        if key not in must and key != "node"
    }
    return TypedDict("Record", {"type": str, "node": Name, **more, **must})  # type: ignore[operator]


def _by_kind(columns: Iterable[tuple[str, ResultColumn]]) -> dict[str, list[str]]:
    """Return the keys of a record that becomes a row, by the kind of their columns."""
    found: dict[str, list[str]] = {}
    for key, column in columns:
        found.setdefault(column.kind, []).append(key)
    return found


def _row_of(table: str) -> dict[str, list[str]]:
    return _by_kind((name, one) for name, one in columns_of(table).items() if not one.key)


_FLOW = [
    (key, columns_of("flows")[name])
    for side in ("source", "destination")
    for key, name in flow_side(side).items()
]


class _Computed(TypedDict):
    operations: Count
    busy_ns: Count
    piece_p50_ns: Count
    piece_p99_ns: Count
    piece_max_ns: Count


_HISTOGRAM = {"count": "min_ns max_ns overflow lost bound_ns part"}

_FORMS: dict[str, Any] = {
    "hello": _form(
        {"control": Text, "key": Text, "protocol": NotRequired[Whole]},
        text="version host boot worker", count="cpus workers", counts="cores",
    ),
    "port-open": _form(
        {"port": Name, "transport": Name, "network": NotRequired[Name]},
        text="driver mac ipv4 ipv6 offloads congestion rdma link_layer gid",
        count="link_bps line_rate_bps frame_max numa queues mtu gid_index", counts="cores",
        number="core_fps",
    ),
    "ready": _form(
        {}, text="clock clock_reason clock_id", whole="clock_offset_ns wall_clock_offset_ns",
        count="clock_bound_ns",
    ),
    "clock": _form(_PHASE, text="clock", whole="offset_ns shift_ns", count="bound_ns"),
    "flow": _form(
        {
            **_NETWORK, **_ENDS,
            "side": Literal["source", "destination"],
            "role": NotRequired[Literal["generate", "forward", "copy"] | None],
            "measures": NotRequired[dict[Name, Figure] | None],
        },
        **_by_kind(_FLOW),
    ),
    "port": _form({**_NETWORK, "port": Name}, **_row_of("ports")),
    "phase": _form(_PHASE, **_row_of("phases")),
    "histogram": _form(
        {**_NETWORK, **_ENDS, "kind": Name, "count": Count, "sum_ns": Count,
         "buckets": NotRequired[Buckets | None]},
        **_HISTOGRAM,
    ),
    "execution": _form(
        {**_NETWORK, "rank": Name, "repetitions": Count, "batches": Count, "sum_ns": Count,
         "buckets": NotRequired[Buckets | None]},
        count="verified min_ns max_ns part",
    ),
    "interval": _form(
        {**_NETWORK, "dst": Name, "from_ms": Figure, "at_ms": list[Figure], "flows": list[_Span]}
    ),
    "progress": _form(
        {**_PHASE, "ports": NotRequired[list[_Rate] | None]},
        text="step", number="offered_bps delivered_bps",
    ),
    "reorder": _form(
        {**_NETWORK, **_ENDS, "reordered": Count, "extent_sum": Count, "extent_max": Count,
         "three_reordered": Count, "displaced": NotRequired[Displaced | None]}
    ),
    "misdelivered-flow": _form(
        {**_NETWORK, "port": Name, "src": Name | None, "dst": Name | None, "frames": Count}
    ),
    "compute": _form(
        {**_PHASE, "share": Figure, "compute_only": _Computed, "concurrent": _Computed}
    ),
    "trial": _form(_TRIAL, whole="elapsed_ns", text="state"),
    "unreachable": _form({**_TRIAL, **_ENDS}, count="received sent"),
    "event": _form({}, text="kind text", name="port"),
    "error": _form({}, text="text", whole="status"),
    "missing": _form({}, text="missing_node text", count="barrier", whole="status"),
    "bye": _form({}, count="dropped_datagrams dropped_records"),
    "samples": _form({**_NETWORK, "rank": Count, "data": str}),
}  # fmt: skip
TYPES = frozenset(_FORMS)  # that this version knows
for _one in (*_FORMS.values(), _Computed):
    _one.__pydantic_config__ = ConfigDict(strict=True, extra="allow")


class DamagedRecord(ConfigurationError):
    """A line is no record, or a record is not what it says: why, without a place."""


def parse(line: bytes) -> Record:
    """Return the record of a line; DamagedRecord where it is none."""
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
    """Return a record as its type's form has it; DamagedRecord where it is not."""
    form = _FORMS.get(record["type"])
    if form is None:
        return record
    try:
        found: Record = _adapter(record["type"]).validator.validate_python(record)
    except ValidationError as error:
        raise DamagedRecord(_sentence(record["type"], error)) from None
    return found


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_FORMS[kind])


def _sentence(kind: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"][:3])
    what = first["msg"]
    if first["type"] == "string_pattern_mismatch":
        what = "takes `number:count number:count ...` within its limits"
    return f"a {kind} record's `{place}` is not what it has to be: {what}"
