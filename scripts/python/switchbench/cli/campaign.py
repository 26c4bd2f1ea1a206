# SPDX-License-Identifier: BSD-3-Clause
"""Command `switchbench campaign`: runs between which cables are moved, with one verdict.

The state of a campaign is in its directory (campaign.json), written before each wait, so that a
lost terminal or ssh session costs nothing.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..analysis.campaign import summarize
from ..analysis.sealing import fix_clauses, seal
from ..base import format
from ..base.errors import ConfigurationError, RunError
from ..base.model import Device, Run
from ..base.programs import Handled
from ..base.source import read_file
from ..config import read
from ..hosts.doctor import read_links, refuse_unmoved
from ..plan import campaign as planned
from ..plan.compile import compile_run
from ..records.directory import (
    CONFIGURATION,
    SUMMARY,
    RunDirectory,
    default_path,
    load_summary,
    read_document,
    replace_json,
)
from ..records.store import Tables
from ..records.summary_form import SummaryDocument
from ..render.printer import make_console
from ..render.terminal import SummaryPrinter
from ..run.launch.ssh import OpenSsh
from .common import TYPES as TYPES
from .common import load_runnable

SCHEMA = "switchbench-campaign/1"
STATE = "campaign.json"


@dataclass
class Progress:
    """Content of campaign.json: planned rounds and progress."""

    rounds: list[planned.Places]  # cabling of each round; for a chain, of the rounds so far
    done: int = 0  # number of measured rounds
    # carrier changes before cables were moved; None: not yet read
    carriers: dict[str, int | None] | None = None
    schema: str = SCHEMA


@dataclass
class Campaign:
    """Campaign in a directory: its run, its device and its progress."""

    directory: Path
    run: Run  # made from the campaign's configuration, with the cabling before the first round
    device: Device
    progress: Progress

    @property
    def left(self) -> int:
        """Return the number of planned rounds that are not yet measured."""
        return len(self.progress.rounds) - self.progress.done

    @property
    def number(self) -> str:
        """Return the number of the next round in words: `round 2 of 5`."""
        return f"round {self.progress.done + 1} of {len(self.progress.rounds)}"

    def folder(self, number: int) -> Path:
        """Return the results directory of round `number`, from 1."""
        return self.directory / f"round-{number:02}"

    def write(self) -> None:
        """Write the progress to campaign.json."""
        replace_json(self.directory / STATE, asdict(self.progress))


def campaign_command(args: argparse.Namespace) -> int:
    """Begin or continue a campaign; return the exit status of all rounds together."""
    campaign = _resume(args) if args.conf and args.conf.is_dir() else _begin(args)
    if args.plan:
        rounds = campaign.progress.rounds
        more = " and more, which depend on the results" if campaign.device.chain else ""
        each = f"{format.human(campaign.run.expected_s)} each; {campaign.progress.done} done"
        print(f"{format.of(len(rounds), 'round')}{more}, {each}")
        for number, (before, places) in enumerate(pairwise([rounds[0], *rounds]), start=1):
            print(f"round {number}: {', '.join(f'{a} in {b}' for a, b in places.items())}")
            for line in planned.moves(campaign.device, before, places):
                print(f"  {line}")
        return 0
    while campaign.left:
        if not _cable(campaign):
            print(f"then: switchbench campaign {campaign.directory}")
            return RunError.status
        _measure(campaign)
    summary = _judge(campaign)
    SummaryPrinter(summary, make_console()).print(str(campaign.directory))
    if campaign.device.chain:
        print(_found(campaign))
    return int(summary["exit_status"])


# --- begin, resume --------------------------------------------------------------------------------


def _begin(args: argparse.Namespace) -> Campaign:
    run = load_runnable(args)
    device = run.site.device
    if device is None:
        raise ConfigurationError(
            "campaign: the site does not describe the device under test: add its ports, such as "
            "`device: {ports: p[1-48]}`"
        )
    if run.suite is not None or run.searches:
        raise ConfigurationError(
            "campaign: a `suite` can't be measured by a campaign, because it chooses its loads "
            "while it runs: write `tests` with fixed loads"
        )
    if not run.site.launcher.in_lab:
        OpenSsh.of(run.site)  # links are read by ssh
    at = {port.name: str(port.switch_port) for port in run.site.ports}
    rounds = (
        [planned.chain_places(device, list(at), (0, len(device.ports) // 2 - 1))]
        if device.chain
        else planned.rotation(device, at)
    )
    path = args.out or default_path(f"campaign-{Path(args.conf or 'hosts').stem}")
    campaign = Campaign(path, run, device, Progress(rounds))
    if not args.plan:
        made = RunDirectory(path)
        made.write_document(CONFIGURATION, run.effective)
        fix_clauses(run, made)
        campaign.write()
    return campaign


def _resume(args: argparse.Namespace) -> Campaign:
    path = args.conf
    gone = (
        f"{path} is not a campaign's directory: it has no {STATE} that can be read; name a "
        "configuration, or the directory that `switchbench campaign` made"
    )
    state = read_document(path / STATE, SCHEMA, gone)
    try:
        progress = TypeAdapter(Progress).validate_python(state)
    except ValueError:
        raise ConfigurationError(gone) from None
    args.conf = path / CONFIGURATION
    run = compile_run(read(args.conf, args.options))
    testers = {port.name for port in run.site.ports}
    known = progress.rounds and all(places.keys() == testers for places in progress.rounds)
    if run.site.device is None or not known or not 0 <= progress.done <= len(progress.rounds):
        raise ConfigurationError(
            f"{path} is not a campaign's directory: {STATE} does not match "
            f"{CONFIGURATION}: one of them is damaged or from another campaign"
        )
    return Campaign(path, run, run.site.device, progress)


# --- cables ---------------------------------------------------------------------------------------


def _cable(campaign: Campaign) -> bool:
    """Ask the user to move cables for the next round, and check the links.

    Return false where the moves were only printed, because standard input is no terminal. Raise
    ConfigurationError where cables are misplaced and the user cannot be asked again.
    """
    site, progress = campaign.run.site, campaign.progress
    if site.launcher.in_lab:
        return True
    before, places = progress.rounds[max(progress.done - 1, 0)], progress.rounds[progress.done]
    ports = [replace(port, switch_port=places[port.name]) for port in site.ports]
    moved = {tester for tester, port in places.items() if port != before[tester]}
    todo = planned.moves(campaign.device, before, places)
    asked = progress.carriers is not None or not todo  # the user was asked in an earlier session
    if not asked:
        progress.carriers = {name: link.changes for name, link in read_links(site).items()}
        campaign.write()
    while True:
        if not asked:
            print("\n  ".join([f"{campaign.number}:", *todo]))
            if not sys.stdin.isatty():
                return False
            input("Press Enter when that is done, or Ctrl-C to continue another time: ")
        try:
            refuse_unmoved(ports, moved, progress.carriers or {}, read_links(site))
            return True
        except ConfigurationError as error:
            if not sys.stdin.isatty():
                raise
            print(f"switchbench: {error}", file=sys.stderr)
            asked, todo = False, todo or [f"{port.name} in {port.switch_port}" for port in ports]


# --- rounds ---------------------------------------------------------------------------------------


def _measure(campaign: Campaign) -> None:
    """Run one round of a campaign; RunError where its measurement is incomplete."""
    progress = campaign.progress
    folder = campaign.folder(progress.done + 1)
    document = read_file(campaign.directory / CONFIGURATION).data
    site: dict[str, Any] = document["site"]
    for port in campaign.run.site.ports:  # the round's port of the device for each host port
        where = progress.rounds[progress.done][port.name]
        if "lab" in site:
            own = site.setdefault("overrides", {})
            own[port.host] = {**own.get(port.host, {}), "port": where}
        else:
            wiring = {port.name: [campaign.device.name, where]}
            site["wiring"] = {**(site.get("wiring") or {}), **wiring}
    conf = folder.with_suffix(".yaml")
    RunDirectory(campaign.directory, begun=True).write_document(conf.name, document)
    if folder.exists():  # an interrupted round: its measurements are kept
        folder.rename(folder.with_name(f"{folder.name}.cut-{time.time_ns()}"))
    print(campaign.number, file=sys.stderr)
    words = [sys.executable, "-m", "switchbench", "run", str(conf), "--out", str(folder), "--quiet"]
    popen = subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def pass_on(number: int, _frame: object) -> None:
        if number != signal.SIGINT:  # the terminal sends SIGINT to the run as well
            popen.send_signal(number)

    with Handled(pass_on):
        status = popen.wait()
    if not _is_measured(folder, status):
        again = f"`switchbench campaign {campaign.directory}` repeats it"
        raise RunError(f"{campaign.number} was not measured completely: {again}")
    progress.done, progress.carriers = progress.done + 1, None
    if campaign.device.chain:
        span = planned.next_passes(len(campaign.device.ports) // 2, _seen(campaign))
        if span is not None:
            testers = list(progress.rounds[0])
            progress.rounds.append(planned.chain_places(campaign.device, testers, span))
    campaign.write()
    if campaign.left and not campaign.run.site.launcher.in_lab:
        _judge(campaign)


def _is_measured(folder: Path, status: int) -> bool:
    """Return true where a round was measured to its end, even if the device passed no frames."""
    if status == ConfigurationError.status or not (folder / SUMMARY).exists():
        return False
    if load_summary(folder)["status"] == "complete":
        return True
    return any(event["type"] == "unreachable" for event in Tables(folder, ()).events())


def _seen(campaign: Campaign) -> list[planned.ChainResult]:
    """Return the span, sent and lost frames of each measured round of a chain test.

    The span of a round is its first and its last pass of the chain, counted from 0.
    """
    found = []
    for number, places in enumerate(campaign.progress.rounds[: campaign.progress.done], start=1):
        first, last = sorted(campaign.device.ports.index(port) // 2 for port in places.values())
        phases = load_summary(campaign.folder(number))["trials"]
        sent, lost, hosts = (
            sum(phase[key] or 0 for phase in phases)
            for key in ("offered_frames", "lost_frames", "host_dropped_frames")
        )
        # Without trials, the connectivity check ended the round: all frames count as lost.
        counts = (sent, max(lost - hosts, 0)) if sent else (1000, 1000)
        found.append(planned.ChainResult(first, last, *counts))
    return found


def _found(campaign: Campaign) -> str:
    """Return a sentence that names the part of the chain that most probably loses frames."""
    seen = _seen(campaign)
    if not any(one.lost for one in seen):
        return "no frame was lost in the chain: nothing to look for"
    likely = planned.probabilities(len(campaign.device.ports) // 2, seen)
    best = max(range(len(likely)), key=likely.__getitem__)
    part = planned.chain_parts(campaign.device)[best]
    what = f"ports {' and '.join(part)} (one VLAN)" if len(part) > 1 else f"loop cable {part[0]}"
    sure = "" if likely[best] >= planned.SURE else ": more rounds or longer windows may decide"
    return f"frames are lost at {what}, {min(100 * likely[best], 99.9):.1f} % sure{sure}"


def _judge(campaign: Campaign) -> SummaryDocument:
    """Write summary, report and manifest of the rounds measured so far; return the summary."""
    from ..render.report import build

    rounds = {number: campaign.folder(number) for number in range(1, campaign.progress.done + 1)}
    again = f"`switchbench campaign {campaign.directory}` continues"
    left = [f"{campaign.number} is not measured: {again}"] if campaign.left else []
    summary = summarize(campaign.directory, campaign.run, rounds, left)
    build.write(campaign.directory)
    seal(campaign.directory)
    return summary
