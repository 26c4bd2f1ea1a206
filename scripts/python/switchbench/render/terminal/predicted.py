# SPDX-License-Identifier: BSD-3-Clause
"""What is predicted, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ...analysis.hpcc import about_suite
from ...base.format import binary, digits
from ...base.format import pattern as pattern_of
from ...base.model import Trial
from ...config.steps import COMPOSITE
from ...predict import parameters
from ...predict.measured import CLOSE, ModelAccuracy, share_close
from ...predict.times import Foreteller, Time
from ...topology.fabric.routes import Rates

SURE = 0.02

"""The width of interval that the paper repeats for."""

OF_STEPS = ("flops", "late")  # options


@dataclass(frozen=True)
class PredictedRow:
    """What is foretold of one setting."""

    trial: Trial
    phases: int
    rates: dict[str, tuple[float, float, float]]
    """By model: the least, mean and greatest of all flows' rates."""
    times: list[Time]
    fits: list[ModelAccuracy]
    offered: Rates
    """What sources sent, as a share of what they were to send, by flow."""
    widths: Rates
    """Of the flows' 95 % intervals, as a share of the mean."""
    borrowed: tuple[str, ...] = ()
    """Whose parameters stand for its own, a sentence each."""


def show(
    rows: list[PredictedRow],
    known: list[parameters.Parameters],
    foreteller: Foreteller | None,
    measured: bool,
    console: Console,
) -> None:
    """Prints parameters, rates and times."""

    if foreteller is not None:
        _show_parameters(known, foreteller, console)
    if any(row.rates for row in rows):
        _show_rates([row for row in rows if row.rates], console, measured)
    if any(row.times for row in rows):
        _show_times(rows, console)
        for sentence in dict.fromkeys(s for row in rows if row.times for s in row.borrowed):
            console.print(sentence, style="dim")
    for row in rows:
        _show_doubts(row, console)


def _pattern(trial: Trial) -> str:
    if COMPOSITE in trial.parameters:
        return pattern_of({"pattern": COMPOSITE} | about_suite(trial, trial.parts[0]))
    return pattern_of({"pattern": trial.pattern["name"], "parameters": trial.parameters})


def _table(names: Sequence[str], figures: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in names:
        table.add_column(name)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def _show_parameters(
    known: list[parameters.Parameters], foreteller: Foreteller, console: Console
) -> None:
    titles = ("t0 µs", "r_inf Mbit/s", "n_1/2 B", "scale", "L µs", "o µs", "g µs", "G ns/B")
    table = _table(("path",), titles)
    for each in known:
        hockney, loggp = each.hockney, each.loggp
        table.add_row(
            each.path.words,
            _estimate(hockney.latency_us),
            _estimate(hockney.bandwidth_mbps),
            _estimate(hockney.half_bytes),
            f"{hockney.residual_percent:.1f} %",
            *(digits(x) for x in (loggp.latency_us, loggp.overhead_us, loggp.gap_us)),
            _estimate(loggp.byte_ns),
        )
    console.print("Fitted to messages there and back, with 95 % intervals", style="bold")
    console.print(table)
    for each in known:
        off = ", ".join(f"{size} B {r:+.0f} %" for size, r in each.hockney.residuals.items())
        console.print(f"{each.path.words} is off the line by: {off}", style="dim")
        for why in each.loggp.unknown:
            console.print(f"{each.path.words}: {why}", style="dim")
    spent = foreteller.between
    how = "as measured there" if spent.measured else "as `plan` reckons"
    console.print(
        f"beside the phases a plan takes {spent.once_s * 1000:.0f} ms, and "
        f"{spent.phase_s * 1000:.0f} ms for each of them, {how}",
        style="dim",
    )


def _estimate(of: parameters.Estimate | None) -> str:
    if of is None:
        return digits(None)
    if of.low is None:
        return digits(of.value)
    return f"{digits(of.value)} ({digits(of.low)} to {digits(of.high)})"


def _show_rates(rows: list[PredictedRow], console: Console, measured: bool) -> None:
    errors = ("within 10 %", "mean error", "worst", "as offered") if measured else ()
    table = _table(
        ("trial", "pattern", "transport", "model"),
        ("flows", "min Mbit/s", "mean", "max", *errors),
    )
    for row in rows:
        for cells in _lines(row, measured):
            table.add_row(*cells)
        table.add_section()
    console.print(table)


# Of a transfer, or of messages there and back; by whether times were foretold.
_ITS_TIME = {True: "see its time", False: "its time: --parameters"}


def _lines(row: PredictedRow, measured: bool) -> Iterator[list[str]]:
    """One line a model: in the models' order, or the best first where there is a measure."""
    fitted = {fit.model: fit for fit in row.fits}
    trial = row.trial
    head = [str(trial.id), _pattern(trial), trial.transport]
    for model in fitted or row.rates:
        rates = [digits(bps / 1e6) for bps in row.rates[model]]
        errors: list[str] = []
        if measured and model in fitted:
            fit = fitted[model]
            sent = fit.offered_errors
            told = "" if sent is None else f"{share_close(sent):.1%}"
            errors = [f"{fit.close:.1%}", f"{fit.mean:.1%}", f"{fit.worst:+.1%}", told]
        elif measured:
            why = {"stream": "not measured"}.get(trial.traffic, _ITS_TIME[bool(row.times)])
            errors = [why, "", "", ""]
        yield [*head, model, str(trial.flows), *rates, *errors]
        head = ["", "", ""]


def _show_times(rows: list[PredictedRow], console: Console) -> None:
    """Models that say the same stand in one line."""
    table = _table(
        ("trial", "pattern", "ranks", "transport", "size", "what", "model"),
        ("foretold", "measured", "error"),
    )
    table.columns[5].no_wrap = True  # HPCC's names
    for row in rows:
        trial = row.trial
        ranks = max(about_suite(trial, part)["ranks"] for part in trial.parts)
        head = [str(trial.id), _pattern(trial), str(ranks), trial.transport, _size(trial)]
        for time, models in _alike(row.times):
            error = "" if time.error is None else f"{time.error:+.1%}"
            figures = (_figure(time.foretold), _figure(time.measured), error)
            table.add_row(*head, time.what, ", ".join(models), *figures)
            head = [""] * len(head)
        if row.times:
            table.add_section()
    console.print(table)


def _size(trial: Trial) -> str:
    """Of a message; an application kernel has several of its own, and so has HPCC."""
    if COMPOSITE in trial.parameters or (trial.steps and trial.steps["iterations"]):
        return ""
    return binary(
        trial.document["transfer_bytes"] if trial.traffic == "transfer" else trial.sizes[0]
    )


def _figure(value: float | None) -> str:
    """HPCC's GB/s of a slow network are small numbers."""
    return digits(value) if value is None or value >= 1 else f"{value:.4g}"


def _alike(times: list[Time]) -> list[tuple[Time, list[str]]]:
    found: dict[tuple[str, str], tuple[Time, list[str]]] = {}
    for time in sorted(times, key=lambda time: time.what):
        shown = found.setdefault((time.what, _figure(time.foretold)), (time, []))
        shown[1].append(time.model)
    return list(found.values())


def _show_doubts(row: PredictedRow, console: Console) -> None:
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
    if words:
        console.print(f"trial {row.trial.id}: {'; '.join(words)}", style="dim", highlight=False)
