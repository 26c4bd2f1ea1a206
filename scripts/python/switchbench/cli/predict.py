# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench predict`: the rate that each flow of a plan should get."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..base.errors import ConfigurationError
from ..base.format import of
from ..base.model import SCHEDULE, Run
from ..predict.measured import (
    PredictedTrial,
    measured_bps,
    measured_trials,
    predicted,
    share_close,
)
from ..predict.models import MODELS
from ..predict.predictor import Predictor, fabric_of, points
from ..records.plan_file import read_plan
from ..render.terminal.console import make_console
from ..render.terminal.predicted import show_predicted
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
        show_predicted(found, make_console())
        if excluded:
            make_console().print(f"not predicted: {of(excluded, 'setting')} of {_SCHEDULES}")
    return 0


def _run_of(args: argparse.Namespace, results: Path) -> Run:
    """Return the run that was measured, which can't be another one."""
    given = {"set": args.assignments, "site": args.site, "profile": args.profile}
    for name in (name for name, value in given.items() if value):
        raise ConfigurationError(
            f"--{name} goes with a configuration: {results} are results, of the configuration in it"
        )
    return read_plan(results)


def _entry(one: PredictedTrial) -> dict[str, object]:
    trial = one.trial
    errors = {model: one.errors(model) for model in one.best_first()} if one.known else {}
    return {
        "trial": trial.id,
        "pattern": trial.pattern["name"],
        "transport": trial.transport,
        "load": {key: x for key, x in asdict(trial.load).items() if x is not None},
        "phases": one.phases,
        "flows": trial.flows,
        "models": {
            name: {
                "min_bps": float(bps.min()),
                "mean_bps": float(bps.mean()),
                "max_bps": float(bps.max()),
            }
            for name, bps in one.rates.items()
        },
        "fits": [
            {
                "model": model,
                "flows": int(error.size),
                "close": share_close(error),
                "mean_error": float(np.abs(error).mean()),
                "worst_error": float(error[np.abs(error).argmax()]),
            }
            for model, error in errors.items()
        ],
    }
