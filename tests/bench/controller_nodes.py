#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The controller's own cost with 1,024 nodes: CPU time of its process, of one core.

One process plays all nodes: it has the other ends of their pipes, answers the documents of the
protocol, and writes records at the rate at which the engine writes them. The controller, the
results directory and the plain view are the command's own. Three loads, in turn:

  idle       heartbeats alone
  intervals  `progress` twice a second and `interval` once a second of each node
  phases     the same, and phases of five seconds: both sides of two flows per node, `port`, `phase`

Counted is the CPU time of the process and its threads from the last node's `ready` to the end.

    tests/bench/controller_nodes.py [--nodes 1024] [--rounds 3] [--seconds 10] [--profile]
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import resource
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
if sys.prefix == sys.base_prefix and PYTHON.exists():
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "scripts/python")]

from common import arguments, in_turn, verdict  # noqa: E402
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
LOADS = ("idle", "intervals", "phases")

Record = dict[str, Any]


class Pipes:
    """A node's three pipes: our ends for the controller, the others for the crowd."""

    def __init__(self) -> None:
        self.far_input, ours = os.pipe()
        self.input: IO[bytes] = os.fdopen(ours, "wb", 0)
        ours, self.far_output = os.pipe()
        self.output: IO[bytes] = os.fdopen(ours, "rb", 0)
        ours, self.far_log = os.pipe()
        self.log: IO[bytes] = os.fdopen(ours, "rb", 0)

    def close_near(self) -> None:
        for pipe in (self.input, self.output, self.log):
            pipe.close()

    def close_far(self) -> None:
        for fd in (self.far_input, self.far_output, self.far_log):
            os.close(fd)


class Member:
    """What the controller sees of a node's process."""

    def __init__(self, pipes: Pipes) -> None:
        self.stdin, self.stdout, self.stderr = pipes.input, pipes.output, pipes.log
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """It has ended when it was told to: its input is closed."""
        self.returncode = 0
        return 0

    def terminate(self) -> None:
        """Nothing is left to end."""

    kill = terminate

    def send_signal(self, _number: int) -> None:
        """Nothing is left to end."""


class Crowd:
    """All nodes, in the process that this one forks."""

    def __init__(self, names: Sequence[str], pipes: Sequence[Pipes], load: str, end_s: float):
        self.names, self.pipes, self.load, self.duration_s = names, pipes, load, end_s
        self.key = b64encode(bytes(PrivateKey.generate().public_key)).decode()

    def say(self, at: int, *records: Record) -> None:
        text = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        os.write(self.pipes[at].far_output, text)

    def hear(self, word: bytes) -> None:
        """Until every node has been told the document of this name, to its end."""
        for pipe in self.pipes:
            text = b""
            while word not in text or not text.endswith(b"\n...\n"):
                text = text[text.find(word) :] if word in text else text[-len(word) :]
                text += os.read(pipe.far_input, 1 << 20)

    def run(self) -> None:
        everyone = range(len(self.names))
        self.hear(b"job:")
        for at, name in enumerate(self.names):
            mac = f"02:00:00:00:{at >> 8:02x}:{at & 255:02x}"
            port = {"port": f"{name}:e0", "transport": "dpdk", "mac": mac, "line_rate_bps": 10**8}
            self.say(at, {"type": "port-open", "node": name} | port, hello(name, key=self.key))
        self.hear(b"peers:")
        for at in everyone:
            self.say(at, {"type": "ready", "node": self.names[at]})
        self.hear(b"trial:")
        if self.load == "idle":
            time.sleep(self.duration_s)
        else:
            self.speak()
        for at in everyone:
            self.say(at, trial_record(self.names[at]))
        self.hear(b"quit:")
        for at in everyone:
            self.say(at, {"type": "bye", "node": self.names[at], "status": 0, "reason": "quit"})

    def speak(self) -> None:
        """Each node at its own moment of each period; phases end at once on all of them."""
        begin_s = time.monotonic()
        share = max(1, round(len(self.names) * TICK_S / PROGRESS_S))
        moments = [range(at, min(at + share, len(self.names))) for at in
                   range(0, len(self.names), share)]  # fmt: skip
        tick = phase = 0
        while (now_s := time.monotonic() - begin_s) < self.duration_s:
            turn, place = divmod(tick, len(moments))
            for at in moments[place]:
                self.say(at, *self.progress(at, phase, turn))
            if self.load == "phases" and now_s >= (phase + 1) * PHASE_S:
                for at in range(len(self.names)):
                    self.say(at, *self.ended(at, phase))
                phase += 1
            tick += 1
            time.sleep(max(0.0, begin_s + tick * TICK_S - time.monotonic()))

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

    def __init__(self, run: Run, load: str, seconds: float) -> None:
        self._pipes = {process.name: Pipes() for process in run.site.processes}
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                for pipes in self._pipes.values():
                    pipes.close_near()
                Crowd(list(self._pipes), list(self._pipes.values()), load, seconds).run()
                status = 0
            finally:
                os._exit(status)
        for pipes in self._pipes.values():
            pipes.close_far()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.waitpid(self._pid, 0)

    def start(self, process: Process, _command: Sequence[str]) -> Any:
        return Member(self._pipes[process.name])


class Meter(Watch):
    """The plain view; notes the CPU time when measuring begins and ends."""

    def __init__(self, run: Run, log: IO[str], profiler: cProfile.Profile | None) -> None:
        super().__init__(run, "run-1", Console(file=log), live=False)
        self.marks: dict[str, tuple[float, float]] = {}
        self.records = 0
        self._profiler = profiler

    def stage(self, text: str) -> None:
        super().stage(text)
        self.marks[text] = time.monotonic(), time.process_time()
        if self._profiler is not None and text == "measuring":
            self._profiler.enable()
        elif self._profiler is not None:
            self._profiler.disable()

    def record(self, record: Record) -> None:
        super().record(record)
        self.records += 1

    @property
    def percent(self) -> float:
        """Of one core."""
        (begin_s, begun_cpu_s), (end_s, ended_cpu_s) = (
            self.marks[name] for name in ("measuring", "ending the nodes")
        )
        return 100.0 * (ended_cpu_s - begun_cpu_s) / (end_s - begin_s)


def cost_percent(load: str, nodes: int, seconds: float, profiler: cProfile.Profile | None) -> float:
    """One run; percent of one core."""
    site = make_site(nodes, heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS)
    phases = round(seconds / PHASE_S) + 1
    trial = make_trial(site, flows=2 * nodes, phases=phases, window_s=seconds, expected_s=seconds)
    run = make_run(site, trial)
    job = {"nodes": [{"name": process.name} for process in site.processes]}
    with (
        tempfile.TemporaryDirectory(prefix="switchbench-controller-") as folder,
        tempfile.TemporaryFile("w") as log,
        CrowdLauncher(run, load, seconds) as launcher,
        Interrupt() as interrupt,
    ):
        meter = Meter(run, log, profiler)
        controller = Controller(run, job, RunDirectory(Path(folder) / "results"), meter)
        with meter.of(run, controller.summary):
            outcome = controller.conduct(launcher, lambda name: [name], interrupt)
        if outcome.faults:
            raise SystemExit(f"the run failed: {outcome.faults[0]}")
    print(f"    {load}: {meter.records:,} records")
    return meter.percent


def main() -> int:
    """All loads in turn, then the verdicts."""
    parser = arguments(__doc__, rounds=3, seconds=10.0)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--load", choices=LOADS, action="append", help="all when not named")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    profiler = cProfile.Profile() if options.profile else None
    loads = {
        load: partial(cost_percent, load, options.nodes, options.seconds, profiler)
        for load in options.load or LOADS
    }
    medians = in_turn(options.rounds, loads, unit="% of a core")
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    for load, percent in medians.items():
        what = f"controller, {options.nodes} nodes, {load}"
        verdict(what, percent, REACH_PERCENT, unit="% of a core", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
