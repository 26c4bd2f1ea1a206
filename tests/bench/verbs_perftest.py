#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`verbs` between two guests against perftest: one way, same depth, path MTU and message size.

Both run in the same two guests with Soft-RoCE (tests/vm/guests), in turn. Ours is a chain of two
with as much load as goes; its figure is payload that arrived and was verified in a window after a
warm-up. perftest has its window after a warm-up, too; it looks at no byte. Its figure is what its
client saw completed, with UD what its server received.

Guests are emulated and share this machine's cores, so a figure by itself says nothing about RDMA;
its ratio to what perftest gets in the same guests, in turn, does.

    tests/bench/verbs_perftest.py [--rows write-64KiB send-1MiB ud ...] [--rounds 5]
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from common import NODE, ROOT, Figures, arguments, beside_peer, skip, switchbench

sys.path[:0] = [str(ROOT / "scripts/python"), str(ROOT / "tests/system"), str(ROOT / "tests/vm")]

import guests  # noqa: E402 (it lies where this file's place says)
import vmkit  # noqa: E402

RATE = "MB/s"
PATH_MTU = 1024  # the largest below an Ethernet's 1500 bytes
DEPTH = 128
TIMEOUT = 18  # 4.096 us x 2^18: an emulated guest may stand still for a while
ANSWER_S = 60.0
DONE = (0, 4)  # on a busy machine the tester is the limit
_PORTS = itertools.count(18600)  # perftest's own connection's is in use for a minute after it
# A client may come before its server listens.
_RETRY = 'for i in 1 2 3 4 5 6 7 8 9; do "$@" && exit; sleep 0.2; done; exit 1'
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


class Load(NamedTuple):
    """Settings that our program and perftest share."""

    operation: str
    size: int
    service: str = "rc"
    window_s: int = 1


ROWS = {
    "write-64KiB": Load("write", 64 << 10),
    "send-64KiB": Load("send", 64 << 10),
    "write-1MiB": Load("write", 1 << 20, window_s=2),
    "send-1MiB": Load("send", 1 << 20, window_s=2),
    "ud": Load("send", PATH_MTU, service="ud"),
}


def take_quick_clock(guest: guests.Guest) -> None:
    """Use the TSC instead of the guest's ACPI timer, each reading of which leaves the emulation.

    A kernel beside a program that polls all the time (perftest) comes to nothing then. Measured
    against this machine's clock, for on a busy machine a guest gets the TSC's rate wrong.
    """

    def uptime() -> float:
        return float(guest.output(["cat", "/proc/uptime"]).split()[0])

    guest.output(["sh", "-c", f"echo tsc > {_CLOCK}"])
    here, there = time.monotonic(), uptime()
    time.sleep(2.0)
    went = (uptime() - there) / (time.monotonic() - here)
    if abs(went - 1) > 0.03:
        raise SystemExit(f"{guest.name}'s clock goes {went:.3f} times as fast: boot it again")


def ours(rig: guests.Rig, load: Load, node: Path) -> Figures:
    """Run the command once."""
    verbs = {"service": load.service, "operation": load.operation, "depth": DEPTH}
    site = vmkit.site(rig)
    site["ssh"]["engine"] = str(node)
    conf = {
        "switchbench": 1,
        "site": site,
        "transport": "verbs",
        "verbs": verbs | {"mtu": PATH_MTU, "timeout": TIMEOUT},
        "message_size": load.size,
        "load": "100%",
        "latency": {"probes": 0},
        "warmup": "300ms",
        "window": f"{load.window_s}s",
        "repeat": 1,
        "tests": [{"pattern": "chain", "connectivity_check": False}],
    }
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "conf.yaml"), Path(folder, "out")
        file.write_text(json.dumps(conf))  # JSON is YAML, too
        words = ("run", str(file), "--out", str(out), "--quiet")
        switchbench(*words, node=node, ends=DONE)
        (trial,) = json.loads((out / "summary.json").read_text())["trials"]
    return {RATE: trial["throughput"]["mean"] / 8}


def perftest(rig: guests.Rig, load: Load) -> Figures:
    """Run perftest once with our depth, path MTU, GID and timeout.

    It takes whole seconds only, and leaves as much out at the end as at the beginning.
    """
    source, destination = rig.guests
    service = ["-c", load.service.upper()] if load.operation == "send" else []
    words = [
        f"ib_{load.operation}_bw", "-d", "rxe0", "-x", "1", "-m", str(PATH_MTU), "-F",
        "-s", str(load.size), "-t", str(DEPTH), "-u", str(TIMEOUT), *service,
        "-D", str(load.window_s + 2), "-f", "1", "-p", str(next(_PORTS)),
    ]  # fmt: skip
    options: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    server = destination.popen(words, **options)
    client = source.popen(["sh", "-c", _RETRY, "-", *words, "100.64.0.2"], **options)
    try:
        texts = [process.communicate(timeout=ANSWER_S)[0] for process in (client, server)]
    finally:
        client.kill()
        server.kill()
    # The "BW average" of its table, in MB/s (it says MB and means MiB).
    table = texts[1 if load.service == "ud" else 0]
    rows = [line.split() for line in table.splitlines()]
    found = [row for row in rows if len(row) == 5 and row[0].isdigit()]
    figure = float(found[-1][3]) * (1 << 20) / 1e6 if found else 0.0
    if client.returncode or server.returncode or figure == 0:
        raise SystemExit(f"{load}: perftest failed or saw nothing:\n{table[-1500:]}")
    return {RATE: figure}


def main() -> None:
    """Compare all rows, or the chosen ones."""
    asked = arguments(__doc__, node=NODE, rows=list(ROWS)).parse_args()
    if missing := guests.why_not():
        skip(missing)
    machines = [replace(each, memory_mib=1024) for each in guests.machines(2)]
    with guests.boot(machines) as rig:
        for guest in rig.guests:
            take_quick_clock(guest)
        for name in asked.rows:
            load = ROWS[name]
            subjects = {
                "ours": lambda load=load: ours(rig, load, asked.node),
                "perftest": lambda load=load: perftest(rig, load),
            }
            beside_peer(name, asked.rounds, subjects, {RATE: 1.0})


if __name__ == "__main__":
    main()
