# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one value for other programs, in the form of form.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from . import shared
from .balance import Axis
from .comparison import Compared, Comparison
from .differences import DifferenceRow
from .form import (
    AxisValue,
    CaseValue,
    ComparedValue,
    ComparisonDocument,
    DifferingValue,
    ResultValue,
    RowValue,
    SharedRowValue,
    SystemValue,
)
from .settings import Differing
from .subjects import Case, Subject
from .systems import Compute


def document(comparison: Comparison, complete: bool) -> ComparisonDocument:
    """`complete`: whether all could be compared."""
    asked = comparison.asked
    return {
        "schema": "switchbench-comparison/2",
        "exit_status": 0 if complete else 2,
        "confidence_percent": 100 * asked.confidence,
        "baseline": comparison.subjects[0].name,
        "results": [
            _result(subject, compute)
            for subject, compute in zip(comparison.subjects, comparison.compute, strict=True)
        ],
        "question": [_differing(one) for one in comparison.question],
        "comparisons": [_compared(one) for one in comparison.compared],
        "balance": {
            "divided_by_hpl": comparison.balance.divided,
            "reason": comparison.balance.reason,
            "axes": [_axis(axis) for axis in comparison.balance.axes],
            "excluded": comparison.balance.excluded,
            "systems": [
                _system(subject.name, one)
                for subject, systems in zip(comparison.subjects, comparison.systems, strict=True)
                for one in systems
            ],
        },
        "shared": {
            "programs": comparison.shared.voices,
            "rows": [_shared(row) for row in comparison.shared.rows],
            "alone": comparison.shared.alone,
        },
        "damage": comparison.damage,
    }


def _result(subject: Subject, compute: Compute) -> ResultValue:
    run = subject.measured.summary["run"]
    return {
        "name": subject.name,
        "directory": str(subject.directory),
        "id": run.get("id"),
        "started": run.get("started"),
        "status": subject.measured.summary.get("status"),
        "settings": subject.settings,
        "hpl_flops": compute.hpl,
        "stream_bytes_per_s": compute.stream,
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
    trials = [plan["trial"] for plan in case.measured]
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


def _axis(axis: Axis) -> AxisValue:
    basis = axis.basis
    return {
        "name": axis.name,
        "title": axis.title,
        "unit": axis.unit,
        "max": axis.most,
        "values": list(axis.values),
        "shares": [round(share, 6) for share in axis.shares],
        "basis": None
        if basis is None
        else {"phases": basis.phases, "phases_of_plan": basis.of, "times": list(basis.times)},
    }


def _system(result: str, one: Compute) -> SystemValue:
    known = {name: value for name, value in asdict(one).items() if name != "several"}
    ratios = {"ring_by_hpl": one.ratio("ring"), "stream_by_hpl": one.ratio("stream")}
    return cast("SystemValue", {"result": result, **known, **ratios})


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
