# SPDX-License-Identifier: BSD-3-Clause
"""The command that resets the device under test, run in the middle of a suite's trial."""

from __future__ import annotations

import threading
from types import TracebackType

from ...base.errors import RunError
from ...base.model import SwitchCountersCommand, Trial
from ...plan.suite import overhead_s
from ...records.switch_counters import run_command

PART = 0.25  # of the window that has passed when the device is reset


class DeviceReset:
    """Starts with a trial; ends when it has ended and the command has, too.

    RunError on leaving where the command failed.
    """

    def __init__(self, command: SwitchCountersCommand, trial: Trial) -> None:
        self._command = command
        self._error: RunError | None = None
        delay_s = overhead_s(trial) + PART * trial.window_s
        self._timer = threading.Timer(delay_s, self._run)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self._timer.cancel()
        self._timer.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            run_command(self._command, "device_reset")
        except RunError as error:
            self._error = error
