# SPDX-License-Identifier: BSD-3-Clause
"""Records of one type as columns: a run of 1,024 ranks has millions of them.

Figures and counts are floats, NaN where a record does not say; counts are exact below 2^53. Text is
in arrays of objects, None where a record does not say. An `interval` record is several rows: one
for each span of each of its flows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .record_forms import Record, schema_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def or_zero(values: Floats) -> Floats:
    """0 where nothing was observed."""
    return np.where(np.isnan(values), 0.0, values)


# Types of which there are many: one for each flow, port or node of a phase.
KINDS = ("flow", "port", "phase", "histogram", "interval")
INTERVAL = "interval"
_SPAN = {"src": "string", "from_ms": "number", "to_ms": "number", "payload_bytes": "number"}
# Of the measures that transports add to `flow` records, those that something is computed with.
MEASURES = (
    "retransmitted_segments", "mss_bytes", "segment_overhead_bytes",
    "out_of_order_segments", "receive_buffer_bytes",
    "depth", "signal_every", "inline_bytes", "path_mtu_bytes", "gid_index", "queue_pairs",
    "reused_queue_pairs", "queue_pair_bytes", "setup_us", "credit_waits",
    "numbers", "gap_ns", "learning_late", "late_frames",
)  # fmt: skip


class PhaseKey(NamedTuple):
    """One phase of one trial in one network."""

    trial: int
    repeat: int
    network: str
    phase: int


def key_of(record: Record) -> PhaseKey:
    """The phase that a record belongs to; a type without networks has one without name."""
    network = record.get("network", "")
    return PhaseKey(record["trial"], record.get("repeat") or 0, network, record["phase"])


@cache
def columns_of(kind: str) -> dict[str, str]:
    """The keys that are read of a type's records, and what they are: number, string, boolean."""
    found: dict[str, str] = {}
    for key, form in schema_of(kind)["properties"].items():
        said = plain(form)["type"]
        if key == "measures":
            found |= dict.fromkeys(MEASURES, "number")
        elif key != "type" and said not in ("array", "object"):
            found[key] = "number" if said == "integer" else said
    return found | (_SPAN if kind == INTERVAL else {})


def plain(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of a value that is not null."""
    found: Mapping[str, Any] = form["anyOf"][0] if "anyOf" in form else form
    return found


@dataclass(frozen=True)
class Rows:
    """Records of one type: a column for each key that is read, and their lines of the file."""

    lines: Numbers
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.lines)

    @classmethod
    def of(cls, kind: str, records: Sequence[tuple[int, Record]]) -> Rows:
        """Of single records, each with its line."""
        flat = [(line, row) for line, record in records for row in _flat(kind, record)]
        lines = np.array([line for line, _ in flat], dtype=np.int64)
        return cls(
            lines,
            {
                key: column_of([row.get(key) for _, row in flat], what)
                for key, what in columns_of(kind).items()
            },
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All of them, in the order of their lines."""
        if len(parts) == 1:
            return parts[0]
        lines = np.concatenate([part.lines for part in parts])
        order = np.argsort(lines, kind="stable")
        return cls(
            lines[order],
            {
                key: np.concatenate([part.columns[key] for part in parts])[order]
                for key in parts[0].columns
            },
        )

    def floats(self, key: str) -> Floats:
        """A column of figures or counts."""
        column: Floats = self.columns[key]
        return column

    def texts(self, key: str) -> list[Any]:
        """A column of text or booleans."""
        found: list[Any] = self.columns[key].tolist()
        return found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The ends of the flows that they are of."""
        return zip(self.texts("src"), self.texts("dst"), strict=True)

    def taken(self, which: NDArray[Any] | slice) -> Rows:
        """Some of them."""
        return Rows(self.lines[which], {k: column[which] for k, column in self.columns.items()})

    def of_keys(self, *keys: str) -> Rows:
        """Some of the columns."""
        return Rows(self.lines, {key: self.columns[key] for key in keys})

    def by_phase(self) -> Iterator[tuple[PhaseKey, Rows]]:
        """The rows of each phase in each network; a type without networks has one without name."""
        keys = [
            self.columns["trial"],
            or_zero(self.columns["repeat"]),
            self.columns.get("network", np.full(len(self), "", dtype=object)),
            self.columns["phase"],
        ]
        begins = np.ones(len(self), dtype=bool)  # another key than the row before
        begins[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        starts = np.flatnonzero(begins).tolist()
        found: dict[PhaseKey, list[slice]] = {}
        for start, end in zip(starts, [*starts, len(self)][1:], strict=True):
            trial, repeat, network, phase = (key[start] for key in keys)
            key_here = PhaseKey(int(trial), int(repeat), network, int(phase))
            found.setdefault(key_here, []).append(slice(start, end))
        for key, slices in found.items():
            if len(slices) == 1:
                yield key, self.taken(slices[0])
            else:
                yield key, self.taken(np.concatenate([np.r_[some] for some in slices]))

    def records(self, kind: str) -> Iterator[Record]:
        """Each as a record, as far as it was read."""
        said = {key: values for key, column in self.columns.items() if (values := _said(column))}
        for row in zip(*said.values(), strict=True):
            record = {"type": kind}
            for key, value in zip(said, row, strict=True):
                if value is not None:
                    record[key] = value
            yield record


def column_of(values: Sequence[Any], what: str) -> NDArray[Any]:
    """The column of some values, None where there is none."""
    if what == "number":
        return np.array(values, dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _said(column: NDArray[Any]) -> list[Any]:
    """What a column says, whole figures as `int`; [] where it says nothing at all."""
    values: list[Any] = column.tolist()
    if column.dtype == object:
        return values
    if np.isnan(column).all():
        return []
    return [
        None if value != value else int(value) if value.is_integer() else value for value in values
    ]


def _flat(kind: str, record: Record) -> Iterator[Record]:
    """What a record says, a row each."""
    if kind != INTERVAL:
        yield record | (record.get("measures") or {}) if kind == "flow" else record
        return
    ends = record["at_ms"]
    begins = [record["from_ms"], *ends]
    for src, counts in record["flows"]:
        for begin, end, count in zip(begins, ends, counts, strict=False):
            if end > begin:
                span = {"src": src, "from_ms": begin, "to_ms": end, "payload_bytes": count}
                yield record | span
