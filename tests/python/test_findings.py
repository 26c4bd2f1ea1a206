# SPDX-License-Identifier: BSD-3-Clause
"""Findings of records made by hand: which kind, whose, how many, and what is left open."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import validate_summary
from switchbench.analysis.bottleneck import GroupFlows, Shares, group_of_port, locate, shares_of
from switchbench.analysis.finding import Finding
from switchbench.analysis.found import Found
from switchbench.analysis.strays import FlowOutcome, Stray, read_strays
from switchbench.analysis.summary import Summary
from switchbench.base import model
from synthetic import (
    FRAME,
    about,
    flows_of,
    frame_side,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)

SITE = make_site(4)
CHAIN = (("node1", "node2"), ("node2", "node3"), ("node3", "node4"))
SENT = 8000


Strays = dict[tuple[tuple[str, str], str], int]


def stray_record(pair: tuple[str, str], node: str, count: int) -> dict[str, Any]:
    """Frames of a flow at a node that is not its destination."""
    place = {"trial": 0, "repeat": 0, "network": "lab", "phase": 0}
    src, dst = (f"{end}:e0" for end in pair)
    ends = {"port": f"{node}:e0", "src": src, "dst": dst, "frames": count}
    return {"type": "misdelivered-flow", "node": node, **place, **ends}


def findings(
    delivered: dict[str, int], stray: Strays | None = None, **sides: Any
) -> list[tuple[str, str, int]]:
    """What a chain of four finds: frames delivered to each node (else all); `stray`: frames of each
    flow at each node."""
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
        strays = [
            stray_record(pair, node, count)
            for (pair, at), count in (stray or {}).items()
            if at == node
        ]
        unnamed = sides.get(f"{node}_unnamed", sides.get("unnamed", 0))
        strayed = sum(record["frames"] for record in strays) + unnamed
        records += [
            port_record(f"{node}:e0", misdelivered=strayed),
            *strays,
            phase_record(node),
            trial_record(node),
        ]
    summary = Summary(make_run(SITE, trial))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    result = summary.finish(about(), ())
    validate_summary(result)
    return [(found["kind"], _whose(found), found["count"]) for found in result["findings"]]


def _whose(found: dict[str, Any]) -> str:
    at = found["port"] or ""
    return f"{found['src']} -> {found['dst']} {at}".strip() if found["src"] else at


def test_nothing_wrong_nothing_found() -> None:
    assert findings({}) == []


def test_a_loss_is_the_flows() -> None:
    assert findings({"node3": SENT - 1}) == [("loss", "node2:e0 -> node3:e0", 1)]


@pytest.mark.parametrize(("lost", "expected"), [((17, 17, 16), 50), ((29, 17, 16), 53)])
def test_loss_of_what_no_line_carries_is_expected(lost: tuple[int, ...], expected: int) -> None:
    """Three flows of 50 frames to one port whose line carries 100 in the window; beyond a third of
    what was sent, and 2 % for the clocks, it is the network's loss."""
    site = make_site(4, line_bps=8 * (1000 + 20) * 100)
    records = []
    for number, count in enumerate(lost, start=1):
        ends, sizes = (f"node{number}:e0", "node4:e0"), {"window_frame_bytes": 50_000}
        records.append(frame_side("source", *ends, 50, 50, **sizes))
        records.append(frame_side("destination", *ends, 50 - count, 50 - count))
    summary = Summary(make_run(site, make_trial(site, flows=3)))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    first, *others = summary.finish(about(), ())["findings"]
    assert (first["kind"], first["port"], first["count"]) == (
        "oversubscribed",
        "node4:e0",
        expected,
    )
    assert {found["kind"] for found in others} <= {"loss"}
    assert sum(found["count"] for found in others) == sum(lost) - expected


def test_loss_of_a_burst_beside_streams_of_bytes_is_expected() -> None:
    """By the window's mean rate the port has room for all: TCP took it before (RFC 8239, 6)."""
    site = make_site(3, line_bps=8 * (FRAME + 20) * 1000)
    own = {"bytes": model.PartSetting("tcp", (65536,), "message", model.Load(percent=100.0))}
    trial = make_trial(site, flows=1, own=own)
    summary = Summary(make_run(site, trial))
    ends = ("node1:e0", "node3:e0")
    records = [
        frame_side("source", *ends, 50, 50),
        frame_side("destination", *ends, 8, 8),
        *(port_record(port.name) for port in site.ports),
    ]
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    found = [
        (one["kind"], one["port"], one["count"]) for one in summary.finish(about(), ())["findings"]
    ]
    assert found == [("oversubscribed", "node3:e0", 42)]


@pytest.mark.parametrize(
    ("pattern", "count", "lost", "expected"),
    [
        ({}, 1, 600, 1800),  # three send at their lines: one frame in three fits
        ({}, 1, 800, 2060),  # 2 % are allowed, and the rest is the network's
        ({}, 2, 800, 2060),
        ({"load_of": "receivers"}, 1, 600, 0),  # all together send the line
    ],
)
def test_loss_of_a_burst_that_no_line_carries_is_expected(
    pattern: dict[str, str], count: int, lost: int, expected: int
) -> None:
    """By the rate while it lasts: in the two seconds of its phase it has little."""
    site = make_site(4)
    trial = make_trial(
        site,
        flows=3,
        traffic="burst",
        load=model.Load(percent=100.0),
        pattern={"name": "incast", **pattern},
        document={"id": 0, "burst": {"frames": 1000 // count, "count": count}},
    )
    summary = Summary(make_run(site, trial))
    for number in range(1, 4):
        ends = (f"node{number}:e0", "node4:e0")
        span = {"window_ns": 2_000_000_000}
        summary.feed(0, frame_side("source", *ends, 1000, 1000, **span))
        summary.feed(0, frame_side("destination", *ends, 1000 - lost, 1000 - lost, **span))
    found = summary.finish(about(), ())["findings"]
    counts = {"oversubscribed": expected, "loss": 3 * lost - expected}
    for kind, frames in counts.items():
        assert sum(one["count"] for one in found if one["kind"] == kind) == frames


def test_as_many_astray_as_lost_is_a_wrong_port() -> None:
    one, two = CHAIN[:2]
    found = findings(
        {"node2": SENT - 3, "node3": SENT - 1},
        {(one, "node3"): 2, (one, "node4"): 1, (two, "node4"): 1},
    )
    assert found == [
        ("wrong-port", "node1:e0 -> node2:e0 node3:e0", 2),
        ("wrong-port", "node1:e0 -> node2:e0 node4:e0", 1),
        ("wrong-port", "node2:e0 -> node3:e0 node4:e0", 1),
    ]


def test_beside_a_wrong_port_losses_are_told() -> None:
    found = findings({"node2": SENT - 5}, {(CHAIN[0], "node4"): 2})
    assert found == [
        ("wrong-port", "node1:e0 -> node2:e0 node4:e0", 2),
        ("loss", "node1:e0 -> node2:e0", 3),
    ]


def test_strays_that_no_flow_lacks_are_a_flood() -> None:
    everywhere: Strays = {(CHAIN[0], "node3"): 5, (CHAIN[0], "node4"): 5}
    assert findings({}, everywhere) == [("flood", "node1:e0 -> node2:e0", 5)]
    found = findings({"node2": SENT - 2}, everywhere)
    assert found == [("flood", "node1:e0 -> node2:e0", 5), ("loss", "node1:e0 -> node2:e0", 2)]


def test_strays_that_fit_neither_stay_open() -> None:
    assert findings({}, {(CHAIN[0], "node4"): 1}) == [("misdelivered", "node4:e0", 1)]


def test_a_port_that_counted_fewer_strays_than_were_named_has_none_open() -> None:
    assert findings({"node2": SENT - 1}, {(CHAIN[0], "node3"): 1}, node3_unnamed=-1) == [
        ("wrong-port", "node1:e0 -> node2:e0 node3:e0", 1)
    ]


def test_strays_of_no_known_flow_stay_open() -> None:
    """A port tells so many flows apart; and older records told none."""
    found = findings({"node2": SENT - 4}, unnamed=1)
    assert found[:4] == [("misdelivered", f"node{number}:e0", 1) for number in range(1, 5)]
    assert found[4:] == [("loss", "node1:e0 -> node2:e0", 4)]


@pytest.mark.parametrize(
    ("at", "lost", "reading"),
    [
        ({"c": 2}, 2, FlowOutcome(wrong=(Stray("c", 2),))),
        ({"c": 2, "d": 2}, 4, FlowOutcome(wrong=(Stray("c", 2), Stray("d", 2)))),
        ({"c": 2, "d": 2}, 1, FlowOutcome(flooded=2)),
        ({"c": 3, "d": 2}, 1, FlowOutcome(2, (Stray("c", 1),))),
        ({"c": 3, "d": 2}, 2, FlowOutcome(2, (Stray("c", 1),))),
        ({"c": 3, "d": 1}, 0, None),
        ({"a": 1}, 1, None),
    ],
)
def test_what_strays_say(at: dict[str, int], lost: int, reading: FlowOutcome | None) -> None:
    assert read_strays(at, lost, {"c", "d"}) == reading


Load = tuple[tuple[tuple[str, str], ...], int, int]  # flows, frames sent by each, delivered of each


def of_loads(*loads: Load, **sides: Any) -> list[tuple[str, int]]:
    """Findings of a pattern whose phases are these loads, each in a trial of its own: the kinds,
    and in which trial."""
    trials = [
        make_trial(SITE, number, flows=len(flows)) for number, (flows, _, _) in enumerate(loads)
    ]
    records: list[dict[str, Any]] = []
    for number, (flows, sent, came) in enumerate(loads):
        place = {"trial": number}
        for src, dst in flows:
            ends = (f"{src}:e0", f"{dst}:e0")
            records.append(frame_side("source", *ends, sent, sent, **place, **sides))
            records.append(frame_side("destination", *ends, came, came, **place))
        for process in SITE.processes:
            node = process.name
            records.append(port_record(f"{node}:e0", **place))
            records += [phase_record(node, **place), trial_record(node, **place)]
    summary = Summary(make_run(SITE, *trials))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    found = summary.finish(about(), ())["findings"]
    return [(one["kind"], one["trial"]) for one in found if one["kind"] != "loss"]


NEAR = CHAIN
FAR = (("node1", "node3"), ("node2", "node4"), ("node3", "node1"), ("node4", "node2"))


def test_a_larger_load_of_the_same_flows_that_gets_less_through_is_a_collapse() -> None:
    assert of_loads((NEAR, 4000, 4000), (NEAR, 8000, 2000)) == [("collapse", 1)]
    assert of_loads((NEAR, 4000, 4000), (NEAR, 8000, 4000)) == [("saturation", 1)]


def test_what_halves_is_a_collapse_whatever_the_smaller_load_lost() -> None:
    assert of_loads((NEAR, 4000, 3988), (NEAR, 8000, 2000)) == [("collapse", 1)]
    assert of_loads((NEAR, 4000, 3988), (NEAR, 8000, 3000)) == []


def test_a_larger_load_may_have_more_flows() -> None:
    assert of_loads((NEAR[:1], 8000, 8000), (NEAR, 8000, 2000)) == [("collapse", 1)]


def test_other_flows_are_another_load() -> None:
    """Distance 2 of an all-to-all crosses uplinks that distance 1 does not."""
    assert of_loads((NEAR, 7000, 7000), (FAR, 8000, 3000)) == []


def test_loads_that_differ_by_noise_are_one_load() -> None:
    assert of_loads((NEAR, 7990, 7990), (NEAR, 8000, 3000)) == []


def test_a_load_that_a_host_did_not_offer_is_not_larger() -> None:
    assert of_loads((NEAR, 7990, 7990), (NEAR, 8000, 3000), intended=16000) == []


@pytest.mark.parametrize("cause", ["dropped_receive", "unexpected"])
def test_what_hosts_or_others_may_have_cost_is_no_limit_of_the_network(cause: str) -> None:
    trials = [make_trial(SITE, number, flows=3) for number in range(2)]
    summary = Summary(make_run(SITE, *trials))
    for trial, sent, came in ((0, 4000, 4000), (1, 8000, 2000)):
        place = {"trial": trial}
        for src, dst in NEAR:
            ends = (f"{src}:e0", f"{dst}:e0")
            summary.feed(0, frame_side("source", *ends, sent, sent, **place))
            summary.feed(0, frame_side("destination", *ends, came, came, **place))
        for process in SITE.processes:
            port = port_record(f"{process.name}:e0", **{cause: sent - came}, **place)
            for record in (port, phase_record(process.name, **place)):
                summary.feed(0, record)
            summary.feed(0, trial_record(process.name, **place))
    found = summary.finish(about(), ())["findings"]
    assert {one["kind"] for one in found} == {"loss"}


def shares(**of: GroupFlows) -> Shares:
    """A phase by groups, whose names are joined by `_`."""
    return Shares({tuple(name.split("_")): share for name, share in of.items()})


CARRIED, LIMITED = GroupFlows(100, 1000, 0), GroupFlows(60, 1000, 400)


def test_a_group_is_the_limit_where_the_network_carries_more() -> None:
    alone, both = shares(left=LIMITED), shares(left=LIMITED, right=LIMITED)
    assert locate(alone, [alone]) == {}
    assert locate(both, [both]) == {}
    assert locate(alone, [alone, both]) == {("left",): 400}
    other = shares(right=LIMITED)
    assert locate(both, [alone, both]) == {}
    assert locate(both, [alone, other, both]) == {("left",): 400, ("right",): 400}
    assert locate(alone, [alone, shares(right=CARRIED)]) == {("left",): 400}


def test_between_groups_is_the_limit_where_each_carries_more() -> None:
    across = shares(left_right=LIMITED)
    assert locate(across, [across, shares(left=CARRIED)]) == {}
    assert locate(across, [across, shares(left=CARRIED, right=CARRIED)]) == {("left", "right"): 400}
    assert locate(across, [across, shares(left=LIMITED), shares(right=CARRIED)]) == {}
    assert locate(shares(left_right=GroupFlows(60, 1000, 5)), [shares(left=CARRIED)]) == {}


def test_two_percent_are_a_loss_that_may_be_noise() -> None:
    assert not GroupFlows(100, 1000, 20).loses
    assert GroupFlows(100, 1000, 21).loses
    assert not GroupFlows(0, 0, 0).loses


def test_flows_count_for_the_groups_of_their_ends() -> None:
    """Line rate of what was delivered, frames sent, and losses; either way between two groups."""
    groups = {"left": ["a", "b"], "right": ["c", "d"]}
    counts = {"frames": 1000, "window_frames": 1000, "window_frame_bytes": 100_000}
    flows = flows_of(
        *(
            frame_side(side, src, dst, 0, 0) | counts
            for src, dst in ("ab", "ba", "ac", "da")
            for side in ("source", "destination")
        )
    )
    rate = 8.0 * (100_000 + 20 * 1000)  # of each: preamble and gap are 20 bytes
    lost = {("a", "b"): 30, ("a", "c"): 5, ("d", "a"): 6}
    assert shares_of(flows, lost, group_of_port(groups)).of == {
        ("left",): GroupFlows(2 * rate, 2000, 30),
        ("left", "right"): GroupFlows(2 * rate, 2000, 11),
    }


@pytest.mark.parametrize("ends", ["ax", "xa", "ay", "ya", "xy"])
def test_a_phase_with_a_port_of_no_group_or_of_two_has_no_shares(ends: str) -> None:
    groups = group_of_port({"left": ["a", "b", "y"], "right": ["c", "y"]})
    assert groups == {"a": "left", "b": "left", "c": "right"}
    assert shares_of(flows_of(pairs=[("a", "b"), (ends[0], ends[1])]), {}, groups) == Shares()


def test_a_port_through_which_nothing_comes_is_dead() -> None:
    assert findings({"node2": 0, "node3": 0}) == [("dead-port", "node2:e0", 2 * SENT)]


def test_when_nothing_comes_at_all_no_port_is_blamed() -> None:
    found = findings({"node2": 0, "node3": 0, "node4": 0})
    assert {kind for kind, _, _ in found} == {"loss"}


@pytest.mark.parametrize(("intended", "kind"), [(2 * SENT, "slow-port"), (SENT, "loss")])
def test_slow_is_only_what_is_slow_both_ways(intended: int, kind: str) -> None:
    found = findings({"node2": SENT // 2}, node2_intended=intended)
    assert [(name, count) for name, _, count in found] == [(kind, SENT // 2)]


@pytest.mark.parametrize(
    ("drained", "came"), [(False, 60_000), (False, 65_535), (False, 65_536), (True, 60_000)]
)
def test_a_transfer_that_was_cut_off_is_said(drained: bool, came: int) -> None:
    trial = make_trial(SITE, flows=1, transport="tcp", traffic="transfer", size_unit="message")
    ends = ("node1:e0", "node2:e0")
    records = [
        tcp_side("source", *ends, 65_536, 65_536),
        tcp_side("destination", *ends, came, came),
        phase_record("node1", drained=True),
        phase_record("node2", drained=drained),
        trial_record("node1"),
        trial_record("node2"),
    ]
    summary = Summary(make_run(SITE, trial))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    found = summary.finish(about(), ())["findings"]
    if drained or came == 65_536:
        assert found == []
        return
    (only,) = found
    missing = "1 byte" if came == 65_535 else "5,536 bytes"
    assert (only["kind"], only["transport"], only["count"]) == ("unfinished", "tcp", 65_536 - came)
    assert only["sentence"].startswith(
        f"node1:e0 -> node2:e0: {missing} of its transfer had not come"
    )


def test_of_many_flows_that_were_cut_off_those_that_lack_the_most_are_named() -> None:
    """The hundred of them, of 102 that lack 1 to 102 bytes."""
    site = make_site(204)
    trial = make_trial(site, flows=102, transport="tcp", traffic="transfer", size_unit="message")
    summary = Summary(make_run(site, trial))
    for i in range(1, 103):
        ends = (f"node{2 * i - 1}:e0", f"node{2 * i}:e0")
        summary.feed(0, tcp_side("source", *ends, 65_536, 65_536))
        summary.feed(0, tcp_side("destination", *ends, 65_536 - i, 65_536 - i))
    for made in (phase_record, trial_record):
        for process in site.processes:
            more = {"drained": False} if made is phase_record else {}
            summary.feed(0, made(process.name, **more))
    found = summary.finish(about(), ())["findings"]
    assert [one["count"] for one in found] == list(range(102, 2, -1))


Rates = dict[tuple[int, int], tuple[int, int]]  # frames sent and delivered, by numbers of nodes
MODULES = {"left": ("node1:e0", "node2:e0"), "right": ("node3:e0", "node4:e0")}


def limits(*loads: Rates) -> list[tuple[str, int, list[str] | None]]:
    """The limits that trials with these loads find in a network of two modules."""
    site = make_site(4, groups=MODULES)
    trials = [make_trial(site, number, flows=len(load)) for number, load in enumerate(loads)]
    summary = Summary(make_run(site, *trials))
    for number, load in enumerate(loads):
        place = {"trial": number}
        for (src, dst), (sent, came) in load.items():
            ends = (f"node{src}:e0", f"node{dst}:e0")
            summary.feed(0, frame_side("source", *ends, sent, sent, **place))
            summary.feed(0, frame_side("destination", *ends, came, came, **place))
        for made in (phase_record, trial_record):
            for process in site.processes:
                summary.feed(0, made(process.name, **place))
    result = summary.finish(about(), ())
    validate_summary(result)
    return [(one["kind"], one["count"], one["groups"]) for one in result["findings"]]


def both(one: int, other: int, sent: int, came: int) -> Rates:
    return {(one, other): (sent, came), (other, one): (sent, came)}


HALF, FULL = (both(1, 2, 4000, 4000), both(1, 2, 8000, 5000))  # left alone; it loses 37.5 %
OTHER = both(3, 4, 8000, 8000)  # 1.6 times what left carries


def test_a_load_that_loses_more_than_a_smaller_one_is_beyond_the_network() -> None:
    assert limits(HALF, FULL) == [("saturation", 6000, None)]
    assert limits(HALF, both(1, 2, 8000, 3200))[0][0] != "collapse"
    assert limits(HALF, both(1, 2, 8000, 3199)) == [("collapse", 9602, None)]  # below 80 % of it


def test_a_module_is_the_limit_where_another_carries_more() -> None:
    assert limits(HALF, FULL, OTHER) == [("module-capacity", 6000, ["left"])]


def test_the_trunk_is_the_limit_where_both_modules_carry_more() -> None:
    half, full = both(1, 3, 4000, 4000), both(1, 3, 8000, 5000)
    within = both(1, 2, 8000, 8000) | OTHER
    assert limits(half, full, within) == [("trunk", 6000, ["left", "right"])]
    assert limits(half, full, OTHER) == [("saturation", 6000, None)]  # of left nothing is known


TO_NODE4 = ((1, 4), (2, 4), (3, 4))  # 2.953 times its line, which carries 8,127 frames of 24,000


def test_a_sentence_says_within_or_between_which_groups() -> None:
    groups = {("left",): "within left: ", ("left", "right"): "between left and right: "}
    for names, words in groups.items():
        assert Finding("trunk", 2, groups=names).entry()["sentence"].startswith(words)


def test_what_a_line_has_no_room_for_is_oversubscribed() -> None:
    assert limits(dict.fromkeys(TO_NODE4, (8000, 2709))) == [("oversubscribed", 15_873, None)]
    assert limits({(1, 4): (8000, 8000), (2, 3): (8000, 8000)}) == []


def test_what_goes_beyond_it_is_left_to_the_network() -> None:
    """Two parts in three of 24,000 frames and 2 % more, which windows leave unsure: 16,352."""
    found = limits(dict.fromkeys(TO_NODE4, (8000, 2000)))
    assert found[0] == ("oversubscribed", 16_352, None)
    assert found[1:] == [("loss", count, None) for count in (550, 549, 549)]


def test_findings_of_a_run_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the trials that all nodes have ended, every two seconds at most."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    site = make_site(2)
    found = Found(make_run(site, *(make_trial(site, number, flows=1) for number in range(3))))
    counts = []
    for number in range(3):
        place = {"trial": number}
        ends = ("node1:e0", "node2:e0")
        found.take(frame_side("source", *ends, SENT, 7000, **place))
        found.take(frame_side("destination", *ends, SENT - number - 1, 7000, **place))
        for process in site.processes:
            found.take(phase_record(process.name, **place))
        found.take(trial_record("node1", **place))
        found.turn()  # node2 has not ended it
        counts.append([one["count"] for one in found.findings])
        found.take(trial_record("node2", **place))
        now_s += 1.0
        found.turn()
        counts.append([one["count"] for one in found.findings])
        found.turn()
    assert counts == [[], [1], [1], [1], [1], [3, 2, 1]]


def below_median(
    rates: dict[tuple[str, str], int],
    groups: dict[str, tuple[str, ...]],
    long_window: str = "",
    sent: dict[str, int] | None = None,
    transport: str = "dpdk",
    **sides: Any,
) -> set[str]:
    """The ports that are named, of an all-to-all in phases: frames of each flow in the window.
    `long_window`: a node that closed its windows late; `sent`: what nodes send, where not 8,000."""
    site = make_site(4, groups=groups)
    trial = make_trial(site, phases=3, flows=12, transport=transport)
    summary = Summary(make_run(site, trial))
    for phase in range(3):
        place = {"phase": phase}
        for number in range(4):
            src, dst = number + 1, (number + phase + 1) % 4 + 1
            ends = (f"node{src}:e0", f"node{dst}:e0")
            offered = (sent or {}).get(f"node{src}", 8000)
            came = rates.get((f"node{src}", f"node{dst}"), offered)
            window = 1_050_000_000 if f"node{dst}" == long_window else 1_000_000_000
            summary.feed(0, frame_side("source", *ends, offered, offered, **place, **sides))
            summary.feed(0, frame_side("destination", *ends, came, came, window_ns=window, **place))
        for number in range(1, 5):
            summary.feed(0, port_record(f"node{number}:e0", **place))
            summary.feed(0, phase_record(f"node{number}", **place))
    for number in range(1, 5):
        summary.feed(0, trial_record(f"node{number}"))
    ports = summary.finish(about(), ())["ports"]
    return {port["port"] for port in ports if port["below_median"]}


FOUR = [f"node{number}" for number in range(1, 5)]


def test_a_port_that_is_slow_with_every_partner_is_below_the_median() -> None:
    slow = {(src, dst): 4000 for src in FOUR for dst in FOUR if "node4" in (src, dst)}
    assert below_median(slow, {}) == {"node4:e0"}
    modules = {"left": ("node1:e0", "node2:e0"), "right": ("node3:e0", "node4:e0")}
    assert below_median(slow, modules) == {"node4:e0"}


def test_ports_behind_an_overloaded_trunk_are_not() -> None:
    """node4 alone on a switch of its own: its trunk may be the reason, whatever it is."""
    slow = {(src, dst): 4000 for src in FOUR for dst in FOUR if "node4" in (src, dst)}
    alone = {"left": ("node1:e0", "node2:e0", "node3:e0"), "right": ("node4:e0",)}
    assert below_median(slow, alone) == set()


def test_ports_behind_a_trunk_are_not_whatever_others_were_to_send() -> None:
    """node4's flows carry half of what was intended, and more than those that were to be small."""
    sent = dict.fromkeys(FOUR[:3], 2000)
    slow = {("node4", dst): 4000 for dst in FOUR[:3]} | {(src, "node4"): 1000 for src in FOUR[:3]}
    alone = {"left": ("node1:e0", "node2:e0", "node3:e0"), "right": ("node4:e0",)}
    assert below_median(slow, alone, sent=sent) == set()
    assert below_median(slow, {}, sent=sent) == {"node4:e0"}


def test_a_port_that_keeps_up_with_some_partner_is_not() -> None:
    pair = {"node3", "node4"}
    slow = {(a, b): 4000 for a in FOUR for b in FOUR if len({a, b} & pair) == 1}
    assert below_median(slow, {}) == set()


def test_a_port_is_not_named_for_a_window_of_the_testers() -> None:
    assert below_median({}, {}, "node2") == set()


def test_a_port_is_not_named_for_a_load_that_was_lower() -> None:
    """node4 is asked for a quarter, and sends it; then node3 carries half of its quarter."""
    assert below_median({}, {}, sent={"node4": 2000}) == set()
    slow = {("node3", dst): 1000 for dst in FOUR}
    assert below_median(slow, {}, sent={"node3": 2000, "node4": 2000}) == {"node3:e0"}


@pytest.mark.parametrize("changes", [{"intended": None}, {"intended": 0}, {"transport": "tcp"}])
def test_who_sends_less_where_nothing_was_intended_is_slow(changes: dict[str, Any]) -> None:
    """TCP intends what the network lets it."""
    assert below_median({}, {}, sent={"node4": 2000}, **changes) == {"node4:e0"}


def test_a_loss_says_when() -> None:
    """The wall clock of the phase's start, and where its interval results were lowest."""
    trial = make_trial(SITE, flows=1)
    ends = ("node1:e0", "node2:e0")
    place = {"trial": 0, "repeat": 0, "phase": 0, "network": "lab"}
    wall_ns = 1_795_434_000_000_000_000
    records = [
        {"type": "ready", "node": "node1", "clock": "shared", "clock_offset_ns": 5,
         "wall_clock_offset_ns": wall_ns + 5},
        frame_side("source", *ends, SENT, SENT),
        frame_side("destination", *ends, SENT - 10, SENT - 10),
        {"type": "interval", "node": "node2", "dst": ends[1], "from_ms": 0.0,
         "at_ms": [250.0, 500.0, 1000.0], "flows": [[ends[0], [3000, 2000, 6000]]]} | place,
        *(phase_record(p.name, start_run_ns=1_250_000_000) for p in SITE.processes),
        *(trial_record(p.name) for p in SITE.processes),
    ]  # fmt: skip
    summary = Summary(make_run(SITE, trial))
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    result = summary.finish(about(), ())
    validate_summary(result)
    (found,) = result["findings"]
    assert result["trials"][0]["started"] == found["started"] == "2026-11-23T11:40:01.250Z"
    assert (found["lowest_from_s"], found["lowest_to_s"]) == (0.25, 0.5)
    assert found["sentence"].endswith(
        "10 frames lost, in trial 0 pairs phase 0, which began 2026-11-23T11:40:01.250Z; "
        "lowest from 0.25 to 0.50 s into its window"
    )
