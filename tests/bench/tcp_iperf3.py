#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""TCP between two node processes against iperf3: throughput, and CPU time per GB.

Two namespaces, a bridge between them, nothing shaped. Both programs send one way in messages of
128 KiB (iperf3's own default) with the same congestion control, in turn, so that whatever else the
machine does hits both. Ours verifies every byte that comes, iperf3 looks at none.

  throughput  payload at the receiver, over the whole time of sending (nobody warms up)
  CPU         user and system time of both processes, from their starts to their ends, per GB that
              they moved in that time

Segments are as the kernel has them on veth (TSO and GSO on).

    tests/bench/tcp_iperf3.py [--node build/engine/switchbench-node] [--rounds 5]
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import NODE, Figures, arguments, beside_peer, need, switchbench
from spaces import address, inside, spaces

HOSTS = ("a", "b")
MESSAGE_BYTES = 128 * 1024
CONGESTION = "cubic"
RATE, CPU = "Gbit/s", "CPU s/GB"


class Pair:
    """A program's two processes, and the CPU time that they spend."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], output: Path) -> None:
        """Start one of them; what it prints goes into a file."""
        with output.open("wb") as stdout:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout)
        self._processes.append(process)

    def end(self) -> None:
        """Wait for both."""
        self._cpu_s = 0.0
        for process in self._processes:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self._cpu_s += used.ru_utime + used.ru_stime
            if process.returncode != 0:
                raise SystemExit(f"{process.args!r} ended with {process.returncode}")

    def figures(self, bps: float, moved_bytes: float) -> Figures:
        """Return a run's figures from what its program says and what it spent."""
        return {RATE: bps / 1e9, CPU: self._cpu_s / (moved_bytes / 1e9)}


def write_job(folder: Path, streams: int, seconds: int) -> Path:
    """Write the job that a person would start by hand at both hosts."""
    port = {"network": "bench", "iface": "eth0", "transports": ["tcp"], "line_rate": "100Gbit"}
    site = {
        "launch": "hand",
        "hosts": list(HOSTS),
        "control": {"addresses": {host: address(i, 1) for i, host in enumerate(HOSTS)}},
        "ports": {"e0": port},
        "overrides": {host: {"e0": {"tcp_address": address(i)}} for i, host in enumerate(HOSTS)},
    }
    test = {"pattern": "chain", "connectivity_check": False, "load": "100%", "repeat": 1}
    times = {"warmup": "0s", "window": f"{seconds}s", "message_size": MESSAGE_BYTES}
    tcp = {"streams_per_flow": streams, "congestion": CONGESTION}
    conf, job = folder / "conf.yaml", folder / "job.ndjson"
    whole = {"switchbench": 1, "site": site, "transport": "tcp", "tcp": tcp}
    conf.write_text(json.dumps(whole | times | {"tests": [test]}))  # JSON is YAML, too
    switchbench("plan", str(conf), "--job", str(job))
    return job


def ours(names: Sequence[str], node: Path, job: Path) -> Figures:
    """Run two node processes once."""
    pair = Pair()
    for name, host in zip(names, HOSTS, strict=True):
        pair.start(inside(name, str(node), str(job), "--name", host), job.with_name(f"{host}.log"))
    pair.end()
    records = map(json.loads, job.with_name(f"{HOSTS[1]}.log").read_text().splitlines())
    (flow,) = (record for record in records if record["type"] == "flow")
    if flow["side"] != "destination" or flow["corrupted"] != 0:
        raise SystemExit(f"this flow is not what was asked for: {flow}")
    return pair.figures(
        flow["window_payload_bytes"] * 8e9 / flow["window_ns"], flow["payload_bytes"]
    )


def iperf3(names: Sequence[str], streams: int, seconds: int, folder: Path) -> Figures:
    """Run iperf3's server and client once."""
    server, client = (folder / f"iperf3-{side}.json" for side in ("server", "client"))
    command, target = ["iperf3", "--json", "--interval", "0"], address(1)
    pair = Pair()
    pair.start(inside(names[1], *command, "--server", "--one-off", "--bind", target), server)
    listening = inside(names[1], "ss", "-Hltn", "sport = :5201")
    for _ in range(200):  # until no connection of the run before is in its way
        if subprocess.run(listening, check=True, capture_output=True).stdout:
            break
        time.sleep(0.01)
    load = ["--time", str(seconds), "--parallel", str(streams)]
    load += ["--length", str(MESSAGE_BYTES), "--congestion", CONGESTION]
    pair.start(inside(names[0], *command, "--client", target, *load), client)
    pair.end()
    received = json.loads(client.read_text())["end"]["sum_received"]
    return pair.figures(received["bits_per_second"], received["bytes"])


def main() -> None:
    """Compare the chosen rows."""
    asked = arguments(__doc__, node=NODE, streams=[1, 8]).parse_args()
    need("iperf3", "ip", root=True)
    seconds = max(1, round(asked.seconds))  # 0 is for ever to iperf3
    with spaces(len(HOSTS), "eth0", "ctl0") as names, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for streams in asked.streams:
            job = write_job(folder, streams, seconds)
            subjects = {
                "ours": lambda job=job: ours(names, asked.node.resolve(), job),
                "iperf3": lambda streams=streams: iperf3(names, streams, seconds, folder),
            }
            beside_peer(f"{streams} streams", asked.rounds, subjects, {RATE: 1.0}, {CPU: 1.0})


if __name__ == "__main__":
    main()
