# SPDX-License-Identifier: BSD-3-Clause
"""Which trials of results are which of a run: by what they are, whatever their numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Trial
from switchbench.predict.joined import join
from switchbench.records.directory import SUMMARY
from synthetic import bare_summary, make_run, make_site, make_trial, plan_entry

PAIRS = make_trial(make_site(), 0)
RING = replace(PAIRS, id=1, pattern={"name": "ring"}, parameters={"count": 1})
CHAIN = replace(PAIRS, id=2, pattern={"name": "chain"}, parameters={"forward": True})


def results(path: Path, *trials: Trial, **more: Any) -> Path:
    """A directory whose summary has measured these."""
    summary = bare_summary()
    summary["plans"] = [plan_entry(trial) | more for trial in trials]
    (path / SUMMARY).write_text(json.dumps(summary))
    return path


def numbered(trial: Trial, number: int, repeat: int = 0) -> Trial:
    """The same measured as another number."""
    return replace(trial, id=number, repeat=repeat)


def test_other_numbers_are_no_other_trials(tmp_path: Path) -> None:
    run = make_run(make_site(), PAIRS, RING, CHAIN)
    there = results(tmp_path, numbered(CHAIN, 0), numbered(PAIRS, 1), numbered(RING, 2))
    found = join(run, there)
    assert found.trials == {(0, 0): CHAIN, (1, 0): PAIRS, (2, 0): RING}
    assert found.unmatched == []


def test_two_of_a_kind_keep_their_numbers(tmp_path: Path) -> None:
    """Two tests with the same words, and repeats of one."""
    twins = [numbered(PAIRS, number, repeat) for number, repeat in ((0, 0), (1, 1), (2, 0), (3, 1))]
    found = join(make_run(make_site(), *twins), results(tmp_path, *reversed(twins)))
    assert found.trials == {(one.id, one.repeat): one for one in twins}


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"count": 2}},
        {"transport": "tcp"},
        {"ranks": 3},
        {"network": "rail1"},
        {"size": 64},
        {"load": {"percent": 50.0}},
    ],
)
def test_what_the_configuration_has_not_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    there = results(tmp_path, PAIRS, RING)
    summary = json.loads((there / SUMMARY).read_text())
    summary["plans"][1] |= change
    (there / SUMMARY).write_text(json.dumps(summary))
    found = join(make_run(make_site(), PAIRS, RING), there)
    assert found.trials == {(0, 0): PAIRS}
    (one,) = found.unmatched
    assert one.startswith("ring count ")


def test_results_of_another_configuration_are_refused(tmp_path: Path) -> None:
    there = results(tmp_path, CHAIN)
    with pytest.raises(ConfigurationError, match="chain forward, 2 ranks, dpdk, 1518 B f"):
        join(make_run(make_site(), PAIRS, RING), there)


def test_results_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no trial that it was measured"):
        join(make_run(make_site(), PAIRS), results(tmp_path))


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    there = results(tmp_path, PAIRS, parameters=7)
    with pytest.raises(ConfigurationError, match=r"`plans\.parameters` has a form that is not"):
        join(make_run(make_site(), PAIRS), there)
