# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench campaign`: runs between which cables are moved, judged as one.

All that is known of a campaign is in its directory (campaign.json), written before each wait: a
terminal or an ssh session that is lost costs nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..analysis.campaign import summarize
from ..analysis.sealing import fix_clauses, write_record
from ..base import format
from ..base.errors import ConfigurationError, RunError
from ..base.model import Device, Port, Run
from ..base.source import read_file
from ..config import read
from ..hosts.alike import read_links, refuse_unmoved
from ..plan.campaign import (
    SURE,
    ChainResult,
    Places,
    chain_parts,
    chain_places,
    moves,
    next_passes,
    probabilities,
    rotation,
)
from ..plan.compile import compile_run
from ..records.directory import (
    CONFIGURATION,
    SUMMARY,
    RunDirectory,
    default_path,
    load_summary,
    read_json,
    refuse_other_form,
    replace_json,
)
from ..render.printer import make_console
from ..render.terminal import SummaryPrinter
from .common import configuration, load_runnable, request

TYPES = {"CONF": configuration}
SCHEMA = "switchbench-campaign/1"
STATE = "campaign.json"


@dataclass
class Campaign:
    """A campaign as its directory has it."""

    directory: Path
    run: Run  # its configuration, with cables as they are before the first round
    device: Device
    rounds: list[Places]  # of a chain those until now
    done: int = 0
    carriers: dict[str, int | None] | None = None  # before cables were moved; None: not yet asked

    @property
    def in_lab(self) -> bool:
        """Whether the command moves the cables itself."""
        return self.run.site.launcher.in_lab

    @property
    def left(self) -> int:
        """Rounds that are planned and not measured."""
        return len(self.rounds) - self.done

    def before(self) -> Places:
        """Return where host ports are until the next round."""
        return self.rounds[max(self.done - 1, 0)]

    def folder(self, number: int) -> Path:
        """Return the results directory of a round, from 1."""
        return self.directory / f"round-{number:02}"

    def write(self) -> None:
        """Keep it."""
        state = {"rounds": self.rounds, "done": self.done, "carriers": self.carriers}
        replace_json(self.directory / STATE, {"schema": SCHEMA, **state})


def campaign_command(args: argparse.Namespace) -> int:
    """Begin a campaign or go on with one; return the status of all rounds together."""
    campaign = _resume(args) if args.conf and args.conf.is_dir() else _begin(args)
    if args.plan:
        _print_plan(campaign)
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
            "campaign: the site has no `device`: such as `device: {ports: p[1-48]}`"
        )
    if run.suite is not None or run.searches:
        raise ConfigurationError("campaign: runs `tests`, and no `suite`")
    if not run.site.launcher.in_lab and not run.site.launcher.logs_in:
        raise ConfigurationError(
            f"campaign: links are read by ssh, and this site says launch: {run.site.launch}"
        )
    at = {port.name: str(port.switch_port) for port in run.site.ports}
    if device.chain:
        span = next_passes(len(device.ports) // 2, [])
        assert span is not None
        rounds = [chain_places(device, list(at), span)]
    else:
        rounds = rotation(device, at)
    path = args.out or default_path(f"campaign-{Path(args.conf or 'hosts').stem}")
    campaign = Campaign(path, run, device, rounds)
    if not args.plan:
        made = RunDirectory(path)
        made.write_configuration(run.effective)
        fix_clauses(run, made)
        campaign.write()
    return campaign


def _resume(args: argparse.Namespace) -> Campaign:
    path = args.conf
    try:
        state = read_json(path / STATE)
    except (OSError, ValueError):
        raise ConfigurationError(
            f"{path} is no campaign: it has no {STATE} that can be read; name a configuration, or "
            "the directory that `switchbench campaign` made"
        ) from None
    refuse_other_form(state, SCHEMA, path / STATE)
    args.conf = path / CONFIGURATION
    run = compile_run(read(request(args)))
    device = run.site.device
    if device is None or not state["rounds"]:
        raise ConfigurationError(f"{path} is no campaign: its configuration has no `device`")
    return Campaign(path, run, device, state["rounds"], state["done"], state["carriers"])


def _print_plan(campaign: Campaign) -> None:
    each = campaign.run.expected_s
    more = " and more, as they find" if campaign.device.chain else ""
    rounds = format.of(len(campaign.rounds), "round")
    print(f"{rounds}{more}, {format.human(each)} each; {campaign.done} done")
    for number, places in enumerate(campaign.rounds, start=1):
        before = campaign.rounds[max(number - 2, 0)]
        print(f"round {number}: {', '.join(f'{a} in {b}' for a, b in places.items())}")
        for line in moves(campaign.device, before, places):
            print(f"  {line}")


# --- cables ---------------------------------------------------------------------------------------


def _cable(campaign: Campaign) -> bool:
    """See that cables are as the next round has them; False: they are still to be moved."""
    if campaign.in_lab:
        return True
    places, number = campaign.rounds[campaign.done], campaign.done + 1
    site = campaign.run.site
    ports = [replace(port, switch_port=places[port.name]) for port in site.ports]
    moved = {port.name for port in ports if campaign.before()[port.name] != port.switch_port}
    todo = moves(campaign.device, campaign.before(), places)
    asked = campaign.carriers is not None or not todo
    if not asked:
        campaign.carriers = {name: link.changes for name, link in read_links(site).items()}
        campaign.write()
    while True:
        if not asked:
            print(f"round {number} of {len(campaign.rounds)}:")
            print("\n".join(f"  {line}" for line in todo))
            if not sys.stdin.isatty():
                return False
            input("Enter when that is done; Ctrl-C to go on another time: ")
        try:
            refuse_unmoved(ports, moved, campaign.carriers or {}, read_links(site))
        except ConfigurationError as error:
            if not sys.stdin.isatty():
                raise
            print(f"switchbench: {error}", file=sys.stderr)
            asked, todo = False, todo or [f"{port.name} in {port.switch_port}" for port in ports]
            continue
        return True


# --- rounds ---------------------------------------------------------------------------------------


def _measure(campaign: Campaign) -> None:
    """Run a round as any run; RunError where it was not measured whole."""
    number = campaign.done + 1
    folder, conf = campaign.folder(number), campaign.directory / f"round-{number:02}.yaml"
    document = read_file(campaign.directory / CONFIGURATION).data
    _place(
        document["site"], campaign.device, campaign.rounds[campaign.done], campaign.run.site.ports
    )
    RunDirectory(campaign.directory, begun=True).write_document(conf.name, document)
    aside = 1
    while folder.exists() and (cut := folder.with_name(f"{folder.name}.cut-{aside}")):
        aside += 1
        if not cut.exists():
            folder.rename(cut)
    print(f"round {number} of {len(campaign.rounds)}", file=sys.stderr)
    words = [sys.executable, "-m", "switchbench", "run", str(conf), "--out", str(folder), "--quiet"]
    status = subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode
    if not _is_measured(folder, status):
        error = ConfigurationError if status == ConfigurationError.status else RunError
        raise error(
            f"round {number} was not measured whole: `switchbench campaign {campaign.directory}` "
            "repeats it"
        )
    campaign.done, campaign.carriers = number, None
    if campaign.device.chain:
        span = next_passes(len(campaign.device.ports) // 2, _seen(campaign))
        if span is not None:
            testers = list(campaign.rounds[0])
            campaign.rounds.append(chain_places(campaign.device, testers, span))
    campaign.write()
    if campaign.left and not campaign.in_lab:
        _judge(campaign)


def _place(site: dict[str, Any], device: Device, places: Places, ports: tuple[Port, ...]) -> None:
    """Write into a site where its ports are plugged in."""
    for port in ports:
        where = places[port.name]
        if "lab" in site:
            own = site.setdefault("overrides", {})
            own[port.host] = {**own.get(port.host, {}), "port": where}
        else:
            site["wiring"] = {**(site.get("wiring") or {}), port.name: [device.name, where]}


def _is_measured(folder: Path, status: int) -> bool:
    """Return whether a round has ended by itself: what the device does not let pass is a result."""
    if status == ConfigurationError.status or not (folder / SUMMARY).exists():
        return False
    summary = load_summary(folder)
    dead = any(one["kind"] == "dead" for one in summary["findings"])
    return summary["status"] == "complete" or dead


def _seen(campaign: Campaign) -> list[ChainResult]:
    """Return what each round through the chain lost."""
    found = []
    for number in range(1, campaign.done + 1):
        places = sorted(map(campaign.device.ports.index, campaign.rounds[number - 1].values()))
        phases = load_summary(campaign.folder(number))["trials"]
        sent = sum(one["offered_frames"] or 0 for one in phases)
        lost = sum(
            max((one["lost_frames"] or 0) - (one["host_dropped_frames"] or 0), 0) for one in phases
        )
        if not sent:  # the connectivity check ended it: nothing passes
            sent = lost = 1000
        found.append(ChainResult(places[0] // 2, places[1] // 2, sent, lost))
    return found


def _found(campaign: Campaign) -> str:
    """Return which part of a chain loses frames, in a sentence."""
    seen = _seen(campaign)
    if not any(one.lost for one in seen):
        return "no frame was lost in the chain: nothing to look for"
    likely = probabilities(len(campaign.device.ports) // 2, seen)
    best = max(range(len(likely)), key=likely.__getitem__)
    part = chain_parts(campaign.device)[best]
    what = f"ports {' and '.join(part)} (one VLAN)" if len(part) > 1 else f"loop cable {part[0]}"
    sure = "" if likely[best] >= SURE else ": more rounds or longer windows would tell"
    return f"frames are lost at {what}, {min(100 * likely[best], 99.9):.1f} % sure{sure}"


def _judge(campaign: Campaign) -> Mapping[str, Any]:
    """Write summary, report and record of the rounds until now."""
    from ..render.report import build

    rounds = {number: campaign.folder(number) for number in range(1, campaign.done + 1)}
    left = []
    if campaign.left:
        rest = f"{campaign.left} of {format.of(len(campaign.rounds), 'round')}"
        left = [f"{rest} not measured: `switchbench campaign {campaign.directory}` goes on"]
    summary = summarize(campaign.directory, campaign.run, rounds, left)
    build.write(campaign.directory)
    write_record(campaign.directory, summary)
    return summary
