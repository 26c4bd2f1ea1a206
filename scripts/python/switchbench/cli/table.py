# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench table`: the table of a finished run, again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ..analysis.known import fitted
from ..analysis.remake import is_begun_only, remade
from ..analysis.verdict.record import write_record
from ..base.errors import ConfigurationError
from ..records.directory import RECORDS, REPORT, SUMMARY, load_summary, replace_json
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
    summary: Mapping[str, Any] = load_summary(args.directory)
    if args.again:
        summary = remade(read_plan(args.directory), args.directory, summary, keep=True)
        replace_json(args.directory / SUMMARY, summary)
    elif is_begun_only(summary) and (args.directory / RECORDS).exists():
        summary = remade(read_plan(args.directory), args.directory, summary, ended=False)
    shown, known = fitted(summary)
    damage = list(known.damage())
    if args.again and not damage:  # of what no record says
        if (args.directory / REPORT).exists():
            from ..render.report import build  # a tenth of a second, but for this

            build.write(args.directory)
        write_record(args.directory, summary)
    console = make_console()
    try:
        parts.show_imported(shown, console, everything=args.all)
        print_table(shown, console, args, args.directory)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = "it" if damage else f"a part that has another form ({error!s:.100})"
        damage.append(f"the rest can't be shown without {what}")
    if damage:
        raise ConfigurationError(
            f"{args.directory / SUMMARY} is damaged: {'; '.join(damage)} "
            "(--again makes it again of a run's records)"
        )
    return int(shown["exit_status"])
