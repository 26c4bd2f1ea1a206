# SPDX-License-Identifier: BSD-3-Clause
"""Views of a run in progress: a screen on a terminal, plain lines elsewhere.

The screen uses the terminal's alternate page, so that the previous content is restored at the end
and the final table follows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from ...analysis.summary import Summary
from ...base import format
from ...base.model import Run, Trial
from ...records.schema import Record
from .state import PhaseLoss, PortState, RunState, rate

_REFRESH_S = 0.5  # equal to the interval at which nodes report progress


class View:
    """Base class of views, which show a run in progress; the base class shows nothing."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Set up a view that prints to `console`."""
        self._state, self._console = state, console

    def stage(self) -> None:
        """Show that a stage of the run begins."""

    def ended(self, phase: PhaseLoss) -> None:
        """Show that a phase has ended."""

    def turn(self) -> None:
        """Show the present state; called several times per second."""

    def close(self) -> None:
        """End the view, and restore the terminal's previous content."""

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class Terminal(View):
    """View on a terminal: a full screen on the terminal's alternate page."""

    def __init__(self, state: RunState, console: Console) -> None:
        """Switch the terminal to its alternate page, and start the screen there."""
        super().__init__(state, console)
        self._drawn_s = 0.0
        self._live = Live(
            Screen(state), console=console, screen=True, auto_refresh=False,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start()
        self._size = console.size

    def stage(self) -> None:
        """Draw the screen at once: before the first trial, the stage is all that it shows."""
        self._drawn_s, self._size = time.monotonic(), self._console.size
        self._live.refresh()

    def turn(self) -> None:
        """Draw the screen again after an interval, or when the terminal's size has changed."""
        if time.monotonic() - self._drawn_s >= _REFRESH_S or self._console.size != self._size:
            self.stage()

    def close(self) -> None:
        """End the screen, and restore the terminal's previous content."""
        self._live.stop()


_PLAIN_S = 1.0  # minimum interval between two lines of progress


class Plain(View):
    """View in plain lines of text: one per ended phase, at most one per second."""

    _last_s = 0.0  # time of the last line

    def stage(self) -> None:
        """Print the stage of the run."""
        self._say(self._state.stage)

    def ended(self, phase: PhaseLoss) -> None:
        """Print that a phase has ended, unless a line was printed within the interval."""
        if time.monotonic() - self._last_s < _PLAIN_S:
            return
        self._last_s = time.monotonic()
        state = self._state
        left = format.seconds(state.left_s)
        lost = f", {format.of(phase.lost.total(), 'frame')} lost" if phase.lost.total() else ""
        # A burst of a given number of frames ends before nodes report its rate.
        delivered = f", {rate(state.delivered_bps)}" if state.delivered_bps else ""
        self._say(f"{state.words} done{delivered}{lost}, about {left} left")


class Seconds(View):
    """View of `switchbench watch`: a line per phase with rate, loss, latency and worst port."""

    def stage(self) -> None:
        """Print, when the measurement begins, that Ctrl-C ends the watch."""
        if self._state.stage == "measuring":
            self._say("Ctrl-C ends the watch with a summary")

    def ended(self, phase: PhaseLoss) -> None:
        """Print the rate, loss and latency of a phase that ended."""
        state, lost, sent = self._state, phase.lost.total(), phase.sent.total()
        words = [f"{state.elapsed_s:6.0f} s  delivered {rate(state.delivered_bps)}"]
        if sent:
            words.append(f"loss {format.percent(100 * lost / sent)} % ({lost:,} of {sent:,})")
        for kind in sorted(phase.times)[:1]:  # one-way latency if measured, else the round trip
            p50, p99 = (format.digits(phase.times[kind][name]) for name in ("p50", "p99"))
            words.append(f"{kind.replace('_', ' ')} p50 {p50}, p99 {p99} us")
        worst = worst_first(state.ports.values())[0]
        _, delivered_bps, _ = phase.rates.get(worst.name, (None, None, None))
        if delivered_bps is not None:
            lost_there = f", {phase.lost[worst.name]:,} lost" if phase.lost[worst.name] else ""
            words.append(f"worst {worst.name}: {rate(delivered_bps)}{lost_there}")
        self._say("; ".join(words))


# --- screen ---------------------------------------------------------------------------------------
# Trial, rates and loss of every port with the worst first, and findings.


_BAD, _GOOD = "red bold", "green"
_BAR_CELLS = 12
_NAME_MOST = 28
_FOUND_LINES = 8
_SUSPECT = "!"  # mark behind a port's name
_ASCII = str.maketrans("■·█░", "#.#.")


def _rate(bps: float | None, unit: format.Unit) -> str:
    return unit.show(None if bps is None else bps / 1e6)


def _bar(port: PortState, _unit: format.Unit) -> str:
    """Return a text bar that shows the port's delivered rate as a share of its line rate."""
    if port.line_share is None:
        return ""
    full = round(_BAR_CELLS * min(1.0, port.line_share))
    return "■" * full + "·" * (_BAR_CELLS - full)


# Columns of the table of ports: title, width, text, alignment. Where the terminal is too narrow,
# the last columns are omitted.
_COLUMNS: tuple[tuple[str, int, Callable[[PortState, format.Unit], str], str], ...] = (
    ("offered", 9, lambda port, unit: _rate(port.offered_bps, unit), ">"),
    ("delivered", 9, lambda port, unit: _rate(port.delivered_bps, unit), ">"),
    ("loss %", 8, lambda port, _: format.percent(port.phase_lost_percent), ">"),
    ("lost so far", 11, lambda port, _: format.count(port.lost if port.sent else None), ">"),
    ("phase", 13, lambda port, _: f"{port.phase} {port.step}" if port.step else "idle", "<"),
    ("of line", _BAR_CELLS, _bar, "<"),
)


class Screen:
    """Live screen of a run: progress, findings, and as many of the worst ports as fit."""

    def __init__(self, state: RunState) -> None:
        """Set up a screen without drawing."""
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the screen, cut to the terminal's size."""
        width, height = options.max_width, options.height or console.height
        head = self._head(width)
        below = self._found(min(_FOUND_LINES, max(0, height - len(head) - 6)))
        room = height - len(head) - len(below) - 2  # the table's heading, and the foot
        if self._state.trial is not None and room >= 1:
            ports = self._state.ports.values()
            shown = f"{room} of {len(ports)} ports, " if room < len(ports) else ""
            suspects = any(port.suspect for port in ports)
            mark = f"; {_SUSPECT} a fault is suspected there" if suspects else ""
            foot = Text(f"{shown}the worst first; Ctrl-C end{mark}", "dim")
            below = [*self._table(room, width), *below, foot]
        lines = [*head, *below][:height]
        for number, line in enumerate(lines, start=1):
            if options.ascii_only:
                line.plain = line.plain.translate(_ASCII)
            line.truncate(width)
            line.end = "\n" if number < len(lines) else ""
            yield line

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
        # The bar shows the share of time, because phases differ in length.
        full = int(cells * elapsed_s / (elapsed_s + left_s)) if elapsed_s + left_s else 0
        rates = f"offered {rate(state.offered_bps)}, delivered {rate(state.delivered_bps)}"
        return [
            Text(state.words + step, "bold"),
            Text.assemble(("█" * full + "░" * (cells - full), _GOOD), done),
            Text.assemble(rates, (loss, _BAD if lost else "")),
            Text(),
        ]

    def _table(self, room: int, width: int) -> list[Text]:
        """Return the table of ports as lines: a heading, and the `room` worst ports."""
        ports = worst_first(self._state.ports.values())
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

        table = [line(unit.name, (title for title, _, _, _ in _COLUMNS), "bold")]
        for port in ports[:room]:
            # A port whose frames are lost by a fault elsewhere is not highlighted.
            style = _BAD if port.suspect else "" if port.step else "dim"
            table.append(
                line(names[port.name], (text(port, unit) for _, _, text, _ in _COLUMNS), style)
            )
        return table

    def _found(self, most: int) -> list[Text]:
        """Return at most `most` lines: a blank line, a title, findings, then the last events."""
        sentences = [finding["sentence"] for finding in self._state.findings]
        events = list(self._state.events)
        if most < 3 or not (sentences or events):
            return []
        told = sentences[: most - 2] + events[::-1]
        title = f"{format.of(len(sentences), 'finding')}, {format.of(len(events), 'event')}"
        return [Text(), Text(title, "bold"), *map(Text, told[: most - 2])]


def worst_first(ports: Iterable[PortState]) -> list[PortState]:
    """Return the ports sorted: suspects, then by loss in the last phase, then by delivered share.

    Idle ports come last. Shares are rounded, so that ports with negligible differences keep their
    places.
    """

    def badness(port: PortState) -> tuple[bool, bool, float, float, int]:
        delivered_bps = port.delivered_bps
        idle = port.offered_bps is None and delivered_bps is None
        share = 1.0 if delivered_bps is None else round(delivered_bps / (port.line_bps or 1), 2)
        lost_percent = round(port.phase_lost_percent or 0.0, 2)
        return not port.suspect, idle, -lost_percent, share, port.place

    return sorted(ports, key=badness)


# --- watch ----------------------------------------------------------------------------------------


class Watch:
    """Watcher of a run, which keeps the run's live state and shows it in a view.

    Nothing is shown before the context is entered.
    """

    def __init__(
        self, run: Run, run_id: str, console: Console, *, quiet: bool = False, live: bool = True,
        metrics: bool = False, seconds: bool = False,
    ) -> None:  # fmt: skip
        """Choose the view for the console; with `metrics`, the state is updated without a view."""
        self.run_id = run_id
        self.state = RunState(run, Summary(run, brief=True))
        self._console = console
        drawable = live and console.is_terminal and not console.is_dumb_terminal
        kind = Seconds if seconds else Terminal if drawable else Plain
        self._kind: type[View] | None = None if quiet else kind
        self._is_asked = metrics or not quiet
        self._view: View | None = None

    def of(self, run: Run, summary: Summary) -> Self:
        """Watch another run from now on and return this object; the caller updates `summary`."""
        self.state = RunState(run, summary)
        return self

    def stage(self, text: str) -> None:
        """Show that a stage of the run begins, such as "measuring"."""
        self.state.stage = text
        self._show(lambda view: view.stage())

    def grow(self, trial: Trial) -> None:
        """Add a trial, which was chosen during the run, to the live state."""
        self.state.grow(trial)

    def record(self, record: Record) -> None:
        """Update the live state with a node's record, which the summary already contains."""
        ended = self.state.take(record) if self._is_asked else None
        if ended is not None:
            self._show(lambda view: view.ended(ended))

    def turn(self) -> None:
        """Refresh the view; called several times per second."""
        self.state.turn()
        self._show(lambda view: view.turn())

    def __enter__(self) -> Self:
        """Begin to show the run."""
        if self._kind is not None:
            self._view = self._kind(self.state, self._console)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the view."""
        self._show(lambda view: view.close())
        self._view = None

    def _show(self, act: Callable[[View], None]) -> None:
        """Call a method of the view; drop the view if its terminal is lost."""
        if self._view is not None:
            try:
                act(self._view)
            except BlockingIOError:
                pass  # a slow terminal: the next turn shows everything again
            except OSError:
                view, self._view = self._view, None
                with suppress(OSError):
                    view.close()  # a screen that stays would hide later output


def offer_metrics(address: str | None, shown: Watch) -> AbstractContextManager[object]:
    """Return a context with a metrics server at `address`, or an empty one for None."""
    if address is None:
        return nullcontext()
    from .metrics import parse_address, served  # imported here, because this takes 0.1 s

    return served(*parse_address(address), shown)
