# SPDX-License-Identifier: BSD-3-Clause
"""Nodes without a controller: started one by one, given their documents, and read to their end."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class NodeRun:
    """How one node ended, and what it wrote."""

    status: int
    records: list[Record]
    log: str

    def of(self, kind: str, /, **where: Any) -> list[Record]:
        """Return its records of a type with these values."""
        return [r for r in self.records if r["type"] == kind and where.items() <= r.items()]


class NodeRuns(list[NodeRun]):
    """All nodes of a run, in their order."""

    @property
    def status(self) -> list[int]:
        """Return the status of each."""
        return [one.status for one in self]

    @property
    def logs(self) -> list[str]:
        """Return the log of each."""
        return [one.log for one in self]

    @property
    def text(self) -> str:
        """All that was written, for messages of assertions and for words that have to be there."""
        return "\n".join([*self.logs, *(json.dumps(r) for one in self for r in one.records)])

    def of(self, kind: str, /, **where: Any) -> list[Record]:
        """Return all nodes' records of a type with these values."""
        return [record for one in self for record in one.of(kind, **where)]


def conduct(
    processes: Sequence[subprocess.Popen[str]],
    text: str | None = None,
    meanwhile: Callable[[], object] | None = None,
    limit_s: float = 60.0,
) -> NodeRuns:
    """Give nodes their documents and hear them to their end; something happens meanwhile."""

    def talk(process: subprocess.Popen[str]) -> NodeRun:
        out, log = process.communicate(text, timeout=limit_s)
        return NodeRun(process.returncode, [json.loads(line) for line in out.splitlines()], log)

    with ThreadPoolExecutor(len(processes)) as pool:
        talks = [pool.submit(talk, one) for one in processes]
        try:
            if meanwhile is not None:
                meanwhile()
            return NodeRuns(one.result() for one in talks)
        finally:
            for process in processes:
                process.kill()


def start(words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a node that reads its documents from its input."""
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def meeting(clock: Record, addresses: Sequence[str]) -> str:
    """Return the documents of n0, n1, ... at these control addresses, that meet and end."""
    nodes = [{"name": f"n{i}", "control": {"address": one}} for i, one in enumerate(addresses)]
    job = {
        "protocol": 2,
        "run": f"meeting-{os.getpid()}",
        "controlled": False,
        "heartbeat_timeout_ms": 5000,
        "barrier_timeout_ms": 10_000,
        "clock": clock,
        "nodes": nodes,
    }
    peers = {"addresses": list(addresses), "key": "5c" * 32}
    parts: list[Record] = [{"job": job}, {"peers": peers}, {"quit": True}]
    return "".join(json.dumps(part) + "\n" for part in parts)
