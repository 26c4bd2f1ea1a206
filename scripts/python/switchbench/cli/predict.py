# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench predict`: what each flow of a plan should get, and how long it should take."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ..analysis.hpcc import suite_of
from ..base.errors import ConfigurationError
from ..base.format import of
from ..base.model import SCHEDULE, Run, Trial
from ..base.quantities import FLOPS, duration_ns
from ..config.steps import COMPOSITE
from ..predict import parameters
from ..predict.measured import (
    ModelAccuracy,
    Seen,
    fits,
    measured_bps,
    offered_shares,
    share_close,
)
from ..predict.measured_times import measured_times
from ..predict.models import MODELS
from ..predict.predictor import PhasePrediction, Predictor, fabric_of, points
from ..predict.recorded import recorded_flows
from ..predict.results import Number, measured_trials
from ..predict.times import Time, TimePredictor, between
from ..records.plan_file import read_plan
from ..render.terminal.console import make_console
from ..render.terminal.predicted import OF_STEPS, SURE, PredictedRow, show_predicted
from .common import add_configuration, load_run, print_json, said

EXAMPLES = """\
examples:
  switchbench predict conf/two-modules.yaml
  switchbench predict conf/two-modules.yaml --models max-min,proportional --json
  switchbench predict results/20260101-120000-two-modules    beside what was measured
  switchbench predict conf/site.yaml --topology hall.yaml    a site of real hosts
  switchbench predict results/exchange --parameters results/parameters    times, too

Rates are at layer 1. The models are in doc/reference/topology.md. With a results directory each
flow is held against the rate that its destination saw (the median of its repeats); the error is
that of the time: (predicted - measured) / measured. "As offered" is the same for a model that is
told what the sources really sent. --parameters names ping-pong results
(conf/parameters.yaml), to which latency and gaps are fitted: then the times of transfers and of
messages are predicted. Of tests whose ranks go on step by step only the times are predicted, of a
repetition: their flows do not all send at the same time; of HPCC's suite what it reports. --flops
says how fast a rank computes (application kernels), --late by how much ranks are held up between
steps.

--json writes one object:
  topology, flops, late_s
  parameters     [{transport, network, points, hockney, loggp, by_steps}]
  trials         [{trial, pattern, transport, load, phases, flows, models {NAME: {min_bps, mean_bps,
                 max_bps}}, times [{what, model, predicted, measured, error}]}]; with results also
                 offered {min, mean}, interval {flows, median, within_2_percent}, fits [{model,
                 flows, close, mean_error, worst_error, close_as_offered}], best first
  not_predicted  [{settings, of}]"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_configuration(parser, "; or a results directory")
    parser.add_argument("--topology", metavar="FILE", help="the network of a site of real hosts")
    parser.add_argument(
        "--parameters",
        metavar="RESULTS",
        type=Path,
        help="ping-pong results: predict times, too",
    )
    parser.add_argument(
        "--flops",
        metavar="SPEED",
        type=said(_flops),
        help="floating point operations of a rank that computes between its steps, e.g. "
        "1.2GFlop/s; else computing takes no time",
    )
    parser.add_argument(
        "--late",
        metavar="TIME",
        type=said(lambda text: duration_ns(text) / 1e9),
        default=0.0,
        help="by how much a rank goes on later after each step, in the mean (drawn), e.g. 20us: "
        "what a host's other work does to steps",
    )
    parser.add_argument(
        "--models",
        type=_models,
        default=list(MODELS),
        metavar="NAME,...",
        help=f"some of {', '.join(MODELS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


def _flops(text: str) -> float:
    speed = float(FLOPS.parse(text))
    if not speed:
        raise ValueError(f"{text}: who computes nothing is never through")
    return speed


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
    for name in (name for name in OF_STEPS if getattr(args, name) and not args.parameters):
        raise ConfigurationError(f"--{name} is for times, which are predicted with --parameters")
    results: Path | None = args.conf if args.conf is not None and args.conf.is_dir() else None
    run = load_run(args) if results is None else _run_of(args, results)
    fabric = fabric_of(run, args.topology)
    known = parameters.measured(args.parameters) if args.parameters else []
    time_predictor = _time_predictor(run, known, args) if known else None
    predictor = Predictor(fabric, args.models, time_predictor)
    by_steps = any(trial.traffic == SCHEDULE for trial in run.trials)
    for name in (name for name in OF_STEPS if getattr(args, name) and not by_steps):
        raise ConfigurationError(f"--{name} is for tests with dependent steps, and none has them")
    askable, excluded = _askable(run, predictor)
    if not askable:
        raise ConfigurationError(f"nothing can be predicted of {' and of '.join(excluded)}")
    trials = measured_trials(run, results) if results else {}
    rows = list(_rows(askable, predictor, results, trials, excluded))
    if args.json:
        document = {
            "topology": predictor.fabric.name,
            "parameters": [asdict(each) for each in known],
            "flops": args.flops,
            "late_s": args.late,
            "trials": [_entry(row) for row in rows],
            "not_predicted": [{"settings": n, "of": why} for why, n in excluded.items()],
        }
        print_json(document)
    else:
        show_predicted(rows, known, time_predictor, make_console())
        for why, settings in excluded.items():
            make_console().print(f"not predicted: {of(settings, 'setting')} of {why}")
    return 0


def _run_of(args: argparse.Namespace, results: Path) -> Run:
    """The run that was measured, which can't be another one."""
    given = {"set": args.assignments, "site": args.site, "profile": args.profile}
    for name in (name for name, value in given.items() if value):
        raise ConfigurationError(
            f"--{name} goes with a configuration: {results} are results, of the configuration in it"
        )
    return read_plan(results)


def _askable(run: Run, predictor: Predictor) -> tuple[list[Trial], Counter[str]]:
    """One trial of each setting; and those of which nothing is predicted, counted by the reason."""
    askable, excluded = [], Counter[str]()
    for trial in points(run):
        why = predictor.reservation(trial)
        if why:
            excluded[why] += 1
        else:
            askable.append(trial)
    return askable, excluded


def _time_predictor(
    run: Run, known: list[parameters.Parameters], args: argparse.Namespace
) -> TimePredictor:
    """Refused where no transport of the run was measured."""
    wanted = {trial.transport for trial in run.trials}
    if not any(each.transport in wanted for each in known):
        measured = " and ".join(sorted({each.transport for each in known}))
        raise ConfigurationError(
            f"{args.parameters} has parameters of {measured}, "
            f"and the run sends by {' and '.join(sorted(wanted))}"
        )
    by_path = {each.path: each for each in known}
    beside = between(run.site, args.parameters)
    return TimePredictor(by_path, beside, args.flops or np.inf, args.late)


def _rows(
    askable: Sequence[Trial],
    predictor: Predictor,
    results: Path | None,
    trials: Mapping[Number, Trial],
    excluded: Counter[str],
) -> Iterator[PredictedRow]:
    """`trials`: of the results, by their numbers there; what is too much is added to `excluded`."""
    seen = measured_bps(trials, results) if results else Seen()
    took = measured_times(trials, results) if results and predictor.knows_times else {}
    for some in _suites(askable):
        trial = some[0]
        if trial.traffic == SCHEDULE:
            times = _beside(predictor.predict_steps(some), trial, took)
            if times:
                none = np.empty(0)
                lent = predictor.borrowed(trial)
                yield PredictedRow(trial, trial.phases, {}, times, [], none, none, lent)
            else:
                excluded["dependent steps with too many messages at a time"] += len(some)
            continue
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
            _beside(predictor.time_of(trial, predictions), trial, took),
            fits(trial, predictions, seen.delivered) if trial.traffic == "stream" else [],
            offered_shares(trial, predictions, seen.offered if trial.traffic == "stream" else {}),
            np.array(widths),
            predictor.borrowed(trial),
        )


def _suites(trials: Iterable[Trial]) -> Iterable[list[Trial]]:
    """Each by itself, but for those of one run of HPCC's suite."""
    found: dict[object, list[Trial]] = {}
    for trial in trials:
        suite = COMPOSITE in trial.parameters
        key = suite_of(trial, trial.parts[0]) if suite else trial.point
        found.setdefault(key, []).append(trial)
    return found.values()


def _beside(times: list[Time], trial: Trial, took: Mapping[tuple[int, str], float]) -> list[Time]:
    """The times with what was measured."""
    return [replace(time, measured=took.get((trial.point, time.what))) for time in times]


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
        "pattern": COMPOSITE if COMPOSITE in trial.parameters else trial.pattern["name"],
        "transport": trial.transport,
        "load": trial.document["load"],
        "phases": row.phases,
        "flows": trial.flows,
        "models": {name: dict(zip(names, rates, strict=True)) for name, rates in row.rates.items()},
        "times": [asdict(time) | {"error": time.error} for time in row.times],
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
