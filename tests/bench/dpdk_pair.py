#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send to receive between two processes, against testpmd's txonly -> rxonly on the same cores.

64-byte frames in bursts of 64, as fast as they go: over memif (shared memory), and over AF_PACKET
and AF_XDP on veth through a Linux bridge. The figure is what arrives in wall-clock time: of ours
what the receiving node verified, of testpmd's what rxonly counted.

    tests/bench/dpdk_pair.py [--paths memif af_packet af_xdp]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import common
from common import RATE, Figures, Testpmd

from switchbench.labs import LabNode

MEMIF = "net_memif0,role={},socket={}/{},socket-abstract=no,rsize=10,bsize=2048"
KERNEL_DEVICES = {
    "af_packet": "net_af_packet0,iface=eth0,framecnt=2048,framesz=2048,blocksz=4096",
    "af_xdp": "net_af_xdp0,iface=eth0",
}


@dataclass(frozen=True)
class Way:
    """How each end opens its port: our keys, and testpmd's device."""

    load: str  # of ours: the most that the engine takes on for such a port
    ours: list[dict[str, str]]
    peer: list[str]
    control: tuple[str, str] = ("127.0.0.1", "127.0.0.2")
    nodes: tuple[LabNode | None, LabNode | None] = (None, None)
    mbufs: int = 8192


def memif(folder: Path) -> Way:
    """Return two ends of one shared memory; the receiver serves."""
    ours, peer = (
        [MEMIF.format(role, folder, user) for role in ("client", "server")]
        for user in ("ours", "peer")
    )
    return Way("50Mfps", [{"vdev": one} for one in ours], peer)


def kernel(driver: str, ends: Sequence[LabNode]) -> Way:
    """Return a veth at each end."""
    port = {"iface": "eth0", "driver": driver}
    near, far = ends
    control = (near.control_ipv4, far.control_ipv4)
    load = "1Mfps" if driver == "af_packet" else "25Mfps"
    return Way(load, [port] * 2, [KERNEL_DEVICES[driver]] * 2, control, (near, far), mbufs=32768)


def ours(way: Way, asked: argparse.Namespace, folder: Path) -> Figures:
    """Run two nodes once."""
    cores = common.two_cores()
    job = common.write_job(
        folder, way.control, way.ours, transport="dpdk", frame_size=64, load=way.load,
        dpdk={"header": "ipv4-udp", "burst": 64}, latency={"probes": 0}, warmup="200ms",
        window=f"{asked.seconds:g}s", cores=cores,
    )  # fmt: skip
    spaces = [[] if node is None else common.inside(node) for node in way.nodes]
    flow, _ = common.run_job(asked.node, job, spaces)
    return {RATE: flow["window_frames"] * 1e3 / flow["window_ns"]}


def peer(way: Way, seconds: float) -> Figures:
    """Run testpmd's two ends once."""
    options = ("--burst=64", "--txpkts=60", f"--total-num-mbufs={way.mbufs}")
    cores = common.two_cores()
    sender, receiver = (
        Testpmd(f"pair{end}", [way.peer[end]], mode, cores[end], cores[1 - end], options,
                node.namespace.name if (node := way.nodes[end]) else None)
        for end, mode in enumerate(("txonly", "rxonly"))
    )  # fmt: skip
    with receiver.running(), sender.running():
        receiver.begin()
        sender.begin()
        time.sleep(0.2)
        receiver.end()
        receiver.begin()
        begun = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun
        received, _ = receiver.end()
        sender.end()
    return {RATE: received / took / 1e6}


def compare(name: str, way: Way, asked: argparse.Namespace, folder: Path) -> None:
    """Compare both ends with testpmd's over a path."""
    subjects = {
        "ours": lambda: ours(way, asked, folder),
        "testpmd": lambda: peer(way, asked.seconds),
    }
    common.beside_peer(f"{name}, send to receive", asked.rounds, subjects, {RATE: 1.0})


def main() -> None:
    """Compare over all paths, one after the other."""
    ways = ["memif", "af_packet", "af_xdp"]
    asked = common.arguments(__doc__, node=common.NODE, paths=ways).parse_args()
    common.need(common.TESTPMD)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in asked.paths:
            if name == "memif":
                compare(name, memif(folder), asked, folder)
                continue
            common.need("ip", root=True)
            with common.spaces(2) as ends:
                time.sleep(0.5)
                compare(name, kernel(name, ends), asked, folder)


if __name__ == "__main__":
    main()
