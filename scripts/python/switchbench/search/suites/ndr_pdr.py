# SPDX-License-Identifier: BSD-3-Clause
"""Non-drop rate and partial drop rate, as FD.io CSIT searches them (RFC 9971)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.measures import LESS, NEITHER, PERCENT
from ..drive import Steps
from ..goals import SearchGoal
from ..loads import LoadRange
from ..multiple import LoadSearch
from ..trials import ProposedTrial
from .declaration import (
    Earlier,
    Method,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    Value,
)
from .throughput import (
    LATE_SENDERS,
    LATENCY_DEFINITION,
    PHASES,
    latency_row,
    latency_values,
    load_value,
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


LATENCY_PARTS = (0.1, 0.5, 0.9)  # of NDR


class _LoadsAndLatency(LoadSearch):
    """The search, and then a trial at each part of NDR."""

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange, latency_s: float) -> None:
        super().__init__(goals, loads)
        self._latency_s = latency_s

    def steps(self) -> Steps:
        """Those of the search first."""
        yield from super().steps()
        ndr = self.result(None)[0].relevant_lower_bound or 0.0
        for load in _loads_of_latency(ndr):
            yield ProposedTrial(load, self._latency_s)


def _loads_of_latency(ndr: float) -> list[float]:
    return [part * ndr for part in LATENCY_PARTS if ndr]


def _search(point: SuitePoint, _earlier: Earlier) -> Method:
    asked = point.parameters
    return _LoadsAndLatency([*_goals(asked).values()], point.loads, asked.latency_s)


def _latency_rows(measured: SubtestTrials) -> Rows:
    ndr = measured.result[0].relevant_lower_bound or 0.0
    last = {trial.value: (trial, facts) for trial, facts in measured.trials}
    at = {load: [last[load]] for load in _loads_of_latency(ndr) if load in last}
    return [
        latency_row(replace(measured, trials=trials))
        | {
            "load_percent": load,
            "of_ndr": 100 * load / ndr,
            "rtt": trials[0][1].rtt_us.get("mean"),
        }
        for load, trials in at.items()
    ]


NDR_PDR = Suite(
    name="ndr-pdr",
    document="RFC 9971",
    title="Non-drop rate and partial drop rate (RFC 9971)",
    subtests=(
        Subtest(
            "loads", "", "Latency at parts of NDR",
            "The highest loads that the goals allow (table `searches`), then one trial of "
            "latency_s at each of 10, 50 and 90 % of NDR.",
            None, _search, _latency_rows,
            (
                Value("of_ndr", "of NDR", "%", "Load, of the non-drop rate", PERCENT, NEITHER,
                      of_setting=True),
                load_value(),
                *latency_values(LATENCY_DEFINITION),
                Value("rtt", "RTT mean", "us", "Round trips of the probes beside the load",
                      better=LESS),
            ),
            goals=_goals,
        ),
    ),
    sizes=(),
    parameters=SuiteParameters(trial_s=1.0, latency_s=5.0),
    lab=SuiteParameters(trial_s=1.0, latency_s=1.0),
    uses=(
        "trial_s", "duration_sum_s", "initial_s", "width", "ndr_loss_percent", "pdr_loss_percent",
        "exceed_percent", "latency_s",
    ),
    refused={},
    statements=(
        Statement("Search Goal", "MUST", "all attributes of each goal, optional ones too",
                  "table `searches`, columns loss ratio to goal width"),
        Statement("Goal Result", "MUST", "the relevant lower bound, or that there is none",
                  "table `searches`, columns lower bound and outcome"),
        Statement("Goal Result", "SHOULD", "the relevant upper bound, the conditional throughput",
                  "table `searches`, columns upper bound and throughput"),
        Statement("Load", "MUST", "what a load is, and the range that is searched",
                  "table `searches`, columns load unit, min load, max load: each sending port's"),
        Statement("Trial", "MUST", "deviations from the phases of a trial",
                  "sentence `Deviations`"),
    ),
    deviations=(
        PHASES,
        "The traffic is that of the configuration: any pattern, `pairs` by default.",
        "A tester-limited trial counts for no goal and is measured again.",
        LATE_SENDERS,
    ),
    load_percent=None,
)  # fmt: skip
