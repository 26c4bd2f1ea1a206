# SPDX-License-Identifier: BSD-3-Clause
"""Shapers carry exactly what a link of their rate would, and the switch's counters add up."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

import counters
from counters import Truth
from labkit import PREFIX, Sender, learn, needs_lab, send_at_once, sending
from switchbench.labs import Lab, load, session

pytestmark = needs_lab

WINDOW_S = 2.0
OVERLOAD = 1.2

# rate, frame as Linux counts it, MTU
LINKS = [
    ("100M", 1514, 1500),
    ("100M", 9014, 9000),
    ("10M", 1514, 1500),
    ("10M", 60, 1500),
    ("1M", 1514, 1500),
    ("1M", 60, 1500),
]


def layer1_bits(size: int) -> int:
    return max(size + 24, 84) * 8


def timed(lab: Lab) -> tuple[float, Truth]:
    """Return the lab's counters, and the time at which they were read.

    Read again when it took long: this machine did something else in between, and a shift of
    10 ms is half a percent of a window.
    """
    quickest: tuple[float, float, Truth] | None = None
    for _ in range(10):
        start = time.monotonic()
        truth = counters.read(lab)
        end = time.monotonic()
        if quickest is None or end - start < quickest[0]:
            quickest = (end - start, (start + end) / 2, truth)
        if end - start < 0.004:
            break
    assert quickest is not None
    return quickest[1:]


def drained(lab: Lab) -> Truth:
    """Return the counters when the queues are empty: nothing moves any more."""
    before, now = None, counters.read(lab)
    while now != before:
        time.sleep(0.3)
        before, now = now, counters.read(lab)
    return now


def delivered_bps(lab: Lab, receivers: list[str], size: int, windows: int) -> list[float]:
    """Layer-1 rate at the receivers in each of `windows` parts of `WINDOW_S`, one after another."""
    readings = [timed(lab)]
    for _ in range(windows):
        time.sleep(WINDOW_S / windows)
        readings.append(timed(lab))
    return [
        sum((end - start).nodes[name].frames_to_node for name in receivers)
        * layer1_bits(size)
        / (end_s - start_s)
        for (start_s, start), (end_s, end) in pairwise(readings)
    ]


def steady_bps(lab: Lab, receivers: list[str], nominal_bps: float) -> float:
    """The rate while senders offer more: the first of four windows that reaches the nominal rate.

    A machine that stood still for a moment makes a window slow, never fast; a shaper that is
    wrong makes them all wrong.
    """
    best = 0.0
    for _ in range(4):
        (rate_bps,) = delivered_bps(lab, receivers, 1514, windows=1)
        best = max(best, rate_bps)
        if best >= 0.99 * nominal_bps:
            break
    return best


@pytest.mark.parametrize(("rate", "size", "mtu"), LINKS)
def test_a_link_carries_its_rate(rate: str, size: int, mtu: int) -> None:
    """Its queue is filled with enough for the whole test, so that no sender can be late."""
    changes = {"nodes": 2, "rate": rate, "mtu": mtu, "queue": "128MiB"}
    with session(load("one-switch", changes), f"{PREFIX}-rate") as lab:
        source, destination = lab.nodes
        learn(list(lab.nodes))
        before = counters.read(lab)
        count = int((WINDOW_S + 2.5) * source.line_rate_bps / layer1_bits(size))
        start = time.monotonic()
        send_at_once(source, destination, size, count)
        time.sleep(0.3)
        windows = delivered_bps(lab, [destination.name], size, windows=2)
        in_time = time.monotonic() - start < WINDOW_S + 2.4
        change = (counters.read(lab) - before).nodes
    assert in_time, "this machine was too busy to fill the queue in time"
    line_bps = source.line_rate_bps
    frame_bps = layer1_bits(size)  # One frame a second.
    assert sum(windows) / 2 == pytest.approx(line_bps, rel=0.005, abs=frame_bps / WINDOW_S)
    for window in windows:
        assert window == pytest.approx(line_bps, rel=0.005, abs=frame_bps)
    assert change[source.name].frames_from_node == count
    assert change[source.name].dropped_from_node == 0


@pytest.mark.parametrize("senders", [1, 3])
def test_every_frame_is_delivered_or_dropped(senders: int) -> None:
    """One sender overloads its own shaper; three that of the receiver."""
    with session(load("one-switch", {"nodes": 4, "rate": "10M"}), f"{PREFIX}-sum") as lab:
        *sources, destination = lab.nodes[: senders + 1]
        learn(list(lab.nodes))
        before = counters.read(lab)
        load_bps = OVERLOAD * 10e6 if senders == 1 else 0.6 * 10e6
        running = [Sender(source, destination, 1514, load_bps) for source in sources]
        with sending(running):
            time.sleep(1.5)
        truth = (drained(lab) - before).nodes
        into_switch = 0
        for source, sender in zip(sources, running, strict=True):
            assert truth[source.name].frames_from_node == sender.sent
            into_switch += sender.sent - truth[source.name].dropped_from_node
            assert (truth[source.name].dropped_from_node > 0) == (senders == 1)
        end = truth[destination.name]
        assert into_switch == end.frames_to_node + end.dropped_to_node
        assert (end.dropped_to_node > 0) == (senders == 3)
        assert end.bytes_to_node == end.frames_to_node * 1514
        assert sum(node.host_dropped for node in truth.values()) == 0
        assert truth[lab.nodes[3].name].frames_to_node == (
            end.frames_to_node if senders == 3 else 0
        )


@pytest.mark.parametrize(("pairs", "share"), [(7, 1.0), (12, 8 / 12)])
def test_a_trunk_is_shared(pairs: int, share: float) -> None:
    with session(load("two-modules"), f"{PREFIX}-trunk") as lab:
        left, right = lab.nodes[:12][:pairs], lab.nodes[12:][:pairs]
        learn([*left, *right])
        before = counters.read(lab)
        running = [Sender(a, b, 1514, 10e6) for a, b in zip(left, right, strict=True)]
        with sending(running):
            time.sleep(0.5)
            total_bps = steady_bps(lab, [node.name for node in right], share * pairs * 10e6)
        assert total_bps / pairs / 10e6 == pytest.approx(share, rel=0.03)
        truth = drained(lab) - before
        there = truth.trunks["left", "right"]
        assert (there.dropped > 0) == (pairs > 8)
        lost_before = sum(truth.nodes[node.name].dropped_from_node for node in left)
        lost_behind = sum(truth.nodes[node.name].dropped_to_node for node in right)
        sent = sum(sender.sent for sender in running)
        assert sent - lost_before == there.frames + there.dropped
        assert there.frames == lost_behind + sum(
            truth.nodes[node.name].frames_to_node for node in right
        )
        assert truth.trunks["right", "left"].frames == 0
