# SPDX-License-Identifier: BSD-3-Clause
"""A suite's measurements: each has a planned trial whose load and window are chosen trial by trial.

`Run.searches` holds these trials as they were planned, at the max load. The trials that are
measured follow from them and from what those before them lost (analysis/suite.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ..base.errors import ConfigurationError
from ..base.model import Burst, Load, Repeats, Run, Trial
from ..search.drive import Search
from ..search.estimates import method_s
from ..search.loads import LoadRange
from ..search.outcomes import CannotBeMet
from ..search.suites import SUITES
from ..search.suites.declaration import Method, Row, Subtest, SuiteParameters, SuitePoint
from ..search.suites.methods import FixedTrials
from ..search.trials import ProposedTrial
from .two_transports import in_two_transports, with_burst

# How often a tester-limited trial is repeated: a lab's hosts share one machine's cores.
REPEATS_SITE, REPEATS_LAB = 2, 11
ADDRESSES = 1 << 20  # numbers of a port's addresses
MIN_PART = 0.01  # of the max load: where a suite's range of loads begins
NS = 1e9
UNITS = {"percent": "% of line", "bps": "bit/s", "fps": "frames/s"}  # of a Load's fields

SUBTEST, VARIANT = "subtest", "variant"  # a trial's parameters that say which one it is of


def searches_of(suite: str, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the planned trial of each measurement: the first of all repeats of a point."""
    first = [trial for trial in trials if trial.repeat == 0]
    for trial in first:
        if trial.size_unit != "frame" or trial.traffic not in ("stream", "burst"):
            raise ConfigurationError(
                f"suite: it sends frames at a load, and {trial.pattern['name']} over "
                f"{trial.transport} ({trial.traffic}) has none: use dpdk or udp, traffic: stream"
            )
    return tuple(
        replace(_divided(suite, trial), id=number, point=number, repeats=Repeats(), search=number)
        for number, trial in enumerate(first)
    )


def _divided(suite: str, trial: Trial) -> Trial:
    """In two parts, where some of its ports send by TCP."""
    subtest = SUITES[suite].subtest(trial.parameters.get(SUBTEST))
    if not subtest.two_transports or subtest.variants is None:
        return trial
    variants = subtest.variants(len(trial.parts[0].ranks))
    wanted = trial.parameters[VARIANT]
    return in_two_transports(trial, next(each for each in variants if each.name == wanted))


def subtest_of(run: Run, planned: Trial) -> Subtest:
    """Return the subtest of its suite that a trial belongs to."""
    return SUITES[str(run.suite)].subtest(planned.parameters.get(SUBTEST))


def setting_of(planned: Trial, parameters: SuiteParameters) -> SuitePoint:
    """What a subtest's formulas know of a measurement."""
    ports = [port for part in planned.parts for port in part.ranks]
    limits = [port.frame_limit(planned.transport) for port in ports]
    flat = planned.pattern.get("list", [])
    return SuitePoint(
        size=planned.sizes[0],
        line_bps=min(port.line_rate_bps for port in ports),
        loads=range_of(planned),
        frame_max=min(filter(None, limits), default=1518),
        flows=tuple(zip(flat[::2], flat[1::2], strict=True)),
        ports=tuple(port.name for port in planned.parts[0].ranks),
        parameters=parameters,
    )


def range_of(planned: Trial) -> LoadRange:
    """From a hundredth of the load that was planned to all of it, in its unit."""
    [(field, most)] = _given(planned.load).items()
    return LoadRange(most * MIN_PART, most, UNITS[field])


def parameters_of(run: Run) -> SuiteParameters:
    """Those that the run was planned with."""
    return SuiteParameters(**run.suite_parameters)


def search_of(run: Run, planned: Trial, method: Method, used_s: float = 0.0) -> Search[Any]:
    """A measurement at its beginning; of the time that those before it left it has its part by the
    estimates. `used_s`: seconds of their trials."""
    limit_s = float("inf")
    if run.time_limit_s is not None:
        part = run.estimates_s[planned.id] / sum(run.estimates_s[planned.id :])
        limit_s = (run.time_limit_s - used_s) * part
    return Search(
        method,
        time_limit_s=limit_s,
        overhead_s=overhead_s(planned),
        repeats=REPEATS_LAB if run.site.launcher.in_lab else REPEATS_SITE,
    )


def overhead_s(planned: Trial) -> float:
    """Seconds of a trial besides its first window: barriers, warmup, drain, further phases."""
    return max(0.0, planned.expected_s - planned.window_s)


def estimates_s(
    suite: str,
    parameters: SuiteParameters,
    searches: Sequence[Trial],
    of: Callable[[Sequence[float]], float] = fmean,
) -> tuple[float, ...]:
    """Return the seconds that each of them should take: of devices with some limits the mean, or
    the least (`of`)."""
    found = []
    known: set[tuple[int, ...]] = set()  # sizes of which a search says where others begin
    for planned in searches:
        subtest = SUITES[suite].subtest(planned.parameters.get(SUBTEST))
        setting = setting_of(planned, parameters)
        near = subtest.near if planned.sizes in known else None
        found.append(_estimate_s(subtest, setting, overhead_s(planned), near, of))
        if subtest.near is not None:
            known.add(planned.sizes)
    return tuple(found)


def _estimate_s(
    subtest: Subtest,
    setting: SuitePoint,
    overhead: float,
    near: Callable[[SuitePoint, float], Row] | None,
    of: Callable[[Sequence[float]], float],
) -> float:
    half = {"throughput_percent": setting.loads.max / 2}

    def make(truth: float) -> Method:
        earlier: dict[str, Row] = dict.fromkeys(subtest.needs, half)
        if near is not None:
            earlier["found"] = near(setting, truth)
        made = subtest.method(setting, earlier)
        return FixedTrials((), 0.0, "") if isinstance(made, str) else made

    return method_s(make, subtest.range(setting), overhead, of)


def refuse_too_short(run: Run, limit_s: float) -> None:
    """ConfigurationError, with the least that each measurement takes, where that is too long."""
    found: dict[str, float] = {}
    least_s = estimates_s(str(run.suite), parameters_of(run), run.searches, min)
    for planned, took_s in zip(run.searches, least_s, strict=True):
        words = [str(value) for value in suite_words(planned)]
        name = " ".join([*words, *(f"{size} B" for size in planned.sizes)])
        found[name] = found.get(name, 0.0) + took_s
    if sum(found.values()) > limit_s:
        raise ConfigurationError(f"time_limit: {CannotBeMet(limit_s, found).sentence}")


def suite_words(planned: Trial) -> list[str]:
    """What a person calls a measurement: its subtest and variant, else its pattern."""
    named = [planned.parameters.get(key) for key in (SUBTEST, VARIANT)]
    return [str(name) for name in named if name] or [planned.pattern["name"]]


def chosen_trial(
    run: Run, planned: Trial, proposed: ProposedTrial, identity: int, number: int = 0
) -> Trial:
    """An ordinary trial at the value and of the window that a measurement proposes.

    `identity`: its number in the run; `number`: in the measurement.
    """
    subtest = subtest_of(run, planned)
    if subtest.quantity == "burst":
        parameters = parameters_of(run)
        point = setting_of(planned, parameters)
        proposed = replace(proposed, value=subtest.burst_frames(point, proposed.value))
        percent = subtest.burst_percent(point)
        return _of_burst(planned, proposed, identity, percent, parameters.drain_s)
    if subtest.quantity == "addresses":
        rate = proposed.value / proposed.duration_s
        return _learning(planned, proposed, identity, round(proposed.value), rate)
    if subtest.quantity == "rate":
        count = round(parameters_of(run).learning_addresses)
        first = (1 + number * count) % (ADDRESSES - count)  # no trial has those of another
        return _learning(planned, proposed, identity, count, proposed.value, first)
    if subtest.quantity == "size":
        return _of_size(planned, proposed, identity)
    trial = _at_load(planned, proposed, identity)
    if subtest.two_transports:
        parameters = parameters_of(run)
        fps = setting_of(planned, parameters).fps(trial.load.percent)
        assert fps is not None  # in_two_transports has asked
        return with_burst(trial, max(1, round(parameters.incast_s * fps)))
    return _falling(trial, parameters_of(run)) if subtest.quantity == "overload" else trial


def _chosen(planned: Trial, proposed: ProposedTrial, identity: int, **chosen: Any) -> Trial:
    """The planned trial with what of it was chosen."""
    took_s = overhead_s(planned) + proposed.duration_s
    return replace(planned, id=identity, point=identity, expected_s=took_s, **chosen)


def _of_size(planned: Trial, proposed: ProposedTrial, identity: int) -> Trial:
    """Frames of that size at the planned load; whether ports are connected is asked with ordinary
    ones, as the device may forward no others."""
    [load] = _given(planned.load).values()
    trial = _at_load(planned, replace(proposed, value=load), identity)
    size = round(proposed.value)
    return replace(
        trial.with_options(undersize=True), sizes=(size,), check_sizes=tuple(planned.sizes)
    )


def _falling(trial: Trial, parameters: SuiteParameters) -> Trial:
    """The load falls to half within the trial (RFC 2544, 26.5)."""
    return trial.with_options(falls_to=50.0, falls_after_ns=round(parameters.trial_s * NS))


def _at_load(planned: Trial, proposed: ProposedTrial, identity: int) -> Trial:
    [(field, _)] = _given(planned.load).items()
    load = Load(**{field: round(proposed.value, 6)})  # as summaries have it
    window_s = proposed.duration_s
    interval_s = min(planned.interval_s, window_s)
    return _chosen(planned, proposed, identity, load=load, window_s=window_s, interval_s=interval_s)


def _of_burst(
    planned: Trial, proposed: ProposedTrial, identity: int, percent: float, drain_s: float
) -> Trial:
    """One burst of so many frames of each port that sends."""
    drain_s = max(drain_s, planned.drain_s)
    return _chosen(
        planned,
        proposed,
        identity,
        load=Load(percent=round(percent, 6)),
        burst=_burst(planned, round(proposed.value)),
        drain_s=drain_s,
        drain_max_s=max(planned.drain_max_s, 2 * drain_s),
    )


def _learning(
    planned: Trial, proposed: ProposedTrial, identity: int, count: int, rate: float, first: int = 0
) -> Trial:
    """So many addresses are learned, then each gets one frame."""
    trial = _chosen(planned, proposed, identity, burst=_burst(planned, count))
    return trial.with_options(addresses=count, address_first=first, learning_rate=round(rate))


def _burst(planned: Trial, frames: int) -> Burst:
    return replace(planned.burst or Burst(frames), frames=frames)


def _given(load: Load) -> dict[str, float]:
    fields = {name: getattr(load, name) for name in UNITS}
    return {name: value for name, value in fields.items() if value is not None}
