# SPDX-License-Identifier: BSD-3-Clause
"""Findings of records made by hand: which kind, whose, how many, and what is left open."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from switchbench.results.findings import flooded_by_flow
from switchbench.results.summary import Summary, schema
from synthetic import (
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    trial_record,
)

SITE = make_site(4)
CHAIN = (("node1", "node2"), ("node2", "node3"), ("node3", "node4"))
SENT = 8000


def findings(
    delivered: dict[str, int], stray: dict[str, int] | None = None, **sides: Any
) -> list[tuple[str, str, int]]:
    """What a chain of four finds: frames delivered to each node (else all), strays by node."""
    trial = make_trial(SITE, flows=3)
    records: list[dict[str, Any]] = []
    for src, dst in CHAIN:
        ends = (f"{src}:e0", f"{dst}:e0")
        came = delivered.get(dst, SENT)
        intended = sides.get(f"{src}_intended", SENT)
        records.append(frame_side("source", *ends, SENT, 7000, intended=intended))
        records.append(frame_side("destination", *ends, came, min(7000, came)))
    for number in range(1, 5):
        node = f"node{number}"
        strayed = (stray or {}).get(node, 0)
        records += [
            port_record(f"{node}:e0", misdelivered=strayed),
            phase_record(node),
            trial_record(node),
        ]
    summary = Summary(make_run(SITE, trial))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    result = summary.finish(about(), ())
    jsonschema.validate(result, schema(), jsonschema.Draft202012Validator)
    return [
        (found["kind"], found["port"] or f"{found['src']} -> {found['dst']}", found["count"])
        for found in result["findings"]
    ]


def test_nothing_wrong_nothing_found() -> None:
    assert findings({}) == []


def test_a_loss_is_the_flows() -> None:
    assert findings({"node3": SENT - 1}) == [("loss", "node2:e0 -> node3:e0", 1)]


def test_as_many_astray_as_lost_is_a_wrong_port() -> None:
    found = findings({"node2": SENT - 3}, {"node3": 2, "node4": 1})
    assert found == [("wrong-port", "node1:e0 -> node2:e0", 3)]


def test_strays_that_no_flow_lacks_are_a_flood() -> None:
    found = findings({}, {"node3": 5, "node4": 5})
    assert found == [("flood", "node1:e0 -> node2:e0", 5)]


def test_strays_that_fit_neither_stay_open() -> None:
    found = findings({"node2": SENT - 3}, {"node4": 1})
    assert found == [("misdelivered", "node4:e0", 1), ("loss", "node1:e0 -> node2:e0", 3)]


def test_a_port_through_which_nothing_comes_is_dead() -> None:
    assert findings({"node2": 0, "node3": 0}) == [("dead-port", "node2:e0", 2 * SENT)]


def test_when_nothing_comes_at_all_no_port_is_blamed() -> None:
    found = findings({"node2": 0, "node3": 0, "node4": 0})
    assert {kind for kind, _, _ in found} == {"loss"}


@pytest.mark.parametrize(("intended", "kind"), [(2 * SENT, "slow-port"), (SENT, "loss")])
def test_slow_is_only_what_is_slow_both_ways(intended: int, kind: str) -> None:
    found = findings({"node2": SENT // 2}, node2_intended=intended)
    assert [(name, count) for name, _, count in found] == [(kind, SENT // 2)]


def test_floods_by_flow() -> None:
    chain = [("a", "b"), ("b", "c"), ("c", "d")]
    stray = {"a": 12, "b": 4, "c": 11, "d": 19}
    assert flooded_by_flow(chain, stray) == {("a", "b"): 11, ("b", "c"): 8, ("c", "d"): 4}
    both = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    assert flooded_by_flow(both, {"a": 0, "b": 0, "c": 7, "d": 7}) == {
        ("c", "d"): 0,
        ("d", "c"): 0,
        None: 7,
    }
    assert flooded_by_flow(chain, {"a": 0, "b": 0, "c": 1, "d": 0}) is None
