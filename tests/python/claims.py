# SPDX-License-Identifier: BSD-3-Clause
"""How often `compare` claims a difference: of equal networks, and of rates that differ by 2 or 5 %.

Simulated are figures as a lab of two shared cores gave them (18 runs of the pairs of
conf/two-switches.yaml): rates deviate from repeat to repeat by 0.2 %, now and then down, and from
run to run by 0.1 %; times by 40 % in repeats and 50 % in runs, skewed. Each comparison has two
pairs with eight figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from switchbench.analysis.series import Floats
from switchbench.compare.cases import MEASURES
from switchbench.compare.comparison import (
    BETTER,
    WORSE,
    MeasureTest,
    Row,
    Sample,
    holm,
    sampled,
    welch,
)

PAIRS = 2
RATES = tuple(one for one in MEASURES if one.name in ("mean_rate", "slowest_rate", "of_line"))
TIMES = tuple(one for one in MEASURES if one.unit == "us" and one.name[-3:] in ("p50", "p99"))


@dataclass(frozen=True)
class Design:
    """Design of a comparison: how many runs and repeats each side has."""

    name: str
    runs: int = 1
    repeats: int = 5
    in_turn: bool = False  # in one run, which both then share


DESIGNS = (
    Design("one run of 5 repeats per side"),
    Design("one run of 3 repeats per side", repeats=3),
    Design("5 repeats in turn within one run", in_turn=True),
    Design("3 runs of 3 repeats per side", runs=3, repeats=3),
)


@dataclass(frozen=True)
class Noise:
    """Deviations as shares of the mean."""

    repeats: float
    runs: float

    def draw(self, random: np.random.Generator, design: Design, run: float) -> Floats:
        """Return the samples of one side; `run`: the deviation of a shared run."""
        made = []
        for _ in range(design.runs):
            left = random.exponential(1.0, (design.repeats, 1)) - 1.0
            own = run if design.in_turn else random.normal()
            made.append(np.exp(self.runs * own) * np.exp(self.sign * self.repeats * left))
        return sampled(made)

    @property
    def sign(self) -> float:
        """Return -1 for rates, which fall now and then, and 1 for times, which rise."""
        return -1.0 if self.repeats < 0.05 else 1.0


OF_RATES, OF_TIMES = Noise(0.002, 0.001), Noise(0.4, 0.5)


def claimed(random: np.random.Generator, design: Design, difference: float) -> list[Row]:
    """Return the rows of one comparison that claim a difference.

    `difference` is that of all rates, as a share.
    """
    tests = []
    single = design.runs == 1 and not design.in_turn
    for pair in range(PAIRS):
        for measure in (*RATES, *TIMES[: 8 - len(RATES)]):
            noise, run = OF_RATES if measure in RATES else OF_TIMES, random.normal()
            base, other = (noise.draw(random, design, run) for _ in range(2))
            other = other * (1.0 + difference) if noise is OF_RATES else other
            shared = measure.between_runs if single else 0.0
            sides = [Sample(side, shared, measure.rounding) for side in (base, other)]
            tests.append(MeasureTest(pair, measure, welch(*sides)))
    corrected = holm(np.array([test.welch.p[0] for test in tests]))
    rows = (test.row(p) for test, p in zip(tests, corrected, strict=True))
    return [row for row in rows if row["verdict"] in (BETTER, WORSE)]


def share_claiming(design: Design, comparisons: int, seed: int) -> float:
    """Return the share of comparisons of equal networks that claim a difference."""
    random = np.random.default_rng(seed)
    return sum(bool(claimed(random, design, 0.0)) for _ in range(comparisons)) / comparisons


def share_found(design: Design, difference: float, comparisons: int, seed: int) -> float:
    """Return the share of comparisons that find the difference of the mean rate, in both pairs."""
    random, found = np.random.default_rng(seed), 0
    for _ in range(comparisons):
        pairs = {
            row["pair"]
            for row in claimed(random, design, difference)
            if (row["measure"], row["verdict"]) == ("mean_rate", WORSE)
        }
        found += len(pairs) == PAIRS
    return found / comparisons
