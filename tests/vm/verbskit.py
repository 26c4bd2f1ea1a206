# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `verbs` between two guests share: a job, its two nodes, and their records."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import guests
import nodekit
import runs
import vmkit
from nodekit import NodeRuns, Record
from switchbench.base.programs import find_engine

NODES = ("node1", "node2")
PORT = {"iface": "eth0"}
LIMIT_S = 90.0
HEAD_START_S = 1.0
# Retries end within 7 x 4 x 4.096 us x 2^14, two seconds: devices may wait four times the timeout.
SHORT = {"timeout": 14, "depth": 16}
LONG = {"timeout": 18, "depth": 16}


def job(directory: Path, tests: list[Record], port: Record) -> str:
    """Return the document for both nodes."""
    configuration = {
        "site": {
            "launch": "hand",
            "hosts": list(NODES),
            "control": {
                "addresses": {name: f"100.64.0.{i + 1}" for i, name in enumerate(NODES)},
                "udp_port": 7600,
                "heartbeat_timeout": "10s",
                "barrier_timeout": "20s",
            },
            "ports": {"e0": {"network": "cable", **port}},
        },
        "transport": "verbs",
        "message_size": "64KiB",
        "warmup": "100ms",
        "window": "500ms",
        "repeat": 1,
        "tests": tests,
    }
    document = directory / "job.ndjson"
    done = runs.execute("plan", str(runs.write(directory, configuration)), "--job", str(document))
    assert done.returncode == 0, done.stdout + done.stderr
    return document.read_text()


def play(
    rig: guests.Rig,
    document: str,
    wrap: str = "",
    meanwhile: Callable[[], object] | None = None,
) -> NodeRuns:
    """Run both nodes to their end. `wrap`: shell words before the node's on node1, which comes
    last: what it says before others listen, nobody hears."""
    started: list[subprocess.Popen[str]] = []
    for name in reversed(NODES):
        rig[name].output(["sh", "-c", f"umask 077; cat >job.ndjson <<'E'\n{document}\nE"])
        before = wrap if name == NODES[0] else ""
        node = f"{before} {find_engine()} job.ndjson --name {name} </dev/null"
        if started:
            time.sleep(HEAD_START_S)
        started.insert(0, vmkit.popen(rig[name], ["sh", "-c", node]))
    said = nodekit.conduct(started, None, meanwhile, LIMIT_S)
    print(said.text)
    return said


def running(rig: guests.Rig, then: Callable[[], None]) -> Callable[[], None]:
    """Does it once traffic has flowed for a while."""

    def wait() -> None:
        def sent() -> int:
            return rig.counters()["node1/eth0"]["received"]

        before = sent()
        runs.wait_until(lambda: sent() > before + 300, "traffic", 60)
        time.sleep(0.5)
        then()

    return wait
