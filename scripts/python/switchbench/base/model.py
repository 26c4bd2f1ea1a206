# SPDX-License-Identifier: BSD-3-Clause
"""Values that the command's packages share: sites, trials, runs.

Plain values, made by `config` and read by all packages below it. Nothing here reads files, starts
processes or parses YAML. Names follow the project's glossary (doc/developer/architecture.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Required, cast

from pydantic import ConfigDict, PlainValidator, with_config
from typing_extensions import TypedDict

from . import transports


@dataclass(frozen=True)
class LauncherKind:
    """Capabilities of a launcher that planning and the commands depend on."""

    in_lab: bool = False  # all nodes are on this machine and share its cores
    starts_nodes: bool = True  # true where `run` starts the nodes; else users do
    is_far: bool = False  # nodes are on hosts, some of which may be missing
    logs_in: bool = False  # hosts can run other commands too: push, doctor, bind


LAUNCHERS = {
    "lab": LauncherKind(in_lab=True),
    "ssh": LauncherKind(is_far=True, logs_in=True),
    "slurm": LauncherKind(is_far=True),
    "command": LauncherKind(is_far=True),
    "hand": LauncherKind(starts_nodes=False),
}


# --- sites ----------------------------------------------------------------------------------------


_MEMIF_FRAME_MAX = 1518  # limit in DPDK's driver


@dataclass(frozen=True)
class Port:
    """Port of a host: an endpoint of traffic."""

    name: str  # "node12:e0"
    host: str  # "node12"
    network: str  # name of the network: ports that can reach each other
    transports: tuple[str, ...]  # usable ones of dpdk, packet, tcp, udp, verbs
    # keys of the port in the node's `job` document (doc/developer/node-protocol.md)
    engine: dict[str, Any]
    line_rate_bps: int = 0  # layer 1; 0: unknown, the driver reports it
    frame_max: int = 0  # largest untagged frame with FCS; 0: unknown, the node reports it
    switch: str | None = None  # set where the wiring is known
    switch_port: str | None = None
    why_these: str = ""  # reason for a restricted list of transports, other than the port's kind
    # in a campaign's results: the host's port; `name` is the device port that it was plugged into
    tester: str = ""
    rounds: tuple[int, ...] = ()  # rounds of the campaign in which the port took part, from 1

    def frame_limit(self, transport: str) -> int:
        """Return the largest frame (bytes, untagged, with FCS) of a transport; 0 if unknown.

        A modelled switch's memif carries less than the lab's MTU may allow.
        """
        if transports.of(transport).raw and "memif" in self.engine.get("vdev", ""):
            return min(self.frame_max, _MEMIF_FRAME_MAX)
        return self.frame_max


@dataclass(frozen=True)
class Process:
    """Node process: its ports and the address of its control socket."""

    name: str  # the host's name, or "node[01-16]" where several nodes share a process
    ports: tuple[Port, ...]
    control: dict[str, str]  # the `control` mapping of the `job` document
    cores: tuple[int, ...] = ()  # configured cores of its workers; empty: the process chooses


@dataclass(frozen=True)
class CableBundle:
    """Parallel cables between two switches, or between two forwarding hosts; full duplex."""

    a: str
    b: str
    rate_bps: int  # layer-1 sum per direction; 0: unknown or unlimited
    links: int = 1


@dataclass(frozen=True)
class Wiring:
    """Network between the switches to which ports are connected (`Port.switch`)."""

    source: str  # such as "topology file NAME"
    cables: tuple[CableBundle, ...] = ()
    routed: bool = False  # true if hosts also forward traffic
    problems: tuple[str, ...] = ()  # mismatches, as sentences


@dataclass(frozen=True)
class Device:
    """Device under test, with its ports by the names on its front panel."""

    name: str  # equal to `Port.switch` of its ports
    ports: tuple[str, ...]  # equal to `Port.switch_port`; in a chain, in the chain's order
    # ports that share a part of the device
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    chain: bool = False  # each two ports form a VLAN, and cables join the VLANs (snake)


@dataclass(frozen=True)
class Site:
    """Test bed: hosts, ports and networks, from a lab's topology or a site file."""

    launch: str  # a name in LAUNCHERS
    processes: tuple[Process, ...]
    networks: dict[str, tuple[Port, ...]] = field(default_factory=dict)  # in rank order
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of ports
    lab: str | None = None  # topology name or file, where launch is lab
    lab_overrides: dict[str, object] = field(default_factory=dict)
    # a lab's cores for the workers of all processes; empty: see `Process.cores`
    cores: tuple[int, ...] = ()
    heartbeat_timeout_ms: int = 500
    barrier_timeout_ms: int = 5000
    # longest queue of the lab: frames that may wait there when a window opens
    queue_bytes: int | None = None
    burst_bytes: int | None = None  # bytes that the lab's shapers pass at once after an idle time
    smallest_queue_bytes: int | None = None  # queue space that a late sender must leave free
    queueing_s: float | None = None  # longest queueing delay of the lab, which a drain must exceed
    wiring: Wiring | None = None  # None: unknown
    device: Device | None = None  # None: not described
    effective: dict[str, Any] = field(default_factory=dict)  # effective configuration of the site

    @property
    def launcher(self) -> LauncherKind:
        """Return the capabilities of the site's launcher."""
        return LAUNCHERS[self.launch]

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return all ports of the site, host by host."""
        return tuple(port for process in self.processes for port in process.ports)


@dataclass(frozen=True)
class Load:
    """Offered load of a port; exactly one field is not None."""

    percent: float | None = None  # of line rate
    bps: float | None = None  # layer-1 bit/s
    fps: float | None = None  # frames/s (messages/s)

    @property
    def given(self) -> dict[str, float]:
        """Return the load as a mapping with one key, which is percent, bps or fps."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Repeats:
    """Repeats of a trial: `least` to `most`, until the confidence interval is narrow enough."""

    least: int = 1
    most: int = 1
    width: float | None = None  # width of the confidence interval as a share of the mean; None: any


LAYER1_OVERHEAD = 20  # preamble, start delimiter and gap of a frame (IEEE 802.3), bytes

# Traffic of a trial whose ranks follow dependent steps, without barriers.
SCHEDULE: Literal["schedule"] = "schedule"
# Traffic in which each message waits for a previous one: it has no load, and its rates are below
# line rate.
WAITING = ("pingpong", SCHEDULE)

# Kinds of measured times (doc/reference/latency.md), and the figures of each in the summary.
ONE_WAY = "one_way"
ROUND_TRIP = "round_trip"
PINGPONG = "pingpong"
LATENCY_KINDS = (ONE_WAY, ROUND_TRIP, PINGPONG)
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
LATENCY_FIGURES = ("min", "mean", *PERCENTILES, "max", "pdv")

CLOCK_MODES = ("auto", "ptp", "estimated")


@dataclass(frozen=True)
class ClockChoice:
    """Method that relates the nodes' clocks to each other (doc/reference/latency.md)."""

    mode: str = "auto"  # one of CLOCK_MODES
    error_ns: int = 0  # ptp: maximum error of each clock; 0: the kernel's estimate


@dataclass(frozen=True)
class Part:
    """Part of a trial in one network: the ports that take part, as ranks in order."""

    network: str
    ranks: tuple[Port, ...]


@dataclass(frozen=True)
class PartSetting:
    """Settings of one network's part of a trial, which override the trial's settings."""

    transport: str
    sizes: tuple[int, ...]
    size_unit: str  # frame | message
    load: Load


@with_config(ConfigDict(extra="allow"))
class Pattern(TypedDict, total=False):
    """Name and parameters of a pattern, with ports as rank numbers, as the engine receives them."""

    name: Required[str]
    list: Sequence[int]
    shares: Sequence[int]
    load_of: str


def _named(pattern: Any) -> Pattern:
    """Return a pattern that has a name, else raise ValueError; the engine checks the parameters."""
    if not isinstance(pattern, dict) or not isinstance(pattern.get("name"), str):
        raise ValueError("a pattern needs a `name`, such as `{name: aapc}`")
    return cast(Pattern, pattern)


@dataclass(frozen=True)
class Burst:
    """Bursts of a port: frames per burst, gap after each burst, and number of bursts."""

    frames: int
    gap_ns: int = 0
    count: int = 1  # 0: until the window ends


@dataclass(frozen=True)
class Schedule:
    """Timing of a schedule of dependent steps: batch size, repetitions and warm-up batches."""

    batch: int
    count: int  # of repetitions, in whole batches; 0: as many as fit in the window
    warmup: int  # batches before the first counted one
    compute: bool


@dataclass(frozen=True)
class ScheduleShape:
    """Steps, messages and bytes of one repetition of a schedule, summed over all phases."""

    steps: int  # of the rank with most steps
    messages: int  # messages of all ranks in all phases
    payload_bytes: int  # payload bytes of all these messages
    iterations: int | None  # of the whole benchmark; None: not an application kernel


@dataclass(frozen=True)
class Trial:
    """Plan at one setting: all phases of a pattern, on one or several networks at once."""

    id: int  # in the `trial` document; unique in the run
    test: int  # index in `tests`
    repeat: int
    transport: str
    parts: tuple[Part, ...]
    pattern: Annotated[Pattern, PlainValidator(_named)]  # in the form that nodes receive
    parameters: dict[str, Any]  # in the user's words (partners, groups by name, ...), for display
    sizes: tuple[int, ...]  # one size, or an IMIX genome
    size_unit: str  # frame | message
    load: Load
    traffic: str  # stream | transfer | pingpong | schedule
    warmup_s: float
    window_s: float
    cooldown_s: float
    phases: int  # number of phases in the plan (maximum over the parts)
    flows: int  # number of flows in all phases and parts
    expected_s: float  # expected duration, barriers and drain included
    seed: int = 1
    drain_s: float = 0.0  # a phase ends when no frame arrives for this time
    drain_max_s: float = 0.0
    interval_s: float = 0.0  # time between interval results; 0: no interval results
    # options of the transport, as the node names them
    options: dict[str, Any] = field(default_factory=dict)
    connectivity_check: bool = True
    check_sizes: tuple[int, ...] = ()  # message sizes of the connectivity check; empty: `sizes`
    latency_stamps: bool = True
    probe_fps: float | None = None  # latency probes per second and flow; None: the node chooses
    transfer_bytes: int | None = None
    burst: Burst | None = None
    schedule: Schedule | None = None
    flood_limit: int | None = None
    chosen: tuple[int, ...] | None = None  # phases to run; None: all phases of the plan
    steps: ScheduleShape | None = None  # shape of one repetition, for schedules
    point: int = 0  # number that all repeats of one setting share
    repeats: Repeats = Repeats()
    search: int | None = None  # index of the search that chose the load
    locating: bool = False  # a trial that distinguishes suspects, without clauses
    again: int | None = None  # id of the earlier trial whose phases this trial measures again
    # by network, for parts with settings of their own
    own: dict[str, PartSetting] = field(default_factory=dict)

    def of(self, network: str | None) -> Trial:
        """Return the trial with the settings that apply in a network."""
        found = self.own.get(network or "")
        return self if found is None else replace(self, **vars(found))

    def layer1_bps(self, line_bps: float) -> float:
        """Return a port's intended load in layer-1 bit/s, given its line rate; 0 if unknown."""
        if self.load.percent is not None:
            return line_bps * self.load.percent / 100
        return self.load.bps or (self.load.fps or 0.0) * self._unit_bits

    def frames_per_s(self, line_bps: float) -> float:
        """Return a port's intended load in frames/s, given its line rate in bit/s; 0 if unknown."""
        return self.load.fps or self.layer1_bps(line_bps) / self._unit_bits

    @property
    def _unit_bits(self) -> float:
        """Return the mean size in bits of the trial's frames at layer 1, or of its messages."""
        overhead = LAYER1_OVERHEAD if transports.of(self.transport).frames else 0
        return 8 * (sum(self.sizes) / len(self.sizes) + overhead)

    def with_options(self, **options: object) -> Trial:
        """Return the trial with options of its transport added or replaced."""
        return replace(self, options=self.options | options)

    @property
    def ports(self) -> list[Port]:
        """Return the ports that take part in the trial, network by network."""
        return [port for part in self.parts for port in part.ranks]

    @property
    def optional(self) -> bool:
        """Return true for a repeat that runs only if the mean of earlier ones is too uncertain."""
        return self.repeats.least <= self.repeat < self.repeats.most

    @property
    def has_single_phases(self) -> bool:
        """Return true if single phases of the trial can be run, because its traffic is `stream`."""
        return self.traffic == "stream"


@dataclass(frozen=True)
class DeviceReset:
    """Command that resets the device under test."""

    command: tuple[str, ...]  # program and arguments; no shell
    timeout_s: float


@dataclass(frozen=True)
class Run:
    """Complete input of a run, compiled from a configuration."""

    site: Site
    trials: tuple[Trial, ...]
    seed: int
    effective: dict[str, object]  # effective configuration with all defaults
    expectations: tuple[dict[str, Any], ...] = ()
    # the user's description of the device under test
    about: dict[str, object] = field(default_factory=dict)
    reservations: tuple[str, ...] = ()  # limitations to be read with a verdict
    time_limit_s: float | None = None
    on_missing: str = "stop"  # stop | exclude
    worker: str = "auto"  # auto | sleep | poll
    clock: ClockChoice = ClockChoice()
    device_reset: DeviceReset | None = None  # used within a suite's trial
    start_s: float = 0.0  # time before the first trial
    suite: str | None = None  # suite whose measurements choose the trials, one by one
    # parameters in search/suites/declaration
    suite_parameters: dict[str, float] = field(default_factory=dict)
    # a suite's searches, each as a trial at the max load (plan/chosen.py)
    searches: tuple[Trial, ...] = ()
    estimates_s: tuple[float, ...] = ()  # expected duration of each search
    remeasure: int = 0  # max times that a tester-limited phase is measured again
    # time limit for trials that distinguish suspects, at the end; None: no such trials
    locate_s: float | None = None
    # trials that measure phases again, until the run has ended (records/store.py)
    again: tuple[Trial, ...] = ()
    remeasured: int = 0  # number of phases measured again
    superseded: tuple[Trial, ...] = ()  # trials whose tables are in superseded/

    @property
    def planned(self) -> tuple[Trial, ...]:
        """Return the run's trials, followed by the trials that represent a suite's searches."""
        return self.trials + self.searches

    @property
    def expected_s(self) -> float:
        """Return the run's expected duration in seconds, without optional repeats."""
        required = (trial for trial in self.trials if not trial.optional)
        return self.start_s + sum(self.estimates_s) + sum(trial.expected_s for trial in required)

    @property
    def longest_s(self) -> float:
        """Return the run's expected duration in seconds, with every optional repeat."""
        return self.start_s + sum(self.estimates_s) + sum(trial.expected_s for trial in self.trials)
