# SPDX-License-Identifier: BSD-3-Clause
"""The words that the parts of the command share: sites, trials, runs.

Plain values, made by `config`, read by everything below it. Nothing here reads files, starts
processes or knows YAML. Names follow the project's glossary (doc/developer/architecture.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, SkipValidation, with_config
from typing_extensions import TypedDict

from . import transports


@dataclass(frozen=True)
class LauncherKind:
    """What planning and the commands ask of a launcher."""

    name: str
    in_lab: bool = False  # all nodes are on this machine and share its cores
    starts_nodes: bool = True  # `run` does; else people do
    is_far: bool = False  # on hosts of which some may be missing
    logs_in: bool = False  # hosts run other commands as well: push, doctor, bind


LAUNCHERS = (
    LauncherKind("lab", in_lab=True),
    LauncherKind("ssh", is_far=True, logs_in=True),
    LauncherKind("slurm", is_far=True),
    LauncherKind("command", is_far=True),
    LauncherKind("hand", starts_nodes=False),
)

_BY_NAME = {launcher.name: launcher for launcher in LAUNCHERS}


def launcher_of(name: str) -> LauncherKind:
    """Return the launcher of a name that was checked."""
    return _BY_NAME[name]


# --- model ----------------------------------------------------------------------------------------
# The words that the parts of the command share: sites, trials, runs.


_MEMIF_FRAME_MAX = 1518  # as DPDK's driver says it


@dataclass(frozen=True)
class Port:
    """A port of a host: an endpoint of traffic."""

    name: str  # "node12:e0"
    host: str  # "node12"
    network: str  # ports that can reach each other
    transports: tuple[str, ...]  # which it can have: dpdk, tcp, udp, verbs
    engine: dict[str, Any]  # its keys in the node's `job` document (doc/developer/node-protocol.md)
    line_rate_bps: int = 0  # layer 1; 0: unknown, the driver is asked
    frame_max: int = 0  # largest untagged frame with FCS; 0: unknown, the node knows
    switch: str | None = None  # where the wiring is known
    switch_port: str | None = None
    why_these: str = ""  # transports and no others, where that is not its kind's doing
    tester: str = (
        ""  # of a campaign's results: the host's port; `name` says where it was plugged in
    )
    rounds: tuple[int, ...] = ()  # ... and in which rounds it was there, from 1

    def frame_limit(self, transport: str) -> int:
        """Return the largest untagged frame with FCS that a transport sends; 0: unknown.

        A modelled switch's memif carries less than the lab's MTU may allow.
        """
        if transports.of(transport).raw and "memif" in self.engine.get("vdev", ""):
            return min(self.frame_max, _MEMIF_FRAME_MAX)
        return self.frame_max


@dataclass(frozen=True)
class Process:
    """One node process: the ports it hosts and where its control socket lives."""

    name: str  # the host's name, or "node[01-16]" when several are packed
    ports: tuple[Port, ...]
    control: dict[str, str]  # the `control` mapping of the `job` document
    cores: tuple[int, ...] = ()  # its workers', as named; none: it chooses


@dataclass(frozen=True)
class CableBundle:
    """All parallel cables between two switches, or between two hosts that forward; full duplex."""

    a: str
    b: str
    rate_bps: int  # layer 1, of all of them together, each way; 0: unknown, or no limit
    links: int = 1


@dataclass(frozen=True)
class Wiring:
    """The network between the switches that ports are on (`Port.switch`)."""

    source: str  # "topology file NAME"
    cables: tuple[CableBundle, ...] = ()
    routed: bool = False  # hosts forward, too
    problems: tuple[str, ...] = ()  # sentences: what does not match


@dataclass(frozen=True)
class Device:
    """The device under test, as its front shows it."""

    name: str  # as `Port.switch` has it
    ports: tuple[str, ...]  # as `Port.switch_port` has them; of a chain in its order
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # that share a part of it
    chain: bool = False  # two and two are a VLAN, and VLANs are joined by cables (snake)


@dataclass(frozen=True)
class Site:
    """What exists: from a lab's topology or a site file."""

    launch: str  # of LAUNCHERS
    processes: tuple[Process, ...]
    networks: dict[str, tuple[Port, ...]] = field(default_factory=dict)  # in rank order
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of ports
    lab: str | None = None  # topology name or file, when launch is lab
    lab_overrides: dict[str, object] = field(default_factory=dict)
    cores: tuple[int, ...] = ()  # a lab's, for the workers of all its processes; none: see `cores`
    heartbeat_timeout_ms: int = 500
    barrier_timeout_ms: int = 5000
    queue_bytes: int | None = None  # the lab's queues: what may wait there when a window opens
    burst_bytes: int | None = None  # what the lab's shapers let pass at once after silence
    smallest_queue_bytes: int | None = None  # ... and what a late sender has to leave room in
    queueing_s: float | None = None  # the lab's longest queueing delay: what a drain must outwait
    wiring: Wiring | None = None  # None: no topology is known
    device: Device | None = None  # None: it is not described
    effective: dict[str, Any] = field(default_factory=dict)  # the site as understood

    @property
    def launcher(self) -> LauncherKind:
        """What the way in which nodes are started can do."""
        return launcher_of(self.launch)

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports, in the order of hosts and ports."""
        return tuple(port for process in self.processes for port in process.ports)


@dataclass(frozen=True)
class Load:
    """Offered load of a port; exactly one is not None."""

    percent: float | None = None  # of line rate
    bps: float | None = None  # layer 1 bit/s
    fps: float | None = None  # frames/s (messages/s)


@dataclass(frozen=True)
class Repeats:
    """How often a point is measured: until its mean is sure enough, or so often."""

    least: int = 1
    most: int = 1
    width: float | None = None  # of the confidence interval, as a share of the mean; None: any
    confidence: float = 0.95


LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3), bytes

SCHEDULE: Literal["schedule"] = (
    "schedule"  # the traffic of a trial whose ranks go on step by step, without barriers
)
# Traffic whose messages wait for each other: it has no load, and rates that are no line's.
WAITING = ("pingpong", SCHEDULE)

# Kinds of times (doc/reference/latency.md), and what the summary says of each.
ONE_WAY = "one_way"
IPDV = "ipdv"
ROUND_TRIP = "round_trip"
PINGPONG = "pingpong"
LATENCY_KINDS = (ONE_WAY, IPDV, ROUND_TRIP, PINGPONG)
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
LATENCY_FIGURES = ("min", "mean", *PERCENTILES, "max", "pdv")

CLOCK_MODES = ("auto", "shared", "ptp", "estimated")


@dataclass(frozen=True)
class ClockChoice:
    """How the nodes' clocks are brought together (doc/reference/latency.md)."""

    mode: str = "auto"  # of CLOCK_MODES
    error_ns: int = 0  # ptp: of each clock at most; 0: the kernel is asked


@dataclass(frozen=True)
class Part:
    """One network's share of a trial: its ranks are the ports, in rank order."""

    network: str
    ranks: tuple[Port, ...]


@dataclass(frozen=True)
class PartSetting:
    """What one part of a trial has instead of the trial's."""

    transport: str
    sizes: tuple[int, ...]
    size_unit: str  # frame | message
    load: Load


@with_config(ConfigDict(extra="allow"))
class Pattern(TypedDict, total=False):
    """A pattern's name and parameters, by rank number; most of them are for the engine alone."""

    name: Required[str]
    list: Sequence[int]
    shares: Sequence[int]
    load_of: str


@dataclass(frozen=True)
class Burst:
    """Frames that a port sends at once, and how often."""

    frames: int
    gap_ns: int = 0
    count: int = 1  # 0: until the window ends


@dataclass(frozen=True)
class Schedule:
    """What is timed of dependent steps."""

    batch: int
    count: int  # of repetitions, in whole batches; 0: as many as the window has room for
    warmup: int  # batches before those that count
    compute: bool


@dataclass(frozen=True)
class Scatter:
    """Ping-pong messages of random sizes, each time kept."""

    count: int
    min_size: int
    max_size: int
    partners: str  # fixed | random
    compute: float


@dataclass(frozen=True)
class ScheduleShape:
    """What one repetition of each phase is, of a plan that goes by steps."""

    steps: int  # of the rank with most
    messages: int  # that all ranks send in all phases
    payload_bytes: int  # of them
    iterations: int | None  # of the whole benchmark; None: it is no application kernel


@dataclass(frozen=True)
class Trial:
    """A plan at one setting: all phases of a pattern, on one or several networks at a time."""

    id: int  # of the `trial` document; unique in the run
    test: int  # which entry of `tests` it comes from
    repeat: int
    transport: str
    parts: tuple[Part, ...]
    pattern: Annotated[Pattern, SkipValidation]  # as nodes are sent it
    parameters: dict[str, Any]  # as the user wrote them (partners, groups by name, ...): for people
    sizes: tuple[int, ...]  # one size, or an IMIX genome
    size_unit: str  # frame | message
    load: Load
    traffic: str  # stream | transfer | pingpong | schedule
    warmup_s: float
    window_s: float
    cooldown_s: float
    phases: int  # how many the plan has (largest of the parts)
    flows: int  # in all phases and parts
    expected_s: float  # what it should take, barriers and drain included
    seed: int = 1
    sync: str = "barrier"  # barrier | none
    drain_s: float = 0.0  # of silence, behind which a phase has ended
    drain_max_s: float = 0.0
    interval_s: float = 0.0  # of interval results; 0: none
    options: dict[str, Any] = field(
        default_factory=dict
    )  # its transport's own, in the node's words
    connectivity_check: bool = True
    check_sizes: tuple[int, ...] = ()  # of the messages of that check; none: `sizes`
    latency_stamps: bool = True
    probe_fps: float | None = None  # latency probes per second and flow; None: the node chooses
    transfer_bytes: int | None = None
    burst: Burst | None = None
    schedule: Schedule | None = None
    scatter: Scatter | None = None
    flood_limit: int | None = None
    chosen: tuple[int, ...] | None = None  # phases that are run of all that the plan has; None: all
    steps: ScheduleShape | None = None  # what one repetition is, where it goes by steps
    point: int = 0  # what all repeats of one setting have in common
    repeats: Repeats = Repeats()
    search: int | None = None  # which of the run's searches chose its load
    locating: bool = False  # it tells suspects apart, and no clause is about it
    again: int | None = None  # the trial of which it measures some phases again
    own: dict[str, PartSetting] = field(default_factory=dict)  # by network, where a part has it

    def of(self, network: str | None) -> Trial:
        """Return the trial as its part in a network has it."""
        found = self.own.get(network or "")
        return self if found is None else replace(self, **vars(found))

    def frames_per_s(self, line_bps: float) -> float:
        """Return the frames/s that a port of so many bit/s is asked for; 0 where nobody can say."""
        load = self.load
        bits = 8 * (sum(self.sizes) / len(self.sizes) + LAYER1_OVERHEAD)
        return load.fps or (load.bps or line_bps * (load.percent or 0.0) / 100) / bits

    def with_options(self, **options: object) -> Trial:
        """Return the trial with other options of its transport."""
        return replace(self, options=self.options | options)

    @property
    def optional(self) -> bool:
        """Whether it is run only if the repeats before it leave the mean unsure."""
        return self.repeats.least <= self.repeat < self.repeats.most

    @property
    def has_single_phases(self) -> bool:
        """Whether its phases can be had alone: those of streams that start by a barrier."""
        return self.sync == "barrier" and self.traffic == "stream"


@dataclass(frozen=True)
class SwitchCountersCommand:
    """A command for the switch: it prints its counters, or resets it."""

    command: tuple[str, ...]  # a program and its arguments; no shell
    timeout_s: float


@dataclass(frozen=True)
class Run:
    """Everything that a run needs: compiled from a configuration, nothing left to decide."""

    site: Site
    trials: tuple[Trial, ...]
    seed: int
    effective: dict[str, Any]  # the configuration as understood, every default filled in
    expectations: tuple[dict[str, Any], ...] = ()
    about: dict[str, object] = field(default_factory=dict)  # what is tested, as its user says
    reservations: tuple[str, ...] = ()  # what a verdict has to be read with
    time_limit_s: float | None = None
    on_missing: str = "stop"  # stop | exclude
    worker: str = "auto"  # the `job` document's
    log: str = "info"
    clock: ClockChoice = ClockChoice()
    switch_counters: SwitchCountersCommand | None = None
    device_reset: SwitchCountersCommand | None = None  # resets it, within a suite's trial
    start_s: float = 0.0  # what it takes before the first trial
    not_alternated: str | None = None  # why transports ran one after the other, where they did
    suite: str | None = None  # of search/suites/; its measurements choose the trials, one by one
    suite_parameters: dict[str, float] = field(default_factory=dict)  # of search/suites/declaration
    searches: tuple[Trial, ...] = ()  # a suite's, each as a trial at the max load (plan/chosen.py)
    estimates_s: tuple[float, ...] = ()  # what each of them should take
    remeasure: int = 0  # how often a phase that the tester limited is measured again at most
    locate_s: float | None = None  # for trials that tell suspects apart, at the end; None: none
    again: tuple[Trial, ...] = ()  # trials that do so, until the run has ended (records/store.py)
    remeasured: int = 0  # phases that were
    superseded: tuple[Trial, ...] = ()  # trials of which superseded/ has the tables

    @property
    def planned(self) -> tuple[Trial, ...]:
        """Trials that say which ports, transports and frames the run needs."""
        return self.trials + self.searches

    @property
    def expected_s(self) -> float:
        """Time that the run should take, without repeats that may not be needed."""
        required = (trial for trial in self.trials if not trial.optional)
        return self.start_s + sum(self.estimates_s) + sum(trial.expected_s for trial in required)

    @property
    def longest_s(self) -> float:
        """Time that it should take with every repeat that may be needed."""
        return self.start_s + sum(self.estimates_s) + sum(trial.expected_s for trial in self.trials)
