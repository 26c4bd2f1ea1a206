# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong so far, as the summary will say it: made anew when a trial has ended."""

from __future__ import annotations

import time

from ..base.model import Run, Trial
from ..records.document.findings import FindingEntry
from ..records.record_forms import Record
from .summary import Summary

# All that findings rest on; times and interval results are many and left to the end.
_KINDS = {
    "hello",
    "port-open",
    "flow",
    "port",
    "phase",
    "trial",
    "unreachable",
    "misdelivered-flow",
}
_AGAIN_S = 2.0  # at most so often,
_SHARE = 0.05  # and in so much of the time


class Found:
    """Keeps a summary of its own, as far as findings need one."""

    def __init__(self, run: Run) -> None:
        """Nothing found yet."""
        self.findings: list[FindingEntry] = []
        self.suspects: dict[str, str] = {}  # what ports are suspected of, by port
        self._summary = Summary(run, brief=True)
        self._nodes = len(run.site.processes)
        self._ended = 0  # `trial` records: as many as nodes for each trial
        self._again_s = 0.0
        self._fresh = False

    def take(self, record: Record) -> None:
        """Takes a record."""
        if record["type"] not in _KINDS:
            return
        self._summary.feed(0, record)
        if record["type"] == "trial":
            self._ended += 1
            self._fresh = self._fresh or self._ended % self._nodes == 0

    def grow(self, trial: Trial) -> None:
        """One more trial, which a search chose."""
        self._summary.grow(trial)

    def turn(self) -> None:
        """Makes the findings anew if there may be other ones."""
        now_s = time.monotonic()
        if self._fresh and now_s >= self._again_s:
            self._fresh = False
            self.findings = self._summary.findings()
            self.suspects = self._summary.locator.suspects_by_port()
            ended_s = time.monotonic()
            self._again_s = ended_s + max(_AGAIN_S, (ended_s - now_s) / _SHARE)
