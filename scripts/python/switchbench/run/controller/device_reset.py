# SPDX-License-Identifier: BSD-3-Clause
"""The command that resets the device under test, run in the middle of a suite's trial."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from ...base.errors import RunError
from ...base.model import SwitchCountersCommand, Trial
from ...records.record_forms import Record
from ...records.switch_counters import run_command

PART = 0.25  # of the window that has passed when the device is reset


class DeviceReset:
    """Runs the command once the window of a trial is open, and ends when both have ended.

    RunError on leaving where the command failed, or was not run before the trial ended.
    """

    def __init__(self, command: SwitchCountersCommand, trial: Trial) -> None:
        self._command = command
        self._trial = trial
        self._error: RunError | None = RunError(
            "device_reset: the trial ended before its command was run: raise reset_s"
        )
        self._timer = threading.Timer(PART * trial.window_s, self._run)
        self._opened = False

    def __enter__(self) -> Self:
        return self

    def take(self, record: Record) -> None:
        """Takes a record of a node: the first that says that the window is open starts the time."""
        now = record.get("trial"), record["type"], record.get("step")
        if not self._opened and now == (self._trial.id, "progress", "window"):
            self._opened = True
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self._timer.cancel()
        if self._opened:
            self._timer.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            run_command(self._command, "device_reset")
            self._error = None
        except RunError as error:
            self._error = error
