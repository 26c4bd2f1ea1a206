# SPDX-License-Identifier: BSD-3-Clause
"""A comparison on the terminal: what is compared, what differs, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ...base import format
from ...compare.comparison import Compared, Comparison
from ...compare.differences import (
    BETTER,
    FEW_REPEATS,
    OTHER_LOAD,
    SHARED_MACHINE,
    UNSURE,
    WORSE,
    DifferenceRow,
)
from ...compare.match import Match
from ..tables.table import Spec
from ..terminal.grid import heading, listed, note_lines, say, show
from . import tables

MOST = 10  # phases and flows, without --all
SAME_PERCENT = 0.5  # frames and streams are read into a window at their own grain

_STYLES = {BETTER: "green", WORSE: "bold red"}


def show_comparison(comparison: Comparison, console: Console, everything: bool = False) -> None:
    """Print the comparison; `everything`: every phase and flow."""
    most = None if everything else MOST
    _print(tables.results(comparison), console)
    if comparison.question:
        _print(tables.question(comparison), console)
    else:
        said = "Switch, site and versions are the same as far as they were written down."
        say(console, f"\n{said}")
    for one in comparison.compared:
        if one.match.pairs:
            _compared(one, comparison.asked.confidence, console, everything)
    alone = [sentence for one in comparison.compared for sentence in one.match.alone]
    listed(console, "Not compared", alone, "yellow", most)
    listed(console, "Damaged", comparison.damage, "bold red", most)
    differing = [one.sentence for one in comparison.differing]
    listed(console, "Not the same measurement", differing, "bold red", most)


def _print(spec: Spec, console: Console, title: str = "", notes: Sequence[str] = ()) -> None:
    show(spec.on_terminal(spec.entries({})), console, title or spec.title, notes=notes)


# --- one result beside the baseline ---------------------------------------------------------------


def _compared(one: Compared, confidence: float, console: Console, everything: bool) -> None:
    names = f"{one.match.base.name} → {one.match.other.name}"
    heading(console, f"By pattern: {names}, from and to: {100 * confidence:g} % sure")
    _rows(one, _without_line(one.plans), one.plans, console)
    chosen = _foremost(one.phases, everything)
    if chosen:
        share = "" if len(chosen) == len(one.phases) else f", the foremost {len(chosen)} of "
        share += format.of(len(one.phases), "figure") + " (--all)" if share else ""
        heading(console, f"By phase: {names}{share}")
        _rows(one, chosen, one.phases, console)
    chosen = _foremost(one.flows, everything)
    if chosen:
        heading(console, f"By flow: {names}, the foremost of {one.flow_count:,} flows")
        _rows(one, chosen, one.flows, console)
    note_lines(console, *one.notes)


def _rows(
    one: Compared, rows: Sequence[DifferenceRow], every: Sequence[DifferenceRow], console: Console
) -> None:
    spec = tables.differences("differences", one, rows)
    show(
        spec.on_terminal(spec.entries({})),
        console,
        styles=[_STYLES.get(row.verdict, "") for row in rows],
        groups=[_title(one.match, row) for row in rows],
        notes=_below(every),
    )


def _foremost(rows: Sequence[DifferenceRow], everything: bool) -> list[DifferenceRow]:
    """Return the surest differences, then the largest; as they come with everything asked for.

    None where no row has an interval: then nothing says which is the surest.
    """
    if everything:
        return list(rows)
    if all(row.low is None for row in rows):
        return []
    known = [row for row in rows if row.difference is not None]
    known.sort(key=lambda r: (1.0 if (p := r.p_adjusted) is None else p, -abs(r.percent or 0.0)))
    return known[:MOST]


def _title(match: Match, row: DifferenceRow) -> str:
    pair = match.pairs[row.pair]
    title = f"{pair.title}, {row.of}" if row.of else pair.title
    return f"{title}; {pair.samples}"


def _without_line(rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
    """Return the rows but percent of line, where all lines have one rate: it says the same."""
    rates = {row.pair: row.percent for row in rows if row.measure.name == "mean_rate"}

    def says_more(row: DifferenceRow) -> bool:
        rate = rates.get(row.pair)
        return rate is None or row.percent is None or abs(row.percent - rate) > SAME_PERCENT

    return [row for row in rows if row.measure.name != "of_line" or says_more(row)]


def _below(rows: Sequence[DifferenceRow]) -> list[str]:
    """Return what the words and gaps of a table mean, of those that it has."""
    reasons = {row.reason for row in rows}
    verdicts = {row.verdict for row in rows}
    notes = []
    if FEW_REPEATS in reasons:
        notes.append(f"{FEW_REPEATS} (`repeat: 5`), or several runs (a=DIR1 a=DIR2)")
    if OTHER_LOAD in reasons:
        notes.append("the intended loads differ: no figure is better or worse for it")
    if SHARED_MACHINE in reasons:
        notes.append("CPU is not judged: the nodes share one machine with all else on it")
    if UNSURE in verdicts:
        notes.append(
            "not sure: runs of the same network may differ as much (several runs of a side, as "
            "a=DIR1 a=DIR2, find smaller differences)"
        )
    if any(row.dependent for row in rows):
        notes.append("repeats that follow each other made an interval wider")
    return notes
