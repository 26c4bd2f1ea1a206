# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a results directory on disk.

During a run each phase is appended to Arrow IPC streams (`flows.1.arrows` ...). A truncated stream
can be read up to its last whole batch. At the end of the run the streams become Parquet files
(`flows.parquet` ...). A continued run has both. The metadata of a Parquet file names the number of
the last stream that it includes.

If a run was interrupted, the rows of incomplete phases are dropped, and these phases are measured
again.
"""

from __future__ import annotations

import io
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import from_json, to_json

from ..base.errors import ConfigurationError, RunError, printable
from ..base.model import Run, Trial
from ..base.programs import Later
from .collector import PROBE
from .directory import LineFile, alone, read_plan, write_plan
from .rows import BUCKETS, PhaseRows, Rows, TrialKey
from .schema import (
    BY_PHASE,
    FORM,
    GREATEST,
    LONGEST_LINE,
    MOMENT,
    MOST,
    TABLES,
    PhaseData,
    Record,
    arrow_schema,
    columns_of,
    record_batch,
)

# Imported at first use: the import takes 0.3 s, which would delay a run's first line.
pa, pc, pq = map(Later, ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))

SUPERSEDED = "superseded"  # folder of tables of phases that were measured again

_GROUP = 1 << 16  # rows of a Parquet file per piece
_EVENTS_MOST = 64  # events kept in memory before they are written


def parquet_file(directory: Path, table: str) -> Path:
    """Return the path of a table's Parquet file, which exists after the run has ended."""
    return directory / f"{table}.parquet"


def stream_files(directory: Path, table: str) -> list[tuple[int, Path]]:
    """Return the streams of a table, in order of number: one for each start of the run."""
    found = (
        (int(match[1]), path)
        for path in directory.glob(f"{table}.*.arrows")
        if (match := re.fullmatch(rf"{table}\.(\d+)\.arrows", path.name))
    )
    return sorted(found)


def cut_file(stream: Path) -> Path:
    """Return the path to which a truncated stream is renamed."""
    return stream.with_name(stream.name + ".cut")


def cut_streams(directory: Path) -> list[str]:
    """Return a sentence for each stream that is truncated or damaged."""
    return [
        f"{path.name}: the stream is damaged or was cut off: what stands before that was read, and "
        "the file is kept"
        for path in sorted(directory.glob(cut_file(Path("*.arrows")).name))
    ]


def has_tables(directory: Path) -> bool:
    """Return whether a results directory has any tables."""
    return any(
        parquet_file(directory, table).exists() or stream_files(directory, table)
        for table in TABLES
    )


# --- writing -------------------------------------------------------------------------------------


class _Stream:
    """Arrow stream of one table, to which whole batches are appended."""

    def __init__(self, path: Path, table: str) -> None:
        self.file = LineFile(path)
        self._waiting = io.BytesIO()  # Arrow's output of one batch
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        schema = arrow_schema(table)  # meanings of columns are only in Parquet files
        plain = pa.schema([f.remove_metadata() for f in schema], metadata=schema.metadata)
        self._writer = pa.ipc.new_stream(self._waiting, plain, options=options)

    def append(self, batch: Any) -> None:
        self._writer.write_batch(batch)
        self.file.write(self._waiting.getvalue())
        self._waiting.seek(0)
        self._waiting.truncate()


class TableWriter(AbstractContextManager["TableWriter"]):
    """Writer of a results directory's streams; a table's first row creates its stream."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        known = [_parts_of(parquet_file(directory, table)) for table in TABLES]
        known += [number for table in TABLES for number, _ in stream_files(directory, table)]
        self._number = 1 + max(known, default=0)
        self._streams: dict[str, _Stream] = {}
        self._events: list[Record] = []

    def add_phase(self, tables: PhaseData) -> None:
        """Append the rows of an ended phase, with the table `phases` last; RunError on failure."""
        self.flush()
        for table in sorted(tables, key=lambda name: name == "phases"):
            self._append(table, tables[table])

    def add_event(self, record: Record) -> None:
        """Append an event; it reaches the disk with the next phase at the latest."""
        known = columns_of("events")
        given = {key: value for key, value in record.items() if value is not None}
        row = {key: value for key, value in given.items() if key in known}
        rest = {key: value for key, value in given.items() if key not in known}
        self._events.append(row | ({"details": to_json(rest).decode()} if rest else {}))
        if len(self._events) >= _EVENTS_MOST:
            self.flush()

    def flush(self) -> None:
        """Write the events that are still in memory."""
        events, self._events = self._events, []
        if events:
            self._append("events", record_batch("events", events))

    def __exit__(self, *_: object) -> None:
        """Write the events that are still in memory, and close the files."""
        try:
            self.flush()
        finally:
            for stream in self._streams.values():
                stream.file.close()

    def _append(self, table: str, batch: Any) -> None:
        if table not in self._streams:
            path = self._directory / f"{table}.{self._number}.arrows"
            self._streams[table] = _Stream(path, table)
        self._streams[table].append(batch)


# --- reading -------------------------------------------------------------------------------------


def _parts_of(path: Path) -> int:
    """Return the number of the last stream that a Parquet file includes; 0 without a file."""
    with suppress(OSError, ValueError, pa.ArrowException):
        metadata = pq.read_schema(path).metadata or {}
        return int(metadata.get(b"parts", 0))
    return 0


class TableFile:
    """Reader of one table of a results directory, piece by piece."""

    def __init__(self, directory: Path, table: str, columns: Collection[str] | None = None) -> None:
        """Open a table; `columns`: names of the columns to read, None for all.

        Raise ConfigurationError if a file is not this table, or lacks a column.
        """
        self.table = table
        self.cut: list[Path] = []  # truncated or damaged streams
        schema = arrow_schema(table)
        wanted = [field for field in schema if columns is None or field.name in columns]
        self._schema = pa.schema(wanted, metadata=schema.metadata)
        self._parquet: Any = None
        self._batches: list[Any] = []
        path = parquet_file(directory, table)
        if path.exists():
            self.path = path
            with _reading(path):
                self._parquet = pq.ParquetFile(path)
            _refuse_other_form(path, self._parquet.schema_arrow)
        parts = _parts_of(path)
        for number, stream in stream_files(directory, table):
            self.path = stream
            if number <= parts:
                continue
            with stream.open("rb") as content:
                try:
                    reader = pa.ipc.open_stream(content)  # fails if the stream's head is missing
                    _refuse_other_form(stream, reader.schema)
                    self._batches.extend(reader)  # up to a damaged batch
                    is_whole = not content.read(1)
                except (pa.ArrowException, OSError):
                    is_whole = False
            if not is_whole:
                self.cut.append(stream)

    @property
    def groups(self) -> int:
        """Return the number of pieces of the table."""
        return len(self._batches) + (self._parquet.num_row_groups if self._parquet else 0)

    def __iter__(self) -> Iterator[Any]:
        """Yield the pieces of the table in order, as Arrow tables."""
        return map(self.group, range(self.groups))

    def group(self, number: int, names: Sequence[str] | None = None) -> Any:
        """Return one piece as an Arrow table, after a check of its values."""
        schema = self._schema if names is None else pa.schema(map(self._schema.field, names))
        place = number - (self._parquet.num_row_groups if self._parquet else 0)
        with _reading(self.path):
            if place < 0:
                found = self._parquet.read_row_group(number, columns=schema.names)
            else:
                found = pa.Table.from_batches([self._batches[place]])
            found = found.select(schema.names).cast(schema)
            found.validate(full=True)
        _refuse_values(self.path, found, self.table)
        return found

    def whole(self) -> Any:
        """Return the whole table as one Arrow table."""
        return pa.concat_tables([self._schema.empty_table(), *self])


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert an Arrow error inside the block to a ConfigurationError with one sentence."""
    try:
        yield
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        why = printable(" ".join(str(error).split()))[:120]
        raise ConfigurationError(f"{path} can't be read as a table: {why}") from None


def _refuse_other_form(path: Path, schema: Any) -> None:
    form = (schema.metadata or {}).get(b"form", b"").decode(errors="replace")
    if form != FORM:
        raise ConfigurationError(
            f"{path} is not a table of format {FORM}: the file has format {printable(form)!r}"
        )


def _refuse_values(path: Path, data: Any, table: str) -> None:
    """Raise ConfigurationError for numbers that no node can have written."""
    for name in data.schema.names:
        kind, values = columns_of(table)[name].kind, data[name]
        if kind == "text":
            longest = pc.max(pc.binary_length(values)).as_py() or 0
            if longest > LONGEST_LINE:
                raise ConfigurationError(
                    f"{path}: a text in the column {name} has {longest:,} bytes, which is too long"
                )
        if kind in ("text", "flag"):
            continue
        if kind == "counts":
            values = pc.list_flatten(values)
            if values.null_count:
                raise ConfigurationError(f"{path}: the column {name} has a null in a list")
        if kind == "number" and pc.any(pc.is_nan(values)).as_py():
            raise ConfigurationError(f"{path}: the column {name} has the value nan, not a number")
        low, high = pc.min_max(values).values()
        least = 0 if kind in ("count", "counts") else -(GREATEST if kind == "number" else MOST)
        most = BUCKETS - 1 if name == "bucket" else GREATEST if kind == "number" else MOST
        for value in (low.as_py(), high.as_py()):
            if value is not None and not least <= value <= most:
                raise ConfigurationError(
                    f"{path}: the column {name} has the value {value}, which is out of range"
                )
    if {"bucket", "bucket_count"} <= set(data.schema.names):
        lengths = (pc.list_value_length(data[name]) for name in ("bucket", "bucket_count"))
        if not pc.all(pc.equal(*lengths), min_count=0).as_py():
            raise ConfigurationError(
                f"{path}: a row of a histogram has different numbers of buckets and of counts"
            )


class Tables:
    """Reader of all tables of a results directory, phase by phase."""

    def __init__(
        self,
        directory: Path,
        tables: Collection[str] = BY_PHASE,
        columns: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Open the tables for `phases`; `columns`: names of columns by table, all by default.

        Raise ConfigurationError if a file is not a valid table.
        """
        self.directory = directory
        wanted = columns or {}
        self._files = {name: TableFile(directory, name, wanted.get(name)) for name in tables}

        self._places: dict[tuple[int, int, int], dict[str, list[tuple[int, int, int]]]] = {}
        for name, file in self._files.items():
            for number in range(file.groups):
                data = file.group(number, MOMENT)
                keys = np.stack([data[key].to_numpy() for key in MOMENT])
                changes = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
                bounds = [0, *changes.tolist(), keys.shape[1]] if keys.shape[1] else []
                for start, end in pairwise(bounds):
                    trial, repeat, phase = keys[:, start].tolist()
                    here = self._places.setdefault((trial, repeat, phase), {})
                    here.setdefault(name, []).append((number, start, end))

    def events(self) -> Iterator[Record]:
        """Yield the events in order, as records."""
        file = TableFile(self.directory, "events")
        for data in file:
            for row in Rows.from_arrow(data).records():
                details = row.pop("details", None) or "{}"
                try:
                    found = from_json(details, allow_inf_nan=False)
                except ValueError:
                    found = None
                if not isinstance(found, dict):
                    raise ConfigurationError(
                        f"{file.path}: the details of an event are not JSON: {details[:60]!r}"
                    )
                yield row | printable(found)

    def phases(self) -> Iterator[PhaseRows]:
        """Yield the rows of each phase, ordered by trial, repeat and phase."""
        loaded: dict[str, tuple[int, Rows]] = {}  # by table: number and rows of the last piece read
        for moment in sorted(self._places):
            tables = {}
            for name, places in self._places[moment].items():
                parts = []
                for number, start, end in places:
                    if name not in loaded or loaded[name][0] != number:
                        loaded[name] = number, Rows.from_arrow(self._files[name].group(number))
                    parts.append(loaded[name][1].select(slice(start, end)))
                tables[name] = Rows.joined(parts)
            yield PhaseRows(moment, tables)


# --- the end of a run ----------------------------------------------------------------------------

_Piece = tuple[Path, str, int, Any]  # folder, table, number of the last stream in the rows, rows


def finish(directory: Path, run: Run) -> Run:
    """Convert the tables of an ended run to Parquet; return the run with each phase once.

    A trial of `run.again` replaces the phases that it repeats, if every node completed it; of two
    trials that repeat a phase, the later one counts. Replaced rows go to the tables in
    `superseded`. RunError if the files cannot be written: the streams are then unchanged.
    """
    if not run.again:
        _rewrite(directory, None)
        return run
    ends: defaultdict[int, set[str]] = defaultdict(set)
    for record in Tables(directory, ()).events():
        if record["type"] == "trial" and record.get("state") == "complete":
            ends[record["trial"]].add(record["node"])
    # For each repeated phase the trial and phase that replace it.
    sources = {
        (trial.again, phase): (trial.id, phase)
        for trial in run.again
        if trial.again is not None and len(ends[trial.id]) == len(run.site.processes)
        for phase in trial.chosen or ()
    }
    again = [trial.id for trial in run.again]

    def split(_table: str, data: Any) -> tuple[Any, Any]:
        trial, phase = (
            pc.fill_null(data[name], -1).to_numpy().copy() for name in ("trial", "phase")
        )
        old = np.isin(trial, again)
        for number, own in sources:
            old |= (trial == number) & (phase == own)
        for (target, _), (number, own) in sources.items():
            mine = (trial == number) & (phase == own)
            old &= ~mine
            trial[mine] = target
        place = data.schema.get_field_index("trial")
        column = pa.array(trial, pa.int64(), mask=trial < 0)
        data = data.set_column(place, data.schema.field(place), column)
        return data.filter(pa.array(~old)), data.filter(pa.array(old))

    _rewrite(directory, split)
    done = replace(run, again=(), remeasured=len(sources), superseded=run.again)
    write_plan(directory, done)
    return done


def join(directory: Path, parts: Sequence[tuple[Path, Callable[[str, Any], Any]]]) -> None:
    """Join the tables of several results directories in one directory, all or none.

    Parameters
    ----------
    directory
        Directory for the joined tables; they replace its existing tables.
    parts
        Directories to join, each with a function that adapts a table's rows to the joined run.
    """
    _write(
        directory,
        (
            (directory, table, 0, change(table, data))
            for table in TABLES
            for place, change in parts
            for data in TableFile(place, table)
        ),
    )


def _rewrite(directory: Path, split: Callable[[str, Any], tuple[Any, Any]] | None) -> None:
    """Write all tables as Parquet, replace the old files together, then remove the streams.

    `split` divides rows into valid and superseded ones; None: all rows are valid, and tables
    without streams stay unchanged. A truncated stream is kept in the directory. Raise
    ConfigurationError while the run goes on, or another command writes its tables.
    """
    done: list[tuple[Path, bool]] = []  # streams; true: truncated

    def pieces() -> Iterator[_Piece]:
        for table in TABLES:
            streams, path = stream_files(directory, table), parquet_file(directory, table)
            if not streams and (split is None or not path.exists()):
                continue
            file = TableFile(directory, table)
            parts = max((number for number, _ in streams), default=0) or _parts_of(path)
            yield directory, table, parts, arrow_schema(table).empty_table()
            for data in file:
                kept, old = (data, None) if split is None else split(table, data)
                yield directory, table, parts, kept
                if old is not None and old.num_rows:
                    yield directory / SUPERSEDED, table, 0, old
            done.extend((stream, stream in file.cut) for _, stream in streams)

    with alone(directory):
        _write(directory, pieces())
        for path, is_cut in done:
            if is_cut:
                path.replace(cut_file(path))
            else:
                path.unlink()


def _write(directory: Path, pieces: Iterable[_Piece]) -> None:
    """Write pieces of tables as Parquet files, all or none; RunError if writing fails."""
    made: dict[tuple[Path, str], _ParquetWriter] = {}
    try:
        for folder, table, parts, rows in pieces:
            if (folder, table) not in made:
                folder.mkdir(exist_ok=True)
                made[folder, table] = _ParquetWriter(folder, table, parts)
            made[folder, table].add(rows)
        for writer in made.values():
            writer.finish()
        for writer in made.values():
            writer.place()
        _onto_disk(directory)
    except OSError as error:
        why = error.strerror or error
        raise RunError(f"{directory}: {why}: the old tables were kept unchanged") from error
    finally:
        for writer in made.values():
            writer.drop()


def _onto_disk(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk (fsync)."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class _ParquetWriter:
    """Writer of one Parquet file, which appears only when it is complete."""

    def __init__(self, directory: Path, table: str, parts: int) -> None:
        self._path = parquet_file(directory, table)
        self._fresh = self._path.with_name(f".{self._path.name}.new")
        schema = arrow_schema(table)
        self._schema = schema.with_metadata({**schema.metadata, "parts": str(parts)})
        self._writer = pq.ParquetWriter(self._fresh, self._schema, compression="zstd")
        self._waiting: list[Any] = []

    def add(self, data: Any) -> None:
        self._waiting.append(data.cast(self._schema))
        if sum(part.num_rows for part in self._waiting) >= _GROUP:
            self._write()

    def finish(self) -> None:
        self._write()
        self._writer.close()
        _onto_disk(self._fresh)

    def place(self) -> None:
        self._fresh.replace(self._path)

    def drop(self) -> None:
        """Remove the new file if it has not replaced the old one."""
        self._waiting.clear()
        if self._fresh.exists():
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
            self._fresh.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=_GROUP * 2)
            self._waiting.clear()


# --- a run that is continued ----------------------------------------------------------------------

_OF_THE_END = {"bye", "error", "missing", "unreachable"}


@dataclass(frozen=True)
class Begun:
    """Trials and phases that a run measured before it was interrupted."""

    whole: frozenset[TrialKey] = frozenset()
    # phases still to measure, by interrupted trial
    left: Mapping[TrialKey, list[int]] = field(default_factory=dict)

    def rest(self, run: Run) -> Run:
        """Return the run without its completed trials."""
        left = (trial for trial in run.trials if (trial.id, trial.repeat) not in self.whole)
        return replace(run, trials=tuple(left)) if self.whole else run

    def left_of(self, trial: Trial) -> Trial:
        """Return the trial with only the phases that are still to be measured."""
        phases = self.left.get((trial.id, trial.repeat))
        return trial if phases is None else replace(trial, chosen=tuple(phases))


def resume(directory: Path) -> tuple[Run, Begun]:
    """Return the run of a results directory to continue, and its measured trials and phases.

    Rows of incomplete phases are dropped from the run's tables. Raise ConfigurationError if the run
    cannot be continued.
    """
    run = replace(read_plan(directory), again=(), remeasured=0)
    begun = _begun(run, directory)
    ended = [trial for trial in run.trials if (trial.id, trial.repeat) in begun.whole]
    if run.searches:
        run = replace(run, trials=tuple(ended))
    elif len(ended) == len(run.trials):
        raise ConfigurationError(
            f"{directory} is complete: all its trials were measured, so none is left to continue"
        )
    here = {(trial.id, trial.repeat) for trial in run.trials} & begun.whole

    def is_kept(kind: str | None, trial: int | None, repeat: int | None, phase: int | None) -> bool:
        """Return whether a row belongs to a complete trial or phase of the run."""
        if trial is None:
            return kind not in _OF_THE_END
        left = begun.left.get((trial, repeat or 0))
        whole = left is not None and phase not in (None, PROBE, *left) and kind != "trial"
        return (trial, repeat or 0) in here or whole

    def split(table: str, data: Any) -> tuple[Any, None]:
        types = data["type"].to_pylist() if table == "events" else [None] * data.num_rows
        places = zip(types, *(data[name].to_pylist() for name in MOMENT), strict=True)
        kept = pa.array([is_kept(*place) for place in places], pa.bool_())
        return data.filter(kept), None

    _rewrite(directory, split)
    return run, begun


def _begun(run: Run, directory: Path) -> Begun:
    nodes = {process.name for process in run.site.processes}
    tables = Tables(directory, ("phases",), {"phases": (*MOMENT, "node", "state")})
    trials: defaultdict[Any, set[str | None]] = defaultdict(set)
    for record in tables.events():
        if record["type"] == "trial":
            trials[record.get("trial"), record.get("repeat") or 0].add(record.get("node"))
    phases: defaultdict[TrialKey, set[int]] = defaultdict(set)
    stopped: set[TrialKey] = set()
    for phase in tables.phases():
        rows, key = phase.rows("phases"), phase.moment[:2]
        if "stopped" in rows.texts("state"):
            stopped.add(key)
        elif nodes <= set(rows.texts("node")):
            phases[key].add(phase.moment[2])
    whole, left = set(), {}
    for trial in run.trials:
        key = trial.id, trial.repeat
        if nodes <= trials[key] and key not in stopped:
            whole.add(key)
        elif not run.searches and trial.has_single_phases:
            every = trial.chosen or range(trial.phases)
            here = [phase for phase in every if phase not in phases[key]]
            if 0 < len(here) < len(every):
                left[key] = here
    return Begun(frozenset(whole), left)
