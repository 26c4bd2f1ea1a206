# SPDX-License-Identifier: BSD-3-Clause
"""Commands on hosts and labs: `doctor`, `push`, `bind`, `restore` and `lab`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from ..base.errors import ConfigurationError
from ..base.model import Site
from ..base.programs import ENGINE, PORT_BINDING
from ..base.source import dotted, parse_assignment
from ..hosts import doctor, push
from ..labs import lab
from ..render.printer import make, make_console, show, text
from ..run.launch.far import CURRENT, SHARED_FOLDER, Answer, chosen, folded
from ..run.launch.ssh import NOT_ASKED, OpenSsh, refusal, resolved, side_by_side
from .common import TYPES as TYPES
from .common import load_site, names_site, print_json

# --- doctor ---------------------------------------------------------------------------------------


CANNOT_RUN = 3
DIFFERENT = 1
_HOSTS = (text("", "part"), text("most hosts", "most"), text("differ", "differ"))
_STYLES = {doctor.OK: "green", doctor.NOTE: "yellow", doctor.LACK: "bold red"}


def doctor_command(args: argparse.Namespace) -> int:
    """Print the checks of this machine, or the differences between a site's hosts."""
    if names_site(args):
        return _compare_hosts(args)
    checks = doctor.examine()
    usable = doctor.can_run(checks)
    if args.json:
        print_json({"can_run": usable, "checks": [asdict(check) for check in checks]})
    else:
        console = Console(highlight=False, soft_wrap=True)
        for check in checks:
            line = Text(f"{check.part:8} ")
            line.append(f"{check.state:5}", style=_STYLES[check.state])
            line.append(f"{check.what}: {check.detail}" if check.detail else check.what)
            console.print(line)
            if check.remedy:
                console.print(Text(f"{'':14}-> {check.remedy}"))
    return 0 if usable else CANNOT_RUN


def _compare_hosts(args: argparse.Namespace) -> int:
    site = load_site(args)
    with suppress(ConfigurationError):  # the table shows the reason for each host
        site = resolved(site)
    found = doctor.survey(site, chosen(site, args.nodes))
    if args.json:
        print_json(asdict(found))
    else:
        console = make_console()
        rows = [
            {
                "part": row.name,
                "most": row.most,
                "differ": "; ".join(
                    f"{folded(host for host, one in row.differ.items() if one == value)}: {value}"
                    for value in dict.fromkeys(row.differ.values())
                ),
            }
            for row in found.rows
        ]
        styles = [_STYLES[doctor.NOTE] if row["differ"] else "" for row in rows]
        show(make("hosts", "", "", _HOSTS, rows, "none"), console, styles=styles)
        silent = {host: Answer(NOT_ASKED, [why]) for host, why in found.silent.items()}
        for line in side_by_side(silent):
            console.print(Text(line, style=_STYLES[doctor.LACK]), soft_wrap=True)
        for doubt in found.doubts:
            print(doubt)
    if found.silent:
        return CANNOT_RUN
    return 0 if found.is_alike else DIFFERENT


# --- push -----------------------------------------------------------------------------------------


def push_command(args: argparse.Namespace) -> int:
    """Copy the engine to a site's hosts; return the highest exit status of a host."""
    site = load_site(args)
    wanted = push.order(site, args.to)
    status = _show_answers(push.push(site, chosen(site, args.nodes), wanted))
    is_usual = wanted.folder in ("", SHARED_FOLDER)
    engine = ENGINE if is_usual else f"{wanted.folder}/{CURRENT}/{ENGINE}"
    if OpenSsh.of(site).engine != engine:
        print(f"the site's engine path differs: set `ssh: {{engine: {engine}}}` in the site")
    return status


def _show_answers(answers: Mapping[str, Answer]) -> int:
    """Print the output of a command on each host; return the highest exit status of a host."""
    for line in side_by_side(answers):
        print(line)
    return max(answer.status or 0 for answer in answers.values())


# --- bind -----------------------------------------------------------------------------------------


_BIND_LIMIT_S = 120.0  # time limit for one host, with time for drivers and links


def bind_command(args: argparse.Namespace) -> int:
    """Bind the PCI ports of a site's hosts to DPDK; return the highest exit status of a host."""
    site = load_site(args)
    wanted = site.effective.get("bind")
    if wanted is None:
        raise ConfigurationError(
            "bind: the site has no driver: add `bind: {driver: vfio-pci}` to the site"
        )
    orders = {}
    for process in chosen(site, args.nodes):
        devices = [port.engine["pci"] for port in process.ports if "pci" in port.engine]
        if devices:
            orders[process.name] = ["bind", *dict.fromkeys(devices), "--driver", wanted["driver"]]
    if not orders:
        raise ConfigurationError(
            "bind: none of the chosen hosts has a port with `pci`: set the PCI address of each "
            "port to bind in the site"
        )
    return _show_answers(carry_out(site, orders))


def carry_out(
    site: Site, orders: Mapping[str, Sequence[str]], limit_s: float = _BIND_LIMIT_S
) -> dict[str, Answer]:
    """Run port_binding.py over ssh, on all hosts at once; return its status and output by host.

    `orders` has the program's arguments by host.
    """
    way = OpenSsh.of(site)
    commands = {host: way.port_binding(host, words) for host, words in orders.items()}
    found = way.run_on_hosts(commands, limit_s, PORT_BINDING)
    for host, answer in found.items():
        reason = refusal(host, answer, "python3")
        if answer.status is None:
            reason = "no answer in time: its ports may have changed; repeat the command"
        if reason is not None:
            found[host] = Answer(NOT_ASKED, [reason])
    return found


# --- restore --------------------------------------------------------------------------------------


def restore_command(args: argparse.Namespace) -> int:
    """Restore the PCI ports of a site's hosts, or of this machine without a site."""
    if not names_site(args):
        words = [sys.executable, str(PORT_BINDING), "restore"]
        return subprocess.run(words, check=False).returncode
    site = load_site(args)
    orders = {process.name: ["restore"] for process in chosen(site, args.nodes)}
    return _show_answers(carry_out(site, orders))


# --- lab ------------------------------------------------------------------------------------------


def lab_up_command(args: argparse.Namespace) -> int:
    """Make a lab that stays until `lab down`."""
    overrides: dict[str, object] = {}
    for assignment in args.assignments:
        path, value, _ = parse_assignment(assignment)
        overrides[dotted(path)] = value
    print(lab.bring_up(args.topology, args.name, overrides))
    return 0


def lab_down_command(args: argparse.Namespace) -> int:
    """Remove one lab, or all of them."""
    for line in lab.take_down(args.name, args.all):
        print(line)
    return 0


def lab_status_command(_args: argparse.Namespace) -> int:
    """Print the labs of this machine."""
    print("\n".join(lab.status()))
    return 0


def lab_exec_command(args: argparse.Namespace) -> int:
    """Run a command on a node or on the switch; return its exit status."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise ConfigurationError("lab exec: no command given: lab exec NODE -- COMMAND ...")
    return lab.run_command(args.node, command)
