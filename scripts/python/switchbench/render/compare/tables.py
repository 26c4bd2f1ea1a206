# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a comparison, for its page and for the terminal; columns are its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...base import format
from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ...records.document.schema import at
from ..tables.table import PAGE, TERMINAL, Column, Spec, text

_LEAST = 1e-6  # the JSON has no more digits either
_TIMES = 5.0  # from there on ratios are shown, not percents

_ABOUT = {
    "interval": "Welch's confidence interval of the difference; empty where repeats can't tell",
    "p": (
        "Probability of so large a difference if there were none, corrected by Holm for all that "
        "the comparison asks at once"
    ),
    "verdict": (
        "better, worse: surely; not sure: runs of the same network may differ as much; same: equal "
        "means; not known: too few repeats, not observed in both, or not judged"
    ),
}


def micro(unit: str) -> str:
    """With the letter that people write."""
    return unit.replace("us", "µs")


def _by_subject(
    comparison: Comparison, about: str, of: Callable[[Any], Sequence[Any]], kind: str = "scientific"
) -> Iterator[Column]:
    """Yield a column for each result; `of`: their values in a row."""
    for number, subject in enumerate(comparison.subjects):
        yield Column(
            subject.name, subject.name, kind, about=about,
            value=lambda row, number=number: of(row)[number],  # type: ignore[misc]
        )  # fmt: skip


def results(comparison: Comparison) -> Spec:
    """Return which results these are."""
    base = comparison.subjects[0]
    columns = (
        text("result", "name", about="As it is called here",
             value=lambda row: row.name + (" (baseline)" if row is base else "")),
        text("directory", "directory", about="The results directory, or those of its runs",
             value=lambda row: ", ".join(str(run.directory) for run in row.runs)),
        text("measured", "started", about="When its run began",
             value=lambda row: at(row.measured.summary, "run.started")),
    )  # fmt: skip
    return Spec("results", "Results", "", columns, comparison.subjects)


def question(comparison: Comparison) -> Spec:
    """Return what differs and is asked for."""
    columns = (
        text("setting", "setting", about="As the configuration calls it"),
        *_by_subject(comparison, "What it is in this result", lambda row: row.values, "text"),
    )
    return Spec(
        "question",
        "What differs, and is the question",
        "What differs between the results and is what they are compared for.",
        columns,
        comparison.question,
    )


# --- differences ---------------------------------------------------------------------------------


def differences(name: str, one: Compared, rows: Sequence[DifferenceRow], about: str = "") -> Spec:
    """Return one result against the baseline, a row a figure."""
    base, other = one.match.base.name, one.match.other.name
    columns = (
        text("pattern", "pattern", fold=True, output=PAGE, about="Who sends to whom, and how",
             value=lambda row: one.match.pairs[row.pair].title),
        text("of", "of", output=PAGE, about="The phase or flow", value=lambda row: row.of or None),
        text("measure", "measure", about="Which figure is compared (doc/reference/measures.md)",
             value=lambda row: f"{row.measure.title}, {micro(row.measure.unit)}"),
        text("unit", "unit", output=PAGE, about="The figure's unit",
             value=lambda row: micro(row.measure.unit)),
        Column(base, "base", "scientific", about="The baseline's mean over its repeats"),
        Column(other, "other", "scientific", about="The other result's mean over its repeats"),
        Column("difference", "difference", "signed", value=_difference,
               about="Mean of the other result less the baseline's, both over their repeats"),
        Column("in %", "percent", "signed", output=PAGE,
               about="The difference in percent of the baseline"),
        text("relative", "relative", output=TERMINAL, value=relative,
             about="To the baseline; x: times as much"),
        Column("from", "low", "signed", about=_ABOUT["interval"], seldom=True),
        Column("to", "high", "signed", about=_ABOUT["interval"], seldom=True),
        Column("p", "p_adjusted", "scientific", about=_ABOUT["p"], output=PAGE, seldom=True),
        text("repeats", "counts", fold=True, output=PAGE, about="In which it was observed",
             value=lambda row: " and ".join(map(str, dict.fromkeys(row.counts)))),
        text("verdict", "because", output=PAGE, about=_ABOUT["verdict"],
             value=lambda row: f"{row.verdict} ({row.reason})" if row.reason else row.verdict),
        text("verdict", "verdict", output=TERMINAL, about=_ABOUT["verdict"]),
    )  # fmt: skip
    return Spec(name, f"{other} against {base}", about, columns, rows)


def _difference(row: DifferenceRow) -> float | None:
    """Return the difference; what is smaller than the last digit of a figure is 0."""
    value = row.difference
    return 0.0 if value is not None and abs(value) < _LEAST else value


def relative(row: DifferenceRow) -> str:
    """In percent of the baseline; how many times as much where that is easier to read."""
    if row.percent is None:
        return ""
    times = 1.0 + row.percent / 100.0
    if times >= _TIMES:
        return f"x {format.digits(times)}"
    return f"{round(row.percent, 1) + 0.0:+.1f} %"
