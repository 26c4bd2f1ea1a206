# SPDX-License-Identifier: BSD-3-Clause
"""Faults hidden in labs are named: element, direction and kind, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

import hidden
import labkit

pytestmark = labkit.needs_lab

RECALL, PRECISION = 0.90, 0.98

SCORES: list[hidden.Score] = []


@pytest.mark.parametrize("case", hidden.CASES, ids=lambda case: str(case.seed))
def test_a_case_is_measured(case: hidden.Case, tmp_path: Path) -> None:
    result = hidden.run(case, tmp_path)
    assert result.status in (0, 1, 3), result.output + result.errors
    SCORES.append(hidden.Score(case, result.suspects))
    print(SCORES[-1].row())


def test_the_faults_are_named_and_nothing_else() -> None:
    assert len(SCORES) == len(hidden.CASES)
    rows = [score.row() for score in SCORES]
    found, planted = (
        sum(len(some) for some in every)
        for every in ([s.found for s in SCORES], [s.case.faults for s in SCORES])
    )
    assert found >= RECALL * planted, rows
    suspects, wrong = sum(len(s.suspects) for s in SCORES), sum(len(s.wrong) for s in SCORES)
    assert wrong <= (1 - PRECISION) * suspects, rows


@pytest.mark.parametrize(("number", "transport"), list(enumerate(("dpdk", "udp", "tcp"))))
def test_a_healthy_lab_has_no_suspect(number: int, transport: str, tmp_path: Path) -> None:
    result = hidden.run(hidden.healthy(number, transport), tmp_path).complete
    assert result.suspects == []
