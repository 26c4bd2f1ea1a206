#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames a second of one core on net_null: our send path against `dpdk-testpmd` txonly.

Both send 64-byte frames (60 without FCS) in bursts of 64, in turn, so that whatever else the
machine does hits both. Ours are IPv4/UDP frames with a signature that differs in each; testpmd's
are all the same. Seconds are of the sending thread's CPU time, so that neighbours on the core cost
little. Prints the median of each and their ratio; ends 1 when it is below --at-least.

    tests/bench/dpdk_txonly.py build/tests/bench/dpdk_txonly
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time
from typing import IO

PREFIX = f"switchbench-bench-{os.getpid()}"


def ours(program: str, seconds: float, core: int) -> tuple[float, float]:
    """One run of our path: frames/s and nanoseconds a frame."""
    command = ["taskset", "-c", str(core), program, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.match(r"(\d+) frames/s, ([\d.]+) ns", done.stdout)
    if found is None:
        raise SystemExit(f"{program} said: {done.stdout}{done.stderr}")
    return float(found[1]), float(found[2])


def worker_seconds(pid: int) -> float:
    """CPU time of testpmd's forwarding thread."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if "worker" in (task / "comm").read_text():
            return float((task / "schedstat").read_text().split()[0]) / 1e9
    raise SystemExit("dpdk-testpmd has no forwarding thread")


def until(stream: IO[str], mark: str) -> str:
    """What testpmd prints until `mark`."""
    text = ""
    while mark not in text:
        got = stream.read(1)
        if got == "":
            raise SystemExit(f"dpdk-testpmd ended:\n{text[-2000:]}")
        text += got
    return text


def testpmd(seconds: float, core: int, main_core: int) -> float:
    """One run of testpmd: all that it sent, by its forwarding thread's CPU time."""
    command = [
        "stdbuf",
        "-oL",
        "dpdk-testpmd",
        "--lcores",
        f"0@{main_core},1@{core}",
        "--no-huge",
        "-m",
        "256",
    ]
    command += [
        "--no-pci",
        "--no-shconf",
        "--no-telemetry",
        f"--file-prefix={PREFIX}",
        "--vdev=net_null0,no-rx=1",
        "--",
    ]
    command += ["--interactive", "--forward-mode=txonly", "--burst=64", "--txpkts=60"]
    command += ["--nb-cores=1", "--total-num-mbufs=2048"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        until(process.stdout, "link statuses...\nDone\n")
        before = worker_seconds(process.pid)
        process.stdin.write("start\n")
        time.sleep(seconds)
        process.stdin.write("stop\n")
        output = until(process.stdout, "Done.\n")
        used = worker_seconds(process.pid) - before
        process.stdin.write("quit\n")
        process.communicate()
    # The EAL leaves its folder behind.
    shutil.rmtree(f"/run/dpdk/{PREFIX}", ignore_errors=True)
    found = re.findall(r"TX-packets:\s+(\d+)", output)
    if not found or int(found[-1]) == 0 or used <= 0:
        raise SystemExit(f"dpdk-testpmd showed no frames:\n{output[-2000:]}")
    return int(found[-1]) / used


def main() -> int:
    """Run both in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program", help="the built dpdk_txonly")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--at-least", type=float, default=1.0, help="ratio to reach")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or shutil.which("dpdk-testpmd") is None:
        print("skipped: needs two cores and dpdk-testpmd (package dpdk-dev)")
        return 77
    own: list[float] = []
    cost_ns: list[float] = []
    other: list[float] = []
    for _ in range(asked.rounds):
        rate, cost = ours(asked.program, asked.seconds, cores[1])
        own.append(rate)
        cost_ns.append(cost)
        other.append(testpmd(asked.seconds, cores[1], cores[0]))
        print(f"ours {own[-1] / 1e6:.1f} M/s ({cost} ns), testpmd {other[-1] / 1e6:.1f} M/s")
    ratio = statistics.median(own) / statistics.median(other)
    print(
        f"median of {asked.rounds}: ours {statistics.median(own) / 1e6:.1f} M frames/s "
        f"({statistics.median(cost_ns):.2f} ns a frame), "
        f"testpmd {statistics.median(other) / 1e6:.1f} M, ratio {ratio:.2f}"
    )
    return 0 if ratio >= asked.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
