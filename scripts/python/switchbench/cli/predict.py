# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench predict`: the rate that each flow of a plan should get."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..base.errors import ConfigurationError
from ..base.format import of
from ..base.model import SCHEDULE, Run, Trial
from ..predict.measured import (
    ModelAccuracy,
    Seen,
    fits,
    measured_bps,
    offered_shares,
    share_close,
)
from ..predict.models import MODELS
from ..predict.predictor import PhasePrediction, Predictor, fabric_of, points
from ..predict.recorded import recorded_flows
from ..predict.results import Number, measured_trials
from ..records.plan_file import read_plan
from ..render.terminal.console import make_console
from ..render.terminal.predicted import SURE, PredictedRow, show_predicted
from .common import add_configuration, load_run, print_json

EXAMPLES = """\
examples:
  switchbench predict conf/two-modules.yaml
  switchbench predict conf/two-modules.yaml --models max-min,proportional --json
  switchbench predict results/20260101-120000-two-modules    beside what was measured
  switchbench predict conf/site.yaml --topology hall.yaml    a site of real hosts

Rates are at layer 1. The models are in doc/reference/topology.md. With a results directory each
flow is held against the rate that its destination saw (the median of its repeats); the error is
that of the time: (predicted - measured) / measured. "As offered" is the same for a model that is
told what the sources really sent. Collective operations have no rates to predict: their flows do
not all send at the same time.

--json writes one object:
  topology
  trials         [{trial, pattern, transport, load, phases, flows, models {NAME: {min_bps, mean_bps,
                 max_bps}}}]; with results also offered {min, mean}, interval {flows, median,
                 within_2_percent}, fits [{model, flows, close, mean_error, worst_error,
                 close_as_offered}], best first
  not_predicted  [{settings, of}]"""


_SCHEDULES = "collective operations and kernels, whose flows do not all send at the same time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
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
    """Prints what is predicted, beside what was measured where there are results."""
    results: Path | None = args.conf if args.conf is not None and args.conf.is_dir() else None
    run = load_run(args) if results is None else _run_of(args, results)
    fabric = fabric_of(run, args.topology)
    predictor = Predictor(fabric, args.models)
    askable = [trial for trial in points(run) if trial.traffic != SCHEDULE]
    excluded = len(points(run)) - len(askable)
    if not askable:
        raise ConfigurationError(f"nothing can be predicted of {_SCHEDULES}")
    trials = measured_trials(run, results) if results else {}
    rows = list(_rows(askable, predictor, results, trials))
    if args.json:
        document = {
            "topology": predictor.fabric.name,
            "trials": [_entry(row) for row in rows],
            "not_predicted": [{"settings": excluded, "of": _SCHEDULES}] if excluded else [],
        }
        print_json(document)
    else:
        show_predicted(rows, make_console())
        if excluded:
            make_console().print(f"not predicted: {of(excluded, 'setting')} of {_SCHEDULES}")
    return 0


def _run_of(args: argparse.Namespace, results: Path) -> Run:
    """The run that was measured, which can't be another one."""
    given = {"set": args.assignments, "site": args.site, "profile": args.profile}
    for name in (name for name, value in given.items() if value):
        raise ConfigurationError(
            f"--{name} goes with a configuration: {results} are results, of the configuration in it"
        )
    return read_plan(results)


def _rows(
    askable: Sequence[Trial],
    predictor: Predictor,
    results: Path | None,
    trials: Mapping[Number, Trial],
) -> Iterator[PredictedRow]:
    """Predict each trial; `trials`: those of the results, by their numbers there."""
    seen = measured_bps(trials, results) if results else Seen()
    for trial in askable:
        recorded = recorded_flows(trial, seen.pairs) if results else None
        predictions = list(predictor.predict(trial, seen.offered, recorded))
        widths = [
            width
            for each in predictions
            if trial.traffic == "stream"
            for width in seen.widths.get((trial.point, each.part.network, each.phase), {}).values()
        ]
        yield PredictedRow(
            trial,
            len(predictions),
            {model: _spread(predictions, model) for model in predictor.models_for(trial)},
            fits(trial, predictions, seen.delivered) if trial.traffic == "stream" else [],
            offered_shares(trial, predictions, seen.offered if trial.traffic == "stream" else {}),
            np.array(widths),
        )


def _spread(predictions: list[PhasePrediction], model: str) -> tuple[float, float, float]:
    rates = [prediction.rates[model] for prediction in predictions]
    mean = sum(float(each.sum()) for each in rates) / sum(each.size for each in rates)
    least, greatest = min(each.min() for each in rates), max(each.max() for each in rates)
    return float(least), mean, float(greatest)


def _entry(row: PredictedRow) -> dict[str, object]:
    names = ("min_bps", "mean_bps", "max_bps")
    trial = row.trial
    return {
        "trial": trial.id,
        "pattern": trial.pattern["name"],
        "transport": trial.transport,
        "load": {key: x for key, x in asdict(trial.load).items() if x is not None},
        "phases": row.phases,
        "flows": trial.flows,
        "models": {name: dict(zip(names, rates, strict=True)) for name, rates in row.rates.items()},
        "offered": {"min": float(row.offered.min()), "mean": float(row.offered.mean())}
        if row.offered.size
        else None,
        "interval": {
            "flows": int(row.widths.size),
            "median": float(np.median(row.widths)),
            "within_2_percent": float(np.mean(row.widths <= SURE)),
        }
        if row.widths.size
        else None,
        "fits": [_fit(fit) for fit in row.fits],
    }


def _fit(fit: ModelAccuracy) -> dict[str, object]:
    return {
        "model": fit.model,
        "flows": int(fit.errors.size),
        "close": fit.close,
        "mean_error": fit.mean,
        "worst_error": fit.worst,
        "close_as_offered": None if fit.offered_errors is None else share_close(fit.offered_errors),
    }
