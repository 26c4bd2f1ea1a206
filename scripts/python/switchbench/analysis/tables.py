# SPDX-License-Identifier: BSD-3-Clause
"""Columns of tables of records, as arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.latency import bucket_bounds
from ..records.record_forms import BUCKETS, REPEATS, Record

Floats = NDArray[np.float64]

Ints = NDArray[np.int32]


class PlanKey(NamedTuple):
    """One plan in one network, as the summary's plans say it."""

    trial: int
    repeat: int
    network: str


def numbers(table: Any, name: str) -> NDArray[np.float64]:
    """A column, NaN where nothing was observed."""
    column: NDArray[np.float64] = table[name].cast("float64", safe=False).to_numpy()
    return column


def equal_to(table: Any, name: str, value: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    found: NDArray[np.bool_] = pc.fill_null(pc.equal(table[name], value), False).to_numpy()
    return found


def plans(table: Any) -> Iterator[tuple[PlanKey, NDArray[np.bool_]]]:
    """The plans that the lines are of, and which lines; probes (phase -1) are of none."""
    trial, repeat, phase = (np.nan_to_num(numbers(table, n)) for n in ("trial", "repeat", "phase"))
    coded = table["network"].combine_chunks().dictionary_encode()
    network = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    names = coded.dictionary.to_pylist()
    codes = (trial.astype(np.int64) << 32) + (repeat.astype(np.int64) << 16) + network
    same = len(codes) > 0 and codes.min() == codes.max()  # as in most batches
    for code in codes[:1].tolist() if same else np.unique(codes).tolist():
        chosen = (codes == code) & (phase >= 0)
        if chosen.any():
            yield PlanKey(code >> 32, code >> 16 & 0xFFFF, names[code & 0xFFFF]), chosen


def arrow(kind: Any) -> Any:
    """An Arrow type: by its name, a list of one, a mapping of several."""
    import pyarrow as pa

    if isinstance(kind, list):
        return pa.list_(arrow(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, arrow(part)) for name, part in kind.items()])
    return getattr(pa, kind)()


def as_written(record: Record) -> bytes:
    """The line of a record as nodes write them: its type comes first, and there are no blanks."""
    line = json.dumps({"type": record["type"]} | record, separators=(",", ":"))
    return line.encode() + b"\n"


_NEEDED = ("trial", "phase", "network", "side", "src", "dst", "kind")

_EXACT = 1 << 53  # whole numbers below it are exact as figures


def is_sound(table: Any) -> bool:
    """Whether Arrow read what a record can hold (results.record_forms): no more is looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        column = table[name]
        if name in _NEEDED and column.null_count:
            return False
        if name == "buckets":
            fits = pc.match_substring_regex(pc.fill_null(column, ""), BUCKETS)
            if not pc.all(fits, min_count=0).as_py():
                return False
        while pa.types.is_list(column.type) or pa.types.is_struct(column.type):
            column = pc.list_flatten(column) if pa.types.is_list(column.type) else _counts(column)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            found = pc.min_max(column)
            least, greatest = found["min"].as_py() or 0, found["max"].as_py() or 0
            most = REPEATS if name == "repeat" else _EXACT
            low = -_EXACT if pa.types.is_floating(column.type) else -(name == "phase")
            if not (low <= least and greatest < most):
                return False
    return True


def _counts(column: Any) -> Any:
    """Of the flows of interval results."""
    import pyarrow.compute as pc

    return pc.struct_field(column, "counts")


def with_mappings(record: Record) -> Record:
    """As as_mappings does it, for one record."""
    if record["type"] != "interval":
        return record
    return record | {"flows": [{"src": src, "counts": counts} for src, counts in record["flows"]]}


def as_mappings(text: bytes) -> bytes:
    """Lines of `interval` records with `["node1:e0", [1, 2]]` as a mapping: Arrow's lists are of
    one type."""
    for old, new in ((b'["', b'{"src":"'), (b'",[', b'","counts":['), (b"]]", b"]}")):
        text = text.replace(old, new)
    return text


def owners(lists: Any) -> NDArray[np.int64]:
    """For each element of an Arrow array of lists: which list it is in."""
    lengths = np.diff(lists.offsets.to_numpy())
    return np.repeat(np.arange(len(lists)), lengths)


def joined(
    wanted: Sequence[Ints], known: Sequence[Ints], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values of the known flows (phase, source, destination) for each that is wanted."""
    most = 1 + max(int(column.max()) for column in (*wanted, *known) if len(column))

    def code(columns: Sequence[Ints]) -> NDArray[np.int64]:
        phase, src, dst = (column.astype(np.int64) for column in columns)
        return (phase * most + src) * most + dst

    codes = code(known)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    asked = code(wanted)
    place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
    found: NDArray[np.float64] = np.where(codes[place] == asked, values[order][place], np.nan)
    return found


def buckets(texts: Sequence[str | None], shifts: Floats | None) -> tuple[NDArray[Any], ...]:
    """All times of some histograms: middles of their buckets in ns, and how many each."""
    known = [text or "" for text in texts]
    numbers = np.array(" ".join(known).replace(":", " ").split(), dtype=np.int64)
    index, counts = numbers[0::2], numbers[1::2]
    values = _middles()[index]
    if shifts is not None:
        values = values + np.repeat(shifts, [text.count(":") for text in known])
    return summed(values, counts)


def summed(values: Floats, counts: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place, weights=counts, minlength=len(distinct)).astype(np.int64)


def _middles() -> Floats:
    bounds = [bucket_bounds(index) for index in range(2240)]
    return np.array([least + width // 2 for least, width in bounds], dtype=np.float64)
