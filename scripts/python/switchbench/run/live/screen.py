# SPDX-License-Identifier: BSD-3-Clause
"""The views of a run while it runs: a screen on a terminal, plain lines elsewhere.

The screen is drawn on the terminal's second page, so that what was there before is there again at
the end and the final table follows it.
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
from statistics import median
from typing import Any, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from ...analysis.summary import Summary
from ...base import format
from ...base.model import Run, Trial
from ...records.record_forms import Record
from .state import PhaseLoss, PortState, RunState, rate

_REFRESH_S = 0.5  # nodes report progress as often
_CHUNK = 64


class Terminal:
    """Draws the state on the terminal's second page until it is closed.

    Keys come without Enter and are not shown; Ctrl-C is a signal as ever. Where standard input is
    no terminal of ours (a pipe, a job in the background) there are none.
    """

    def __init__(self, state: RunState, console: Console) -> None:
        """Take the terminal over."""
        self._screen, self._console, self._drawn_s = Screen(state), console, 0.0
        self._fd, self._before = -1, list[Any]()
        with suppress(OSError, ValueError, termios.error):  # closed, or not what it seems
            fd = sys.stdin.fileno()
            if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp():
                self._before = termios.tcgetattr(fd)
                tty.setcbreak(fd, termios.TCSADRAIN)
                self._fd = fd
        self._live = Live(
            self._screen, console=console, screen=True, auto_refresh=False,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start()
        self._size = console.size

    def stage(self) -> None:
        """Draw at once: until the first trial the stage is all there is to say."""
        self._drawn_s, self._size = time.monotonic(), self._console.size
        self._live.refresh()

    def ended(self, phase: PhaseLoss) -> None:
        """Leave it to the next drawing."""

    def turn(self) -> None:
        """Draw again: when it is time, at a key, and when the terminal has another size."""
        asked = [self._screen.press(key) for key in self._pressed()]
        late = time.monotonic() - self._drawn_s >= _REFRESH_S
        if any(asked) or late or self._console.size != self._size:
            self.stage()

    def _pressed(self) -> str:
        """Return the keys since the last time; never wait."""
        text = b""
        if self._fd >= 0 and select.select([self._fd], [], [], 0)[0]:
            with suppress(OSError):
                text = os.read(self._fd, _CHUNK)
            if not text:
                self._fd = -1  # hung up
        return text.decode("ascii", "ignore")

    def close(self) -> None:
        """Give the terminal back."""
        try:
            self._live.stop()
        finally:
            if self._fd >= 0:
                with suppress(termios.error):  # the terminal has gone
                    termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)


_PLAIN_S = 1.0  # at most one line of progress in so long
_MOST_FOUND = 10  # findings of a kind that are told one by one


class Plain:
    """Prints a line for each phase, at most one a second, and one for each new finding.

    Of findings of one kind the first ones.
    """

    def __init__(self, state: RunState, console: Console) -> None:
        """Lines go to `console`."""
        self._state, self._console, self._last_s = state, console, 0.0
        self._told: set[tuple[str | None, ...]] = set()
        self._kinds: Counter[str] = Counter()

    def stage(self) -> None:
        """Print the stage."""
        self._say(self._state.stage)

    def ended(self, phase: PhaseLoss) -> None:
        """Print that a phase has ended, unless there was a line just now."""
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
        """Print what was found meanwhile."""
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


class Seconds:
    """Prints a line for each phase of a watch: rate, loss, latency and the worst port."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Lines go to `console`."""
        self._state, self._console = state, console

    def stage(self) -> None:
        """Say how the watch ends, when it begins."""
        if self._state.stage == "measuring":
            self._console.print("Ctrl-C ends the watch with a summary", highlight=False)

    def ended(self, phase: PhaseLoss) -> None:
        """Print the phase."""
        state, lost, sent = self._state, phase.lost.total(), phase.sent.total()
        words = [f"{state.elapsed_s:6.0f} s  delivered {rate(state.delivered_bps)}"]
        if sent:
            words.append(f"loss {format.percent(100 * lost / sent)} % ({lost:,} of {sent:,})")
        for kind in sorted(phase.times.keys() - {"ipdv"})[:1]:  # one way, else there and back
            p50, p99 = (format.digits(phase.times[kind][name]) for name in ("p50", "p99"))
            words.append(f"{kind.replace('_', ' ')} p50 {p50}, p99 {p99} us")
        worst = worst_first(state.ports.values())[0]
        came = phase.rates.get(worst.name)
        if came is not None and came.delivered_bps is not None:
            lost_there = f", {phase.lost[worst.name]:,} lost" if phase.lost[worst.name] else ""
            words.append(f"worst {worst.name}: {rate(came.delivered_bps)}{lost_there}")
        self._console.print("; ".join(words), highlight=False, markup=False, soft_wrap=True)

    def turn(self) -> None:
        """Lines come with phases alone."""

    def close(self) -> None:
        """Nothing is held."""


View = Terminal | Plain | Seconds


# --- screen ---------------------------------------------------------------------------------------
# What runs, every port's rates and loss, the worst first, and what was found.


_BAD, _GOOD = "red bold", "green"
_BAR_CELLS = 12
_NAME_MOST = 28
_STRIP_LINES = 3  # of all ports, one character each
_STRIP_TITLE = "all, by rank  "
_FOUND_LINES = 8
_SUSPECT = "!"  # behind a port's name
_SEVERAL = -1  # the phase of several ports' sums
_ASCII = str.maketrans("■·█░", "#.#.")


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


# Of the ports' table: title, width, text, and its side. In the order in which they are left out
# when there is no room, the last one first.
_COLUMNS: tuple[tuple[str, int, Callable[[PortState, format.Unit], str], str], ...] = (
    ("offered", 9, lambda port, unit: _rate(port.offered_bps, unit), ">"),
    ("delivered", 9, lambda port, unit: _rate(port.delivered_bps, unit), ">"),
    ("loss %", 8, lambda port, _: format.percent(port.phase_lost_percent), ">"),
    ("lost so far", 11, lambda port, _: format.count(port.lost if port.sent else None), ">"),
    ("phase", 13, _phase, "<"),
    ("of line", _BAR_CELLS, _bar, "<"),
)


class Screen:
    """Draws the state. Pages by number; the worst first or in the order of ranks."""

    def __init__(self, state: RunState) -> None:
        """Draw nothing yet."""
        self._state = state
        self.page, self._pages, self.by_rank = 0, 1, False

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
        """Yield the lines, cut at the terminal's edge, and no more than there is room for."""
        width, height = options.max_width, options.height or console.height
        lines = self._lines(width, height, options.ascii_only)[:height]
        for number, line in enumerate(lines, start=1):
            if options.ascii_only:
                line.plain = line.plain.translate(_ASCII)
            line.truncate(width)
            line.end = "\n" if number < len(lines) else ""
            yield line

    def _lines(self, width: int, height: int, ascii_only: bool) -> list[Text]:
        head = self._head(width)
        found = self._found(min(_FOUND_LINES, max(0, height - len(head) - 6)))
        room = height - len(head) - len(found) - 2  # the table's heading, and the foot
        if self._state.trial is None or room < 1:
            return head + found
        return [*head, *self._table(room, width, ascii_only), *found, self._foot()]

    def _head(self, width: int) -> list[Text]:
        state = self._state
        if state.trial is None:
            return [Text(state.stage, "bold")]
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
            Text(state.words + step, "bold"),
            Text.assemble(("█" * full + "░" * (cells - full), _GOOD), done),
            Text.assemble(rates, (loss, _BAD if lost else "")),
            Text(),
        ]

    def _table(self, room: int, width: int, ascii_only: bool) -> list[Text]:
        """Return the ports that fit; of all others one line of sums and a strip of all."""
        every = list(self._state.ports.values())
        ports = every if self.by_rank else worst_first(every)
        rows, strip = len(ports), list[Text]()
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

        def line(name: str, texts: Iterable[str], style: str) -> Text:
            text = set_cell_size(name, name_cells)
            for (_, cells, _, side), cell in zip(_COLUMNS[:columns], texts, strict=False):
                text += f"  {cell:{side}{cells}.{cells}}"
            return Text(text, style)

        def row(port: PortState, style: str) -> Text:
            texts = (text(port, unit) for _, _, text, _ in _COLUMNS)
            return line(names.get(port.name, port.name), texts, style)

        table = [line(unit.name, (title for title, _, _, _ in _COLUMNS), "bold")]
        for port in shown:
            # Those that suffer from a fault elsewhere are as all others.
            table.append(row(port, _BAD if port.suspect else "" if port.step else "dim"))
        return table + ([row(_sums(rest), "dim")] if rest else []) + strip

    def _found(self, most: int) -> list[Text]:
        """Return them in order: what explains others first, then what happened last."""
        sentences = [finding["sentence"] for finding in self._state.findings]
        events = list(self._state.events)
        if most < 3 or not (sentences or events):
            return []
        told = sentences[: most - 2] + events[::-1]
        title = f"{format.of(len(sentences), 'finding')}, {format.of(len(events), 'event')}"
        return [Text(), Text(title, "bold"), *map(Text, told[: most - 2])]

    def _foot(self) -> Text:
        order = "in the order of ranks" if self.by_rank else "the worst first"
        keys = "n next, p previous, " if self._pages > 1 else ""
        pages = f"page {self.page + 1} of {self._pages}, {order}" if self._pages > 1 else order
        suspects = any(port.suspect for port in self._state.ports.values())
        mark = f"; {_SUSPECT} a fault is suspected there" if suspects else ""
        return Text(f"{pages}; {keys}o other order, Ctrl-C end{mark}", "dim")


def _strip(ports: Sequence[PortState], width: int, most: int, ascii_only: bool) -> list[Text]:
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
        Text((blank if at else _STRIP_TITLE) + text[at : at + across], "dim")
        for at in range(0, len(text), across)
    ]


def _sums(ports: Sequence[PortState]) -> PortState:
    """Return all ports that are not shown, as if they were one."""
    found = PortState(f"{len(ports):,} others", "", "", 0, phase=_SEVERAL)
    for name in ("offered_bps", "delivered_bps", "delivered_line_bps", "line_bps", "sent", "lost",
                 "phase_sent", "phase_lost"):  # fmt: skip
        values = [value for port in ports if (value := getattr(port, name)) is not None]
        setattr(found, name, sum(values) if values else None)
    return found


_FINEST = 0.01  # of a rate: ports that differ by less keep the order of ranks
_FINEST_LOSS = 0.0001


def worst_first(ports: Iterable[PortState]) -> list[PortState]:
    """Suspects first, then by loss in the phase that ended last or by what a port is behind.

    Whichever is the greater share; idle ones last.
    """
    ports = list(ports)

    def shares(port: PortState) -> tuple[float | None, ...]:
        """Of its line, so that ports of several rates compare."""
        line_bps = port.line_bps or 1
        rates = (port.offered_bps, port.delivered_bps)
        return tuple(None if bps is None else bps / line_bps for bps in rates)

    every = list(zip(*map(shares, ports), strict=True))
    usual = [median([one for one in way if one is not None] or [0.0]) for way in every]

    def badness(port: PortState) -> tuple[bool, bool, float, int]:
        own = shares(port)
        ways = zip(own, usual, strict=True)
        behind = [1.0 - one / most for one, most in ways if one is not None and most > 0]
        lost = (port.phase_lost_percent or 0.0) / 100.0
        # Multiples, so that ports that differ by nothing to speak of keep their places.
        coarse = max(
            int(lost / _FINEST_LOSS) * _FINEST_LOSS, int(max(behind, default=0) / _FINEST) * _FINEST
        )
        return not port.suspect, own == (None, None), -coarse, port.place

    return sorted(ports, key=badness)


# --- watch ----------------------------------------------------------------------------------------


class Watch:
    """Keeps the state of a run and hands it to what shows it: the controller's subscriber.

    Shows nothing before it is entered.
    """

    def __init__(
        self, run: Run, run_id: str, console: Console, *, quiet: bool = False, live: bool = True,
        metrics: bool = False, seconds: bool = False,
    ) -> None:  # fmt: skip
        """Take the console; with `metrics` the state is kept though nothing is shown."""
        self.run_id = run_id
        self.state = RunState(run, Summary(run, brief=True))
        self._console = console
        drawable = live and console.is_terminal and not console.is_dumb_terminal
        kind = Seconds if seconds else Terminal if drawable else Plain
        self._kind: type[View] | None = None if quiet else kind
        self._is_asked = metrics or not quiet
        self._view: View | None = None

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
        """Take a record that the summary has."""
        ended = self.state.take(record) if self._is_asked else None
        if ended is not None:
            self._show(lambda view: view.ended(ended))

    def turn(self) -> None:
        """Show what is new; some times a second."""
        self.state.turn()
        self._show(lambda view: view.turn())

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._kind is not None:
            self._view = self._kind(self.state, self._console)
        return self

    def __exit__(self, *_: object) -> None:
        """Show no more."""
        self._show(lambda view: view.close())
        self._view = None

    def _show(self, act: Callable[[View], None]) -> None:
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


def offer_metrics(address: str | None, shown: Watch) -> AbstractContextManager[object]:
    """Take the port at once, or refuse; while entered, metrics are there. None: nowhere."""
    if address is None:
        return nullcontext()
    from .metrics import Metrics, parse_address  # a tenth of a second that most runs don't need

    return Metrics(*parse_address(address), shown)
