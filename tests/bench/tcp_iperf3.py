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
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import (
    HOSTS,
    NODE,
    Figures,
    Pair,
    arguments,
    beside_peer,
    inside,
    need,
    run_job,
    spaces,
    write_job,
)

from switchbench.labs import LabNode

MESSAGE_BYTES = 128 * 1024
CONGESTION = "cubic"
RATE, CPU = "Gbit/s", "CPU s/GB"


def figures(bps: float, moved_bytes: float, cpu_s: float) -> Figures:
    """Return a run's figures from what its program says and what it spent."""
    return {RATE: bps / 1e9, CPU: cpu_s / (moved_bytes / 1e9)}


def ours(nodes: Sequence[LabNode], node: Path, job: Path) -> Figures:
    """Run two node processes once."""
    flow, cpu_s = run_job(node, job, [inside(node) for node in nodes])
    bps = flow["window_payload_bytes"] * 8e9 / flow["window_ns"]
    return figures(bps, flow["payload_bytes"], cpu_s)


def iperf3(nodes: Sequence[LabNode], streams: int, seconds: int, folder: Path) -> Figures:
    """Run iperf3's server and client once."""
    server, client = (folder / f"iperf3-{side}.json" for side in ("server", "client"))
    command, target = ["iperf3", "--json", "--interval", "0"], nodes[1].ipv4
    pair = Pair()
    pair.start(inside(nodes[1], *command, "--server", "--one-off", "--bind", target), server)
    listening = inside(nodes[1], "ss", "-Hltn", "sport = :5201")
    for _ in range(200):  # until no connection of the run before is in its way
        if subprocess.run(listening, check=True, capture_output=True).stdout:
            break
        time.sleep(0.01)
    load = ["--time", str(seconds), "--parallel", str(streams)]
    load += ["--length", str(MESSAGE_BYTES), "--congestion", CONGESTION]
    pair.start(inside(nodes[0], *command, "--client", target, *load), client)
    pair.end()
    received = json.loads(client.read_text())["end"]["sum_received"]
    return figures(received["bits_per_second"], received["bytes"], pair.cpu_s)


def main() -> None:
    """Compare the chosen rows."""
    asked = arguments(__doc__, node=NODE, streams=[1, 8]).parse_args()
    need("iperf3", "ip", root=True)
    seconds = max(1, round(asked.seconds))  # 0 is for ever to iperf3
    with spaces(len(HOSTS)) as nodes, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        controls = [node.control_ipv4 for node in nodes]
        ports = [{"iface": "eth0", "tcp_address": node.ipv4} for node in nodes]
        for streams in asked.streams:
            tcp = {"streams_per_flow": streams, "congestion": CONGESTION}
            times = {"warmup": "0s", "window": f"{seconds}s", "message_size": MESSAGE_BYTES}
            job = write_job(folder, controls, ports, transport="tcp", tcp=tcp, load="100%", **times)
            subjects = {
                "ours": lambda job=job: ours(nodes, asked.node, job),
                "iperf3": lambda streams=streams: iperf3(nodes, streams, seconds, folder),
            }
            beside_peer(f"{streams} streams", asked.rounds, subjects, {RATE: 1.0}, {CPU: 1.0})


if __name__ == "__main__":
    main()
