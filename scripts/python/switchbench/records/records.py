# SPDX-License-Identifier: BSD-3-Clause
"""The node's records as values (doc/reference/node-protocol.md, "Records").

Only what the summary computes with is kept: a run of many thousand flows must fit in memory. A
count that a record does not give is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import ConfigurationError
from .latency import Histogram
from .record_forms import LONGEST_LINE, DamagedRecord, parse
from .record_forms import Record as Record


class PhaseKey(NamedTuple):
    """One phase of one trial in one network."""

    trial: int
    repeat: int
    network: str
    phase: int


@dataclass(slots=True)
class Count:
    """What passed on one side of a flow: in the whole trial, or in the window."""

    frames: int | None
    frame_bytes: int | None
    payload_bytes: int | None
    messages: int | None


@dataclass(slots=True)
class Side:
    """One end of one flow in one phase."""

    role: str  # generate | forward
    whole: Count
    window: Count
    window_ns: int | None
    intended: int | None  # source: frames or bytes that load and time asked for
    duplicated: int | None
    reordered: int | None
    late: int | None
    forged: int | None
    corrupted: int | None
    last_run_ns: int | None  # run time of its last frame or byte
    measures: dict[str, float]  # what the transport adds


class PacketShape(NamedTuple):
    """What an RDMA message takes on the line beside its payload, in layer-1 bytes."""

    path_mtu_bytes: int
    packet_bytes: int  # headers of each packet
    message_bytes: int  # further headers, once a message


@dataclass(slots=True)
class Flow:
    """Both sides of a flow; None: that side left no record."""

    src: str
    dst: str
    source: Side | None = None
    destination: Side | None = None
    settled: bool = True  # false: stopped in the middle, with frames still under way
    window_off: bool = False  # its tester's window was not as agreed: it enters no mean
    packet: PacketShape | None = None  # of verbs; None: frames are seen, or it is TCP
    times: dict[str, Histogram] = field(default_factory=dict)  # by kind

    @property
    def idle(self) -> bool:
        """Whether both ends counted messages and saw none: of steps, only barriers used it."""
        sides = [side for side in (self.source, self.destination) if side is not None]
        return bool(sides) and all(side.whole.messages == 0 for side in sides)


@dataclass(slots=True)
class PortCount:
    """One port in one phase."""

    sent_frames: int | None  # ours, of all flows, good or not ...
    received_frames: int | None
    hardware_sent: int | None  # ... and as driver or interface counted
    hardware_received: int | None
    misdelivered: int | None
    unexpected: int | None
    arp_nd_sent: int | None
    arp_nd_received: int | None
    probes_sent: int | None  # of latency, and answers to them
    probes_received: int | None
    dropped_receive: int | None
    dropped_send: int | None
    errors: int | None
    pause: int | None
    start_run_ns: int | None  # when it really began
    # of an RDMA device
    retransmitted: int | None
    out_of_sequence: int | None
    not_ready: int | None
    cnp_sent: int | None
    cnp_handled: int | None
    ecn_marked: int | None


@dataclass(slots=True)
class NodePhase:
    """What one node says of a phase as a whole."""

    name: str | None
    state: str | None
    drained: bool | None
    start_run_ns: int | None  # agreed
    window_ns: int | None
    elapsed_ns: int | None
    start_skew_us: float | None
    stop_skew_us: float | None
    skew_bound_us: float | None
    cpu_span_s: float | None
    cpu_s: float | None
    cpu_idle_s: float | None
    cpus: int | None


@dataclass(slots=True)
class PhaseRecords:
    """All that was said of one phase in one network, and on which lines of the file."""

    flows: dict[tuple[str, str], Flow] = field(default_factory=dict)
    ports: dict[str, PortCount] = field(default_factory=dict)
    disorders: dict[tuple[str, str], Any] = field(default_factory=dict)  # disorder.Disorder
    courses: dict[tuple[str, str], Any] = field(default_factory=dict)  # interval.Course, by flow
    strays: Counter[tuple[str | None, str | None, str]] = field(default_factory=Counter)
    """Frames of a flow at a port that is not its destination: by src, dst (None: whose is not
    known) and that port."""
    first_line: int = 0
    last_line: int = 0

    def add_line(self, line: int) -> None:
        """Notes that this line of the file belongs to the phase."""
        self.first_line = self.first_line or line
        self.last_line = line


def key_of(record: Record) -> PhaseKey:
    """The phase that a `flow` or `port` record belongs to."""
    return PhaseKey(record["trial"], record.get("repeat") or 0, record["network"], record["phase"])


def side_of(record: Record) -> Side:
    """The side that a `flow` record describes."""
    return Side(
        role=record.get("role") or "generate",
        whole=_count(record, ""),
        window=_count(record, "window_"),
        window_ns=record.get("window_ns"),
        intended=record.get("intended"),
        duplicated=record.get("duplicated"),
        reordered=record.get("reordered"),
        late=record.get("late"),
        forged=record.get("forged"),
        corrupted=record.get("corrupted"),
        last_run_ns=record.get("last_run_ns"),
        measures=record.get("measures") or {},
    )


def add_flow(phase: PhaseRecords, record: Record) -> None:
    """Joins one side's record to its flow."""
    pair = (record["src"], record["dst"])
    flow = phase.flows.setdefault(pair, Flow(*pair))
    if getattr(flow, record["side"]) is not None:
        raise DamagedRecord(
            f"a second record of the {record['side']} of {' -> '.join(pair)} in one phase"
        )
    setattr(flow, record["side"], side_of(record))


def add_histogram(phase: PhaseRecords, record: Record) -> None:
    """Joins one part of a flow's times to its flow."""
    pair = (record["src"], record["dst"])
    flow = phase.flows.setdefault(pair, Flow(*pair))
    flow.times.setdefault(record["kind"], Histogram()).add_record(record)


def add_stray(phase: PhaseRecords, record: Record) -> None:
    """Takes a `misdelivered-flow` record: frames of one flow that came to another port."""
    phase.strays[record["src"], record["dst"], record["port"]] += record["frames"]


def port_of(record: Record) -> PortCount:
    """The counts of a `port` record."""
    return PortCount(**{name: record.get(name) for name in PortCount.__slots__})


def node_phase_of(record: Record) -> NodePhase:
    """What a `phase` record says."""
    return NodePhase(**{name: record.get(name) for name in NodePhase.__slots__})


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """All records of a file with their line numbers, from 1.

    A last line without its end (the disk was full, the machine died) is left out; a line that is
    no record is a ConfigurationError, and so is a file that can't be read.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            if line.endswith(b"\n") or len(line) > LONGEST_LINE:
                with taking(path, number):
                    record = parse(line)
                yield number, record


@contextmanager
def taking(path: Path, number: int) -> Iterator[None]:
    """Around what is done with a record: where it is in the file, if it is damaged."""
    try:
        yield
    except DamagedRecord as error:
        raise ConfigurationError(f"{path}:{number} is damaged: {error}") from None


def _count(record: Record, prefix: str) -> Count:
    return Count(
        frames=record.get(prefix + "frames"),
        frame_bytes=record.get(prefix + "frame_bytes"),
        payload_bytes=record.get(prefix + "payload_bytes"),
        messages=record.get(prefix + "messages"),
    )
