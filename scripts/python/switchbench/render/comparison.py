# SPDX-License-Identifier: BSD-3-Clause
"""Output of a comparison of results, and of a history of runs, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from rich.console import Console

from ..analysis.statistics import CONFIDENCE
from ..base import format
from ..compare.comparison import (
    BETTER,
    FEW_REPEATS,
    OTHER_LOAD,
    SHARED_MACHINE,
    UNSURE,
    WORSE,
    Compared,
    Comparison,
    History,
    Row,
)
from ..records.summary_form import at
from .printer import Spec, heading, listed, note_lines, say, show, text
from .tables import TABLES, own_unit

# Explanations of the words and gaps in a comparison's tables.
_MEANINGS = {
    FEW_REPEATS: f"{FEW_REPEATS} (`repeat: 5`), or several runs (a=DIR1 a=DIR2)",
    OTHER_LOAD: "the intended loads differ: no figure is better or worse for it",
    SHARED_MACHINE: "CPU is not judged: the nodes share one machine with other programs",
    UNSURE: "not sure: runs of the same network may differ as much (several runs of a side, as "
    "a=DIR1 a=DIR2, find smaller differences)",
}
MOST = 10  # sentences of a list
_DIGITS = 6  # digits of a figure, as many as the JSON has
_TIMES = 5.0  # ratio from which on a difference is shown as a factor instead of percents

_STYLES = {BETTER: "green", WORSE: "bold red"}


# --- tables ---------------------------------------------------------------------------------------


def relative(row: Row) -> str:
    """Return a row's difference as text: in percent of the baseline, or as a factor if large."""
    percent = row["percent"]
    if percent is None:
        return ""
    times = 1.0 + percent / 100.0
    if times >= _TIMES:
        return f"x {format.digits(times)}"
    return f"{round(percent, 1) + 0.0:+.1f} %"


# --- the history ----------------------------------------------------------------------------------


def show_history(history: History, console: Console) -> None:
    """Print a history's runs, the course of each measure, and the measures that became worse."""
    dates = [str(at(run.measured.summary, "run.started")) for run in history.runs]
    say(console, f"{format.of(len(dates), 'run')}, {dates[0]} to {dates[-1]}; the last: "
        f"{history.runs[-1].measured.directory}")  # fmt: skip
    rows = [
        {
            **one,
            "named": f"{one['title']}, {own_unit(one)}",
            "course": format.spark(one["values"], console.options.ascii_only),
            "first": one["values"][0],
            "now": one["values"][-1],
            "trend": one["trend"] or "",
        }
        for one in history.courses
    ]
    show(
        TABLES["history"].on_terminal(rows),
        console,
        styles=[_STYLES.get(one["verdict"], _STYLES.get(one["trend"], "")) for one in rows],
        groups=[one["pattern"] for one in rows],
    )
    worse = [
        f"{one['pattern']}: {one['title']}"
        + (
            " of the last run"
            if one["verdict"] == WORSE
            else f", {one['slope_percent']:+.2g} % a run"
        )
        for one in history.worse
    ]
    listed(console, "Regressions", worse, "bold red")
    _show_reservations(history.comparison, console, history.unlike)


# --- the terminal ---------------------------------------------------------------------------------


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print a comparison: the compared results and setting, differences, and caveats."""
    base, *_ = comparison.subjects
    results = [
        {
            "name": one.name + " (baseline)" * (one is base),
            "directory": ", ".join(str(result.directory) for result in one.results),
            "started": at(one.measured.summary, "run.started"),
        }
        for one in comparison.subjects
    ]
    show(TABLES["results"].on_terminal(results), console, TABLES["results"].title)
    if comparison.question:
        columns = tuple(
            text(name, name, value=itemgetter(number))
            for number, name in enumerate(["setting", *(one.name for one in comparison.subjects)])
        )
        rows = [(one.setting, *one.values) for one in comparison.question]
        spec = Spec("question", "Compared setting", "", columns, rows)
        show(spec.on_terminal(rows), console, spec.title)
    else:
        say(console, "\nSwitch, site and versions are the same as far as they were written down.")
    for one in comparison.compared:
        if one.pairs:
            _show_compared(one, console)
    alone = [sentence for one in comparison.compared for sentence in one.alone]
    listed(console, "Not compared", alone, "yellow", MOST)
    _show_reservations(comparison, console)


def _show_reservations(
    comparison: Comparison, console: Console, unlike: Sequence[str] = ()
) -> None:
    """Print damaged parts, and the settings that make the results different measurements."""
    listed(console, "Damaged", comparison.damage, "bold red", MOST)
    differing = [one.sentence for one in comparison.differing]
    listed(console, "Not the same measurement", [*differing, *unlike], "bold red", MOST)


def _show_compared(one: Compared, console: Console) -> None:
    names = f"{one.base.name} → {one.other.name}"
    heading(console, f"By pattern: {names}, from and to: {100 * CONFIDENCE:g} % sure")
    rows = one.rows
    titles = [f"{pair.title}; {pair.samples}" for row in rows for pair in [one.pairs[row["pair"]]]]
    has = {word for row in one.rows for word in (row["reason"], row["verdict"])}
    notes = [words for word, words in _MEANINGS.items() if word in has]
    if any(row["dependent"] for row in one.rows):
        notes.append("successive repeats depend on each other, which makes an interval wider")
    entries = [
        {
            **row,
            "named": f"{row['title']}, {own_unit(row)}",
            "difference": row["difference"] and round(row["difference"], _DIGITS),
            "relative": relative(row),
        }
        for row in rows
    ]
    spec, headings = TABLES["differences"], {"baseline": one.base.name, "other": one.other.name}
    columns = tuple(replace(c, title=headings.get(c.key, c.title)) for c in spec.columns)
    show(
        replace(spec, columns=columns).on_terminal(entries),
        console,
        styles=[_STYLES.get(row["verdict"], "") for row in rows],
        groups=titles,
        notes=notes,
    )
    note_lines(console, *one.notes)
