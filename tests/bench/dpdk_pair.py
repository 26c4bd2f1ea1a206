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

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import common
from spaces import inside, spaces

REACH = 1.0
TRAFGEN = """{ eth(da=02:00:00:00:01:02, sa=02:00:00:00:01:01),
  ipv4(sa=198.18.0.1, da=198.18.0.2), udp(sp=49152, dp=9), fill(0x42, 18) }
"""


@dataclass(frozen=True)
class Path:
    """How each end opens its port: our words, and testpmd's device."""

    ours: tuple[tuple[str, ...], tuple[str, ...]]
    peer: tuple[str, str]
    netns: tuple[str | None, str | None] = (None, None)
    mbufs: int = 2048


def memif(folder: pathlib.Path) -> Path:
    """Two ends of one shared memory; the receiver serves."""

    def device(role: str, socket: str) -> str:
        path = folder / socket
        return f"net_memif0,role={role},socket={path},socket-abstract=no,rsize=10,bsize=2048"

    return Path(
        ours=((f"vdev={device('client', 'ours')}",), (f"vdev={device('server', 'ours')}",)),
        peer=(device("client", "peer"), device("server", "peer")),
        mbufs=8192,
    )


def kernel(driver: str, near: str, far: str) -> Path:
    """A veth at each end."""
    words = tuple(("iface=eth0", f"driver={driver}", f"netns={name}") for name in (near, far))
    device = {
        "af_packet": "net_af_packet0,iface=eth0,framecnt=2048,framesz=2048,blocksz=4096",
        "af_xdp": "net_af_xdp0,iface=eth0",
    }[driver]
    return Path(ours=(words[0], words[1]), peer=(device, device), netns=(near, far), mbufs=32768)


def ours(program: str, path: Path, cores: tuple[int, int], seconds: float) -> float:
    """One run of our two ends: million frames a second, verified."""
    command = common.pinned(cores[1], program, "receive", str(seconds), *path.ours[1])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        common.until(receiver.stdout, "ready\n")
        command = common.pinned(cores[0], program, "send", str(seconds + 2), *path.ours[0])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            said, _ = receiver.communicate(timeout=60)
            sent, _ = sender.communicate(timeout=60)
    found = re.match(r"(\d+) frames/s", said)
    if found is None or receiver.returncode != 0:
        raise SystemExit(f"{program} said: {said}")
    share = re.search(r"([\d.]+) % of its time in the kernel", sent)
    if share is not None and path.netns[0] is not None:
        print(f"  of the sender's time, {share[1]} % was the kernel's (veth, bridge, delivery)")
    return float(found[1]) / 1e6


def peer(path: Path, cores: tuple[int, int], seconds: float) -> float:
    """One run of testpmd's two ends: million frames a second."""
    options = ("--burst=64", "--txpkts=60", f"--total-num-mbufs={path.mbufs}")
    ends = [
        common.Testpmd(
            common.prefix(f"pair{end}"),
            [path.peer[end]],
            ("txonly", "rxonly")[end],
            cores[end],
            cores[1 - end],
            options,
            path.netns[end],
        )
        for end in (0, 1)
    ]
    with ends[1].running(), ends[0].running():
        ends[1].begin()
        ends[0].begin()
        time.sleep(0.2)
        ends[1].end()
        ends[1].begin()
        begun = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun
        received, _ = ends[1].end()
        ends[0].end()
    return received / took / 1e6


def arrived(far: str) -> int:
    """Frames that the far interface has received."""
    command = inside(far, "cat", "/sys/class/net/eth0/statistics/rx_packets")
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def arrival(command: list[str], far: str, seconds: float) -> float:
    """One run of a sender to whom nobody listens: million frames a second at the far interface."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            time.sleep(1)
            before, begun = arrived(far), time.monotonic()
            time.sleep(seconds)
            frames, took = arrived(far) - before, time.monotonic() - begun
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # trafgen's child does not hear of a SIGTERM
    return frames / took / 1e6


def compare_senders(name: str, program: str, path: Path, rounds: int, seconds: float) -> None:
    """Our sender alone and trafgen, in turn, and the verdict."""
    core, (near, far) = common.two_cores()[0], path.netns
    assert near is not None
    assert far is not None
    print(f"{name}: sender on core {core}, nobody receives, M frames/s at the far interface")
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as conf:
        conf.write(TRAFGEN)
        conf.flush()
        words = ("--dev", "eth0", "--conf", conf.name, "--cpus", "1", "--no-cpu-stats")
        ours = common.pinned(core, program, "send", str(seconds + 2), *path.ours[0])
        theirs = common.pinned(core, "trafgen", *words, netns=near)
        subjects = {
            "ours": lambda: arrival(ours, far, seconds),
            "trafgen": lambda: arrival(theirs, far, seconds),
        }
        medians = common.in_turn(rounds, subjects)
    ratio = medians["ours"] / medians["trafgen"]
    common.verdict(f"{name}, send / trafgen", ratio, REACH)


def compare(name: str, program: str, path: Path, rounds: int, seconds: float) -> None:
    """One path: both in turn, and the verdict."""
    cores = common.two_cores()
    print(f"{name}: sender on core {cores[0]}, receiver on core {cores[1]}, M frames/s arrived")
    subjects = {
        "ours": lambda: ours(program, path, cores, seconds),
        "testpmd": lambda: peer(path, cores, seconds),
    }
    medians = common.in_turn(rounds, subjects)
    ratio = medians["ours"] / medians["testpmd"]
    common.verdict(f"{name}, send to receive / testpmd", ratio, REACH)


def main() -> int:
    """All paths, one after the other."""
    parser = common.arguments(__doc__)
    parser.add_argument("--program", default=common.built("bench_dpdk"))
    parser.add_argument("--paths", nargs="+", default=["memif", "af_packet", "af_xdp"])
    asked = parser.parse_args()
    common.need(common.TESTPMD)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.paths:
            if name == "memif":
                path = memif(pathlib.Path(folder))
                compare(name, asked.program, path, asked.rounds, asked.seconds)
                continue
            common.need("trafgen", root=True)
            with spaces(2, "eth0") as (near, far):
                time.sleep(0.5)
                path = kernel(name, near, far)
                compare(name, asked.program, path, asked.rounds, asked.seconds)
                if name == "af_packet":
                    compare_senders(name, asked.program, path, asked.rounds, asked.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
