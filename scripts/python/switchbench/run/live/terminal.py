# SPDX-License-Identifier: BSD-3-Clause
"""The screen on a terminal: drawn some times a second on the terminal's second page, and gone at
the end, so that what was there before is there again and the final table follows it."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from .keys import Keys
from .loss import PhaseLoss
from .screen import Screen
from .state import RunState

_REFRESH_S = 0.5  # nodes tell of their progress as often

_NEXT = "n "
_PREVIOUS = "pb"
_ORDER = "o"


class Terminal:
    """Draws a state until it is closed."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Takes the terminal over."""
        self._state = state
        self._screen = Screen(state)
        self._drawn_s = 0.0
        self._size = console.size
        self._console = console
        self._keys = Keys()
        self._live = Live(
            self._screen,
            console=console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._keys.__enter__()
        self._live.start()

    def stage(self) -> None:
        """Drawn at once: until the first trial the stage is all there is to say."""
        self._draw()

    def ended(self, phase: PhaseLoss) -> None:
        """In the next drawing."""

    def turn(self) -> None:
        """Draws anew: when it is time, at a key, and when the terminal has another size."""
        asked = [self._press(key) for key in self._keys.pressed()]
        late = time.monotonic() - self._drawn_s >= _REFRESH_S
        if any(asked) or late or self._console.size != self._size:
            self._draw()

    def close(self) -> None:
        """Gives the terminal back."""
        try:
            self._live.stop()
        finally:
            self._keys.__exit__()

    def _press(self, key: str) -> bool:
        """Whether the key means anything."""
        if key in _NEXT:
            self._screen.turn_page(1)
        elif key in _PREVIOUS:
            self._screen.turn_page(-1)
        elif key in _ORDER:
            self._screen.by_rank = not self._screen.by_rank
        else:
            return False
        return True

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        self._size = self._console.size
        self._live.refresh()
