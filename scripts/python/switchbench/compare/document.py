# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one value for other programs, in the form of form.py."""

from __future__ import annotations

from . import shared
from .comparison import Compared, Comparison
from .differences import DifferenceRow
from .form import (
    CaseValue,
    ComparedValue,
    ComparisonDocument,
    DifferingValue,
    ResultValue,
    RowValue,
    SharedRowValue,
)
from .settings import Differing
from .subjects import Case, Subject


def document(comparison: Comparison, complete: bool) -> ComparisonDocument:
    """`complete`: whether all could be compared."""
    asked = comparison.asked
    return {
        "schema": "switchbench-comparison/2",
        "exit_status": 0 if complete else 2,
        "confidence_percent": 100 * asked.confidence,
        "baseline": comparison.subjects[0].name,
        "results": [_result(subject) for subject in comparison.subjects],
        "question": [_differing(one) for one in comparison.question],
        "comparisons": [_compared(one) for one in comparison.compared],
        "shared": {
            "programs": comparison.shared.voices,
            "rows": [_shared(row) for row in comparison.shared.rows],
            "alone": comparison.shared.alone,
        },
        "damage": comparison.damage,
    }


def _result(subject: Subject) -> ResultValue:
    run = subject.measured.summary["run"]
    return {
        "name": subject.name,
        "directory": str(subject.directory),
        "id": run.get("id"),
        "started": run.get("started"),
        "status": subject.measured.summary.get("status"),
        "settings": subject.settings,
    }


def _differing(one: Differing) -> DifferingValue:
    return {"of": one.of or None, "setting": one.setting, "values": list(one.values)}


def _compared(one: Compared) -> ComparedValue:
    return {
        "result": one.match.other.name,
        "pairs": [
            {"baseline": _case(pair.base), "other": _case(pair.other)} for pair in one.match.pairs
        ],
        "plans": [_row(row) for row in one.plans],
        "phases": [_row(row) for row in one.phases],
        "flows": [_row(row) for row in one.flows],
        "flows_compared": one.flow_count,
        "differing": [_differing(differing) for differing in one.match.differing],
        "alone": one.match.alone,
        "notes": one.notes,
    }


def _case(case: Case) -> CaseValue:
    trials = [plan["trial"] for plan in case.plans]
    return {"title": case.title, "settings": case.settings, "trials": trials}


def _row(row: DifferenceRow) -> RowValue:
    return {
        "pair": row.pair,
        "of": row.of or None,
        "measure": row.measure.name,
        "unit": row.measure.unit,
        "better": "more" if row.measure.better > 0 else "less",
        "baseline": _rounded(row.base),
        "other": _rounded(row.other),
        "repeats": list(row.counts),
        "difference": _rounded(row.difference),
        "percent": _rounded(row.percent),
        "ci_low": _rounded(row.low),
        "ci_high": _rounded(row.high),
        "degrees_of_freedom": _rounded(row.freedom),
        "p": row.p,
        "p_adjusted": row.p_adjusted,
        "dependent": row.dependent,
        "verdict": row.verdict,
        "reason": row.reason,
    }


def _shared(row: shared.SharedRow) -> SharedRowValue:
    return {
        "measure": row.key.measure,
        "ranks": row.key.ranks,
        "size": row.key.size,
        "unit": row.key.common.unit,
        "better": "more" if row.key.common.better > 0 else "less",
        "values": list(row.values),
        "ratios": list(row.ratios),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
