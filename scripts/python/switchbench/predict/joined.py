# SPDX-License-Identifier: BSD-3-Clause
"""Which trials of a results directory are which of a run: by what they are, not by their numbers.

Records say only a trial's number, and the summary beside them what it was. The plan of
another run numbers its trials otherwise, and would lend one trial the figures of another.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..analysis.known import fitted
from ..base import format
from ..base.errors import ConfigurationError
from ..base.model import Run, Trial
from ..records.directory import PLAN, SUMMARY, load_summary
from ..records.document.summary import SummaryDocument

Number = tuple[int, int]  # of a trial, and of its repeat
_PARTS = ("trials", "plans", "messages", "steps")


@dataclass
class Joined:
    """The trials of a results directory by their numbers there; `unmatched`: a sentence for each
    setting of the results that the run has not."""

    trials: dict[Number, Trial] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)


def sure_summary(directory: Path) -> SummaryDocument:
    """What predictions are compared with; ConfigurationError where any of it is damaged."""
    summary, known = fitted(load_summary(directory), _PARTS)
    for sentence in known.damage():
        raise ConfigurationError(f"{directory / SUMMARY}: {sentence}")
    return summary


def join(run: Run, directory: Path) -> Joined:
    """ConfigurationError where the results have no trial of the run."""
    plans: dict[Number, list[Mapping[str, Any]]] = defaultdict(list)
    for plan in sure_summary(directory)["plans"]:
        plans[plan["trial"], plan["repeat"]].append(plan)
    if not plans:
        raise ConfigurationError(
            f"{directory / SUMMARY} says of no trial that it was measured: `switchbench table "
            f"{directory} --again` rebuilds it from the records, if there are any"
        )
    waiting: dict[str, list[Trial]] = defaultdict(list)
    for trial in run.trials:
        waiting[_of_trial(trial)].append(trial)
    found = Joined()
    unmatched: dict[str, None] = {}
    for number, some in plans.items():
        alike = waiting[_of_plans(some)]
        if alike:
            # Two tests of one kind are told apart by their numbers.
            trial = next((one for one in alike if one.id == number[0]), alike[0])
            alike.remove(trial)
            found.trials[number] = trial
        else:
            unmatched[_words(some[0])] = None
    found.unmatched = list(unmatched)
    if not found.trials:
        raise ConfigurationError(
            f"{directory / PLAN} is not what {SUMMARY} beside it was measured with: "
            f"{found.unmatched[0]} was measured, which it has not, and nothing of it was (bring "
            "both back from where the results were made)"
        )
    return found


def _of_trial(trial: Trial) -> str:
    size: int | list[int] = trial.sizes[0] if len(trial.sizes) == 1 else list(trial.sizes)
    load = {name: value for name, value in asdict(trial.load).items() if value is not None}
    parts = [[part.network, len(part.ranks)] for part in trial.parts]
    return _identity(
        trial.repeat, trial.pattern["name"], trial.parameters, trial.transport, trial.traffic,
        size, load, parts,
    )  # fmt: skip


def _of_plans(plans: Sequence[Mapping[str, Any]]) -> str:
    """All networks of one trial."""
    first = plans[0]
    parts = [[plan["network"], plan["ranks"]] for plan in plans]
    names = ("repeat", "pattern", "parameters", "transport", "traffic", "size", "load")
    return _identity(*(first[name] for name in names), parts)


def _identity(*what: Any) -> str:
    *setting, parts = what
    return json.dumps([*setting, sorted(parts)], sort_keys=True)


def _words(plan: Mapping[str, Any]) -> str:
    ranks = format.of(plan["ranks"], "rank")
    return f"{format.pattern(plan)}, {ranks}, {plan['transport']}, {format.size(plan)}"
