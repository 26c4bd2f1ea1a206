# SPDX-License-Identifier: BSD-3-Clause
"""Non-drop rate and partial drop rate, as FD.io CSIT searches them (RFC 9971)."""

from __future__ import annotations

from collections.abc import Mapping

from ..goals import GOALS, SearchGoal
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


def _goals(_parameters: SuiteParameters) -> Mapping[str, SearchGoal]:
    return {name: GOALS[name] for name in ("ndr", "pdr")}


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
    parameters=SuiteParameters(),
    lab=SuiteParameters(),
    uses=(),
    refused={},
    statements=(),
    deviations=(),
    load_percent=None,
)  # fmt: skip
