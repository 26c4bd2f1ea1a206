# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on guests share."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import guests
from guests.rig import FOLDER_PREFIX
from switchbench.base.programs import find_engine

ROOT = Path(__file__).resolve().parents[2]
WHY_NOT = guests.why_not()

needs_guests = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "-")


def built(name: str) -> Path:
    """Return a file of whichever build there is. Without RDMA's libraries it was not built."""
    for folder in ("build", "build-test/gcc"):
        path = ROOT / folder / name
        if path.exists():
            return path
    pytest.skip(f"{Path(name).name} is not built: this build has no verbs", allow_module_level=True)


def has_verbs() -> bool:
    """Return whether the engine was built with libibverbs."""
    said = subprocess.run(
        ["ldd", str(find_engine())], capture_output=True, text=True, check=True
    ).stdout
    return "libibverbs" in said


def machines(count: int, **changes: Any) -> list[guests.Machine]:
    """Return guests with room for the engine and its DPDK."""
    return [replace(each, **{"memory_mib": 512, **changes}) for each in guests.machines(count)]


def site(rig: guests.Rig, **port: Any) -> dict[str, Any]:
    """Return the rig's guests as a site; `port`: keys of their port besides its network."""
    return {
        "launch": "ssh",
        "hosts": [guest.name for guest in rig.guests],
        "ssh": {"config": str(rig.ssh_config), "engine": str(find_engine())},
        # An emulated processor stands still for many seconds when the machine is busy.
        "control": {
            "addresses": {g.name: f"100.64.0.{i}" for i, g in enumerate(rig.guests, 1)},
            "udp_port": 7600,
            "heartbeat_timeout": "10s",
            "barrier_timeout": "20s",
        },
        "ports": {"e0": {"network": "test", **(port or {"iface": "eth0", "rdma": "rxe0/1"})}},
    }


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


def popen(guest: guests.Guest, words: list[str]) -> subprocess.Popen[str]:
    """Start a program in a guest, with its input and outputs as text here."""
    pipe = subprocess.PIPE
    return guest.popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
