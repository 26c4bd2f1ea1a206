#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send to receive between two processes, against testpmd's txonly -> rxonly on the same cores.

64-byte frames in bursts of 64, as fast as they go: over memif (shared memory), and over AF_PACKET
and AF_XDP on veth through a Linux bridge. The figure is what arrives in wall-clock time: of ours
what the receiver verified, of testpmd's what rxonly counted. `trafgen` (netsniff-ng) only sends:
against it stands what our sender gets to the far interface where nobody receives, because on veth
a receiver's socket is filled by the sender's core.

    tests/bench/dpdk_pair.py [--paths memif af_packet af_xdp]
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import common
from common import RATE, Figures, Testpmd
from spaces import inside, spaces

TRAFGEN = """{ eth(da=02:00:00:00:01:02, sa=02:00:00:00:01:01),
  ipv4(sa=198.18.0.1, da=198.18.0.2), udp(sp=49152, dp=9), fill(0x42, 18) }
"""
KERNEL_DEVICES = {
    "af_packet": "net_af_packet0,iface=eth0,framecnt=2048,framesz=2048,blocksz=4096",
    "af_xdp": "net_af_xdp0,iface=eth0",
}


@dataclass(frozen=True)
class Way:
    """How each end opens its port: our words, and testpmd's device."""

    ours: list[list[str]]
    peer: list[str]
    netns: tuple[str | None, str | None] = (None, None)
    mbufs: int = 8192


def memif(folder: Path) -> Way:
    """Return two ends of one shared memory; the receiver serves."""
    device = "net_memif0,role={},socket={}/{},socket-abstract=no,rsize=10,bsize=2048"
    ours, peer = (
        [device.format(role, folder, user) for role in ("client", "server")]
        for user in ("ours", "peer")
    )
    return Way([[f"vdev={one}"] for one in ours], peer)


def kernel(driver: str, ends: tuple[str, str]) -> Way:
    """Return a veth at each end."""
    words = [["iface=eth0", f"driver={driver}", f"netns={name}"] for name in ends]
    return Way(words, [KERNEL_DEVICES[driver]] * 2, ends, mbufs=32768)


def ours(way: Way, asked: argparse.Namespace) -> Figures:
    """Run our two ends once."""
    cores, seconds = common.two_cores(), asked.seconds
    commands = [
        common.pinned(cores[end], asked.program, role, time_s, *way.ours[end])
        for end, (role, time_s) in enumerate((("send", seconds + 2), ("receive", seconds)))
    ]
    with subprocess.Popen(commands[1], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        common.until(receiver.stdout, "ready\n")
        with subprocess.Popen(commands[0], stdout=subprocess.PIPE, text=True) as sender:
            said, _ = receiver.communicate(timeout=60)
            sent, _ = sender.communicate(timeout=60)
    share = re.search(r"([\d.]+) % of its time in the kernel", sent)
    if share is not None and way.netns[0] is not None:
        print(f"  of the sender's time, {share[1]} % was the kernel's (veth, bridge, delivery)")
    return common.rate_in(said)


def peer(way: Way, seconds: float) -> Figures:
    """Run testpmd's two ends once."""
    options = ("--burst=64", "--txpkts=60", f"--total-num-mbufs={way.mbufs}")
    cores = common.two_cores()
    sender, receiver = (
        Testpmd(f"pair{end}", [way.peer[end]], mode, cores[end], cores[1 - end], options,
                way.netns[end])
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


def arrival(command: list[str], far: str, seconds: float) -> Figures:
    """Run a sender without a receiver; count at the far interface."""

    def arrived() -> int:
        words = inside(far, "cat", "/sys/class/net/eth0/statistics/rx_packets")
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=null, stderr=null, start_new_session=True) as process:
        try:
            time.sleep(1)
            before, begun = arrived(), time.monotonic()
            time.sleep(seconds)
            frames, took = arrived() - before, time.monotonic() - begun
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # trafgen's child does not hear of a SIGTERM
    return {RATE: frames / took / 1e6}


def compare(name: str, way: Way, asked: argparse.Namespace) -> None:
    """Compare both ends with testpmd's over a path, over AF_PACKET our sender with trafgen, too."""
    subjects = {"ours": lambda: ours(way, asked), "testpmd": lambda: peer(way, asked.seconds)}
    common.beside_peer(f"{name}, send to receive", asked.rounds, subjects, {RATE: 1.0})
    if name != "af_packet":
        return
    core, (near, far) = common.two_cores()[0], way.netns
    assert far is not None
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as conf:
        conf.write(TRAFGEN)
        conf.flush()
        words = ("--dev", "eth0", "--conf", conf.name, "--cpus", "1", "--no-cpu-stats")
        commands = {
            "ours": common.pinned(core, asked.program, "send", asked.seconds + 2, *way.ours[0]),
            "trafgen": common.pinned(core, "trafgen", *words, netns=near),
        }
        subjects = {
            who: lambda command=command: arrival(command, far, asked.seconds)
            for who, command in commands.items()
        }
        common.beside_peer(f"{name}, send, nobody receives", asked.rounds, subjects, {RATE: 1.0})


def main() -> None:
    """Compare over all paths, one after the other."""
    ways = ["memif", "af_packet", "af_xdp"]
    asked = common.arguments(__doc__, program=common.built("bench_dpdk"), paths=ways).parse_args()
    common.need(common.TESTPMD)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.paths:
            if name == "memif":
                compare(name, memif(Path(folder)), asked)
                continue
            common.need("trafgen", root=True)
            with spaces(2, "eth0") as (near, far):
                time.sleep(0.5)
                compare(name, kernel(name, (near, far)), asked)


if __name__ == "__main__":
    main()
