# SPDX-License-Identifier: BSD-3-Clause
"""What flows, ports and machines amount to, for all counts; what is unknown stays unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchbench.analysis import measures as m
from switchbench.analysis.tester import host_limits
from switchbench.records.records import Count, Flow, NodePhase, PhaseRecords, PortCount, Side

COUNTS = st.integers(0, 2**40)
MAYBE = st.lists(st.none() | COUNTS, max_size=5)
SECOND = 10**9


def side(frames: int | None, **changes: Any) -> Side:
    """An end that has seen frames of 1,000 bytes, 982 of them payload, in a window of a second."""
    several = [None if frames is None else frames * size for size in (1, 1000, 982)]
    count = Count(*several, messages=None)
    known = {"role": "generate", "whole": count, "window": count, "window_ns": SECOND}
    unknown = ("intended", "duplicated", "reordered", "late", "forged", "corrupted", "last_run_ns")
    return Side(**(dict.fromkeys(unknown) | known | {"measures": {}} | changes))


@given(MAYBE)
def test_a_total_is_known_when_all_its_parts_are(parts: list[int | None]) -> None:
    known = [part for part in parts if part is not None]
    whole = len(known) == len(parts) > 0
    assert m.total(parts) == m.total_int(parts) == (sum(known) if whole else None)
    assert m.total_known(parts) == (sum(known) if whole or sum(known) else None)


@given(MAYBE)
def test_figures_are_of_what_is_known(parts: list[int | None]) -> None:
    known = sorted(part for part in parts if part is not None)
    figures = [m.least(parts), m.greatest(parts), m.mean(parts), m.median(parts)]
    if not known:
        assert figures == [None] * 4
        return
    middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
    assert figures[:2] == [known[0], known[-1]]
    assert figures[2:] == [pytest.approx(sum(known) / len(known)), pytest.approx(middle)]


@given(COUNTS, COUNTS, COUNTS)
def test_a_frame_is_delivered_damaged_or_lost(sent: int, came: int, damaged: int) -> None:
    flow = Flow("a", "b", side(sent), side(came, corrupted=damaged))
    lost = max(0, sent - came - damaged)
    assert m.lost_frames(flow) == lost
    assert m.loss_percent(flow) == (pytest.approx(100 * lost / sent) if sent else None)
    assert m.surplus_frames(flow) == max(0, came - sent)


@pytest.mark.parametrize(
    "flow",
    [
        Flow("a", "b", None, side(9)),
        Flow("a", "b", side(10), None),
        Flow("a", "b", side(None), side(9)),
        Flow("a", "b", side(10), side(None)),
        Flow("a", "b", side(10), side(9), settled=False),
    ],
    ids=["no source", "no destination", "source sees none", "destination sees none", "stopped"],
)
def test_a_loss_that_nobody_could_see_is_unknown(flow: Flow) -> None:
    assert (m.lost_frames(flow), m.loss_percent(flow)) == (None, None)
    assert m.surplus_frames(flow) == 0


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10 * SECOND))
def test_rates(sent: int, intended: int, window_ns: int) -> None:
    """On the line a frame has 20 bytes of preamble and gap more."""
    source = side(sent, window_ns=window_ns, intended=intended)
    flow = Flow("a", "b", source, side(sent, window_ns=window_ns))
    bps = sent * 1020 * 8 / (window_ns / SECOND)
    assert m.offered_line_bps(flow) == m.delivered_line_bps(flow) == pytest.approx(bps)
    assert m.payload_bps(flow) == pytest.approx(bps * 982 / 1020)
    assert m.intended_line_bps(flow) == pytest.approx(bps * intended / sent)


def test_rates_that_are_unknown() -> None:
    nobody = Flow("a", "b")
    no_window = Flow("a", "b", side(10, window_ns=None), side(10, window_ns=0))
    no_bytes = Flow("a", "b", side(None), side(None))
    for flow in (nobody, no_window, no_bytes):
        rates = (m.offered_line_bps, m.delivered_line_bps, m.payload_bps, m.intended_line_bps)
        assert [rate(flow) for rate in rates] == [None] * 4
    assert m.intended_line_bps(Flow("a", "b", side(0, intended=10))) == 0
    assert m.intended_line_bps(Flow("a", "b", side(10))) == 10 * 1020 * 8


def test_shares_of_lines() -> None:
    """Of lines of 1 and 2 Mbit/s: a sends 10 and 20 frames, and b forwards 30."""
    flows = [
        Flow("a", "b", side(10), side(9)),
        Flow("a", "c", side(20), side(20)),
        Flow("b", "a", side(30, role="forward"), side(25)),
    ]
    frame = 1020 * 8
    shares = m.port_shares(flows, {"a": 1_000_000, "b": 2_000_000})
    assert shares.source == {"a": 29 * frame / 1e4, "b": 25 * frame / 2e4}
    assert shares.destination == {"b": 9 * frame / 2e4, "c": None, "a": 25 * frame / 1e4}
    assert shares.offered == {"a": 30 * frame / 1e4}
    flows[1].window_off = True
    shares = m.port_shares(flows, {"a": 1_000_000, "c": 1_000_000})
    assert (shares.source["a"], shares.destination["c"], shares.offered["a"]) == (None,) * 3
    every = m.port_shares(flows, {"a": 1_000_000, "c": 1_000_000}, every=True)
    assert every.destination["c"] == 20 * frame / 1e4


def node(**changes: Any) -> NodePhase:
    names = NodePhase.__dataclass_fields__
    return NodePhase(**(dict.fromkeys(names) | changes))


def test_cpu_time_of_machines() -> None:
    """Span times CPUs less idle, once for each machine; nodes of one nearly agree."""
    nodes = {
        "one": node(cpu_span_s=2.0, cpus=4, cpu_idle_s=5.0, cpu_s=0.5),
        "two": node(cpu_span_s=2.0, cpus=4, cpu_idle_s=4.5, cpu_s=0.25),
        "far": node(cpu_span_s=1.0, cpus=2, cpu_idle_s=2.5, cpu_s=0.125),  # idle in jiffies
    }
    machines = {"one": "here", "two": "here"}
    assert m.machine_cpu_s(nodes, machines) == 3.5
    assert m.machine_cpu_s(nodes, {}) == 6.5
    assert m.process_cpu_s(nodes) == 0.875
    for unknown in ("cpu_span_s", "cpus", "cpu_idle_s"):
        some = {"far": node(**{"cpu_span_s": 1.0, "cpus": 2, "cpu_idle_s": 1.0, unknown: None})}
        assert m.machine_cpu_s(some, {}) is None
    assert math.isnan(float(m.missing(math.nan, 1.0, 0.0)))


def begun_at(run_ns: int | None) -> PortCount:
    return PortCount(**(dict.fromkeys(PortCount.__dataclass_fields__) | {"start_run_ns": run_ns}))


@pytest.mark.parametrize(
    ("ports", "late"),
    [
        ({"a": SECOND + 30_000_000, "b": SECOND + 4_900_000}, {"a": 30.0}),
        ({"a": SECOND - 30_000_000, "b": None}, {}),
        ({"a": None, "b": None}, {"a rank": 50.0}),  # what the nodes say of the skew
    ],
)
def test_hosts_that_began_late(ports: dict[str, int | None], late: dict[str, float]) -> None:
    """By more than 5 ms after the agreed start."""
    phase = PhaseRecords(ports={name: begun_at(at) for name, at in ports.items()})
    nodes = {"one": node(), "two": node(start_run_ns=SECOND, start_skew_us=50_000.0)}
    assert {
        limit.port: limit.start_delay_ms for limit in host_limits(phase, nodes, 0.1, None)
    } == late
