# SPDX-License-Identifier: BSD-3-Clause
"""The screen on a terminal: drawn some times a second on the terminal's second page.

And gone at the end, so that what was there before is there again and the final table follows it.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from ...analysis.summary import Summary
from ...base import format
from ...base.model import Run, Trial
from ...records.record_forms import Record
from .state import PhaseLoss, PortState, RunState, rate

_REFRESH_S = 0.5  # nodes tell of their progress as often
_CHUNK = 64


class Terminal:
    """Draws a state until it is closed."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Take the terminal over."""
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
        self._drawn_s = time.monotonic()
        self._size = self._console.size
        self._live.refresh()

    def ended(self, phase: PhaseLoss) -> None:
        """In the next drawing."""

    def turn(self) -> None:
        """Draw again: when it is time, at a key, and when the terminal has another size."""
        asked = [self._screen.press(key) for key in self._keys.pressed()]
        late = time.monotonic() - self._drawn_s >= _REFRESH_S
        if any(asked) or late or self._console.size != self._size:
            self.stage()

    def close(self) -> None:
        """Give the terminal back."""
        try:
            self._live.stop()
        finally:
            self._keys.__exit__()


class Keys:
    """While entered, keys come without Enter and are not shown. Ctrl-C is a signal as ever.

    Where standard input is no terminal of ours (a pipe, a job in the background) there are none.
    """

    def __init__(self) -> None:
        """Change nothing yet."""
        self._fd = -1
        self._before: list[Any] = []

    def __enter__(self) -> Keys:
        """Have keys come one by one, unseen."""
        try:
            fd = sys.stdin.fileno()
            if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp():
                self._before = termios.tcgetattr(fd)
                tty.setcbreak(fd, termios.TCSADRAIN)
                self._fd = fd
        except (OSError, ValueError, termios.error):
            self._fd = -1  # closed, or not what it seems
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self._fd >= 0:
            with suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
            self._fd = -1

    def pressed(self) -> str:
        """Return the keys since the last time; never wait."""
        text = b""
        if self._fd >= 0 and select.select([self._fd], [], [], 0)[0]:
            with suppress(OSError):
                text = os.read(self._fd, _CHUNK)
            if not text:
                self._fd = -1  # hung up
        return text.decode("ascii", "ignore")


# --- plain ----------------------------------------------------------------------------------------
# How far a run is, in lines that stay: for files, pipes, and whoever wants no screen.


_PLAIN_S = 1.0  # at most one line of progress in so long
_MOST_FOUND = 10  # findings of a kind that are told one by one


class Plain:
    """One line for each phase, at most one a second, and one for each finding that is new.

    Until there are many of its kind.
    """

    def __init__(self, state: RunState, console: Console) -> None:
        """Lines go to `console`."""
        self._state = state
        self._console = console
        self._last_s = 0.0
        self._told: set[tuple[str | None, ...]] = set()
        self._kinds: Counter[str] = Counter()

    def stage(self) -> None:
        """Print a line."""
        self._say(self._state.stage)

    def ended(self, phase: PhaseLoss) -> None:
        """Print a line when a phase has ended, unless there was one just now."""
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


# --- screen ---------------------------------------------------------------------------------------
# The screen: what runs, every port's rates and loss, the worst first, and what was found.


_PLAIN = Style.null()
_BOLD = Style(bold=True)
_DIM = Style(dim=True)
_BAD = Style(color="red", bold=True)
_GOOD = Style(color="green")
_BAR_CELLS = 12
_NAME_MOST = 28
_STRIP_LINES = 3  # of all ports, one character each
_STRIP_TITLE = "all, by rank  "
_FOUND_LINES = 8
_SUSPECT = "!"  # behind a port's name
_SEVERAL = -1  # the phase of several ports' sums

Spans = list[tuple[str, Style]]


def _rate(bps: float | None, unit: format.Unit) -> str:
    return unit.show(None if bps is None else bps / 1e6)


def _bar(port: PortState, _unit: format.Unit) -> str:
    """Return what is delivered to the port, of its line rate."""
    if port.line_share is None:
        return ""
    full = round(_BAR_CELLS * min(1.0, port.line_share))
    return "■" * full + "·" * (_BAR_CELLS - full)


def _phase(port: PortState, _unit: format.Unit) -> str:
    if port.phase == _SEVERAL:
        return ""
    return f"{port.phase} {port.step}" if port.step else "idle"


# Of the ports' table: title, width, text, and whether it is on the left. In the order in which they
# are left out when there is no room, the last one first.
_COLUMNS: tuple[tuple[str, int, Callable[[PortState, format.Unit], str], bool], ...] = (
    ("offered", 9, lambda port, unit: _rate(port.offered_bps, unit), False),
    ("delivered", 9, lambda port, unit: _rate(port.delivered_bps, unit), False),
    ("loss %", 8, lambda port, _: format.percent(port.phase_lost_percent), False),
    ("lost so far", 11, lambda port, _: format.count(port.lost if port.sent else None), False),
    ("phase", 13, _phase, True),
    ("of line", _BAR_CELLS, _bar, True),
)
_ASCII = str.maketrans("■·█░", "#.#.")


class Screen:
    """Draws the state. Pages by number; the worst first or in the order of ranks."""

    def __init__(self, state: RunState) -> None:
        """Draw nothing yet."""
        self._state = state
        self.page = 0
        self.by_rank = False
        self._pages = 1

    def press(self, key: str) -> bool:
        """Take a key; return whether it means anything."""
        if key in "n ":
            self.turn_page(1)
        elif key in "pb":
            self.turn_page(-1)
        elif key == "o":
            self.by_rank = not self.by_rank
        else:
            return False
        return True

    def turn_page(self, by: int) -> None:
        """Show the next page (1) or the one before (-1)."""
        self.page = max(0, min(self._pages - 1, self.page + by))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the screen's lines, cut at the terminal's edge."""
        width, height = options.max_width, options.height or console.height
        lines = self.lines(width, height, ascii_only=options.ascii_only)
        for number, spans in enumerate(lines):
            left = width
            for text, style in spans:
                text = set_cell_size(text, left) if cell_len(text) > left else text
                left -= cell_len(text)
                if text:
                    yield Segment(text, style)
            if number + 1 < len(lines):
                yield Segment.line()

    def lines(self, width: int, height: int, ascii_only: bool = False) -> list[Spans]:
        """Return what the screen shows, top to bottom; no more than `height` lines."""
        head = self._head(width)
        found = self._found(min(_FOUND_LINES, max(0, height - len(head) - 6)))
        room = height - len(head) - len(found) - 2  # the table's heading, and the foot
        if self._state.trial is None or room < 1:
            lines = head + found
        else:
            table = self._table(room, width, ascii_only)
            lines = [*head, *table, *found, self._foot()]
        if ascii_only:
            lines = [[(text.translate(_ASCII), style) for text, style in line] for line in lines]
        return lines[:height]

    # --- the parts -----------------------------------------------------------------------------

    def _head(self, width: int) -> list[Spans]:
        state = self._state
        if state.trial is None:
            return [[(state.stage, _BOLD)]]
        lost, sent = state.lost
        share = f" ({100.0 * lost / sent:.3g} %)" if sent and lost else ""
        loss = f"; lost {lost:,} of {sent:,} frames{share}" if sent else ""
        step = f", {state.step}" if state.step else ""
        elapsed_s, left_s = state.elapsed_s, state.left_s
        done = f" {state.phases_done}/{state.total_phases} phases, "
        done += f"{format.seconds(elapsed_s)} gone, {format.seconds(left_s)} left"
        cells = max(10, min(40, width - len(done)))
        # By time: phases may be of any length.
        full = int(cells * elapsed_s / (elapsed_s + left_s)) if elapsed_s + left_s else 0
        rates = f"offered {rate(state.offered_bps)}, delivered {rate(state.delivered_bps)}"
        return [
            [(state.words + step, _BOLD)],
            [("█" * full + "░" * (cells - full), _GOOD), (done, _PLAIN)],
            [(rates, _PLAIN), (loss, _BAD if lost else _PLAIN)],
            [],
        ]

    def _table(self, room: int, width: int, ascii_only: bool) -> list[Spans]:
        """Return the ports that fit; of all others one line of sums and a strip of all."""
        every = list(self._state.ports.values())
        ports = every if self.by_rank else worst_first(every)
        rows = len(ports)
        strip: list[Spans] = []
        if len(ports) > room:
            strip = _strip(every, width, min(_STRIP_LINES, room // 6), ascii_only)
            rows = max(1, room - len(strip) - 1)
        self._pages = -(-len(ports) // rows)
        self.page = min(self.page, self._pages - 1)
        first = self.page * rows
        shown, rest = ports[first : first + rows], [*ports[:first], *ports[first + rows :]]
        rates = [bps for port in ports for bps in (port.offered_bps, port.delivered_bps)]
        unit = format.unit_for(bps / 1e6 for bps in rates if bps is not None)
        names = {
            port.name: f"{port.name} {_SUSPECT}" if port.suspect else port.name for port in ports
        }
        name_cells = min(_NAME_MOST, max(8, *map(cell_len, names.values())))
        columns, left = 0, width - name_cells
        for _, cells, _, _ in _COLUMNS:
            left -= cells + 2
            columns += left >= 0

        def line(name: str, texts: Iterable[str], style: Style) -> Spans:
            text = set_cell_size(name, name_cells)
            for (_, cells, _, on_left), cell in zip(_COLUMNS[:columns], texts, strict=False):
                pad = " " * max(0, cells - cell_len(cell))
                cell = set_cell_size(cell, min(cells, cell_len(cell)))
                text += f"  {cell}{pad}" if on_left else f"  {pad}{cell}"
            return [(text, style)]

        def row(port: PortState, style: Style) -> Spans:
            texts = (text(port, unit) for _, _, text, _ in _COLUMNS)
            return line(names.get(port.name, port.name), texts, style)

        table = [line(unit.name, (title for title, _, _, _ in _COLUMNS), _BOLD)]
        for port in shown:
            # Those that suffer from a fault elsewhere are as all others.
            table.append(row(port, _BAD if port.suspect else _PLAIN if port.step else _DIM))
        return table + ([row(_sums(rest), _DIM)] if rest else []) + strip

    def _found(self, most: int) -> list[Spans]:
        """Return them in order: what explains others first, then what happened last."""
        sentences = [finding["sentence"] for finding in self._state.findings]
        events = list(self._state.events)
        if most < 3 or not (sentences or events):
            return []
        told = sentences[: most - 2] + events[::-1]
        title = f"{format.of(len(sentences), 'finding')}, {format.of(len(events), 'event')}"
        shown: list[Spans] = [[(text, _PLAIN)] for text in told[: most - 2]]
        return [[], [(title, _BOLD)], *shown]

    def _foot(self) -> Spans:
        order = "in the order of ranks" if self.by_rank else "the worst first"
        keys = "n next, p previous, " if self._pages > 1 else ""
        pages = f"page {self.page + 1} of {self._pages}, {order}" if self._pages > 1 else order
        suspects = any(port.suspect for port in self._state.ports.values())
        mark = f"; {_SUSPECT} a fault is suspected there" if suspects else ""
        return [(f"{pages}; {keys}o other order, Ctrl-C end{mark}", _DIM)]


def _strip(ports: Sequence[PortState], width: int, most: int, ascii_only: bool) -> list[Spans]:
    """Return all ports in the order of ranks, a character each (or the worst of several)."""
    across = width - len(_STRIP_TITLE)
    if across <= 0 or most <= 0:
        return []
    each = -(-len(ports) // (across * most))
    shares = [
        min((s for p in ports[at : at + each] if (s := p.line_share) is not None), default=None)
        for at in range(0, len(ports), each)
    ]
    text = format.spark(shares, 1.0, ascii_only)
    blank = " " * len(_STRIP_TITLE)
    return [
        [((blank if at else _STRIP_TITLE) + text[at : at + across], _DIM)]
        for at in range(0, len(text), across)
    ]


def _sums(ports: Sequence[PortState]) -> PortState:
    """Return all ports that are not shown, as if they were one."""

    def total(name: str) -> float | None:
        values = [value for port in ports if (value := getattr(port, name)) is not None]
        return sum(values) if values else None

    found = PortState(f"{len(ports):,} others", "", "", 0, phase=_SEVERAL)
    for name in ("offered_bps", "delivered_bps", "delivered_line_bps", "line_bps", "sent", "lost",
                 "phase_sent", "phase_lost"):  # fmt: skip
        setattr(found, name, total(name))
    return found


_FINEST = 0.01  # of a rate: ports that differ by less keep the order of ranks
_FINEST_LOSS = 0.0001


def worst_first(ports: Iterable[PortState]) -> list[PortState]:
    """Suspects first, then by loss in the phase that ended last or by what a port is behind.

    Whichever is the greater share; idle ones last.
    """
    ports = list(ports)

    def share(port: PortState, bps: float) -> float:
        """Of its line, so that ports of several rates compare."""
        return bps / port.line_bps if port.line_bps else bps

    rates: tuple[Callable[[PortState], float | None], ...] = (
        lambda port: port.offered_bps,
        lambda port: port.delivered_bps,
    )
    usual = [
        median([share(port, bps) for port in ports if (bps := of(port)) is not None] or [0.0])
        for of in rates
    ]

    def badness(port: PortState) -> tuple[bool, bool, float, int]:
        behind = [
            1.0 - share(port, bps) / most
            for of, most in zip(rates, usual, strict=True)
            if (bps := of(port)) is not None and most > 0
        ]
        lost = (port.phase_lost_percent or 0.0) / 100.0
        # Multiples, so that ports that differ by nothing to speak of keep their places.
        coarse = max(
            int(lost / _FINEST_LOSS) * _FINEST_LOSS, int(max(behind, default=0) / _FINEST) * _FINEST
        )
        idle = port.offered_bps is None and port.delivered_bps is None
        return not port.suspect, idle, -coarse, port.place

    return sorted(ports, key=badness)


# --- watch ----------------------------------------------------------------------------------------
# What the command shows of a run that it conducts: the controller's watcher.


@dataclass(frozen=True)
class Wish:
    """Options of the command that say what is shown."""

    quiet: bool = False
    live: bool = True
    metrics: str | None = None  # where: somebody asks for the state though nothing is shown


class Watch:
    """Keeps the state and hands it to what shows it. Shows nothing before it is entered."""

    def __init__(self, run: Run, run_id: str, wish: Wish, console: Console) -> None:
        """Take the console that the screen or the lines are for."""
        self.run_id = run_id
        self.state = RunState(run, Summary(run, brief=True))
        self._wish = wish
        self._console = console
        self._view: Terminal | Plain | None = None

    def of(self, run: Run, summary: Summary) -> Self:
        """Show this run from now on, with its controller's summary."""
        self.state = RunState(run, summary)
        return self

    def stage(self, text: str) -> None:
        """Begin a stage: in words."""
        self.state.stage = text
        self._show(lambda view: view.stage())

    def grow(self, trial: Trial) -> None:
        """Add a trial, which a search chose."""
        self.state.grow(trial)

    def record(self, record: Record) -> None:
        """Take what a node has said."""
        if self._wish.quiet and self._wish.metrics is None:
            return
        ended = self.state.take(record)
        if ended is not None:
            self._show(lambda view: view.ended(ended))

    def turn(self) -> None:
        """Show what is new; some times a second."""
        self.state.turn()
        self._show(lambda view: view.turn())

    def __enter__(self) -> Self:
        """Begin to show."""
        if not self._wish.quiet:
            drawable = self._console.is_terminal and not self._console.is_dumb_terminal
            view = Terminal if self._wish.live and drawable else Plain
            self._view = view(self.state, self._console)
        return self

    def __exit__(self, *_: object) -> None:
        """Show no more."""
        self._show(lambda view: view.close())
        self._view = None

    def _show(self, act: Callable[[Terminal | Plain], None]) -> None:
        """Show it; a terminal that has gone must not end what is being measured."""
        if self._view is not None:
            try:
                act(self._view)
            except BlockingIOError:
                pass  # a terminal that is read too slowly: the next turn shows it all again
            except OSError:
                view, self._view = self._view, None
                with suppress(OSError):
                    view.close()  # a screen that stays would hide what comes after it


def watch(run: Run, run_id: str, wish: Wish) -> Watch:
    """Return the view of a run that fits standard error: a screen, or plain lines."""
    return Watch(run, run_id, wish, Console(stderr=True))


def offer_metrics(address: str | None, shown: Watch) -> AbstractContextManager[object]:
    """Take the port at once, or refuse; while entered, metrics are there. None: nowhere."""
    if address is None:
        return nullcontext()
    from .metrics import Address, Metrics  # a tenth of a second that most runs don't need

    return Metrics(Address.parse(address), shown)
