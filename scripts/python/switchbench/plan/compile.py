# SPDX-License-Identifier: BSD-3-Clause
"""From a checked configuration to a run: trials, nothing left to decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from ..base import quantities, timing
from ..base.errors import ConfigurationError
from ..base.model import (
    Burst,
    ClockChoice,
    Run,
    Scatter,
    Schedule,
    Site,
    SwitchCountersCommand,
    Trial,
)
from ..base.words import listed
from ..config import CheckedConfiguration, effective
from ..config.acceptance import reservations
from ..config.clauses import Spec, excluding, matches
from ..config.effective import SWITCH_TIMEOUT_NS
from ..config.point import Point, ResolvedTest, points
from ..search.suites import SUITE_MEASURES, SUITES
from . import cores
from .draft import NODE_WORDS, NS, STEP_WARMUP, Draft
from .duration import expected_s
from .limits import check, check_memory
from .suite import SUBTEST, estimates_s, refuse_too_short, searches_of
from .two_transports import with_stateless_ports

REMEASURE_ACCEPTANCE = 3  # of profile acceptance, where nothing else is asked

BOUND_LAST = (
    "dpdk takes its ports from the kernel (bind), so all other transports ran before it: "
    "their trials did not alternate"
)


def compile_run(reading: CheckedConfiguration) -> Run:
    """Makes the run of a configuration; ConfigurationError for a plan that can't be made."""
    _refuse_unbuilt(reading)
    compiler = _Compiler(reading)
    trials = tuple(compiler.trials())
    model = reading.model
    searches: tuple[Trial, ...] = ()
    site = reading.site
    if model.suite is not None:
        (searches, site), trials = _searches(reading, trials), ()
    _refuse_unanswered(reading, trials + searches)
    return Run(
        site=site,
        trials=trials,
        seed=reading.seed,
        effective=effective(reading),
        expectations=reading.expectations,
        time_limit_s=model.time_limit / NS if model.time_limit is not None else None,
        on_missing=model.on_missing,
        worker=model.worker,
        log=model.log,
        clock=model.clock or ClockChoice(),
        start_s=timing.start_s(reading.site),
        switch_counters=_command(reading, "switch_counters"),
        device_reset=_command(reading, "device_reset"),
        about=model.about.written() if model.about else {},
        reservations=tuple(reservations(reading.site, reading.tests)),
        not_alternated=BOUND_LAST if compiler.bound_last else None,
        suite=model.suite,
        searches=searches,
        suite_parameters={} if model.suite is None else asdict(reading.suite_parameters),
        estimates_s=estimates_s(str(model.suite), reading.suite_parameters, searches),
        remeasure=_remeasure(reading),
    )


def _searches(
    reading: CheckedConfiguration, trials: tuple[Trial, ...]
) -> tuple[tuple[Trial, ...], Site]:
    """The suite's measurements, and the site with the further ports that some of them need."""
    for number, clause in enumerate(reading.expectations):
        suite = clause["measure"].partition(".")[0]
        if suite != reading.model.suite:
            words = f"suite {reading.model.suite} chooses the trials"
            text = f"{clause['measure']} is not judged where {words}"
            raise reading.document.problem(("expect", number, "measure"), text)
    try:
        searches = searches_of(str(reading.model.suite), trials)
        divided = {network for trial in searches for network in trial.own}
        return searches, with_stateless_ports(reading.site, divided)
    except ConfigurationError as error:
        raise reading.document.problem(("suite",), str(error).partition(": ")[2]) from None


def _remeasure(reading: CheckedConfiguration) -> int:
    """How often tester-limited phases are measured again at most. Suites repeat trials instead."""
    asked = reading.model.remeasure
    if asked is not None or reading.model.suite is not None:
        return asked or 0
    accepts = any(test.values.profile == "acceptance" for test in reading.tests)
    return REMEASURE_ACCEPTANCE if accepts else 0


def _command(reading: CheckedConfiguration, key: str) -> SwitchCountersCommand | None:
    asked = getattr(reading.model, key)
    if asked is None:
        return None
    if not asked.command:
        raise reading.document.problem((key, "command"), "is an empty list")
    timeout_ns = SWITCH_TIMEOUT_NS if asked.timeout is None else asked.timeout
    return SwitchCountersCommand(tuple(asked.command), timeout_ns / NS)


def refuse_too_long(run: Run) -> None:
    """Refuses a run that should take longer than `time_limit`."""
    if run.suite is not None and run.time_limit_s is not None:
        refuse_too_short(run, run.time_limit_s)
        return
    if run.time_limit_s is not None and run.longest_s > run.time_limit_s:
        repeated = ", with all repeats that may be needed" if run.longest_s > run.expected_s else ""
        raise ConfigurationError(
            f"time_limit: the run should take {timing.human(run.longest_s)}{repeated}, more than "
            f"the {quantities.DURATION.text(round(NS * run.time_limit_s))} allowed"
        )


def refuse_unrunnable(reading: CheckedConfiguration, run: Run) -> None:
    """Refuses what takes too long, or more cores than this machine has, where it stands."""
    for refuse in (refuse_too_long, cores.deal):
        try:
            refuse(run)
        except ConfigurationError as error:
            key, _, text = str(error).partition(": ")
            path = ("site", "cores") if key == "cores" else (key,)
            raise reading.document.problem(path, text) from None


def _refuse_unanswered(reading: CheckedConfiguration, trials: tuple[Trial, ...]) -> None:
    """Refuses a clause that no trial of the run can answer."""
    for i, clause in enumerate(reading.expectations):
        if reading.model.suite is None and clause["measure"] in SUITE_MEASURES:
            text = f"{clause['measure']} needs `suite: {clause['measure'].partition('.')[0]}`"
            raise reading.document.problem(("expect", i, "measure"), text)
        answering = [trial for trial in trials if _has_measure(reading, clause, trial)]
        if not answering:
            text = f"no subtest of this run measures {clause['measure']}"
            raise reading.document.problem(("expect", i, "measure"), text)
        if any(matches(clause["where"], trial) for trial in answering):
            continue
        name = f" ({clause['id']})" if "id" in clause else ""
        found = excluding(clause["where"], trials)
        if found is None:
            text = "each key holds for some trial of this run, but all of them together for none"
            raise reading.document.problem(("expect", i, "where"), f"{text}{name}")
        key, there = found
        asked = clause["where"][key]
        words = listed(asked) if isinstance(asked, list) else asked
        has = f"they have {listed(there)}" if there else "none has this parameter"
        raise reading.document.problem(
            ("expect", i, "where", key), f"no trial of this run has {words}{name}: {has}"
        )


def _has_measure(reading: CheckedConfiguration, clause: Spec, trial: Trial) -> bool:
    """Whether a trial can have the clause's measure: of a suite, only one subtest has it."""
    if reading.model.suite is None:
        return True
    subtest = SUITES[reading.model.suite].subtest(trial.parameters.get(SUBTEST))
    return any(clause["measure"].endswith(f".{value.key}") for value in subtest.values)


def _refuse_unbuilt(reading: CheckedConfiguration) -> None:
    launcher = reading.site.launcher
    if reading.model.suite is not None and not launcher.starts_nodes:
        words = f"is not implemented with launch: {launcher.name}"
        raise reading.document.problem(("suite",), words)
    if reading.model.on_missing == "exclude" and not launcher.is_far:
        words = f"exclude is not implemented with launch: {launcher.name}"
        raise reading.document.problem(("on_missing",), words)


@dataclass
class _Compiler:
    """Puts the trials in order, and numbers them."""

    reading: CheckedConfiguration
    bound_last: bool = False  # whether trials were moved behind others that they were to follow

    def trials(self) -> Iterator[Trial]:
        """All trials in order: as written, but those on bound devices behind all others."""
        turns = list(self.turns())
        ordered = sorted(turns, key=lambda turn: turn[0].bound)
        self.bound_last = ordered != turns
        points: dict[int, int] = {}  # by draft
        for identity, (draft, repeat) in enumerate(ordered):
            point = points.setdefault(id(draft), len(points))
            yield replace(_trial(draft, identity, repeat), point=point, repeats=draft.repeats)

    def turns(self) -> Iterator[_Turn]:
        """Each point as often as it is repeated; transports of one pattern alternate."""
        for group in _by_transports(self.reading.tests):
            drafts = [self.draft(number, p) for number, test in group for p in points(test)]
            if len(group) == 1:
                yield from ((draft, i) for draft in drafts for i in range(draft.repeats.most))
            else:
                yield from _alternating(drafts)

    def draft(self, number: int, point: Point) -> Draft:
        """What a point's repeats share, checked."""
        draft = Draft(self.reading, number, point)
        check(draft)
        return draft


_Turn = tuple[Draft, int]  # a point and which of its repeats


def _by_transports(tests: list[ResolvedTest]) -> Iterator[list[tuple[int, ResolvedTest]]]:
    """Tests with their numbers; neighbours that differ in the transport are together.

    What was understood of `transports: [dpdk, tcp]` is two tests, so this looks at tests and not
    at where they were written: a run that is repeated alternates again.
    """
    group: list[tuple[int, ResolvedTest]] = []
    for number, test in enumerate(tests):
        before = [known for _, known in group]
        same = all((t.pattern, t.networks) == (test.pattern, test.networks) for t in before)
        if not same or any(t.transport == test.transport for t in before):
            yield group
            group = []
        group.append((number, test))
    if group:
        yield group


def _alternating(drafts: list[Draft]) -> Iterator[_Turn]:
    """Matrix by matrix, and in each repeat by repeat: all transports meet the same hour."""
    matrices: dict[str, list[Draft]] = {}
    for draft in drafts:
        matrices.setdefault(draft.matrix, []).append(draft)
    for sharing in matrices.values():
        for repeat in range(max(draft.repeats.most for draft in sharing)):
            yield from ((draft, repeat) for draft in sharing if repeat < draft.repeats.most)


def _trial(draft: Draft, identity: int, repeat: int) -> Trial:
    """One trial of a point."""
    values = draft.values
    sizes = [draft.size(part) for part in draft.parts]
    check_memory(draft, sizes)
    phases = max(size.phases for size in sizes)
    flows = sum(size.flows for size in sizes)
    latency, scatter, batch = values.latency, values.scatter, values.batch or 1
    pingpong, burst = values.traffic == "pingpong", values.burst
    return Trial(
        id=identity,
        test=draft.number,
        repeat=repeat,
        transport=draft.transport,
        parts=draft.parts,
        pattern=draft.pattern,
        parameters=draft.parameters(),
        sizes=draft.point.sizes,
        size_unit="message" if draft.of_messages() else "frame",
        load=draft.point.load,
        traffic=values.traffic,
        warmup_s=(values.warmup or 0) / NS,
        window_s=(0 if values.window is None else draft.window_ns()) / NS,
        cooldown_s=(values.cooldown or 0) / NS,
        phases=phases,
        flows=flows,
        steps=sizes[0].share,
        expected_s=expected_s(draft, phases, flows),
        seed=values.seed,
        sync="barrier" if draft.by_steps else values.sync or "barrier",
        drain_s=values.drain_timeout / NS,
        drain_max_s=(draft.pingpong_drain_ns() if pingpong else values.drain_max) / NS,
        interval_s=(values.interval or 0) / NS,
        options={NODE_WORDS.get(key, key): x for key, x in draft.options.in_effect().items()},
        connectivity_check=values.connectivity_check,
        check_sizes=draft.check_sizes(),
        latency_stamps=latency.one_way != "off",
        probe_fps=None if latency.probes == "auto" else float(latency.probes),
        transfer_bytes=values.transfer_size,
        burst=Burst(burst.frames, burst.gap, burst.count) if burst else None,
        schedule=Schedule(
            batch=batch,
            count=batch * math.ceil((values.repetitions or 0) / batch),
            warmup=STEP_WARMUP,
            compute=values.compute or False,
        )
        if draft.by_steps
        else None,
        scatter=Scatter(scatter.count, *scatter.sizes, scatter.partners, scatter.compute)
        if scatter
        else None,
        flood_limit=values.flood_limit,
    )
