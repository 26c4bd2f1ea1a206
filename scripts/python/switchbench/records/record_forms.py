# SPDX-License-Identifier: BSD-3-Clause
"""What each type of record holds (doc/reference/node-protocol.md, "Records").

And how a line becomes one.

A file of records may be damaged or made up, and a node may be another's. What is read here has the
types that all others rely on: counts are whole and below 2^63, figures are finite, text shows on a
terminal as what it is. Keys and types of records that are not known here are of a newer version,
and pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from ..base.errors import ConfigurationError, printable
from .schema import columns_of, flow_side

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

MaybeCount = Count | None
MaybeWhole = Whole | None
MaybeFigure = Figure | None
MaybeText = Text | None


class NodeRecord(TypedDict):
    """What any record of a node has."""

    type: str
    node: Name


class _OfTrial(NodeRecord):
    trial: Number
    repeat: NotRequired[Repeat | None]


class _OfPhase(_OfTrial):
    phase: Phase


class _OfNetwork(_OfPhase):
    network: Name


class HelloRecord(NodeRecord):
    """A node that has started."""

    protocol: NotRequired[Whole]
    version: NotRequired[MaybeText]
    host: NotRequired[MaybeText]
    boot: NotRequired[MaybeText]
    control: Text
    key: Text
    cpus: NotRequired[MaybeCount]
    workers: NotRequired[MaybeCount]
    worker: NotRequired[MaybeText]
    cores: NotRequired[list[Count] | None]


class PortOpenRecord(NodeRecord):
    """A port that is open."""

    port: Name
    transport: Name
    network: NotRequired[Name]
    driver: NotRequired[MaybeText]
    mac: NotRequired[MaybeText]
    ipv4: NotRequired[MaybeText]
    ipv6: NotRequired[MaybeText]
    link_bps: NotRequired[MaybeCount]
    line_rate_bps: NotRequired[MaybeCount]
    frame_max: NotRequired[MaybeCount]
    numa: NotRequired[MaybeCount]
    queues: NotRequired[MaybeCount]
    cores: NotRequired[list[Count] | None]
    core_fps: NotRequired[MaybeFigure]
    offloads: NotRequired[MaybeText]
    mtu: NotRequired[MaybeCount]
    congestion: NotRequired[MaybeText]
    rdma: NotRequired[MaybeText]
    link_layer: NotRequired[MaybeText]
    gid: NotRequired[MaybeText]
    gid_index: NotRequired[MaybeCount]


class ReadyRecord(NodeRecord):
    """A node that is ready."""

    clock: NotRequired[MaybeText]
    clock_reason: NotRequired[MaybeText]
    clock_id: NotRequired[MaybeText]
    clock_offset_ns: NotRequired[MaybeWhole]
    clock_bound_ns: NotRequired[MaybeCount]
    wall_clock_offset_ns: NotRequired[MaybeWhole]


class ClockRecord(_OfPhase):
    """A clock's offset, learned later."""

    clock: NotRequired[MaybeText]
    offset_ns: NotRequired[MaybeWhole]
    shift_ns: NotRequired[MaybeWhole]
    bound_ns: NotRequired[MaybeCount]


class TimesRecord(NodeRecord):
    """A histogram, or a part of one."""

    kind: Name
    count: Count
    sum_ns: Count
    min_ns: NotRequired[MaybeCount]
    max_ns: NotRequired[MaybeCount]
    overflow: NotRequired[MaybeCount]
    lost: NotRequired[MaybeCount]
    bound_ns: NotRequired[MaybeCount]
    part: NotRequired[MaybeCount]
    buckets: NotRequired[Buckets | None]


class FlowTimesRecord(_OfNetwork, TimesRecord):
    """Times of a flow."""

    src: Name
    dst: Name


class ExecutionRecord(_OfNetwork):
    """Repetitions of a rank."""

    rank: Name
    repetitions: Count
    batches: Count
    verified: NotRequired[MaybeCount]
    sum_ns: Count
    min_ns: NotRequired[MaybeCount]
    max_ns: NotRequired[MaybeCount]
    part: NotRequired[MaybeCount]
    buckets: NotRequired[Buckets | None]


_Span = Annotated[tuple[Name, list[Count]], Field(strict=False)]
_Rate = Annotated[tuple[Name, Figure | None, Figure | None, Figure | None], Field(strict=False)]


class IntervalRecord(_OfNetwork):
    """Interval results of flows."""

    dst: Name
    from_ms: Figure
    at_ms: list[Figure]
    flows: list[_Span]


class ProgressRecord(_OfPhase):
    """Payload so far, for the live screen."""

    step: NotRequired[MaybeText]
    offered_bps: NotRequired[MaybeFigure]
    delivered_bps: NotRequired[MaybeFigure]
    ports: NotRequired[list[_Rate] | None]


class ReorderRecord(_OfNetwork):
    """Order of a flow's frames."""

    src: Name
    dst: Name
    reordered: Count
    extent_sum: Count
    extent_max: Count
    three_reordered: Count
    displaced: NotRequired[Displaced | None]


class StrayRecord(_OfNetwork):
    """Frames of no flow of the phase."""

    port: Name
    src: Name | None
    dst: Name | None
    frames: Count


class _Computed(TypedDict):
    operations: Count
    busy_ns: Count
    piece_p50_ns: Count
    piece_p99_ns: Count
    piece_max_ns: Count


class ComputeRecord(_OfPhase):
    """Concurrent computation of a node."""

    share: Figure
    compute_only: _Computed
    concurrent: _Computed


class TrialRecord(_OfTrial):
    """A node's part in a trial."""

    elapsed_ns: NotRequired[MaybeWhole]
    state: NotRequired[MaybeText]


class UnreachableRecord(_OfTrial):
    """Flows that the connectivity check found broken."""

    src: Name
    dst: Name
    received: NotRequired[MaybeCount]
    sent: NotRequired[MaybeCount]


class EventRecord(NodeRecord):
    """An event at a node."""

    kind: NotRequired[MaybeText]
    port: NotRequired[Name | None]
    text: NotRequired[MaybeText]


class ErrorRecord(NodeRecord):
    """Why a node could not go on."""

    text: NotRequired[MaybeText]
    status: NotRequired[Whole | None]


class MissingRecord(NodeRecord):
    """Nodes that others miss."""

    missing_node: NotRequired[MaybeText]
    barrier: NotRequired[MaybeCount]
    text: NotRequired[MaybeText]
    status: NotRequired[Whole | None]


class ByeRecord(NodeRecord):
    """A node that has ended."""

    dropped_datagrams: NotRequired[MaybeCount]
    dropped_records: NotRequired[MaybeCount]


class SamplesRecord(_OfNetwork):
    """Single times of messages."""

    rank: Count
    data: str


_KINDS: dict[str, Any] = {
    "count": MaybeCount,
    "whole": MaybeWhole,
    "number": MaybeFigure,
    "text": MaybeText,
    "flag": bool | None,
}


def _row_form(name: str, base: Any, columns: Mapping[str, str], **more: Any) -> Any:
    """Return the form of a record that becomes a row: each key is of the kind of its column."""
    keys = {
        key: NotRequired[_KINDS[kind]]
        for key, kind in columns.items()
        if key not in base.__annotations__
    }
    return TypedDict(name, {**base.__annotations__, **keys, **more})  # type: ignore[operator]


def _kinds(table: str, *sides: str) -> dict[str, str]:
    """Return the kinds of a table's columns by the keys of records."""
    known = columns_of(table)
    if sides:
        return {key: known[name].kind for side in sides for key, name in flow_side(side).items()}
    return {name: column.kind for name, column in known.items() if not column.key}


_FORMS: dict[str, Any] = {
    "hello": HelloRecord,
    "port-open": PortOpenRecord,
    "ready": ReadyRecord,
    "clock": ClockRecord,
    "flow": _row_form(
        "FlowRecord",
        _OfNetwork,
        _kinds("flows", "source", "destination"),
        side=Literal["source", "destination"],
        src=Name,
        dst=Name,
        role=NotRequired[Literal["generate", "forward", "copy"] | None],
        measures=NotRequired[dict[Name, Figure] | None],
    ),
    "port": _row_form("PortRecord", _OfNetwork, _kinds("ports"), port=Name),
    "histogram": FlowTimesRecord,
    "execution": ExecutionRecord,
    "interval": IntervalRecord,
    "progress": ProgressRecord,
    "reorder": ReorderRecord,
    "misdelivered-flow": StrayRecord,
    "phase": _row_form("PhaseRecord", _OfPhase, _kinds("phases")),
    "compute": ComputeRecord,
    "trial": TrialRecord,
    "unreachable": UnreachableRecord,
    "event": EventRecord,
    "error": ErrorRecord,
    "missing": MissingRecord,
    "bye": ByeRecord,
    "samples": SamplesRecord,
}
TYPES = frozenset(_FORMS)  # that this version knows
for _form in (*_FORMS.values(), _Computed):
    _form.__pydantic_config__ = ConfigDict(strict=True, extra="allow")


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
