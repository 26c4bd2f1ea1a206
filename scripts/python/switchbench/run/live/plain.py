# SPDX-License-Identifier: BSD-3-Clause
"""How far a run is, in lines that stay: for files, pipes, and whoever wants no screen."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console

from ...base import format
from .loss import PhaseLoss
from .state import RunState, rate

_PLAIN_S = 1.0  # at most one line of progress in so long
_MOST_FOUND = 10  # findings of a kind that are told one by one


class Plain:
    """One line for each phase, at most one a second, and one for each finding that is new, until
    there are many of its kind."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Lines go to `console`."""
        self._state = state
        self._console = console
        self._last_s = 0.0
        self._told: set[tuple[str | None, ...]] = set()
        self._kinds: Counter[str] = Counter()

    def stage(self) -> None:
        """A line."""
        self._say(self._state.stage)

    def ended(self, phase: PhaseLoss) -> None:
        """A line when a phase has ended, unless there was one just now."""
        if time.monotonic() - self._last_s < _PLAIN_S:
            return
        self._last_s = time.monotonic()
        state = self._state
        left = format.seconds(state.left_s)
        lost = f", {format.of(phase.lost.total(), 'frame')} lost" if phase.lost.total() else ""
        # A counted burst is over before anybody says at which rate it goes.
        delivered = f", {rate(state.delivered_bps)}" if state.delivered_bps else ""
        self._say(f"{state.words} done{delivered}{lost}, about {left} left")

    def turn(self) -> None:
        """Says what was found meanwhile."""
        for finding in self._state.findings:
            kind = finding["kind"]
            whose = (kind, *(finding[key] for key in ("element", "src", "dst", "port")))
            if whose in self._told:  # its size became better known
                continue
            self._told.add(whose)
            self._kinds[kind] += 1
            if self._kinds[kind] <= _MOST_FOUND:
                self._say(f"found: {finding['sentence']}")
            elif self._kinds[kind] == _MOST_FOUND + 1:
                self._say(f"found: more of this kind ({kind}), which summary.json names at the end")

    def close(self) -> None:
        """Nothing is held."""

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
