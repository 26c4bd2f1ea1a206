# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench doctor`: what this machine and this user can do, and what to do for the rest."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from .. import doctor
from .common import add_command

EXAMPLES = """\
examples:
  switchbench doctor                each line ok, or what to do
  switchbench doctor --json | jq '.checks[] | select(.state != "ok")'

exit status: 0 when anything can be run at all, else 3"""

CANNOT_RUN = 3
_STYLES = {doctor.OK: "green", doctor.NOTE: "yellow", doctor.LACK: "bold red"}


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser = add_command(subparsers, "doctor", "say what can be run here, and as whom", EXAMPLES)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Prints the checks."""
    checks = doctor.examine()
    usable = doctor.can_run(checks)
    if args.json:
        found = {"can_run": usable, "checks": [asdict(check) for check in checks]}
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        _show(checks)
    return 0 if usable else CANNOT_RUN


def _show(checks: list[doctor.Check]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        line = Text(f"{check.part:8} ")
        line.append(f"{check.state:5}", style=_STYLES[check.state])
        line.append(f"{check.what}: {check.detail}" if check.detail else check.what)
        console.print(line)
        if check.remedy:
            console.print(Text(f"{'':14}-> {check.remedy}"))
