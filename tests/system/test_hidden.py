# SPDX-License-Identifier: BSD-3-Clause
"""Faults hidden in labs are named: element, direction and kind, and nothing else is.

With `pytest -s` the table of what was planted and what was named stands at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hidden
import labkit

pytestmark = [labkit.needs_lab, labkit.needs_switch, pytest.mark.slow]

RECALL, PRECISION = 0.90, 0.98

SCORES: list[hidden.Score] = []


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """Print the table after the last test."""
    yield
    print("\n\n| case | transport | planted | named | |\n| --- | --- | --- | --- | --- |")
    for score in SCORES:
        print(score.row())


@pytest.mark.parametrize("seed", range(hidden.CASES))
def test_a_case_is_measured(seed: int, tmp_path: Path) -> None:
    case = hidden.case(seed)
    result = hidden.run(case, tmp_path)
    assert result.status in (0, 1, 3), result.output + result.errors
    SCORES.append(hidden.score(case, result.directory))


def test_the_faults_are_named_and_nothing_else() -> None:
    planted = sum(len(score.case.faults) for score in SCORES)
    found = sum(len(score.found) for score in SCORES)
    suspects = sum(len(score.suspects) for score in SCORES)
    wrong = sum(len(score.wrong) for score in SCORES)
    assert len(SCORES) == hidden.CASES
    assert found >= RECALL * planted, [score.row() for score in SCORES]
    assert wrong <= (1 - PRECISION) * suspects, [score.row() for score in SCORES]


def test_a_healthy_lab_has_no_suspect(tmp_path: Path) -> None:
    for number, transport in enumerate(("dpdk", "udp", "tcp")):
        case = hidden.healthy(number, transport)
        result = hidden.run(case, tmp_path / transport)
        assert result.status == 0, result.output + result.errors
        assert hidden.score(case, result.directory).suspects == []
