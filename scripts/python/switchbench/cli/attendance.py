# SPDX-License-Identifier: BSD-3-Clause
"""Which hosts take part in a run.

All of them or none, or with `on_missing: exclude` those that can.
"""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from types import FrameType

from ..analysis.summary import Summary
from ..base.errors import ConfigurationError, RunError, SwitchbenchError
from ..base.model import Run
from ..base.programs import Handled
from ..run.controller import Outcome
from ..run.launch import FarLauncher, Launcher
from ..run.launch.far import Unreached, refuse
from ..run.launch.ssh import resolved
from .common import load_run


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise RunError(f"interrupted ({signal.Signals(number).name})")


class Attendance:
    """Who was left out until now, and the run without them."""

    def __init__(self, args: argparse.Namespace, launcher: Launcher) -> None:
        """Ask nobody yet; the arguments say how the run is planned again."""
        self._args = args
        self._launcher = launcher
        self.left_out: tuple[Unreached, ...] = ()

    def take(self, run: Run) -> Run:
        """Return the run with all, or planned again without the hosts that can't take part."""
        if not isinstance(self._launcher, FarLauncher):
            return run
        with Handled(_interrupted):
            missing = tuple(self._launcher.gather(run.site.processes))
        if run.on_missing != "exclude" or len(missing) == len(run.site.processes):
            refuse(missing)
        return self._without(missing) if missing else run

    def after(self, run: Run, outcome: Outcome) -> Run | None:
        """Return the run to go on with once nodes were lost before anything was sent.

        None: there is none.

        That it can't be planned without them is one more fault of what was.
        """
        lost = tuple(Unreached(host, f"it {why}") for host, why in outcome.lost.items())
        if not lost or run.on_missing != "exclude" or not isinstance(self._launcher, FarLauncher):
            return None
        try:
            return self.take(self._without(lost))
        except SwitchbenchError as error:
            outcome.faults.append(str(error))
            return None

    def _without(self, missing: tuple[Unreached, ...]) -> Run:
        for host in missing:
            print(f"left out: {host}", file=sys.stderr)
        self.left_out += missing
        names = tuple(host.host for host in self.left_out)
        try:
            run = load_run(self._args, without=names)
            run = replace(run, site=resolved(run.site))
            Summary(run)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"without {', '.join(names)} the run can't be planned: {error}"
            ) from None
        return run
