# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench doctor`: what this machine and this user can do, or what a site's hosts have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from ..base.errors import ConfigurationError
from ..hosts import alike, doctor
from ..render.printer import make, make_console, show, text
from ..run.launch.far import chosen, folded
from ..run.launch.ssh import resolved
from .common import add_site, load_site, names_site, print_json

CANNOT_RUN = 3
DIFFERENT = 1
_HOSTS = (text("", "part"), text("most hosts", "most"), text("differ", "differ"))
_STYLES = {doctor.OK: "green", doctor.NOTE: "yellow", doctor.LACK: "bold red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_site(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def main(args: argparse.Namespace) -> int:
    """Print the checks."""
    if names_site(args):
        return _hosts(args)
    checks = doctor.examine()
    usable = doctor.can_run(checks)
    if args.json:
        print_json({"can_run": usable, "checks": [asdict(check) for check in checks]})
    else:
        _show(checks)
    return 0 if usable else CANNOT_RUN


def _show(checks: list[doctor.HostCheck]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        line = Text(f"{check.part:8} ")
        line.append(f"{check.state:5}", style=_STYLES[check.state])
        line.append(f"{check.what}: {check.detail}" if check.detail else check.what)
        console.print(line)
        if check.remedy:
            console.print(Text(f"{'':14}-> {check.remedy}"))


def _hosts(args: argparse.Namespace) -> int:
    site = load_site(args)
    with suppress(ConfigurationError):  # the table says of which hosts
        site = resolved(site)
    found = alike.survey(site, chosen(site, args.nodes))
    if args.json:
        print_json(asdict(found))
    else:
        _show_hosts(found.rows, found.silent)
        for doubt in found.doubts:
            print(doubt)
    if found.silent:
        return CANNOT_RUN
    return 0 if found.is_alike else DIFFERENT


def _show_hosts(rows: Sequence[alike.HostComparison], silent: Mapping[str, str]) -> None:
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
    for line in alike.by_reason(silent):
        console.print(Text(line, style=_STYLES[doctor.LACK]), soft_wrap=True)
