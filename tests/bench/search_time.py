#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Seconds of trials that a search for a throughput takes, beside RFC 2544's plain binary search
with trials of 60 s and beside MLRsearch, on simulated devices of known truth.

    search_time.py [--seeds N]

No clock is read: what is summed is what the trials would take. Each seed is a device that forwards
between 2 and 98 % of line rate without loss; above that what it loses varies by half (log-normal),
every second one collapses under overload, and a buffer hides short overload. That noise moves a
partial drop rate itself, so fewer of its intervals hold where its truth would be without noise.
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import random
import sys
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/python"), str(ROOT / "tests/python")]

from common import verdict  # noqa: E402
from MLRsearch import (  # noqa: E402
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
)
from MLRsearch import SearchGoal as ReferenceGoal  # noqa: E402

from plain_search import PlainBinarySearch  # noqa: E402
from search_devices import LossyDevice, run  # noqa: E402
from switchbench.search.counts import CountSearch  # noqa: E402
from switchbench.search.goals import NDR, PDR, RFC2544, TST009, SearchGoal  # noqa: E402
from switchbench.search.loads import GoalResult, LoadRange  # noqa: E402
from switchbench.search.multiple import LoadSearch  # noqa: E402
from switchbench.search.trials import ProposedTrial, TrialLoss  # noqa: E402

LINE_RATE = 14_880_952.0
LOADS = LoadRange(LINE_RATE / 1000, LINE_RATE)
BUFFER = 200.0  # frames
REACH = 1 / 3


def device(seed: int) -> LossyDevice:
    """The same for each search of a seed."""
    rng = random.Random(seed)
    truth = rng.uniform(0.02, 0.98) * LINE_RATE
    return LossyDevice(truth, BUFFER, collapse=seed % 2 * 1.0, noise=0.5, rng=rng)


def truth_of(goal: SearchGoal, subject: LossyDevice) -> float:
    """The load above which a full trial of this goal is bad, but for noise."""
    overload = goal.loss_ratio / (1.0 + subject.collapse - goal.loss_ratio)
    hidden = BUFFER / goal.final_trial_s / (1.0 + subject.collapse)
    return subject.truth * (1.0 + overload) + hidden


def holds(goal: SearchGoal, result: GoalResult, subject: LossyDevice) -> bool:
    """Whether the interval has the width that was asked for and the truth in it."""
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    if not result.is_regular or lower is None or upper is None:
        return False
    return 1 - lower / upper <= goal.width and lower <= truth_of(goal, subject) < upper


def reference_s(goals: Sequence[SearchGoal], seed: int) -> float:
    """Seconds of trials of the reference implementation."""
    subject, used = device(seed), 0.0

    class Measurer(AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            nonlocal used
            used += intended_duration
            found = subject.measure(ProposedTrial(intended_load, intended_duration))
            return MeasurementResult(
                intended_duration, intended_load, found.offered, loss_count=found.lost
            )

    config = Config()
    config.max_load, config.min_load, config.warmup_duration = LOADS.max, LOADS.min, None
    config.search_duration_max = 1e9
    config.goals = [
        ReferenceGoal(
            goal.loss_ratio,
            goal.exceed_ratio,
            goal.width,
            goal.initial_trial_s,
            goal.final_trial_s,
            goal.duration_sum_s,
        )
        for goal in goals
    ]
    MultipleLossRatioSearch(config=config).search(Measurer(), debug=lambda _: None)
    return used


def compare(name: str, goals: Sequence[SearchGoal], seeds: int) -> tuple[float, int]:
    """Prints one row; the search's time by the plain one's, and how many intervals hold."""
    ours = plain = reference = longest = 0.0
    held = trials = 0
    for seed in range(seeds):
        subject = device(seed)
        search, _ = run(LoadSearch(goals, LOADS), subject.measure)
        held += all(map(holds, goals, search.result(), [subject] * len(goals)))
        ours += search.used_s
        trials += search.trials
        longest = max(longest, search.used_s)
        plain += sum(
            run(PlainBinarySearch(LOADS, goal), device(seed).measure)[0].used_s for goal in goals
        )
        reference += reference_s(goals, seed)
    print(
        f"{name:10} {ours / seeds:6.0f} s ({trials / seeds:.0f} trials, at most {longest:.0f} s)  "
        f"plain {plain / seeds:6.0f} s  MLRsearch {reference / seeds:6.0f} s  held {held}"
    )
    return ours / plain, held


def exact(seeds: int) -> int:
    """How many searches of bursts and of addresses found the planted number."""
    right = 0
    for seed in range(seeds):
        truth = random.Random(seed).randint(1, 500_000)

        def measure(trial: ProposedTrial, truth: int = truth) -> TrialLoss:
            number = round(trial.value)
            return TrialLoss(number, max(0, number - truth), trial.duration_s)

        for near in (None, 1):
            method = CountSearch(10**6, "frames", seconds_each=1e-4, near=near)
            right += run(method, measure)[0].result().longest == (truth,)
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    logging.disable()
    rows = {"rfc2544": [RFC2544], "tst009": [TST009], "both": [RFC2544, TST009]}
    rows |= {"ndr": [NDR], "pdr": [PDR], "ndr, pdr": [NDR, PDR]}
    found = {name: compare(name, goals, seeds) for name, goals in rows.items()}
    verdict("rfc2544 of the plain search's time", found["rfc2544"][0], REACH, at_most=True)
    verdict("both goals of the plain searches' time", found["both"][0], REACH, at_most=True)
    verdict("intervals with the truth", found["rfc2544"][1], seeds)
    verdict("bursts and tables exact to one", exact(seeds), 2 * seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
