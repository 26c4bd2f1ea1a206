# SPDX-License-Identifier: BSD-3-Clause
"""Cases of a comparison: traffic matrices and settings of results, or of parts with `--by`.

A case is one traffic matrix at one setting; its plans are its repeats. Settings are pairs of name
and value. The switch, its firmware, the site and the transport are the usual subject of a
comparison, so differences in these settings are listed. A different window, load or seed makes
measurements incomparable: the comparison lists the difference and ends with status 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..analysis import measures as m
from ..analysis.data import Measured
from ..base import format, source, transports
from ..base.errors import ConfigurationError
from ..base.measures import MEASURES as REGISTRY
from ..base.measures import REDUCED
from ..base.model import SCHEDULE
from ..importers import programs
from ..importers.reading import COMMON
from ..records.directory import CONFIGURATION
from ..records.summary_form import Entry, PlanEntry, at, by

# --- compared figures (doc/reference/measures.md) ----------------------

Reading = Callable[[Entry], float | None]


@dataclass(frozen=True)
class ComparedMeasure:
    """Definition of a compared value; `better` is +1 if more is better, -1 if less is.

    Both allowances are standard deviations as shares of the mean: the figure's rounding, and the
    difference between two equal runs beyond their repeats (doc/how-to/compare.md).
    """

    name: str
    title: str
    unit: str
    better: int
    of: Reading
    rounding: float = 0.0005  # one frame of a short window
    between_runs: float = 0.002


def _compared(name: str, title: str, key: str, of: Reading, *allowances: float) -> ComparedMeasure:
    """Return a measure of base.measures with a short name and title for comparisons."""
    measure = REGISTRY[key]
    return ComparedMeasure(name, title, measure.unit, measure.better, of, *allowances)


def _value(path: str) -> Reading:
    """Return a function that reads the value at a path of keys from an entry of the summary."""
    return lambda entry: None if (value := at(entry, path)) is None else float(value)


def _rate(path: str) -> Reading:
    """Return a function that reads a rate from an entry; None without payload (a barrier)."""

    def rate(entry: Entry) -> float | None:
        empty = entry["traffic"] == SCHEDULE and entry["delivered_bytes"] == 0
        return None if empty else _value(path)(entry)

    return rate


def _loss(entry: Entry) -> float | None:
    return m.ratio(entry["lost_frames"], entry["offered_frames"], 100)


def _cpu(entry: Entry) -> float | None:
    """Return the CPU seconds that the node processes used per delivered GB."""
    return m.ratio(entry["cpu_process_s"], entry["delivered_bytes"], m.GIGA)


def _elapsed(entry: Entry) -> float | None:
    """Return a transfer's duration; None for streams, which have a configured duration."""
    return _value("elapsed_s")(entry) if entry["traffic"] == "transfer" else None


WHOLE_S = "total_s"
REPETITION_US = "repetition_us"
STEP_TIMES = (0.0005, 0.1)
_BUCKETS = 0.005  # relative error of histogram buckets: width 1/64, evenly distributed
_KINDS = {"round_trip": "round trip", "one_way": "one way", "pingpong": "ping-pong"}
MEASURES = (
    # Times of collectives and kernels come before all other measures.
    *(
        ComparedMeasure(name, title, unit, better, _value(f"steps.{key}"), *STEP_TIMES)
        for name, title, unit, better, key in (
            ("repetition", "repetition", "us", -1, REPETITION_US),
            ("whole", "whole benchmark", "s", -1, WHOLE_S),
        )
    ),
    _compared("mean_rate", "mean flow", "throughput", _rate("throughput.mean")),
    _compared("slowest_rate", "slowest flow", "throughput_min", _rate("throughput.min")),
    _compared("of_line", "of line", "percent_of_line", _rate("throughput.percent_of_line")),
    _compared("loss", "lost", "loss_percent", _loss, 0.01, 0.02),
    _compared("cpu", "CPU of nodes", "cpu_s_per_gb", _cpu, 0.0005, 0.3),
    *(_compared(one.key, one.title, one.key, _rate(f"reduced.{one.key}")) for one in REDUCED),
    _compared("elapsed", "time", "elapsed_s", _elapsed),
    *(
        _compared(f"{kind}_{name}", f"{title} {name}", f"{kind}_{name}_us",
                  _value(f"latency.{kind}.{name}"), _BUCKETS, between_runs)
        for kind, title in _KINDS.items()
        for name, between_runs in (("p50", 0.4), ("p99", 0.7))
    ),
)  # fmt: skip


# --- cases ---------------------------------------------------------------------------------------

Settings = dict[str, str]

ABSENT = "-"
TRANSPORT, NETWORK, SIZE, LOAD = "transport", "network", "size", "load"
# Keys of a test that are no settings of a case: they concern the test's length and repeats, or the
# plan's entry has their values.
_NO_MATTER = {
    "repeat", "profile", "interval", "connectivity_check", "flood_limit", "drain_timeout",
    "drain_max", "cooldown", "loads", "frame_sizes", "message_sizes", "load", "ranks", "network",
    "networks", "transport", "transports", "pattern", "imix",
}  # fmt: skip
# Settings that define the matrix: cases that differ in one of them are not compared.
_MATRIX = ("pattern", "ranks", "traffic", NETWORK, SIZE, LOAD, TRANSPORT, "concurrent_networks")


class Differing(NamedTuple):
    """Setting whose value differs between results; `of`: compared case, "" for the run."""

    of: str
    setting: str
    values: tuple[str, ...]  # in the results' order

    @property
    def sentence(self) -> str:
        """Return the difference as a sentence, such as "load is 50 and 100"."""
        where = f"{self.of}: " if self.of else ""
        return f"{where}{self.setting} is {' and '.join(self.values)}"

    @property
    def document(self) -> dict[str, object]:
        """Return the difference as an entry of a JSON document."""
        return {"of": self.of or None, "setting": self.setting, "values": list(self.values)}


def differing(of: str, sides: Sequence[Settings], without: set[str]) -> Iterator[Differing]:
    """Yield the settings that differ between the sides, in order of first appearance."""
    for name in dict.fromkeys(name for settings in sides for name in settings):
        values = tuple(settings.get(name, ABSENT) for settings in sides)
        if name not in without and len(set(values)) > 1:
            yield Differing(of, name, values)


@dataclass
class ComparedRun:
    """Results directory with its measurements and its configuration."""

    measured: Measured
    configuration: Mapping[str, Any]  # effective configuration; empty if it cannot be read

    @property
    def directory(self) -> Path:
        """Return the path of the results directory."""
        return self.measured.directory

    @cached_property
    def until_sure(self) -> set[int]:
        """Return the trials that were repeated until the confidence interval was narrow enough."""
        return {
            trial
            for entry in self.measured.summary["statistics"]
            if entry["target_ci_width_percent"] is not None
            for trial in entry["trials"]
        }

    @cached_property
    def steps(self) -> dict[tuple[int, str], Entry]:
        """Return the repetition times of collectives and kernels by (trial, network)."""
        found: dict[tuple[int, str], Entry] = {}
        for function in self.measured.summary["steps"]["functions"]:
            for point in function["points"]:
                for trial, time in zip(point["trials"], point["by_repeat_us"], strict=False):
                    found[trial, function["network"]] = {REPETITION_US: time}
        for kernel in self.measured.summary["steps"]["kernels"]:
            times = kernel.get("by_repeat_s") or [kernel["total_s"]]
            for trial, time in zip(kernel["trials"], times, strict=False):
                found[trial, kernel["network"]] = {WHOLE_S: time}
        return found

    def whole(self, plan: PlanEntry) -> Entry:
        """Return a plan's entry with its repetition times, worst loss and worst percentiles.

        Tester-limited phases are excluded.
        """
        fair = [phase for phase in self.measured.phases_of(plan) if not phase["tester_limited"]]
        steps = self.steps.get((plan["trial"], plan["network"]), {})

        def worst(path: str, choose: Callable[..., Any] = max) -> Any:
            known = (at(phase, path) for phase in fair)
            return choose((value for value in known if value is not None), default=None)

        return {
            **plan,
            **{name: m.total(p[name] for p in fair) for name in ("lost_frames", "offered_frames")},
            "reduced": {
                one.key: worst(f"reduced.{one.key}", min if one.over_phases == "min" else max)
                for one in REDUCED
            },
            "latency": {
                kind: {name: worst(f"latency.{kind}.{name}") for name in ("p50", "p99")}
                for kind in _KINDS
            },
            "steps": steps,
        }


@dataclass(frozen=True)
class Case:
    """Traffic matrix at one setting, with the repeats in each run of one side."""

    settings: Settings
    # runs of this side that have the case, each with its repeats
    runs: list[tuple[ComparedRun, list[PlanEntry]]]
    figure: ComparedMeasure | None = None  # the only measure, for other programs' figures

    @property
    def plans(self) -> list[PlanEntry]:
        """Return the repeats of this case in the first run of its side."""
        return self.runs[0][1]

    @property
    def title(self) -> str:
        """Return the case in words: traffic matrix, transport, size and load."""
        return f"{self.matrix}: {self.setting}"

    @property
    def setting(self) -> str:
        """Return transport, size and load of the case in words."""
        plan = self.plans[0]
        if self.figure is not None and plan["size"] is None:
            return str(plan["transport"])
        load = "" if plan["intended_load"] is None else f", {plan['intended_load']:g} %"
        return f"{plan['transport']}, {format.size(plan)}{load}"

    @property
    def matrix(self) -> str:
        """Return pattern and number of ranks of the case in words."""
        plan = self.plans[0]
        return f"{format.pattern(plan)}, {format.of(plan['ranks'], 'rank')}"

    @property
    def document(self) -> dict[str, object]:
        """Return the case as an entry of a JSON document, with one trial for each repeat."""
        trials = [plan["trial"] for plan in self.plans]
        return {"title": self.title, "settings": self.settings, "trials": trials}

    def identity(self, without: set[str]) -> tuple[tuple[str, str], ...]:
        """Return the settings that identify the case, except the settings in `without`.

        The settings are those of matrix, size and load. If `without` contains `transport`, the
        transport's options are omitted too.
        """
        names = {*_MATRIX, *self.plans[0]["parameters"]} - without
        return tuple(
            (name, word)
            for name, word in sorted(self.settings.items())
            if name in names and not (TRANSPORT in without and "." in name)
        )


@dataclass(frozen=True)
class Subject:
    """Side of a comparison: one or several results, or a part that `--by` selects."""

    name: str
    results: list[ComparedRun]
    cases: list[Case]
    chosen: Settings = field(default_factory=dict)  # setting and value that `--by` selects

    @property
    def measured(self) -> Measured:
        """Return the measurements of the side's first run."""
        return self.results[0].measured

    @property
    def one_machine(self) -> bool:
        """Return whether all nodes ran on one machine, as in a lab."""
        return bool(self.measured.summary["run"].get("launch") == "lab")

    @property
    def imported(self) -> list[Entry]:
        """Return the figures imported from other programs; [] for Switchbench's own results."""
        return self.measured.summary.get("imported") or []

    @property
    def measured_by(self) -> str:
        """Return the names and versions of the programs that measured this side."""
        tools = {f"{one['tool']} {one['version'] or ''}".strip() for one in self.imported}
        versions = self.measured.summary["run"]["versions"]
        return ", ".join(sorted(tools)) or f"Switchbench {versions.get('switchbench', '')}".strip()

    def values(self, name: str) -> list[str]:
        """Return the distinct values of a setting over this side's cases."""
        return list(dict.fromkeys(case.settings.get(name, ABSENT) for case in self.cases))

    @cached_property
    def settings(self) -> Settings:
        """Return the settings of the test bed: switch, cables, site, versions, machine."""
        run = self.measured.summary["run"]
        configuration = self.results[0].configuration
        site = configuration.get("site") or {}
        if not isinstance(site, dict):
            site = {"file": site}
        elif "lab" in site:
            site = {"kind": "the lab file's", **site}
        machine = run.get("machine") or {}
        parts = {
            "about": configuration.get("about") or {},
            "site": site,
            "version": run.get("versions") or {},
            "machine": {key: machine.get(key) for key in ("host", "cpu", "cpus")},
        }
        return {key: word for name, part in parts.items() for key, word in _flat(part, name)} | (
            self.chosen
        )


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield nested settings as pairs of path and text: `site.control.heartbeat_timeout`, `2s`."""
    if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}")
    elif value is not None:
        yield path, _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- loading --------------------------------------------------------------------------------------


def load(words: Sequence[str], by: str | None) -> list[Subject]:
    """Load the sides of a comparison from arguments `DIR` or `NAME=DIR`.

    Directories with the same NAME are the runs of one side. With `by`, each result is divided into
    sides by the values of this setting.
    """
    subjects = [_read(word) for word in words]
    if by is not None:
        subjects = [part for whole in subjects for part in _divided(whole, by, len(subjects) > 1)]
    return joined(subjects)


def joined(subjects: Sequence[Subject]) -> list[Subject]:
    """Join results that have one name into one side with several runs.

    A side's name is the given one, else the directory's, with a number where names are equal.
    """
    sides: dict[str | int, Subject] = {}
    for number, one in enumerate(subjects):
        first = sides.setdefault(one.name or number, one)
        if first is one:
            continue
        first.results.extend(one.results)
        for case in one.cases:
            same = next((own for own in first.cases if own.settings == case.settings), None)
            if same is None:
                first.cases.append(case)
            else:
                same.runs.extend(case.runs)
    found = list(sides.values())
    names = [one.name or one.measured.directory.resolve().name for one in found]
    if len(set(names)) < len(names):
        names = [f"{name} {i}" for i, name in enumerate(names, start=1)]
    return [replace(one, name=name) for name, one in zip(names, found, strict=True)]


def _read(word: str) -> Subject:
    name, equals, rest = word.partition("=")
    named = bool(equals and name) and not Path(word).exists()
    name, directory = (name, Path(rest)) if named else ("", Path(word))
    if not directory.is_dir():
        raise ConfigurationError(f"no results in {directory}: there is no such directory")
    measured = Measured.load(directory)
    if measured.summary.get("imported"):
        return Subject(name, [ComparedRun(measured, {})], [])
    configuration, reason = None, f"{directory / CONFIGURATION} is not a mapping"
    try:
        configuration = source.load(directory / CONFIGURATION)
    except ConfigurationError as error:
        reason = str(error)
    if not isinstance(configuration, dict):
        configuration = {}
        measured.damage.append(f"{reason}: only settings of the traffic matrix are compared")
    result = ComparedRun(measured, configuration)
    tests = configuration.get("tests")
    tests = tests if isinstance(tests, list) else []
    found = by(measured.summary["plans"], lambda p: (p["test"], *_settings(p, tests).items()))
    if not found:
        reason = measured.damage[0] if measured.damage else "nothing was measured in that run"
        raise ConfigurationError(f"no results in {directory}: {reason}")
    cases = [
        Case(dict(settings), [(result, sorted(plans, key=itemgetter("repeat")))])
        for (_, *settings), plans in found.items()
    ]
    return Subject(name, [result], cases)


def _settings(plan: PlanEntry, tests: list[Any]) -> Settings:
    """Return all settings of a plan as text, beginning with traffic matrix and size.

    `tests`: the tests of the effective configuration; a plan has the index of its test.
    """
    load = plan["intended_load"]
    found = {
        "pattern": plan["pattern"],
        **{name: _word(value) for name, value in plan["parameters"].items()},
        "ranks": str(plan["ranks"]),
        "traffic": plan["traffic"],
        NETWORK: plan["network"],
        SIZE: format.size(plan),
        LOAD: ABSENT if load is None else f"{load:g}%",
        TRANSPORT: plan["transport"],
    }
    if plan["concurrent_networks"]:
        found["concurrent_networks"] = ", ".join(plan["concurrent_networks"])
    number = plan["test"]
    given = tests[number] if number < len(tests) and isinstance(tests[number], dict) else {}
    for name, value in given.items():
        if name not in _NO_MATTER and name not in plan["parameters"]:
            found |= {key: word for key, word in _flat(value, name) if key not in found}
    return found


def _divided(whole: Subject, by: str, several: bool) -> Iterator[Subject]:
    """Divide a result into one side for each value of the setting `by`."""
    values = [value for value in whole.values(by) if value != ABSENT]
    if len(values) < 2 and not several:
        names = dict.fromkeys(name for case in whole.cases for name in case.settings)
        differ = [name for name in names if len(whole.values(name)) > 1]
        have = f"has only {by} {values[0]}" if values else f"has no setting {by!r}"
        raise ConfigurationError(
            f"{whole.measured.directory} {have}, so --by has nothing to compare (settings that "
            f"differ there: {', '.join(differ) or 'none'})"
        )
    if by == TRANSPORT:
        values.sort(key=transports.BASELINES.index)
    for value in values:
        cases = [case for case in whole.cases if case.settings.get(by) == value]
        name = f"{whole.name} {value}".strip() if several else value
        yield Subject(name, list(whole.results), cases, {by: value})


# --- figures that several programs share ----------------------------------------------------------
# Figures that programs share. Switchbench's own figures come from the summary: rates of streams and
# transfers between two ranks, verified by receivers; half the round trip of ping-pong; times and
# rates of IMB's functions. A transport counts as a program; values of one figure are its repeats.

_PAIR = 2
_FULL_LOAD = 100.0  # % of line rate; below it, a rate only shows the intended load
_Figure = tuple[str, str, int, int | None, float | None]
"""Shared figure: program or transport, measure, ranks, message size, value."""


def figure_cases(subject: Subject) -> list[Case]:
    """Return one case per program and figure of a result, for figures that programs share."""
    found: list[_Figure] = []
    for one in subject.imported:
        if same := one["comparable"]:
            figure = (same["measure"], same["ranks"], same["size"], same["value"])
            found.append((one["tool"], *figure))
    found += [*_plans(subject), *_functions(subject), *_pingpongs(subject)]
    cases = []
    order = list(COMMON)
    known = [one for one in found if one[1] in COMMON and (one[-1] or 0.0) > 0]
    known.sort(key=lambda one: (order.index(one[1]), one[2]))
    for (program, name, ranks, size), figures in by(known, lambda one: one[:-1]).items():
        common = COMMON[name]
        words = {
            "pattern": common.title, "ranks": str(ranks), SIZE: str(size or ABSENT),
            LOAD: ABSENT, NETWORK: ABSENT, TRANSPORT: program,
        }  # fmt: skip
        measure = ComparedMeasure(name, *common, lambda entry: float(entry["value"]), *STEP_TIMES)
        plan = {
            "trial": 0, "network": ABSENT, "pattern": common.title, "parameters": {},
            "ranks": ranks, "size": size, "size_unit": "message", "transport": program,
            "traffic": ABSENT, "intended_load": None,
        }  # fmt: skip
        plans = [plan | {"repeat": number, "value": v} for number, (*_, v) in enumerate(figures)]
        cases.append(Case(words, [(subject.results[0], plans)], measure))
    return cases


def _path(subject: Subject, entry: Entry) -> str:
    """Return transport, network (if there are several) and pattern options in words."""
    networks = {plan["network"] for plan in subject.measured.summary["plans"]}
    options = entry.get("parameters", {})
    batch = options.get("batch", 1)
    words = (
        entry["transport"],
        f"in {entry['network']}" if len(networks) > 1 else "",
        options.get("algorithm") or "",
        f"batch={batch}" if batch != 1 else "",
        "compute" if options.get("compute") else "",
    )
    return " ".join(word for word in words if word)


def _plans(subject: Subject) -> Iterator[_Figure]:
    """Yield the measured rates between two ranks at full load, one way and both ways."""
    for plan in (plan for case in subject.cases for plan in case.plans):
        load = plan["intended_load"]
        full = plan["traffic"] in ("stream", "transfer") and (load is None or load >= _FULL_LOAD)
        if not full or plan["ranks"] != _PAIR or plan["size_unit"] != "message":
            continue
        known = plan["transport"] in transports.NAMES  # a summary may come from a later version
        joined = known and transports.of(plan["transport"]).byte_stream
        size = None if joined or isinstance(plan["size"], list) else plan["size"]
        phases = subject.measured.phases_of(plan)
        for flows, measure in ((1, "one_way_rate"), (2, "both_ways_rate")):
            rate = m.mean(p["throughput"]["mean"] for p in phases if p["flows"] == flows)
            yield _path(subject, plan), measure, _PAIR, size, rate


def _functions(subject: Subject) -> Iterator[_Figure]:
    """Yield the measured times and rates of collective operations."""
    mine = {(plan["trial"], plan["network"]) for case in subject.cases for plan in case.plans}
    for function in subject.measured.summary["steps"]["functions"]:
        name = function["pattern"]
        ranks = _PAIR if name in programs.OF_TWO else function["ranks"]  # all other ranks only wait
        for point in function["points"]:
            places = ((trial, function["network"]) for trial in point["trials"])
            if subject.chosen and mine.isdisjoint(places):
                continue
            times = point["repetition_us"]
            ways = 2 if name == "pingpong" else 1  # IMB halves the round trip
            for column, (measure, _) in programs.imb_shared(name).items():
                value = times["mean"] and times["mean"] / ways
                if column == programs.IMB_RATE:
                    value = m.ratio(8 * ways * point["size"], times["slowest_rank"])
                yield _path(subject, function), measure, ranks, point["size"], value


def _pingpongs(subject: Subject) -> Iterator[_Figure]:
    mine = {plan["transport"] for case in subject.cases for plan in case.plans}
    for curve in subject.measured.summary["messages"]["curves"]:
        for point in curve["points"] if curve["transport"] in mine else ():
            values = (point["latency_us"]["mean"], point["bandwidth_mbps"])
            for name, value in zip(("pingpong_time", "pingpong_rate"), values, strict=True):
                yield _path(subject, curve), name, curve["ranks"], point["size"], value
