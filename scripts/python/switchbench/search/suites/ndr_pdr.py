# SPDX-License-Identifier: BSD-3-Clause
"""Non-drop rate and partial drop rate, as FD.io CSIT searches them (RFC 9971)."""

from __future__ import annotations

from collections.abc import Mapping

from ..goals import SearchGoal
from ..multiple import LoadSearch
from .declaration import (
    Earlier,
    Method,
    Rows,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
)


def _goals(parameters: SuiteParameters) -> Mapping[str, SearchGoal]:
    """Both goals; they differ in the loss that they allow."""
    losses = {"ndr": parameters.ndr_loss_percent, "pdr": parameters.pdr_loss_percent}
    return {
        name: SearchGoal(
            loss_ratio=percent / 100,
            exceed_ratio=parameters.exceed_percent / 100,
            final_trial_s=parameters.trial_s,
            duration_sum_s=parameters.duration_sum_s,
            initial_trial_s=parameters.initial_s,
            width=parameters.width,
        )
        for name, percent in losses.items()
    }


def _search(setting: SuitePoint, _earlier: Earlier) -> Method | str:
    return LoadSearch(list(_goals(setting.parameters).values()), setting.loads)


def _no_rows(_setting: SuitePoint, _earlier: Earlier, _measured: SubtestTrials) -> Rows:
    """The table of searches has all of it."""
    return []


NDR_PDR = Suite(
    name="ndr-pdr",
    document="RFC 9971",
    title="Non-drop rate and partial drop rate (RFC 9971)",
    subtests=(
        Subtest(
            "loads", "", "Loads", "Highest loads that the goals allow.",
            None, _search, _no_rows, (), goals=_goals,
        ),
    ),
    sizes=(),
    parameters=SuiteParameters(trial_s=1.0),
    lab=SuiteParameters(trial_s=1.0),
    uses=(
        "trial_s", "duration_sum_s", "initial_s", "width", "ndr_loss_percent", "pdr_loss_percent",
        "exceed_percent",
    ),
    refused={},
    statements=(),
    deviations=(),
    load_percent=None,
)  # fmt: skip
