# SPDX-License-Identifier: BSD-3-Clause
"""Nodes without a controller: started one by one, given their documents, and read to their end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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


def meeting(addresses: Sequence[str], **job: Any) -> str:
    """Return the documents of node1, node2, ... at these control addresses, which meet.

    `job`: keys of the job. They end with `quit`, or with their input.
    """
    nodes = [
        {"name": f"node{i}", "control": {"address": one}, "ports": []}
        for i, one in enumerate(addresses, 1)
    ]
    usual = {"protocol": 2, "run": f"meeting-{os.getpid()}", "controlled": False, "nodes": nodes}
    times = {"heartbeat_timeout_ms": 5000, "barrier_timeout_ms": 10_000}
    peers = {"addresses": list(addresses), "key": "5c" * 32}
    parts: list[Record] = [{"job": usual | times | job}, {"peers": peers}]
    return "".join(json.dumps(part) + "\n" for part in parts)


def free_addresses() -> list[str]:
    """Return two addresses of the loopback with free UDP ports."""
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in "12"
        ]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
