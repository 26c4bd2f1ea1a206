# SPDX-License-Identifier: BSD-3-Clause
"""Trials that tell suspects apart (`switchbench run --locate`): a list of flows, sent as those of a
trial of the run were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.model import Part, Pattern, Repeats, Run, Trial

Flows = Sequence[Sequence[str]]  # pairs of ports


def locating_trial(run: Run, flows: Flows, transport: str, load_percent: float) -> Trial | None:
    """Return a trial of these flows; None where there are none, or where no trial of the run shows
    how to send them."""
    found = _model(run, flows, transport, load_percent)
    if not flows or found is None:
        return None
    model, part = found
    number = {port.name: rank for rank, port in enumerate(part.ranks)}
    identity = max(trial.id for trial in (*run.trials, *run.again)) + 1
    pattern: Pattern = {
        "name": "flows",
        "list": [number[end] for pair in flows for end in pair],
    }
    return replace(
        model,
        id=identity,
        repeat=0,
        point=max(trial.point for trial in run.trials) + 1,
        repeats=Repeats(),
        parts=(part,),
        pattern=pattern,
        parameters={"flows": [list(pair) for pair in flows]},
        phases=1,
        flows=len(flows),
        expected_s=model.expected_s / model.phases,
        locating=True,
        connectivity_check=False,
    )


def _model(
    run: Run, flows: Flows, transport: str, load_percent: float
) -> tuple[Trial, Part] | None:
    """Return the trial of the nearest load whose ports the flows are among, and its part."""
    ends = {end for pair in flows for end in pair}
    fitting = [
        (abs((trial.load.percent or 0.0) - load_percent), trial.id, trial, part)
        for trial in run.trials
        if trial.transport == transport and trial.traffic == "stream" and not trial.own
        for part in trial.parts
        if ends <= {port.name for port in part.ranks} and "load_of" not in trial.pattern
    ]
    if not fitting:
        return None
    _, _, trial, part = min(fitting, key=lambda one: one[:2])
    return trial, part
