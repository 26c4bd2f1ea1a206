#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The controller's own cost with 1,024 nodes: CPU time of its process, of one core.

One process plays all nodes: it has the other ends of their pipes, answers the documents of the
protocol, and writes records at the rate at which the engine writes them. The controller, the
results directory and the plain view are the command's own. Each node has `progress` twice a second,
`interval` once a second, and in phases of five seconds both sides of two flows, `port` and `phase`.

Counted is the CPU time of the process and its threads from the last node's `ready` to the end.

    tests/bench/controller_nodes.py [--nodes 1024] [--rounds 3] [--seconds 10]
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "scripts/python")]

from common import Figures, arguments, medians_in_turn, verdict  # noqa: E402
from nacl.public import PrivateKey  # noqa: E402
from rich.console import Console  # noqa: E402

from switchbench.base.model import Process, Run  # noqa: E402
from switchbench.records.directory import RunDirectory  # noqa: E402
from switchbench.run.controller import Controller  # noqa: E402
from switchbench.run.launch import Launcher  # noqa: E402
from switchbench.run.live.screen import Watch  # noqa: E402
from switchbench.run.nodes import Interrupt  # noqa: E402
from synthetic import (  # noqa: E402
    frame_side,
    hello,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    trial_record,
)

REACH_PERCENT = 10.0
HEARTBEAT_TIMEOUT_MS = 500  # the default of a site of hosts
PROGRESS_S = 0.5  # as engine/trial/trial.c has it
INTERVAL_S = 1.0
PHASE_S = 5.0
TICK_S = 0.02  # nodes speak one after the other, spread over their period
UNIT = "% of a core"

Record = dict[str, Any]


class Member:
    """What the controller sees of a node's process; the other ends of its pipes are the crowd's."""

    def __init__(self) -> None:
        self.far_input, ours = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(ours, "wb", 0)
        ours, self.far_output = os.pipe()
        self.stdout: IO[bytes] = os.fdopen(ours, "rb", 0)
        ours, self.far_log = os.pipe()
        self.stderr: IO[bytes] = os.fdopen(ours, "rb", 0)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return 0, the status of a process that has ended."""
        self.returncode = 0
        return 0

    def terminate(self, *_: object) -> None:
        """Nothing is left to end."""

    kill = send_signal = terminate


class Crowd:
    """All nodes, in the process that this one forks."""

    def __init__(self, members: Mapping[str, Member], end_s: float) -> None:
        self.names, self.pipes, self.duration_s = list(members), list(members.values()), end_s
        self.key = b64encode(bytes(PrivateKey.generate().public_key)).decode()

    def say(self, at: int, *records: Record) -> None:
        text = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        os.write(self.pipes[at].far_output, text)

    def hear(self, word: bytes) -> None:
        """Wait until every node has received the document of this name."""
        for pipe in self.pipes:
            text = b""
            while word not in text or not text.endswith(b"\n"):
                text = text[text.find(word) :] if word in text else text[-len(word) :]
                text += os.read(pipe.far_input, 1 << 20)

    def run(self) -> None:
        everyone = range(len(self.names))
        self.hear(b'"job":')
        for at, name in enumerate(self.names):
            mac = f"02:00:00:00:{at >> 8:02x}:{at & 255:02x}"
            port = {"port": f"{name}:e0", "transport": "dpdk", "mac": mac, "line_rate_bps": 10**8}
            self.say(at, {"type": "port-open", "node": name} | port, hello(name, key=self.key))
        self.hear(b'"peers":')
        for at in everyone:
            self.say(at, {"type": "ready", "node": self.names[at]})
        self.hear(b'"trial":')
        self.speak()
        for at in everyone:
            self.say(at, trial_record(self.names[at]))
        self.hear(b'"quit":')
        for at in everyone:
            self.say(at, {"type": "bye", "node": self.names[at], "status": 0, "reason": "quit"})

    def speak(self) -> None:
        """Each node at its own moment of each period; phases end at once on all of them."""
        begin_s, phase = time.monotonic(), 0
        moments = round(PROGRESS_S / TICK_S)
        for tick in itertools.count():
            time.sleep(max(0.0, begin_s + tick * TICK_S - time.monotonic()))
            now_s = time.monotonic() - begin_s
            if now_s >= self.duration_s:
                return
            for at in range(tick % moments, len(self.names), moments):
                self.say(at, *self.progress(at, phase, tick // moments))
            if now_s >= (phase + 1) * PHASE_S:
                for at in range(len(self.names)):
                    self.say(at, *self.ended(at, phase))
                phase += 1

    def progress(self, at: int, phase: int, turn: int) -> Iterator[Record]:
        name = self.names[at]
        port = f"{name}:e0"
        where = {"trial": 0, "repeat": 0, "phase": phase}
        rates = {
            "offered_bps": 9.5e7,
            "delivered_bps": 9.5e7,
            "ports": [[port, 9.5e7, 9.5e7, 9.5e7]],
        }
        yield {"type": "progress", "node": name, "step": "window"} | where | rates
        if turn % round(INTERVAL_S / PROGRESS_S) == 0:
            flows = [[self.port(at - step), [11_875_000]] for step in (1, 2)]
            span = {"network": "lab", "dst": port, "from_ms": 500.0 * turn}
            span |= {"at_ms": [500.0 * turn + 1000.0], "flows": flows}
            yield {"type": "interval", "node": name, "side": "destination"} | where | span

    def port(self, at: int) -> str:
        return f"{self.names[at % len(self.names)]}:e0"

    def ended(self, at: int, phase: int) -> Iterator[Record]:
        where = {"trial": 0, "repeat": 0, "phase": phase}
        mine = self.port(at)
        for step in (1, 2):
            yield frame_side("source", mine, self.port(at + step), 1000, 1000) | where
            yield frame_side("destination", self.port(at - step), mine, 1000, 1000) | where
        yield port_record(mine) | where
        yield phase_record(self.names[at]) | where


class CrowdLauncher(Launcher):
    """Hands out the nodes of a crowd."""

    def __init__(self, run: Run, seconds: float) -> None:
        self._members = {process.name: Member() for process in run.site.processes}
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                for each in self._members.values():
                    for pipe in (each.stdin, each.stdout, each.stderr):
                        pipe.close()
                Crowd(self._members, seconds).run()
                status = 0
            finally:
                os._exit(status)
        for each in self._members.values():
            for fd in (each.far_input, each.far_output, each.far_log):
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.waitpid(self._pid, 0)

    def start(self, process: Process, _command: Sequence[str]) -> Any:
        return self._members[process.name]


class Meter(Watch):
    """The plain view; notes the CPU time when measuring begins and ends."""

    def __init__(self, run: Run, log: IO[str]) -> None:
        super().__init__(run, "run-1", Console(file=log), live=False)
        self.marks: dict[str, tuple[float, float]] = {}

    def stage(self, text: str) -> None:
        super().stage(text)
        self.marks[text] = time.monotonic(), time.process_time()

    @property
    def percent(self) -> float:
        """Of one core."""
        (begin_s, begun_cpu_s), (end_s, ended_cpu_s) = (
            self.marks[name] for name in ("measuring", "ending the nodes")
        )
        return 100.0 * (ended_cpu_s - begun_cpu_s) / (end_s - begin_s)


def cost(nodes: int, seconds: float) -> Figures:
    """Run the controller once; percent of one core."""
    site = make_site(nodes, heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS)
    phases = round(seconds / PHASE_S) + 1
    trial = make_trial(site, flows=2 * nodes, phases=phases, window_s=seconds, expected_s=seconds)
    run = make_run(site, trial)
    job = {"nodes": [{"name": process.name} for process in site.processes]}
    with (
        tempfile.TemporaryDirectory(prefix="switchbench-controller-") as folder,
        tempfile.TemporaryFile("w") as log,
        CrowdLauncher(run, seconds) as launcher,
        Interrupt() as interrupt,
    ):
        meter = Meter(run, log)
        controller = Controller(run, job, RunDirectory(Path(folder) / "results"), meter)
        with meter.of(run, controller.summary):
            outcome = controller.conduct(launcher, lambda name: [name], interrupt)
        if outcome.faults:
            raise SystemExit(f"the run failed: {outcome.faults[0]}")
    return {UNIT: meter.percent}


def main() -> None:
    """Measure, then print the verdict."""
    options = arguments(__doc__, rounds=3, seconds=10.0, nodes=1024).parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    subjects = {"controller": lambda: cost(options.nodes, options.seconds)}
    percent = medians_in_turn(options.rounds, subjects)["controller"][UNIT]
    what = f"controller, {options.nodes} nodes"
    verdict(what, percent, REACH_PERCENT, unit=UNIT, at_most=True)


if __name__ == "__main__":
    main()
