# SPDX-License-Identifier: BSD-3-Clause
"""Some rows of a table, as columns of numpy: a run of 1,024 ranks has millions of them.

Figures and counts are floats, NaN where they are null; counts are exact below 2^53. Text and flags
are in arrays of objects, None where they are null. A column that is null throughout takes no room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .schema import ResultColumn, columns_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def or_zero(values: Floats) -> Floats:
    """Return the values, 0 where nothing was observed."""
    return np.where(np.isnan(values), 0.0, values)


class PhaseKey(NamedTuple):
    """One phase of one trial in one network."""

    trial: int
    repeat: int
    network: str
    phase: int


@dataclass(frozen=True)
class Rows:
    """Rows of one table."""

    size: int
    columns: Mapping[str, NDArray[Any]]  # those that are not null throughout

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.size

    @classmethod
    def of(cls, table: str, rows: Sequence[Mapping[str, Any]]) -> Rows:
        """Return mappings as rows of a table; a key that is missing is null."""
        known = columns_of(table)
        return cls(
            len(rows),
            {
                name: _column([row.get(name) for row in rows], known[name])
                for name in dict.fromkeys(key for row in rows for key in row if key in known)
            },
        )

    @classmethod
    def from_arrow(cls, data: Any, table: str) -> Rows:
        """Return an Arrow table or record batch as rows of `table`."""
        known = columns_of(table)
        columns = {}
        for name, column in zip(data.schema.names, data.columns, strict=True):
            if column.null_count < len(column) and name in known:
                chunk = column.combine_chunks() if hasattr(column, "combine_chunks") else column
                if hasattr(chunk, "chunks"):
                    chunk = chunk.chunk(0)
                columns[name] = _of_arrow(chunk, known[name].kind)
        return cls(data.num_rows, columns)

    def floats(self, name: str) -> Floats:
        """Return a column of figures or counts."""
        found: Floats | None = self.columns.get(name)
        return np.full(self.size, np.nan) if found is None else found

    def objects(self, name: str) -> NDArray[Any]:
        """Return a column of text or flags."""
        found = self.columns.get(name)
        return np.full(self.size, None, dtype=object) if found is None else found

    def texts(self, name: str) -> list[Any]:
        """Return a column of text or flags as a list."""
        found: list[Any] = self.objects(name).tolist()
        return found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return source and destination of each row."""
        return zip(self.texts("src"), self.texts("dst"), strict=True)

    def taken(self, which: NDArray[Any] | slice) -> Rows:
        """Return some of the rows."""
        if isinstance(which, slice):
            size = len(range(*which.indices(self.size)))
        else:
            size = int(which.sum()) if which.dtype == bool else len(which)
        return Rows(size, {name: column[which] for name, column in self.columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows], table: str) -> Rows:
        """Return the rows of several parts of one table, one after another."""
        if len(parts) == 1:
            return parts[0]
        known = columns_of(table)
        columns = {
            name: np.concatenate(
                [
                    part.floats(name) if known[name].is_number else part.objects(name)
                    for part in parts
                ]
            )
            for name in dict.fromkeys(name for part in parts for name in part.columns)
        }
        return cls(sum(map(len, parts)), columns)

    def by_network(self) -> Iterator[tuple[str, Rows]]:
        """Return the rows of each network, in the order in which networks come."""
        networks = self.objects("network")
        names = dict.fromkeys(networks.tolist())
        for name in names:
            yield name, self if len(names) == 1 else self.taken(np.flatnonzero(networks == name))

    def records(self) -> Iterator[dict[str, Any]]:
        """Return each row as a mapping of what is not null, whole figures as `int`."""
        lists = {name: _listed(column) for name, column in self.columns.items()}
        for row in range(self.size):
            yield {name: one[row] for name, one in lists.items() if one[row] is not None}


NOTHING = Rows(0, {})


def _column(values: Sequence[Any], column: ResultColumn) -> NDArray[Any]:
    if column.is_number:
        return np.array(values, dtype=np.float64)
    made = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        made[row] = np.array(value, dtype=np.int64) if column.kind == "counts" else value
    return made


def _of_arrow(column: Any, kind: str) -> NDArray[Any]:
    """Return an Arrow array in numpy; equal texts are one object, a list is an array."""
    import pyarrow as pa

    found: NDArray[Any]
    if kind == "counts":
        found = np.empty(len(column), dtype=object)
        flat, offsets = column.flatten().to_numpy(), np.cumsum(column.value_lengths().to_numpy())
        found[:] = np.split(flat, offsets[:-1])
    elif kind in ("text", "flag"):
        coded = column.dictionary_encode()
        distinct = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        codes = coded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        found = distinct[codes]
    else:
        found = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _listed(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype == object:
        return values
    return [
        None if value != value else int(value) if value.is_integer() else value for value in values
    ]
