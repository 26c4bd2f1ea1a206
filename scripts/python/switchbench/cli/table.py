# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench table`: the table of a finished run, again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ..analysis.remake import remade
from ..analysis.summary import NOT_ENDED
from ..analysis.verdict.record import write_record
from ..base.errors import ConfigurationError
from ..records.directory import REPORT, SUMMARY, load_summary, replace_json
from ..records.document.schema import checked
from ..records.plan_file import read_plan
from ..render.terminal import parts
from ..render.terminal.console import make_console
from ..render.terminal.table import SummaryPrinter

EXAMPLES = """\
examples:
  switchbench table results/20260101-120000-four-matrices
  switchbench table results/20260101-120000-four-matrices --all | less -S
  switchbench table results/20260101-120000-four-matrices --again    after a crash"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    add_table_options(parser)
    parser.add_argument(
        "--again", action="store_true", help="make the summary again from the records, and keep it"
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """What the table of a run shows."""
    parser.add_argument(
        "--all", action="store_true", help="every phase in the table, not a plan's five worst"
    )
    parser.add_argument(
        "--latency", action="store_true", help="all measured times (doc/reference/latency.md)"
    )


def print_table(
    summary: Mapping[str, Any], console: Console, args: argparse.Namespace, directory: Path
) -> None:
    """Prints the table of a run."""
    SummaryPrinter(summary, console, args.all, args.latency).print(str(directory))


def main(args: argparse.Namespace) -> int:
    """Prints the table; its exit status is the run's, or 2 where the summary is damaged."""
    from ..analysis.data import whole_summary  # behind what says that memory is too little

    if args.again:
        begun = load_summary(args.directory)
        summary = remade(read_plan(args.directory), args.directory, begun, keep=True)
        checked(summary, args.directory / SUMMARY)  # what no record says is as it was
        replace_json(args.directory / SUMMARY, summary)
        if (args.directory / REPORT).exists():
            from ..render.report import build  # a tenth of a second, but for this

            build.write(args.directory)
        write_record(args.directory, summary)
    damage: list[str] = []
    shown = whole_summary(args.directory, damage)
    console = make_console()
    parts.show_imported(shown, console, everything=args.all)
    print_table(shown, console, args, args.directory)
    if damage and damage[0] != NOT_ENDED:
        raise ConfigurationError(f"{'; '.join(damage)} (--again keeps it)")
    return int(shown["exit_status"])
