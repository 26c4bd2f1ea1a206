# SPDX-License-Identifier: BSD-3-Clause
"""What is predicted, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from ...analysis.hpcc import about_suite
from ...base.format import binary, digits
from ...base.format import pattern as pattern_of
from ...base.model import Trial
from ...config.steps import COMPOSITE
from ...predict import parameters
from ...predict.measured import CLOSE, ModelAccuracy, share_close
from ...predict.times import Time, TimePredictor
from ...topology.fabric.routes import Rates
from ..tables.table import Column, Entry, Spec, count, text
from .grid import note_lines, show

SURE = 0.02

"""The width of interval that the paper repeats for."""

OF_STEPS = ("flops", "late")  # options


@dataclass(frozen=True)
class PredictedRow:
    """What is predicted of one setting."""

    trial: Trial
    phases: int
    rates: dict[str, tuple[float, float, float]]
    """By model: the min, mean and max of all flows' rates."""
    times: list[Time]
    fits: list[ModelAccuracy]
    offered: Rates
    """What sources sent, as a share of what they were to send, by flow."""
    widths: Rates
    """Of the flows' 95 % intervals, as a share of the mean."""
    borrowed: tuple[str, ...] = ()
    """Whose parameters stand for its own, a sentence each."""


def show_predicted(
    rows: list[PredictedRow],
    known: list[parameters.Parameters],
    time_predictor: TimePredictor | None,
    console: Console,
) -> None:
    """Prints parameters, rates and times."""
    if time_predictor is not None:
        notes = _about_parameters(known, time_predictor)
        show(_PARAMETERS.on_terminal(known), console, _PARAMETERS.title, notes=notes)
    show(_RATES.on_terminal(_rates(rows)), console, _RATES.title)
    borrowed = [sentence for row in rows if row.times for sentence in row.borrowed]
    times = _TIMES.on_terminal(_times(rows))
    show(times, console, _TIMES.title, notes=list(dict.fromkeys(borrowed)))
    for row in rows:
        note_lines(console, _notes(row))


def _pattern(trial: Trial) -> str:
    if COMPOSITE in trial.parameters:
        return pattern_of({"pattern": COMPOSITE} | about_suite(trial, trial.parts[0]))
    return pattern_of({"pattern": trial.pattern["name"], "parameters": trial.parameters})


# --- parameters -----------------------------------------------------------------------------------


def _estimate(of: parameters.Estimate | None) -> str:
    if of is None:
        return digits(None)
    if of.low is None:
        return digits(of.value)
    return f"{digits(of.value)} ({digits(of.low)} to {digits(of.high)})"


_PARAMETERS = Spec(
    "parameters", "Fitted to ping-pong messages, with 95 % intervals", "",
    (
        text("path", "path", value=lambda each: each.path.words),
        text("t0 µs", "t0", value=lambda each: _estimate(each.hockney.latency_us)),
        text("r_inf Mbit/s", "r_inf", value=lambda each: _estimate(each.hockney.bandwidth_mbps)),
        text("n_1/2 B", "half", value=lambda each: _estimate(each.hockney.half_bytes)),
        Column("scale", "scale", "percent", "%", value=lambda each: each.hockney.residual_percent),
        Column("L", "L", unit="µs", value=lambda each: each.loggp.latency_us),
        Column("o", "o", unit="µs", value=lambda each: each.loggp.overhead_us),
        Column("g", "g", unit="µs", value=lambda each: each.loggp.gap_us),
        text("G ns/B", "G", value=lambda each: _estimate(each.loggp.byte_ns)),
    ),
    (),
)  # fmt: skip


def _about_parameters(
    known: list[parameters.Parameters], time_predictor: TimePredictor
) -> list[str]:
    notes = []
    for each in known:
        off = ", ".join(f"{size} B {r:+.0f} %" for size, r in each.hockney.residuals.items())
        notes.append(f"{each.path.words} is off the line by: {off}")
        notes += [f"{each.path.words}: {why}" for why in each.loggp.unknown]
    spent = time_predictor.between
    how = "as measured there" if spent.measured else "as `plan` reckons"
    return [
        *notes,
        f"beside the phases a plan takes {spent.once_s * 1000:.0f} ms, and "
        f"{spent.phase_s * 1000:.0f} ms for each of them, {how}",
    ]


# --- rates ----------------------------------------------------------------------------------------


def _rates(rows: Sequence[PredictedRow]) -> Iterator[Entry]:
    """Models in their order, or the best first where there is a measure."""
    for row in rows:
        lines = []
        trial, fitted = row.trial, {fit.model: fit for fit in row.fits}
        # Of a transfer, or of ping-pong messages, the time is asked for.
        why = "see its time" if row.times else "its time: --parameters"
        why = "not measured" if trial.traffic == "stream" else why
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


# --- times ----------------------------------------------------------------------------------------


def _times(rows: Sequence[PredictedRow]) -> Iterator[Entry]:
    for row in rows:
        trial, lines = row.trial, []
        for time in sorted(row.times, key=lambda time: time.what):
            line = {
                "trial": trial.id,
                "pattern": _pattern(trial),
                "ranks": max(about_suite(trial, part)["ranks"] for part in trial.parts),
                "transport": trial.transport,
                "size": _size(trial),
                "what": time.what,
                "predicted": time.predicted,
                "measured": time.measured,
                "error": None if time.error is None else 100 * time.error,
            }
            lines.append(((time.what, f"{time.predicted:.4g}"), time.model, line))
        yield from _alike(lines)


def _size(trial: Trial) -> str | None:
    """Of a message; an application kernel has several of its own, and so has HPCC."""
    if COMPOSITE in trial.parameters or (trial.steps and trial.steps.iterations):
        return None
    return binary(
        trial.document["transfer_bytes"] if trial.traffic == "transfer" else trial.sizes[0]
    )


_TIMES = Spec(
    "times", "Times", "",
    (
        count("trial", "trial"), text("pattern", "pattern"), count("ranks", "ranks"),
        text("transport", "transport"), text("size", "size", seldom=True), text("what", "what"),
        text("model", "models"), Column("predicted", "predicted", "scientific"),
        Column("measured", "measured", "scientific", seldom=True),
        Column("error", "error", "signed", "%", seldom=True),
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
