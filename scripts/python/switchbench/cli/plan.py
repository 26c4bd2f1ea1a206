# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench plan`: what would run, for how long, and who would send to whom."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ClusterShell.RangeSet import RangeSet, RangeSetException

from ..base.errors import ConfigurationError
from ..base.model import Run
from ..base.node_names import NAMES_MOST, count
from ..plan import documents
from ..plan.listing import listing
from ..render.printer import make_console
from ..render.terminal import show_plan
from .common import add_configuration, load_runnable, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_configuration(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object, everything in it")
    parser.add_argument("--phases", metavar="RANGES", type=_ranges, help="only these, e.g. 0-3,7")
    parser.add_argument("--all", action="store_true", help="every phase and flow, however many")
    parser.add_argument(
        "--job", metavar="FILE", type=Path, help="write all documents of a run started by hand"
    )


def main(args: argparse.Namespace) -> int:
    """Print the plan, and write the job when asked."""
    run = load_runnable(args)
    if run.searches:
        if args.job is not None:
            raise ConfigurationError("--job: a suite's trials are chosen while it runs")
        chosen = "its trials are chosen while it runs, from these at the max load down"
        print(f"suite {run.suite}: {chosen}", file=sys.stderr)
        times = zip(run.searches, run.estimates_s, strict=True)
        trials = tuple(replace(trial, expected_s=took_s) for trial, took_s in times)
        run = replace(run, trials=trials, searches=(), estimates_s=())
    _refuse_phases(args.phases or (), run)
    if args.job is not None:
        job = documents.hand_job(run, time.strftime("hand-%Y%m%d-%H%M%S"))
        documents.write_private(args.job, job)
        print(f"{args.job}: the job, with the run's key in it: mode 0600", file=sys.stderr)
    plan = listing(run, args.phases, everything=args.all or args.json, in_words=not args.json)
    if args.json:
        print_json(plan)
    else:
        show_plan(plan, make_console(), args.all, chosen=args.phases is not None)
    return 0


def _refuse_phases(asked: Sequence[int], run: Run) -> None:
    """Refuse phases that no plan of the run has."""
    phases = max(trial.phases for trial in run.trials)
    beyond = [number for number in asked if not 0 <= number < phases]
    if beyond:
        raise ConfigurationError(
            f"--phases {RangeSet.fromlist(map(str, beyond))}: the plans have phases 0 to "
            f"{phases - 1}"
        )


def _ranges(text: str) -> list[int]:
    if count(text) > NAMES_MOST:
        raise argparse.ArgumentTypeError(f"{text!r} are more than {NAMES_MOST} phases: no plan has")
    try:
        return [int(number) for number in RangeSet(text)]
    except (RangeSetException, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not ranges such as 0-3,7") from None
