# SPDX-License-Identifier: BSD-3-Clause
"""What a modelled switch does wrong is what records count, frame by frame, and location names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs

Record = dict[str, Any]
Counts = dict[tuple[str, str], int]  # by kind and by flow or port


pytestmark = [labkit.needs_lab, labkit.needs_switch]

CHAIN = {"pattern": "chain"}  # every port has another set of flows
ALL = {"pattern": "aapc"}  # senders are told apart from receivers
QUICK = {"profile": "quick", "transport": "dpdk", "warmup": "200ms", "tests": [CHAIN]}
SMALL = QUICK | {"latency": {"probes": 0}, "frame_size": 64, "load": "25%", "flood_limit": 0}


# By kind of fault: what the switch wrote of a flow, and the kind of suspect that it is.
PLANTED = {
    "drop": ("dropped", "loss"),
    "duplicate": ("duplicated", "duplication"),
    "reorder": ("reordered", "reordering"),
    "corrupt": ("corrupted", "corruption"),
    "wrong-port": ("misdelivered", "wrong-port"),
    "flood": ("flooded", "flooding"),
}
# What records of its destination count.
COUNTED = {"duplicate": "duplicated", "reorder": "reordered", "corrupt": "corrupted"}
MORE: dict[str, Record] = {"reorder": {"displacement": 3}}


def site(name: str = "model-good", nodes: int = 4, **model: Any) -> Record:
    """A modelled lab that counts by flow and phase, under a name of this run of the tests."""
    return {"lab": labkit.own(name), "nodes": nodes, "model": {"flows": "tags", **model}}


def tags(result: runs.Result) -> set[int]:
    """Return the tags of the measured phases' load."""
    return {port["tag"] for port in result.records("port") if port["phase"] >= 0}


def loaded(result: runs.Result, kind: str = "flow") -> list[Record]:
    """Return what the switch wrote of the load's flows: no probes, nothing else."""
    ours = tags(result)
    return [record for record in result.switch(kind) if record["tag"] in ours]


def name(flow: Record, *ends: str) -> str:
    """Return a flow of the switch by its stations: where it went is the fault's doing."""
    return " -> ".join(
        f"node{int(flow[end][-2:], 16)}" for end in ends or ("source", "destination")
    )


def gone(flow: Record) -> int:
    """Return frames that the switch dropped, for whatever reason."""
    return sum(flow["dropped"].values())


def lost_in_hosts(result: runs.Result) -> bool:
    """Whether a device that was full, for want of a core, kept a frame from the switch or from its
    station."""
    before = any(port["lost_before"] for port in result.switch("port"))
    flows = (flow for flow in result.switch("flow") if flow["tag"] is not None)
    return before or any(flow["dropped"]["host"] for flow in flows)


def found(result: runs.Result) -> Counts:
    """Return what the records of flows count, by kind and flow (with the wrong port)."""
    counts: Counter[tuple[str, str]] = Counter()
    strays: dict[str, Counter[str]] = {}
    for record in result.records("misdelivered-flow"):
        at = strays.setdefault(flow_of(record), Counter())
        at[record["port"].replace(":e0", "")] += record["frames"]
    ports = len({record["port"] for record in result.records("port")})
    lost: Counter[str] = Counter()
    for record in result.records("flow"):
        if record["phase"] < 0:
            continue
        sign = 1 if record["side"] == "source" else -1
        lost[flow_of(record)] += sign * record["frames"]
        if sign < 0:
            lost[flow_of(record)] -= record["corrupted"]
            for kind, key in COUNTED.items():
                counts[kind, flow_of(record)] += record[key]
    for flow, gone_frames in lost.items():
        at = strays.get(flow, Counter())
        if at.total() <= gone_frames:
            counts |= {("wrong-port", f"{flow} at {port}"): n for port, n in at.items()}
            gone_frames -= at.total()
        else:
            counts["flood", flow] += at.total() // (ports - 2)
        counts["drop", flow] += gone_frames
    return {key: n for key, n in counts.items() if n}


def flow_of(record: Record) -> str:
    """Return a record's flow in the switch's words."""
    return f"{record['src']} -> {record['dst']}".replace(":e0", "")


def suspects(result: runs.Result) -> set[tuple[str, str]]:
    """Kind and element of what the summary suspects."""
    return {
        (one["kind"], (one["ports"] or [one["element"]["name"]])[0].replace(":e0", ""))
        for one in result.suspects
    }


def compare(expected: Counts, result: runs.Result) -> None:
    """The same kinds, flows and counts: nothing left out and nothing beside them."""
    expected = {key: n for key, n in expected.items() if n}
    assert found(result) == expected, result.output + result.errors


def undisturbed(directory: Path, configuration: Record) -> runs.Result:
    """A run in which the switch dropped nothing but what it was told to, or the last of three.

    A machine that takes the cores away for long loses frames between switch and node: those are
    named too, but beside them a frame at the wrong port can't be told from a flooded one; and what
    the switch still holds when the drain is over is lost to us and delivered to it.
    """
    for attempt in range(3):
        result = runs.run(directory / str(attempt), SMALL | configuration)
        assert result.counted, result.output + result.errors
        if all(gone(flow) == flow["dropped"]["fault"] for flow in loaded(result)):
            break
    return result


@pytest.mark.parametrize("kind", PLANTED)
def test_a_fault_is_named(tmp_path: Path, kind: str) -> None:
    fault = {"kind": kind, "one_in": 2000, "measured": True, **MORE.get(kind, {})}
    key, _ = PLANTED[kind]
    result = undisturbed(tmp_path, {"window": "1s", "site": site(seed=5, faults=[fault])})
    expected: Counter[tuple[str, str]] = Counter()
    planted = 0
    for flow in loaded(result):
        struck = flow["dropped"]["fault"] if kind == "drop" else flow.get(key, 0)
        planted += struck
        if kind != "wrong-port":
            expected[kind, name(flow)] += struck
        others = gone(flow) - (flow["dropped"]["fault"] if kind == "drop" else 0)
        expected["drop", name(flow)] += others  # of a machine that was too busy
    for flow in loaded(result, "wrong"):
        expected[kind, f"{name(flow)} at {flow['out']}"] += flow["misdelivered"]
    others = sum(n for (found_as, _), n in expected.items() if found_as != kind)
    assert 0 < planted <= sum(expected.values()) - others
    compare(expected, result)
    may = {PLANTED[kind][1] for (kind, _), n in expected.items() if n}
    assert {found_as for found_as, _ in suspects(result)} <= may
    (trial,) = result.trials()
    if kind == "drop" and not lost_in_hosts(result):
        lost = trial["loss_location"]
        assert (lost["sender_host"], lost["receiver_host"], lost["consistent"]) == (0, 0, True)
        assert lost["network"] == lost["lost_frames"]


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    for seed in range(1, 26):
        (directory := tmp_path / str(seed)).mkdir()
        conf = {"seed": seed, "window": "300ms", "load": "30%", "site": site(seed=seed)}
        result = undisturbed(directory, conf)
        assert result.summary["warnings"] == []
        lost: Counter[tuple[str, str]] = Counter()
        for flow in loaded(result):
            lost["drop", name(flow)] += gone(flow)
        compare(lost, result)
        assert suspects(result) == set()


def test_a_dead_port_is_named_though_no_load_was_sent(tmp_path: Path) -> None:
    """Nothing reaches it, so the run ends after its probe, of which the last round is reported."""
    fault = {"kind": "dead", "port": "node2"}
    result = runs.run(tmp_path, QUICK | {"tests": [ALL], "site": site(faults=[fault])})
    assert result.status == 3, result.output + result.errors
    (one,) = suspects(result)
    assert one in {("dead", "node2"), ("loss", "node2")}
    lost = sum(record["sent"] for record in result.records("unreachable"))
    assert sum(each["frames"] for each in result.suspects) == lost > 0


@pytest.mark.parametrize(("kind", "least"), [("good", 70), ("saturated", 48), ("collapse", 8)])
def test_the_switch_is_named_that_carries_no_more(tmp_path: Path, kind: str, least: int) -> None:
    """The paper's Figure 1: 8 nodes are carried by all three switches, 24 by the good one."""
    conf = QUICK | {
        "window": "1500ms",
        "load": "75%" if kind == "good" else "95%",
        "tests": [CHAIN | {"ranks": [8, 24]}],
        "site": site(f"model-figure1-{kind}", 24),
    }
    result = runs.run(tmp_path, conf).complete
    phases: dict[int, list[int]] = {}
    for flow in loaded(result):
        phases.setdefault(flow["tag"], []).append(gone(flow))
    lost = {len(phase): sum(phase) for phase in phases.values()}
    assert lost[7] == 0
    line = {t["ranks"]: t["throughput"]["percent_of_line"] for t in result.trials()}
    assert line[24] > least
    if kind == "good":
        assert suspects(result) == set()
        return
    assert line[24] < least + 8
    assert lost[23] > 1000
    assert {element for _, element in suspects(result)} <= {"switch", "network"}
    assert suspects(result)


@pytest.mark.rows
def test_the_part_of_the_switch_is_named_that_carries_no_more(
    model: Record, tests: list[Record], named: list[str], mbps: float, tmp_path: Path
) -> None:
    """Four nodes of 10 Mbit/s in each of two modules, which carry less than these, or than what
    four pairs send across."""
    modelled = site("model-e7", 8, **model)
    result = runs.run(tmp_path, QUICK | {"window": "1s", "tests": tests, "site": modelled}).complete
    assert suspects(result) == {("capacity", name) for name in named}
    if named == ["left - right"]:
        assert len({record["switch"] for record in result.switch()}) == 2
        ends = [port for port in result.switch("port") if port["port"] == "left-right"]
        assert min(end["dropped"]["queue"] for end in ends) > 100  # both ways
        assert sum(t["lost_frames"] for t in result.trials()) == sum(map(gone, loaded(result)))
    for one in result.suspects:
        assert one["value"] == pytest.approx(mbps, rel=0.1)
