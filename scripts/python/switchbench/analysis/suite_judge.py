# SPDX-License-Identifier: BSD-3-Clause
"""Clauses of a suite's run, judged by the rows of its tables: `rfc2544.throughput`.

A row whose subtest did not end as its document asks decides nothing: the clause is INCONCLUSIVE,
unless it fails in another row. Of a search that fails at the min of its range, what is below that
min fails a clause that asks for as much or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..base.measures import MORE
from ..config.clauses import Clause, Spec, matches, parse_clause
from ..plan.suite import suite_words
from ..records.document.clauses import ClauseEntry
from .judge import FAIL, FAILURES_NAMED, INCONCLUSIVE, PASS, percent_of, stated
from .suite import Measurement, SuiteCourse


def suite_verdicts(expectations: Iterable[Spec], course: SuiteCourse) -> list[ClauseEntry]:
    """The summary's `expectations`, in the order of the clauses."""
    return [_verdict(parse_clause(spec), course) for spec in expectations]


def _verdict(clause: Clause, course: SuiteCourse) -> ClauseEntry:
    key = clause.measure.key.partition(".")[2]
    about = [
        one
        for one in course.every
        if one.has(key) and matches(clause.spec.get("where") or {}, one.planned)
    ]
    ended = [one for one in about if one.outcome()[1]]
    values = [(row.get(key), words_of(one, row)) for one in ended for row in one.rows()]
    known = [(value, words) for value, words in values if value is not None]
    below = [pair for one in about if one not in ended for pair in _too_low(clause, key, one)]
    ordered = sorted([*known, *below], key=lambda pair: clause.margin(pair[0]))
    bad = [pair for pair in ordered if pair in below or not clause.holds(pair[0])]
    doubts = [f"{words_of(one)}: {one.outcome()[0]}" for one in about if one not in ended]
    if len(known) < len(values):
        doubts.append(f"{len(values) - len(known)} of {len(values)} values could not be observed")
    worst, words = ordered[0] if ordered else (None, None)
    margin = None if worst is None else clause.margin(worst)
    return {
        **stated(clause.spec),
        "limit": clause.limit,
        "unit": clause.measure.unit,
        "verdict": FAIL if bad else INCONCLUSIVE if doubts else PASS,
        "judged": len(values) + len(below),
        "failed": len(bad),
        "unobserved": len(values) - len(known),
        "limited": 0,
        "trials": len(about),
        "trials_measured": len(ended),
        "value": worst,
        "margin": margin,
        "margin_percent": percent_of(margin, clause.limit),
        "of": words,
        "at": None,
        "failures": [
            {"value": value, "margin": clause.margin(value), "of": said, "at": None}
            for value, said in bad[:FAILURES_NAMED]
        ],
        "reason": None if bad else "; ".join(doubts) or None,
    }


def _too_low(clause: Clause, key: str, measured: Measurement) -> Iterator[tuple[float, str]]:
    """Yield what a search that fails at the min of its range is below, where that is too little."""
    if clause.measure.better != MORE or clause.sign not in (">=", ">"):
        return
    for row in measured.failed_rows():
        value = row.get(key)
        if value is not None and value <= clause.limit:
            yield value, f"{words_of(measured, row)}, which fails at the min of its range"


def words_of(measured: Measurement, row: Mapping[str, Any] | None = None) -> str:
    """What people are shown: subtest, variant, size, and the row's load."""
    planned = measured.planned
    parts = [*suite_words(planned), f"{planned.sizes[0]} B"]
    if row is not None and row.get("load_percent") is not None:
        parts.append(f"at {row['load_percent']:.4g} %")
    return " ".join(parts)
