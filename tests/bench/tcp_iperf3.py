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

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from common import verdict

ROOT = Path(__file__).resolve().parents[2]
HOSTS = {
    "a": {"eth0": "198.18.0.1", "ctl0": "100.64.0.1"},
    "b": {"eth0": "198.18.0.2", "ctl0": "100.64.0.2"},
}
MESSAGE_BYTES = 128 * 1024
CONGESTION = "cubic"
CONTROL_PORT = 7600
REACH = 1.0  # at least so much of iperf3's throughput, and no more of its CPU time


# --- the network ----------------------------------------------------------------------------------


class Network:
    """Two hosts and a switch, each a namespace of this process's own."""

    def __init__(self) -> None:
        self._prefix = f"sb-bench{os.getpid()}"

    def name(self, host: str) -> str:
        """The namespace of a host, or of the `switch`."""
        return f"{self._prefix}-{host}"

    def inside(self, host: str, command: Sequence[str]) -> list[str]:
        """The command, run on a host."""
        return ["ip", "netns", "exec", self.name(host), *command]

    def make(self, stack: ExitStack) -> None:
        """All of it, removed with the stack."""
        for host in ("switch", *HOSTS):
            run(["ip", "netns", "add", self.name(host)])
            stack.callback(run, ["ip", "netns", "del", self.name(host)])
        switch = ["ip", "-n", self.name("switch")]
        for bridge in ("test", "control"):
            run([*switch, "link", "add", bridge, "type", "bridge"])
            run([*switch, "link", "set", bridge, "up"])
        for host, addresses in HOSTS.items():
            self._plug_in(host, addresses)

    def _plug_in(self, host: str, addresses: dict[str, str]) -> None:
        switch, node = (["ip", "-n", self.name(place)] for place in ("switch", host))
        run([*node, "link", "set", "lo", "up"])
        for iface, bridge in (("eth0", "test"), ("ctl0", "control")):
            port = f"{host}-{bridge}"
            peer = ["peer", "name", iface, "netns", self.name(host)]
            run([*switch, "link", "add", port, "type", "veth", *peer])
            run([*switch, "link", "set", port, "master", bridge, "up"])
            run([*node, "address", "add", f"{addresses[iface]}/24", "dev", iface])
            run([*node, "link", "set", iface, "up"])

    def set_offloads(self, state: str) -> None:
        """Segmentation left to a NIC that isn't there (`on`), or done by the kernel (`off`)."""
        ports = [(host, "eth0") for host in HOSTS] + [("switch", f"{host}-test") for host in HOSTS]
        for place, iface in ports:
            words = [word for name in ("tso", "gso", "gro") for word in (name, state)]
            run(self.inside(place, ["ethtool", "-K", iface, *words]))


@contextmanager
def network() -> Iterator[Network]:
    """A network for as long as the block."""
    with ExitStack() as stack:
        made = Network()
        made.make(stack)
        yield made


def run(command: Sequence[str]) -> None:
    """A command that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One row: how many streams, and who makes segments."""

    streams: int
    offloads: str
    seconds: int


@dataclass(frozen=True)
class Run:
    """What one run of one program gave."""

    bps: float
    cpu_s_per_gb: float
    machine_s_per_gb: float


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


def judge(bps: float, spent_s: tuple[float, float], moved_bytes: float) -> Run:
    """A run from what its program says and what it spent."""
    return Run(bps, *(seconds / (moved_bytes / 1e9) for seconds in spent_s))


# --- ours -----------------------------------------------------------------------------------------


def documents(case: Case) -> list[dict[str, Any]]:
    """The job that a person would start by hand at both hosts."""
    nodes = [
        {
            "name": host,
            "control": {"address": f"{addresses['ctl0']}:{CONTROL_PORT}"},
            "ports": [
                {
                    "name": f"{host}:e0",
                    "network": "bench",
                    "iface": "eth0",
                    "tcp_address": addresses["eth0"],
                    "transports": ["tcp"],
                }
            ],
        }
        for host, addresses in HOSTS.items()
    ]
    job = {"protocol": 2, "run": "bench-tcp", "controlled": False, "heartbeat_timeout_ms": 2000}
    peers = [f"{addresses['ctl0']}:{CONTROL_PORT}" for addresses in HOSTS.values()]
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


def ours(place: Network, node: Path, case: Case, directory: Path) -> Run:
    """One run of two node processes."""
    job = directory / "job.yaml"
    job.touch(mode=0o600)
    # JSON is YAML, too.
    job.write_text("".join(f"{json.dumps(each)}\n...\n" for each in documents(case)))
    pair = Pair()
    outputs = [directory / f"{host}.ndjson" for host in HOSTS]
    for host, output in zip(HOSTS, outputs, strict=True):
        pair.start(place.inside(host, [str(node), str(job), "--name", host]), output)
    spent_s = pair.spent_s()
    (flow,) = records(outputs[1], "flow")
    if flow["side"] != "destination" or flow["corrupted"] != 0:
        raise SystemExit(f"this flow is not what was asked for: {flow}")
    bps = flow["window_payload_bytes"] * 8e9 / flow["window_ns"]
    return judge(bps, spent_s, flow["payload_bytes"])


# --- iperf3 ---------------------------------------------------------------------------------------


def iperf3(place: Network, case: Case, directory: Path) -> Run:
    """One run of iperf3's server and client."""
    server, client = (directory / f"iperf3-{side}.json" for side in ("server", "client"))
    command = ["iperf3", "--json", "--interval", "0"]
    target = HOSTS["b"]["eth0"]
    pair = Pair()
    pair.start(place.inside("b", [*command, "--server", "--one-off", "--bind", target]), server)
    await_listener(place)
    load = ["--time", str(case.seconds), "--parallel", str(case.streams)]
    load += ["--length", str(MESSAGE_BYTES), "--congestion", CONGESTION]
    pair.start(place.inside("a", [*command, "--client", target, *load]), client)
    spent_s = pair.spent_s()
    received = json.loads(client.read_text())["end"]["sum_received"]
    return judge(received["bits_per_second"], spent_s, received["bytes"])


def await_listener(place: Network) -> None:
    """Until iperf3's server listens, and no connection of the run before is in its way."""
    command = place.inside("b", ["ss", "-Hltn", "sport = :5201"])
    for _ in range(200):
        if subprocess.run(command, check=True, capture_output=True).stdout:
            return
        time.sleep(0.01)
    raise SystemExit("iperf3's server does not listen")


# --- the table ------------------------------------------------------------------------------------


def describe(run: Run) -> str:
    """One run in a line."""
    return (
        f"{run.bps / 1e9:6.2f} Gbit/s {run.cpu_s_per_gb:6.3f} CPU s/GB "
        f"{run.machine_s_per_gb:6.3f} of the machine"
    )


def median(runs: Sequence[Run]) -> Run:
    """The median of each figure by itself."""
    figures = zip(*(astuple(run) for run in runs), strict=True)
    return Run(*(statistics.median(figure) for figure in figures))


def compare(place: Network, case: Case, rounds: int, node: Path) -> None:
    """One case: both in turn, then the verdicts."""
    print(f"{case.streams} streams, TSO and GSO {case.offloads}", flush=True)
    own, peer = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            own.append(ours(place, node, case, Path(name)))
            peer.append(iperf3(place, case, Path(name)))
        print(f"  ours   {describe(own[-1])}\n  iperf3 {describe(peer[-1])}", flush=True)
    ours_median, peer_median = median(own), median(peer)
    throughput = ours_median.bps / peer_median.bps
    cpu = ours_median.cpu_s_per_gb / peer_median.cpu_s_per_gb
    machine = ours_median.machine_s_per_gb / peer_median.machine_s_per_gb
    print(f"median of {rounds}\n  ours   {describe(ours_median)}")
    print(f"  iperf3 {describe(peer_median)}; {machine:.2f} of the machine's time a GB")
    row = f"{case.streams} streams, offloads {case.offloads}"
    verdict(f"{row}, throughput by iperf3's", throughput, REACH)
    verdict(f"{row}, CPU time a GB by iperf3's", cpu, REACH, at_most=True)


def main() -> int:
    """Compare the rows that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--node", type=Path, default=ROOT / "build/engine/switchbench-node")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of sending, each run; 1 or more")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--offloads", choices=["on", "off"], nargs="+", default=["on", "off"])
    asked = parser.parse_args()
    if asked.seconds < 1:
        parser.error("--seconds is 1 or more: 0 is for ever to iperf3")
    missing = [name for name in ("iperf3", "ethtool", "ip") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print(f"skipped: needs root, and the packages of {', '.join(missing) or 'nothing more'}")
        return 77
    with network() as place:
        for offloads in asked.offloads:
            place.set_offloads(offloads)
            for streams in asked.streams:
                case = Case(streams, offloads, asked.seconds)
                compare(place, case, asked.rounds, asked.node.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
