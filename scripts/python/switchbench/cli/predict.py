# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench predict`: the rate that each flow of a plan should get."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ..base import format
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE, Run
from ..predict.models import MODELS
from ..predict.predictor import (
    PredictedTrial,
    Predictor,
    fabric_of,
    measured_bps,
    measured_trials,
    points,
    predicted,
    share_close,
)
from ..records.plan_file import read_plan
from ..render.printer import Column, Spec, count, make_console, note_lines, show, text
from .common import add_configuration, load_run, print_json

_SCHEDULES = "collective operations and kernels, whose flows do not all send at the same time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_configuration(parser, "; or a results directory")
    parser.add_argument("--topology", metavar="FILE", help="the network of a site of real hosts")
    parser.add_argument(
        "--models",
        type=_models,
        default=list(MODELS),
        metavar="NAME,...",
        help=f"some of {', '.join(MODELS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


def _models(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no model {unknown[0]!r} (one of {', '.join(MODELS)})"
        )
    return names


def main(args: argparse.Namespace) -> int:
    """Print what is predicted, beside what was measured where there are results."""
    results: Path | None = args.conf if args.conf is not None and args.conf.is_dir() else None
    run = load_run(args) if results is None else _run_of(args, results)
    predictor = Predictor(fabric_of(run, args.topology), args.models)
    askable = [trial for trial in points(run) if trial.traffic != SCHEDULE]
    excluded = len(points(run)) - len(askable)
    if not askable:
        raise ConfigurationError(f"nothing can be predicted of {_SCHEDULES}")
    seen = measured_bps(measured_trials(run, results), results) if results else None
    found = [predicted(trial, predictor, seen) for trial in askable]
    if args.json:
        print_json({
            "topology": predictor.fabric.name,
            "trials": [_entry(one) for one in found],
            "not_predicted": [{"settings": excluded, "of": _SCHEDULES}] if excluded else [],
        })  # fmt: skip
    else:
        _show(found, make_console())
        if excluded:
            make_console().print(f"not predicted: {format.of(excluded, 'setting')} of {_SCHEDULES}")
    return 0


def _run_of(args: argparse.Namespace, results: Path) -> Run:
    """Return the run that was measured, which can't be another one."""
    given = {"set": args.assignments, "site": args.site, "profile": args.profile}
    for name in (name for name, value in given.items() if value):
        raise ConfigurationError(
            f"--{name} goes with a configuration: {results} are results, of the configuration in it"
        )
    return read_plan(results)


_RATES = Spec(
    "rates", "Rates at layer 1", "",
    (
        count("trial", "trial"), text("pattern", "words"), text("transport", "transport"),
        text("model", "model"), count("flows", "flows"),
        *(Column(name, f"{name}_bps", unit="Mbit/s") for name in ("min", "mean", "max")),
        Column("within 10 %", "close", "percent", "% of flows", seldom=True),
        Column("mean error", "mean_error", "percent", "%", seldom=True),
        Column("worst", "worst_error", "signed", "%", seldom=True),
        text("measured", "why", seldom=True),
    ),
    (),
)  # fmt: skip


def _show(found: Sequence[PredictedTrial], console: Console) -> None:
    """Print the rates, and how many flows have no measured one.

    A row for each model, the best first; models that show the same share one.
    """
    rows: dict[str, dict[str, Any]] = {}
    for one in found:
        trial = one.trial
        why = "not measured" if trial.traffic == "stream" else "not a stream"
        about = {
            "trial": trial.id,
            "words": format.pattern(
                {"pattern": trial.pattern["name"], "parameters": trial.parameters}
            ),
            "transport": trial.transport,
            "flows": trial.flows,
            "why": None if one.known else why,
        }
        for model in one.best_first():
            row = about | {key: bps / 1e6 for key, bps in _rates(one, model).items()}
            if one.known:
                row |= {key: 100 * share for key, share in _fit(one, model).items()}
            shown = {key: format.digits(each) if isinstance(each, float) else each
                     for key, each in row.items()}  # fmt: skip
            same = rows.setdefault(repr(shown), row)
            same["model"] = ", ".join(filter(None, (same.get("model"), model)))
    show(_RATES.on_terminal(rows.values()), console, _RATES.title)
    for one in found:
        if 0 < one.known < one.trial.flows:
            left = f"{one.trial.flows - one.known} of {one.trial.flows} flows"
            note_lines(console, f"trial {one.trial.id}: {left} have no measured rate")


def _rates(one: PredictedTrial, model: str) -> dict[str, float]:
    bps = one.rates[model]
    return {
        "min_bps": float(bps.min()), "mean_bps": float(bps.mean()), "max_bps": float(bps.max())
    }  # fmt: skip


def _fit(one: PredictedTrial, model: str) -> dict[str, float]:
    """Return how near a model comes to what was measured."""
    error = one.errors(model)
    return {
        "close": share_close(error),
        "mean_error": float(np.abs(error).mean()),
        "worst_error": float(error[np.abs(error).argmax()]),
    }


def _entry(one: PredictedTrial) -> dict[str, object]:
    trial = one.trial
    return {
        "trial": trial.id,
        "pattern": trial.pattern["name"],
        "transport": trial.transport,
        "load": {key: x for key, x in asdict(trial.load).items() if x is not None},
        "phases": one.phases,
        "flows": trial.flows,
        "models": {name: _rates(one, name) for name in one.rates},
        "fits": [
            {"model": model, "flows": one.known, **_fit(one, model)}
            for model in (one.best_first() if one.known else ())
        ],
    }
