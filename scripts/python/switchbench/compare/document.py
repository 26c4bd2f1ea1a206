# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one value for other programs (doc/how-to/compare.md).

Not observed, or not known.
"""

from __future__ import annotations

from .comparison import Compared, Comparison
from .differences import DifferenceRow
from .settings import Differing
from .subjects import Case


def document(comparison: Comparison) -> dict[str, object]:
    """Return the comparison as JSON has it."""
    return {
        "schema": "switchbench-comparison/2",
        "exit_status": 0 if comparison.whole else 2,
        "confidence_percent": 100 * comparison.asked.confidence,
        "baseline": comparison.subjects[0].name,
        "results": [
            {
                "name": subject.name,
                "directory": str(subject.directory),
                "id": subject.measured.summary["run"].get("id"),
                "started": subject.measured.summary["run"].get("started"),
                "status": subject.measured.summary.get("status"),
                "settings": subject.settings,
            }
            for subject in comparison.subjects
        ],
        "question": [_differing(one) for one in comparison.question],
        "comparisons": [_compared(one) for one in comparison.compared],
        "damage": comparison.damage,
    }


def _differing(one: Differing) -> dict[str, object]:
    return {"of": one.of or None, "setting": one.setting, "values": list(one.values)}


def _compared(one: Compared) -> dict[str, object]:
    levels = {"plans": one.plans, "phases": one.phases, "flows": one.flows}
    return {
        "result": one.match.other.name,
        "pairs": [
            {"baseline": _case(pair.base), "other": _case(pair.other)} for pair in one.match.pairs
        ],
        # The surest and largest differences first.
        **{level: [_row(row) for row in rows] for level, rows in levels.items()},
        "flows_compared": one.flow_count,
        "differing": [_differing(differing) for differing in one.match.differing],
        "alone": one.match.alone,
        "notes": one.notes,
    }


def _case(case: Case) -> dict[str, object]:
    trials = [plan["trial"] for plan in case.plans]  # one for each repeat
    return {"title": case.title, "settings": case.settings, "trials": trials}


def _row(row: DifferenceRow) -> dict[str, object]:
    numbers = {
        "baseline": row.base, "other": row.other, "difference": row.difference,
        "percent": row.percent, "ci_low": row.low, "ci_high": row.high,
        "degrees_of_freedom": row.freedom,
    }  # fmt: skip
    return {
        "pair": row.pair,  # place in `pairs`
        "of": row.of or None,  # phase or flow; null: all phases together
        "measure": row.measure.name,
        "unit": row.measure.unit,
        "better": "more" if row.measure.better > 0 else "less",
        "repeats": list(row.counts),
        **{name: None if value is None else round(value, 6) for name, value in numbers.items()},
        **{
            name: getattr(row, name)
            for name in ("p", "p_adjusted", "dependent", "verdict", "reason")
        },
    }
