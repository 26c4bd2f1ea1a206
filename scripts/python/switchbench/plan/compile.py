# SPDX-License-Identifier: BSD-3-Clause
"""From a checked configuration to a run: trials with complete documents, nothing left to decide."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

from ..base import timing, transports
from ..base.errors import ConfigurationError
from ..base.memory import spare_bytes
from ..base.model import (
    SCHEDULE,
    ClockChoice,
    Load,
    Part,
    Port,
    Repeats,
    Run,
    SwitchCounters,
    Trial,
)
from ..base.words import listed
from ..config import Reading, effective
from ..config.acceptance import about_values, reservations
from ..config.clauses import excluding, matches
from ..config.effective import SWITCH_TIMEOUT_NS
from ..config.effective import text as written
from ..config.hpcc import Share
from ..config.members import Members
from ..config.profiles import SHARED_PERCENT
from ..config.resolve import (
    Point,
    Test,
    frame_limits,
    given,
    place,
    points,
    verbs_limits,
    waiting_limits,
)
from ..config.settings import PATTERN_KEYS, carries_messages
from ..config.steps import (
    COMPOSITE,
    FUNCTIONS,
    KERNELS,
    LOCAL,
    SIZELESS,
    algorithm_refusal,
    size_refusal,
)
from .busiest import MOST_FLOWS, Busiest
from .engine import PlanRefused, PlanRequest, PlanSize, plan_size

NS = 1e9
LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3)
BOUND_LAST = (
    "dpdk takes its ports from the kernel (bind), so all other transports ran before it: "
    "their trials did not alternate"
)

# Configuration words that a node's documents call otherwise.
_NODE_WORDS = {
    "udp_sources_per_flow": "udp_sources",
    "streams_per_flow": "streams",
    "problem_class": "class",
}
_STEP_WARMUP = 1  # batches before those that count
_STEPS_TOLD = ("sync", "compute", "batch")  # which of their settings tell trials apart
_FRAME_OVERHEAD = 18  # Ethernet header 14 and FCS 4: what a frame has beyond the MTU
# One probe of a flow fills a segment, jumbo or not; to say that it is there a few bytes will do.
_PROBE_MTU_UNKNOWN = 10_000
_PROBE_BYTES = 64
_ROUNDS = 8  # a window has at least so many round trips at line rate
_TURN_S = 200e-6  # of a message besides its bytes, for what a trial should take
# Messages of drawn sizes that share links wait for each other: so much longer than the busiest
# link's own time, seen on labs of 8 nodes.
_CROWD = 1.25
_ALONE_S = 0.5  # of a scatter beside computing: its rate alone (engine/traffic/pingpong.c)
_COMPUTING_TURN_S = 2e-3  # by how much a turn is later for each other node that computes on a core
# Parameters that say where and when, not which flows.
_NOT_FLOWS = ("sync",)
_NOT_MATRIX = ("bytes", "method")  # of a pattern: how much, and how


def compile_run(reading: Reading) -> Run:
    """Makes the run of a configuration; ConfigurationError for a plan that can't be made."""
    compiler = _Compiler(reading)
    trials = tuple(compiler.trials())
    model = reading.model
    _refuse_unanswered(reading, trials)
    return Run(
        site=reading.site,
        trials=trials,
        seed=reading.seed,
        effective=effective(reading),
        expectations=reading.expectations,
        time_limit_s=model.time_limit / NS if model.time_limit is not None else None,
        on_missing=model.on_missing or "stop",
        worker=model.worker or "auto",
        log=model.log or "info",
        clock=model.clock or ClockChoice(),
        start_s=timing.start_s(reading.site),
        switch_counters=_switch_counters(reading),
        about=about_values(model),
        reservations=tuple(reservations(reading.site, reading.tests)),
        notes=reading.site.notes,
        unbuilt=(*reading.site.unbuilt, *_unbuilt(reading, trials)),
        not_alternated=BOUND_LAST if compiler.bound_last else None,
    )


def _switch_counters(reading: Reading) -> SwitchCounters | None:
    asked = reading.model.switch_counters
    if asked is None:
        return None
    if not asked.command:
        raise reading.document.problem(("switch_counters", "command"), "is an empty list")
    timeout_ns = SWITCH_TIMEOUT_NS if asked.timeout is None else asked.timeout
    return SwitchCounters(tuple(asked.command), timeout_ns / NS)


def refuse_unbuilt(run: Run) -> None:
    """Refuses by name what can be planned but not run yet."""
    if run.unbuilt:
        raise ConfigurationError(f"not built yet: {', '.join(run.unbuilt)}")


def refuse_too_long(run: Run) -> None:
    """Refuses a run that should take longer than `time_limit`."""
    if run.time_limit_s is not None and run.longest_s > run.time_limit_s:
        repeated = ", with all repeats that may be needed" if run.longest_s > run.expected_s else ""
        raise ConfigurationError(
            f"time_limit: the run should take {timing.human(run.longest_s)}{repeated}, more than "
            f"the {timing.human(run.time_limit_s)} allowed"
        )


def _refuse_unanswered(reading: Reading, trials: tuple[Trial, ...]) -> None:
    """Refuses a clause that no trial of the run can answer."""
    for i, clause in enumerate(reading.expectations):
        if any(matches(clause["where"], trial) for trial in trials):
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


def _unbuilt(reading: Reading, trials: tuple[Trial, ...]) -> Iterator[str]:
    built = (("pingpong", attrgetter("pingpong")), (SCHEDULE, attrgetter("schedules")))
    for traffic, builds in built:
        used = {t.transport for t in trials if t.traffic == traffic}
        for transport in sorted(name for name in used if not builds(transports.of(name))):
            yield f"traffic: {traffic} over {transport}"
    if reading.model.on_missing == "exclude" and reading.site.launch not in ("ssh", "slurm"):
        yield f"on_missing: exclude with launch: {reading.site.launch}"


@dataclass
class _Compiler:
    """Puts the trials in order, and numbers them."""

    reading: Reading
    bound_last: bool = False  # whether trials were moved behind others that they were to follow

    def trials(self) -> Iterator[Trial]:
        """All trials in order: as written, but those on bound devices behind all others."""
        turns = list(self.turns())
        ordered = sorted(turns, key=lambda turn: turn[0].bound)
        self.bound_last = ordered != turns
        points: dict[int, int] = {}  # by draft
        for identity, (draft, repeat) in enumerate(ordered):
            point = points.setdefault(id(draft), len(points))
            yield replace(draft.trial(identity, repeat), point=point, repeats=draft.repeats)

    def turns(self) -> Iterator[_Turn]:
        """Each point as often as it is repeated; transports of one pattern alternate."""
        for group in _by_transports(self.reading.tests):
            drafts = [self.draft(number, p) for number, test in group for p in points(test)]
            if len(group) == 1 and group[0][1].pattern != COMPOSITE:
                yield from ((draft, i) for draft in drafts for i in range(draft.repeats.most))
            else:
                yield from _alternating(drafts)

    def draft(self, number: int, point: Point) -> _Draft:
        """What a point's repeats share, checked."""
        draft = _Draft(self.reading, number, point)
        draft.check()
        return draft


_Turn = tuple["_Draft", int]  # a point and which of its repeats


def _by_transports(tests: list[Test]) -> Iterator[list[tuple[int, Test]]]:
    """Tests with their numbers; neighbours that differ in the transport are together.

    What was understood of `transports: [dpdk, tcp]` is two tests, so this looks at tests and not
    at where they were written: a run that is repeated alternates again.
    """
    group: list[tuple[int, Test]] = []
    for number, test in enumerate(tests):
        before = [known for _, known in group]
        same = all((t.pattern, t.networks) == (test.pattern, test.networks) for t in before)
        if not same or any(t.transport == test.transport for t in before):
            yield group
            group = []
        group.append((number, test))
    if group:
        yield group


def _alternating(drafts: list[_Draft]) -> Iterator[_Turn]:
    """Matrix by matrix, and in each repeat by repeat: all transports meet the same hour."""
    matrices: dict[str, list[_Draft]] = {}
    for draft in drafts:
        matrices.setdefault(draft.matrix, []).append(draft)
    for sharing in matrices.values():
        for repeat in range(max(draft.repeats.most for draft in sharing)):
            yield from ((draft, repeat) for draft in sharing if repeat < draft.repeats.most)


class _Draft:
    """What the repeats of one point share."""

    def __init__(self, reading: Reading, number: int, point: Point) -> None:
        self.number = number
        self.reading = reading
        self.document = reading.document
        self.site = reading.site
        self.point = point
        self.values = point.values
        self.transport = point.test.transport
        self.carrier = transports.of(self.transport)
        self.parts = tuple(self._part(network) for network in point.test.networks)
        self.pattern = self._pattern()

    def problem(self, key: str, text: str) -> ConfigurationError:
        """The error at a setting of this point."""
        return self.document.problem(place(self.point, key, self.document), text)

    def check(self) -> None:
        """Refuses what no port can do."""
        frame_limits(self.point, self.document)
        verbs_limits(self.point, self.document)
        waiting_limits(self.point, self.document)
        self._check_load()
        self._check_pack()
        self._check_interim()
        self._check_steps()
        if self.values["traffic"] == "transfer" and self.values.get("sync") == "none":
            raise self.problem(
                "sync", "none needs phases of a known length, and a transfer has none"
            )

    @property
    def repeats(self) -> Repeats:
        """How often it is run."""
        found: Repeats = self.values["repeat"]
        return found

    @property
    def matrix(self) -> str:
        """What transports can be compared on: not sizes, loads and their own options. HPCC's
        two methods take turns as well: its user is told of the better one."""
        flows = {key: value for key, value in self.pattern.items() if key not in _NOT_MATRIX}
        ranks = [[port.name for port in part.ranks] for part in self.parts]
        return json.dumps([flows, ranks, self.values["seed"], self.values["traffic"]])

    @property
    def bound(self) -> bool:
        """Whether its ports have to leave their kernel driver (`bind`)."""
        ports = (port for part in self.parts for port in part.ranks)
        binds = self.carrier.raw and "bind" in self.site.effective
        return binds and any("pci" in port.engine for port in ports)

    def trial(self, identity: int, repeat: int) -> Trial:
        """One trial with its document."""
        values = self.values
        sizes = [self._size(part) for part in self.parts]
        self._check_memory(sizes)
        phases = max(size.phases for size in sizes)
        flows = sum(size.flows for size in sizes)
        return Trial(
            id=identity,
            test=self.number,
            repeat=repeat,
            transport=self.transport,
            parts=self.parts,
            pattern=self.pattern,
            parameters=self._parameters(),
            sizes=self.point.sizes,
            size_unit="message" if self._of_messages() else "frame",
            load=self.point.load,
            traffic=values["traffic"],
            warmup_s=values.get("warmup", 0) / NS,
            window_s=(self._window_ns() if "window" in values else 0) / NS,
            cooldown_s=values.get("cooldown", 0) / NS,
            phases=phases,
            flows=flows,
            document=self._document(identity, repeat),
            steps=None if sizes[0].share is None else asdict(sizes[0].share),
            expected_s=self._expected_s(phases, flows),
        )

    def _part(self, network: str) -> Part:
        ports = self.site.networks[network]
        count = self.point.ranks
        if len(ports) < 2:
            raise self.problem(
                "network", f"network {network} has 1 port, {ports[0].name}: a pattern needs 2 ranks"
            )
        if count is not None and count > len(ports):
            raise self.problem(
                "ranks", f"{count} ranks are more than the {len(ports)} ports of network {network}"
            )
        share = self.point.share
        if share is not None and share.pair is not None:
            return Part(network, tuple(ports[rank] for rank in share.pair))
        return Part(network, ports[:count])

    def _pattern(self) -> dict[str, Any]:
        """The `trial` document's pattern, the same for every part."""
        found = [self._pattern_of(part) for part in self.parts]
        for part, pattern in zip(self.parts, found, strict=True):
            if pattern != found[0]:
                raise self.problem(
                    "together",
                    f"{self.parts[0].network} and {part.network} number their ranks differently "
                    "for these names: test them one after the other",
                )
        return found[0]

    def _pattern_of(self, part: Part) -> dict[str, Any]:
        keys = PATTERN_KEYS[self.point.pattern]
        pattern: dict[str, Any] = {"name": self.point.pattern}
        pattern |= {
            _NODE_WORDS.get(key, key): self.values[key]
            for key in keys
            if key not in _NOT_FLOWS and self.values.get(key) is not None
        }
        members = Members(self.site, part.network, part.ranks)
        listed = self.point.pattern == "partial_mesh"
        if listed and not isinstance(pattern.get("partners"), tuple):
            raise self.problem(
                "partners", "partial_mesh needs a list: [[source, destination], ...]"
            )
        pairs = members.flows if listed else members.pairs
        for key, number in (("groups", members.groups), ("partners", pairs)):
            if isinstance(pattern.get(key), tuple):
                try:
                    pattern[key] = number(pattern[key])
                except ValueError as error:
                    raise self.problem(key, str(error)) from None
        if self.values["traffic"] == "pingpong" and not self._draws_partners():
            pattern["there_and_back"] = True
        if isinstance(pattern.get("partners"), list):
            pattern["list"] = pattern.pop("partners")
            if not listed:
                pattern["partners"] = "list"
        if "groups" in pattern:
            pattern["groups"] = [{"ranks": ranks} for ranks in pattern["groups"]]
        return pattern | (self._of_steps() if self.by_steps else {})

    @property
    def by_steps(self) -> bool:
        """Whether ranks go on by themselves, without barriers."""
        return bool(self.values["traffic"] == SCHEDULE)

    def _of_steps(self) -> dict[str, Any]:
        """What a pattern that goes by steps is told besides its flows."""
        kernel = self.point.pattern in KERNELS and self.point.pattern in SIZELESS
        keys: dict[str, Any] = {} if kernel else {"bytes": self.point.sizes[0]}
        if self.values.get("sync") == LOCAL:
            keys["local"] = True
        if self.point.share is not None and self.point.share.method is not None:
            keys["method"] = self.point.share.method
        return keys

    def _parameters(self) -> dict[str, Any]:
        """The parameters by names, and what the sweep chose: what tells trials apart."""
        if self.point.share is not None:
            return self._of_suite(self.point.share) | self.point.swept
        keys = [*PATTERN_KEYS[self.point.pattern], *(_STEPS_TOLD if self.by_steps else ())]
        named = {key: self.values[key] for key in keys if key in self.values}
        if "scatter" in self.values:
            named["scatter"] = self.values["scatter"]
        return {
            key: _plain(written(key, value)) for key, value in (named | self.point.swept).items()
        }

    def _of_suite(self, share: Share) -> dict[str, Any]:
        """What tells a suite's trials apart."""
        words: dict[str, Any] = {COMPOSITE: share.measure}
        if share.method is not None:
            words["method"] = share.method
        if share.pair is not None:
            words["pair"] = " ".join(port.name for port in self.parts[0].ranks)
            words["among"] = self.point.ranks or self.point.test.ports
        return words

    def _size(self, part: Part) -> PlanSize:
        """The plan's size; the pattern's refusal gets its place in the file."""
        try:
            return plan_size(PlanRequest.of(len(part.ranks), self.pattern, self.values["seed"]))
        except PlanRefused as error:
            raise self.problem("pattern", str(error)) from None

    def _check_memory(self, sizes: Sequence[PlanSize]) -> None:
        """All ranks of a lab are on this host; elsewhere each node looks at its own."""
        if self.site.launch != "lab" or self.site.guests or not self.by_steps:
            return
        needed = sum(size.memory_bytes for size in sizes)
        spare = spare_bytes()
        if spare is not None and needed > spare:
            sized = [form for form in ("message_size", "message_sizes") if form in self.values]
            raise self.problem(
                sized[0] if sized else "pattern",
                f"the messages of all ranks need {needed >> 20} MiB of memory, and this host has "
                f"{spare >> 20} MiB to spare: use smaller messages or fewer ranks",
            )

    def _document(self, identity: int, repeat: int) -> dict[str, Any]:
        """The `trial` document (doc/node-protocol.md)."""
        values = self.values
        document: dict[str, Any] = {
            "id": identity,
            "repeat": repeat,
            "transport": self.transport,
            "parts": [
                {"network": part.network, "ranks": [port.name for port in part.ranks]}
                for part in self.parts
            ],
            "pattern": self.pattern,
            "seed": values["seed"],
            "probe": values["probe"],
            "sync": "barrier" if self.by_steps else values.get("sync", "barrier"),
            "traffic": values["traffic"],
            "sizes": list(self.point.sizes),
            "load": load_document(self.point.load),
            "warmup_ns": values.get("warmup", 0),
            "window_ns": values.get("window", 0),
            "cooldown_ns": values.get("cooldown", 0),
            "drain_silence_ns": values["drain_silence"],
            "drain_max_ns": values["drain_max"],
        }
        document |= self._probe_sizes()
        if values.get("interim"):
            document["interim_ns"] = values["interim"]
        if values["traffic"] == "pingpong":
            document |= self._pingpong()
        if self.by_steps:
            document = self._schedule() | {
                key: value for key, value in document.items() if key != "sizes"
            }
        if "transfer_size" in values:
            document["transfer_bytes"] = values["transfer_size"]
        if "flood_limit" in values:
            document["flood_limit"] = values["flood_limit"]
        document["latency"] = latency_document(values["latency"])
        document[self.transport] = {
            _NODE_WORDS.get(key, key): value for key, value in values[self.transport].items()
        }
        return document

    def _probe_sizes(self) -> dict[str, Any]:
        """Of a byte stream: on a slow line with many flows whole messages would take minutes."""
        if not self.carrier.byte_stream or self.by_steps or not self.values["probe"]:
            return {}
        frames = [port.frame_max for part in self.parts for port in part.ranks]
        mtu = max(frames) - _FRAME_OVERHEAD if all(frames) else _PROBE_MTU_UNKNOWN
        first = min(mtu, max(self.point.sizes))
        return {"probe_sizes": [first, *[min(_PROBE_BYTES, first)] * 2]}

    def _of_messages(self) -> bool:
        return carries_messages(self.transport, self.values["traffic"])

    def _draws_partners(self) -> bool:
        return bool(self.values.get("scatter", {}).get("partners") == "random")

    def _round_s(self, size: int) -> float:
        """A message there and back, at line rate and alone."""
        rates_bps = [port.line_rate_bps for part in self.parts for port in part.ranks]
        line_bps = min(rates_bps) or timing.UNKNOWN_LINE_BPS
        return 2 * 8 * size / line_bps + 2 * _TURN_S

    def _repetition_s(self) -> float:
        """One repetition by steps, at line rate and without computing: about so long."""
        size, ranks = self._size(self.parts[0]), len(self.parts[0].ranks)
        if size.share is None:
            return 0.0
        each_bytes = size.share.payload_bytes // (size.phases * ranks)
        return size.share.steps * _TURN_S + self._round_s(each_bytes) / 2

    def _flows_a_port(self) -> float:
        """Flows that a port has under way at once, sent and received: they share its line."""
        sizes = ((self._size(part), len(part.ranks)) for part in self.parts)
        return max(max(1.0, 2 * size.flows / size.phases / ranks) for size, ranks in sizes)

    def _window_ns(self) -> int:
        """The window; of long messages one that is long enough."""
        window_ns = int(self.values["window"])
        if self.values["traffic"] != "pingpong":
            return window_ns
        return max(window_ns, round(NS * _ROUNDS * self._round_s(max(self.point.sizes))))

    def _pingpong(self) -> dict[str, Any]:
        """What a document says of messages there and back."""
        patience_ns = round(
            NS * _ROUNDS * self._round_s(max(self.point.sizes)) * self._flows_a_port()
        )
        silence_ns = self.values["drain_silence"]
        keys: dict[str, Any] = {
            "drain_max_ns": max(self.values["drain_max"], silence_ns + patience_ns),
            "pingpong": {"patience_ns": silence_ns},
        }
        scatter = self.values.get("scatter")
        if scatter is None:
            return keys | {"window_ns": self._window_ns()}
        least, most = scatter["sizes"]
        keys["pingpong"] |= {
            "count": scatter["count"],
            "size_least": least,
            "size_most": most,
            "partners": scatter["partners"],
            "samples": True,
            "compute": scatter["compute"],
        }
        return keys

    def _schedule(self) -> dict[str, Any]:
        """What a document says of steps; whole batches are counted."""
        values = self.values
        count = values["batch"] * math.ceil(values.get("repetitions", 0) / values["batch"])
        return {
            "schedule": {
                "batch": values["batch"],
                "count": count,
                "lead": values.get("lead", 0),
                "warmup": values.get("unmeasured", _STEP_WARMUP),
                "compute": values.get("compute", False),
            }
        }

    def _expected_s(self, phases: int, flows: int) -> float:
        values = self.values
        course = timing.Course(
            phases=phases,
            traffic_s=self._traffic_s(flows / phases),
            # Connections say when they are over; frames and datagrams only fall silent.
            drain_s=0.0 if self._says_when_over() else values["drain_silence"] / NS,
            setup_s=self._setup_s(flows / phases),
            by_clock_s=values["drain_silence"] / NS if values.get("sync") == "none" else None,
            probe=values["probe"],
        )
        return timing.trial_s(self.site, course)

    def _says_when_over(self) -> bool:
        if self.carrier.rdma:
            return bool(self.values[self.transport]["service"] == "rc")
        return self._of_messages()

    def _setup_s(self, flows: float) -> float:
        """What a phase's queue pairs take; each rank makes those of its own flows."""
        if not self.carrier.rdma:
            return 0.0
        ranks = sum(len(part.ranks) for part in self.parts)
        each_rank = 2 * flows / ranks  # sent and received
        return float(timing.QUEUE_PAIR_S * each_rank * self.values[self.transport]["queue_pairs"])

    def _traffic_s(self, flows: float) -> float:
        """How long one phase of so many flows sends."""
        values = self.values
        if "scatter" in values:
            return self._scatter_s(flows)
        if "repetitions" in values:
            batches = values.get("unmeasured", _STEP_WARMUP) + math.ceil(
                values["repetitions"] / values["batch"]
            )
            each = values.get("lead", 0) + values["batch"]
            return float(batches * each * self._repetition_s())
        if "transfer_size" not in values:
            return float(values["warmup"] + self._window_ns() + values["cooldown"]) / NS
        ports = [port for part in self.parts for port in part.ranks]
        rates_bps = [port.line_rate_bps or timing.UNKNOWN_LINE_BPS for port in ports]
        share = self.point.load.percent or 100.0
        bits = 8 * values["transfer_size"] * max(1.0, flows / len(ports))
        return float(bits / (min(rates_bps) * share / 100))

    def _scatter_s(self, flows: float) -> float:
        """How long its messages take: of sizes that are uniform in their logarithm."""
        scatter = self.values["scatter"]
        least, most = scatter["sizes"]
        mean, spread = _log_uniform(least, most)
        # Of all flows the one that draws the largest messages ends last.
        last = 1 + spread * math.sqrt(2 * math.log(max(1.0, flows)) / scatter["count"])
        each = self._round_s(round(last * mean)) + 2 * self._computing_turn_s(scatter["compute"])
        alone = _ALONE_S if scatter["compute"] else 0.0
        shared = max(self._shared_byte_s(part, flows) for part in self.parts) * mean
        return float(alone + scatter["count"] * max(each, shared))

    def _computing_turn_s(self, compute: float) -> float:
        """What computing adds to a turn where nodes share the cores of one machine."""
        if self.site.lab is None:
            return 0.0
        nodes = len(self.site.processes) / (os.cpu_count() or 1)
        return _COMPUTING_TURN_S * compute * nodes

    def _shared_byte_s(self, part: Part, flows: float) -> float:
        """What a byte there and back takes where the messages under way share links."""
        ranks = len(part.ranks)
        crowd = 2 - 1 / ranks if self._draws_partners() else _CROWD
        request = PlanRequest.of(ranks, self.pattern, self.values["seed"])
        size = self._size(part)
        busiest = Busiest.of(self.site) if size.flows <= MOST_FLOWS else None
        if busiest is not None:
            return crowd * busiest.byte_s(part, request, not self._draws_partners())
        ports = sum(len(each.ranks) for each in self.parts)
        under_way = 2.0 if self._draws_partners() else 2 * flows / ports
        rates_bps = [port.line_rate_bps for port in part.ranks]
        return crowd * 8 * under_way / (min(rates_bps) or timing.UNKNOWN_LINE_BPS)

    def _check_steps(self) -> None:
        pattern, values = self.point.pattern, self.values
        size_key = "message_size" if "message_size" in values else "message_sizes"
        if not self.by_steps:
            least = min(self.point.sizes)
            if self._of_messages() and least == 0:
                raise self.problem(
                    size_key,
                    "a message of 0 bytes: only steps are empty, others have 1 byte to 1GiB",
                )
            return
        for size in self.point.sizes:
            if odd := size_refusal(pattern, size):
                raise self.problem(size_key, odd)
        if pattern in FUNCTIONS and "algorithm" in values:
            refusal = algorithm_refusal(pattern, values["algorithm"])
            if refusal:
                raise self.problem("algorithm", refusal)
        if values.get("compute") and self.carrier.schedules and not self.carrier.reliable:
            others = (each.name for each in transports.TRANSPORTS if each.reliable)
            raise self.problem(
                "compute",
                f"{self.transport} loses messages, and what is computed of them would be wrong: "
                f"take {' or '.join(sorted(others))}",
            )

    def _check_load(self) -> None:
        if self.values["traffic"] in ("pingpong", SCHEDULE):
            return  # it has none
        for part in self.parts:
            for port in part.ranks:
                text = _load_refusal(self.point, port)
                if text:
                    key = "load" if "load" in self.values else "loads"
                    raise self.problem(key, text)

    def _check_interim(self) -> None:
        step_ns, window_ns = self.values["interim"], self.values.get("window", 0)
        if window_ns and step_ns > window_ns and given(self.point, "interim", self.document):
            raise self.problem(
                "interim",
                f"{written('interim', step_ns)} is longer than the window: none would end",
            )

    def _check_pack(self) -> None:
        most = self.carrier.ports_most
        if most is None:
            return
        for process in self.site.processes:
            if len(process.ports) > most:
                raise self.document.problem(
                    ("site", "pack"),
                    f"{process.name} would hold {len(process.ports)} ports in one process: "
                    f"Debian's DPDK holds at most {most}",
                )


def _log_uniform(least: float, most: float) -> tuple[float, float]:
    """The mean of numbers that are uniform in their logarithm, and their deviation by it."""
    if most <= least:
        return most, 0.0
    width = math.log(most / least)
    mean = (most - least) / width
    square = (most**2 - least**2) / (2 * width)
    return mean, math.sqrt(square - mean**2) / mean


def load_document(load: Load) -> dict[str, float]:
    """A load as the `trial` document has it."""
    if load.percent is not None:
        return {"percent": load.percent}
    return {"bps": load.bps} if load.bps is not None else {"fps": load.fps or 0.0}


def latency_document(latency: dict[str, Any]) -> dict[str, Any]:
    """What is measured beside the load, as the `trial` document has it."""
    document: dict[str, Any] = {"stamps": latency["one_way"] != "off"}
    if latency["probes"] != "auto":
        document["probe_fps"] = latency["probes"]
    return document


def _shared_refusal(point: Point, port: Port) -> str | None:
    """What other traffic on the port's line needs is left to it."""
    load, line_bps = point.load, port.line_rate_bps
    percent = load.percent
    if percent is None and line_bps:
        mean_bytes = sum(point.sizes) / len(point.sizes)
        if transports.of(point.test.transport).frames:
            mean_bytes += LAYER1_OVERHEAD
        wanted_bps = load.bps if load.bps is not None else 8 * mean_bytes * (load.fps or 0.0)
        percent = 100 * wanted_bps / line_bps
    if percent is None or percent <= SHARED_PERCENT:
        return None
    return f"{percent:g}% of line: {port.name} is shared, so at most {SHARED_PERCENT:g}% is for it"


def _load_refusal(point: Point, port: Port) -> str | None:
    """Why a port can't be asked for this load, or None."""
    load, line_bps = point.load, port.line_rate_bps
    shared = _shared_refusal(point, port) if port.engine.get("shared") else None
    if shared is not None:
        return shared
    if load.percent is not None:
        known = line_bps or port.network != "lab"
        frames = transports.of(point.test.transport).frames
        if known or (not frames and load.percent == 100.0):
            return None
        return (
            f"{load.percent:g}% of an unknown line rate: {port.name} is not shaped, so give the "
            "load in bit/s (100Mbit) or frames/s (10kfps), or the site a `line_rate`"
        )
    mean_bytes = sum(point.sizes) / len(point.sizes)
    if transports.of(point.test.transport).frames:
        mean_bytes += LAYER1_OVERHEAD
    wanted_bps = load.bps if load.bps is not None else 8 * mean_bytes * (load.fps or 0.0)
    if line_bps and wanted_bps > line_bps:
        return (
            f"{wanted_bps / 1e6:g} Mbit/s at layer 1 is above the line rate of {port.name}, "
            f"{line_bps / 1e6:g} Mbit/s"
        )
    return None


def _plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples."""
    return json.loads(json.dumps(value))
