# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one HTML file that opens offline, in the frame of the report
(render/report/frame.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from ...compare.comparison import Compared, Comparison
from ...compare.differences import DifferenceRow
from ...compare.systems import system_name
from ...records.directory import replace_bytes
from ..report.frame import PageWords, Section, TablePart, Words, meanings, render
from ..report.overview import sentences
from ..tables.table import Column, Table, make
from . import charts
from .shared_charts import size_of

_WHAT, _FLOWS, _NOT, _MEANINGS = (
    "What is compared", "By flow", "What is not compared", "What the numbers mean",
)  # fmt: skip
_SECTIONS = (
    *(_WHAT, charts.PROGRAMS, charts.RATIOS, charts.BALANCE, charts.STEPS),
    *(charts.PATTERNS, charts.PHASES),
    *(_FLOWS, _NOT, _MEANINGS),
)

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


def write(comparison: Comparison, path: Path) -> None:
    """Writes the page whole or not at all."""
    replace_bytes(path, make_page(comparison).encode())


def make_page(comparison: Comparison) -> str:
    """The page."""
    sections = {title: Section(title) for title in _SECTIONS}
    if not comparison.question:
        said = "Switch, site and versions are the same as far as they were written down."
        sections[_WHAT].add(Words(said))
    _add(sections[_WHAT], _results(comparison), _settings(comparison))
    for chart in charts.charts(comparison):
        sections[chart.section].add(chart)
    _add(sections[charts.PROGRAMS], _shared(comparison))
    _add(sections[charts.BALANCE], _systems(comparison))
    _add(sections[charts.RATIOS], _ratios(comparison))
    if comparison.balance.reason:
        sections[charts.RATIOS].add(Words(comparison.balance.reason, "about"))
    for number, one in enumerate(comparison.compared):
        for title, table in _tables(number, one):
            _add(sections[title], table)
    alone = [sentence for one in comparison.compared for sentence in one.match.alone]
    differing = [one.sentence for one in comparison.differing]
    sections[_NOT].add(
        sentences("In one result only", alone),
        sentences("Not the same measurement", differing),
        sentences("Damaged", comparison.damage),
    )
    sections[_MEANINGS].add(*meanings(sections.values()))
    sections[_MEANINGS].open = False
    names = " and ".join(subject.name for subject in comparison.subjects)
    words = PageWords(
        names,
        f"{names} beside each other",
        [f"Compared with Switchbench {__version__} (doc/compare.md)."],
        "These results are not the same measurement, or not whole.",
        [*differing, *comparison.damage],
    )
    return render(words, sections.values())


def _add(section: Section, *made: Table | None) -> None:
    section.add(*(TablePart(table) for table in made if table is not None))


def _results(comparison: Comparison) -> Table | None:
    entries = [
        {
            "name": subject.name + (" (baseline)" if number == 0 else ""),
            "directory": str(subject.directory),
            "started": (subject.measured.summary.get("run") or {}).get("started"),
            "hpl": None if compute.hpl is None else compute.hpl / 1e9,
            "stream": None if compute.stream is None else compute.stream / 1e9,
        }
        for number, (subject, compute) in enumerate(
            zip(comparison.subjects, comparison.compute, strict=True)
        )
    ]
    columns = (
        Column("result", "name", "text", about="As it is called here"),
        Column("directory", "directory", "text", about="The results directory"),
        Column("measured", "started", "text", about="When its run began"),
        Column("HPL", "hpl", unit="GFlop/s", about="As given, of the whole system"),
        Column("STREAM Copy", "stream", unit="GB/s", about="As given, of the whole system"),
    )
    return make("results", "Results", "", columns, entries)


def _settings(comparison: Comparison) -> Table | None:
    columns = [Column("setting", "setting", "text", about="As the configuration calls it")]
    columns += [
        Column(subject.name, str(number), "text", about="What it is in this result")
        for number, subject in enumerate(comparison.subjects)
    ]
    entries = [
        {"setting": one.setting, **{str(i): value for i, value in enumerate(one.values)}}
        for one in comparison.question
    ]
    about = "What differs between the results and is what they are compared for."
    return make("question", "The question", about, columns, entries)


def _shared(comparison: Comparison) -> Table | None:
    shared = comparison.shared
    columns = [
        Column("measure", "measure", "text", about="By one definition (doc/compare.md)"),
        Column("ranks", "ranks", "count", about="That communicate at the same time"),
        Column("size", "size", "text", about="Of a message; none where it does not matter"),
    ]
    columns += [
        Column(voice, str(number), about="The program's figure, in this unit and definition")
        for number, voice in enumerate(shared.voices)
    ]
    columns.append(Column("unit", "unit", "text", about="Of all programs' figures"))
    entries = [
        {"measure": row.key.common.title, "ranks": row.key.ranks, "size": size_of(row)}
        | {"unit": row.key.common.unit.replace("us", "µs")}
        | {str(number): value for number, value in enumerate(row.values)}
        for row in shared.rows
    ]
    alone = f"{shared.alone:,} figures of one program alone are left out." if shared.alone else ""
    return make("shared", "The same by several programs", alone, columns, entries)


def _systems(comparison: Comparison) -> Table | None:
    columns = (
        Column("result", "name", "text", about="As it is called here"),
        Column("processes", "ranks", "count", about="Of the run"),
        Column("HPL", "hpl", unit="GFlop/s", about="Of the whole system"),
        Column("random ring", "ring", unit="GB/s", about="Both flows of all processes (HPCC)"),
        Column("ring by HPL", "ring_by_hpl", unit="B/kFlop", about="Saini et al. 2005, Figure 2"),
        Column("STREAM Copy", "stream", unit="GB/s", about="Of all processes at once"),
        Column("STREAM by HPL", "stream_by_hpl", unit="B/Flop", about="Their Figure 4"),
    )
    entries = [
        {
            "name": system_name(subject.name, one, every),
            "ranks": one.ranks,
            "hpl": one.hpl / 1e9,
            "ring": one.ring and one.ring / 1e9,
            "ring_by_hpl": one.ring and 1e3 * one.ring / one.hpl,
            "stream": one.stream and one.stream / 1e9,
            "stream_by_hpl": one.ratio("stream"),
        }
        for subject, every in zip(comparison.subjects, comparison.systems, strict=True)
        for one in every
        if one.hpl
    ]
    return make("systems", "Communication and memory by computing", "", columns, entries)


def _ratios(comparison: Comparison) -> Table | None:
    columns = [Column("ratio", "title", "text", about="One axis of the chart")]
    columns += [
        Column(subject.name, str(number), about="Share of the best result's")
        for number, subject in enumerate(comparison.subjects)
    ]
    columns += [
        Column("1 is", "most", about="What the best result has (Saini et al. 2005, Table 2)"),
        Column("unit", "unit", "text", about="Of what 1 is"),
        Column("rests on", "basis", "text", seldom=True, about=_ABOUT["basis"]),
    ]
    entries = [
        {
            "title": axis.title,
            "most": axis.most,
            "unit": axis.unit.replace("us", "µs"),
            "basis": None if axis.basis is None else axis.basis.words,
        }
        | {str(number): share for number, share in enumerate(axis.shares)}
        for axis in comparison.balance.axes
    ]
    about = "".join(f"Left out: {sentence}. " for sentence in comparison.balance.left_out)
    return make("ratios", "What each axis is worth", about, columns, entries)


# --- differences ---------------------------------------------------------------------------------


def _tables(number: int, one: Compared) -> Iterator[tuple[str, Table | None]]:
    base, other = one.match.base.name, one.match.other.name
    names = f"{other} against {base}"
    some = f"The foremost of {one.flow_count:,} flows of each pattern and measure."
    kinds: tuple[tuple[str, str, Sequence[DifferenceRow], str], ...] = (
        (charts.PATTERNS, "plans", one.plans, " ".join(one.notes)),
        (charts.PHASES, "phases", one.phases, ""),
        (_FLOWS, "flows", one.flows, some),
    )
    for title, kind, rows, about in kinds:
        entries = [_entry(one, row) for row in rows]
        yield title, make(f"{kind}-{number}", names, about, _columns(base, other), entries)


def _columns(base: str, other: str) -> tuple[Column, ...]:
    return (
        Column("pattern", "pattern", "text", fold=True, about="Who sends to whom, and how"),
        Column("of", "of", "text", about="The phase or flow"),
        Column("measure", "measure", "text", about="Which figure is compared (doc/measures.md)"),
        Column("unit", "unit", "text", about="The figure's unit"),
        Column(base, "base", about="The baseline's mean over its repeats"),
        Column(other, "other", about="The other result's mean over its repeats"),
        Column("difference", "difference", about=_ABOUT["difference"]),
        Column("in %", "percent", about="The difference in percent of the baseline"),
        Column("from", "low", about=_ABOUT["interval"]),
        Column("to", "high", about=_ABOUT["interval"]),
        Column("p", "p", about=_ABOUT["p"]),
        Column("repeats", "repeats", "text", fold=True, about="In which it was observed"),
        Column("verdict", "verdict", "text", about=_ABOUT["verdict"]),
    )


def _entry(one: Compared, row: DifferenceRow) -> Mapping[str, Any]:
    return {
        "pattern": one.match.pairs[row.pair].title,
        "of": row.of or None,
        "measure": row.measure.title,
        "unit": row.measure.unit.replace("us", "µs"),
        "base": row.base,
        "other": row.other,
        "difference": row.difference,
        "percent": row.percent,
        "low": row.low,
        "high": row.high,
        "p": row.p_adjusted,
        "repeats": " and ".join(map(str, dict.fromkeys(row.counts))),
        "verdict": row.verdict if row.reason is None else f"{row.verdict} ({row.reason})",
    }
