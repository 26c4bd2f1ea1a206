# SPDX-License-Identifier: BSD-3-Clause
"""Where the proportional model holds: against a simulated drop-tail queue
(doc/reference/topology.md)."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest

Frames = list[tuple[float, str]]
"""When each comes, in the times that the output needs for a frame, and whose it is."""

UNTIL = 20_000.0
PLACES = 170


def sender(name: str, rate: float, dither: float, draw: random.Random) -> Frames:
    """Departures as the engine dithers them: each is late by up to `dither` intervals."""
    phase = draw.random()
    late = (draw.random() * dither for _ in range(int(UNTIL * rate)))
    return [((i + phase + delay) / rate, name) for i, delay in enumerate(late)]


def through(*arriving: Frames) -> Frames:
    """What leaves the queue that all these frames go to."""
    waiting: deque[float] = deque()
    left: Frames = []
    for time, name in sorted(frame for frames in arriving for frame in frames):
        while waiting and waiting[0] <= time:
            waiting.popleft()
        if len(waiting) < PLACES:
            waiting.append(max(time, waiting[-1] if waiting else 0.0) + 1.0)
            left.append((waiting[-1], name))
    return left


def shares(left: Frames) -> dict[str, float]:
    """Of the output's frames, once its queue has filled."""
    counts = Counter(name for time, name in left if UNTIL / 2 <= time < UNTIL)
    return {name: count / (UNTIL / 2) for name, count in counts.items()}


@pytest.mark.parametrize("rates", [(0.95, 0.95), (0.95, 0.9), (0.95, 0.475), (0.8, 0.4, 0.2)])
@pytest.mark.parametrize("seed", range(3))
def test_dithered_senders_share_one_full_queue_in_proportion(
    rates: tuple[float, ...], seed: int
) -> None:
    draw = random.Random(seed)
    senders = {str(i): rate for i, rate in enumerate(rates)}
    found = shares(through(*(sender(name, rate, 1.0, draw) for name, rate in senders.items())))
    for name, rate in senders.items():
        assert found[name] == pytest.approx(rate / sum(rates), abs=0.03)


def spread(of: list[float]) -> float:
    return max(of) - min(of)


def test_senders_in_phase_do_not() -> None:
    found = []
    for seed in range(6):
        draw = random.Random(seed)
        left = through(*(sender(name, 0.95, 0.0, draw) for name in "ab"))
        found.append(shares(left).get("a", 0.0))
    assert spread(found) > 0.5


def test_behind_a_full_queue_they_do_not() -> None:
    """What leaves it is evenly spaced: it meets a sender, and what left another full queue."""
    one_sender, another_queue = [], []
    for seed in range(6):
        draw = random.Random(seed)
        first, second = (
            through(*(sender(name, 0.95, 1.0, draw) for name in pair)) for pair in ("ab", "cd")
        )
        left = shares(through(first, sender("e", 0.95, 1.0, draw)))
        one_sender.append(left.get("a", 0.0) + left.get("b", 0.0))
        left = shares(through(first, second))
        another_queue.append(left.get("a", 0.0) + left.get("b", 0.0))
        assert left.get("a", 0.0) == pytest.approx(left.get("b", 0.0), abs=0.03)
    assert spread(one_sender) > 0.2
    assert all(share < 0.01 or share > 0.99 for share in another_queue)
    assert spread(another_queue) > 0.9
