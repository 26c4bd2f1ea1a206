# SPDX-License-Identifier: BSD-3-Clause
"""The summary's entries of what was measured: phases of trials, plans, ports.

A class says in its docstring what its keys are, `key: words`; of a key that is a measure the
registry has the words (base/measures.py). The JSON Schema and the code book are made of these
(schema.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypeVar, cast, get_origin

from pydantic import Field
from typing_extensions import TypedDict, get_type_hints

from ...base.measures import REDUCED

Count = Annotated[int, Field(ge=0)]
Free = dict[str, Any]  # by keys of the pattern, the transport or the clause
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Size = Count | list[Annotated[int, Field(ge=1)]]  # bytes, or the sizes of a mix
Traffic = Literal["stream", "transfer", "burst", "pingpong", "schedule"]
SizeUnit = Literal["frame", "message"]
Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]

_Entry = TypeVar("_Entry")


@cache
def _keys(kind: Any) -> dict[str, bool]:
    """Return the keys of a type, and whether each has to be there."""
    origins: dict[str, Any] = {
        key: get_origin(hint) for key, hint in get_type_hints(kind, include_extras=True).items()
    }
    return {key: origin is not NotRequired for key, origin in origins.items()}


def filled(kind: type[_Entry], *sources: object, **own: object) -> _Entry:
    """Return an entry of the summary: each key from `own`, else from the first source that has it.

    Sources are mappings, or values with attributes of these names. What nothing has is null.
    """
    found: dict[str, object] = {}
    for key, required in _keys(cast("Any", kind)).items():
        if key in own:
            found[key] = own[key]
            continue
        for source in sources:
            if isinstance(source, Mapping):
                if key in source:
                    found[key] = source[key]
                    break
            elif hasattr(source, key):
                found[key] = getattr(source, key)
                break
        else:
            if required:
                found[key] = None
    return cast("_Entry", found)


class PlanSetting(TypedDict):
    """What a trial was asked to do in one network.

    trial: Number of the trial in the run: `trial` of its records
    test: Which entry of the configuration's `tests` it comes from, from 0
    repeat: Which repetition, from 0
    pattern: chain, pairs, aapc or ring
    parameters: The pattern's parameters as the configuration gives them
    transport: dpdk, packet, tcp, udp or verbs
    network: The ports that can reach each other
    ranks: Endpoints of traffic in this network
    traffic: stream: a rate for a time; transfer: a number of bytes; pingpong: round trips;
        schedule: dependent steps
    size: Bytes of a frame or a message, or the sizes of a mix
    size_unit: What `size` is of
    frame_bytes: Frame size with FCS (RFC 2544); a list for IMIX; null where no frames are seen
    load: The load as asked: percent of line rate, bps at layer 1, or fps
    intended_load: The load as asked in percent of line rate, mean over the ports
    load_unit: Unit of intended_load and offered_load
    concurrent_networks: All networks of the trial, when several run at the same time
    """

    trial: int
    test: int
    repeat: int
    pattern: str
    parameters: Free
    transport: str
    network: str
    ranks: Annotated[int, Field(ge=2)]
    traffic: Traffic
    size: Size
    size_unit: SizeUnit
    frame_bytes: Size | None
    load: Free
    intended_load: float | None
    load_unit: Literal["percent_of_line"]
    concurrent_networks: list[str] | None


class Setting(PlanSetting):
    """What one of its phases was asked to do.

    phase: Number of the phase in the plan, from 0
    """

    phase: Count


class QueuePairs(TypedDict):
    """verbs: the queue pairs of the phase's sources, settings as they took effect.

    depth: Messages posted and not completed, by queue pair; null: not the same on all flows
    signal_every: Every so many-th message is signalled
    inline_bytes: Messages up to so many bytes went inline
    path_mtu_bytes: Payload of a full packet
    gid_index: Entry in the port's GID table
    count: How many there were
    reused: Of these kept from an earlier phase
    bytes_each: Registered memory and queues of one end of one, where it is the most: a receiver
        has the ring
    slowest_setup_us: Longest time until a flow's queue pairs were connected
    credit_waits: How often a sender waited for the receiver's buffers
    """

    depth: float | None
    signal_every: float | None
    inline_bytes: float | None
    path_mtu_bytes: float | None
    gid_index: float | None
    count: float | None
    reused: float | None
    bytes_each: float | None
    slowest_setup_us: float | None
    credit_waits: float | None


class PlanCounts(TypedDict):
    """What was sent and what arrived.

    offered_bytes: Payload bytes sent
    delivered_bytes: Payload bytes verified
    """

    offered_frames: Count | None
    delivered_frames: Count | None
    offered_bytes: Count | None
    delivered_bytes: Count | None
    lost_frames: Count | None
    host_dropped_frames: Count | None


class Counts(PlanCounts):
    """What became of the frames or bytes of a phase.

    offered_messages: Whole messages sent; null for frames
    delivered_messages: Whole messages verified; null for frames
    worst_loss_percent: The same of the worst flow
    forged_frames: Frames with a number that their sender can't have reached: not counted
    corrupted_bytes: Bytes other than expected; null for frames
    unexpected_frames: Frames that are not this phase's at all
    arp_nd_frames: Learning frames, ARP and neighbour discovery of our ports, not part of the
        load
    """

    offered_messages: Count | None
    delivered_messages: Count | None
    loss_percent: float | None
    worst_loss_percent: float | None
    duplicated_frames: Count | None
    reordered_frames: Count | None
    late_frames: Count | None
    forged_frames: Count | None
    corrupted_frames: Count | None
    corrupted_bytes: Count | None
    misdelivered_frames: Count | None
    unexpected_frames: Count | None
    arp_nd_frames: Count | None
    pause_frames: Count | None
    retransmitted_segments: Count | None


class RdmaCounts(TypedDict):
    """What only verbs has; null for other transports.

    duplicated_messages: verbs without acknowledgement: messages that came once more
    reordered_messages: verbs without acknowledgement: messages behind a later one
    out_of_sequence_packets: RDMA packets that came out of order, by the devices' counters
    receiver_not_ready: Receiver-not-ready answers, by the devices' counters
    cnp_sent: Congestion notification packets that the receivers' devices sent
    cnp_handled: Congestion notification packets on which senders' devices slowed down
    ecn_marked_packets: RoCE packets that a switch had marked (ECN: congestion experienced)
    queue_pairs: Of the phase's sources; null for other transports
    """

    lost_messages: Count | None
    duplicated_messages: Count | None
    reordered_messages: Count | None
    retransmitted_packets: Count | None
    out_of_sequence_packets: Count | None
    receiver_not_ready: Count | None
    cnp_sent: Count | None
    cnp_handled: Count | None
    ecn_marked_packets: Count | None
    queue_pairs: QueuePairs | None


class WorstFlow(TypedDict):
    """The flow with the highest p99.

    src: Port
    dst: Port
    p99: Its p99
    """

    src: str
    dst: str
    p99: float


class Figures(TypedDict):
    """Figures of a distribution of times.

    unit: Of all figures: microseconds
    count: Times measured
    bound: one_way: what the two ends' clocks may differ by
    min: Minimum
    mean: Arithmetic mean
    p50: Median
    p90: 90 % are no greater
    p99: 99 % are no greater
    p99_9: 99.9 % are no greater
    p99_99: 99.99 % are no greater
    max: Maximum
    pdv: RFC 5481: D(99.9 %) - D(min); null for ipdv
    reasons: Why a figure is null, by its name; all: why all are
    """

    unit: Literal["us"]
    count: int
    lost: int | None
    bound: float | None
    min: float | None
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p99_9: float | None
    p99_99: float | None
    max: float | None
    pdv: float | None
    reasons: dict[str, str]


class TimesEntry(Figures):
    """Times of one kind, of all flows together (doc/reference/latency.md).

    worst: The flow with the highest p99
    """

    worst: WorstFlow | None


class Latency(TypedDict):
    """Times of this phase's flows by kind; null: not measured.

    one_way: From a frame's stamp to its arrival
    ipdv: How that differs between frames that follow each other
    round_trip: Of probes that the destination sends back
    pingpong: Of ping-pong messages
    """

    one_way: TimesEntry | None
    ipdv: TimesEntry | None
    round_trip: TimesEntry | None
    pingpong: TimesEntry | None


class Lowest(TypedDict):
    """The interval in which a flow was lowest.

    src: Port
    dst: Port
    mbps: Payload in the flow's lowest span, Mbit/s
    percent_of_mean: Of the same flow's mean over all its spans
    from_s: Where the span begins, after the window's opening
    to_s: Where it ends
    """

    src: str
    dst: str
    mbps: float
    percent_of_mean: float
    from_s: float
    to_s: float


class IntervalsEntry(TypedDict):
    """How low flows fell from one interval result to the next.

    count: Interval results of a flow; 0: none
    length_s: Their length, median
    slowest: The flow and the time of that; null: no interval results
    lowest: The flows that fell the furthest below their own mean, at most 5
    """

    count: int
    length_s: float | None
    min: float | None
    slowest: Lowest | None
    lowest: list[Lowest]


class LossLocationPort(TypedDict):
    """Losses at one port.

    port: Its name
    sender_host: Frames sent and not left by the port
    receiver_host: Frames that reached the port and not us
    wire_errors: Frames that reached it damaged
    """

    port: str
    sender_host: int | None
    receiver_host: int | None
    wire_errors: int | None


class LossLocationEntry(TypedDict):
    """Where frames went missing, by ports' counters before and after the phase.

    lost_frames: As the flows say; null: the transport sees no frames
    sender_host: Sent by our workers and never left by the ports
    network: Between the ports: lost less both hosts'; where lost is null, counted_in_network
    other_traffic: Lost between the ports, on the way to one at which frames of other senders
        took the time of so many; not in `network`
    receiver_host: Reached the ports and never our workers
    wire_errors: Of those in the network: seen by receiving ports as damaged
    counted_in_network: All that left by the ports less all that reached them, other traffic
        included
    other_frames: Frames that are no load: what counters may be off by
    consistent: counted_in_network is what is missing on the way less what arrived besides, but
        for other frames; false: a contradiction
    ports: Those that lost frames, at most 16
    """

    lost_frames: int | None
    sender_host: int | None
    network: int | None
    other_traffic: int | None
    receiver_host: int | None
    wire_errors: int | None
    counted_in_network: int | None
    other_frames: int | None
    consistent: bool | None
    ports: list[LossLocationPort]


class MostDisordered(TypedDict):
    """The flow whose frames were most out of order.

    src: Port
    dst: Port
    reordered_percent: Of 100 delivered
    extent_max: Its max extent
    """

    src: str
    dst: str
    reordered_percent: float
    extent_max: int


class ReorderingEntry(TypedDict):
    """How frames were out of order; nulls where they are not seen.

    reordered_percent: RFC 4737's ratio: reordered of 100 delivered
    three_reordered_percent: 3-reordered (RFC 4737) of 100 delivered
    extent_mean: RFC 4737's extent, mean of reordered frames; null: there are none
    extent_max: The max extent
    worst: The flow with the highest ratio; null: none
    """

    reordered_percent: float | None
    three_reordered_percent: float | None
    extent_mean: float | None
    extent_max: int | None
    worst: MostDisordered | None


State = Literal["complete", "partial", "stopped", "flooded", "unreachable"]


class Throughput(TypedDict):
    """One way, verified by the receivers, in the window.

    layer: What is counted: the bytes that an application would call its data
    unit: Decimal
    """

    layer: Literal["payload"]
    unit: Literal["Mbit/s"]
    min: float | None
    mean: float | None
    max: float | None
    total: float | None
    percent_of_line: float | None
    min_percent_of_line: float | None


class FlowEnds(TypedDict):
    """A flow.

    src: host:port
    dst: host:port
    """

    src: str
    dst: str


class TesterLimitEntry(TypedDict):
    """Why a host may have been the limit.

    port: host:port
    shortfall_percent: Offered so much less than intended; null: it kept up
    dropped_frames: Dropped in the host; null: none, or not observed
    start_delay_ms: Began so much after the agreed start; null: in time, or not observed
    window_error_percent: By what its window differs from the agreed length; null: by no more
        than 1 %
    cpu_idle_percent: TCP in a lab: how idle its CPUs were while it fell behind its load
    reason: In words
    """

    port: str
    shortfall_percent: float | None
    dropped_frames: Count | None
    start_delay_ms: NotRequired[float | None]
    window_error_percent: NotRequired[float | None]
    cpu_idle_percent: NotRequired[float]
    reason: str


class PlanEntry(PlanSetting, PlanCounts):
    """All phases of one trial in one network.

    polling: Whether workers polled: each then burns a core, whatever comes
    cpu_s: Sum of its phases'
    cpu_process_s: Sum of its phases'
    phases: Phases in the plan
    phases_measured: Phases with records
    elapsed_s: All phases, barriers and drains included
    window_s: Sum of the windows
    throughput: Of the phases that are not tester-limited (null: none); mean and percent: mean
        of the phases'; total: mean over the windows' time
    worst_phase: Phase of the slowest flow, as in throughput
    slowest: The slowest flow of these phases
    """

    polling: bool | None
    cpu_s: float | None
    cpu_process_s: float | None
    phases: int
    phases_measured: int
    elapsed_s: float | None
    window_s: float | None
    throughput: Throughput
    worst_phase: int | None
    slowest: FlowEnds | None


class Timing(TypedDict):
    """When a phase ran.

    phase_name: What the pattern calls it
    window_s: Length of the window
    skew_bound_us: Uncertainty of both; null without a common clock
    drained: false: the drain's limit came before silence
    """

    phase_name: str | None
    window_s: float | None
    elapsed_s: float | None
    start_skew_us: float | None
    stop_skew_us: float | None
    skew_bound_us: float | None
    drained: bool | None


class Rates(TypedDict):
    """How fast a phase was.

    throughput: Over the flows, one way, verified by the receivers
    slowest: The slowest flow; null: no flow was measured
    """

    offered_load: float | None
    throughput: Throughput
    slowest: FlowEnds | None


class CpuTime(TypedDict):
    """CPU time of a phase.

    cpu_s: CPU seconds of all machines in the phase, kernel included
    cpu_process_s: Of it what the node processes used; the rest is the kernel's own, softirq
        included, and all else that the machines did
    polling: Whether workers polled: each then burns a core, whatever comes
    """

    cpu_s: float | None
    cpu_process_s: float | None
    cpu_s_per_gb: float | None
    polling: bool | None


if TYPE_CHECKING:
    Reduced = dict[str, float | None]
else:
    Reduced = TypedDict("Reduced", {m.key: Annotated[float | None, m.definition] for m in REDUCED})
    Reduced.__doc__ = "Measures that are one figure of all flows of the phase."


class PhaseEntry(Setting, Timing, Rates, Counts, RdmaCounts, CpuTime):
    """One phase of one trial in one network.

    started: When it began, by the wall clock of the first node that said it (UTC); null: not
        known
    flows: PhaseFlows with a record of at least one side
    flows_observed: PhaseFlows with the records of both sides
    state: partial: records are missing
    tester_limited: Ports whose host, not the network, may have been the limit
    intervals: How low flows fell from one interval result to the next
    loss_location: Where frames were lost, by ports' counters before and after the phase
    reordering: How frames were out of order; nulls where they are not seen
    reduced: Measures that are one figure of all flows
    latency: Times of this phase's flows by kind; null: not measured
    """

    started: str | None
    flows: int
    flows_observed: int
    state: State
    tester_limited: list[TesterLimitEntry]
    intervals: IntervalsEntry
    loss_location: LossLocationEntry
    reordering: ReorderingEntry
    reduced: Reduced
    latency: Latency


class RdmaPort(TypedDict):
    """What only verbs has: the device of the port.

    rdma: Device and port
    link_layer: InfiniBand or Ethernet
    gid: Its address
    gid_index: Its place in the port's table
    mtu: Active path MTU in bytes
    """

    rdma: str | None
    link_layer: str | None
    gid: str | None
    gid_index: int | None
    mtu: int | None


class Direction(TypedDict):
    """A port as source, or as destination.

    phases: Phases in which it was one
    median_percent_of_line: Median over phases, without those in which its flows are
        tester-limited
    min_percent_of_line: Min over the same phases
    relative_to_median: Median over the same phases of: this port's percent of line by that of
        the phase's median port
    lost_frames: Lost frames of its flows
    """

    phases: int
    median_percent_of_line: float | None
    min_percent_of_line: float | None
    relative_to_median: float | None
    lost_frames: Count | None


class SlowPhase(TypedDict):
    """A phase of which the port was an end of the slowest flow.

    trial: Its number
    phase: Its number
    """

    trial: int
    phase: int


class PortEntry(TypedDict):
    """One port with one transport, over all phases.

    port: host:port
    transport: dpdk, packet, tcp, udp or verbs
    network: Its network
    switch: Where the wiring is known
    switch_port: Where the wiring is known
    driver: Of DPDK, or of the kernel
    numa: NUMA node of its device
    queues: In use
    cores: Of the queues, in their order; null: tied to none
    offloads: In use, by the driver's names
    rdma: verbs: the device's port as it was opened; null for other transports
    link_downs: How often its link was seen to go down during phases, whatever the transport
    variants: Hot paths that were chosen, in the engine's words
    as_source: Of the flows that it sends
    as_destination: Of the flows that it receives
    suspect: What it is suspected of (location); null: nothing
    slowest_phases: Phases whose slowest flow began or ended here
    """

    port: str
    transport: str
    network: str
    switch: str | None
    switch_port: str | None
    driver: str | None
    numa: int | None
    queues: int | None
    cores: list[int] | None
    offloads: str | None
    rdma: RdmaPort | None
    link_downs: Count
    variants: list[str]
    as_source: Direction
    as_destination: Direction
    suspect: str | None
    slowest_phases: list[SlowPhase]
