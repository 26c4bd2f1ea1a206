# SPDX-License-Identifier: BSD-3-Clause
"""Goals of a search for a load (RFC 9971, Search Goal), and those that are known by a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchGoal:
    """What a load must hold to be a lower bound, and how near the bounds must come.

    `loss_ratio` (0 to below 1): a trial that loses more is bad. `exceed_ratio` (0 to below 1): the
    part of the sum of durations that bad trials may take. `final_trial_s`: seconds of a full-length
    trial. `duration_sum_s`: seconds of them that decide. `initial_trial_s`: seconds of the first,
    short trials. `width`: the largest (upper - lower) / upper that ends the search.

    Raises ValueError, with the attribute, where one is outside of what RFC 9971 allows.
    """

    loss_ratio: float
    exceed_ratio: float
    final_trial_s: float
    duration_sum_s: float
    initial_trial_s: float = 1.0
    width: float = 0.005

    def __post_init__(self) -> None:
        if not (0 <= self.loss_ratio < 1 and 0 <= self.exceed_ratio < 1):
            raise ValueError("a goal's loss ratio and exceed ratio are at least 0 and below 1")
        if not 0 < self.final_trial_s <= self.duration_sum_s:
            raise ValueError("a goal's final trial is above 0 s and within its duration sum")
        if not 0 < self.initial_trial_s <= self.final_trial_s:
            raise ValueError("a goal's initial trial is above 0 s and no longer than its final one")
        if not 0 < self.width < 1:
            raise ValueError("a goal's width is above 0 and below 1")


RFC2544 = SearchGoal(0.0, 0.0, 60.0, 60.0)
"""RFC 2544's throughput as RFC 9971 words it: one trial of 60 s without loss."""

TST009 = SearchGoal(0.0, 0.5, 60.0, 120.0)
"""ETSI GS NFV-TST 009's binary search with loss verification, as RFC 9971 words it."""

NDR = SearchGoal(0.0, 0.5, 1.0, 21.0)
"""Non-drop rate, as FD.io CSIT searches it: no loss in more than half of 21 trials of 1 s."""

PDR = SearchGoal(0.005, 0.5, 1.0, 21.0)
"""Partial drop rate, as FD.io CSIT searches it: at most 0.5 % lost in more than half of them."""
