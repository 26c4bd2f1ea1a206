# SPDX-License-Identifier: BSD-3-Clause
"""The results directory of one run: its files, and how they are written without damage.

configuration.yaml   the effective configuration; `switchbench run` accepts it
plan.json            the run that was compiled from it, which all other commands read
clauses.json         the clauses that are judged, in the form whose SHA-256 is their hash
flows.parquet ...    the nodes' records as tables (schema.py); `flows.1.arrows ...` while the run
                     goes on; of a phase that was measured again, the last measurement
superseded/          tables with the first results of phases that were measured again
nodes.log            standard error of the nodes
switch.ndjson        records of a modelled switch (doc/developer/switch.md), in a lab that has one
summary.json         results that follow from the tables (summary_form.py)
manifest.json        SHA-256 of each of these files; it can be signed (doc/reference/acceptance.md)

plan.json is the compiled run as it was measured, so that its results can be read on any machine: to
compile the configuration again needs the engine, the cores, the memory and the topology files of
the host that measured. A port is in the file once, below `ports`; all other places have its name.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from ..base.errors import ConfigurationError, RunError, printable
from ..base.model import Part, Port, Run
from ..base.source import refuse_irregular
from .schema import Record
from .summary_form import SCHEMA, Entry, SummaryDocument, first_mistake, refuse_other_keys

CONFIGURATION = "configuration.yaml"
PLAN = "plan.json"
NODES_LOG = "nodes.log"
SUMMARY = "summary.json"
CLAUSES = "clauses.json"
REPORT = "report.html"

_DOCUMENTS = (".json", ".yaml")  # files read as a whole; other files are read in pieces
_DOCUMENT_MOST = 2 << 30  # bytes; the summary of a million flows has 300 MB


class _Dumper(yaml.SafeDumper):
    """YAML writer that repeats values instead of using aliases, since users may edit the file."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class RunDirectory:
    """Results directory of one run; `begun`: the directory exists, since the run is continued."""

    def __init__(self, path: Path, begun: bool = False) -> None:
        """Create the directory; raise ConfigurationError if it has contents."""
        self.path, self._begun = path, begun
        if begun:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise ConfigurationError(
                    f"{path} is not empty: name a new directory with --out, or move it away"
                )
        except OSError as error:
            raise ConfigurationError(f"can't make directory {path}: {error.strerror}") from error

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Write a YAML file with all values in full."""
        text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        replace_bytes(self.path / name, text.encode())

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Write the summary; if an error occurs, the old file remains."""
        replace_json(self.path / SUMMARY, summary)

    def discard_if_unused(self) -> None:
        """Remove a new directory if the run was rejected before anything was measured."""
        if not self._begun and not any(self.path.glob("*.arrows")):
            for name in (CONFIGURATION, PLAN):
                (self.path / name).unlink(missing_ok=True)
            with suppress(OSError):
                self.path.rmdir()


class LineFile(AbstractContextManager["LineFile"]):
    """File of whole lines: a line is in the file when `write` returns, or not at all.

    The file is locked while it is open: a locked nodes.log shows that the run goes on.
    """

    def __init__(self, path: Path) -> None:
        """Open a file for appending; create it if it is missing."""
        self.path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise _cannot_write(path, error) from error
        try:
            _lock(self._file, path.parent)
        except ConfigurationError:
            self.close()
            raise
        self._size = os.fstat(self._file).st_size

    def write(self, line: bytes) -> None:
        """Append whole lines of text; raise RunError if writing fails."""
        done = 0
        try:
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise _cannot_write(self.path, error) from error
        self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def _lock(log: int, directory: Path) -> None:
    """Lock a file of a directory; raise ConfigurationError if another process holds the lock."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            f"{directory}: its run still goes on, or another command writes its tables: wait until "
            "that has ended"
        ) from None
    except OSError:  # a file system without locks
        return


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Lock a directory to write its tables; ConfigurationError if a run or command writes them."""
    with ExitStack() as stack:
        with suppress(OSError):  # no log; a network's file system locks only files open for writing
            log = stack.enter_context((directory / NODES_LOG).open("r+b"))
            _lock(log.fileno(), directory)
        yield


def default_path(conf_name: str) -> Path:
    """Return the default results directory: results/<UTC time>-<name of the configuration>."""
    return Path("results") / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{conf_name}"


def refuse_endless(directory: Path) -> None:
    """Raise ConfigurationError for a FIFO, a device or a document above 2 GiB in a directory."""
    for path in sorted(directory.glob("*")):
        with suppress(OSError):  # the later reader reports why the file cannot be read
            status = path.stat()
            if not stat.S_ISDIR(status.st_mode):
                refuse_irregular(path, status)
            if path.suffix in _DOCUMENTS and status.st_size > _DOCUMENT_MOST:
                raise ConfigurationError(f"{path} is too large: above {_DOCUMENT_MOST >> 20:,} MiB")


def load_summary(path: Path) -> SummaryDocument:
    """Read the summary of a run.

    ConfigurationError if the summary is missing, damaged or of a newer version.
    """
    refuse_endless(path)
    file = path / SUMMARY
    gone = f"no results in {path}: it has no {SUMMARY}"
    summary: SummaryDocument = read_document(file, SCHEMA, gone)
    refuse_other_keys(summary, "Head", file)
    return summary


def read_document(file: Path, schema: str, gone: str, is_shown: bool = True) -> Entry:
    """Read a JSON document of the given schema; with `is_shown` make its text safe for terminals.

    ConfigurationError if the file is missing (with the text `gone`), unreadable, damaged or of a
    newer format.
    """
    try:
        content = file.read_bytes()
        loaded = as_shown(content) if is_shown else from_json(content, allow_inf_nan=False)
    except FileNotFoundError:
        raise ConfigurationError(gone) from None
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise damaged(file, str(error)) from None
    found = loaded.get("schema") if isinstance(loaded, dict) else None
    if found == schema:
        document: Entry = loaded
        return document
    name, _, version = schema.partition("/")
    form = re.fullmatch(rf"{name}/([0-9]+)", str(found))
    if form and int(form[1]) > int(version):
        raise ConfigurationError(
            f"{file} has a newer format ({found}; this version reads {schema}): "
            "read it with the version of Switchbench that the file names under `versions`"
        )
    raise damaged(file, f"it does not begin as {schema} does")


def damaged(file: Path, why: str) -> ConfigurationError:
    """Return an error which says that a file was changed after it was written."""
    return ConfigurationError(
        f"{file} is damaged: {printable(' '.join(why.split()))}; copy it from the "
        "computer that made the results, or measure again"
    )


def as_read(value: Mapping[str, object]) -> Any:
    """Return a value as it is after writing it as JSON and reading it again."""
    return as_shown(_json(value))


def as_shown(content: bytes) -> Any:
    """Parse JSON, with text that is safe for a terminal."""
    loaded = from_json(content, allow_inf_nan=False)
    if b"\\" not in content and content.decode().replace("\n", "").isprintable():
        return loaded  # line feeds are only between values, so no text needs escapes
    return printable(loaded, keep="\n")


def replace_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON file; if an error occurs, the old file remains."""
    replace_bytes(path, _json(value))


def _json(value: Mapping[str, object], indent: int | None = 1) -> bytes:
    try:
        return to_json(value, indent=indent, inf_nan_mode="null") + b"\n"
    except PydanticSerializationError as error:
        raise RunError(f"the file can't be written as JSON: {error}") from None


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file; if an error occurs, the old file remains."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> RunError:
    return RunError(
        f"can't write {path}: {error.strerror}; files written before are complete and are kept"
    )


# --- the plan -------------------------------------------------------------------------------------

PLAN_SCHEMA = "switchbench-plan/3"

_RUN = TypeAdapter(Run)
_PART = TypeAdapter(Part)
_PORTS = TypeAdapter(dict[str, Port])
_OTHERS = ("searches", "again", "superseded")  # keys of a run with trials outside `trials`


def write_plan(directory: Path, run: Run) -> None:
    """Write plan.json; if an error occurs, the old file remains."""
    packed = _RUN.dump_python(run, mode="json")
    ports: dict[str, Record] = {}
    parts: dict[tuple[str, ...], int] = {}

    def named(some: list[Record]) -> list[str]:
        ports.update((port["name"], port) for port in some)
        return [port["name"] for port in some]

    site = packed["site"]
    site["processes"] = [p | {"ports": named(p["ports"])} for p in site["processes"]]
    site["networks"] = {name: named(some) for name, some in site["networks"].items()}
    if packed["effective"].get("site") == site["effective"]:
        del site["effective"]
    for trial in (*packed["trials"], *(trial for key in _OTHERS for trial in packed[key])):
        some = [(part["network"], *named(part["ranks"])) for part in trial["parts"]]
        trial["parts"] = [parts.setdefault(part, len(parts)) for part in some]
    plan = {"schema": PLAN_SCHEMA, "ports": ports, "parts": list(parts), "run": packed}
    replace_bytes(directory / PLAN, _json(plan, None))


def read_plan(directory: Path) -> Run:
    """Return the measured run, read from plan.json.

    ConfigurationError if the file is missing, damaged or of a newer version.
    """
    file = directory / PLAN
    gone = (
        f"{file} is missing: it has the plan that was measured, which no other file replaces; "
        "copy it from the computer that made the results, or measure again"
    )
    loaded = read_document(file, PLAN_SCHEMA, gone, is_shown=False)
    try:
        return _unpacked(loaded)
    except ValidationError as error:
        raise damaged(file, first_mistake(error)) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise damaged(file, f"{type(error).__name__} {error!s:.100}") from None


def _unpacked(file: Record) -> Run:
    """Convert the contents of plan.json to a run; equal ports and parts become one object."""
    ports = _PORTS.validate_python(file["ports"])
    parts = [
        _PART.validate_python({"network": network, "ranks": [ports[name] for name in names]})
        for network, *names in file["parts"]
    ]
    run = file["run"]
    site = run["site"]
    for process in site["processes"]:
        process["ports"] = [ports[name] for name in process["ports"]]
    site["networks"] = {
        network: [ports[name] for name in names] for network, names in site["networks"].items()
    }
    site.setdefault("effective", run["effective"].get("site"))
    others = (trial for key in _OTHERS for trial in run.get(key, ()))
    for trial in (*run["trials"], *others):
        trial["parts"] = [parts[number] for number in trial["parts"]]
    return _RUN.validate_python(run)
