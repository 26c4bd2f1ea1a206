# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `verbs` between two guests share: a job, its two nodes, what they said."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import guests
import runs
import vmkit

NODES = ("node1", "node2")
PORT = {"iface": "eth0"}
LIMIT_S = 90.0
HEAD_START_S = 1.0
# Retries end within 7 x 4 x 4.096 us x 2^14, two seconds: devices may wait four times the timeout.
SHORT = {"timeout": 14, "depth": 16}
LONG = {"timeout": 18, "depth": 16}

Record = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the nodes left: their status, records and messages, in the order of NODES."""

    status: list[int]
    records: list[list[Record]]
    errors: list[str]

    def of(self, kind: str, /, **where: Any) -> list[Record]:
        """All nodes' records of a type with these values."""
        every = [record for records in self.records for record in records]
        return [r for r in every if r["type"] == kind and where.items() <= r.items()]

    @property
    def text(self) -> str:
        """All that was said, for messages of assertions and for words that have to be there."""
        return "\n".join([*self.errors, *(json.dumps(r) for each in self.records for r in each)])


def job(directory: Path, tests: list[Record], port: Record) -> str:
    """The document for both nodes."""
    configuration = {
        "switchbench": 1,
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
    conf, document = directory / "conf.yaml", directory / "job.yaml"
    conf.write_text(yaml.safe_dump(configuration, sort_keys=False))
    done = subprocess.run(
        runs.command("plan", str(conf), "--job", str(document)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return document.read_text()


def play(
    rig: guests.Rig,
    document: str,
    wrap: str = "",
    meanwhile: Callable[[], None] | None = None,
) -> Said:
    """Both nodes to their end. `wrap`: shell words before the node's on node1, which comes last:
    what it says before others listen, nobody hears."""
    started: list[subprocess.Popen[str]] = []
    for name in reversed(NODES):
        rig[name].output(["sh", "-c", f"umask 077; cat >job.yaml <<'E'\n{document}\nE"])
        before = wrap if name == NODES[0] else ""
        node = f"{before} switchbench-node job.yaml --name {name}"
        if started:
            time.sleep(HEAD_START_S)
        started.insert(
            0,
            rig[name].popen(
                ["sh", "-c", node],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ),
        )
    try:
        if meanwhile is not None:
            meanwhile()
        ends = [process.communicate(timeout=LIMIT_S) for process in started]
    finally:
        for process in started:
            process.kill()
    said = Said(
        [process.returncode for process in started],
        [[json.loads(line) for line in out.splitlines()] for out, _ in ends],
        [errors for _, errors in ends],
    )
    print(said.text)
    return said


def running(rig: guests.Rig, then: Callable[[], None]) -> Callable[[], None]:
    """Does it once traffic has flowed for a while."""

    def wait() -> None:
        def sent() -> int:
            return rig.counters()["node1/eth0"]["received"]

        before = sent()
        vmkit.wait_until(lambda: sent() > before + 300, "traffic", 60)
        time.sleep(0.5)
        then()

    return wait
