# SPDX-License-Identifier: BSD-3-Clause
"""Predicted rates on a terminal, beside measured ones where there are results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console

from ...base import format
from ...predict.measured import PredictedTrial, share_close
from ..tables.table import Column, Entry, Spec, count, text
from .grid import note_lines, show

RATES = Spec(
    "rates", "Rates at layer 1", "",
    (
        count("trial", "trial"), text("pattern", "pattern"), text("transport", "transport"),
        text("model", "models"), count("flows", "flows"),
        *(Column(name, name, unit="Mbit/s") for name in ("min", "mean", "max")),
        Column("within 10 %", "close", "percent", "% of flows", seldom=True),
        Column("mean error", "error", "percent", "%", seldom=True),
        Column("worst", "worst", "signed", "%", seldom=True),
        text("measured", "why", seldom=True),
    ),
    (),
)  # fmt: skip


def show_predicted(found: Sequence[PredictedTrial], console: Console) -> None:
    """Print the rates, and how many flows have no measured one."""
    rows = [row for one in found for row in _rows(one)]
    show(RATES.on_terminal(rows), console, RATES.title)
    for one in found:
        if 0 < one.known < one.trial.flows:
            left = f"{one.trial.flows - one.known} of {one.trial.flows} flows"
            note_lines(console, f"trial {one.trial.id}: {left} have no measured rate")


def _rows(one: PredictedTrial) -> Iterator[Entry]:
    """Yield a row for each model, the best first; models that show the same share one."""
    alike: dict[str, Entry] = {}
    trial = one.trial
    why = "not measured" if trial.traffic == "stream" else "not a stream"
    for model in one.best_first():
        bps = one.rates[model]
        row: dict[str, object] = {
            "trial": trial.id,
            "pattern": format.pattern(
                {"pattern": trial.pattern["name"], "parameters": trial.parameters}
            ),
            "transport": trial.transport,
            "flows": trial.flows,
            "min": bps.min() / 1e6,
            "mean": bps.mean() / 1e6,
            "max": bps.max() / 1e6,
            "why": None if one.known else why,
        }
        if one.known:
            errors = 100 * one.errors(model)
            row |= {
                "close": 100 * share_close(errors / 100),
                "error": np.abs(errors).mean(),
                "worst": errors[np.abs(errors).argmax()],
            }
        shown = [format.digits(each) if isinstance(each, float) else each for each in row.values()]
        same = alike.get(repr(shown))
        models = f"{same['models']}, {model}" if same else model
        alike[repr(shown)] = row | {"models": models}
    yield from alike.values()
