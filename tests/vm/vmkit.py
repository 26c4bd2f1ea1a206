# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on guests share: machines, sites, and runs by hand of two nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import guests
import nodekit
import runs
from nodekit import NodeRuns, Record
from switchbench.base.programs import find_engine

ROOT = Path(__file__).resolve().parents[2]
WHY_NOT = guests.why_not()
NODES = ("node1", "node2")
LIMIT_S = 120.0
HEAD_START_S = 1.0

needs_guests = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "-")


def built(name: str) -> Path:
    """Return a file of whichever build there is. Without RDMA's libraries it was not built."""
    for folder in ("build", "build-test/gcc"):
        path = ROOT / folder / name
        if path.exists():
            return path
    pytest.skip(f"{Path(name).name} is not built: this build has no verbs", allow_module_level=True)


def machines(count: int, **changes: Any) -> list[guests.Machine]:
    """Return guests with room for the engine and its DPDK."""
    return [replace(each, **{"memory_mib": 512, **changes}) for each in guests.machines(count)]


def site(rig: guests.Rig | None, **port: Any) -> Record:
    """Return two guests as a site; `port`: keys of their port besides its network.

    Nodes are started by ssh, or by hand where no rig is given.
    """
    launch: Record = {"launch": "hand"}
    if rig is not None:
        ssh = {"config": str(rig.ssh_config), "engine": str(find_engine())}
        launch = {"launch": "ssh", "ssh": ssh}
    return launch | {
        "hosts": list(NODES),
        # An emulated processor stands still for many seconds when the machine is busy.
        "control": {
            "addresses": {name: f"100.64.0.{i}" for i, name in enumerate(NODES, 1)},
            "udp_port": 7600,
            "heartbeat_timeout": "10s",
            "barrier_timeout": "20s",
        },
        "ports": {"e0": {"network": "test", **(port or {"iface": "eth0", "rdma": "rxe0/1"})}},
    }


def job(directory: Path, place: Record, tests: list[Record], **keys: Any) -> str:
    """Return the documents of a run by hand at a site, for both nodes."""
    times = {"warmup": "100ms", "window": "500ms", "repeat": 1}
    configuration = {"site": place, **times, **keys, "tests": tests}
    document = directory / "job.ndjson"
    document.unlink(missing_ok=True)
    done = runs.execute("plan", str(runs.write(directory, configuration)), "--job", str(document))
    assert done.returncode == 0, done.stdout + done.stderr
    return document.read_text()


def popen(guest: guests.Guest, words: list[str]) -> subprocess.Popen[str]:
    """Start a program in a guest, with its input and outputs as text here."""
    pipe = subprocess.PIPE
    return guest.popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def play(
    rig: guests.Rig,
    document: str,
    wrap: str = "",
    meanwhile: Callable[[], object] | None = None,
) -> NodeRuns:
    """Run both nodes to their end. `wrap`: shell words before the node's on node1, which comes
    last: what it says before others listen, nobody hears."""
    with ExitStack() as stack:
        started: list[subprocess.Popen[str]] = []
        for name, before in ((NODES[1], ""), (NODES[0], wrap)):
            if started:
                time.sleep(HEAD_START_S)
            node = f"{before} {find_engine()} --name {name}"
            started.insert(0, popen(rig[name], ["sh", "-c", node]))
            stack.callback(started[0].kill)
        said = nodekit.conduct(started, document, meanwhile, LIMIT_S)
    print(said.text)
    return said


def wait_for_load(rig: guests.Rig) -> None:
    """Wait until traffic has flowed for a while."""
    port = rig.ports["node1/eth0"]
    before = port.received
    runs.wait_until(lambda: port.received > before + 300, "traffic", 60)
    time.sleep(0.5)
