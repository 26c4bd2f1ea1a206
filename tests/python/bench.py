# SPDX-License-Identifier: BSD-3-Clause
"""Runs that the controller conducts with fake nodes (fake_node.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recorded import validate_summary
from runs import records_in
from switchbench.analysis.summary import gather
from switchbench.base.errors import RunError
from switchbench.base.model import Process, Run, Trial
from switchbench.plan.chosen import estimates_s, searches_of
from switchbench.records.directory import RunDirectory
from switchbench.records.store import Begun
from switchbench.run.controller import Controller, Outcome
from switchbench.run.launch.far import Launcher, piped
from switchbench.run.nodes import Interrupt
from switchbench.search.suites import SUITES
from synthetic import about, make_run, make_site, make_trial

HERE = Path(__file__).parent
FAKE = HERE / "fake_node.py"


class FakeLauncher(Launcher):
    """Starts fake nodes; remembers them so that a test can look for what is left."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, _process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.started.append(piped(command, env=os.environ | {"PYTHONPATH": str(HERE)}))
        return self.started[-1]


class FarLauncher(FakeLauncher):
    """A launcher whose connections report how they ended, as ssh's client does with status 255."""

    def lost(self, _host: str, status: int | None, _log: Sequence[str]) -> str | None:
        return "was lost there" if status else None


class BrokenPlace(FakeLauncher):
    """A place whose switch has ended, which is found out after a node has ended for that reason."""

    def check(self) -> None:
        if any(popen.returncode is not None for popen in self.started):
            raise RunError("the switch has ended")


class Recorder:
    """A watcher that keeps all that the controller reports to it."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.records = 0
        self.grown: list[Trial] = []

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def record(self, _record: dict[str, Any]) -> None:
        self.records += 1

    def grow(self, trial: Trial) -> None:
        self.grown.append(trial)

    def turn(self) -> None:
        pass


class Bench:
    """One run with fake nodes."""

    def __init__(self, path: Path, hosts: int = 2, heartbeat_timeout_ms: int = 500) -> None:
        site = make_site(hosts, heartbeat_timeout_ms=heartbeat_timeout_ms)
        self.run = make_run(
            site,
            make_trial(site, flows=hosts),
            make_trial(site, 1, flows=hosts),
        )
        self.path = path
        self.launcher = FakeLauncher()
        self.watcher = Recorder()

    def conduct(
        self, begun: Begun | None = None, watched: bool = False, **behaviours: str
    ) -> Outcome:
        directory = RunDirectory(self.path, begun=(self.path / "plan.json").exists())
        job = {"nodes": [{"name": process.name} for process in self.run.site.processes]}
        controller = Controller(self.run, job, directory, self.watcher, begun, watched)

        def command(name: str) -> list[str]:
            return [sys.executable, str(FAKE), name, behaviours.get(name, "good")]

        with Interrupt() as interrupt:
            outcome = controller.conduct(self.launcher, command, interrupt)
        assert all(popen.returncode is not None for popen in self.launcher.started)
        return outcome

    def records(self) -> list[dict[str, Any]]:
        return list(records_in(self.path))

    def summary(self, outcome: Outcome) -> dict[str, Any]:
        return summary_of(self.run, self.path, outcome)


def summary_of(run: Run, path: Path, outcome: Outcome) -> dict[str, Any]:
    result = gather(run, path).finish(about(), outcome.faults)
    validate_summary(result)
    return result


def suite_run() -> Run:
    """Return a run of NDR and PDR on two ports."""
    site = make_site(2)
    searches = searches_of("ndr-pdr", [make_trial(site, interval_s=2.0)])
    asked = SUITES["ndr-pdr"].parameters
    estimates = estimates_s("ndr-pdr", asked, searches)
    return make_run(
        site, suite="ndr-pdr", searches=searches, estimates_s=estimates,
        suite_parameters=asdict(asked),
    )  # fmt: skip
