# SPDX-License-Identifier: BSD-3-Clause
"""Trials that are chosen while a run measures, and ports for TCP and UDP at once (RFC 8239, 6).

A port of a node has one transport at a time, and belongs to one network. Therefore UDP traffic
beside TCP uses additional ports on the same interfaces, in an additional network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Burst, Load, Part, PartSetting, Pattern, Port, Repeats, Run, Site, Trial
from ..search.loads import FixedTrials, LoadRange, ProposedTrial, Search, SearchMethod, method_s
from ..search.suites import SUITES
from ..search.suites.declaration import Row, Subtest, SuiteParameters, SuitePoint, Variant

MESSAGE_BYTES = 65536
_STATEFUL = next(each.name for each in transports.TRANSPORTS if each.byte_stream)
_STATELESS = "stateless"  # suffix of the names of additional ports and networks
# keys of a port in the `job` document that an additional port copies
_OF_INTERFACE = ("netns", "iface", "tcp_address", "line_rate_bps", "shared")


def with_stateless_ports(site: Site, networks: Iterable[str]) -> Site:
    """Return a site with an additional UDP port beside each port of the given networks.

    The additional ports are in the same groups. Raise ConfigurationError if the site already has a
    network of the new name.
    """
    asked = sorted(set(networks))
    further = {port.name: _beside(port) for name in asked for port in site.networks[name]}
    more = {_name(name): tuple(further[one.name] for one in site.networks[name]) for name in asked}
    taken = next((name for name in more if name in site.networks), None)
    if taken is not None:
        raise ConfigurationError(
            f"suite: incast adds a network {taken}, but the site has a network of that name: "
            "rename the site's network"
        )
    processes = (
        (process, tuple(further[port.name] for port in process.ports if port.name in further))
        for process in site.processes
    )
    return replace(
        site,
        processes=tuple(replace(one, ports=one.ports + ports) for one, ports in processes),
        networks=site.networks | more,
        groups={
            group: names + tuple(further[name].name for name in names if name in further)
            for group, names in site.groups.items()
        },
    )


def port_of_interface(name: str, network: str) -> str:
    """Return a port's name; for an additional UDP port, the name of the port beside it."""
    return name.removesuffix(f"-{_STATELESS}") if network.endswith(f"-{_STATELESS}") else name


def in_two_transports(planned: Trial, variant: Variant) -> Trial:
    """Return a trial in which the stateful ports of a variant send by TCP, and others by UDP.

    Raise ConfigurationError if a port has no TCP, or an unknown line rate.
    """
    [part] = planned.parts
    without = next((port.name for port in part.ranks if _STATEFUL not in port.transports), None)
    if without is not None:
        raise ConfigurationError(
            f"suite: {variant.name} needs transport {_STATEFUL}, which port {without} lacks"
        )
    unknown = next((port.name for port in part.ranks if not port.line_rate_bps), None)
    if unknown is not None:
        raise ConfigurationError(
            f"suite: {variant.name} needs the line rate of {unknown} to send a burst that lasts "
            "incast_s: set the port's `line_rate`"
        )
    egress = part.ranks[variant.flows[0][1]]
    stateful = [part.ranks[source] for source in variant.stateful]
    stateless = [part.ranks[s] for s, _ in variant.flows if s not in variant.stateful]
    parts = (
        Part(part.network, (*stateful, egress)),
        Part(_name(part.network), tuple(map(_beside, (*stateless, egress)))),
    )
    own = PartSetting(_STATEFUL, (MESSAGE_BYTES,), "message", Load(percent=100.0))
    pattern: Pattern = {"name": "incast", "receivers": 1}  # type: ignore[typeddict-unknown-key]
    return replace(planned, parts=parts, own={part.network: own}, pattern=pattern)


def _name(network: str) -> str:
    return f"{network}-{_STATELESS}"


def _beside(port: Port) -> Port:
    return replace(
        port,
        name=f"{port.name}-{_STATELESS}",
        network=_name(port.network),
        transports=tuple(
            name
            for name in port.transports
            if (carrier := transports.of(name)).kernel and carrier.frames
        ),
        engine={key: value for key, value in port.engine.items() if key in _OF_INTERFACE},
    )


# --- suite ----------------------------------------------------------------------------------------
# A measurement of a suite has one planned trial. The suite chooses load and window of each actual
# trial.


# Max repeats of a tester-limited trial; more in a lab, whose hosts share one machine.
REPEATS_SITE, REPEATS_LAB = 2, 11
ADDRESSES = 1 << 20  # number of addresses that a port can have
MIN_PART = 0.01  # min load of a suite's range, per max load
NS = 1e9
UNITS = {"percent": "% of line", "bps": "bit/s", "fps": "frames/s"}  # unit of each field of Load

# names of trial parameters that identify subtest and variant
SUBTEST, VARIANT = "subtest", "variant"


def searches_of(suite: str, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the planned trials of a suite, one for each of the suite's measurements."""
    found: list[Trial] = []
    for trial in (trial for trial in trials if trial.repeat == 0):
        if trial.size_unit != "frame" or trial.traffic not in ("stream", "burst"):
            raise ConfigurationError(
                f"suite: this suite needs frames at a set load, which {trial.pattern['name']} over "
                f"{trial.transport} ({trial.traffic}) can't send: use dpdk or udp, traffic: stream"
            )
        subtest, number = SUITES[suite].subtest(trial.parameters.get(SUBTEST)), len(found)
        if subtest.two_transports and subtest.variants is not None:
            variants = subtest.variants(len(trial.parts[0].ranks))
            wanted = trial.parameters[VARIANT]
            trial = in_two_transports(trial, next(one for one in variants if one.name == wanted))
        found.append(replace(trial, id=number, point=number, repeats=Repeats(), search=number))
    return tuple(found)


def subtest_of(run: Run, planned: Trial) -> Subtest:
    """Return the subtest of the run's suite to which a trial belongs."""
    return SUITES[str(run.suite)].subtest(planned.parameters.get(SUBTEST))


def setting_of(planned: Trial, parameters: SuiteParameters) -> SuitePoint:
    """Return the settings of a planned trial (frame size, loads, ports) for a suite's formulas."""
    ports = planned.ports
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
    """Return the loads that a search may try: 1 % to 100 % of the load of its planned trial."""
    [(field, most)] = planned.load.given.items()
    return LoadRange(most * MIN_PART, most, UNITS[field])


def parameters_of(run: Run) -> SuiteParameters:
    """Return the suite parameters of a run's plan."""
    return SuiteParameters(**run.suite_parameters)


def search_of(run: Run, planned: Trial, method: SearchMethod, used_s: float = 0.0) -> Search:
    """Return a new search for a suite's measurement, without any trial yet.

    The search's time limit is its estimated share of the remaining time. `used_s`: seconds of
    earlier trials.
    """
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
    """Return the seconds of a trial in addition to its window: barriers, warm-up, drain, ..."""
    return max(0.0, planned.expected_s - planned.window_s)


def estimates_s(
    suite: str,
    parameters: SuiteParameters,
    searches: Sequence[Trial],
    of: Callable[[Sequence[float]], float] = fmean,
) -> tuple[float, ...]:
    """Return the expected seconds of each measurement of a suite.

    `of`: function that combines the estimates for several simulated devices, such as mean or min.
    """
    found = []
    known: set[tuple[int, ...]] = set()  # frame sizes whose result is the start of later searches
    for planned in searches:
        subtest = SUITES[suite].subtest(planned.parameters.get(SUBTEST))
        point = setting_of(planned, parameters)
        make = partial(_imagined, subtest, point, subtest.near if planned.sizes in known else None)
        found.append(method_s(make, subtest.range(point), overhead_s(planned), of))
        if subtest.near is not None:
            known.add(planned.sizes)
    return tuple(found)


def _imagined(
    subtest: Subtest,
    point: SuitePoint,
    near: Callable[[SuitePoint, float], Row] | None,
    truth: float,
) -> SearchMethod:
    """Return a subtest's search method for a simulated device whose limit is `truth`."""
    earlier = {key: {"throughput_percent": point.loads.max / 2} for key in subtest.needs}
    made = subtest.method(point, earlier | ({} if near is None else {"found": near(point, truth)}))
    return FixedTrials((), 0.0, "") if isinstance(made, str) else made


def suite_words(planned: Trial) -> list[str]:
    """Return the names of a suite measurement's subtest and variant, else of its pattern."""
    named = [planned.parameters.get(key) for key in (SUBTEST, VARIANT)]
    return [str(name) for name in named if name] or [planned.pattern["name"]]


def chosen_trial(
    run: Run, planned: Trial, proposed: ProposedTrial, identity: int, number: int = 0
) -> Trial:
    """Return the trial that a suite's search proposes, based on the search's planned trial.

    `identity`: number of the trial in the run; `number`: number of the trial in the measurement.
    """
    subtest, asked = subtest_of(run, planned), parameters_of(run)
    point, quantity = setting_of(planned, asked), subtest.quantity
    value, seconds = proposed.value, proposed.duration_s
    took_s, burst = overhead_s(planned) + seconds, planned.burst or Burst(0)
    trial = replace(planned, id=identity, point=identity, expected_s=took_s)
    if quantity == "burst":  # each sending port sends one burst of the proposed length
        drain_s = max(asked.drain_s, planned.drain_s)
        return replace(
            trial,
            load=Load(percent=round(subtest.burst_percent(point), 6)),
            burst=replace(burst, frames=subtest.burst_frames(point, value)),
            drain_s=drain_s,
            drain_max_s=max(planned.drain_max_s, 2 * drain_s),
        )
    # the device learns `count` addresses, and one frame is sent to each address
    if quantity in ("addresses", "rate"):
        count, rate, first = round(value), value / (seconds or 1.0), 0
        if quantity == "rate":
            count, rate = round(asked.learning_addresses), value
            first = (1 + number * count) % (ADDRESSES - count)  # each trial has new addresses
        trial = replace(trial, burst=replace(burst, frames=count))
        return trial.with_options(addresses=count, address_first=first, learning_rate=round(rate))
    [(field, most)] = planned.load.given.items()
    load = Load(**{field: round(most if quantity == "size" else value, 6)})  # as in summaries
    trial = replace(trial, load=load, window_s=seconds, interval_s=min(planned.interval_s, seconds))
    if quantity == "size":
        # The connectivity check uses ordinary frames: devices need not forward errored ones.
        trial = replace(trial, sizes=(round(value),), check_sizes=tuple(planned.sizes))
        return trial.with_options(undersize=True)
    if quantity == "overload":  # the load falls to half within the trial (RFC 2544, 26.5)
        return trial.with_options(falls_to=50.0, falls_after_ns=round(asked.trial_s * NS))
    if subtest.two_transports:
        # Stateless ports send `window_frames` frames when the window opens, then none.
        fps = point.fps(trial.load.percent)
        assert fps is not None  # checked by in_two_transports
        return trial.with_options(window_frames=max(1, round(asked.incast_s * fps)))
    return trial


# --- remeasured trials ----------------------------------------------------------------------------
# Trials that repeat tester-limited phases (`remeasure`).


def trials_again(
    measured: Iterable[Trial], phases_of: Callable[[Trial], Sequence[int]], first: int
) -> Iterator[Trial]:
    """Yield trials that repeat only given phases of measured trials.

    `measured`: trials in order of measurement. `phases_of`: function that returns the numbers of a
    trial's phases to repeat (`Summary.remeasurable`). `first`: number of the first new trial.
    """
    for trial in measured:
        limited = list(phases_of(trial))
        if not (trial.has_single_phases and limited):
            continue
        yield replace(
            trial,
            id=first,
            again=trial.id if trial.again is None else trial.again,
            phases=len(limited),
            expected_s=trial.expected_s * len(limited) / trial.phases,
            repeats=Repeats(),
            chosen=tuple(limited),
            connectivity_check=False,
        )
        first += 1


# --- locating trials ------------------------------------------------------------------------------
# Trials that distinguish suspects (`switchbench run --locate`). They send given flows with the
# settings of an earlier trial of the run.


Flows = Sequence[Sequence[str]]  # pairs of ports


def locating_trial(run: Run, flows: Flows, transport: str, load_percent: float) -> Trial | None:
    """Return a trial of given flows with the settings of the run's trial nearest in load.

    Return None without flows, or if no trial of the run has the transport and all ports.
    """
    ends = {end for pair in flows for end in pair}
    fitting = [
        (abs((trial.load.percent or 0.0) - load_percent), trial.id, trial, part)
        for trial in run.trials
        if trial.transport == transport and trial.traffic == "stream" and not trial.own
        for part in trial.parts
        if ends <= {port.name for port in part.ranks} and "load_of" not in trial.pattern
    ]
    if not flows or not fitting:
        return None
    _, _, model, part = min(fitting, key=lambda one: one[:2])
    number = {port.name: rank for rank, port in enumerate(part.ranks)}
    return replace(
        model,
        id=max(trial.id for trial in (*run.trials, *run.again)) + 1,
        repeat=0,
        point=max(trial.point for trial in run.trials) + 1,
        repeats=Repeats(),
        parts=(part,),
        pattern={"name": "flows", "list": [number[end] for pair in flows for end in pair]},
        parameters={"flows": [list(pair) for pair in flows]},
        phases=1,
        flows=len(flows),
        expected_s=model.expected_s / model.phases,
        locating=True,
        connectivity_check=False,
    )
