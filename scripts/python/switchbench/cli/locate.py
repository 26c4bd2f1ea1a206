# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench locate`: where the network breaks, by the flows of a finished run."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..analysis.remake import gather
from ..base import format
from ..base.errors import ConfigurationError
from ..base.model import Run
from ..records.directory import CONFIGURATION, PLAN, SUMMARY
from ..records.document.summary import NOTHING_LOCATED, ElementEntry, LocationEntry, NextTestEntry
from ..records.plan_file import read_plan
from ..records.store import cut_streams, finish, has_tables, refuse_old_form
from ..render.printer import heading, listed, make_console, say
from ..topology import topology
from ..topology.fabric import wired
from ..topology.form import TopologyError
from .common import print_json

FOUND, NOT_JUDGED = 1, 4
MOST = 12
MOST_SURE = 0.999


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    parser.add_argument(
        "--topology", metavar="FILE", type=Path, help="the network's topology file (kind: site)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, as summary.json has it")


def main(args: argparse.Namespace) -> int:
    """Print the suspects; the exit status says whether there are any."""
    found = located(args.directory, args.topology)
    if args.json:
        print_json({**found, "command": command(found["next_test"], args.directory)})
    else:
        show(found, args.directory)
    if found["suspects"]:
        return FOUND
    return NOT_JUDGED if found["limited_phases"] == found["phases"] else 0


def located(directory: Path, file: Path | None) -> LocationEntry:
    """Return where the network breaks, by a directory's tables; `file`: its topology."""
    if not any((directory / name).exists() for name in (PLAN, SUMMARY)):
        raise ConfigurationError(
            f"{directory} is no results directory: `switchbench run` makes one, with {PLAN}, "
            f"{SUMMARY} and tables"
        )
    refuse_old_form(directory)
    run = finish(directory, read_plan(directory))
    if file is not None:
        run = _with_topology(run, file)
    if not has_tables(directory):
        return NOTHING_LOCATED
    try:
        found = gather(run, directory).locator.location()
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ConfigurationError(
            f"{directory}: the tables do not fit {PLAN}: {type(error).__name__} {why}"
        ) from None
    return {**found, "problems": [*found["problems"], *cut_streams(directory)]}


def _with_topology(run: Run, file: Path) -> Run:
    try:
        overrides = run.site.lab_overrides if run.site.lab else {}
        return replace(run, site=wired(run.site, topology.load(file, overrides)))
    except TopologyError as error:
        raise ConfigurationError(str(error)) from None


def command(test: NextTestEntry | None, directory: Path) -> str:
    """Return the command that runs the next test; "" where no traffic decides."""
    if test is None or not test["flows"]:
        return ""
    entry = {
        "pattern": "flows",
        "flows": test["flows"],
        "transport": test["transport"],
        "load": f"{test['load']:g}%",
    }
    words = ["switchbench", "run", str(directory / CONFIGURATION), "--set"]
    return shlex.join([*words, f"tests={json.dumps([entry])}"])


def show(found: LocationEntry, directory: Path) -> None:
    """Print what was located."""
    console = make_console()
    limited = f"{found['limited_phases']} of {format.of(found['phases'], 'phase')}"
    say(console, f"{directory}: {limited} tester-limited, paths: {found['paths']}", hang=2)
    if not found["suspects"] and found["limited_phases"] == found["phases"]:
        say(console, f"\nNot judged: the tester was the limit in {limited}.", "yellow")
    elif not found["suspects"]:
        say(console, "\nNo suspect: no element does worse than the others.", "green")
    for number, one in enumerate(found["suspects"], start=1):
        sure = f"{100 * min(one['confidence'], MOST_SURE):.1f} % sure"
        first, *others = one["sentence"].split("; ")
        say(console, f"\n{number}. {first} ({sure})", "bold red", hang=3)
        others.append(
            "log-likelihood ratio over the next explanation, or over none where none comes near, "
            f"{one['gain']:,.1f}"
        )
        for line in others:
            say(console, f"   {line}", hang=5)
    listed(console, "Hosts, no fault of the network", list(_hosts(found)), "")
    expected = [
        f"{_words(one['element'])}: {one['offered_mbps']:.4g} Mbit/s offered to a line of "
        f"{one['line_mbps']:.4g} Mbit/s, {format.of(one['frames'], 'frame')} lost as expected"
        for one in found["expected"]
    ]
    listed(console, "Oversubscribed", expected, "")
    if found["unexplained_frames"]:
        count = format.of(found["unexplained_frames"], "lost frame")
        say(console, f"\n{count} no element explains.", "yellow")
    untested = [_words(one) for one in found["untested"]]
    more = [f"and {len(untested) - MOST} more (--json)"] if len(untested) > MOST else []
    listed(console, "Not tested", untested[:MOST] + more, "")
    listed(console, "Not used", found["problems"], "yellow")
    test = found["next_test"]
    if test:
        heading(console, "Next test")
        say(console, f"  {test['why']}", hang=2)
        if line := command(test, directory):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _hosts(found: LocationEntry) -> Iterator[str]:
    words = {
        "sender_host": "never left it",
        "receiver_host": "dropped in it",
        "other_traffic": "lost to frames of other senders",
        "late_sender": "lost to a queue that late senders filled",
    }
    for one in found["hosts"]:
        count = format.of(one["frames"], "lost frame")
        yield f"{one['port']}: {count} {words[one['cause']]}"


def _words(one: ElementEntry) -> str:
    return " ".join((one["name"], one["direction"])).rstrip()
