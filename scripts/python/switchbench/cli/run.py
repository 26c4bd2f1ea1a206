# SPDX-License-Identifier: BSD-3-Clause
"""Commands `run` and `watch`: they read a configuration, measure it, and write the results."""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import yaml
from rich.console import Console

from .. import __version__
from ..analysis import sealing
from ..analysis.sealing import changed_clauses, fix_clauses, seal, sign
from ..analysis.summary import NOT_ENDED, REFUSED_RUN, Summary, gather
from ..base import format
from ..base.errors import ConfigurationError, RunError, SwitchbenchError
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
from ..records.summary_form import Entry
from ..render.printer import make_console
from ..render.terminal import SummaryPrinter
from ..run.controller import Controller, Outcome
from ..run.launch import Launcher, launcher_for
from ..run.launch.far import refuse
from ..run.launch.ssh import resolved, side_by_side
from ..run.live.screen import Watch, offer_metrics
from ..run.nodes import Interrupt
from . import common
from .common import TYPES as TYPES
from .main import build_parser

NOT_IN_PRODUCTION = (
    "Benchmarks of devices are for laboratories: this suite overloads the network on purpose, and "
    "must not run on one that others use (RFC 6815)."
)


def run_command(args: argparse.Namespace, watched: bool = False) -> int:
    """Run the tests of a configuration; return the exit status of their summary.

    With `watched`, repeat the configuration's only trial until Ctrl-C.
    """
    begun = None
    if args.begun is not None:  # with the hosts that the run began with
        others = {"CONF": args.conf, **dict(args.options)}
        others |= {"--budget": args.budget, "--out": args.out}
        for option, value in others.items():
            if value:
                raise ConfigurationError(
                    f"--continue: the run continues with the options of {args.begun}: leave out "
                    f"{option}"
                )
        run, begun = resume(args.begun)
        run = replace(run, on_missing="stop")
        if run.suite is None or begun.whole:
            whole = format.of(len(begun.whole), "trial")
            print(f"whole in {args.begun}: {whole}", file=sys.stderr)
    else:
        run = common.load_runnable(args)
    if watched:
        run = _watched(run)
    if args.locate:
        run = replace(run, locate_s=common.LOCATE_S)
    if args.sign is not None:
        sealing.try_key(args.sign)
    if args.conf is None and begun is None and not args.quiet:
        made = document_of(args.conf, args.options).data
        print(f"# the configuration\n{yaml.safe_dump(made, sort_keys=False)}", file=sys.stderr)
    run = replace(run, site=resolved(run.site))
    if "--hosts" in dict(args.options):  # these hosts get the engine
        answers = push.push(run.site, run.site.processes, push.order(run.site))
        for line in () if args.quiet else side_by_side(answers):
            print(line, file=sys.stderr)
    launcher = launcher_for(run.site)
    run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if begun is not None:
        run_id = load_summary(args.begun)["run"]["id"]
    shown = Watch(
        run, run_id, Console(stderr=True),
        quiet=args.quiet, live=not args.no_live, metrics=args.metrics is not None,
        seconds=watched,
    )  # fmt: skip
    with offer_metrics(args.metrics, shown) as metrics, closing(launcher):
        if metrics is not None and not args.quiet:
            print(f"metrics at {metrics}", file=sys.stderr)
        return _Measurement(run, args, launcher, shown, begun, watched).measure()


def watch_command(args: argparse.Namespace) -> int:
    """Repeat one short trial until Ctrl-C; return the exit status of its summary."""
    usual = vars(build_parser(["run"]).parse_args(["run"]))
    keys = ("repeat=1", "remeasure=0", "warmup=100ms", "cooldown=0s", "window=600ms")
    # The user's own --set overrides these.
    own = vars(args) | {"options": [*(("--set", key) for key in keys), *args.options]}
    return run_command(argparse.Namespace(**usual | own), watched=True)


def _watched(run: Run) -> Run:
    """Return a run prepared for `watch`; ConfigurationError where it has more than one trial."""
    if len(run.trials) != 1 or run.searches:
        raise ConfigurationError(
            f"watch: exactly one trial can be repeated, not {len(run.trials)}: choose by "
            "--pattern, --transport and --load"
        )
    own = [port.name for port in run.site.ports if not port.engine.get("shared")]
    if own and not run.site.launcher.in_lab:
        raise ConfigurationError(
            f"watch: {own[0]} is not shared: a watch needs a simulated network (--lab), or ports "
            "with `shared: true` and a low load (doc/reference/safety.md)"
        )
    return replace(run, on_missing="stop", locate_s=None)


class _Measurement:
    """Measurement of one run: it finds the hosts, conducts the run and writes the results."""

    def __init__(
        self, run: Run, args: argparse.Namespace, launcher: Launcher, shown: Watch,
        begun: Begun | None, watched: bool,
    ) -> None:  # fmt: skip
        self.run, self.args, self.launcher = run, args, launcher
        self.shown, self.begun, self.watched = shown, begun, watched
        self.engine = find_engine()
        given = dict(args.options)
        names = (given[key] for key in ("--site", "--lab", "--pattern") if key in given)
        name = Path(args.conf or next(names, "hosts")).stem
        path = args.begun or args.out or default_path(name)
        self.directory = RunDirectory(path, begun=begun is not None)
        self.path = self.directory.path
        self.left_out: Mapping[str, str] = {}  # hosts that the run excludes, with the reason
        self.before_s = 0.0  # duration of the run until it was interrupted

    def measure(self) -> int:
        """Measure the run, and write its results; return the command's exit status."""
        try:
            self._find_hosts()
            self.dealt = documents.deal(self.run)
        except SwitchbenchError:
            self.directory.discard_if_unused()
            raise
        self.started, self.began_s = datetime.now(UTC), time.monotonic()
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = [one.partition(":")[2].strip() for one in lines if one.startswith("model name")]
        self.machine = {
            "host": platform.node(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cpus": len(os.sched_getaffinity(0)),
            "cpu": next(iter(models), None),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        }
        if self.begun is not None:
            told = load_summary(self.path)["run"]
            self.started = datetime.fromisoformat(told["started"])
            self.before_s = told.get("elapsed_s") or 0.0
        if not self.args.quiet:
            announce(self.run)
        outcome = self._conduct()
        trials = outcome.trials or self.run.trials
        self.run = replace(self.run, trials=trials, again=outcome.again)
        with Deferred() as asked:  # measurements are written before a signal takes effect
            return self._conclude(outcome, asked)

    def _find_hosts(self) -> None:
        """Find hosts that cannot take part, and plan the run again without them.

        Raise RunError where the run needs all hosts, or where none can take part.
        """
        with Handled(_interrupted):
            missing = self.launcher.gather(self.run.site.processes)
        if self.run.on_missing != "exclude" or len(missing) == len(self.run.site.processes):
            refuse(missing)
        if not missing:
            return
        for host, reason in missing.items():
            print(f"left out: {host}: {reason}", file=sys.stderr)
        self.left_out = missing
        try:
            fewer = compile_run(read_values(self.run.effective, without=tuple(missing)))
            self.run = replace(fewer, site=resolved(fewer.site), locate_s=self.run.locate_s)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"without the left-out hosts {', '.join(missing)} the run can't be planned: {error}"
            ) from None

    # --- measuring ---

    def _conduct(self) -> Outcome:
        """Start the nodes, run all trials, and end the nodes in every case; return the outcome."""
        run, directory, begun = self.run, self.directory, self.begun
        job = job_document(run, self.shown.run_id, self.dealt)
        controller = Controller(run, job, directory, self.shown, begun, self.watched)
        documents.keep_off(self.dealt.polled)
        outcome: Outcome | None = None
        shown = self.shown.of(begun.rest(run) if begun else run, controller.summary)
        with Interrupt() as interrupt, shown:
            shown.stage("making the lab" if run.site.lab else "reaching the hosts")
            try:
                with self.launcher:
                    directory.write_document(CONFIGURATION, run.effective)
                    write_plan(self.path, run)
                    directory.write_summary(Summary(run).finish(self._about(), [NOT_ENDED]))
                    fix_clauses(run, directory)
                    outcome = controller.conduct(
                        self.launcher, lambda name: [str(self.engine), "--name", name], interrupt
                    )
                    self.launcher.keep_truth(self.path)
            except SwitchbenchError as error:
                if outcome is None:
                    directory.discard_if_unused()
                    raise
                # the measurements exist: a failed shutdown is one more fault
                outcome.fail(error)
        return outcome

    def _about(self, elapsed_s: float | None = None) -> Entry:
        """Return the entry `run` of the summary, without the parts that nodes report."""
        site = self.run.site
        return {
            "id": self.shown.run_id,
            "started": f"{self.started:%Y-%m-%dT%H:%M:%SZ}",
            "elapsed_s": elapsed_s,
            "command": ["switchbench", "run", shlex.quote(str(self.path / CONFIGURATION))],
            "launch": site.launch,
            "lab": site.lab,
            "excluded_hosts": [{"host": h, "reason": why} for h, why in self.left_out.items()],
            "versions": {
                "switchbench": __version__,
                "python": platform.python_version(),
                "kernel": platform.release(),
            },
            "machine": self.machine,
        }

    # --- results ---

    def _conclude(self, outcome: Outcome, asked: Deferred) -> int:
        """Write summary, table, report and manifest of the run; return the exit status.

        A failure to write one of them does not prevent the others.
        """
        args = self.args
        about = self._about(round(self.before_s + time.monotonic() - self.began_s, 3))
        clauses = self.run.expectations
        changed = changed_clauses(clauses_sha256(clauses) if clauses else None, self.path)
        if changed:
            outcome.fail(RunError(changed))
        try:
            summary = gather(finish(self.path, self.run), self.path)
        except Exception as error:  # invalid records, a full disk, too little memory
            outcome.fail(RunError(str(error) or type(error).__name__))
            summary = Summary(self.run)  # without trials
        result = summary.finish(about, outcome.faults, refused=outcome.status == REFUSED_RUN)
        try:
            self.directory.write_summary(result)
        except SwitchbenchError as error:  # a full disk: the first summary stays
            outcome.fail(error)
        try:
            if args.json:
                common.print_json(result)
            elif result["trials"]:  # without trials, nothing was measured; faults are printed below
                SummaryPrinter(result, make_console(), args.all).print(
                    str(self.path), trials=not self.watched
                )
            else:
                print(f"nothing was measured; log and records: {self.path}")
        except Exception as error:  # the results and the exit status stay valid without the table
            reason = str(error) or type(error).__name__
            print(f"the table can't be shown: {reason}; {SUMMARY} is written", file=sys.stderr)
        if asked.name is None:
            try:
                from ..render.report import build

                report = build.write(self.path)
            except (Exception, KeyboardInterrupt) as error:  # the run keeps its status
                again = f"switchbench report {shlex.quote(str(self.path))}"
                reason = str(error) or type(error).__name__
                print(f"no report.html was made: {reason}; `{again}` makes it", file=sys.stderr)
            else:
                if not args.quiet:
                    print(f"report     {report}", file=sys.stderr)
        else:
            print(f"{asked.name}: the results are kept; no report was made", file=sys.stderr)
        try:
            sign(self.path, args.sign) if args.sign else seal(self.path)
        except SwitchbenchError as error:
            outcome.fail(error)
        for fault in outcome.faults:
            common.say_error(fault, "run")
        return outcome.status or int(result["exit_status"])


def announce(run: Run) -> None:
    """Print the trials, ports and expected duration of a run on standard error."""
    ports = format.of(len(run.site.ports), "port")
    trials = format.of(len(run.trials), "trial")
    if run.searches:
        trials = "1 search" if len(run.searches) == 1 else f"{len(run.searches)} searches"
    print(f"{trials} on {ports}, about {format.human(run.expected_s)}", file=sys.stderr)
    if run.suite is not None and not run.site.launcher.in_lab:
        print(NOT_IN_PRODUCTION, file=sys.stderr)
    if run.expectations:
        clauses = format.of(len(run.expectations), "clause")
        print(f"{clauses}, SHA-256 {clauses_sha256(run.expectations)}", file=sys.stderr)


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise RunError(f"interrupted by signal {signal.Signals(number).name}")
