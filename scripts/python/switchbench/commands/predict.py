# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench predict`: what each flow of a plan should get, by models of contention."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ..compile import compile_run
from ..config import Request, read
from ..model import Run, Trial
from ..predict.measured import Fit, fits, measured_bps
from ..predict.models import MODELS
from ..predict.outlook import Oracle, Outlook, fabric_of, points
from ..results.directory import CONFIGURATION
from .common import add_command, add_configuration, load_run, make_console

EXAMPLES = """\
examples:
  switchbench predict conf/two-modules.yaml
  switchbench predict conf/two-modules.yaml --models max-min,proportional --json
  switchbench predict results/20260101-120000-two-modules    beside what was measured
  switchbench predict conf/site.yaml --topology hall.yaml    a site of real hosts

Rates are at layer 1. The models are in doc/topology.md. With a results directory each flow is held
against the rate that its destination saw (the median of its repeats); the error is that of the
time: (foretold - measured) / measured.

--json writes one object: topology, trials [{trial, pattern, transport, load, phases, flows,
models {NAME: {least_bps, mean_bps, greatest_bps}}, and with results fits [{model, flows, close,
mean_error, worst_error}], best first]}]"""


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser = add_command(
        subparsers, "predict", "foretell each flow's rate, and hold it against results", EXAMPLES
    )
    add_configuration(parser)
    parser.add_argument("--topology", metavar="FILE", help="the network of a site of real hosts")
    parser.add_argument(
        "--models", type=_models, default=list(MODELS), metavar="NAME,...", help=", ".join(MODELS)
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.set_defaults(main=main)


def _models(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no model {unknown[0]!r} (one of {', '.join(MODELS)})"
        )
    return names


@dataclass(frozen=True)
class _Row:
    """What is foretold of one setting."""

    trial: Trial
    phases: int
    rates: dict[str, tuple[float, float, float]]
    """By model: the least, mean and greatest of all flows' rates."""
    fits: list[Fit]


def main(args: argparse.Namespace) -> int:
    """Prints what is foretold, beside what was measured where there are results."""
    results: Path | None = args.conf if args.conf is not None and args.conf.is_dir() else None
    run = load_run(args) if results is None else compile_run(read(Request(results / CONFIGURATION)))
    oracle = Oracle(fabric_of(run, args.topology), args.models)
    rows = _rows(run, oracle, results)
    if args.json:
        trials = [_entry(row) for row in rows]
        json.dump({"topology": oracle.fabric.name, "trials": trials}, sys.stdout, indent=1)
        print()
    else:
        _show(rows, make_console(), results is not None)
    return 0


def _rows(run: Run, oracle: Oracle, results: Path | None) -> Iterator[_Row]:
    seen = measured_bps(run, results) if results else {}
    for trial in points(run):
        outlooks = list(oracle.foretell(trial))
        rates = {model: _spread(outlooks, model) for model in oracle.models_for(trial)}
        yield _Row(trial, len(outlooks), rates, fits(trial, outlooks, seen))


def _spread(outlooks: list[Outlook], model: str) -> tuple[float, float, float]:
    rates = np.concatenate([outlook.rates[model] for outlook in outlooks])
    return float(rates.min()), float(rates.mean()), float(rates.max())


def _entry(row: _Row) -> dict[str, Any]:
    names = ("least_bps", "mean_bps", "greatest_bps")
    trial = row.trial
    return {
        "trial": trial.id,
        "pattern": trial.pattern["name"],
        "transport": trial.transport,
        "load": trial.document["load"],
        "phases": row.phases,
        "flows": trial.flows,
        "models": {name: dict(zip(names, rates, strict=True)) for name, rates in row.rates.items()},
        "fits": [
            {
                "model": fit.model,
                "flows": int(fit.errors.size),
                "close": fit.close,
                "mean_error": fit.mean,
                "worst_error": fit.worst,
            }
            for fit in row.fits
        ],
    }


def _show(rows: Iterator[_Row], console: Console, measured: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("trial", "pattern", "transport", "model"):
        table.add_column(column)
    for column in ("flows", "min Mbit/s", "mean", "max"):
        table.add_column(column, justify="right")
    if measured:
        for column in ("within 10 %", "mean error", "worst"):
            table.add_column(column, justify="right")
    for row in rows:
        for cells in _lines(row, measured):
            table.add_row(*cells)
        table.add_section()
    console.print(table)


def _lines(row: _Row, measured: bool) -> Iterator[list[str]]:
    """One line a model: in the models' order, or the best first where there is a measure."""
    fitted = {fit.model: fit for fit in row.fits}
    trial = row.trial
    head = [str(trial.id), trial.pattern["name"], trial.transport]
    for model in fitted or row.rates:
        rates = [f"{bps / 1e6:.4g}" for bps in row.rates[model]]
        errors: list[str] = []
        if measured and model in fitted:
            fit = fitted[model]
            errors = [f"{fit.close:.1%}", f"{fit.mean:.1%}", f"{fit.worst:+.1%}"]
        elif measured:
            errors = ["not measured", "", ""]
        yield [*head, model, str(trial.flows), *rates, *errors]
        head = ["", "", ""]
