# SPDX-License-Identifier: BSD-3-Clause
"""What a modelled switch does wrong is what the summary's `findings` name, frame by frame.

With `pytest -s` the detection table stands at the end: the fault, what the switch wrote that it
did, and what the benchmark found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
from switchbench.lab import switches

Record = dict[str, Any]
Counts = dict[tuple[str, str], int]  # by kind and by flow or port


pytestmark = [labkit.needs_lab, labkit.needs_switch]

PROBES = 16  # a probe sends fewer frames of a flow, a load more
CHAIN = {"pattern": "chain"}  # every port has another set of flows
QUICK = {"profile": "quick", "transport": "dpdk", "warmup": "200ms", "tests": [CHAIN]}
SMALL = QUICK | {"frame_size": 64, "load": "25%", "flood_limit": 0}  # 37,000 frames/s a flow
RATES = [
    pytest.param(2_000, "1s", id="2000"),
    pytest.param(100_000, "10s", id="100000", marks=pytest.mark.slow),
]
SEEDS = [pytest.param(3, id="3"), pytest.param(100, id="100", marks=pytest.mark.slow)]

# What a fault does to a flow: the finding's kind, and what the switch wrote of it.
PLANTED: dict[str, tuple[str, Callable[[Record], int]]] = {
    "drop": ("loss", lambda flow: flow["dropped"]["fault"]),
    "duplicate": ("duplicate", lambda flow: flow.get("duplicated", 0)),
    "reorder": ("reorder", lambda flow: flow.get("reordered", 0)),
    "corrupt": ("corrupt", lambda flow: flow.get("corrupted", 0)),
    "wrong-port": ("wrong-port", lambda flow: flow.get("misdelivered", 0)),
    "flood": ("flood", lambda flow: flow.get("flooded", 0)),
}
MORE: dict[str, Record] = {"reorder": {"displacement": 3}, "corrupt": {"first_byte": 22}}

TABLE: list[tuple[str, str, Counts, Counts]] = []  # fault, how it was planted, truth, found


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """Prints the detection table after the last test."""
    yield
    print(f"\n\n{'fault':12}{'planted':28}{'kind, where':34}{'switch':>9}{'found':>9}")
    for fault, how, truth, found in TABLE:
        for key in sorted(truth.keys() | found.keys()) or [("nothing", "")]:
            words = ", ".join(word for word in key if word)
            counts = f"{truth.get(key, 0):>9,}{found.get(key, 0):>9,}"
            print(f"{fault:12}{how:28}{words:34}{counts}")


def site(name: str = "model-good", nodes: int = 4, **model: Any) -> Record:
    """A modelled lab that counts by flow and phase."""
    return {"lab": name, "nodes": nodes, "model": {"flows": "tags", **model}}


def truth(result: runs.Result) -> list[Record]:
    """The switch's records of a run."""
    lines = (result.directory / switches.TRUTH).read_text().splitlines()
    return [json.loads(line) for line in lines]


def flows(records: list[Record]) -> list[Record]:
    """Of measured frames, probes too."""
    return [r for r in records if r["type"] == "flow" and r["tag"] is not None]


def loaded(records: list[Record]) -> list[Record]:
    """The flows of measured phases, without probes."""
    return [flow for flow in flows(records) if flow["received"] > PROBES]


def ends(flow: Record) -> str:
    """A flow of the switch by its stations: where it went is the fault's doing."""
    return " -> ".join(f"node{int(flow[end][-2:], 16)}" for end in ("source", "destination"))


def found(result: runs.Result) -> Counts:
    """The summary's findings, by kind and flow or port."""
    counts: Counter[tuple[str, str]] = Counter()
    for finding in result.summary["findings"]:
        place = finding["port"] or " -> ".join(
            finding[end] or "?" for end in ("src", "dst") if finding["src"]
        )
        counts[finding["kind"], place.replace(":e0", "")] += finding["count"]
    return dict(counts)


def compare(fault: str, how: str, expected: Counts, result: runs.Result) -> None:
    """The same kinds, flows and counts: nothing left out and nothing beside them."""
    got = found(result)
    TABLE.append((fault, how, expected, got))
    assert got == expected, result.output + result.errors


def undisturbed(directory: Path, configuration: Record) -> runs.Result:
    """A run in which the switch dropped nothing but what it was told to, or the last of three.

    A machine that takes the cores away for long loses frames between switch and node: those are
    named too, but beside them a frame at the wrong port can't be told from a flooded one.
    """
    for attempt in range(3):
        place = directory / str(attempt)
        place.mkdir()
        result = runs.run(place, SMALL | configuration)
        assert result.status == 0, result.output + result.errors
        dropped = [{**flow["dropped"], "fault": 0} for flow in loaded(truth(result))]
        if not any(sum(counts.values()) for counts in dropped):
            break
    return result


@pytest.mark.parametrize(("one_in", "window"), RATES)
@pytest.mark.parametrize("kind", PLANTED)
def test_a_fault_is_named(tmp_path: Path, kind: str, one_in: int, window: str) -> None:
    fault = {"kind": kind, "one_in": one_in, "measured": True, **MORE.get(kind, {})}
    name, count = PLANTED[kind]
    result = undisturbed(tmp_path, {"window": window, "site": site(seed=5, faults=[fault])})
    expected: Counter[tuple[str, str]] = Counter()
    for flow in loaded(truth(result)):
        expected[name, ends(flow)] += count(flow)
        others = {**flow["dropped"], "fault": 0} if kind == "drop" else flow["dropped"]
        expected["loss", ends(flow)] += sum(others.values())  # of a machine that was too busy
    assert any(n for (found_as, _), n in expected.items() if found_as == name)
    compare(kind, f"1 in {one_in:,}", {key: n for key, n in expected.items() if n}, result)


@pytest.mark.parametrize("seeds", SEEDS)
def test_without_a_fault_nothing_is_found(tmp_path: Path, seeds: int) -> None:
    for seed in range(1, seeds + 1):
        directory = tmp_path / str(seed)
        directory.mkdir()
        conf = SMALL | {"seed": seed, "window": "300ms", "load": "30%", "site": site(seed=seed)}
        result = runs.run(directory, conf)
        assert result.status == 0, result.output + result.errors
        assert result.summary["alarms"] == []
        lost: Counter[tuple[str, str]] = Counter()
        for flow in loaded(truth(result)):
            lost["loss", ends(flow)] += sum(flow["dropped"].values())
        compare("none", f"seed {seed}", {key: n for key, n in lost.items() if n}, result)


def test_a_dead_port_is_named_though_no_load_was_sent(tmp_path: Path) -> None:
    """Nothing reaches it, so the run ends after its probe."""
    fault = {"kind": "dead", "port": "node2"}
    result = runs.run(tmp_path, QUICK | {"site": site(faults=[fault])})
    assert result.status == 3, result.output + result.errors
    sent = sum(flow["received"] for flow in flows(truth(result)) if "node2" in ends(flow))
    assert sent > 0
    compare("dead", "node2", {("dead-port", "node2"): sent}, result)


def test_a_slow_port_is_named(tmp_path: Path) -> None:
    fault = {"kind": "slow", "port": "node2", "rate": "30M"}
    conf = QUICK | {"window": "1500ms", "load": "80%", "site": site(faults=[fault])}
    result = runs.run(tmp_path, conf)
    assert result.status == 0, result.output + result.errors
    (port,) = (r for r in truth(result) if r["type"] == "port" and r["port"] == "node2")
    assert port["dropped"]["queue"] > 100
    compare(
        "slow", "node2, 30M of 100M", {("slow-port", "node2"): port["dropped"]["queue"]}, result
    )


@pytest.mark.parametrize("kind", ["good", "saturated", "collapse"])
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
    for flow in loaded(truth(result)):
        phases.setdefault(flow["tag"], []).append(sum(flow["dropped"].values()))
    lost = {len(phase): sum(phase) for phase in phases.values()}
    assert lost[7] == 0
    named = {"saturated": "saturation"}.get(kind, kind)
    expected = {} if kind == "good" else {(named, ""): lost[23]}
    assert kind == "good" or lost[23] > 1000
    compare(named if kind != "good" else "none", "24 nodes, Figure 1", expected, result)
