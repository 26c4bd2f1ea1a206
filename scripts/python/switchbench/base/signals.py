# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C and its like in other hands for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from .errors import RunError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Handled:
    """While entered, `handler` has the signals by which people and machines end a command."""

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Nothing is changed before it is entered."""
        self._handler = handler
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        for number in _SIGNALS:
            self._previous[number] = signal.signal(number, self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class Deferred(Handled):
    """While entered, the first signal is only noted; a second one ends what is being done."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._note)
        self.name: str | None = None
        """Of the signal that came."""
        self.twice = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.name is not None:
            self.twice = True
            raise RunError(f"interrupted ({self.name}, twice)")
        self.name = signal.Signals(number).name
