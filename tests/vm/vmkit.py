# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on guests share."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from switchbench.labs import vm as guests
from switchbench.labs.vm.rig import FOLDER_PREFIX

ROOT = Path(__file__).resolve().parents[2]
WHY_NOT = guests.why_not()

needs_guests = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "-")


def built(name: str) -> Path:
    """A file of whichever build there is. Without RDMA's libraries it was not built."""
    for folder in ("build", "build-test/gcc"):
        path = ROOT / folder / name
        if path.exists():
            return path
    pytest.skip(f"{Path(name).name} is not built: this build has no verbs")


def traces(pid: int | None = None) -> set[str]:
    """Folders of rigs that a process has booted (this one, if none is given), and processes that
    name one of them."""
    prefix = f"{FOLDER_PREFIX}{pid or os.getpid()}-"
    found = {str(path) for path in Path(tempfile.gettempdir()).glob(f"{prefix}*")}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if prefix in words:
            found.add(f"{process.name}: {words[:200]}")
    return found


def wait_until(condition: Callable[[], bool], what: str, limit_s: float) -> None:
    """Fails when it is not so in time."""
    limit = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < limit, f"not within {limit_s} s: {what}"
        time.sleep(0.02)


def peers(
    rig: guests.Rig, server: list[str], client: list[str], timeout_s: float = 60
) -> tuple[str, str]:
    """A program on node2 that waits, and one on node1 that comes to it; what both print."""
    with rig["node2"].popen(
        server,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as waiting:
        try:
            retry = ["sh", "-c", 'for i in 1 2 3 4 5 6 7 8; do "$@" && exit; sleep 0.3; done', "-"]
            came = rig["node1"].run([*retry, *client], timeout_s)
            assert came.returncode == 0, came.stdout + came.stderr
            said, _ = waiting.communicate(timeout=timeout_s)
        finally:
            waiting.terminate()
    return said, came.stdout
