# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench table`: the table of a finished run, again."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ..analysis import sealing
from ..analysis.remake import remade
from ..analysis.sealing import write_record
from ..analysis.summary import NOT_ENDED
from ..base.errors import ConfigurationError
from ..records.directory import REPORT, SUMMARY, load_summary, replace_json
from ..records.document.schema import checked
from ..records.plan_file import read_plan
from ..render.printer import make_console, whole_tables
from ..render.tables import EVERY
from ..render.terminal import SummaryPrinter, show_imported
from .common import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    add_table_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the report's tables as one JSON object")
    form.add_argument(
        "--csv",
        action="store_true",
        help="the report's tables as CSV; several are parted by empty lines, below `# NAME`",
    )
    parser.add_argument(
        "--only", metavar="NAME,...", help="of --json and --csv these tables, e.g. phases,ports"
    )
    parser.add_argument(
        "--again", action="store_true", help="make the summary again from the records, and keep it"
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the table of a run."""
    parser.add_argument(
        "--all", action="store_true", help="every phase in the table, not a plan's five worst"
    )
    parser.add_argument(
        "--latency", action="store_true", help="all measured times (doc/reference/latency.md)"
    )


def print_table(
    summary: Mapping[str, Any], console: Console, args: argparse.Namespace, directory: Path
) -> None:
    """Print the table of a run."""
    SummaryPrinter(summary, console, args.all, args.latency).print(str(directory))


def _write(summary: Mapping[str, Any], args: argparse.Namespace) -> None:
    """Write the tables for programs on standard output."""
    chosen = EVERY
    if args.only is not None:
        known = {spec.name: spec for spec in EVERY}
        names = args.only.split(",")
        if unknown := [name for name in names if name not in known]:
            raise ConfigurationError(
                f"--only {unknown[0]}: there is no such table (tables: {', '.join(known)})"
            )
        chosen = tuple(known[name] for name in names)
    found = list(whole_tables(chosen, summary))
    if args.json:
        tables = {table.name: table.json() for table in found}
        print_json({"run": summary["run"].get("id"), "tables": tables}, ascii_only=False)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, table in enumerate(found):
        if len(chosen) > 1:
            print(f"{chr(10) * (number > 0)}# {table.name}")
        writer.writerows(table.lines())


def main(args: argparse.Namespace) -> int:
    """Print the table; its exit status is the run's, or 2 where the summary is damaged."""
    from ..analysis.data import whole_summary  # behind what says that memory is too little

    if args.again:
        begun = load_summary(args.directory)
        sealing.refuse_missing(args.directory)
        summary = remade(read_plan(args.directory), args.directory, begun, keep=True)
        checked(summary, args.directory / SUMMARY)  # what no record says is as it was
        replace_json(args.directory / SUMMARY, summary)
        if (args.directory / REPORT).exists():
            from ..render.report import build

            build.write(args.directory)
        write_record(args.directory, summary)
    damage: list[str] = []
    shown = whole_summary(args.directory, damage)
    if args.json or args.csv:
        _write(shown, args)
    elif args.only is not None:
        raise ConfigurationError("--only goes with --json or --csv")
    else:
        console = make_console()
        show_imported(shown, console, everything=args.all)
        print_table(shown, console, args, args.directory)
    if damage and damage[0] != NOT_ENDED:
        raise ConfigurationError(f"{'; '.join(damage)} (--again keeps it)")
    return int(shown["exit_status"])
