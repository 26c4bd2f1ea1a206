# SPDX-License-Identifier: BSD-3-Clause
"""Commands `run` and `watch`: configuration, plan, launch, measurement, summary, table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import yaml
from rich.console import Console

from .. import __version__
from ..analysis import sealing
from ..analysis.remake import elsewhere, gather
from ..analysis.sealing import changed_clauses, fix_clauses, write_record
from ..analysis.summary import NOT_ENDED, REFUSED_RUN, Summary
from ..base import format
from ..base.errors import ConfigurationError, RunError, SwitchbenchError
from ..base.format import bit_rate
from ..base.model import Run
from ..base.programs import Deferred, Handled, find_engine
from ..config import read_values
from ..config.clauses import clauses_sha256
from ..config.read import document_of
from ..hosts import push
from ..plan import documents
from ..plan.compile import compile_run
from ..plan.documents import job_document
from ..records.directory import (
    CONFIGURATION,
    SUMMARY,
    RunDirectory,
    default_path,
    load_summary,
    write_plan,
)
from ..records.store import Begun, finish, resume
from ..records.summary_form import Entry, SummaryDocument
from ..render.printer import make_console
from ..render.terminal import SummaryPrinter
from ..run.controller import Controller, Outcome
from ..run.launch import Launcher, launcher_for
from ..run.launch.far import Unreached, refuse
from ..run.launch.ssh import resolved, side_by_side
from ..run.live.screen import Watch, offer_metrics
from ..run.nodes import Interrupt
from . import common

# --- run ------------------------------------------------------------------------------------------


TYPES = {
    "CONF": common.configuration,
    **dict.fromkeys(("--budget", "--locate-time"), common.said(common.seconds)),
}


NOT_IN_PRODUCTION = (
    "Benchmarks of devices are for laboratories: this suite overloads the network on purpose, and "
    "must not run on one that others use (RFC 6815)."
)


@dataclass(frozen=True)
class _Place:
    """Circumstances of a run: start time, machine, engine, directory, excluded hosts."""

    started: datetime
    began_s: float  # start on the monotonic clock
    machine: Entry  # the machine at the start, before cores are left to polling nodes
    engine: Path
    directory: RunDirectory
    shown: Watch
    dealt: documents.Deal
    left_out: tuple[Unreached, ...]  # hosts that the run excludes
    begun: Begun | None = None  # results of an interrupted run that this one continues
    before_s: float = 0.0  # duration of the run until it was interrupted
    watched: bool = False


def run_command(args: argparse.Namespace) -> int:
    """Run a configuration; return the exit status of its summary."""
    begun = None
    if args.begun is not None:
        run, begun = _resume(args)
    else:
        if args.fit:
            tests = document_of(common.request(args)).data.get("tests", [])
            args.assignments += fit(common.load_run(args), tests, args.quiet)
        run = common.load_runnable(args)
    if args.watched:
        run = _watched(run)
    if args.locate:
        run = replace(run, locate_s=args.locate_time or common.LOCATE_S)
    if args.sign is not None:
        sealing.try_key(args.sign)
    Summary(run)  # reject a clause that no trial can answer before any traffic
    if args.conf is None and begun is None and not args.quiet:
        made = document_of(common.request(args)).data
        print(f"# the configuration\n{yaml.safe_dump(made, sort_keys=False)}", file=sys.stderr)
    run = replace(run, site=resolved(run.site))
    if args.hosts:
        _bring_engine(run, args.quiet)
    launcher = launcher_for(run.site)
    run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if begun is not None:
        run_id = load_summary(args.begun)["run"]["id"]
    shown = Watch(
        run, run_id, Console(stderr=True),
        quiet=args.quiet, live=not args.no_live, metrics=args.metrics is not None,
        seconds=args.watched,
    )  # fmt: skip
    with offer_metrics(args.metrics, shown) as metrics, closing(launcher):
        if metrics is not None and not args.quiet:
            print(f"metrics at {metrics}", file=sys.stderr)
        return _measure(run, args, launcher, shown, begun)


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Set the default that a run is not a watch."""
    parser.set_defaults(watched=False)


def watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Set the defaults of `watch` for the options that only `run` has."""
    parser.set_defaults(
        watched=True, begun=None, fit=False, locate=False, sign=None, budget=None, quiet=False,
        no_live=False, json=False, all=False, latency=False,
    )  # fmt: skip


def watch_command(args: argparse.Namespace) -> int:
    """Repeat one short trial until Ctrl-C; return the exit status of its summary."""
    args.assignments = [*_WATCH, *args.assignments]
    return run_command(args)


# overridden by --set
_WATCH = ("repeat=1", "remeasure=0", "warmup=100ms", "cooldown=0s", "window=600ms")


def _watched(run: Run) -> Run:
    """Return a run prepared for `watch`; ConfigurationError where it has more than one trial."""
    if len(run.trials) != 1 or run.searches:
        raise ConfigurationError(
            f"watch: one trial is repeated, and these are {len(run.trials)}: choose by --pattern, "
            "--transport and --load"
        )
    own = [port.name for port in run.site.ports if not port.engine.get("shared")]
    if own and not run.site.launcher.in_lab:
        raise ConfigurationError(
            f"watch: {own[0]} is not shared: a watch runs on labs, or at a low load on ports with "
            "`shared: true` (doc/reference/safety.md)"
        )
    return replace(run, on_missing="stop", locate_s=None)


def _resume(args: argparse.Namespace) -> tuple[Run, Begun]:
    """Return the run that --continue names, with the hosts that it began with."""
    others = ("conf", "assignments", "site", "profile", "lab", "hosts", "iface", "suite", "pattern",
              "transport", "load", "duration", "budget", "out", "fit")  # fmt: skip
    for name in others:
        if getattr(args, name):
            option = {"conf": "CONF", "assignments": "--set"}.get(name, f"--{name}")
            raise ConfigurationError(
                f"--continue: the run is as it was begun in {args.begun}: leave out {option}"
            )
    run, begun = resume(args.begun)
    if run.suite is None or begun.whole:
        print(f"whole in {args.begun}: {format.of(len(begun.whole), 'trial')}", file=sys.stderr)
    return replace(run, on_missing="stop"), begun


def _bring_engine(run: Run, quiet: bool) -> None:
    """Push the engine to hosts that lack this build.

    Hosts on which this fails are reported later, with all others that cannot take part.
    """
    results = push.push(run.site, run.site.processes, push.order(run.site, None, None))
    if not quiet:
        for line in side_by_side(results):
            print(line, file=sys.stderr)


def _measure(
    run: Run, args: argparse.Namespace, launcher: Launcher, shown: Watch, begun: Begun | None
) -> int:
    engine = find_engine()
    name = Path(args.conf or args.site or args.lab or args.pattern or "hosts").stem
    path = args.begun or args.out or default_path(name)
    directory = RunDirectory(path, begun=begun is not None)
    attendance = Attendance(launcher)
    try:
        run = attendance.take(run)
        dealt = documents.deal(run)
    except SwitchbenchError:
        directory.discard_if_unused()
        raise
    now, now_s = datetime.now(UTC), time.monotonic()
    left_out = attendance.left_out
    place = _Place(
        now, now_s, _machine(), engine, directory, shown, dealt, left_out, begun,
        watched=args.watched,
    )  # fmt: skip
    if begun is not None:
        told = load_summary(path)["run"]
        started = datetime.fromisoformat(told["started"])
        place = replace(place, started=started, before_s=told.get("elapsed_s") or 0.0)
    if not args.quiet:
        announce(run)
    outcome = _conduct(run, launcher, place)
    while (fewer := attendance.after(run, outcome)) is not None:
        run = fewer
        directory.start_over()
        place = replace(place, dealt=documents.deal(run), left_out=attendance.left_out)
        outcome = _conduct(run, launcher, place)
    if outcome.trials:
        run = replace(run, trials=outcome.trials)
    run = replace(run, again=outcome.again)
    with Deferred() as asked:  # measurements are written before a signal takes effect
        return _conclude(run, args, place, outcome, asked)


def _conclude(
    run: Run, args: argparse.Namespace, place: _Place, outcome: Outcome, asked: Deferred
) -> int:
    """Write summary, table, report and record of a run; return the exit status.

    A failure of one does not prevent the others.
    """
    result = _summarize(run, place, outcome, asked)
    try:
        if args.json:
            common.print_json(result)
        elif result["trials"]:  # else nothing was measured, and the reasons follow below
            SummaryPrinter(result, make_console(), args.all, args.latency).print(
                str(place.directory.path), trials=not place.watched
            )
        else:
            print(f"nothing was measured; log and records: {place.directory.path}")
    except Exception as error:  # the run keeps its results and its status, as for the report
        reason = str(error) or type(error).__name__
        print(f"the table can't be shown: {reason}; {SUMMARY} is written", file=sys.stderr)
    if asked.name is None:
        _write_report(place.directory, args.quiet)
    else:
        print(f"{asked.name}: the results are kept; no report was made", file=sys.stderr)
    try:
        write_record(place.directory.path, result, args.sign)
    except SwitchbenchError as error:
        outcome.fail(error)
    for fault in outcome.faults:
        common.say_error(fault, "run")
    return outcome.status or int(result["exit_status"])


def _summarize(run: Run, place: _Place, outcome: Outcome, asked: Deferred) -> SummaryDocument:
    """Return the written summary of a run's tables; changed clauses are a further fault."""
    about = _about(run, place, round(place.before_s + time.monotonic() - place.began_s, 3))
    fixed = clauses_sha256(run.expectations) if run.expectations else None
    changed = changed_clauses(fixed, place.directory.path)
    if changed:
        outcome.fail(RunError(changed))
    summary = _gather(run, place.directory.path, outcome, asked)
    result = summary.finish(about, outcome.faults, refused=outcome.status == REFUSED_RUN)
    try:
        place.directory.write_summary(result)
    # a full disk: a short summary with the reason may still have room
    except SwitchbenchError as error:
        outcome.fail(error)
        try:
            place.directory.end_in_place(Summary(run).finish(about, outcome.faults))
        except (OSError, SwitchbenchError) as second:
            outcome.fail(RunError(str(second)))
    return result


def _gather(run: Run, directory: Path, outcome: Outcome, asked: Deferred) -> Summary:
    """Return the summary of a run's tables, or one without trials where that fails.

    A failure becomes a fault of the run.
    """
    try:
        return gather(finish(directory, run), directory)
    except Exception as error:  # invalid records, a full disk, too little memory
        words = str(error) or type(error).__name__
        outcome.fail(RunError(words))
    if not asked.twice:
        with suppress(Exception), elsewhere(directory) as place:  # another disk may have room
            return gather(finish(place, run), place)
    return Summary(run)


def _conduct(run: Run, launcher: Launcher, place: _Place) -> Outcome:
    """Start the nodes, measure, and stop the nodes, whatever happens."""
    job = job_document(run, place.shown.run_id, place.dealt)
    controller = Controller(run, job, place.directory, place.shown, place.begun, place.watched)
    documents.keep_off(place.dealt.polled)
    outcome: Outcome | None = None
    shown = place.shown.of(place.begun.rest(run) if place.begun else run, controller.summary)
    with Interrupt() as interrupt, shown:
        shown.stage("making the lab" if run.site.lab else "reaching the hosts")
        try:
            with launcher:
                place.directory.write_configuration(run.effective)
                write_plan(place.directory.path, run)
                place.directory.begin_summary(Summary(run).finish(_about(run, place), [NOT_ENDED]))
                fix_clauses(run, place.directory)
                outcome = controller.conduct(
                    launcher, lambda name: [str(place.engine), "--name", name], interrupt
                )
                launcher.keep_truth(place.directory.path)
        except SwitchbenchError as error:
            if outcome is None:
                place.directory.discard_if_unused()
                raise
            # the measurements exist: a failed shutdown is one more fault
            outcome.fail(error)
    return outcome


def _write_report(directory: RunDirectory, quiet: bool) -> None:
    """Write report.html; a failure prints a sentence and leaves the run's status."""
    try:
        from ..render.report import build

        path = build.write(directory.path)
    except (Exception, KeyboardInterrupt) as error:
        again = f"switchbench report {shlex.quote(str(directory.path))}"
        reason = str(error) or type(error).__name__
        print(f"no report.html was made: {reason}; `{again}` makes it", file=sys.stderr)
    else:
        if not quiet:
            print(f"report     {path}", file=sys.stderr)


def announce(run: Run) -> None:
    """Print the number of trials, ports and minutes of a run on standard error."""
    ports = format.of(len(run.site.ports), "port")
    trials = format.of(len(run.trials), "trial")
    if run.searches:
        trials = "1 search" if len(run.searches) == 1 else f"{len(run.searches)} searches"
    tests = f"{trials} on {ports}"
    print(f"{tests}, about {format.human(run.expected_s)}", file=sys.stderr)
    if run.suite is not None and not run.site.launcher.in_lab:
        print(NOT_IN_PRODUCTION, file=sys.stderr)
    if run.expectations:
        clauses = format.of(len(run.expectations), "clause")
        print(f"{clauses}, SHA-256 {clauses_sha256(run.expectations)}", file=sys.stderr)


def _about(run: Run, place: _Place, elapsed_s: float | None = None) -> Entry:
    """Return the summary's `run` entry, without the parts that nodes report."""
    again = place.directory.path / CONFIGURATION
    return {
        "id": place.shown.run_id,
        "started": f"{place.started:%Y-%m-%dT%H:%M:%SZ}",
        "elapsed_s": elapsed_s,
        "command": ["switchbench", "run", shlex.quote(str(again))],
        "launch": run.site.launch,
        "lab": run.site.lab,
        "excluded_hosts": [{"host": host.host, "reason": host.reason} for host in place.left_out],
        "versions": {
            "switchbench": __version__,
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "machine": place.machine,
    }


def _machine() -> Entry:
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _cpu_model() -> str | None:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


# --- attendance -----------------------------------------------------------------------------------


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise RunError(f"interrupted ({signal.Signals(number).name})")


class Attendance:
    """Hosts excluded from a run so far, and the run without them."""

    def __init__(self, launcher: Launcher) -> None:
        """Start without excluded hosts."""
        self._launcher = launcher
        self.left_out: tuple[Unreached, ...] = ()

    def take(self, run: Run) -> Run:
        """Return the run, planned again without the hosts that cannot take part."""
        with Handled(_interrupted):
            missing = tuple(self._launcher.gather(run.site.processes))
        if run.on_missing != "exclude" or len(missing) == len(run.site.processes):
            refuse(missing)
        return self._without(run, missing) if missing else run

    def after(self, run: Run, outcome: Outcome) -> Run | None:
        """Return the run to continue after nodes were lost before any traffic; None without one.

        A failure to plan the run without these nodes becomes a fault of `outcome`.
        """
        lost = tuple(Unreached(host, f"it {why}") for host, why in outcome.lost.items())
        if not lost or run.on_missing != "exclude" or not run.site.launcher.is_far:
            return None
        try:
            return self.take(self._without(run, lost))
        except SwitchbenchError as error:
            outcome.faults.append(str(error))
            return None

    def _without(self, run: Run, missing: tuple[Unreached, ...]) -> Run:
        for host in missing:
            print(f"left out: {host}", file=sys.stderr)
        self.left_out += missing
        names = tuple(host.host for host in self.left_out)
        try:
            fewer = compile_run(read_values(run.effective, without=names))
            run = replace(fewer, site=resolved(fewer.site), locate_s=run.locate_s)
            Summary(run)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"without {', '.join(names)} the run can't be planned: {error}"
            ) from None
        return run


# --- fit ------------------------------------------------------------------------------------------


STEPS = (1.0, 0.5, 0.25, 0.1)  # candidate rates, as shares of the lab's rate
MARGIN = 2.0  # a rate is chosen if the machine carried this multiple of it
LOAD = 80.0  # percent of the line rate at the highest step, so that shapers do not limit
CARRIED = 0.98  # share of the intended load that all ports together must offer
FEWER_NODES = 4  # number of nodes where the machine does not carry the lowest rate
WINDOW = "300ms"
REPEATS = 2  # of each load; the better one counts


def fit(run: Run, tests: Sequence[Mapping[str, Any]], quiet: bool) -> list[str]:
    """Calibrate with some seconds of traffic; return the `--set` assignments that fit the lab.

    The lab gets the highest rate in STEPS of which every transport carried MARGIN times as much, in
    the better one of its repeats. `tests` are the configuration's, as written; their `ranks` must
    exist in a lab of fewer nodes.

    Raises ConfigurationError where the run has no lab with equal ports, and RunError where nothing
    could be measured.
    """
    rates = {port.line_rate_bps for port in run.site.ports}
    if not run.site.launcher.in_lab or len(rates) != 1 or 0 in rates:
        raise ConfigurationError("--fit is for a lab of namespaces whose ports all have one rate")
    [line_bps], ports = rates, len(run.site.ports)

    def say(sentence: str) -> None:
        if not quiet:
            print(sentence, file=sys.stderr)

    say("calibrating: some seconds of traffic")
    offered: dict[float, dict[str, float]] = {step: {} for step in STEPS}
    for trial in _try_loads(run, line_bps):
        step = min(STEPS, key=lambda step: abs(LOAD * step - trial["intended_load"]))
        best = offered[step].get(trial["transport"], 0.0)
        part = (trial["offered_load"] or 0.0) / trial["intended_load"]
        offered[step][trial["transport"]] = max(best, part)
    carried = [step for step, by in offered.items() if min(by.values(), default=0.0) >= CARRIED]
    rate_bps = round(max(carried, default=min(STEPS)) * line_bps)
    nodes = ports if carried else min(ports, FEWER_NODES)
    most = f"{ports} ports at {bit_rate(MARGIN * rate_bps)} both ways"
    lab = f"the lab has {nodes} ports of {bit_rate(rate_bps)}"
    reason = "half of it" if rate_bps != line_bps else "as asked for"
    say(f"fit: this machine carries {most}; {lab}, {reason}" if carried
        else f"fit: this machine does not even carry {most}; {lab}")  # fmt: skip
    assignments = [f"site.rate={rate_bps}bit"] if rate_bps != line_bps else []
    if nodes != ports:
        assignments.append(f"site.nodes={nodes}")
        for number, test in enumerate(tests):  # drop ranks beyond the smaller number of nodes
            asked = test.get("ranks")
            if isinstance(asked, list):
                kept = [ranks for ranks in asked if ranks <= nodes] or [nodes]
                assignments.append(f"tests.{number}.ranks={kept}")
            elif isinstance(asked, int) and asked > nodes:
                assignments.append(f"tests.{number}.ranks={nodes}")
    return assignments


def _try_loads(run: Run, line_bps: int) -> list[dict[str, Any]]:
    """Return the summary's trials of a short run: pairs at every step, over all transports."""
    settings = {
        "site": json.dumps({**run.site.lab_overrides, "lab": run.site.lab}),
        "site.rate": f"{round(MARGIN * line_bps * 100 / LOAD)}bit",
        "transports": json.dumps(sorted({trial.transport for trial in run.planned})),
        "loads": json.dumps([f"{LOAD * step:g}%" for step in STEPS]),
        "window": WINDOW,
        "warmup": "100ms",
        "repeat": str(REPEATS),
    }
    with TemporaryDirectory(prefix="sb-fit-") as folder:
        out = Path(folder) / "results"
        command = [sys.executable, "-m", "switchbench", "run", "--pattern", "pairs", "--quiet"]
        command += ["--out", str(out), "--lab", str(run.site.lab)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not (out / SUMMARY).exists():
            why = (done.stderr.strip().splitlines() or ["no result"])[-1]
            raise RunError(f"--fit: nothing could be measured: {why}")
        return [dict(entry) for entry in load_summary(out)["trials"]]
