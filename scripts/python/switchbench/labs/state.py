# SPDX-License-Identifier: BSD-3-Clause
"""State of labs between commands: a lock and a state file per lab, in /run/switchbench.

A process that changes a lab or runs on it holds `<lab>.lock` throughout (flock, so a crash frees
it). `<lab>.json` is written before the first namespace is made and removed after the last one is
gone, so that the remains of a crash are listed there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ..base.errors import ConfigurationError, RunError
from ..topology.form import Topology

RUN_DIR = Path("/run/switchbench")


class LabError(ConfigurationError):
    """Error that explains in one sentence why a lab cannot be made, used or removed."""


class LabFailedError(LabError, RunError):
    """Error: a part of a lab ended, or did not become ready."""

    status = RunError.status


@dataclass(frozen=True)
class LabState:
    """Recorded state of a lab: its name, its topology, and if `lab up` made it to stay."""

    lab: str
    topology: Topology
    # True for a complete lab that stays until `lab down`. While false, the lab belongs to the
    # process that holds its lock; without such a process it is the remains of a crash.
    kept: bool


_STATE = TypeAdapter(LabState)


def _path(lab: str, suffix: str) -> Path:
    return RUN_DIR / f"{lab}{suffix}"


@contextmanager
def locked(lab: str) -> Iterator[None]:
    """Hold the lab's lock; raise `LabError` with the process that already holds the lock."""
    path = _path(lab, ".lock")
    fd = _acquire(path, lab)
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)
        with contextlib.suppress(OSError):  # The folder is not empty: other labs are up.
            RUN_DIR.rmdir()


def _acquire(path: Path, lab: str) -> int:
    while True:
        try:
            RUN_DIR.mkdir(mode=0o755, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            continue  # The lock's last user removed the folder in between.
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
        except BlockingIOError:
            pid, command = _read_pid(fd), ""
            os.close(fd)
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                command = f" ({words.decode(errors='replace').strip()[:80]})"
            raise LabError(f"lab {lab} is in use by process {pid}{command}") from None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # Another process removed the file before this one could lock it.


def _read_pid(fd: int) -> int:
    content = os.pread(fd, 32, 0).strip()
    return int(content) if content.isdigit() else 0


def holder(lab: str) -> int | None:
    """Return the id of the process that holds the lab's lock, or None, without waiting."""
    try:
        fd = os.open(_path(lab, ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two processes that call this function do not block each other.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read_pid(fd)
    finally:
        os.close(fd)


def write(state: LabState) -> None:
    """Write the lab's state file atomically."""
    partial = _path(state.lab, ".json.new")
    partial.write_bytes(_STATE.dump_json(state, by_alias=False))
    partial.replace(_path(state.lab, ".json"))


def read(lab: str) -> LabState | None:
    """Return the recorded state of a lab; None without a state file."""
    try:
        return _STATE.validate_json(_path(lab, ".json").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise LabError(
            f"lab {lab} was made by another version of Switchbench: remove it with `switchbench "
            f"lab down {lab}` of that version, or delete its namespaces with `ip netns delete` and "
            f"then the file {_path(lab, '.json')}"
        ) from None


def forget(lab: str) -> None:
    """Remove the lab's state file."""
    for suffix in (".json", ".json.new"):
        _path(lab, suffix).unlink(missing_ok=True)


def labs() -> list[str]:
    """Return the names of all labs with a state file, sorted."""
    return sorted(path.stem for path in RUN_DIR.glob("*.json"))
