# SPDX-License-Identifier: BSD-3-Clause
"""What is predicted, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from ...base.format import digits
from ...base.format import pattern as pattern_of
from ...base.model import Trial
from ...predict.measured import CLOSE, ModelAccuracy, share_close
from ...topology.fabric.routes import Rates
from ..tables.table import Column, Entry, Spec, count, text
from .grid import note_lines, show

SURE = 0.02

"""The width of interval that the paper repeats for."""


@dataclass(frozen=True)
class PredictedRow:
    """What is predicted of one setting."""

    trial: Trial
    phases: int
    rates: dict[str, tuple[float, float, float]]
    """By model: the min, mean and max of all flows' rates."""
    fits: list[ModelAccuracy]
    offered: Rates
    """What sources sent, as a share of what they were to send, by flow."""
    widths: Rates
    """Of the flows' 95 % intervals, as a share of the mean."""


def show_predicted(rows: list[PredictedRow], console: Console) -> None:
    """Print the rates."""
    show(_RATES.on_terminal(_rates(rows)), console, _RATES.title)
    for row in rows:
        note_lines(console, _notes(row))


def _pattern(trial: Trial) -> str:
    return pattern_of({"pattern": trial.pattern["name"], "parameters": trial.parameters})


# --- rates ----------------------------------------------------------------------------------------


def _rates(rows: Sequence[PredictedRow]) -> Iterator[Entry]:
    """Models in their order, or the best first where there is a measure."""
    for row in rows:
        lines = []
        trial, fitted = row.trial, {fit.model: fit for fit in row.fits}
        why = "not measured" if trial.traffic == "stream" else "not a stream"
        for model in fitted or row.rates:
            low, mean, high = (bps / 1e6 for bps in row.rates[model])
            fit = fitted.get(model)
            sent = None if fit is None else fit.offered_errors
            line = {
                "trial": trial.id,
                "pattern": _pattern(trial),
                "transport": trial.transport,
                "flows": trial.flows,
                "min": low,
                "mean": mean,
                "max": high,
                "close": fit and 100 * fit.close,
                "error": fit and 100 * fit.mean,
                "worst": fit and 100 * fit.worst,
                "sent": None if sent is None else 100 * share_close(sent),
                "why": None if fit else why,
            }
            shown = [digits(each) if isinstance(each, float) else each for each in line.values()]
            lines.append((repr(shown), model, line))
        yield from _alike(lines)


def _alike(lines: Iterable[tuple[object, str, Entry]]) -> Iterator[Entry]:
    """Models that show the same stand in one line; each line with what it shows, and its model."""
    found: dict[object, tuple[Entry, list[str]]] = {}
    for said, model, line in lines:
        found.setdefault(said, (line, []))[1].append(model)
    return ({**line, "models": ", ".join(models)} for line, models in found.values())


_RATES = Spec(
    "rates", "Rates at layer 1", "",
    (
        count("trial", "trial"), text("pattern", "pattern"), text("transport", "transport"),
        text("model", "models"), count("flows", "flows"),
        *(Column(name, name, unit="Mbit/s") for name in ("min", "mean", "max")),
        Column("within 10 %", "close", "percent", "% of flows", seldom=True),
        Column("mean error", "error", "percent", "%", seldom=True),
        Column("worst", "worst", "signed", "%", seldom=True),
        Column("as offered", "sent", "percent", "% of flows", seldom=True),
        text("measured", "why", seldom=True),
    ),
    (),
)  # fmt: skip


def _notes(row: PredictedRow) -> str:
    """How much of the errors may be the measurement's."""
    words = []
    seen = row.fits[0].errors.size if row.fits else row.trial.flows
    if seen < row.trial.flows:
        words.append(f"{row.trial.flows - seen} of {row.trial.flows} flows have no measured rate")
    if row.offered.size and row.offered.min() < 1 - CLOSE / 2:
        few = float(np.mean(row.offered < 1 - CLOSE / 2))
        words.append(
            f"sources sent {row.offered.min():.0%} or more of their load, {few:.1%} of "
            "them less than 95 %"
        )
    if row.widths.size:
        words.append(
            f"95 % interval of a flow {np.median(row.widths):.1%} wide (median), at most "
            f"2 % for {np.mean(row.widths <= SURE):.0%}"
        )
    return f"trial {row.trial.id}: {'; '.join(words)}" if words else ""
