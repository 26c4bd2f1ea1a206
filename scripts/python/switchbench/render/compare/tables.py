# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a comparison, for its page and for the terminal; columns are its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base import format
from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ...compare.measures import GIGABYTES
from ...compare.systems import system_name
from ..tables.table import PAGE, TERMINAL, Column, Spec, count, text

_LEAST = 1e-6  # the JSON has no more digits either
_TIMES = 5.0  # from there on ratios are shown, not percents

_ABOUT = {
    "difference": "Mean of the other result less the baseline's, both over their repeats",
    "interval": "Welch's confidence interval of the difference; empty where repeats can't tell",
    "p": (
        "Probability of so large a difference if there were none, corrected by Holm for how many "
        "phases or flows were asked at once"
    ),
    "basis": (
        "Of a latency: phases in which all results know it, of which the slowest counts, and the "
        "times that were measured in them, in the results' order"
    ),
    "verdict": (
        "better, worse: surely; not sure: repeats differ as much by themselves; differs, same: "
        "without any spread; not known: too few repeats, or not observed in both"
    ),
}
_NAME = text("result", "name", about="As it is called here")


def micro(unit: str) -> str:
    """With the letter that people write."""
    return unit.replace("us", "µs")


def _by_subject(comparison: Comparison, about: str, kind: str = "scientific") -> Iterator[Column]:
    for number, subject in enumerate(comparison.subjects):
        yield Column(subject.name, str(number), kind, about=about)


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values)}


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9


def results(comparison: Comparison) -> Spec:
    """Which results these are."""
    columns = (
        _NAME,
        text("directory", "directory", about="The results directory"),
        text("measured", "started", about="When its run began"),
        Column("HPL", "hpl", "scientific", "GFlop/s", seldom=True,
               about="As given, of the whole system"),
        Column("STREAM Copy", "stream", "scientific", "GB/s", seldom=True,
               about="As given, of the whole system"),
    )  # fmt: skip

    def entries(_: Any) -> Iterator[Mapping[str, Any]]:
        together = zip(comparison.subjects, comparison.compute, strict=True)
        for number, (subject, compute) in enumerate(together):
            run = subject.measured.summary.get("run") or {}
            yield {
                "name": subject.name + (" (baseline)" if number == 0 else ""),
                "directory": str(subject.directory),
                "started": run.get("started"),
                "hpl": _giga(compute.hpl),
                "stream": _giga(compute.stream),
            }

    return Spec("results", "Results", "", columns, entries)


def question(comparison: Comparison) -> Spec:
    """What differs and is asked for."""
    columns = (
        text("setting", "setting", about="As the configuration calls it"),
        *_by_subject(comparison, "What it is in this result", "text"),
    )
    return Spec(
        "question",
        "What differs, and is the question",
        "What differs between the results and is what they are compared for.",
        columns,
        lambda _: ({"setting": s.setting} | _numbered(s.values) for s in comparison.question),
    )


def size_words(size: int | None) -> str:
    """For a person."""
    return format.UNKNOWN if size is None else format.binary(size) if size else "0 B"


def shared(comparison: Comparison) -> Spec:
    """What several programs measured by one definition."""
    found = comparison.shared
    columns = (
        text("measure", "measure", about="By one definition (doc/how-to/compare.md)"),
        count("ranks", "ranks", about="That communicate at the same time"),
        text("size", "size", about="Of a message; none where it does not matter"),
        *(
            column
            for number, voice in enumerate(found.voices)
            for column in (
                Column(voice, str(number), "scientific", output=PAGE,
                       about="The program's figure, in this unit and definition"),
                text(voice, f"beside {number}", output=TERMINAL,
                     about="In brackets: how many times the first program's"),
            )
        ),
        text("unit", "unit", about="Of all programs' figures"),
    )  # fmt: skip

    def entries(_: Any) -> Iterator[Mapping[str, Any]]:
        for row in found.rows:
            values = enumerate(zip(row.values, row.ratios, strict=True))
            yield {
                "measure": row.key.common.title,
                "ranks": row.key.ranks,
                "size": size_words(row.key.size),
                "unit": micro(row.key.common.unit),
                **_numbered(row.values),
                **{f"beside {number}": _beside(*pair) for number, pair in values},
            }

    alone = f"{found.alone:,} figures of one program alone are omitted." if found.alone else ""
    return Spec("shared", "The same by several programs", alone, columns, entries)


def _beside(value: float | None, ratio: float | None) -> str | None:
    """A value, and its ratio to the first program's where it is not that itself."""
    if value is None:
        return None
    shown = format.scientific(value)
    return shown if ratio is None or ratio == 1.0 else f"{shown} ({ratio:.3g})"


def systems(comparison: Comparison) -> Spec:
    """Communication against computing."""
    columns = (
        _NAME,
        count("processes", "ranks", about="Of the run"),
        Column("HPL", "hpl", unit="GFlop/s", about="Of the whole system"),
        Column("random ring", "ring", unit="GB/s", about="Both flows of all processes (HPCC)"),
        Column("ring by HPL", "ring_by_hpl", unit="B/kFlop", about="Saini et al. 2005, Figure 2"),
        Column("STREAM Copy", "stream", unit="GB/s", about="Of all processes at once"),
        Column("STREAM by HPL", "stream_by_hpl", unit="B/Flop", about="Their Figure 4"),
    )

    def entries(_: Any) -> Iterator[Mapping[str, Any]]:
        for subject, every in zip(comparison.subjects, comparison.systems, strict=True):
            for one in every:
                if one.hpl:
                    yield {
                        "name": system_name(subject.name, one, every),
                        "ranks": one.ranks,
                        "hpl": _giga(one.hpl),
                        "ring": _giga(one.ring),
                        "ring_by_hpl": one.ring and 1e3 * one.ring / one.hpl,
                        "stream": _giga(one.stream),
                        "stream_by_hpl": one.ratio("stream"),
                    }

    title = "Communication and memory by computing (Saini et al. 2005, Figures 1 to 4)"
    return Spec("systems", title, "", columns, entries)


def ratios(comparison: Comparison) -> Spec:
    """The axes of the Kiviat chart."""
    balance = comparison.balance
    columns = (
        text("ratio", "title", about="One axis of the chart"),
        *_by_subject(comparison, "Share of the best result's", "number"),
        Column("1 is", "most", "scientific",
               about="What the best result has (Saini et al. 2005, Table 2)"),
        text("unit", "unit", about="Of what 1 is"),
        text("rests on", "basis", seldom=True, about=_ABOUT["basis"]),
    )  # fmt: skip

    def entries(_: Any) -> Iterator[Mapping[str, Any]]:
        for axis in balance.axes:
            yield {
                "title": axis.title,
                "most": axis.most,
                "unit": micro(axis.unit),
                "basis": None if axis.basis is None else f"of {axis.basis.words}",
                **_numbered(axis.shares),
            }

    by = "divided by HPL, " if balance.divided else ""
    title = f"Ratios, {by}the best of each is 1 (Saini et al. 2005, Figure 5)"
    about = "".join(f"Omitted: {sentence}. " for sentence in balance.excluded)
    return Spec("ratios", title, about, columns, entries)


# --- differences ---------------------------------------------------------------------------------


def differences(name: str, one: Compared, rows: Sequence[DifferenceRow], about: str = "") -> Spec:
    """One result against the baseline, a row a figure."""
    base, other = one.match.base.name, one.match.other.name
    columns = (
        text("pattern", "pattern", fold=True, output=PAGE, about="Who sends to whom, and how"),
        text("of", "of", output=PAGE, about="The phase or flow"),
        text("measure", "measure", about="Which figure is compared (doc/reference/measures.md)"),
        text("unit", "unit", output=PAGE, about="The figure's unit"),
        Column(base, "base", "scientific", about="The baseline's mean over its repeats"),
        Column(other, "other", "scientific", about="The other result's mean over its repeats"),
        Column("difference", "difference", "signed", about=_ABOUT["difference"]),
        Column("in %", "percent", "signed", output=PAGE,
               about="The difference in percent of the baseline"),
        text("relative", "relative", output=TERMINAL, about="To the baseline; x: times as much"),
        Column("from", "low", "signed", about=_ABOUT["interval"], seldom=True),
        Column("to", "high", "signed", about=_ABOUT["interval"], seldom=True),
        Column("p", "p", "scientific", about=_ABOUT["p"], output=PAGE, seldom=True),
        text("repeats", "repeats", fold=True, output=PAGE, about="In which it was observed"),
        text("verdict", "because", output=PAGE, about=_ABOUT["verdict"]),
        text("verdict", "verdict", output=TERMINAL, about=_ABOUT["verdict"]),
    )  # fmt: skip
    title = f"{other} against {base}"
    return Spec(name, title, about, columns, lambda _: (_entry(one, row) for row in rows))


def _entry(one: Compared, row: DifferenceRow) -> Mapping[str, Any]:
    unit = micro(row.measure.unit)
    exact = row.measure.unit == GIGABYTES
    return {
        "pattern": one.match.pairs[row.pair].title,
        "of": row.of or None,
        "measure": f"{row.measure.title}, {unit}",
        "unit": unit,
        "base": row.base,
        "other": row.other,
        "difference": row.difference if exact else _no_dust(row.difference),
        "percent": row.percent,
        "relative": relative(row),
        "low": row.low,
        "high": row.high,
        "p": row.p_adjusted,
        "repeats": " and ".join(map(str, dict.fromkeys(row.counts))),
        "verdict": row.verdict,
        "because": row.verdict if row.reason is None else f"{row.verdict} ({row.reason})",
    }


def _no_dust(value: float | None) -> float | None:
    return 0.0 if value is not None and abs(value) < _LEAST else value


def relative(row: DifferenceRow) -> str:
    """In percent of the baseline; how many times as much where that is easier to read."""
    if row.percent is None:
        return ""
    times = 1.0 + row.percent / 100.0
    if times >= _TIMES:
        return f"x {format.digits(times)}"
    return f"{round(row.percent, 1) + 0.0:+.1f} %"
