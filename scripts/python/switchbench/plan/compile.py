# SPDX-License-Identifier: BSD-3-Clause
"""Compiler of a checked configuration to a run with all its trials."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from ..base import format, model, quantities, transports
from ..base.errors import ConfigurationError, listed
from ..base.measures import MEASURES
from ..base.model import SCHEDULE, Site, Trial
from ..config import CheckedConfiguration, effective, rules
from ..config.clauses import matches, reservations
from ..config.fields import Strict
from ..config.names import Members
from ..config.schema import PATTERNS, BurstOptions, ResolvedSettings
from ..config.tests import PointPlace, points
from ..search.suites import SUITES
from . import documents
from .chosen import SUBTEST, estimates_s, parameters_of, searches_of, with_stateless_ports
from .engine import PlanRefused, plan_size, port_parts

Refusals = Iterator[tuple[str, str]]  # (invalid key or keys, message)

_MEMINFO = Path("/proc/meminfo")
WINDOW_LEAST_NS = 1_000_000  # a shorter window opens and closes between two polls of a port


def check_point(point: ResolvedSettings, site: Site, place: PointPlace) -> None:
    """Raise ConfigurationError for settings that no port supports, whatever the pattern."""
    for rule in (_frames, _verbs, _messages):
        for key, text in rule(point):
            raise place.problem(key, text)
    if point.window is not None and point.window < WINDOW_LEAST_NS:
        found, least = map(quantities.DURATION.text, (point.window, WINDOW_LEAST_NS))
        raise place.problem("window", f"{found} is too short to be measured: at least {least}")
    most = transports.of(point.transport).ports_most
    for process in site.processes:
        if most is not None and len(process.ports) > most:
            raise place.document.problem(
                ("site", "pack"),
                f"{process.name} would hold {len(process.ports)} ports in one process: "
                f"Debian's DPDK holds at most {most}",
            )
    interval_ns, window_ns = point.interval or 0, point.window
    if window_ns and interval_ns > window_ns and place.given("interval"):
        text = f"{quantities.DURATION.text(interval_ns)} is longer than the window"
        raise place.problem("interval", text)


def check_trial(trial: Trial, site: Site, memory_bytes: int, place: PointPlace) -> None:
    """Raise ConfigurationError for an impossible load, impossible shares, or too little memory.

    `memory_bytes`: memory that one repetition of a schedule needs on all ranks.
    """
    if trial.traffic not in ("stream", "burst") and "shares" in trial.pattern:
        raise place.problem(
            "flows",
            f"shares are not implemented for traffic: {trial.traffic}: "
            "use traffic: stream or burst, or flows without shares",
        )
    if trial.traffic not in model.WAITING:
        for part in trial.parts:
            shares = port_parts(trial.pattern, len(part.ranks), trial.seed)
            for port, share in zip(part.ranks, shares, strict=True):
                if text := _load_refusal(trial, port, float(share)):
                    raise place.problem("load", text)
    # All ranks of a lab are on this host; in other cases each node checks its own memory.
    spare = spare_bytes() if site.launcher.in_lab and memory_bytes else None
    if spare is not None and memory_bytes > spare:
        raise place.problem(
            "message_size pattern",
            f"the messages of all ranks need {memory_bytes >> 20} MiB of memory, and this host has "
            f"{spare >> 20} MiB to spare: use smaller messages or fewer ranks",
        )


def spare_bytes() -> int | None:
    """Return the memory that the engine may use (engine/platform/sysfs.h); None if unknown."""
    try:
        found = re.search(r"^MemAvailable: *(\d+) kB$", _MEMINFO.read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) * 1024 // 8 * 7 if found else None


def _frames(point: ResolvedSettings) -> Refusals:
    """Yield errors about frames that the transport, the header or the ports do not support."""
    header, carrier = rules.frame_header(point), transports.of(point.transport)
    if point.traffic == "burst" and not carrier.bursts:
        able = " or ".join(each.name for each in transports.TRANSPORTS if each.bursts)
        yield "traffic", f"{carrier.name} can't send bursts of a set number of frames: use {able}"
    if point.dpdk is not None and point.dpdk.destination not in (None, "port"):
        if header.header != "l2":
            yield "dpdk.destination", "broadcast and multicast frames need header l2"
        if (header.addresses or 1) > 1:
            yield "dpdk.addresses", "broadcast and multicast frames need one address per port"
    if rules.carries_messages(carrier.name, point.traffic):
        room = (point.frame_max or rules.FRAME_MOST) - rules.HEADERS[header.header]
        room, size = room - rules.SIGNATURE_FCS, max(point.sizes)
        if carrier.frames and point.traffic == "pingpong" and size > room:
            yield (
                "message_size",
                f"a ping-pong message over {carrier.name} is one frame, of at most {room} "
                f"bytes here, not {size}: larger ones run over tcp and verbs",
            )
        return
    least, tagged = rules.smallest_frame(header), header.vlan is not None
    most = point.frame_max + (rules.VLAN_TAG if tagged else 0)
    for size in point.sizes:
        if size < least:
            yield (
                "frame_size",
                f"a frame of {size} bytes holds no {header.header} header"
                f"{' with a VLAN tag' if tagged else ''} and signature: at least {least}",
            )
        if point.frame_max and size > most:
            yield (
                "frame_size",
                f"a frame of {size} bytes does not fit the ports' MTU: at most {most} "
                f"(FCS included)",
            )


def _verbs(point: ResolvedSettings) -> Refusals:
    """Yield errors about combinations of verbs options and messages that no device supports."""
    verbs, frame_max = point.verbs, point.frame_max
    if verbs is None:
        return
    service, operation = verbs.service, rules.operation_of(verbs)
    able = rules.OPERATIONS[service]
    if operation not in able:
        text = f"service {service} has no operation {operation}: it can {listed(able)}"
        yield "verbs.operation verbs.service", text
    if point.forward and service != "rc":
        yield "forward", f"a chain needs service rc: {service} does not retransmit lost messages"
    carried = rules.largest_path_mtu(frame_max) if frame_max else rules.PATH_MTUS[-1]
    mtu = verbs.mtu or carried
    if mtu > carried:
        yield (
            "verbs.mtu",
            f"{mtu} bytes and RoCE's headers exceed the ports' MTU of "
            f"{frame_max - rules.ETHERNET_HEADER_FCS}: at most {carried}",
        )
    if service == "ud" and max(point.sizes) > mtu:
        yield (
            "message_size verbs",
            f"a message of {max(point.sizes)} bytes is too large: service ud sends one packet per "
            f"message, of at most {mtu} bytes here",
        )
    if point.traffic == SCHEDULE:
        words = "a schedule needs service rc and operation send, not"
        if service != "rc":
            yield "verbs.service", f"{words} {service}"
        if operation != "send":
            yield "verbs.operation", f"{words} {operation}"


def _messages(point: ResolvedSettings) -> Refusals:
    """Yield errors about messages and schedules that the node would reject."""
    tcp, verbs = point.tcp, point.verbs
    if point.traffic in model.WAITING:
        what = "a step's message" if point.traffic == SCHEDULE else "a ping-pong message"
        for key, noun, count in (
            ("tcp.streams_per_flow", "stream", tcp.streams_per_flow if tcp else 1),
            ("verbs.queue_pairs", "queue pair", verbs.queue_pairs if verbs else 1),
        ):
            if count > 1:
                yield key, f"{what} uses only one {noun}, but {count} are set: remove this key"
    if point.traffic != SCHEDULE:
        if rules.carries_messages(point.transport, point.traffic) and min(point.sizes) == 0:
            text = "a message of 0 bytes is allowed in a schedule only; others have 1 byte to 1GiB"
            yield "message_size", text
        return
    if not transports.of(point.transport).reliable:
        text = f"{point.transport} can't carry a schedule: {transports.BY_STEPS_ONLY}"
        yield "transport", text


def _load_refusal(trial: Trial, port: model.Port, share: float) -> str | None:
    """Return the reason why a port cannot send its share of the load; None if there is none."""
    load, line_bps = trial.load, port.line_rate_bps
    wanted_bps = share * trial.layer1_bps(line_bps)
    percent = load.percent and load.percent * share
    of_line = percent if percent is not None or not line_bps else 100 * wanted_bps / line_bps
    if port.engine.get("shared") and of_line is not None and of_line > rules.SHARED_PERCENT:
        most = rules.SHARED_PERCENT
        return f"{of_line:g}% of line rate: {port.name} is shared, which allows {most:g}% at most"
    if percent is not None and percent > 100:
        of = f" for each of its senders: {percent:g}% of {port.name}" * (share != 1)
        return f'"{quantities.load_text(load)}" is above line rate{of}: at most 100%'
    if percent is not None:
        frames = transports.of(trial.transport).frames
        if line_bps or port.network != "lab" or (not frames and load.percent == 100.0):
            return None
        return (
            f"{load.percent:g}% of an unknown line rate: {port.name} is not shaped, so give the "
            "load in bit/s (100Mbit) or frames/s (10kfps), or set the site's `line_rate`"
        )
    if line_bps and wanted_bps > line_bps:
        return (
            f"{wanted_bps / 1e6:g} Mbit/s at layer 1 is above the line rate of {port.name}, "
            f"{line_bps / 1e6:g} Mbit/s"
        )
    return None


# --- the run --------------------------------------------------------------------------------------


REMEASURE_ACCEPTANCE = 3  # default of `remeasure` for profile acceptance

NS = 1e9

# Configuration keys that have other names in nodes' documents.
NODE_WORDS = {
    "udp_sources_per_flow": "udp_sources",
    "streams_per_flow": "streams",
    "problem_class": "class",
}
ROUNDS = 8  # min number of round trips at line rate within a window
_CHECK_MTU_UNKNOWN = 10_000
_CHECK_BYTES = 64
# pattern parameters that are omitted if they have the pattern's defaults
_UNSAID = ("directions", "rotate", "load_of")


def compile_run(reading: CheckedConfiguration) -> model.Run:
    """Compile a configuration to a run; raise ConfigurationError for an impossible plan."""
    document, asked, site = reading.document, reading.model, reading.site
    if asked.suite is not None and not site.launcher.starts_nodes:
        words = f"is not implemented with launch: {site.launch}"
        raise document.problem(("suite",), words)
    if asked.on_missing == "exclude" and not site.launcher.is_far:
        words = f"exclude is not implemented with launch: {site.launch}"
        raise document.problem(("on_missing",), words)
    trials, searches = tuple(compile_trials(reading)), tuple[Trial, ...]()
    accepts = any(test.profile == "acceptance" for test in reading.tests)
    remeasure = REMEASURE_ACCEPTANCE if accepts else 0
    reset = None
    if asked.device_reset is not None:
        command, timeout_s = asked.device_reset.command, asked.device_reset.timeout / NS
        reset = model.DeviceReset(tuple(command), timeout_s)
    if asked.suite is not None:  # a suite repeats tester-limited trials by itself
        for number, clause in enumerate(reading.expectations):
            if clause["measure"].partition(".")[0] != asked.suite:
                text = f"{clause['measure']} is not a measure of suite {asked.suite}"
                raise document.problem(("expect", number, "measure"), text)
        try:
            searches = searches_of(str(asked.suite), trials)
            site = with_stateless_ports(site, {name for trial in searches for name in trial.own})
        except ConfigurationError as error:
            raise document.problem(("suite",), str(error).partition(": ")[2]) from None
        trials, remeasure = (), 0
    for i, clause in enumerate(reading.expectations):  # some trial of the run has to answer it
        measure, answering = clause["measure"], trials + searches
        if asked.suite is None and measure not in MEASURES:
            text = f"{measure} needs `suite: {measure.partition('.')[0]}`"
            raise document.problem(("expect", i, "measure"), text)
        if asked.suite is not None:  # the measure belongs to one subtest
            suite, key = SUITES[asked.suite], measure.partition(".")[2]
            answering = tuple(
                trial
                for trial in searches
                if any(v.key == key for v in suite.subtest(trial.parameters.get(SUBTEST)).values)
            )
        if not answering:
            text = f"no subtest of this run measures {measure}"
            raise document.problem(("expect", i, "measure"), text)
        if not any(matches(clause["where"], trial) for trial in answering):
            name = f" ({clause['id']})" if "id" in clause else ""
            text = f"no trial of this run has all of these{name}: `switchbench plan` lists the "
            text += "trials when this clause is removed"
            raise document.problem(("expect", i, "where"), text)
    return model.Run(
        site=site,
        trials=trials,
        seed=reading.seed,
        effective=effective(reading),
        expectations=reading.expectations,
        time_limit_s=asked.time_limit / NS if asked.time_limit is not None else None,
        on_missing=asked.on_missing,
        worker=asked.worker,
        clock=model.ClockChoice(asked.clock, asked.clock_error or 0),
        start_s=START_S + START_PER_NODE_S * len(reading.site.processes),
        device_reset=reset,
        about=asked.about.written() if asked.about else {},
        reservations=tuple(reservations(reading.site, reading.tests)),
        suite=asked.suite,
        searches=searches,
        suite_parameters={} if asked.suite is None else asdict(reading.suite_parameters),
        estimates_s=estimates_s(str(asked.suite), reading.suite_parameters, searches),
        remeasure=remeasure if asked.remeasure is None else asked.remeasure,
    )


def refuse_too_long(run: model.Run) -> None:
    """Raise ConfigurationError if a run is expected to take longer than `time_limit`."""
    if run.time_limit_s is None:
        return
    takes_s = run.longest_s
    if run.suite is not None:
        takes_s = sum(estimates_s(run.suite, parameters_of(run), run.searches, min))
    if takes_s > run.time_limit_s:
        repeated = ", with all repeats that may be needed" if run.longest_s > run.expected_s else ""
        raise ConfigurationError(
            f"time_limit: the run is expected to take {format.human(takes_s)}{repeated}, more than "
            f"the {quantities.DURATION.text(round(NS * run.time_limit_s))} allowed; "
            "raise time_limit, or shorten the run by --budget"
        )


def refuse_unrunnable(reading: CheckedConfiguration, run: model.Run) -> None:
    """Raise ConfigurationError if a run needs too much time or too many cores."""
    for refuse in (refuse_too_long, documents.deal):
        try:
            refuse(run)
        except ConfigurationError as error:
            key, _, text = str(error).partition(": ")
            path = ("site", "cores") if key == "cores" else (key,)
            raise reading.document.problem(path, text) from None


# --- trials --------------------------------------------------------------------------------------


def compile_trials(reading: CheckedConfiguration) -> list[Trial]:
    """Return all trials of a configuration, in the order in which they run.

    Consecutive tests that differ only in the transport alternate repeat by repeat. An example is
    `transports: [dpdk, tcp]`, which becomes two tests.
    """
    groups: list[list[tuple[int, ResolvedSettings]]] = []
    for number, test in enumerate(reading.tests):
        before = [known for _, known in groups[-1]] if groups else []
        same = all((t.pattern, t.on) == (test.pattern, test.on) for t in before)
        if not before or not same or any(t.transport == test.transport for t in before):
            groups.append([])
        groups[-1].append((number, test))
    turns: list[tuple[Trial, int]] = []  # first trial of a point, and number of the repeat
    for group in groups:
        found = [
            trial_of(reading, number, point) for number, test in group for point in points(test)
        ]
        # Sorted by traffic matrix, then by repeat, so that all transports run close in time.
        matrices: dict[str, list[Trial]] = {}
        for trial in found:
            # Settings that compared transports must share; sizes, loads and own options may differ.
            flows = {key: value for key, value in trial.pattern.items() if key != "bytes"}
            ranks = [[port.name for port in part.ranks] for part in trial.parts]
            matrix = json.dumps([flows, ranks, trial.seed, trial.traffic])
            matrices.setdefault(matrix if len(group) > 1 else str(id(trial)), []).append(trial)
        for sharing in matrices.values():
            for repeat in range(max(trial.repeats.most for trial in sharing)):
                turns += ((trial, repeat) for trial in sharing if repeat < trial.repeats.most)
    numbers: dict[int, int] = {}  # new number of each point
    trials = []
    for identity, (trial, repeat) in enumerate(turns):
        number = numbers.setdefault(id(trial), len(numbers))
        trials.append(replace(trial, id=identity, repeat=repeat, point=number))
    return trials


def trial_of(reading: CheckedConfiguration, number: int, point: ResolvedSettings) -> Trial:
    """Return the first trial at a point (one setting) of a test; ConfigurationError if invalid."""
    site, place, carrier = reading.site, PointPlace(reading.document, point), point.transport
    check_point(point, site, place)
    parts = tuple(_part(site, network, point, place) for network in point.on)
    pattern, *others = (
        _pattern(Members(site, part.network, part.ranks), point, place) for part in parts
    )
    for part, other in zip(parts[1:], others, strict=True):
        if other != pattern:  # one pattern, by rank numbers, is for all networks
            raise place.problem(
                "concurrent_networks",
                f"{parts[0].network} and {part.network} have different ranks for "
                "these port names: test them one after the other",
            )
    try:
        sizes = [plan_size(len(part.ranks), pattern, point.seed) for part in parts]
    except PlanRefused as error:
        key = "flows" if point.pattern == "flows" else "pattern"
        raise place.problem(key, str(error)) from None
    options: Strict = getattr(point, carrier)
    latency, batch, burst = point.latency, point.batch or 1, point.burst
    by_steps, window_s = point.traffic == SCHEDULE, (point.window or 0) / NS
    drain_s, drain_max_s = point.drain_timeout / NS, point.drain_max / NS
    if point.traffic == "pingpong":
        ports = (port for part in parts for port in part.ranks)
        rounds_s = ROUNDS * round_trip_s(ports, max(point.sizes))
        if point.window is not None:
            window_s = max(window_s, rounds_s)
        each = zip(sizes, parts, strict=True)
        # Messages that a port sends and receives at the same time share its line.
        sharing = max(max(1.0, 2 * s.flows / s.phases / len(part.ranks)) for s, part in each)
        drain_max_s = max(drain_max_s, drain_s + sharing * rounds_s)
    trial = Trial(
        id=0,
        test=number,
        repeat=0,
        repeats=point.repeat,
        transport=carrier,
        parts=parts,
        pattern=pattern,
        parameters=_parameters(point),
        sizes=point.sizes,
        size_unit="message" if rules.carries_messages(carrier, point.traffic) else "frame",
        load=point.load or model.Load(percent=100.0),
        traffic=point.traffic,
        warmup_s=(point.warmup or 0) / NS,
        window_s=round(NS * window_s) / NS,
        cooldown_s=(point.cooldown or 0) / NS,
        phases=max(size.phases for size in sizes),
        flows=sum(size.flows for size in sizes),
        steps=sizes[0].share,
        expected_s=0.0,
        seed=point.seed,
        drain_s=drain_s,
        drain_max_s=round(NS * drain_max_s) / NS,
        interval_s=(point.interval or 0) / NS,
        options={NODE_WORDS.get(key, key): value for key, value in options.in_effect().items()},
        connectivity_check=point.connectivity_check,
        check_sizes=_check_sizes(point, parts),
        latency_stamps=latency.one_way != "off",
        probe_fps=None if latency.probes == "auto" else float(latency.probes),
        transfer_bytes=point.transfer_size,
        burst=model.Burst(burst.frames, burst.gap, burst.count) if burst else None,
        schedule=model.Schedule(
            batch=batch,
            count=batch * math.ceil((point.repetitions or 0) / batch),
            warmup=STEP_WARMUP,
            compute=point.compute or False,
        )
        if by_steps
        else None,
        flood_limit=point.flood_limit,
    )
    check_trial(trial, site, sum(size.memory_bytes for size in sizes), place)
    return replace(trial, expected_s=expected_s(site, trial))


def _part(site: Site, network: str, point: ResolvedSettings, place: PointPlace) -> model.Part:
    ports, count = site.networks[network], point.ranks[0] if point.ranks else None
    if len(ports) < 2:
        raise place.problem(
            "network", f"network {network} has 1 port, {ports[0].name}: a pattern needs 2 ranks"
        )
    if count is not None and count > len(ports):
        raise place.problem(
            "ranks", f"{count} ranks are more than the {len(ports)} ports of network {network}"
        )
    return model.Part(network, ports[:count])


def _check_sizes(point: ResolvedSettings, parts: Sequence[model.Part]) -> tuple[int, ...]:
    """Return the connectivity check's message sizes over byte streams; () for the load's sizes.

    One message per flow fills a segment, also a jumbo one. Messages of the load's size would take
    minutes with many flows on a slow line.
    """
    stream = transports.of(point.transport).byte_stream and point.traffic != SCHEDULE
    if not stream or not point.connectivity_check:
        return ()
    frames = [port.frame_max for part in parts for port in part.ranks]
    mtu = max(frames) - rules.ETHERNET_HEADER_FCS if all(frames) else _CHECK_MTU_UNKNOWN
    first = min(mtu, max(point.sizes))
    return (first, *[min(_CHECK_BYTES, first)] * 2)


# --- patterns ------------------------------------------------------------------------------------


def _pattern(members: Members, point: ResolvedSettings, place: PointPlace) -> model.Pattern:
    """Return a test's pattern and its parameters, with ports as rank numbers."""
    form, given = PATTERNS[point.pattern], _pattern_parameters(point)
    told = {NODE_WORDS.get(key, key): value for key, value in given.items() if key != "sync"}
    pattern: dict[str, Any] = {"name": point.pattern} | told
    if point.pattern == "flows":
        if point.flows is None:
            raise place.problem("flows", "flows is missing: a list, [[source, destination], ...]")
        shares: dict[tuple[int, int], float | None] = {}
        for position, flow in enumerate(point.flows):
            try:
                ends = members.flow(flow)
                if ends in shares:
                    raise ValueError(f"duplicate flow {members.words(*ends)}")
            except ValueError as error:
                raise place.document.problem((*place.path("flows"), position), str(error)) from None
            shares[ends] = flow.share
        pattern["list"] = [rank for flow in shares for rank in flow]
        if any(share is not None for share in shares.values()):
            pattern["shares"] = [round((share or 0.0) * 1e7) for share in shares.values()]
    for key, number in (("groups", members.groups), ("partners", members.pairs)):
        if isinstance(pattern.get(key), tuple):
            with place.document.at(place.path(key)):
                pattern[key] = number(pattern[key])
    if point.traffic == "pingpong":
        pattern["round_trip"] = True
    if isinstance(pattern.get("partners"), list):
        pattern |= {"list": pattern["partners"], "partners": "list"}
    if "groups" in pattern:
        pattern["groups"] = [{"ranks": ranks} for ranks in pattern["groups"]]
    if point.traffic == SCHEDULE:
        if not form.of_class:
            pattern["bytes"] = point.sizes[0]
        if point.sync == rules.LOCAL:
            pattern["local"] = True
    return cast("model.Pattern", pattern)


def _pattern_parameters(point: ResolvedSettings) -> dict[str, object]:
    """Return a pattern's parameters, without parameters of _UNSAID that have the default."""
    usual = PATTERNS[point.pattern].parameters
    unsaid = _UNSAID if point.pattern != "ring" else ()
    found = {key: getattr(point, key) for key in usual if key != "flows"}
    return {
        key: value
        for key, value in found.items()
        if value is not None and not (key in unsaid and value == usual[key])
    }


def _parameters(point: ResolvedSettings) -> dict[str, object]:
    """Return the parameters that distinguish trials, under the names of the configuration."""
    if point.subtest is not None:
        return {"subtest": point.subtest, "variant": point.variant} | {**point.swept}
    found = _pattern_parameters(point)
    more = ["flows", *(("sync", "compute", "batch") if point.traffic == SCHEDULE else ())]
    found |= {key: value for key in more if (value := getattr(point, key)) is not None}
    if point.burst is not None:
        usual = BurstOptions().in_effect()
        found |= {
            f"burst.{key}": value
            for key, value in point.burst.in_effect().items()
            if key == "frames" or value != usual[key]
        }
    found |= point.swept
    # JSON turns tuples into lists.
    plain: dict[str, object] = json.loads(
        json.dumps({key: rules.written_key(key, value) for key, value in found.items()})
    )
    return plain


# --- durations ------------------------------------------------------------------------------------


# Time of a phase besides its traffic: addresses of partners, sockets, two barriers. Measured in the
# lab of 8 nodes on 2 cores; each further node process on these cores adds a few ms.
PHASE_S = 0.03
PHASE_PER_NODE_S = 0.005
PROBE_S = 0.25  # seconds of a trial's connectivity check
QUEUE_PAIR_S = 0.005  # max seconds to create and connect a queue pair
START_S = 1.5  # seconds until nodes have started and ports are open, once per run
START_PER_NODE_S = 0.1

UNKNOWN_LINE_BPS = 1e9  # assumed if the line rate is unknown


STEP_WARMUP = 1  # batches of a schedule before the first measured one
_TURN_S = 200e-6  # seconds of a message in addition to its bytes at line rate
_LEARNED_S = 0.2  # pause after the last learning frame (engine/transport/dpdk/addresses.c)


def expected_s(site: Site, trial: Trial) -> float:
    """Return the expected duration of a trial in seconds, with barriers and drains."""
    options, flows = trial.options, trial.flows / trial.phases
    if transports.of(trial.transport).rdma:
        says_when_over = options["service"] == "rc"
    else:  # frames and datagrams: only the drain timeout ends a phase
        says_when_over = trial.size_unit == "message"
    sharing = len(site.processes) if site.launcher.in_lab else 0
    if "learning_rate" in options:
        setup_s = options.get("addresses", 1) / options["learning_rate"] + _LEARNED_S
    else:  # each rank creates the queue pairs of the flows that it sends and receives
        ranks = sum(len(part.ranks) for part in trial.parts)
        setup_s = QUEUE_PAIR_S * 2 * flows / ranks * options.get("queue_pairs", 0)
    between_s = float(setup_s) + PHASE_S + PHASE_PER_NODE_S * sharing
    probe_s = PROBE_S if trial.connectivity_check else 0.0
    whole_s = trial.phases * _traffic_s(trial, flows) + probe_s
    return whole_s + trial.phases * (between_s + (0.0 if says_when_over else trial.drain_s))


def _traffic_s(trial: Trial, flows: float) -> float:
    """Return the seconds of traffic in one phase that has the given number of flows."""
    if trial.schedule is not None and trial.schedule.count:
        repetitions = STEP_WARMUP * trial.schedule.batch + trial.schedule.count
        steps, ports = trial.steps, trial.ports
        if steps is None:
            return 0.0
        # Assumes line rate and no concurrent computation.
        each_bytes = steps.payload_bytes // (trial.phases * len(trial.parts[0].ranks))
        return repetitions * (steps.steps * _TURN_S + round_trip_s(ports, each_bytes) / 2)
    if trial.window_s:
        return trial.warmup_s + trial.window_s + trial.cooldown_s
    if (burst := trial.burst) is not None:
        frames = burst.count * burst.frames
        return frames / trial.frames_per_s(_line_bps(trial)) + (burst.count - 1) * burst.gap_ns / NS
    bits = 8 * (trial.transfer_bytes or 0) * max(1.0, flows / len(trial.ports))
    return bits / _line_bps(trial) * 100 / (trial.load.percent or 100.0)


def _line_bps(trial: Trial) -> float:
    return min(port.line_rate_bps or UNKNOWN_LINE_BPS for port in trial.ports)


def round_trip_s(ports: Iterable[model.Port], size: int) -> float:
    """Return the seconds of a message's round trip at line rate without other traffic."""
    line_bps = min(port.line_rate_bps for port in ports) or UNKNOWN_LINE_BPS
    return 2 * 8 * size / line_bps + 2 * _TURN_S
