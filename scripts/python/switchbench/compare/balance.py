# SPDX-License-Identifier: BSD-3-Clause
"""Ratios as in Figure 5 of Saini et al. 2005 (HPCC and IMB), and what each is worth at 1.

Every throughput is of all flows together and is divided by the system's HPL; of a latency the
reciprocal counts, and is not divided; and each axis is scaled so that the best result is 1. Without
HPL nothing is divided, and the chart compares networks alone, not their balance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..analysis import measures as m
from ..base import format
from ..base.errors import ConfigurationError
from ..base.quantities import FLOPS, STREAMING
from .differences import phases_of
from .match import Match
from .measures import time_of
from .subjects import Case, Subject
from .systems import Compute, greatest, systems_of

HPL = replace(FLOPS, name="HPL's speed")
STREAM = replace(STREAMING, name="STREAM's bandwidth")
_KINDS = {"hpl": HPL, "stream": STREAM}

LEAST_AXES = 3  # fewer make no area
LEAST_TIMES = 100  # of each result, below a ratio of latencies
LEAST_PHASES = 0.5  # of the plan's, in which all results know the round trip
_LATENCIES = {"pingpong": "ping-pong time", "round_trip": "round trip"}


@dataclass(frozen=True)
class Basis:
    """What a ratio of latencies rests on."""

    phases: int  # in which all results know the time: the slowest of them counts
    of: int  # phases of the plan
    times: tuple[int, ...]  # measured in these phases, in the results' order

    @property
    def words(self) -> str:
        """For a person."""
        some = " and ".join(f"{count:,}" for count in dict.fromkeys(self.times))
        return f"{self.phases} of {format.of(self.of, 'phase')}, {some} times"

    @property
    def enough(self) -> bool:
        """Whether a ratio can stand on it."""
        return self.phases >= LEAST_PHASES * self.of and min(self.times) >= LEAST_TIMES


@dataclass(frozen=True)
class Axis:
    """One ratio of all results; `values` are absolute, in the results' order."""

    name: str
    title: str
    unit: str
    values: tuple[float, ...]
    basis: Basis | None = None  # of latencies

    @property
    def most(self) -> float:
        """What 1 stands for (Table 2 of the paper)."""
        return max(self.values)

    @property
    def shares(self) -> tuple[float, ...]:
        """The best is 1."""
        return tuple(value / self.most for value in self.values)


@dataclass(frozen=True)
class Balance:
    """The chart's axes; and why something is not in it."""

    axes: list[Axis]
    divided: bool  # by HPL
    reason: str | None
    excluded: list[str] = field(default_factory=list)  # ratios that rest on too little


def balance(matches: Sequence[Match], compute: Sequence[Compute]) -> Balance:
    """`compute`: of each result, the baseline's first, as the matches have the others."""
    hpl = [one.hpl for one in compute]
    divisors = [value for value in hpl if value is not None]
    divided = len(divisors) == len(hpl)
    axes = list(_system_axes(compute, divided))
    every = list(_in_all(matches)) if matches else []
    for cases in every:
        axes += _throughput_axis(cases, divisors if divided else None)
    excluded = list(_not_chosen(matches, compute))
    for cases in _of_latency(every):
        axes += _latency_axis(cases, matches, excluded)
    reason = None
    if not matches:
        reason = "one result has nothing beside it"
    elif len(axes) < LEAST_AXES:
        reason = f"a chart takes at least {LEAST_AXES} ratios that all results have: {len(axes)}"
    return Balance(axes, divided, reason, excluded)


def _not_chosen(matches: Sequence[Match], compute: Sequence[Compute]) -> Iterator[str]:
    """Rings of which a result has several, and the ratios can have one."""
    subjects = [matches[0].base, *(match.other for match in matches)] if matches else []
    for subject, one in zip(subjects, compute, strict=False):
        if one.several:
            programs = " and ".join(one.several)
            yield (
                f"random ring: {subject.name} has it of {programs}, and a ratio takes one "
                "(`--by transport` makes each transport a result of its own)"
            )


# The paper's order. Those by HPL: field of Compute, title and unit.
_BY_HPL = (
    ("dgemm", "DGEMM / HPL", "Flop/Flop"),
    ("fft", "FFT / HPL", "Flop/Flop"),
    ("ptrans", "PTRANS / HPL", "B/Flop"),
    ("stream", "STREAM Copy / HPL", "B/Flop"),
    ("ring", "random ring / HPL", "B/Flop"),
    ("random_access", "RandomAccess / HPL", "Update/Flop"),
)


def _system_axes(compute: Sequence[Compute], divided: bool) -> Iterator[Axis]:
    """Without HPL only of rings."""
    if divided:
        yield from _axis("hpl", "HPL", "Flop/s", [one.hpl for one in compute])
        for name, title, unit in _BY_HPL:
            yield from _axis(name, title, unit, [one.ratio(name) for one in compute])
    else:
        yield from _axis("ring", "random ring", "B/s", [one.ring for one in compute])
    latencies = [one.ring_us and 1.0 / one.ring_us for one in compute]
    yield from _axis("ring_latency", "1 / random ring latency", "1/us", latencies)


def _axis(name: str, title: str, unit: str, values: Sequence[float | None]) -> Iterator[Axis]:
    """None where a result lacks the value."""
    known = [value for value in values if value]
    if known and len(known) == len(values):
        yield Axis(name, title, unit, tuple(known))


def _in_all(matches: Sequence[Match]) -> Iterator[list[Case]]:
    """The baseline's cases that stand beside one of each other result, with these."""
    for pair in matches[0].pairs:
        beside = [
            next((one.other for one in match.pairs if one.base is pair.base), None)
            for match in matches
        ]
        known = [case for case in beside if case is not None]
        if len(known) == len(matches):
            yield [pair.base, *known]


def _of_latency(every: Sequence[list[Case]]) -> list[list[Case]]:
    """The rings, whose latency the paper takes; else messages there and back; else all."""
    wanted = (("pattern", "ring"), ("traffic", "pingpong"))
    for name, value in wanted:
        found = [cases for cases in every if cases[0].settings[name] == value]
        if found:
            return found
    return list(every)


def _title(cases: Sequence[Case]) -> str:
    same = len({case.title for case in cases}) == 1
    return cases[0].title if same else f"{cases[0].matrix}, {cases[0].ranks}, {cases[0].size}"


def _throughput_axis(cases: Sequence[Case], hpl: Sequence[float] | None) -> Iterator[Axis]:
    title = _title(cases)
    totals = [m.mean(plan["throughput"]["total"] for plan in case.plans) for case in cases]
    rates = [mbps * m.MEGA / 8 for mbps in totals if mbps]  # of all flows together
    if len(rates) < len(cases):
        return
    if hpl is None:
        yield Axis("throughput", title, "B/s", tuple(rates))
        return
    ratios = (rate / speed for rate, speed in zip(rates, hpl, strict=True))
    yield Axis("throughput", f"{title} / HPL", "B/Flop", tuple(ratios))


def _latency_axis(
    cases: Sequence[Case], matches: Sequence[Match], excluded: list[str]
) -> Iterator[Axis]:
    subjects = [matches[0].base, *(match.other for match in matches)]
    known = [_latencies(subject, case) for subject, case in zip(subjects, cases, strict=True)]
    kind = next((kind for kind in _LATENCIES if all(one[kind] for one in known)), None)
    if kind is None:
        return
    sides = [one[kind] for one in known]
    common = set.intersection(*(set(side) for side in sides))
    phases = max(plan["phases"] for case in cases for plan in case.plans)
    times = tuple(sum(side[phase].count for phase in common) for side in sides)
    basis = Basis(len(common), phases, times)
    title = f"1 / {_LATENCIES[kind]}, {_title(cases)}"
    if basis.enough:
        slowest = (max(side[phase].median_us for phase in common) for side in sides)
        yield Axis("latency", title, "1/us", tuple(1.0 / time for time in slowest), basis)
        return
    excluded.append(
        f"{title}: {basis.words}; a ratio takes {LEAST_TIMES} times of each result, and "
        f"{LEAST_PHASES:.0%} of the phases in all of them".replace("%", " %")
    )


@dataclass(frozen=True)
class _Latency:
    """Of one phase, over its repeats."""

    median_us: float  # their mean
    count: int  # times measured


def _latencies(subject: Subject, case: Case) -> dict[str, dict[int, _Latency]]:
    """By kind and phase, where it is known."""
    phases = phases_of(subject, case)
    found: dict[str, dict[int, _Latency]] = {kind: {} for kind in _LATENCIES}
    for kind, known in found.items():
        for phase, entries in phases.items():
            median = m.mean(time_of(entry, kind, "p50") for entry in entries)
            if median:
                counts = (time_of(entry, kind, "count") or 0.0 for entry in entries)
                known[phase] = _Latency(median, int(sum(counts)))
    return found


# --- compute figures -----------------------------------------------------------------------------


def read_compute(
    options: Mapping[str, Sequence[str]], subjects: Sequence[Subject]
) -> list[Compute]:
    """Of each result: what HPCC says in it; what is given wins. `options`: words of `hpl` and
    `stream`, `NAME=VALUE` or a value for all results."""
    names = [subject.name for subject in subjects]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for kind, words in options.items():
        for word in words:
            head, _, rest = word.rpartition("=")
            if head and head not in found:
                raise ConfigurationError(
                    f"--{kind} {word}: no result is called {head!r} (results: {', '.join(names)})"
                )
            for name in [head] if head else names:
                found[name][kind] = _parsed(kind, rest, f"--{kind} {word}")
    compute = []
    for subject in subjects:
        known, given = greatest(systems_of(subject)), found[subject.name]
        hpl, stream = given.get("hpl", known.hpl), given.get("stream", known.stream)
        compute.append(replace(known, hpl=hpl, stream=stream))
    for kind in _KINDS:
        if any(kind in given for given in found.values()):
            _refuse_gaps(kind, compute, names)
    if any("stream" in given for given in found.values()) and any(
        one.stream is not None and one.hpl is None for one in compute
    ):
        raise ConfigurationError("STREAM is shown as a share of HPL, and HPL is not given")
    return compute


def _refuse_gaps(kind: str, compute: Sequence[Compute], names: Sequence[str]) -> None:
    has = [getattr(one, kind) is not None for one in compute]
    if not all(has):
        lacking = names[has.index(False)]
        raise ConfigurationError(
            f"{kind} of {lacking} is missing: a balance needs it of every result "
            f"(--{kind} '{lacking}={_KINDS[kind].example}')"
        )


def _parsed(kind: str, value: str, where: str) -> float:
    try:
        number = float(_KINDS[kind].parse(value))
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if number <= 0:
        raise ConfigurationError(f"{where}: 0 is no speed")
    return number
