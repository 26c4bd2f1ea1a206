#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""From the command to the first phase: 64 ranks in 16 processes on the lab `sixty-four`, by parts.

`switchbench run` as a person starts it, with dpdk and with tcp in turn. The parts:

  command   Python, the configuration, the plan
  lab       64 namespaces, a switch, its shapers
  nodes     16 processes from their start to the last hello: loading, EAL (dpdk), ports, guard
  join      control endpoints, handshake, first barrier
  probe     links, the meeting of all nodes, and the probe of all flows, to the first phase's start

The difference between the transports in `nodes` is what the EAL and its ports cost: DPDK of Debian
loads all its drivers, some hundred plug-ins, in each process.

    tests/bench/start.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from common import ROOT, Figures, arguments, medians_in_turn, need, verdict

from switchbench.base.errors import SwitchbenchError
from switchbench.records.store import Tables

TRANSPORTS = ("dpdk", "tcp")
PROCESSES = 16
REACH_S = 5.0
RUN_TIMEOUT_S = 60
POLL_S = 0.002

# What the command says when a part begins, and that part's name.
STAGES = {"making the lab": "lab", "starting the nodes": "nodes"}
PARTS = ("command", "lab", "nodes", "join", "probe")

CONFIGURATION = """\
switchbench: 1
site: {{lab: sixty-four, pack: 4}}
transports: [{transport}]
load: 50%
warmup: 0.1s
window: 0.2s
tests:
- {{pattern: pairs, partners: neighbours}}
"""


def now_s() -> float:
    """The clock of node 0's records, too: all nodes are on this machine."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@contextmanager
def stages_of(process: subprocess.Popen[str], begins: dict[str, float]) -> Iterator[None]:
    """Notes in `begins` when the command said that a stage began."""

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            part = STAGES.get(line.strip())
            if part is not None:
                begins[part] = now_s()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class Records:
    """What the nodes have said so far: when the last hello and the last ready came."""

    def __init__(self, path: Path) -> None:
        """Of a results directory that need not be there yet."""
        self._path = path
        self._seen = 0
        self._came: dict[str, list[float]] = {"hello": [], "ready": []}
        self.first_start_s: float | None = None

    def look(self) -> None:
        """Reads what is new."""
        with suppress(OSError, SwitchbenchError):
            tables = Tables(self._path, ("phases",))
            events = list(tables.events())
            for event in events[self._seen :]:
                self._take(event)
            self._seen = len(events)
            for phase in tables.phases():
                if phase.moment[2] == 0 and self.first_start_s is None:
                    self.first_start_s = phase.rows("phases").floats("start_run_ns")[0] / 1e9

    def _take(self, record: dict[str, Any]) -> None:
        if record["type"] in self._came:
            self._came[record["type"]].append(now_s())

    def last(self, kind: str) -> float:
        """When the last node said it."""
        if len(self._came[kind]) != PROCESSES:
            raise SystemExit(f"{len(self._came[kind])} of {PROCESSES} nodes said {kind}")
        return self._came[kind][-1]


def run(node: Path, folder: Path, transport: str) -> Figures:
    """One run: seconds of each part."""
    configuration = folder / f"{transport}.yaml"
    configuration.write_text(CONFIGURATION.format(transport=transport))
    results = folder / f"results-{transport}-{time.monotonic_ns()}"
    records = Records(results)
    command = [str(ROOT / "scripts/switchbench"), "run", str(configuration), "--out", str(results)]
    began_s = now_s()
    begins: dict[str, float] = {}
    with (
        subprocess.Popen(
            command,
            env={**os.environ, "SWITCHBENCH_NODE": str(node), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        stages_of(process, begins),
    ):
        while process.poll() is None and now_s() - began_s < RUN_TIMEOUT_S:
            records.look()
            time.sleep(POLL_S)
        process.terminate()
    records.look()
    # Its window of 0.2 s is often tester-limited on two cores: inconclusive, but started.
    if process.returncode not in (0, 4) or records.first_start_s is None:
        raise SystemExit(f"the run with {transport} ended with status {process.returncode}")
    marks = [began_s, begins["lab"], begins["nodes"], records.last("hello"), records.last("ready")]
    marks.append(records.first_start_s)
    parts = zip(PARTS, marks[:-1], marks[1:], strict=True)
    return {part: end - begin for part, begin, end in parts} | {"whole": marks[-1] - began_s}


def main() -> int:
    """Both transports in turn, then the verdicts."""
    options = arguments(__doc__, node=True).parse_args()
    need("ip", root=True)
    with tempfile.TemporaryDirectory(prefix="switchbench-start-") as folder:
        subjects = {one: partial(run, options.node, Path(folder), one) for one in TRANSPORTS}
        found = medians_in_turn(options.rounds, subjects)
    for transport, seconds in found.items():
        what = f"  {transport}, to the first phase"
        verdict(what, seconds["whole"], REACH_S, unit="s", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
