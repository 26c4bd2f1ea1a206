# SPDX-License-Identifier: BSD-3-Clause
"""What flows, ports and machines amount to; what is unknown stays unknown. Lost frames and payload:
test_one_reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchbench.analysis import measures as m
from switchbench.analysis.tester import in_network
from switchbench.records.rows import Floats, PhaseFlows, Rows
from synthetic import flows_of

COUNTS = st.integers(0, 2**40)
MAYBE = st.lists(st.none() | COUNTS, max_size=5)
SECOND = 10**9


def end(frames: int | None, **changes: Any) -> dict[str, Any]:
    """An end that has seen frames of 1,000 bytes, 982 of them payload, in a window of a second."""
    sizes = {"frames": 1, "frame_bytes": 1000, "payload_bytes": 982}
    counts = {name: None if frames is None else frames * size for name, size in sizes.items()}
    windows = {f"window_{name}": count for name, count in counts.items()}
    return counts | windows | {"window_ns": SECOND} | changes


def flow(
    source: dict[str, Any] | None = None,
    destination: dict[str, Any] | None = None,
    ends: str = "ab",
) -> list[dict[str, Any]]:
    """Return the records of a flow, one of each end that left one."""
    src, dst = ends
    of = {"source": source, "destination": destination}
    head = {"type": "flow", "src": src, "dst": dst}
    return [head | {"side": side} | said for side, said in of.items() if said is not None]


def of_one(formula: Callable[[PhaseFlows], Floats], flows: PhaseFlows) -> float | None:
    """Return the value of a formula for the only flow."""
    (value,) = m.observed(formula(flows))
    return value


@given(MAYBE)
def test_figures_are_of_what_is_known_and_a_total_when_all_parts_are(
    parts: list[int | None],
) -> None:
    known = sorted(part for part in parts if part is not None)
    whole = len(known) == len(parts) > 0
    assert m.total(parts) == m.total_int(parts) == (sum(known) if whole else None)
    assert m.total_known(parts) == (sum(known) if whole or sum(known) else None)
    figures = [m.least(parts), m.greatest(parts), m.mean(parts), m.median(parts)]
    if not known:
        assert figures == [None] * 4
        return
    middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
    assert figures[:2] == [known[0], known[-1]]
    assert figures[2:] == [pytest.approx(sum(known) / len(known)), pytest.approx(middle)]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10 * SECOND))
def test_rates(sent: int, intended: int, window_ns: int) -> None:
    """On the line a frame has 20 bytes of preamble and gap more."""
    source = end(sent, window_ns=window_ns, intended=intended)
    flows = flows_of(*flow(source, end(sent, window_ns=window_ns)))
    bps = sent * 1020 * 8 / (window_ns / SECOND)
    offered, delivered = of_one(m.offered_line_bps, flows), of_one(m.delivered_line_bps, flows)
    assert offered == delivered == pytest.approx(bps)
    assert of_one(m.payload_bps, flows) == pytest.approx(bps * 982 / 1020)
    assert of_one(m.intended_line_bps, flows) == pytest.approx(bps * intended / sent)


def test_rates_that_are_unknown() -> None:
    nobody = flows_of(pairs=[("a", "b")])
    no_window = flows_of(*flow(end(10, window_ns=None), end(10, window_ns=0)))
    no_bytes = flows_of(*flow(end(None), end(None)))
    for flows in (nobody, no_window, no_bytes):
        rates = (m.offered_line_bps, m.delivered_line_bps, m.payload_bps, m.intended_line_bps)
        assert [of_one(rate, flows) for rate in rates] == [None] * 4
    assert of_one(m.intended_line_bps, flows_of(*flow(end(0, intended=10)))) == 0
    assert of_one(m.intended_line_bps, flows_of(*flow(end(10)))) == 10 * 1020 * 8


def test_shares_of_lines() -> None:
    """Of lines of 1 and 2 Mbit/s: a sends 10 and 20 frames, and b forwards 30."""
    flows = flows_of(
        *flow(end(10), end(9)),
        *flow(end(20), end(20), "ac"),
        *flow(end(30, role="forward"), end(25), "ba"),
    )
    frame = 1020 * 8
    shares = m.port_shares(flows, {"a": 1_000_000, "b": 2_000_000})
    assert shares.source == {"a": 29 * frame / 1e4, "b": 25 * frame / 2e4}
    assert shares.destination == {"b": 9 * frame / 2e4, "c": None, "a": 25 * frame / 1e4}
    assert shares.offered == {"a": 30 * frame / 1e4}
    flows = replace(flows, window_off=np.array([False, True, False]))
    shares = m.port_shares(flows, {"a": 1_000_000, "c": 1_000_000})
    assert (shares.source["a"], shares.destination["c"], shares.offered["a"]) == (None,) * 3
    every = m.port_shares(flows, {"a": 1_000_000, "c": 1_000_000}, every=True)
    assert every.destination["c"] == 20 * frame / 1e4
    # What goes to all is sent once.
    flows = flows_of(*flow(end(10), end(10)), *flow(end(10, role="copy"), end(9), "ac"))
    shares = m.port_shares(flows, dict.fromkeys("abc", 1_000_000))
    assert shares.source == shares.offered == {"a": 10 * frame / 1e4}
    assert shares.destination == {"b": 10 * frame / 1e4, "c": 9 * frame / 1e4}


def nodes_of(**nodes: dict[str, Any]) -> Rows:
    """Return the `phases` rows of nodes, by their names."""
    return Rows.of("phases", [{"node": name} | said for name, said in nodes.items()])


def test_cpu_time_of_machines() -> None:
    """Span times CPUs less idle, once for each machine; nodes of one nearly agree."""
    nodes = nodes_of(
        one={"cpu_span_s": 2.0, "cpus": 4, "cpu_idle_s": 5.0, "cpu_s": 0.5},
        two={"cpu_span_s": 2.0, "cpus": 4, "cpu_idle_s": 4.5, "cpu_s": 0.25},
        far={"cpu_span_s": 1.0, "cpus": 2, "cpu_idle_s": 2.5, "cpu_s": 0.125},  # idle in jiffies
    )
    machines = {"one": "here", "two": "here"}
    assert m.machine_cpu_s(nodes, machines) == 3.5
    assert m.machine_cpu_s(nodes, {}) == 6.5
    for unknown in ("cpu_span_s", "cpus", "cpu_idle_s"):
        some = nodes_of(far={"cpu_span_s": 1.0, "cpus": 2, "cpu_idle_s": 1.0, unknown: None})
        assert m.machine_cpu_s(some, {}) is None


@pytest.mark.parametrize(
    ("network", "lost", "said"), [(4, None, 0), (5, None, 5), (4, 4, 4), (None, 4, None)]
)
def test_a_frame_per_rank_may_be_the_counters_own(
    network: int | None, lost: int | None, said: int | None
) -> None:
    location = {"network": network, "lost_frames": lost}
    assert in_network({"loss_location": location, "ranks": 4}) == said
