# SPDX-License-Identifier: BSD-3-Clause
"""How many addresses a device holds, and how quickly it learns them (RFC 2889, 5.7 and 5.8)."""

from __future__ import annotations

from ...base.model import Load
from ..counts import CountResult, CountSearch
from ..outcomes import Reached
from .bursts import capped
from .declaration import (
    Earlier,
    Method,
    Rows,
    SubtestTrials,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
)
from .methods import RateResult, RateSearch

ADDRESS_LOAD_PERCENT = 10.0  # of the frames that look for learned addresses
ADDRESS_KEYS = {
    "traffic": "burst", "loads": [Load(percent=ADDRESS_LOAD_PERCENT)], "flood_limit": 0,
    "frame_sizes": [64],
}  # fmt: skip
LEARNING_RANGE = 256.0  # from the lowest to the highest learning rate


def not_learned(facts: TrialFacts) -> int:
    """Frames for addresses that the device did not have: it flooded them, or dropped them."""
    return facts.flooded + facts.lost


def search_addresses(point: SuitePoint, _earlier: Earlier) -> Method | str:
    """The search of 5.7, or why the device would forget meanwhile."""
    asked = point.parameters
    most, rate = int(asked.addresses_max), asked.learning_fps
    test_fps = point.fps(ADDRESS_LOAD_PERCENT) or rate
    trial_s = most / rate + most / test_fps
    if trial_s > asked.ageing_s:
        return _forgets(asked, f"a trial of {most} addresses takes", trial_s, "addresses_max",
                        "learning_fps")  # fmt: skip
    return CountSearch(most, "addresses", seconds_each=1 / rate, near=1, confirms=True)


def _forgets(asked: SuiteParameters, what: str, takes_s: float, lower: str, higher: str) -> str:
    return (
        f"Not measured: the device forgets an address after ageing_s, {asked.ageing_s:g} s, and "
        f"{what} {takes_s:.0f} s: lower {lower}, or raise {higher}."
    )


def search_learning_rate(point: SuitePoint, _earlier: Earlier) -> Method | str:
    """The search of 5.8, or why the device would forget meanwhile."""
    asked = point.parameters
    events = int(asked.learning_addresses)
    slowest = asked.learning_fps_max / LEARNING_RANGE
    if events / slowest > asked.ageing_s:
        return _forgets(asked, f"{events} addresses at {slowest:g} frames/s take", events / slowest,
                        "learning_addresses", "learning_fps_max")  # fmt: skip
    return RateSearch(
        events, slowest, asked.learning_fps_max, asked.learning_width, "learning frames/s"
    )


def learning_rate_rows(measured: SubtestTrials) -> Rows:
    """One row."""
    found: RateResult = measured.result
    return [
        {
            "address_learning_rate": None if capped(measured) else found.highest,
            "upper_bound_rate": found.lowest_failing,
            "addresses": int(measured.point.parameters.learning_addresses),
            "learning_trials": len(measured.trials),
        }
    ]


def address_rows(measured: SubtestTrials) -> Rows:
    """One row. Each other port has an address in the table, too."""
    found: CountResult = measured.result
    in_table = found.holds + len(measured.point.ports) - 1
    return [
        {
            "address_capacity": in_table if isinstance(found.outcome, Reached) else None,
            "learned": found.holds or None,
            "learning_rate": measured.point.parameters.learning_fps,
        }
    ]
