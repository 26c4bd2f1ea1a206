# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of records made by hand, against figures worked out by hand.

Each case of data/summary/*.yaml says how its records differ from those of a pair of nodes, or from
a thousand frames from one to the other, and what the summary says then:

    records: pair (the default) or one; `came`: how many of the thousand arrived
    flows:   instead of those flows [from, to, sent, came], more keys of both ends behind them
    change:  keys of records by type and place: `source node1`, `destination node1` (flows, by their
             source), `port node1`, `phase node1`, `phase` (all of that type); null: no such record
    each:    a pair's records once for each phase, what it says changed in them as above
    ready, clocks, delays: as data/summary/clocks.yaml says
    before, middle, add: further records, before all others, in front of the phases' ends, behind
    phases:  keys of the phases' records by number
    site, trial: what is not as in synthetic.py
    trials, plans, ports, summary: values by place, in the first entry or in that of a number
    printed: part of what the terminal shows, its spaces single
    limited: the ports that the tester limited, with its reasons
    clauses: [measure, require, over, verdict, value], more as in the summary behind them
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from recorded import Feed, fed
from schemas import validate_summary
from switchbench.base.model import Load, Part, Run, Schedule
from switchbench.records.record_forms import DamagedRecord
from switchbench.render.terminal import SummaryPrinter
from synthetic import (
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    pair_records,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)
from test_latency import record as of_times

Json = dict[str, Any]
SITE = make_site()
CASES = Path(__file__).parent / "data" / "summary"
FULL_BPS = 11_200_000  # what 900 frames in a window of a second nearly fill


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


def thousand(came: int) -> list[Json]:
    """1,000 frames from node1 to node2, so many of which came; the ports' counters agree."""
    ends = ("node1:e0", "node2:e0")
    counts = {"sent_frames": 1000, "received_frames": 0, "hardware_sent": 1000}
    back = {"sent_frames": 0, "received_frames": came, "hardware_sent": 0}
    return [
        frame_side("source", *ends, 1000, 900),
        frame_side("destination", *ends, came, came),
        port_record("node1:e0", **counts, hardware_received=0),
        port_record("node2:e0", **back, hardware_received=came),
        *(made(node) for made in (phase_record, trial_record) for node in ("node1", "node2")),
    ]


def of_flows(case: Json) -> list[Json]:
    """The flows of a case, and the phases of its nodes."""
    made = frame_side if case.get("trial", {}).get("transport", "dpdk") == "dpdk" else tcp_side
    records = []
    for src, dst, sent, came, *more in case["flows"]:
        ends = (f"{src}:e0", f"{dst}:e0")
        for side, count in (("source", sent), ("destination", came)):
            if count is not None:
                records.append(made(side, *ends, count, count) | (more[0] if more else {}))
    nodes = [f"node{n + 1}" for n in range(case.get("site", {}).get("hosts", 2))]
    records += [port_record(f"{node}:e0") for node in nodes] if case.get("ports_said") else []
    phases = sorted({record["phase"] for record in records})
    return records + [phase_record(node, phase=phase) for phase in phases for node in nodes]


def clocks_of(case: Json) -> list[Json]:
    """What each node knows of its clock, and the one-way delays of a pair's first flow."""
    place = {"trial": 0, "repeat": 0, "phase": 0}
    records: list[Json] = []
    for number, (node, (shift, bound, *unknown)) in enumerate(case["clocks"].items()):
        said = case["ready"].items()
        own = {key: one[number] if isinstance(one, list) else one for key, one in said}
        records.append({"type": "ready", "node": node} | own)
        known = {"offset_ns": 5_000_000_000 + shift, "shift_ns": shift, "bound_ns": bound}
        lacking = [*unknown, *(known if bound is None else ())]
        records.append({"type": "clock", "node": node} | place | known | dict.fromkeys(lacking))
    bound, zeros, *span = case["delays"]
    times = {"kind": "one_way", "bound_ns": bound, "src": "node1:e0", "dst": "node2:e0"}
    own = {"type": "histogram", "node": "node2", "network": "lab", "unit": "ns"}
    return [*records, of_times([0] * zeros + list(range(*span))) | own | place | times]


def is_of(record: Json, words: list[str]) -> bool:
    kind, *place = words
    said = record["side"] if record["type"] == "flow" else record["type"]
    names = (record.get("src"), record.get("port"), record.get("node"))
    here = names[:1] if record["type"] == "flow" else names
    return bool(
        said == kind and (not place or any(n and n.split(":")[0] == place[0] for n in here))
    )


def change(records: list[Json], changes: Json) -> None:
    for what, keys in changes.items():
        mine = [record for record in records if is_of(record, what.split())]
        assert mine, what
        for record in mine:
            if keys is None:
                records.remove(record)
            else:
                record |= keys


def records_of(case: Json) -> list[Json]:
    if "flows" in case:
        records = of_flows(case)
    elif case.get("records") == "one":
        records = thousand(case["came"])
        records[4:4] = case.get("middle", ())
    else:
        records = pair_records()
        every = records[2:-2]
        for number, changes in enumerate(case.get("each", ())):
            phase = [record | {"phase": number} for record in every]
            change(phase, changes)
            records[2:-2] = [*(records[2:-2] if number else ()), *phase]
    for number, changes in case.get("phases", {}).items():
        for record in records:
            if record["type"] == "phase" and record["phase"] == number:
                record |= changes
    change(records, case.get("change", {}))
    if "delays" in case:
        records[-4:-4] = clocks_of(case)
    return [*case.get("before", ()), *records, *case.get("add", ())]


def summary_of(case: Json) -> Json:
    one = case.get("records") == "one"
    site = make_site(**({"line_bps": FULL_BPS} if one else {}) | case.get("site", {}))
    changes = ({"flows": 1} if one else {}) | case.get("trial", {})
    for name, made in (("load", Load), ("schedule", Schedule)):
        if name in changes:
            changes[name] = made(**changes[name])
    if "sizes" in changes:
        changes["sizes"] = tuple(changes["sizes"])
    asked = [
        {"id": "4.2", "measure": measure, "require": require, "over": over}
        for measure, require, over, *_ in case.get("clauses", ())
    ]
    run = make_run(site, make_trial(site, **changes), expectations=asked)
    result = fed(run, records_of(case)).finish(about(), case.get("faults", ()))
    validate_summary(result)
    return dict(result)


def summarise(records: list[Json], run: Run) -> Json:
    """Return the summary, validated against the schema."""
    result = fed(run, records).finish(about(), [])
    validate_summary(result)
    return dict(result)


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key) if isinstance(value, list) else key]
    return value


def check(found: Any, wanted: Json) -> None:
    """What is found at each path; a text that ends in `...` is how it begins."""
    for path, value in wanted.items():
        seen = at(found, str(path))
        if isinstance(value, float):
            value = pytest.approx(value, abs=1e-6, rel=1e-6)
        if isinstance(value, str) and value.endswith("..."):
            seen, value = seen[: len(value) - 3], value[:-3]
        assert seen == value, path


@pytest.mark.parametrize("case", cases())
def test_case(case: Json) -> None:
    result = summary_of(case)
    for part in ("trials", "plans", "ports"):
        if part in case:
            check(result[part][0], case[part])
    check(result, case.get("summary", {}))
    if "printed" in case:
        console = Console(file=io.StringIO(), width=400, color_system=None)
        SummaryPrinter(result, console, every_time=True).print("results")
        assert case["printed"] in " ".join(console.file.getvalue().split()) + " "
    if "limited" in case:
        limits = result["trials"][0]["tester_limited"]
        asked = [[one] if isinstance(one, str) else one for one in case["limited"]]
        assert [
            [limit["port"], limit["reason"]][: len(one)]
            for limit, one in zip(limits, asked, strict=True)
        ] == asked
    for clause, asked in zip(result["expectations"], case.get("clauses", ()), strict=True):
        verdict, value, *more = asked[3:]
        check(clause, {"verdict": verdict, "value": value} | (more[0] if more else {}))


# --- what takes more than a pair ------------------------------------------------------------------


def test_repeats_end_one_by_one() -> None:
    """A record that comes after all nodes have ended its trial is damaged, of that repeat only."""
    trials = [make_trial(SITE), make_trial(SITE, repeat=1)]
    feed = Feed(make_run(SITE, *trials))
    for repeat in (0, 1):
        for record in pair_records():
            if record["type"] != "hello" or repeat == 0:
                feed.take(record | {"repeat": repeat})
    with pytest.raises(DamagedRecord, match="after all nodes have ended trial 0"):
        feed.take(pair_records()[2] | {"repeat": 1})
    result = feed.summary.finish(about(), [])
    assert [(entry["repeat"], entry["lost_frames"]) for entry in result["trials"]] == [
        (0, 10),
        (1, 10),
    ]


def test_networks_together_are_apart() -> None:
    site = make_site(4)
    ports = [replace(port, network=name) for port, name in zip(site.ports, "aabb", strict=True)]
    parts = (Part("a", tuple(ports[:2])), Part("b", tuple(ports[2:])))
    trial = make_trial(site, parts=parts, flows=2)
    records = [
        frame_side(side, f"node{src}:e0", f"node{src + 1}:e0", frames, 90, network=network)
        for src, network, came in ((1, "a", 100), (3, "b", 99))
        for side, frames in (("source", 100), ("destination", came))
    ]
    for made in (phase_record, trial_record):
        records += [made(f"node{number}") for number in range(1, 5)]
    result = summarise(records, make_run(site, trial))
    first, second = result["trials"]
    assert (first["network"], second["network"]) == ("a", "b")
    assert (first["lost_frames"], second["lost_frames"]) == (0, 1)
    assert first["concurrent_networks"] == ["a", "b"]
    assert [plan["network"] for plan in result["plans"]] == ["a", "b"]
    assert result["status"] == "complete"


@pytest.mark.parametrize("traffic", ["stream", "schedule"])
def test_a_bad_port_is_beside_the_median_port_of_every_phase(traffic: str) -> None:
    """But not where ranks go by steps, whose ports have different things to do."""
    site = make_site(6)
    schedule = Schedule(1, 0, 1, False) if traffic == "schedule" else None
    trial = make_trial(site, phases=3, flows=18, traffic=traffic, schedule=schedule)
    records = []
    for phase in range(3):
        for source in range(6):
            dst = (source + phase + 1) % 6
            flow = (f"node{source + 1}:e0", f"node{dst + 1}:e0")
            got = 950 if dst == 3 else 1000  # a bad cable at node4
            records.append(frame_side("source", *flow, 1000, 1000, phase=phase))
            records.append(frame_side("destination", *flow, got, got, phase=phase))
    result = summarise(records, make_run(site, trial))
    if traffic == "schedule":
        ends = [port["as_destination"] for port in result["ports"]]
        assert {end["relative_to_median"] for end in ends} == {None}
        return
    bad = result["ports"][3]
    assert bad["as_destination"]["relative_to_median"] == pytest.approx(0.95)
    assert (bad["as_destination"]["lost_frames"], len(bad["slowest_phases"])) == (150, 3)
    assert [port["port"] for port in result["ports"] if port["suspect"]] == ["node4:e0"]


@pytest.mark.parametrize("lab", [None, "one-switch"])
@pytest.mark.parametrize("late", ["", "node1:e0", "a rank"])
def test_what_the_tester_limited_blames_no_port(late: str, lab: str | None) -> None:
    """Nor the port at the other end of its flows; the others are judged, but in a lab, where all
    share one machine."""
    site = make_site(6, lab=lab)
    records: list[dict[str, Any]] = []
    for source in range(6):
        flow = (f"node{source + 1}:e0", f"node{(source + 1) % 6 + 1}:e0")
        records.append(frame_side("source", *flow, 1000, 1000))
        records.append(frame_side("destination", *flow, 900, 900))
    begun = {"start_run_ns": 1_000_000_000}
    if late == "node1:e0":
        records.append(port_record(late, start_run_ns=1_020_000_000))
    records += [phase_record(f"node{n + 1}", **begun) for n in range(6)]
    if late == "a rank":
        records[-1]["start_skew_us"] = 20_000.0
    result = summarise(records, make_run(site, make_trial(site, flows=6)))
    limits = [limit["port"] for limit in result["trials"][0]["tester_limited"]]
    assert limits == ([late] if late else [])
    known = [port["as_source"]["min_percent_of_line"] is not None for port in result["ports"]]
    alone = [False, False, True, True, True, False]
    of_late = {"": [True] * 6, "node1:e0": [False] * 6 if lab else alone, "a rank": [False] * 6}
    assert known == of_late[late]
    assert [port["as_source"]["phases"] for port in result["ports"]] == [1] * 6


def test_a_flood_of_events_is_counted_not_kept() -> None:
    """Warnings of 400,000 events took 60 MB."""
    event = {"type": "event", "node": "node1", "kind": "link-down", "port": "node1:e0"}
    alike = [event | {"text": "lost"}] * 3
    others = [event | {"text": f"lost {number}"} for number in range(3000)]
    told = summarise([*pair_records(), *alike, *others], make_run(SITE, make_trial(SITE)))[
        "warnings"
    ]
    assert told[0] == "node1:e0: link-down: lost (3 times)"
    assert told[1] == "node1:e0: link-down: lost 0"
    assert told[-1] == "node1: further events (2,745 times)"
    assert len(told) == 257
