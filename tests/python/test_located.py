# SPDX-License-Identifier: BSD-3-Clause
"""Suspects and findings of records made by hand: what is named, how much, and what is left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from recorded import Feed
from schemas import validate_summary
from switchbench.records.summary_form import SummaryDocument
from switchbench.run.live.state import RunState
from synthetic import (
    FRAME,
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)
from test_summary import check

SITE = make_site(4)
SENT = 8000
Json = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "data" / "located.yaml").read_text())


def left(lost: Json, src: int, dst: int, sent: int) -> int:
    """What comes of so many frames from one port to another."""
    here = {"src": src, "dst": dst, "sent": sent}
    if not lost or any(lost.get(name, value) != value for name, value in here.items()):
        return sent
    gone: int = lost.get("frames", 0) + sent * lost.get("percent", 0) // 100
    return min(sent - gone, lost.get("most", sent))


def all_to_all(case: Json) -> SummaryDocument:
    """The summary of an all-to-all of six ports at each load."""
    site, loads = make_site(6), case.get("loads", (4000, 8000))
    nodes = range(1, 7)
    trials = [make_trial(site, number, phases=5, flows=30) for number in range(len(loads))]
    clauses = [case["clause"]] if "clause" in case else []
    feed = Feed(make_run(site, *trials, expectations=clauses))
    for trial, sent in enumerate(loads):
        for phase in range(5):
            place = {"trial": trial, "phase": phase}
            for src in nodes:
                dst = (src + phase) % 6 + 1
                came = left(case.get("lost", {}), src, dst, sent)
                ends = (f"node{src}:e0", f"node{dst}:e0")
                feed.take(frame_side("source", *ends, sent, sent, **place))
                more = place | case.get("flows", {})
                feed.take(frame_side("destination", *ends, came, came, **more))
            for node in nodes:
                counted = case.get("ports", {}).get(f"node{node}", {})
                feed.take(port_record(f"node{node}:e0", **place, **counted))
            for node in nodes:
                feed.take(phase_record(f"node{node}", **place))
        for node in nodes:
            feed.take(trial_record(f"node{node}", trial=trial))
    result = feed.all().finish(about(), ())
    validate_summary(result)
    return result


def named(result: SummaryDocument) -> list[list[str]]:
    """Element, direction and kind of the suspects."""
    return [
        [one["element"]["name"], one["element"]["direction"], one["kind"]]
        for one in result["location"]["suspects"]
    ]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_planted(case: Json) -> None:
    result = all_to_all(case)
    assert named(result) == case["named"]
    if "found" in case:
        assert [[one["kind"], one["severity"]] for one in result["findings"]] == case["found"]
    check(result, case.get("summary", {}))
    for one in result["location"]["suspects"]:
        assert one["low"] <= one["value"] <= one["high"]
        if one["kind"] == "capacity":  # of layer 1
            layer_1 = case["lost"]["most"] * 8 * (FRAME + 20) / 1e6
            assert one["value"] == pytest.approx(layer_1, rel=0.02)
    if "suspected" in case:
        assert [port["port"] for port in result["ports"] if port["suspect"]] == case["suspected"]


def test_of_many_flows_that_were_cut_off_those_that_lack_the_most_are_named() -> None:
    """The hundred of them, of 102 that lack 1 to 102 bytes."""
    site = make_site(204)
    trial = make_trial(site, flows=102, transport="tcp", traffic="transfer", size_unit="message")
    feed = Feed(make_run(site, trial))
    for i in range(1, 103):
        ends = (f"node{2 * i - 1}:e0", f"node{2 * i}:e0")
        feed.take(tcp_side("source", *ends, 65_536, 65_536))
        feed.take(tcp_side("destination", *ends, 65_536 - i, 65_536 - i))
    for made in (phase_record, trial_record):
        for process in site.processes:
            more = {"drained": False} if made is phase_record else {}
            feed.take(made(process.name, **more))
    found = feed.all().finish(about(), ())["findings"]
    assert [one["count"] for one in found] == [*range(102, 2, -1), 3]


def test_findings_of_a_run_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the trials that all nodes have ended, every two seconds at most."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    site = make_site(2)
    run = make_run(site, *(make_trial(site, number, flows=1) for number in range(3)))
    feed = Feed(run, brief=True)
    state = RunState(run, feed.summary)

    def take(record: dict[str, Any]) -> None:
        feed.take(record)
        state.take(record)

    counts = []
    for number in range(3):
        place = {"trial": number}
        ends = ("node1:e0", "node2:e0")
        take(frame_side("source", *ends, SENT, 7000, **place))
        take(frame_side("destination", *ends, SENT - number - 1, 7000, **place))
        for process in site.processes:
            take(phase_record(process.name, **place))
        take(trial_record("node1", **place))
        state.turn()  # node2 has not ended it
        counts.append([one["count"] for one in state.findings])
        take(trial_record("node2", **place))
        now_s += 1.0
        state.turn()
        counts.append([one["count"] for one in state.findings])
        state.turn()
    assert counts == [[], [1], [1], [1], [1], [6]]
