# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of records made by hand, against figures worked out by hand; transports side by side;
times of histograms.

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
    clauses: [measure, require, over, verdict, value], more as in the summary behind them"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from recorded import Feed, fed, printed, validate_summary
from switchbench.analysis import measures
from switchbench.base.model import ONE_WAY, ROUND_TRIP, Load, Part, Run, Schedule, Trial
from switchbench.records.collector import times_row
from switchbench.records.rows import (
    Histogram,
    Packets,
    bucket_bounds,
    figure,
    figures,
    merged,
    phase_latency,
)
from switchbench.records.schema import DamagedRecord
from synthetic import (
    about,
    bucket_of,
    buckets_of,
    flows_of,
    frame_side,
    hello,
    make_run,
    make_site,
    make_trial,
    pair_records,
    phase_record,
    port_record,
    tcp_side,
    times_record,
    trial_record,
)

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
    """Return records of 1,000 frames from node1 to node2, of which so many arrive."""
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
    """Return the flows of a case, and the phases of its nodes."""
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
    """Return the clock of each node, and the one-way delays of a pair's first flow."""
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
    times = [0] * zeros + list(range(*span))
    return [*records, times_record(times, node="node2", kind="one_way", bound_ns=bound)]


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
    """Compare values by their paths; a text that ends in `...` is the beginning of a value."""
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
        assert case["printed"] in " ".join(printed(result, 400, every_phase=True).split()) + " "
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


@pytest.mark.parametrize(
    "record",
    [frame_side("source", "node1:e0", "node2:e0", 10, 10), times_record([1000])],
    ids=["end", "times"],
)
def test_a_second_record_of_a_flow_in_one_phase_is_refused(record: dict[str, Any]) -> None:
    feed = Feed(make_run(SITE, make_trial(SITE)))
    feed.take(record)
    with pytest.raises(DamagedRecord, match="the node reported the"):
        feed.take(record)


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


# --- transports side by side ----------------------------------------------------------------------


COMPARED = yaml.safe_load((Path(__file__).parent / "data" / "comparisons.yaml").read_text())
ENDS = ("node1:e0", "node2:e0")
MEGABYTE = 10**6
CPU = {"cpu_span_s": 2.0, "cpus": 2, "cpu_s": 0.25}  # each machine: span x cpus - idle


def trial_of(number: int, transport: str, **changes: Any) -> Trial:
    """Return a trial of one flow: of frames, or of messages of 64 KiB as fast as it goes."""
    if "load" in changes:
        changes["load"] = Load(percent=changes["load"])
    messages = {"sizes": (65536,), "size_unit": "message", "load": Load(percent=100.0)}
    given = {"flows": 1} | (messages if transport != "dpdk" else {}) | changes
    if "sizes" in given:
        given["sizes"] = tuple(given["sizes"])
    return make_trial(SITE, number, transport=transport, **given)


def measured(trial: Trial, mbps: float | None) -> list[dict[str, Any]]:
    """Return the records of one flow at a rate for one second; None: none of the receiver."""
    place = {"trial": trial.id, "repeat": trial.repeat}
    frames = trial.transport == "dpdk"
    sent = round((80.0 if mbps is None else mbps) * MEGABYTE / 8 / (1500 if frames else 1))
    made = frame_side if frames else tcp_side
    ends = ("source", "destination") if mbps is not None else ("source",)
    cpu = CPU | {"cpu_idle_s": 3.0}
    return [
        *(made(side, *ENDS, sent, sent, **place) for side in ends),
        port_record(ENDS[0], **place),
        *(phase_record(node, **place, **cpu) for node in ("node1", "node2")),
        *(trial_record(node, **place) for node in ("node1", "node2")),
    ]


def compared_summary(*trials: Any, worker: str = "sleep") -> dict[str, Any]:
    """Return the summary of trials (transport, rate, changes), right by its schema."""
    records = [hello("node1", worker=worker), hello("node2", worker=worker)]
    made = []
    for number, (transport, mbps, *changes) in enumerate(trials):
        made.append(trial_of(number, transport, **(changes[0] if changes else {})))
        records += measured(made[-1], mbps)
    result = fed(make_run(SITE, *made), records).finish(about(), [])
    validate_summary(result)
    return dict(result)


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case["name"])
def test_side_by_side(case: dict[str, Any]) -> None:
    summary = compared_summary(*case["trials"], worker=case.get("worker", "sleep"))
    for found, wanted in zip(summary["comparisons"], case["expect"], strict=True):
        by_name = {one["transport"]: one for one in reversed(found["transports"])}
        check({**found, **by_name}, wanted)
    text = printed(summary, 200)
    assert ("side by side" in text) == bool(case["expect"])
    assert all(words in text for words in case.get("printed", ()))


def test_other_ports_are_another_thing() -> None:
    site = make_site(2)
    other = replace(make_trial(site).parts[0], ranks=site.ports[::-1])
    assert (
        compared_summary(["tcp", 80.0], ["verbs", 80.0, {"parts": (other,)}])["comparisons"] == []
    )


# --- the records of verbs ------------------------------------------------------------------------


@pytest.mark.rows
def test_what_a_packet_takes_on_the_line(
    options: dict[str, Any], opened: dict[str, Any], packet: int, message: int
) -> None:
    """By service, operation, link layer and address family."""
    shape = measures.packet_shape(options, opened, None)
    assert shape == (1024, packet, message)
    assert measures.packet_shape(options, opened, 4096.0).path_mtu_bytes == 4096


def bits_of(payload: int, messages: int, **known: int) -> float:
    """Return Layer-1 bits of messages in packets of 1,024 bytes."""
    counts = {"window_payload_bytes": payload, "window_messages": messages} | known
    flows = flows_of(
        {"type": "flow", "side": "destination", "src": "a", "dst": "b"} | counts,
    )
    packets = Packets(*np.array([[1024.0], [82.0], [20.0]]))
    (bits,) = measures.line_bits(replace(flows, packets=packets), "received")
    return float(bits)


@pytest.mark.parametrize(("size", "packets"), [(1, 1), (1024, 1), (1025, 2), (65536, 64)])
def test_line_bits_of_messages(size: int, packets: int) -> None:
    """Each packet has its headers, the last one of a message may be short."""
    assert bits_of(10 * size, 10) == 8 * 10 * (size + packets * 82 + 20)
    assert bits_of(0, 0) == 0
    assert bits_of(10 * size, 10, window_frames=10) == bits_of(10 * size, 10)  # half known
    assert math.isclose(65536 / (65536 + 64 * 82), 0.926, abs_tol=0.001)


def test_line_bits_of_a_message_that_is_not_whole() -> None:
    """4,000 bytes of a message that has not ended are four packets."""
    assert bits_of(4000, 0) == 8 * (4000 + 4 * 82)


# --- times from histograms ------------------------------------------------------------------------


def times(values: list[int], **changes: Any) -> Histogram:
    """Return times of one record."""
    return Histogram.of_row(times_row(times_record(values, **changes)))


def test_buckets_are_the_engines() -> None:
    for value in (0, 1, 127, 128, 129, 1000, 123_456, 10**9, 2**39 + 5):
        least, width = bucket_bounds(bucket_of(value))
        assert least <= value < least + width
        assert width <= max(1, value / 64)


def test_percentiles_are_within_the_stated_error() -> None:
    random.seed(7)
    values = [int(random.lognormvariate(10, 1)) for _ in range(20_000)]
    measured = times(values)
    values.sort()
    for share in (0.5, 0.9, 0.99, 0.999, 0.9999):
        exact = values[-(-int(share * 1e6) * len(values) // 10**6) - 1]
        assert measured.quantile_ns(share) == pytest.approx(exact, rel=1 / 127)
    shown = figures(ROUND_TRIP, measured)
    assert shown["min"] == values[0] / 1000
    assert shown["max"] == values[-1] / 1000
    assert shown["mean"] == pytest.approx(sum(values) / len(values) / 1000, abs=0.001)
    assert shown["reasons"] == {}


def test_merging_is_the_same_as_measuring_together() -> None:
    random.seed(3)
    parts = [[random.randrange(10**6) for _ in range(500)] for _ in range(8)]
    together = times([value for part in parts for value in part])
    assert merged(times(part) for part in parts) == together
    assert merged([times([5], lost=2), times([6], lost=1)]).lost == 3
    assert merged([times([5]), times([6])]).lost is None
    assert figures(ONE_WAY, merged(map(times, parts))) == figures(ONE_WAY, together)


def test_too_few_samples_are_said_and_not_printed() -> None:
    shown = figures(ROUND_TRIP, times([1000 + i for i in range(3000)]))
    assert shown["p99_9"] is not None
    assert shown["p99_99"] is None
    assert shown["reasons"] == {"p99_99": "p99.99 needs 10,000 samples, there are 3,000"}
    shown = figures(ROUND_TRIP, times([1000]))
    assert (shown["min"], shown["p50"], shown["pdv"]) == (1.0, None, None)
    assert shown["reasons"]["p50"] == "p50 needs 2 samples, there is 1"
    assert figures(ROUND_TRIP, None)["reasons"] == {"all": "nothing was measured"}
    torn = times(list(range(1, 101)), buckets=buckets_of(range(1, 51)))
    assert figures(ROUND_TRIP, torn)["p50"] is None
    assert figures(ROUND_TRIP, torn)["reasons"]["p50"] == "buckets of the histogram are missing"


def test_one_way_is_refused_where_the_clocks_differ_by_more() -> None:
    delays = [2000] * 900 + [50_000] * 100
    shown = figures(ONE_WAY, times(delays, bound_ns=20_000))
    assert shown["p50"] is None
    assert "may differ by 20 us, more than the 2" in shown["reasons"]["p50"]
    assert shown["max"] == 50.0
    assert shown["pdv"] == pytest.approx(48, rel=0.01)  # the offset cancels
    assert figure(ONE_WAY, "p50", times(delays, bound_ns=0)) == pytest.approx(2, rel=0.01)
    cut = figures(ONE_WAY, times([0] * 500 + [900] * 500, bound_ns=20_000))
    assert cut["pdv"] is None
    assert "some delays are negative" in cut["reasons"]["pdv"]


def test_a_phase_names_its_worst_flow() -> None:
    flows = {
        ("a:e0", "b:e0"): {ROUND_TRIP: times([1000] * 200)},
        ("b:e0", "a:e0"): {ROUND_TRIP: times([1000] * 190 + [9000] * 10)},
    }
    entry = phase_latency(flows)
    assert entry[ONE_WAY] is None
    assert entry[ROUND_TRIP]["count"] == 400
    worst = entry[ROUND_TRIP]["worst"]
    assert (worst["src"], worst["dst"]) == ("b:e0", "a:e0")
    assert worst["p99"] == pytest.approx(9, rel=0.01)
