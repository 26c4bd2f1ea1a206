#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""TCP between two node processes against iperf3: throughput, and CPU time per GB.

Two namespaces, a bridge between them, nothing shaped. Both programs send one way in messages of
128 KiB (iperf3's own default) with the same congestion control, in turn, so that whatever else the
machine does hits both. Ours verifies every byte that comes, iperf3 looks at none.

  throughput  payload at the receiver, over the whole time of sending (nobody warms up)
  CPU         user and system time of both processes, from their starts to their ends, per GB that
              they moved in that time; and the machine's (elapsed - idle), which counts what the
              kernel does outside of the two and whatever else runs

Segments are as the kernel has them on veth (TSO and GSO on), and as the lab sets them (off: each
frame goes through the switch by itself).

    tests/bench/tcp_iperf3.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import Figures, arguments, medians_in_turn, need, verdict
from spaces import address, inside, spaces, switch_of

HOSTS = ("a", "b")
MESSAGE_BYTES = 128 * 1024
CONGESTION = "cubic"
CONTROL_PORT = 7600
RATE, CPU, MACHINE = "Gbit/s", "CPU s/GB", "of the machine s/GB"
REACH = 1.0  # at least so much of iperf3's throughput, and no more of its CPU time


def set_offloads(names: Sequence[str], state: str) -> None:
    """Segmentation left to a NIC that isn't there (`on`), or done by the kernel (`off`)."""
    ports = [(name, "eth0") for name in names]
    ports += [(switch_of(name), f"p0-{index}") for index, name in enumerate(names)]
    for place, iface in ports:
        words = [word for name in ("tso", "gso", "gro") for word in (name, state)]
        subprocess.run(inside(place, "ethtool", "-K", iface, *words), check=True)


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One row: how many streams, and who makes segments."""

    streams: int
    offloads: str
    seconds: int


class Pair:
    """A program's two processes, and what they and the machine spend while they live."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._idle_s = idle_s()
        self._began_s = time.monotonic()

    def start(self, command: Sequence[str], output: Path) -> None:
        """Starts one of them; what it prints goes into a file."""
        with output.open("wb") as stdout:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout)
        self._processes.append(process)

    def spent_s(self) -> tuple[float, float]:
        """Waits for both: their CPU time, and the machine's."""
        cpu_s = 0.0
        for process in self._processes:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu_s += used.ru_utime + used.ru_stime
        for process in self._processes:
            if process.returncode != 0:
                raise SystemExit(f"{process.args!r} ended with {process.returncode}")
        elapsed_s = (time.monotonic() - self._began_s) * (os.cpu_count() or 1)
        return cpu_s, elapsed_s - (idle_s() - self._idle_s)


def idle_s() -> float:
    """Idle time of all cores since boot."""
    return float(Path("/proc/uptime").read_text().split()[1])


def figures(bps: float, spent_s: tuple[float, float], moved_bytes: float) -> Figures:
    """A run's figures from what its program says and what it spent."""
    cpu, machine = (seconds / (moved_bytes / 1e9) for seconds in spent_s)
    return {RATE: bps / 1e9, CPU: cpu, MACHINE: machine}


# --- ours -----------------------------------------------------------------------------------------


def documents(case: Case) -> list[dict[str, Any]]:
    """The job that a person would start by hand at both hosts."""
    nodes = [
        {
            "name": host,
            "control": {"address": f"{address(index, 1)}:{CONTROL_PORT}"},
            "ports": [
                {
                    "name": f"{host}:e0",
                    "network": "bench",
                    "iface": "eth0",
                    "tcp_address": address(index),
                    "transports": ["tcp"],
                }
            ],
        }
        for index, host in enumerate(HOSTS)
    ]
    job = {"protocol": 2, "run": "bench-tcp", "controlled": False, "heartbeat_timeout_ms": 2000}
    peers = [f"{address(index, 1)}:{CONTROL_PORT}" for index in range(len(HOSTS))]
    trial = {
        "id": 0,
        "transport": "tcp",
        "parts": [{"network": "bench", "ranks": [f"{host}:e0" for host in HOSTS]}],
        "pattern": {"name": "chain"},
        "seed": 1,
        "connectivity_check": False,
        "traffic": "stream",
        "sizes": [MESSAGE_BYTES],
        "load": {"percent": 100},
        "warmup_ns": 0,
        "window_ns": case.seconds * 1_000_000_000,
        "cooldown_ns": 0,
        "drain_timeout_ns": 100_000_000,
        "drain_max_ns": 2_000_000_000,
        "tcp": {"streams": case.streams, "congestion": CONGESTION},
    }
    return [
        {"job": {**job, "barrier_timeout_ms": 5000, "nodes": nodes}},
        {"peers": {"addresses": peers, "key": os.urandom(32).hex()}},
        {"trial": trial},
        {"quit": True},
    ]


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    """A node's records of one type."""
    every = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in every if record["type"] == kind]


def ours(names: Sequence[str], node: Path, case: Case, directory: Path) -> Figures:
    """One run of two node processes."""
    job = directory / "job.yaml"
    job.touch(mode=0o600)
    # JSON is YAML, too.
    job.write_text("".join(f"{json.dumps(each)}\n...\n" for each in documents(case)))
    pair = Pair()
    outputs = [directory / f"{host}.ndjson" for host in HOSTS]
    for name, host, output in zip(names, HOSTS, outputs, strict=True):
        pair.start(inside(name, str(node), str(job), "--name", host), output)
    spent_s = pair.spent_s()
    (flow,) = records(outputs[1], "flow")
    if flow["side"] != "destination" or flow["corrupted"] != 0:
        raise SystemExit(f"this flow is not what was asked for: {flow}")
    bps = flow["window_payload_bytes"] * 8e9 / flow["window_ns"]
    return figures(bps, spent_s, flow["payload_bytes"])


# --- iperf3 ---------------------------------------------------------------------------------------


def iperf3(names: Sequence[str], case: Case, directory: Path) -> Figures:
    """One run of iperf3's server and client."""
    server, client = (directory / f"iperf3-{side}.json" for side in ("server", "client"))
    command = ["iperf3", "--json", "--interval", "0"]
    target = address(1)
    pair = Pair()
    pair.start(inside(names[1], *command, "--server", "--one-off", "--bind", target), server)
    await_listener(names[1])
    load = ["--time", str(case.seconds), "--parallel", str(case.streams)]
    load += ["--length", str(MESSAGE_BYTES), "--congestion", CONGESTION]
    pair.start(inside(names[0], *command, "--client", target, *load), client)
    spent_s = pair.spent_s()
    received = json.loads(client.read_text())["end"]["sum_received"]
    return figures(received["bits_per_second"], spent_s, received["bytes"])


def await_listener(name: str) -> None:
    """Until iperf3's server listens, and no connection of the run before is in its way."""
    command = inside(name, "ss", "-Hltn", "sport = :5201")
    for _ in range(200):
        if subprocess.run(command, check=True, capture_output=True).stdout:
            return
        time.sleep(0.01)
    raise SystemExit("iperf3's server does not listen")


def compare(names: Sequence[str], case: Case, rounds: int, node: Path) -> None:
    """One case: both in turn, then the verdicts."""
    row = f"{case.streams} streams, TSO and GSO {case.offloads}"
    print(row, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subjects = {
            "ours": lambda: ours(names, node, case, Path(folder)),
            "iperf3": lambda: iperf3(names, case, Path(folder)),
        }
        found = medians_in_turn(rounds, subjects)
    ratio = {figure: found["ours"][figure] / found["iperf3"][figure] for figure in (RATE, CPU)}
    verdict(f"{row}, throughput by iperf3's", ratio[RATE], REACH)
    verdict(f"{row}, CPU time a GB by iperf3's", ratio[CPU], REACH, at_most=True)


def main() -> int:
    """Compare the rows that are asked for."""
    parser = arguments(__doc__, node=True)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--offloads", choices=["on", "off"], nargs="+", default=["on", "off"])
    asked = parser.parse_args()
    if asked.seconds < 1:
        parser.error("--seconds is 1 or more: 0 is for ever to iperf3")
    need("iperf3", "ethtool", "ip", root=True)
    with spaces(len(HOSTS), "eth0", "ctl0") as names:
        for offloads in asked.offloads:
            set_offloads(names, offloads)
            for streams in asked.streams:
                case = Case(streams, offloads, round(asked.seconds))
                compare(names, case, asked.rounds, asked.node.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
