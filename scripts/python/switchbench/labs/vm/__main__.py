# SPDX-License-Identifier: BSD-3-Clause
"""`python -m switchbench.labs.vm`: prepare what guests need, or run one command in some of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from . import Guest, GuestError, GuestsMissingError, Job, boot, dpdk_drivers, machines, why_not
from .machine import DEFAULT_MEMORY_MIB, MODELS

SKIPPED = 77


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m switchbench.labs.vm", description=__doc__)
    parts = parser.add_subparsers(dest="what", required=True)
    parts.add_parser("prepare", help="fetch and unpack the kernel; status 77 when that can't be")
    run = parts.add_parser("run", help="boot guests, run COMMAND in all at once, end them")
    run.add_argument("-n", "--guests", type=int, default=1, help="how many: node1, node2, ...")
    run.add_argument(
        "-p", "--program", type=Path, action="append", default=[], help="put into /usr/bin"
    )
    run.add_argument(
        "-d", "--driver", action="append", default=[], help="of DPDK's, such as net_af_packet"
    )
    run.add_argument("-m", "--memory", type=int, default=DEFAULT_MEMORY_MIB, help="MiB each")
    run.add_argument("-c", "--cpus", type=int, default=1, help="of each")
    run.add_argument("--nic", choices=sorted(MODELS), default="virtio", help="under test")
    run.add_argument("--modules", default="", help="groups of kernel modules: uio,vfio,...")
    run.add_argument("command", nargs="+", help="$sb_name is the guest's name there")
    return parser.parse_args(arguments)


def _relay(guest: Guest, command: Sequence[str], statuses: dict[str, int]) -> None:
    process = guest.popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    for line in process.stdout or ():
        print(f"{guest.name}: {line.rstrip()}", flush=True)
    statuses[guest.name] = process.wait()


def _run(options: argparse.Namespace) -> int:
    wanted = [
        replace(
            machine,
            memory_mib=options.memory,
            cpus=options.cpus,
            modules=tuple(filter(None, options.modules.split(","))),
        )
        for machine in machines(options.guests, model=options.nic)
    ]
    programs = tuple(path.absolute() for path in options.program)
    objects = dpdk_drivers(*options.driver) if options.driver else ()
    statuses: dict[str, int] = {}
    with boot(wanted, Job(programs, objects)) as rig:
        print(f"{len(rig.guests)} guests are up after {rig.boot_s:.1f} s", file=sys.stderr)
        threads = [
            threading.Thread(target=_relay, args=(guest, options.command, statuses))
            for guest in rig.guests
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    failed = next((status for status in statuses.values() if status != 0), 0)
    return failed if failed >= 0 else 128 - failed


def main(arguments: Sequence[str]) -> int:
    """0, the first failing guest's status, 77 when guests can't be had, 1 otherwise."""
    options = _parse(arguments)
    try:
        if options.what == "run":
            return _run(options)
        reason = why_not()
    except GuestsMissingError as error:
        reason = str(error)
    except GuestError as error:
        print(error, file=sys.stderr)
        return 1
    if reason is not None:
        print(reason, file=sys.stderr)
    return SKIPPED if reason else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
