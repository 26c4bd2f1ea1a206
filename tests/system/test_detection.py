# SPDX-License-Identifier: BSD-3-Clause
"""What a modelled switch does wrong is what records count, frame by frame, and location names.

With `pytest -s` the detection table stands at the end: the fault, what the switch wrote that it
did, and what the benchmark found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
from switchbench.labs import switches

Record = dict[str, Any]
Counts = dict[tuple[str, str], int]  # by kind and by flow or port


pytestmark = [labkit.needs_lab, labkit.needs_switch]

CHAIN = {"pattern": "chain"}  # every port has another set of flows
ALL = {"pattern": "aapc"}  # senders are told apart from receivers
QUICK = {"profile": "quick", "transport": "dpdk", "warmup": "200ms", "tests": [CHAIN]}
# 37,000 frames/s a flow; probes of latency among them, so that the switch strikes some, too.
PROBED = {"latency": {"probes": "1000/s"}}
SMALL = QUICK | PROBED | {"frame_size": 64, "load": "25%", "flood_limit": 0}
RATES = [
    pytest.param(2_000, "1s", id="2000"),
    pytest.param(100_000, "20s", id="100000", marks=pytest.mark.slow),  # over 2 million frames
]
SEEDS = [
    pytest.param(range(1, 2), id="1"),
    *(  # 100 in all; on a busy machine each takes its time
        pytest.param(range(first, first + 25), id=f"{first}-{first + 24}", marks=pytest.mark.slow)
        for first in range(1, 101, 25)
    ),
]

PROBES = "lost probes"  # beside the kinds of faults
# What the tag of probes and of their answers differs by from the load's (dpdk/probe.h).
PROBE_TAGS = (0x5A3C, 0xA5C3)

# What a fault does to a flow: its kind here, and what the switch wrote of it.
PLANTED: dict[str, tuple[str, Callable[[Record], int]]] = {
    "drop": ("loss", lambda flow: flow["dropped"]["fault"]),
    "duplicate": ("duplicate", lambda flow: flow.get("duplicated", 0)),
    "reorder": ("reorder", lambda flow: flow.get("reordered", 0)),
    "corrupt": ("corrupt", lambda flow: flow.get("corrupted", 0)),
    "wrong-port": ("wrong-port", lambda flow: flow.get("misdelivered", 0)),
    "flood": ("flood", lambda flow: flow.get("flooded", 0)),
}
# ... and what records of its destination count; and the kind of suspect that it is.
COUNTED = {"duplicate": "duplicated", "reorder": "reordered", "corrupt": "corrupted"}
SUSPECTED = {
    "loss": "loss",
    "duplicate": "duplication",
    "reorder": "reordering",
    "corrupt": "corruption",
    "wrong-port": "wrong-port",
    "flood": "flooding",
}
MORE: dict[str, Record] = {"reorder": {"displacement": 3}}


@dataclass(frozen=True)
class Row:
    """One line of the detection table."""

    fault: str
    how: str
    frames: int  # of the load, that reached the switch
    truth: Counts
    found: Counts

    def markdown(self) -> str:
        """As doc/reference/model.md has it: a kind's counts by flow, in the same order on both
        sides."""
        keys = sorted(key for key in self.truth | self.found if key[0] != PROBES)
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in keys)) or "nothing"
        places = "; ".join(place for _, place in keys) or "-"
        sides = [
            " + ".join(f"{counts.get(key, 0):,}" for key in keys) or "0"
            for counts in (self.truth, self.found)
        ]
        probes = [
            f"{sum(n for (kind, _), n in counts.items() if kind == PROBES):,}"
            for counts in (self.truth, self.found)
        ]
        cells = (self.fault, self.how, f"{self.frames:,}", kinds, places, *sides, *probes)
        return f"| {' | '.join(cells)} |"


TABLE: list[Row] = []


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """Prints the detection table after the last test, runs with no fault as one."""
    yield
    heads = "fault, planted, frames, found as, whose, switch, found, probes: switch, found"
    print(f"\n\n| {heads.replace(', ', ' | ')} |\n|{' --- |' * 9}")
    clean = [row for row in TABLE if row.fault == "none" and not row.truth and not row.found]
    for row in TABLE:
        if row not in clean:
            print(row.markdown())
    if clean:
        frames = sum(row.frames for row in clean)
        print(Row("none", f"{len(clean)} seeds", frames, {}, {}).markdown())


def site(name: str = "model-good", nodes: int = 4, **model: Any) -> Record:
    """A modelled lab that counts by flow and phase, under a name of this run of the tests."""
    return {"lab": labkit.own(name), "nodes": nodes, "model": {"flows": "tags", **model}}


def truth(result: runs.Result) -> list[Record]:
    """The switch's records of a run."""
    lines = (result.directory / switches.TRUTH).read_text().splitlines()
    return [json.loads(line) for line in lines]


def tags(result: runs.Result) -> set[int]:
    """The tags of the measured phases' load."""
    return {port["tag"] for port in result.records("port") if port["phase"] >= 0}


def loaded(result: runs.Result, kind: str = "flow") -> list[Record]:
    """What the switch wrote of the load's flows: no probes, nothing else."""
    ours = tags(result)
    return [r for r in truth(result) if r["type"] == kind and r["tag"] in ours]


def name(flow: Record, *ends: str) -> str:
    """A flow of the switch by its stations: where it went is the fault's doing."""
    return " -> ".join(
        f"node{int(flow[end][-2:], 16)}" for end in ends or ("source", "destination")
    )


def gone(flow: Record) -> int:
    """Frames that the switch dropped, for whatever reason."""
    return sum(flow["dropped"].values())


def lost_in_hosts(result: runs.Result) -> bool:
    """Whether a device that was full, for want of a core, kept a frame from the switch or from its
    station."""
    records = truth(result)
    before = any(record["lost_before"] for record in records if record["type"] == "port")
    flows = (r for r in records if r["type"] == "flow" and r["tag"] is not None)
    return before or any(flow["dropped"]["host"] for flow in flows)


def lost_probes(result: runs.Result) -> tuple[Counts, Counts]:
    """Probes that never came back: as the switch wrote, of both ways, and as their source says."""
    struck: Counter[tuple[str, str]] = Counter()
    ours = tags(result)
    for flow in truth(result):
        if flow["type"] != "flow" or flow["tag"] is None:
            continue
        missing = gone(flow) + flow.get("misdelivered", 0) + flow.get("corrupted", 0)
        if flow["tag"] ^ PROBE_TAGS[0] in ours:
            struck[PROBES, name(flow)] += missing
        elif flow["tag"] ^ PROBE_TAGS[1] in ours:
            struck[PROBES, name(flow, "destination", "source")] += missing
    said: Counter[tuple[str, str]] = Counter()
    for record in result.records("histogram"):
        if record["kind"] == "round_trip":
            ends = f"{record['src']} -> {record['dst']}".replace(":e0", "")
            said[PROBES, ends] += record["lost"] or 0
    return +struck, +said


def found(result: runs.Result) -> Counts:
    """What the records of flows count, by kind and flow (with the wrong port)."""
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
        counts["loss", flow] += gone_frames
    return {key: n for key, n in counts.items() if n}


def flow_of(record: Record) -> str:
    """A record's flow in the switch's words."""
    return f"{record['src']} -> {record['dst']}".replace(":e0", "")


def suspects(result: runs.Result) -> set[tuple[str, str]]:
    """Kind and element of what the summary suspects."""
    return {
        (one["kind"], (one["ports"] or [one["element"]["name"]])[0].replace(":e0", ""))
        for one in result.summary["location"]["suspects"]
    }


def compare(fault: str, how: str, expected: Counts, result: runs.Result) -> None:
    """The same kinds, flows and counts: nothing left out and nothing beside them.

    A host without its core may also lose a probe, or not answer one: then its source misses more of
    them than the switch took.
    """
    struck, missed = lost_probes(result)
    if lost_in_hosts(result):
        assert all(missed.get(key, 0) >= n for key, n in struck.items())
        struck = missed
    expected = {key: n for key, n in expected.items() if n} | struck
    got = found(result) | missed
    frames = sum(flow["received"] for flow in loaded(result))
    TABLE.append(Row(fault, how, frames, expected, got))
    assert got == expected, result.output + result.errors


def undisturbed(directory: Path, configuration: Record) -> runs.Result:
    """A run in which the switch dropped nothing but what it was told to, or the last of three.

    A machine that takes the cores away for long loses frames between switch and node: those are
    named too, but beside them a frame at the wrong port can't be told from a flooded one; and what
    the switch still holds when the drain is over is lost to us and delivered to it.
    """
    for attempt in range(3):
        place = directory / str(attempt)
        place.mkdir()
        result = runs.run(place, SMALL | configuration)
        assert result.counted, result.output + result.errors
        if all(gone(flow) == flow["dropped"]["fault"] for flow in loaded(result)):
            break
    return result


@pytest.mark.parametrize(("one_in", "window"), RATES)
@pytest.mark.parametrize("kind", PLANTED)
def test_a_fault_is_named(tmp_path: Path, kind: str, one_in: int, window: str) -> None:
    fault = {"kind": kind, "one_in": one_in, "measured": True, **MORE.get(kind, {})}
    named, count = PLANTED[kind]
    result = undisturbed(tmp_path, {"window": window, "site": site(seed=5, faults=[fault])})
    expected: Counter[tuple[str, str]] = Counter()
    for flow in loaded(result):
        if kind != "wrong-port":
            expected[named, name(flow)] += count(flow)
        others = gone(flow) - (flow["dropped"]["fault"] if kind == "drop" else 0)
        expected["loss", name(flow)] += others  # of a machine that was too busy
    for flow in loaded(result, "wrong"):
        expected[named, f"{name(flow)} at {flow['out']}"] += flow["misdelivered"]
    planted = sum(count(flow) for flow in loaded(result))
    others = sum(n for (found_as, _), n in expected.items() if found_as != named)
    assert 0 < planted <= sum(expected.values()) - others
    compare(kind, f"1 in {one_in:,}", expected, result)
    assert {found_as for found_as, _ in suspects(result)} <= {SUSPECTED[named]}


@pytest.mark.parametrize("seeds", SEEDS)
def test_without_a_fault_nothing_is_found(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        directory = tmp_path / str(seed)
        directory.mkdir()
        conf = {"seed": seed, "window": "300ms", "load": "30%", "site": site(seed=seed)}
        result = undisturbed(directory, conf)
        assert result.summary["warnings"] == []
        lost: Counter[tuple[str, str]] = Counter()
        for flow in loaded(result):
            lost["loss", name(flow)] += gone(flow)
        compare("none", f"seed {seed}", lost, result)
        assert suspects(result) == set()


def test_a_dead_port_is_named_though_no_load_was_sent(tmp_path: Path) -> None:
    """Nothing reaches it, so the run ends after its probe, of which the last round is reported."""
    fault = {"kind": "dead", "port": "node2"}
    result = runs.run(tmp_path, QUICK | {"tests": [ALL], "site": site(faults=[fault])})
    assert result.status == 3, result.output + result.errors
    (one,) = suspects(result)
    assert one in {("dead", "node2"), ("loss", "node2")}
    lost = sum(record["sent"] for record in result.records("unreachable"))
    assert sum(each["frames"] for each in result.summary["location"]["suspects"]) == lost > 0


def test_a_slow_port_is_named(tmp_path: Path) -> None:
    fault = {"kind": "slow", "port": "node2", "rate": "30M"}
    conf = QUICK | {"tests": [ALL], "window": "1500ms", "load": "80%", "site": site(faults=[fault])}
    conf |= {"latency": {"probes": 0}}  # whose answers a host that can't send refuses
    result = runs.run(tmp_path, conf)
    assert result.status == 0, result.output + result.errors
    (port,) = (r for r in truth(result) if r["type"] == "port" and r["port"] == "node2")
    lost = sum(gone(flow) for flow in loaded(result))
    assert 100 < lost <= port["dropped"]["queue"]  # of the plan's probe, too
    assert suspects(result) == {("capacity", "node2")}
    (one,) = result.summary["location"]["suspects"]
    assert one["value"] == pytest.approx(30, rel=0.1)


@pytest.mark.parametrize(
    "kind", ["good", "saturated", pytest.param("collapse", marks=pytest.mark.slow)]
)
def test_the_switch_is_named_that_carries_no_more(tmp_path: Path, kind: str) -> None:
    """The paper's Figure 1: 8 nodes are carried by all three switches, 24 by the good one."""
    conf = QUICK | {
        "window": "1500ms",
        "load": "75%" if kind == "good" else "95%",
        "tests": [CHAIN | {"ranks": [8, 24]}],
        "site": site(f"model-figure1-{kind}", 24),
    }
    result = runs.run(tmp_path, conf)
    assert result.status == 0, result.output + result.errors
    phases: dict[int, list[int]] = {}
    for flow in loaded(result):
        phases.setdefault(flow["tag"], []).append(gone(flow))
    lost = {len(phase): sum(phase) for phase in phases.values()}
    assert lost[7] == 0
    if kind == "good":
        assert suspects(result) == set()
        return
    assert lost[23] > 1000
    assert {element for _, element in suspects(result)} <= {"switch", "network"}
    assert suspects(result)


def inside(*groups: str) -> Record:
    """Pairs within modules."""
    return {"pattern": "pairs", "partners": "inside", "groups": list(groups)}


ACROSS = {"pattern": "pairs", "partners": "across", "groups": ["left", "right"]}
LIMITS: dict[str, tuple[Record, list[Record]]] = {
    # Four nodes of 10M in each of two modules. A module's 30M are less than its nodes' load ...
    "module-capacity": (
        {"capacity": "30M", "trunk_capacity": "1G"},
        [
            inside("left") | {"load": "40%"},
            inside("left") | {"load": "95%"},
            inside("right") | {"load": "40%"},
            inside("right") | {"load": "95%"},
            inside("left", "right") | {"load": "40%"},
            inside("left", "right") | {"load": "95%"},
        ],
    ),
    # ... and 15M each way between them less than those of four pairs.
    "trunk": (
        {"capacity": "1G", "trunk_capacity": "15M"},
        [
            inside("left") | {"load": "90%"},
            inside("right") | {"load": "90%"},
            ACROSS | {"load": "30%"},
            ACROSS | {"load": "90%"},
        ],
    ),
}


@pytest.mark.parametrize("kind", ["module-capacity", pytest.param("trunk", marks=pytest.mark.slow)])
def test_the_part_of_the_switch_is_named_that_carries_no_more(tmp_path: Path, kind: str) -> None:
    model, tests = LIMITS[kind]
    modelled = site("model-e7-constant", 8, **model)
    result = runs.run(tmp_path, QUICK | {"window": "1s", "tests": tests, "site": modelled})
    assert result.status == 0, result.output + result.errors
    if kind == "trunk":
        assert suspects(result) == {("capacity", "left - right")}
        expected_bps = 15.0
    else:
        assert suspects(result) == {("capacity", "left"), ("capacity", "right")}
        expected_bps = 30.0
    for one in result.summary["location"]["suspects"]:
        assert one["value"] == pytest.approx(expected_bps, rel=0.1)
