# SPDX-License-Identifier: BSD-3-Clause
"""Output of a comparison: equal tables on the terminal and in one HTML file for offline use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from rich.console import Console

from .. import __version__
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
from ..records.directory import replace_bytes
from ..records.summary_form import at
from .printer import Spec, heading, listed, note_lines, say, show, text
from .report.build import Section, Words, meanings, render, sentences
from .tables import TABLES, own_unit

# Explanations of the words and gaps in a comparison's tables.
_MEANINGS = {
    FEW_REPEATS: f"{FEW_REPEATS} (`repeat: 5`), or several runs (a=DIR1 a=DIR2)",
    OTHER_LOAD: "the intended loads differ: no figure is better or worse for it",
    SHARED_MACHINE: "CPU is not judged: the nodes share one machine with all else on it",
    UNSURE: "not sure: runs of the same network may differ as much (several runs of a side, as "
    "a=DIR1 a=DIR2, find smaller differences)",
}
MOST = 10  # phases and flows shown without --all
# difference in percent that counts as none: frames are read into a window at their own grain
SAME_PERCENT = 0.5
_DIGITS = 6  # digits of a figure, as many as the JSON has
_TIMES = 5.0  # ratio from which on a difference is shown as a factor instead of percents

_STYLES = {BETTER: "green", WORSE: "bold red"}
_ALIKE = "Switch, site and versions are the same as far as they were written down."


# --- tables ---------------------------------------------------------------------------------------


def _results(comparison: Comparison) -> Spec:
    """Return the table of the compared results."""
    base = comparison.subjects[0]
    entries = [
        {
            "name": one.name + " (baseline)" * (one is base),
            "directory": ", ".join(str(result.directory) for result in one.results),
            "started": at(one.measured.summary, "run.started"),
        }
        for one in comparison.subjects
    ]
    return replace(TABLES["results"], rows=entries)


def _question(comparison: Comparison) -> Spec:
    """Return the table of settings in which the results differ, a column for each result."""
    columns = (
        text("setting", "setting", about="As the configuration calls it", value=itemgetter(0)),
        *(
            text(one.name, one.name, about="What it is in this result", value=itemgetter(number))
            for number, one in enumerate(comparison.subjects, start=1)
        ),
    )
    rows = [(one.setting, *one.values) for one in comparison.question]
    about = "The setting that the results are compared for."
    return Spec("question", "Compared setting", about, columns, rows)


def _differences(name: str, one: Compared, rows: Sequence[Row], about: str = "") -> Spec:
    """Return the table of one result against the baseline, a row for each figure."""
    spec, base, other = TABLES["differences"], one.base.name, one.other.name
    titles = {"baseline": base, "other": other}
    entries = [
        {
            **row,
            "pattern": one.pairs[row["pair"]].title,
            "named": f"{row['title']}, {own_unit(row)}",
            "difference": row["difference"] and round(row["difference"], _DIGITS),
            "relative": relative(row),
            "repeats": " and ".join(map(str, dict.fromkeys(row["repeats"]))),
            "because": row["verdict"] + (f" ({row['reason']})" if row["reason"] else ""),
        }
        for row in rows
    ]
    columns = tuple(replace(c, title=titles.get(c.key, c.title)) for c in spec.columns)
    title = f"{other} against {base}"
    return replace(spec, name=name, title=title, about=about, columns=columns, rows=entries)


def relative(row: Row) -> str:
    """Return a difference in percent of the baseline; as a factor if it is large."""
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
    listed(console, "Regressions", worse, "bold red", None)
    _show_reservations(history.comparison, console, MOST, history.unlike)


# --- the terminal ---------------------------------------------------------------------------------


def show_comparison(comparison: Comparison, console: Console, everything: bool = False) -> None:
    """Print a comparison.

    With `everything` all phases and flows instead of the surest differences.
    """
    most = None if everything else MOST
    for spec in (_results(comparison), _question(comparison)):
        show(spec.on_terminal(spec.entries({})), console, spec.title)
    if not comparison.question:
        say(console, f"\n{_ALIKE}")
    for one in comparison.compared:
        if one.pairs:
            _show_compared(one, comparison.asked.confidence, console, everything)
    alone = [sentence for one in comparison.compared for sentence in one.alone]
    listed(console, "Not compared", alone, "yellow", most)
    _show_reservations(comparison, console, most)


def _show_reservations(
    comparison: Comparison, console: Console, most: int | None, unlike: Sequence[str] = ()
) -> None:
    """Print what is damaged, and what makes the results different measurements."""
    listed(console, "Damaged", comparison.damage, "bold red", most)
    differing = [one.sentence for one in comparison.differing]
    listed(console, "Not the same measurement", [*differing, *unlike], "bold red", most)


def _show_compared(one: Compared, confidence: float, console: Console, everything: bool) -> None:
    names = f"{one.base.name} → {one.other.name}"
    plans, phases, flows = one.levels.values()
    heading(console, f"By pattern: {names}, from and to: {100 * confidence:g} % sure")
    _show_rows(one, _without_line(plans), plans, console)
    if chosen := _foremost(phases, everything):
        share = "" if len(chosen) == len(phases) else f", the foremost {len(chosen)} of "
        share += format.of(len(phases), "figure") + " (--all)" if share else ""
        heading(console, f"By phase: {names}{share}")
        _show_rows(one, chosen, phases, console)
    if chosen := _foremost(flows, everything):
        heading(console, f"By flow: {names}, the foremost of {one.flow_count:,} flows")
        _show_rows(one, chosen, flows, console)
    note_lines(console, *one.notes)


def _show_rows(one: Compared, rows: Sequence[Row], every: Sequence[Row], console: Console) -> None:
    titles = []
    for row in rows:
        pair = one.pairs[row["pair"]]
        titles.append(f"{pair.title}{', ' * bool(row['of'])}{row['of'] or ''}; {pair.samples}")
    has = {word for row in every for word in (row["reason"], row["verdict"])}
    notes = [words for word, words in _MEANINGS.items() if word in has]
    if any(row["dependent"] for row in every):
        notes.append("repeats that follow each other made an interval wider")
    spec = _differences("differences", one, rows)
    show(
        spec.on_terminal(spec.entries({})),
        console,
        styles=[_STYLES.get(row["verdict"], "") for row in rows],
        groups=titles,
        notes=notes,
    )


def _foremost(rows: Sequence[Row], everything: bool) -> list[Row]:
    """Return the rows with the surest differences first, then the largest; all with `everything`.

    Empty if no row has a confidence interval: then nothing says which difference is the surest.
    """
    if everything:
        return list(rows)
    if all(row["ci_low"] is None for row in rows):
        return []

    def order(row: Row) -> tuple[float, float]:
        p = row["p_adjusted"]
        return 1.0 if p is None else p, -abs(row["percent"] or 0.0)

    return sorted((row for row in rows if row["difference"] is not None), key=order)[:MOST]


def _without_line(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without percent of line if all lines have one rate."""
    rates = {row["pair"]: row["percent"] for row in rows if row["measure"] == "mean_rate"}
    return [
        row
        for row in rows
        if row["measure"] != "of_line"
        or None in (rate := rates.get(row["pair"]), row["percent"])
        or abs(row["percent"] - rate) > SAME_PERCENT
    ]


# --- the page -------------------------------------------------------------------------------------


def write(comparison: Comparison, path: Path) -> None:
    """Write a comparison as an HTML page; on an error no partial file is left."""
    every = list(map(Section, (
        "What is compared", "By pattern", "By phase", "By flow", "What is not compared",
        "What the numbers mean",
    )))  # fmt: skip
    what, *levels, left, meant = every
    if not comparison.question:
        what.add(Words(_ALIKE))
    what.add(_results(comparison)({}), _question(comparison)({}))
    for number, one in enumerate(comparison.compared):
        abouts = (
            " ".join(one.notes),
            "",
            f"The foremost of {one.flow_count:,} flows of each pattern and measure.",
        )
        for section, (level, rows), about in zip(levels, one.levels.items(), abouts, strict=True):
            section.add(_differences(f"{level}-{number}", one, rows, about)({}))
    alone = [sentence for one in comparison.compared for sentence in one.alone]
    differing = [one.sentence for one in comparison.differing]
    left.add(
        sentences("In one result only", alone),
        sentences("Not the same measurement", differing),
        sentences("Damaged", comparison.damage),
    )
    meant.add(*meanings(every))
    meant.open = False
    names = " and ".join(subject.name for subject in comparison.subjects)
    page = render(
        names,
        f"{names} beside each other",
        f"Compared with Switchbench {__version__} (doc/how-to/compare.md).",
        every,
        [*differing, *comparison.damage],
        "These results are not the same measurement, or not whole.",
    )
    replace_bytes(path, page.encode())
