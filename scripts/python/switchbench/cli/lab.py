# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench lab`: nodes and a switch made of network namespaces on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..base.errors import ConfigurationError
from ..base.source import dotted, parse_assignment
from ..labs import lab
from ..labs.state import LabError
from ..topology.form import TopologyError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's four parts."""
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


def main(args: argparse.Namespace) -> int:
    """Do what is asked of labs."""
    action: Callable[[argparse.Namespace], int | None] = args.action
    try:
        return action(args) or 0
    except (LabError, TopologyError) as error:
        raise ConfigurationError(str(error)) from error


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
