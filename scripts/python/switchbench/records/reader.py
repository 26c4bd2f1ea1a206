# SPDX-License-Identifier: BSD-3-Clause
"""The reader of records.ndjson: a batch of lines at a time, many records of one type as columns.

Arrow reads the lines of a type at once where each of them is as its form has it; else they are read
one by one, and the line that is damaged is named. The layout of the JSON means nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..base.errors import ConfigurationError
from .record_forms import LONGEST_LINE, TYPES, DamagedRecord, Record, parse
from .rows import KINDS, Rows

_FIRST = 1 << 20  # bytes of lines in memory at a time: so many first, ...
_BATCH = 1 << 23  # ... and twice as many each time up to this
# By what a line of a type begins with, as nodes write it. In other layouts a line is parsed first.
_BEGIN = b'{"type":"'
_HEAD = len(_BEGIN) + 5
_KIND_OF = {(_BEGIN + kind.encode() + b'",')[:_HEAD]: kind for kind in TYPES}


@dataclass(frozen=True)
class Batch:
    """What some lines that follow each other say."""

    rows: dict[str, Rows]  # by type, of those that are read as columns
    records: list[tuple[int, Record]]  # all others, in order


class RecordReader:
    """Reads a file of records, once."""

    def __init__(
        self,
        path: Path,
        wanted: Mapping[str, Collection[str]] | None = None,
        on_damage: Callable[[DamagedRecord], None] | None = None,
    ) -> None:
        """`wanted`: the types that are asked for, and of those that are read as columns which;
        None: all. What is not asked for is not checked, either. `on_damage`: takes what is wrong
        with a line, which is left out; None: the file is refused."""
        self.lines = 0  # whole ones so far
        self.cut = False  # the last line has no end: the disk was full, the machine died
        self._path = path
        self._wanted = wanted
        self._on_damage = on_damage

    def batches(self) -> Iterator[Batch]:
        """All of the file; ConfigurationError where it can't be read, or is damaged. A last line
        without its end (the disk was full, the machine died) is left out."""
        try:
            file = self._path.open("rb")
        except OSError as error:
            raise ConfigurationError(f"{self._path}: can't be read: {error.strerror}") from error
        with file, ThreadPoolExecutor(2) as beside:
            reading: deque[Future[Batch]] = deque()  # by Arrow, while another is computed with
            for lines in self._blocks(file):
                reading.append(beside.submit(self._batch, self.lines + 1, lines))
                self.lines += len(lines)
                if len(reading) > 2:
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()

    def _blocks(self, file: BinaryIO) -> Iterator[list[bytes]]:
        """Whole lines without their ends, many at a time; one without an end that is too long is
        one, too."""
        size = _FIRST
        while block := file.read(size):
            size = min(2 * size, _BATCH)
            lines = block.split(b"\n")
            last = lines.pop() + file.readline(_BATCH)  # the block may end within it
            if last.endswith(b"\n"):
                lines.append(last[:-1])
            elif len(last) > LONGEST_LINE:
                lines.append(last)
            else:
                self.cut = bool(last)
            yield lines

    def _batch(self, first: int, lines: Sequence[bytes]) -> Batch:
        numbers_of: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(lines, first):
            numbers_of[_KIND_OF.get(line[:_HEAD], "")].append(number)
        rows: dict[str, list[Rows]] = {}
        single: list[tuple[int, Record]] = []
        for kind, numbers in numbers_of.items():
            if kind and not self._is_wanted(kind):
                continue
            mine = [lines[number - first] for number in numbers]
            found = None
            if kind in KINDS:
                from .arrow import rows_of  # it takes longer to load than all else

                found = rows_of(kind, numbers, mine, self._wanted and self._wanted[kind])
            if found is not None:
                rows[kind] = [found]
            else:
                single += self._parsed(numbers, mine)
        single.sort(key=lambda item: item[0])
        for kind in KINDS:
            if some := [item for item in single if item[1]["type"] == kind]:
                rows.setdefault(kind, []).append(Rows.of(kind, some))
        return Batch(
            {
                kind: Rows.joined(
                    parts
                    if self._wanted is None
                    else [part.of_keys(*self._wanted[kind]) for part in parts]
                )
                for kind, parts in rows.items()
                if self._is_wanted(kind)
            },
            [
                item
                for item in single
                if item[1]["type"] not in KINDS and self._is_wanted(item[1]["type"])
            ],
        )

    def _is_wanted(self, kind: str) -> bool:
        return self._wanted is None or kind in self._wanted

    def _parsed(
        self, numbers: Sequence[int], lines: Sequence[bytes]
    ) -> Iterator[tuple[int, Record]]:
        for number, line in zip(numbers, lines, strict=True):
            try:
                yield number, parse(line)
            except DamagedRecord as error:
                if self._on_damage is None:
                    raise damaged(self._path, number, error) from None
                self._on_damage(error)


def damaged(path: Path, number: int, error: DamagedRecord) -> ConfigurationError:
    """What is wrong with a line, with its place in the file."""
    return ConfigurationError(f"{path}:{error.line or number} is damaged: {error}")


@contextmanager
def taking(path: Path, number: int) -> Iterator[None]:
    """Around what is done with a record: where it is in the file, if it is damaged."""
    try:
        yield
    except DamagedRecord as error:
        raise damaged(path, number, error) from None
