# SPDX-License-Identifier: BSD-3-Clause
"""Traffic matrices of RFC 2889 and RFC 8239, lists of flows, and what they offer to each port."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs import LAB, compile_text, needs_engine
from switchbench.base.model import Load, PartSetting, Run
from switchbench.config import read_values
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import trial_document
from switchbench.plan.engine import flow_parts, oversubscribed, plan_phases, port_parts
from switchbench.plan.listing import notes

pytestmark = needs_engine


def run_of(tmp_path: Path, test: str) -> Run:
    return compile_text(tmp_path, f"{LAB}tests:\n- {test}\n")


def pattern_of(tmp_path: Path, test: str) -> dict[str, Any]:
    pattern: dict[str, Any] = trial_document(run_of(tmp_path, test).trials[0])["pattern"]
    return pattern


def test_a_list_of_flows_is_kept_as_written(tmp_path: Path) -> None:
    """RFC 8239, 3.2."""
    flows = "[[node1, node2, 99.98%], [2, 'node2:e0', 1%], [node4, 0]]"
    pattern = pattern_of(tmp_path, f"{{pattern: flows, flows: {flows}}}")
    assert pattern == {
        "name": "flows",
        "list": [0, 1, 2, 1, 3, 0],
        "shares": [999_800_000, 10_000_000, 0],
    }
    run = run_of(tmp_path, f"{{pattern: flows, flows: {flows}}}")
    assert compile_run(read_values(run.effective)).trials == run.trials
    assert run.effective["tests"][0]["flows"] == [
        ["node1", "node2", "99.98%"],
        [2, "node2:e0", "1%"],
        ["node4", 0],
    ]


@pytest.mark.rows
def test_what_a_port_is_offered_is_known(
    test: str, percents: dict[str, float], tmp_path: Path
) -> None:
    trial = run_of(tmp_path, test).trials[0]
    found = dict(oversubscribed(trial, trial.parts[0]))
    assert found == pytest.approx(percents, rel=1e-6)


def test_a_part_offers_its_own_load(tmp_path: Path) -> None:
    run = run_of(tmp_path, "{pattern: incast, load: 1kfps, frame_size: 1518}")
    [trial] = run.trials
    own = {"lab": PartSetting("dpdk", (1518,), "frame", Load(percent=100.0))}
    assert notes(run) == []
    [note] = notes(replace(run, trials=(replace(trial, own=own),)))
    assert "node8:e0 (700 %)" in note


@pytest.mark.parametrize(("rotate", "last"), [("", 0), (", rotate: true", 1 / 7)])
def test_a_sender_of_an_incast_has_its_part(tmp_path: Path, rotate: str, last: float) -> None:
    """One that does not send in the first phase, too."""
    test = f"{{pattern: incast, load: 100.98%, load_of: receivers{rotate}}}"
    assert port_parts(pattern_of(tmp_path, test), 8, 1) == pytest.approx([1 / 7] * 7 + [last])


@given(
    flows=st.dictionaries(
        st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda ends: ends[0] != ends[1]),
        st.one_of(st.none(), st.integers(1, 140)),
        min_size=1,
    )
)
@settings(max_examples=30)
def test_parts_are_the_shares_whatever_the_order(
    flows: dict[tuple[int, int], int | None],
) -> None:
    """Of ports that give no share the flows are even; the others' rest is divided."""
    pattern: dict[str, Any] = {
        "name": "flows",
        "list": [rank for ends in flows for rank in ends],
        "shares": [(share or 0) * 10**6 for share in flows.values()],  # 7 of them are 98 %
    }
    [phase] = plan_phases(8, pattern, 1)
    found = phase.flows
    parts = dict(zip(map(tuple, found.tolist()), flow_parts(pattern, found), strict=True))
    assert parts.keys() == flows.keys()
    for ends, share in flows.items():
        if share is not None:
            assert parts[ends] == pytest.approx(share / 1000)
    for source in {ends[0] for ends in flows}:
        own = [share for ends, share in flows.items() if ends[0] == source]
        total = sum(part for ends, part in parts.items() if ends[0] == source)
        expected = 1 if None in own else sum(filter(None, own)) / 1000
        assert total == pytest.approx(expected)
    assert np.all(np.array(list(parts.values())) > 0)
