# SPDX-License-Identifier: BSD-3-Clause
"""What is compared: results directories or, with `--by`, parts of one; and what each measured.

A case is one matrix at one setting: its plans are its repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..analysis.data import Measured
from ..base import format, source
from ..base.errors import ConfigurationError
from ..base.transports import BASELINES
from ..records.directory import CONFIGURATION
from ..records.document.summary import ImportedEntry
from ..records.document.trials import PlanEntry
from . import settings
from .measures import WHOLE_S, ComparedMeasure
from .settings import Settings

Configuration = Mapping[str, Any]  # YAML


@dataclass(frozen=True)
class Case:
    """One matrix at one setting."""

    settings: Settings
    plans: list[PlanEntry]  # one for each repeat, in their order
    figure: ComparedMeasure | None = None  # of a figure of several programs: its only measure
    further: list[tuple[Subject, Case]] = field(default_factory=list)  # of the side's other runs

    def runs(self, subject: Subject) -> list[tuple[Subject, Case]]:
        """Each run of the side that has this case, its own subject's first."""
        return [(subject, self), *self.further]

    @property
    def title(self) -> str:
        """For a person: who sends to whom, and of what."""
        return f"{self.matrix}, {self.ranks}: {self.setting}"

    @property
    def setting(self) -> str:
        """How it was carried."""
        plan = self.plans[0]
        if self.figure is not None and plan["size"] is None:
            return plan["transport"]
        load = "" if plan["intended_load"] is None else f", {plan['intended_load']:g} %"
        return f"{plan['transport']}, {self.size}{load}"

    @property
    def size(self) -> str:
        """Of its frames or messages."""
        return format.size(self.plans[0])

    @property
    def ranks(self) -> str:
        """How many there were."""
        return format.of(self.plans[0]["ranks"], "rank")

    @property
    def matrix(self) -> str:
        """Who sends to whom."""
        return format.pattern(self.plans[0])


@dataclass(frozen=True)
class Subject:
    """One result, or the part of one that `--by` takes."""

    name: str
    measured: Measured
    cases: list[Case]
    configuration: Configuration  # as the run understood it; empty where it can't be read
    chosen: dict[str, str] = field(default_factory=dict)  # `--by`'s setting and value
    further: list[Subject] = field(default_factory=list)  # other runs of the same side

    @property
    def runs(self) -> list[Subject]:
        """The side's runs; itself first."""
        return [self, *self.further]

    @cached_property
    def until_sure(self) -> set[int]:
        """The trials whose repeats ended when their mean was sure enough."""
        return {
            trial
            for entry in self.measured.summary["statistics"]
            if entry["target_ci_width_percent"] is not None
            for trial in entry["trials"]
        }

    @property
    def one_machine(self) -> bool:
        """Whether all nodes are on one machine: a lab's."""
        return self.measured.summary["run"].get("launch") == "lab"

    @cached_property
    def settings(self) -> Settings:
        """What the run was made on."""
        return settings.of_run(self.measured.summary, self.configuration) | self.chosen

    @cached_property
    def steps(self) -> dict[tuple[int, str], Mapping[str, object]]:
        """The figures of each repeat of functions and kernels, by trial and network."""
        found: dict[tuple[int, str], Mapping[str, object]] = {}
        for function in self.measured.summary["steps"]["functions"]:
            for point in function["points"]:
                repeats = point.get("by_repeat") or [point["imb"]]
                for trial, imb in zip(point["trials"], repeats, strict=False):
                    found[trial, function["network"]] = imb
        for kernel in self.measured.summary["steps"]["kernels"]:
            times = kernel.get("by_repeat_s") or [kernel["total_s"]]
            for trial, time in zip(kernel["trials"], times, strict=False):
                found[trial, kernel["network"]] = {WHOLE_S: time}
        return found

    @property
    def directory(self) -> Path:
        """Where it is."""
        return self.measured.directory

    @property
    def imported(self) -> list[ImportedEntry]:
        """Figures of other programs (`switchbench import`); none where we measured."""
        return self.measured.summary.get("imported") or []

    @property
    def measured_by(self) -> str:
        """The program, or those, that measured."""
        tools = {f"{one['tool']} {one['version'] or ''}".strip() for one in self.imported}
        versions = self.measured.summary["run"]["versions"]
        return ", ".join(sorted(tools)) or f"Switchbench {versions.get('switchbench', '')}".strip()


def load(words: Sequence[str], by: str | None) -> list[Subject]:
    """Return the subjects that a command names.

    `DIR` or `NAME=DIR`, each divided by the setting `by`.

    Directories of one NAME are the runs of one side.
    """
    named = [_named(word) for word in words]
    subjects = [_read(name, directory) for name, directory in named]
    if by is not None:
        several = len(subjects) > 1
        subjects = [part for whole in subjects for part in _divided(whole, by, several)]
    return _told_apart(_pooled(subjects))


def _pooled(subjects: list[Subject]) -> list[Subject]:
    """Return one subject for each name, with its further runs, and those of each of its cases."""
    sides: dict[str | int, Subject] = {}
    for i, one in enumerate(subjects):
        first = sides.setdefault(one.name or i, one)
        if first is one:
            continue
        first.further.append(one)
        for case in one.cases:
            same = next((own for own in first.cases if own.settings == case.settings), None)
            if same is None:
                first.cases.append(case)
            else:
                same.further.append((one, case))
    return list(sides.values())


def _named(word: str) -> tuple[str, Path]:
    name, equals, rest = word.partition("=")
    if equals and name and not Path(word).exists():
        return name, Path(rest)
    return "", Path(word)


def _read(name: str, directory: Path) -> Subject:
    if not directory.is_dir():
        raise ConfigurationError(f"no results in {directory}: there is no such directory")
    measured = Measured.load(directory)
    if measured.summary.get("imported"):
        return Subject(name, measured, [], {})
    configuration = _configuration(measured)
    tests = configuration.get("tests")
    cases = list(_cases(measured, tests if isinstance(tests, list) else []))
    if not cases:
        reason = measured.damage[0] if measured.damage else "nothing was measured in that run"
        raise ConfigurationError(f"no results in {directory}: {reason}")
    return Subject(name, measured, cases, configuration)


def _configuration(measured: Measured) -> Configuration:
    path = measured.directory / CONFIGURATION
    try:
        loaded = source.load(path)
        if isinstance(loaded, dict):
            return loaded
        reason = f"{path}: is no mapping"
    except ConfigurationError as error:
        reason = str(error)
    measured.damage.append(f"{reason}: of the settings only those of the matrix are compared")
    return {}


def _cases(measured: Measured, tests: list[Any]) -> Iterator[Case]:
    found: dict[tuple[Any, ...], Case] = {}
    for plan in measured.summary["plans"]:
        known = settings.of_plan(plan, tests)
        key = (plan["test"], *known.items())
        found.setdefault(key, Case(known, [])).plans.append(plan)
    for case in found.values():
        case.plans.sort(key=lambda plan: int(plan["repeat"]))
        yield case


def _divided(whole: Subject, by: str, several: bool) -> Iterator[Subject]:
    """Yield a subject for each value of the setting."""
    values = list(dict.fromkeys(case.settings[by] for case in whole.cases if by in case.settings))
    if len(values) < 2 and not several:
        raise ConfigurationError(_undivided(whole, by, values))
    if by == settings.TRANSPORT:
        values.sort(key=BASELINES.index)
    for value in values:
        cases = [case for case in whole.cases if case.settings.get(by) == value]
        name = f"{whole.name} {value}".strip() if several else value
        yield Subject(name, whole.measured, cases, whole.configuration, {by: value})


def _undivided(whole: Subject, by: str, values: list[str]) -> str:
    several = [
        name
        for name in dict.fromkeys(name for case in whole.cases for name in case.settings)
        if len({case.settings.get(name) for case in whole.cases}) > 1
    ]
    have = f"has only {by} {values[0]}" if values else f"has no setting {by!r}"
    return (
        f"{whole.directory} {have}, so there is nothing to compare by it "
        f"(what differs there: {', '.join(several) or 'nothing'})"
    )


def with_baseline(subjects: list[Subject], name: str | None) -> list[Subject]:
    """Return the subjects, that of a name first."""
    if name is None:
        return subjects
    for i, subject in enumerate(subjects):
        if subject.name == name:
            return [subject, *subjects[:i], *subjects[i + 1 :]]
    known = ", ".join(subject.name for subject in subjects)
    raise ConfigurationError(f"--baseline {name}: no result is called so (results: {known})")


# --- names -------------------------------------------------------------------------------------


def _told_apart(subjects: list[Subject]) -> list[Subject]:
    """With names: given ones, else the switches', else the directories', else numbered."""
    makers = (_switch, lambda subject: subject.directory.resolve().name)
    for maker in makers:
        names = [subject.name or maker(subject) for subject in subjects]
        if all(names) and len(set(names)) == len(names):
            break
    else:
        names = [f"{name} {i}" for i, name in enumerate(names, start=1)]
    return [replace(one, name=name) for name, one in zip(names, subjects, strict=True)]


def _switch(subject: Subject) -> str:
    """Return the switch as `about` has it: its name, or its model and firmware."""
    about = subject.configuration.get("about")
    switches = about.get("switches") if isinstance(about, dict) else None
    if not isinstance(switches, list) or not switches or not isinstance(switches[0], dict):
        return ""
    switch = switches[0]
    words = [switch.get("name") or switch.get("model"), switch.get("firmware")]
    return " ".join(str(word) for word in words if word)
