# SPDX-License-Identifier: BSD-3-Clause
"""A comparison on the terminal: what is compared, what differs, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from ...base import format
from ...compare.comparison import Compared, Comparison
from ...compare.differences import (
    BETTER,
    DIFFERS,
    NO_SPREAD,
    ONE_FIGURE,
    ONE_REPEAT,
    SAME,
    UNSURE,
    WORSE,
    DifferenceRow,
)
from ...compare.match import Match
from ...compare.measures import GIGABYTES
from ...compare.systems import system_name
from .shared_charts import size_of

MOST = 10  # phases and flows, without --all
TIMES = 5.0  # from there on ratios are shown, not percents
LEAST = 1e-6  # the JSON has no more digits either
SAME_PERCENT = 0.5  # frames and streams are read into a window at their own grain

_STYLES = {BETTER: "green", WORSE: "bold red", DIFFERS: "yellow"}


def show(
    comparison: Comparison, console: Console, everything: bool = False, balance: bool = False
) -> None:
    """Prints it all, or the balance alone; `everything`: every phase and flow of what is shown."""
    page = _Page(comparison, console, everything)
    page.print_balance() if balance else page.print()


class _Page:
    def __init__(self, comparison: Comparison, console: Console, everything: bool) -> None:
        self._comparison = comparison
        self._console = console
        self._everything = everything

    def print(self) -> None:
        self._results()
        self._question()
        for one in self._comparison.compared:
            self._compared(one)
        self._shared()
        self._systems()
        self._balance()
        self._obstacles()

    def print_balance(self) -> None:
        self._results()
        self._systems()
        self._balance()
        self._listed("Damaged", self._comparison.damage, "bold red")

    def _results(self) -> None:
        self._heading("Results")
        table = _table("", "of", "measured")
        for i, subject in enumerate(self._comparison.subjects):
            run = subject.measured.summary.get("run") or {}
            name = f"{subject.name} (baseline)" if i == 0 else subject.name
            cells = (name, str(subject.directory), str(run.get("started")))
            table.add_row(*map(escape, cells))
        self._console.print(table)

    def _question(self) -> None:
        question = self._comparison.question
        if not question:
            self._say("\nSwitch, site and versions are the same as far as they were written down.")
            return
        self._heading("What differs, and is the question")
        table = _table("", *(subject.name for subject in self._comparison.subjects))
        for one in question:
            table.add_row(*map(escape, (one.setting, *one.values)))
        self._console.print(table)

    # --- one result beside the baseline ----------------------------------------------------------

    def _compared(self, one: Compared) -> None:
        names = f"{one.match.base.name} → {one.match.other.name}"
        if not one.match.pairs:
            return
        self._heading(f"By pattern: {names}")
        self._rows(one.match, _without_line(one.plans), one.plans)
        chosen = self._foremost(one.phases)
        if chosen:
            self._heading(f"By phase: {names}{_share(len(chosen), len(one.phases), 'figure')}")
            self._rows(one.match, chosen, one.phases)
        chosen = self._foremost(one.flows)
        if chosen:
            of = f"the foremost of {one.flow_count:,} flows"
            self._heading(f"By flow: {names}, {of}")
            self._rows(one.match, chosen, one.flows)
        for note in one.notes:
            self._say(f"  {note}", "dim")

    @property
    def _sure(self) -> str:
        return f"{100 * self._comparison.asked.confidence:g} % sure"

    def _foremost(self, rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
        """The surest differences, then the largest; as they come with everything asked for.

        None where no row has an interval: then nothing says which is the surest.
        """
        if self._everything:
            return list(rows)
        if all(row.low is None for row in rows):
            return []
        told = [row for row in rows if row.difference is not None]
        return sorted(told, key=_weight)[:MOST]

    def _rows(
        self, match: Match, rows: Sequence[DifferenceRow], every: Sequence[DifferenceRow]
    ) -> None:
        """A table for each thing, below its name, all with the same columns."""
        cells = [_cells(row) for row in rows]
        heads = ("", match.base.name, match.other.name, "differs by", "", self._sure, "")
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        self._print(_table(*heads, widths=widths))
        together = zip(rows, cells, strict=True)
        for title, group in groupby(together, key=lambda pair: _title(match, pair[0])):
            self._say(title, "bold")
            table = _table(*heads, widths=widths, header=False)
            for row, words in group:
                table.add_row(*map(escape, words), style=_STYLES.get(row.verdict))
            self._print(table)
        for note in _below(every):
            self._say(f"  {note}", "dim")

    # --- other programs --------------------------------------------------------------------------

    def _shared(self) -> None:
        shared = self._comparison.shared
        if not shared.rows:
            return
        self._heading("By definition: the same measured by several programs")
        table = _table("", "ranks", "size", *shared.voices, "")
        for row in shared.rows:
            values = zip(row.values, row.ratios, strict=True)
            cells = [format.UNKNOWN if v is None else _beside(v, r) for v, r in values]
            unit = row.key.common.unit.replace("us", "µs")
            words = (row.key.common.title, str(row.key.ranks), size_of(row), *cells, unit)
            table.add_row(*map(escape, words))
        self._print(table)
        self._say("  in brackets: how many times the first program's (doc/compare.md)", "dim")
        if shared.alone:
            self._say(f"  {format.of(shared.alone, 'figure')} of one program alone", "dim")

    # --- balance and what is in the way ----------------------------------------------------------

    def _systems(self) -> None:
        named = zip(self._comparison.subjects, self._comparison.systems, strict=True)
        rows = [
            (system_name(subject.name, one, systems), one)
            for subject, systems in named
            for one in systems
            if one.hpl
        ]
        if not rows:
            return
        self._heading("Communication and memory by computing (Saini et al. 2005, Figures 1 to 4)")
        heads = ("HPL", "random ring", "ring / HPL", "STREAM Copy", "STREAM / HPL")
        table = _table("", "processes", *heads)
        table.add_row("", "", "GFlop/s", "GB/s", "B/kFlop", "GB/s", "B/Flop", style="dim")
        for name, one in rows:
            ring, stream = one.ratio("ring"), one.ratio("stream")
            cells = (
                _giga(one.hpl), _giga(one.ring), format.digits(ring and 1e3 * ring),
                _giga(one.stream), format.digits(stream),
            )  # fmt: skip
            table.add_row(escape(name), str(one.ranks), *cells)
        self._console.print(table)

    def _balance(self) -> None:
        balance = self._comparison.balance
        if balance.reason is not None:
            return
        by = "divided by HPL, " if balance.divided else ""
        self._heading(f"Ratios, {by}the best of each is 1 (Saini et al. 2005, Figure 5)")
        table = _table("", *(subject.name for subject in self._comparison.subjects), "1 is")
        table.add_column("")
        table.add_column("")
        for axis in balance.axes:
            shares = [f"{share:.3f}" for share in axis.shares]
            most = format.scientific(axis.most)
            basis = "" if axis.basis is None else f"of {axis.basis.words}"
            table.add_row(escape(axis.title), *shares, most, axis.unit.replace("us", "µs"), basis)
        self._console.print(table)
        for sentence in balance.left_out:
            self._say(f"  left out: {sentence}", "dim")
        if not balance.divided:
            self._say(
                "  not divided by HPL, which was not given: networks alone, not their balance with "
                "computing",
                "dim",
            )

    def _obstacles(self) -> None:
        comparison = self._comparison
        alone = [sentence for one in comparison.compared for sentence in one.match.alone]
        self._listed("Not compared", alone, "yellow")
        self._listed("Damaged", comparison.damage, "bold red")
        differing = [one.sentence for one in comparison.differing]
        self._listed("Not the same measurement", differing, "bold red")

    def _listed(self, title: str, sentences: Sequence[str], style: str) -> None:
        if not sentences:
            return
        self._heading(title)
        shown = sentences if self._everything else sentences[:MOST]
        for sentence in shown:
            self._say(f"  {sentence}", style)
        if len(shown) < len(sentences):
            self._say(f"  and {len(sentences) - len(shown)} more (--all)", style)

    def _print(self, table: Table) -> None:
        """As wide as it is: on a narrow terminal its lines are cut by nobody but that."""
        width = Measurement.get(self._console, self._console.options, table).maximum
        self._console.print(table, width=max(width, self._console.width), soft_wrap=True)

    def _heading(self, text: str) -> None:
        self._say(f"\n{text}", "bold")

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(escape(text), style=style, highlight=False, soft_wrap=True)


def _beside(value: float, ratio: float | None) -> str:
    """A value, and its ratio to the first program's where it is not that itself."""
    shown = format.scientific(value)
    return shown if ratio is None or ratio == 1.0 else f"{shown} ({ratio:.3g})"


def _giga(value: float | None) -> str:
    return format.digits(value and value / 1e9)


def _title(match: Match, row: DifferenceRow) -> str:
    pair = match.pairs[row.pair]
    title = f"{pair.title}, {row.of}" if row.of else pair.title
    if pair.base.suite is not None:
        return title  # what is repeated in it is HPCC's
    *first, last = pair.repeats
    counts = " and ".join([*map(str, first), format.of(last, "repeat")])
    return f"{title}; {counts}"


def _weight(row: DifferenceRow) -> tuple[float, float]:
    known = 1.0 if row.p_adjusted is None else row.p_adjusted
    return known, -abs(row.percent or 0.0)


def _share(shown: int, of: int, noun: str) -> str:
    return "" if shown == of else f", the foremost {shown} of {format.of(of, noun)} (--all)"


def _plus(value: float | None, words: Callable[[float], str] = format.digits) -> str:
    """With its sign; what three decimals would make -0.000 has four digits all the same."""
    if value is None:
        return format.UNKNOWN
    if abs(value) < LEAST:
        return "+0"
    shown = words(value) if abs(value) >= 1e-3 else format.scientific(value)
    return shown if value < 0 else f"+{shown}"


def _below(rows: Sequence[DifferenceRow]) -> list[str]:
    """What the words and gaps of a table mean, of those that it has."""
    reasons = {row.reason for row in rows}
    verdicts = {row.verdict for row in rows}
    notes = []
    if ONE_REPEAT in reasons:
        notes.append(
            "one repeat on a side: nobody knows how far the next one would differ, so there is no "
            "interval (`repeat: 5` in the configuration makes one)"
        )
    if ONE_FIGURE in reasons:
        notes.append(
            "HPCC's measures are of the best of its measurements, one figure a run: there is no "
            "interval, and two runs of the same network differ, too"
        )
    if NO_SPREAD in reasons and verdicts & {SAME, DIFFERS}:
        notes.append("same, differs: every repeat of a side gave the same, so there is no interval")
    if UNSURE in verdicts:
        notes.append("not sure: repeats of one side differ as much by themselves")
    if any(row.dependent for row in rows):
        notes.append("repeats that follow each other made an interval wider")
    return notes


def _table(*titles: str, widths: Sequence[int] = (), header: bool = True) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, show_header=header
    )
    for number, title in enumerate(titles):
        table.add_column(
            escape(title),
            justify="left" if number == 0 else "right",
            min_width=widths[number] if widths else None,
            no_wrap=bool(widths),
        )
    return table


def _cells(row: DifferenceRow) -> tuple[str, ...]:
    sure = format.UNKNOWN if row.low is None else f"{_plus(row.low)} to {_plus(row.high)}"
    shown = format.scientific if row.measure.unit == GIGABYTES else format.digits
    return (
        f"  {row.measure.title}, {row.measure.unit.replace('us', 'µs')}",
        shown(row.base),
        shown(row.other),
        _plus(row.difference, shown),
        _relative(row),
        sure,
        row.verdict,
    )


def _relative(row: DifferenceRow) -> str:
    """In percent of the baseline; how many times as much where that is easier to read."""
    if row.percent is None:
        return ""
    times = 1.0 + row.percent / 100.0
    if times >= TIMES:
        return f"x {format.digits(times)}"
    return f"{round(row.percent, 1) + 0.0:+.1f} %"


def _without_line(rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
    """Where all lines have one rate, percent of line says what the rate says."""
    rates = {row.pair: row.percent for row in rows if row.measure.name == "mean_rate"}

    def says_more(row: DifferenceRow) -> bool:
        rate = rates.get(row.pair)
        return rate is None or row.percent is None or abs(row.percent - rate) > SAME_PERCENT

    return [row for row in rows if row.measure.name != "of_line" or says_more(row)]
