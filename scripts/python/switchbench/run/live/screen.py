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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol, Self

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

_NEXT = "n "
_PREVIOUS = "pb"
_ORDER = "o"


class Terminal:
    """Draws a state until it is closed."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Take the terminal over."""
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
        """Draw anew: when it is time, at a key, and when the terminal has another size."""
        asked = [self._press(key) for key in self._keys.pressed()]
        late = time.monotonic() - self._drawn_s >= _REFRESH_S
        if any(asked) or late or self._console.size != self._size:
            self._draw()

    def close(self) -> None:
        """Give the terminal back."""
        try:
            self._live.stop()
        finally:
            self._keys.__exit__()

    def _press(self, key: str) -> bool:
        """Return whether the key means anything."""
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


# --- keys -----------------------------------------------------------------------------------------
# Keys pressed while the screen is shown; the terminal is given back as it was.


_CHUNK = 64


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

    def pressed(self) -> Iterator[str]:
        """Yield the keys since the last time; never wait."""
        if self._fd < 0 or not select.select([self._fd], [], [], 0)[0]:
            return
        try:
            text = os.read(self._fd, _CHUNK)
        except OSError:
            text = b""
        if not text:
            self._fd = -1  # hung up
        yield from text.decode("ascii", "ignore")


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


@dataclass(frozen=True)
class _Column:
    """One column of the ports' table."""

    title: str
    width: int
    text: Callable[[PortState, format.Unit], str]
    left: bool = False

    def cell(self, text: str) -> str:
        """Return the text in the column's width."""
        if self.left:
            return set_cell_size(text, self.width)
        return " " * max(0, self.width - cell_len(text)) + set_cell_size(
            text, min(self.width, cell_len(text))
        )


def _rate(bps: float | None, unit: format.Unit) -> str:
    return unit.show(None if bps is None else bps / 1e6)


def _bar(port: PortState, _unit: format.Unit) -> str:
    """Return what is delivered to the port, of its line rate."""
    if port.delivered_line_bps is None or not port.line_bps:
        return ""
    full = round(_BAR_CELLS * min(1.0, port.delivered_line_bps / port.line_bps))
    return "■" * full + "·" * (_BAR_CELLS - full)


def _bar_ascii(port: PortState, unit: format.Unit) -> str:
    return _bar(port, unit).replace("■", "#").replace("·", ".")


def _phase(port: PortState, _unit: format.Unit) -> str:
    if port.phase == _SEVERAL:
        return ""
    return f"{port.phase} {port.step}" if port.step else "idle"


# In the order in which they are left out when there is no room, the last one first.
_COLUMNS = (
    _Column("offered", 9, lambda port, unit: _rate(port.offered_bps, unit)),
    _Column("delivered", 9, lambda port, unit: _rate(port.delivered_bps, unit)),
    _Column("loss %", 8, lambda port, _: format.percent(port.phase_lost_percent)),
    _Column("lost so far", 11, lambda port, _: format.count(port.lost if port.sent else None)),
    _Column("phase", 13, _phase, left=True),
    _Column("of line", _BAR_CELLS, _bar, left=True),
)


class Screen:
    """Draws the state. Pages by number; the worst first or in the order of ranks."""

    def __init__(self, state: RunState) -> None:
        """Draw nothing yet."""
        self._state = state
        self.page = 0
        self.by_rank = False
        self._pages = 1

    def turn_page(self, by: int) -> None:
        """Show the next page (1) or the one before (-1)."""
        self.page = max(0, min(self._pages - 1, self.page + by))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the screen's lines."""
        width, height = options.max_width, options.height or console.height
        lines = self.lines(width, height, ascii_only=options.ascii_only)
        for number, spans in enumerate(lines):
            yield from (Segment(text, style) for text, style in _fit(spans, width))
            if number + 1 < len(lines):
                yield Segment.line()

    def lines(self, width: int, height: int, ascii_only: bool = False) -> list[Spans]:
        """Return what the screen shows, top to bottom; no more than `height` lines."""
        head = self._head(width, ascii_only)
        found = self._found(min(_FOUND_LINES, max(0, height - len(head) - 6)))
        room = height - len(head) - len(found) - 2  # the table's heading, and the foot
        if self._state.trial is None or room < 1:
            return (head + found)[:height]
        ports = self._state.ports.values()
        ordered = list(ports) if self.by_rank else worst_first(ports)
        table = self._table(ordered, room, width, ascii_only)
        return (head + table + found + [self._foot()])[:height]

    # --- the parts -----------------------------------------------------------------------------

    def _head(self, width: int, ascii_only: bool) -> list[Spans]:
        state = self._state
        if state.trial is None:
            return [[(state.stage, _BOLD)]]
        lost, sent = state.lost
        share = f" ({100.0 * lost / sent:.3g} %)" if sent and lost else ""
        loss = f"; lost {lost:,} of {sent:,} frames{share}" if sent else ""
        step = f", {state.step}" if state.step else ""
        done = f" {state.phases_done}/{state.total_phases} phases, "
        done += f"{format.seconds(state.elapsed_s)} gone, {format.seconds(state.left_s)} left"
        bar = self._bar_of_run(max(10, min(40, width - len(done))), ascii_only)
        rates = f"offered {rate(state.offered_bps)}, delivered {rate(state.delivered_bps)}"
        return [
            [(state.words + step, _BOLD)],
            [(bar, _GOOD), (done, _PLAIN)],
            [(rates, _PLAIN), (loss, _BAD if lost else _PLAIN)],
            [],
        ]

    def _bar_of_run(self, cells: int, ascii_only: bool) -> str:
        """By time: phases may be of any length."""
        elapsed_s, left_s = self._state.elapsed_s, self._state.left_s
        full = int(cells * elapsed_s / (elapsed_s + left_s)) if elapsed_s + left_s else 0
        done, rest = ("#", ".") if ascii_only else ("█", "░")
        return done * full + rest * (cells - full)

    def _table(
        self, ports: Sequence[PortState], room: int, width: int, ascii_only: bool
    ) -> list[Spans]:
        """Return the ports that fit; of all others one line of sums and a strip of all."""
        rows = len(ports)
        strip: list[Spans] = []
        if len(ports) > room:
            strip = self._strip(width, min(_STRIP_LINES, room // 6), ascii_only)
            rows = max(1, room - len(strip) - 1)
        self._pages = -(-len(ports) // rows)
        self.page = min(self.page, self._pages - 1)
        first = self.page * rows
        shown = ports[first : first + rows]
        unit = format.unit_for(
            bps / 1e6
            for port in ports
            for bps in (port.offered_bps, port.delivered_bps)
            if bps is not None
        )
        name_cells = min(_NAME_MOST, max(8, *(cell_len(_name(port)) for port in ports)))
        columns = _columns_for(width - name_cells, ascii_only)
        lines = [_heading(columns, name_cells, unit)]
        lines += [_row(port, columns, name_cells, unit) for port in shown]
        if len(shown) < len(ports):
            rest = [*ports[:first], *ports[first + rows :]]
            lines.append(_sums(rest, columns, name_cells, unit))
        return lines + strip

    def _strip(self, width: int, most: int, ascii_only: bool) -> list[Spans]:
        """Return all ports in the order of ranks, a character each (or the worst of several)."""
        across = width - len(_STRIP_TITLE)
        if across <= 0 or most <= 0:
            return []
        ports = list(self._state.ports.values())
        each = -(-len(ports) // (across * most))
        shares = [_least_share(ports[at : at + each]) for at in range(0, len(ports), each)]
        text = format.spark(shares, 1.0, ascii_only)
        titles = [_STRIP_TITLE, *[" " * len(_STRIP_TITLE)] * most]
        return [
            [(title + text[at : at + across], _DIM)]
            for title, at in zip(titles, range(0, len(text), across), strict=False)
        ]

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


def _columns_for(width: int, ascii_only: bool) -> list[_Column]:
    """Return those that fit beside the name."""
    chosen = []
    for column in _COLUMNS:
        width -= column.width + 2
        if width < 0:
            break
        if column.text is _bar and ascii_only:
            column = _Column(column.title, column.width, _bar_ascii, column.left)
        chosen.append(column)
    return chosen


def _heading(columns: Iterable[_Column], name_cells: int, unit: format.Unit) -> Spans:
    text = set_cell_size(unit.name, name_cells)
    return [(text + "".join("  " + column.cell(column.title) for column in columns), _BOLD)]


def _row(port: PortState, columns: Iterable[_Column], name_cells: int, unit: format.Unit) -> Spans:
    text = set_cell_size(_name(port), name_cells)
    text += "".join("  " + column.cell(column.text(port, unit)) for column in columns)
    return [(text, _style(port))]


def _name(port: PortState) -> str:
    return f"{port.name} {_SUSPECT}" if port.suspect else port.name


def _style(port: PortState) -> Style:
    """Return red for suspects: those that suffer from a fault elsewhere are as all others."""
    if port.suspect:
        return _BAD
    return _PLAIN if port.step else _DIM


def _sums(
    ports: Sequence[PortState], columns: Iterable[_Column], name_cells: int, unit: format.Unit
) -> Spans:
    """Return all ports that are not shown, as if they were one."""
    total = PortState(f"{len(ports):,} others", "", "", 0, phase=_SEVERAL)
    total.offered_bps = _total(port.offered_bps for port in ports)
    total.delivered_bps = _total(port.delivered_bps for port in ports)
    total.delivered_line_bps = _total(port.delivered_line_bps for port in ports)
    total.sent = sum(port.sent for port in ports)
    total.lost = sum(port.lost for port in ports)
    total.phase_sent = sum(port.phase_sent for port in ports)
    total.phase_lost = sum(port.phase_lost or 0 for port in ports)
    total.line_bps = sum(port.line_bps for port in ports)
    return [(_row(total, columns, name_cells, unit)[0][0], _DIM)]


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _least_share(ports: Iterable[PortState]) -> float | None:
    """Return what is delivered, of the line: of the worst of them."""
    shares = (
        port.delivered_line_bps / port.line_bps
        for port in ports
        if port.delivered_line_bps is not None and port.line_bps
    )
    return min(shares, default=None)


def _fit(spans: Spans, width: int) -> Spans:
    """Cut at the terminal's edge."""
    fitting: Spans = []
    for text, style in spans:
        cells = cell_len(text)
        if cells > width:
            text, cells = set_cell_size(text, width), width
        if cells:
            fitting.append((text, style))
        width -= cells
    return fitting


_FINEST = 0.01  # of a rate: ports that differ by less keep the order of ranks
_FINEST_LOSS = 0.0001


def worst_first(ports: Iterable[PortState]) -> list[PortState]:
    """Suspects first, then by loss in the phase that ended last or by what a port is behind.

    Whichever is the greater share; idle ones last.
    """
    ports = list(ports)
    usual_offered = _median_share(ports, lambda port: port.offered_bps)
    usual_delivered = _median_share(ports, lambda port: port.delivered_bps)

    def badness(port: PortState) -> tuple[bool, bool, float, int]:
        offered = _behind(port, port.offered_bps, usual_offered)
        delivered = _behind(port, port.delivered_bps, usual_delivered)
        idle = port.offered_bps is None and port.delivered_bps is None
        lost = (port.phase_lost_percent or 0.0) / 100.0
        share = max(_coarse(lost, _FINEST_LOSS), _coarse(max(offered, delivered), _FINEST))
        return not port.suspect, idle, -share, port.place

    return sorted(ports, key=badness)


def _coarse(share: float, finest: float) -> float:
    """Down to a multiple, so that ports that differ by nothing to speak of keep their places."""
    return int(share / finest) * finest


def _share(port: PortState, bps: float) -> float:
    """Of its line, so that ports of several rates compare."""
    return bps / port.line_bps if port.line_bps else bps


def _median_share(
    ports: Iterable[PortState], rate_of: Callable[[PortState], float | None]
) -> float:
    shares = [_share(port, bps) for port in ports if (bps := rate_of(port)) is not None]
    return median(shares) if shares else 0.0


def _behind(port: PortState, bps: float | None, usual: float) -> float:
    """Return how much less than the median port it has, 0 to 1."""
    if bps is None or usual <= 0:
        return 0.0
    return max(0.0, 1.0 - _share(port, bps) / usual)


# --- watch ----------------------------------------------------------------------------------------
# What the command shows of a run that it conducts: the controller's watcher.


class View(Protocol):
    """One way to show a state."""

    def stage(self) -> None:
        """Show that a new stage has begun."""

    def ended(self, phase: PhaseLoss) -> None:
        """Show that a phase has ended on all nodes."""

    def turn(self) -> None:
        """Show what is new; some times a second."""

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
        """Take the console that the screen or the lines are for."""
        self.run_id = run_id
        self.state = RunState(run, Summary(run, brief=True))
        self._wish = wish
        self._console = console
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
            screen = self._wish.live and can_show_screen(self._console)
            self._view = (Terminal if screen else Plain)(self.state, self._console)
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


def can_show_screen(console: Console) -> bool:
    """Return whether it is a terminal that can be drawn upon."""
    return console.is_terminal and not console.is_dumb_terminal


def watch(run: Run, run_id: str, wish: Wish) -> Watch:
    """Return the view of a run that fits standard error: a screen, or plain lines."""
    return Watch(run, run_id, wish, Console(stderr=True))


def offer_metrics(address: str | None, shown: Watch) -> AbstractContextManager[object]:
    """Take the port at once, or refuse; while entered, metrics are there. None: nowhere."""
    if address is None:
        return nullcontext()
    from .metrics import Address, Metrics  # a tenth of a second that most runs don't need

    return Metrics(Address.parse(address), shown)
