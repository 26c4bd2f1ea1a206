# SPDX-License-Identifier: BSD-3-Clause
"""Commands on hosts and labs: `doctor`, `push`, `bind`, `restore` and `lab`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from ..base.errors import ConfigurationError
from ..base.programs import ENGINE
from ..base.source import dotted, parse_assignment
from ..hosts import alike, bind, doctor, push
from ..labs import lab
from ..render.printer import make, make_console, show, text
from ..run.launch.far import CURRENT, SHARED_FOLDER, Answer, chosen, folded
from ..run.launch.ssh import NOT_ASKED, OpenSsh, resolved, side_by_side
from .common import configuration, load_site, names_site, print_json

# --- doctor ---------------------------------------------------------------------------------------


TYPES = {"CONF": configuration}
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
        _show_checks(checks)
    return 0 if usable else CANNOT_RUN


def _show_checks(checks: list[doctor.HostCheck]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        line = Text(f"{check.part:8} ")
        line.append(f"{check.state:5}", style=_STYLES[check.state])
        line.append(f"{check.what}: {check.detail}" if check.detail else check.what)
        console.print(line)
        if check.remedy:
            console.print(Text(f"{'':14}-> {check.remedy}"))


def _compare_hosts(args: argparse.Namespace) -> int:
    site = load_site(args)
    with suppress(ConfigurationError):  # the table shows the reason for each host
        site = resolved(site)
    found = alike.survey(site, chosen(site, args.nodes))
    if args.json:
        print_json(asdict(found))
    else:
        _show_differences(found.rows, found.silent)
        for doubt in found.doubts:
            print(doubt)
    if found.silent:
        return CANNOT_RUN
    return 0 if found.is_alike else DIFFERENT


def _show_differences(rows: Sequence[alike.HostComparison], silent: Mapping[str, str]) -> None:
    console = make_console()
    lines = [
        {
            "part": row.name,
            "most": row.most,
            "differ": "; ".join(
                f"{folded(host for host, value in row.differ.items() if value == found)}: {found}"
                for found in dict.fromkeys(row.differ.values())
            ),
        }
        for row in rows
    ]
    styles = [_STYLES[doctor.NOTE] if line["differ"] else "" for line in lines]
    show(make("hosts", "", "", _HOSTS, lines, "none"), console, styles=styles)
    for line in side_by_side({host: Answer(NOT_ASKED, [why]) for host, why in silent.items()}):
        console.print(Text(line, style=_STYLES[doctor.LACK]), soft_wrap=True)


# --- push -----------------------------------------------------------------------------------------


def push_command(args: argparse.Namespace) -> int:
    """Copy the engine to a site's hosts; return the worst host's exit status."""
    site = load_site(args)
    wanted = push.order(site, args.privilege, args.to)
    answers = push.push(site, chosen(site, args.nodes), wanted)
    for line in side_by_side(answers):
        print(line)
    for note in _notes(OpenSsh.of(site), wanted):
        print(note)
    return max(answer.status or 0 for answer in answers.values())


def _notes(way: OpenSsh, wanted: push.PushOrder) -> list[str]:
    """Return notes on settings that the site needs for `run` to use the pushed engine."""
    if wanted.folder not in ("", SHARED_FOLDER):
        engine = f"{wanted.folder}/{CURRENT}/{ENGINE}"
        known = way.engine == engine
    else:
        engine, known = ENGINE, way.engine == ENGINE
    notes = [] if known else [f"the site names another engine: give it `ssh: {{engine: {engine}}}`"]
    if wanted.privilege != way.privilege:
        notes.append(f"give the site `ssh: {{privilege: {wanted.privilege}}}`")
    return notes


# --- bind -----------------------------------------------------------------------------------------


def bind_command(args: argparse.Namespace) -> int:
    """Bind the PCI ports of a site's hosts to DPDK; return the worst exit status."""
    site = load_site(args)
    return bind.carry_out(site, bind.bind_orders(site, args.nodes, args.driver))


# --- restore --------------------------------------------------------------------------------------


def restore_command(args: argparse.Namespace) -> int:
    """Restore the PCI ports of a site's hosts, or of this machine without a site."""
    if args.conf is None and args.site is None:
        return bind.here(["restore"])
    site = load_site(args)
    return bind.carry_out(site, bind.restore_orders(site, args.nodes))


# --- lab ------------------------------------------------------------------------------------------


def lab_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommands `up`, `down`, `status` and `exec`."""
    parts = parser.add_subparsers(title="commands", metavar="up|down|status|exec", required=True)
    up = parts.add_parser("up", help="make a lab that stays")
    up.add_argument("topology", metavar="TOPOLOGY", help="a file, or a name of conf/labs/")
    up.add_argument("--name", help="its name (the topology's)")
    up.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments",
        help="a key of the topology, e.g. nodes=4, rate=50M",
    )  # fmt: skip
    down = parts.add_parser("down", help="remove a lab, with every process in it")
    down.add_argument("name", metavar="NAME", nargs="?", help="which (the only one)")
    down.add_argument("--all", action="store_true", help="all of them")
    parts.add_parser("status", help="which labs there are")
    run = parts.add_parser("exec", help="run a command on a node or on the switch")
    run.add_argument("node", metavar="[LAB/]NODE", help="a node's name, or `switch`")
    run.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="what to run")
    for part, action in ((up, _up), (down, _down), (parts.choices["status"], _status), (run, _run)):
        part.set_defaults(action=action)


def lab_command(args: argparse.Namespace) -> int:
    """Run a subcommand of `lab`; return its exit status."""
    action: Callable[[argparse.Namespace], int | None] = args.action
    return action(args) or 0


def _up(args: argparse.Namespace) -> None:
    overrides: dict[str, object] = {}
    for assignment in args.assignments:
        path, value, _ = parse_assignment(assignment)
        overrides[dotted(path)] = value
    print(lab.bring_up(args.topology, args.name, overrides))


def _down(args: argparse.Namespace) -> None:
    for line in lab.take_down(args.name, args.all):
        print(line)


def _status(_args: argparse.Namespace) -> None:
    print("\n".join(lab.status()))


def _run(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise ConfigurationError("lab exec: no command given: lab exec NODE -- COMMAND ...")
    return lab.run_command(args.node, command)
