# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench table`: the table of a finished run, again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..results.directory import load_summary
from ..results.table import Report, make_console
from .common import add_command

EXAMPLES = """\
examples:
  switchbench table results/20260101-120000-four-matrices
  switchbench table results/20260101-120000-four-matrices --all | less -S"""


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser = add_command(subparsers, "table", "print the table of a finished run again", EXAMPLES)
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    parser.add_argument(
        "--all", action="store_true", help="every phase in the table, not a plan's five worst"
    )
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Prints the table; its exit status is the run's."""
    summary = load_summary(args.directory)
    Report(summary, make_console(), every_phase=args.all).print(str(args.directory))
    return int(summary["exit_status"])
