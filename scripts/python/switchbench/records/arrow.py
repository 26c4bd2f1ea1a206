# SPDX-License-Identifier: BSD-3-Clause
"""Lines of records of one type, read by Arrow at once where each of them is as its form has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from .record_forms import LONGEST_LINE, schema_of
from .rows import INTERVAL, MEASURES, Floats, Numbers, Rows, columns_of, plain

_TYPES = {"integer": pa.int64(), "number": pa.float64(), "string": pa.string()}
_BLOCK = 1 << 26  # bytes, more than any batch: one chunk a column


def rows_of(
    kind: str, numbers: Sequence[int], lines: Sequence[bytes], keys: Collection[str] | None
) -> Rows | None:
    """The rows of lines, whose numbers are given; None: they have to be looked at one by one.
    `keys`: the columns that are wanted; None: all."""
    text = b"\n".join(lines)
    longest = max(map(len, lines))
    if longest > LONGEST_LINE or b"\\" in text or b"\x7f" in text or not text.isascii():
        return None
    some = None if keys is None or kind == INTERVAL else frozenset(keys)
    measured = text.count(b'"measures"') != text.count(b'"measures":{}')  # by any of them
    schema = _schema(kind, some, measured)
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = pa.json.read_json(
            pa.BufferReader(_with_mappings(text) if kind == INTERVAL else text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=options,
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    if len(table) != len(lines) or not _is_sound(kind, table):
        return None
    at = np.array(numbers, dtype=np.int64)
    if kind == INTERVAL:
        return _spans(at, table)
    columns = {
        key: _column(table, key, what)
        for key, what in columns_of(kind).items()
        if some is None or key in some
    }
    return Rows(at, columns)


@cache
def _schema(kind: str, keys: frozenset[str] | None, measured: bool) -> pa.Schema:
    fields = []
    measures = [name for name in MEASURES if measured and (keys is None or name in keys)]
    for key, form in schema_of(kind)["properties"].items():
        said = plain(form)["type"]
        if key == "measures":
            if not measures:
                continue
            of = pa.struct([(name, pa.float64()) for name in measures])
        elif keys is not None and key not in keys and key != "type":
            continue
        elif key == "at_ms":
            of = pa.list_(pa.float64())
        elif key == "flows":
            of = pa.list_(pa.struct([("src", pa.string()), ("counts", pa.list_(pa.int64()))]))
        else:
            of = pa.bool_() if said == "boolean" else _TYPES[said]
        fields.append((key, of))
    return pa.schema(fields)


# --- is it as the form has it? -------------------------------------------------------------------


def _is_sound(kind: str, table: pa.Table) -> bool:
    schema = schema_of(kind)
    if not pc.all(pc.equal(table["type"], kind)).as_py():
        return False
    for key in table.column_names:
        form, column = schema["properties"][key], table[key].chunk(0)
        if key in schema["required"] and column.null_count:
            return False
        if column.null_count < len(column) and not _fits(column, plain(form)):
            return False
    return True


def _fits(column: Any, form: Mapping[str, Any]) -> bool:
    """Whether an array has only what its form allows."""
    if pa.types.is_struct(column.type):
        inner = form["additionalProperties"]
        return all(_fits(part, inner) for part in column.flatten() if part.null_count < len(part))
    if pa.types.is_list(column.type):
        if column.null_count or column.flatten().null_count:
            return False
        return _fits_list(column.flatten(), form["items"])
    if pa.types.is_string(column.type):
        if "enum" in form:
            return bool(pc.all(pc.is_in(column, pa.array(form["enum"]), skip_nulls=True)).as_py())
        if "pattern" in form:
            return bool(pc.all(pc.match_substring_regex(column, form["pattern"])).as_py())
        longest: int = pc.max(pc.binary_length(column)).as_py()
        return longest <= int(form.get("maxLength", LONGEST_LINE))
    if pa.types.is_boolean(column.type):
        return True
    found = pc.min_max(column)
    most = form["maximum"] if "maximum" in form else form["exclusiveMaximum"] - 1
    low, high = found["min"].as_py(), found["max"].as_py()
    return bool(form["minimum"] <= low and high <= most)


def _fits_list(values: Any, form: Mapping[str, Any]) -> bool:
    """The elements of lists: figures, or the flows of intervals with their counts."""
    if not len(values):
        return True
    if not pa.types.is_struct(values.type):
        return _fits(values, form)
    src, counts = values.flatten()
    name, numbers = form["prefixItems"]
    return not src.null_count and _fits(src, name) and _fits(counts, numbers)


# --- columns -------------------------------------------------------------------------------------


def _column(table: pa.Table, key: str, what: str) -> NDArray[Any]:
    if key in MEASURES:
        if "measures" not in table.column_names:
            return np.full(len(table), np.nan)
        return _figures(pc.struct_field(table["measures"].chunk(0), key))
    column = table[key].chunk(0)
    return _figures(column) if what == "number" else _objects(column)


def _figures(column: Any) -> Floats:
    """NaN where nothing was observed."""
    found: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _objects(column: Any) -> NDArray[Any]:
    """Equal texts are one object."""
    coded = column.dictionary_encode()
    distinct = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    codes = coded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
    found: NDArray[Any] = distinct[codes]
    return found


# --- intervals -----------------------------------------------------------------------------------


def _with_mappings(text: bytes) -> bytes:
    """`["node1:e0",[1,2]]` as a mapping: Arrow's lists are of one type. Lines in another layout are
    no JSON after that, or not of the form."""
    for old, new in ((b'["', b'{"src":"'), (b'",[', b'","counts":['), (b"]]", b"]}")):
        text = text.replace(old, new)
    return text


def _spans(at: Numbers, table: pa.Table) -> Rows:
    """A row for each span; what has no mark is left out."""
    flows = table["flows"].chunk(0)
    counts = flows.flatten().field("counts")
    record = _owners(flows)  # of each flow
    flow = _owners(counts)  # of each span
    place = np.arange(len(flow)) - counts.offsets.to_numpy()[flow]  # of a span in its flow
    marks = table["at_ms"].chunk(0)
    first, end = (marks.offsets.to_numpy()[record[flow] + more] for more in (0, 1))
    at_ms = np.append(_figures(marks.flatten()), np.nan)
    mark = np.where(first + place < end, first + place, len(at_ms) - 1)
    begin = _figures(table["from_ms"].chunk(0))[record[flow]]
    from_ms = np.where(place > 0, at_ms[np.maximum(mark - 1, 0)], begin)
    of_record = {
        key: _column(table, key, what)[record[flow]]
        for key, what in columns_of(INTERVAL).items()
        if key in table.column_names and key not in ("from_ms", "src")
    }
    rows = Rows(
        at[record[flow]],
        of_record
        | {
            "src": _objects(flows.flatten().field("src"))[flow],
            "from_ms": from_ms,
            "to_ms": at_ms[mark],
            "payload_bytes": _figures(counts.flatten()),
        },
    )
    return rows.taken(at_ms[mark] > from_ms)


def _owners(lists: Any) -> Numbers:
    """For each element of an Arrow array of lists: which list it is in."""
    lengths = np.diff(lists.offsets.to_numpy())
    return np.repeat(np.arange(len(lists)), lengths)
