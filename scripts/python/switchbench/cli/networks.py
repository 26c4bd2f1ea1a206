# SPDX-License-Identifier: BSD-3-Clause
"""Commands on a network's topology: `topology import`, `predict` and `locate`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.summary import gather
from ..base import format, quantities
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE
from ..base.node_names import node_set
from ..base.source import decoded, read_regular, write_text
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
from ..records.directory import CONFIGURATION, PLAN, SUMMARY, read_plan
from ..records.store import cut_streams, finish, has_tables
from ..records.summary_form import NOTHING_LOCATED, Entry, LocationEntry
from ..render.printer import (
    Column,
    Spec,
    count,
    heading,
    listed,
    make_console,
    note_lines,
    say,
    show,
    text,
)
from ..topology import cabling, ibnetdiscover, topology
from ..topology.fabric import from_topology, wired
from ..topology.topology import parse
from . import common
from .common import load_run, print_json

# --- topology -------------------------------------------------------------------------------------


_MOST_BYTES = 64 << 20  # a subnet of 10,000 hosts has 10 MB


def topology_import_command(args: argparse.Namespace) -> int:
    """Write a topology file, checked, from the output of LLDP or ibnetdiscover."""
    if args.ibnetdiscover is not None:
        if args.interface or args.switches:
            raise ConfigurationError(
                "--interface and --switches can be used only with --lldp: leave them out"
            )
        name = args.ibnetdiscover
        found = ibnetdiscover.read(_content(name), _source(name), args.rate)
    elif args.lldp is not None:
        texts: dict[str, str] = {}
        for path in args.lldp:
            name = "" if path == "-" else Path(path).stem
            for host, said in cabling.lldp_outputs(_content(path), name, _source(path)).items():
                if host in texts:
                    raise ConfigurationError(
                        f"{_source(path)}: contains LLDP output of {host}, which an earlier file "
                        "contains, too: give the output of each device once"
                    )
                texts[host] = said
        several = len(args.lldp) > 1
        place = f"{len(args.lldp)} files of LLDP" if several else _source(args.lldp[0])
        interfaces = tuple(args.interface or ("*",))
        found = cabling.read_lldp(texts, place, args.switches or (), interfaces, args.rate)
    else:
        raise ConfigurationError("topology import: give --lldp FILE or --ibnetdiscover FILE")
    keys = cabling.cabling_document(found)
    # Check the topology as a command that reads the file does.
    fabric = from_topology(parse(keys, found.source, where=found.source))
    written = cabling.cabling_text(found, keys)
    if args.out is None:
        print(written, end="")
    else:
        write_text(args.out, written)
    for remark in found.remarks:
        print(remark, file=sys.stderr)
    counts = f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches"
    cables = sum(link.links for link in fabric.links)
    print(f"{args.out or found.source}: {counts}, {cables} cables", file=sys.stderr)
    return 0


def _source(path: str) -> str:
    return "standard input" if path == "-" else path


def _content(path: str) -> str:
    if path == "-":
        content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    else:
        content = read_regular(Path(path), _MOST_BYTES)
    return decoded(content, _source(path), _MOST_BYTES)


# --- predict --------------------------------------------------------------------------------------


_SCHEDULES = "collective operations and kernels, whose flows do not all send at the same time"


def _models(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise ValueError(f"there is no model {unknown[0]!r} (one of {', '.join(MODELS)})")
    return names


TYPES = common.TYPES | {
    "--models": _models, "--lldp": str, "--ibnetdiscover": str, "--rate": quantities.rate_bps,
    "--switches": lambda names: frozenset(node_set(names)),
}  # fmt: skip


def predict_command(args: argparse.Namespace) -> int:
    """Print predicted rates; for a results directory, compare them with the measured rates."""
    results: Path | None = args.conf if args.conf is not None and args.conf.is_dir() else None
    if results is None:
        run = load_run(args)
    else:  # read the run of the results directory, which permits no other options
        if args.options:
            option = args.options[0][0]
            raise ConfigurationError(
                f"{option} changes a configuration, but {results} is a results directory: leave "
                f"{option} out"
            )
        run = read_plan(results)
    predictor = Predictor(fabric_of(run, args.topology), args.models or list(MODELS))
    askable = [trial for trial in points(run) if trial.traffic != SCHEDULE]
    excluded = len(points(run)) - len(askable)
    if not askable:
        raise ConfigurationError(f"no prediction is possible for {_SCHEDULES}")
    seen = measured_bps(measured_trials(run, results), results) if results else None
    found = [predicted(trial, predictor, seen) for trial in askable]
    if args.json:
        print_json({
            "topology": predictor.fabric.name,
            "trials": [_prediction(one) for one in found],
            "not_predicted": [{"settings": excluded, "of": _SCHEDULES}] if excluded else [],
        })  # fmt: skip
        return 0
    # One row per model, the best first; models with equal figures share a row.
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
    console = make_console()
    show(_RATES.on_terminal(rows.values()), console, _RATES.title)
    for one in found:
        if 0 < one.known < one.trial.flows:
            left = f"{one.trial.flows - one.known} of {one.trial.flows} flows"
            note_lines(console, f"trial {one.trial.id}: {left} have no measured rate")
    if excluded:
        console.print(f"not predicted: {format.of(excluded, 'setting')} of {_SCHEDULES}")
    return 0


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


def _rates(one: PredictedTrial, model: str) -> dict[str, float]:
    bps = one.rates[model]
    return {
        "min_bps": float(bps.min()), "mean_bps": float(bps.mean()), "max_bps": float(bps.max())
    }  # fmt: skip


def _fit(one: PredictedTrial, model: str) -> dict[str, float]:
    """Return the relative errors of a model's transfer times: share within 10 %, mean, worst."""
    error = one.errors(model)
    return {
        "close": share_close(error),
        "mean_error": float(np.abs(error).mean()),
        "worst_error": float(error[np.abs(error).argmax()]),
    }


def _prediction(one: PredictedTrial) -> dict[str, object]:
    trial = one.trial
    return {
        "trial": trial.id,
        "pattern": trial.pattern["name"],
        "transport": trial.transport,
        "load": trial.load.given,
        "phases": one.phases,
        "flows": trial.flows,
        "models": {name: _rates(one, name) for name in one.rates},
        "fits": [
            {"model": model, "flows": one.known, **_fit(one, model)}
            for model in (one.best_first() if one.known else ())
        ],
    }


# --- locate ---------------------------------------------------------------------------------------


FOUND, NOT_JUDGED = 1, 4
_UNTESTED = 12
MOST_SURE = 0.999


def locate_command(args: argparse.Namespace) -> int:
    """Print the suspects for a fault; return 1 if there are any, 4 if no phase can be judged."""
    found = located(args.directory, args.topology)
    if args.json:
        print_json({**found, "command": next_command(found["next_test"], args.directory)})
    else:
        show_location(found, args.directory)
    if found["suspects"]:
        return FOUND
    return NOT_JUDGED if found["limited_phases"] == found["phases"] else 0


def located(directory: Path, file: Path | None) -> LocationEntry:
    """Return the suspects for a fault, from the results in a directory.

    `file` is a topology file that replaces the results' own topology.
    """
    if not any((directory / name).exists() for name in (PLAN, SUMMARY)):
        raise ConfigurationError(
            f"{directory} is not a results directory: `switchbench run` makes one, with {PLAN}, "
            f"{SUMMARY} and tables"
        )
    run = finish(directory, read_plan(directory))
    if file is not None:
        overrides = run.site.lab_overrides if run.site.lab else {}
        run = replace(run, site=wired(run.site, topology.load(file, overrides)))
    if not has_tables(directory):
        return NOTHING_LOCATED
    try:
        found = gather(run, directory).locator.location()
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ConfigurationError(
            f"{directory}: the tables do not match {PLAN} ({type(error).__name__}: {why}): a file "
            "is damaged or from another run: copy the whole directory again"
        ) from None
    return {**found, "problems": [*found["problems"], *cut_streams(directory)]}


def next_command(test: Entry | None, directory: Path) -> str:
    """Return the command that runs the next test of suspects; "" where no traffic can decide."""
    if test is None or not test["flows"]:
        return ""
    entry = {
        "pattern": "flows",
        "flows": test["flows"],
        "transport": test["transport"],
        "load": f"{test['load']:g}%",
    }
    words = ["switchbench", "run", str(directory / CONFIGURATION), "--set"]
    return shlex.join([*words, f"tests={json.dumps([entry])}"])


def show_location(found: LocationEntry, directory: Path) -> None:
    """Print suspects, expected losses, untested parts of the network and the next test."""
    console = make_console()
    limited = f"{found['limited_phases']} of {format.of(found['phases'], 'phase')}"
    say(console, f"{directory}: {limited} tester-limited, paths: {found['paths']}", hang=2)
    if not found["suspects"] and found["limited_phases"] == found["phases"]:
        say(console, f"\nNot judged: the tester was the limit in {limited}.", "yellow")
    elif not found["suspects"]:
        say(console, "\nNo suspect: no element does worse than the others.", "green")
    for number, one in enumerate(found["suspects"], start=1):
        sure = f"{100 * min(one['confidence'], MOST_SURE):.1f} % sure"
        first, *others = one["sentence"].split("; ")
        say(console, f"\n{number}. {first} ({sure})", "bold red", hang=3)
        others.append(
            "log-likelihood ratio to the next best explanation, or to no fault if there is none, "
            f"{one['gain']:,.1f}"
        )
        for line in others:
            say(console, f"   {line}", hang=5)
    hosts = [
        f"{one['port']}: {format.of(one['frames'], 'lost frame')} {_CAUSES[one['cause']]}"
        for one in found["hosts"]
    ]
    listed(console, "Losses caused by hosts, not by the network", hosts, "")
    expected = [
        f"{_element(one['element'])}: {one['offered_mbps']:.4g} Mbit/s offered to a line of "
        f"{one['line_mbps']:.4g} Mbit/s, {format.of(one['frames'], 'frame')} lost as expected"
        for one in found["expected"]
    ]
    listed(console, "Oversubscribed", expected, "")
    if found["unexplained_frames"]:
        count = format.of(found["unexplained_frames"], "lost frame")
        say(console, f"\n{count} not explained by any suspect.", "yellow")
    untested = [_element(one) for one in found["untested"]]
    more = [f"and {len(untested) - _UNTESTED} more (--json)"] if len(untested) > _UNTESTED else []
    listed(console, "Not tested", untested[:_UNTESTED] + more, "")
    listed(console, "Not used", found["problems"], "yellow")
    test = found["next_test"]
    if test:
        heading(console, "Next test")
        say(console, f"  {test['why']}", hang=2)
        if line := next_command(test, directory):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


_CAUSES = {
    "sender_host": "dropped before they left it",
    "receiver_host": "dropped in it",
    "other_traffic": "lost because other hosts sent to it",
    "late_sender": "lost in a queue that late senders filled",
}


def _element(one: Entry) -> str:
    return " ".join((one["name"], one["direction"])).rstrip()
