# SPDX-License-Identifier: BSD-3-Clause
"""What the command shows of a run that it conducts: the controller's watcher."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol, Self

from rich.console import Console

from ...analysis.summary import Summary
from ...base.model import Run, Trial
from ...records.record_forms import Record
from .loss import PhaseLoss
from .plain import Plain
from .state import RunState
from .terminal import Terminal


class View(Protocol):
    """One way to show a state."""

    def stage(self) -> None:
        """A new stage has begun."""

    def ended(self, phase: PhaseLoss) -> None:
        """A phase has ended on all nodes."""

    def turn(self) -> None:
        """Called some times a second."""

    def close(self) -> None:
        """No more is shown."""


@dataclass(frozen=True)
class Wish:
    """Options of the command that say what is shown."""

    quiet: bool = False
    live: bool = True
    metrics: str | None = None  # where: somebody asks for the state though nothing is shown


class Watch:
    """Keeps the state and hands it to what shows it. Shows nothing before it is entered."""

    def __init__(self, run: Run, run_id: str, wish: Wish, console: Console) -> None:
        """The screen or the lines are for `console`."""
        self.run_id = run_id
        self.state = RunState(run, Summary(run, brief=True))
        self._wish = wish
        self._console = console
        self._view: View | None = None

    def of(self, run: Run, summary: Summary) -> Self:
        """It is this run from now on, with its controller's summary."""
        self.state = RunState(run, summary)
        return self

    def stage(self, text: str) -> None:
        """A new stage begins: in words."""
        self.state.stage = text
        self._show(lambda view: view.stage())

    def grow(self, trial: Trial) -> None:
        """One more trial, which a search chose."""
        self.state.grow(trial)

    def record(self, record: Record) -> None:
        """A node has said something."""
        if self._wish.quiet and self._wish.metrics is None:
            return
        ended = self.state.take(record)
        if ended is not None:
            self._show(lambda view: view.ended(ended))

    def turn(self) -> None:
        """Called some times a second."""
        self.state.turn()
        self._show(lambda view: view.turn())

    def __enter__(self) -> Self:
        if not self._wish.quiet:
            screen = self._wish.live and can_show_screen(self._console)
            self._view = (Terminal if screen else Plain)(self.state, self._console)
        return self

    def __exit__(self, *_: object) -> None:
        self._show(lambda view: view.close())
        self._view = None

    def _show(self, act: Callable[[View], None]) -> None:
        """A terminal that has gone must not end what is being measured."""
        if self._view is not None:
            try:
                act(self._view)
            except BlockingIOError:
                pass  # a terminal that is read too slowly: the next turn shows it all again
            except OSError:
                view, self._view = self._view, None
                with suppress(OSError):
                    view.close()  # a screen that stays would hide what comes after it


def can_show_screen(console: Console) -> bool:
    """Whether it is a terminal that can be drawn upon."""
    return console.is_terminal and not console.is_dumb_terminal


def watch(run: Run, run_id: str, wish: Wish) -> Watch:
    """Return the view of a run that fits standard error: a screen, or plain lines."""
    return Watch(run, run_id, wish, Console(stderr=True))


def offer_metrics(address: str | None, shown: Watch) -> AbstractContextManager[object]:
    """Takes the port at once, or refuses; while entered, metrics are there. None: nowhere."""
    if address is None:
        return nullcontext()
    from .metrics import Address, Metrics  # a tenth of a second that most runs don't need

    return Metrics(Address.parse(address), shown)
