# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of the measures, as in doc/reference/measures.md.

Pure functions of the tables' columns, with one element for each flow and NaN for a value that was
not observed. A single value that was not observed is None. A sum with an unknown addend is unknown.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.measures import LATENCY_MEASURES, Reduce
from ..records.rows import Bools as Bools
from ..records.rows import Floats as Floats
from ..records.rows import Histogram, NameIndex, Packets, PhaseFlows, PhaseKey, Rows, Times, figure
from ..records.rows import or_zero as or_zero
from ..records.schema import Record
from ..records.summary_form import PhaseEntry

LEAST_FRAME = 64
FRAME_OVERHEAD_L1 = 20  # preamble 7, start delimiter 1, gap 12 bytes (IEEE 802.3)

# A full TCP segment at MTU 1500 over IPv4 with time stamps, if the kernel did not report its own:
# 90 bytes beside its payload (TCP 32, IPv4 20, Ethernet 18, layer 1 20).
TCP_SEGMENT_PAYLOAD = 1448
TCP_SEGMENT_OVERHEAD = 90

# Bytes of an RDMA packet beside its payload. RoCE v2: layer 1 20, Ethernet 18, IP, UDP 8, BTH 12,
# ICRC 4. InfiniBand within a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2. (IBTA 1.4, 5.2 and A17)
_ROCE_PACKET = {"ipv4": 20 + 18 + 20 + 8 + 12 + 4, "ipv6": 20 + 18 + 40 + 8 + 12 + 4}
_INFINIBAND_PACKET = 8 + 12 + 4 + 2
_DATAGRAM = 8  # DETH, in each packet of service ud
_WRITE = 16 + 4  # RETH and immediate data
_IPV4_MAPPED = "::ffff:"
USUAL_PATH_MTU = 1024  # path MTU of RoCE on an Ethernet of MTU 1500

MEGA = 1e6
GIGA = 1e9


Values = Iterable[float | None] | Floats


def _known(values: Values) -> tuple[list[float], bool]:
    """Return the known values (neither None nor NaN), and whether all values are known."""
    if isinstance(values, np.ndarray):
        seen = ~np.isnan(values)
        whole = bool(seen.all())
        return (values if whole else values[seen]).tolist(), whole
    parts = list(values)
    known = [value for value in parts if value is not None]
    return known, len(known) == len(parts)


def total(values: Values) -> float | None:
    """Return the sum of the values; None if a value is unknown or there are no values."""
    known, whole = _known(values)
    return sum(known) if known and whole else None


def total_int(values: Values) -> int | None:
    """Return the sum of counts as an int; None if a count is unknown or there are no counts."""
    result = total(values)
    return None if result is None else int(result)


def total_known(values: Values) -> int | None:
    """Return the sum of the known counts; None if this sum is 0 and a count is unknown."""
    known, whole = _known(values)
    events = int(sum(known))
    return events if events or (known and whole) else None


def _of_known(reduce: Callable[[list[float]], float]) -> Callable[[Values], float | None]:
    """Return a function that applies `reduce` to the known values; None if no value is known."""

    def found(values: Values) -> float | None:
        known, _ = _known(values)
        return reduce(known) if known else None

    return found


least, greatest = _of_known(min), _of_known(max)
mean, median = _of_known(statistics.fmean), _of_known(statistics.median)

REDUCERS: dict[str, Callable[[Values], float | None]] = {
    "min": least, "max": greatest, "mean": mean, "sum": total, "known": total_known,
}  # fmt: skip


def reduced(values: Values, by: Reduce) -> float | None:
    """Reduce many values to one number, with the function `by` or the reducer named `by`.

    A name is a key of REDUCERS. A function is applied only if all values are known; else None.
    """
    if isinstance(by, str):
        return REDUCERS[by](values)
    known, whole = _known(values)
    return by(known) if known and whole else None


def ratio(value: float | None, base: float | None, scale: float = 1.0) -> float | None:
    """Return scale x value / base; None if either is unknown, or the base is 0."""
    return None if value is None or not base else scale * value / base


def as_int(value: float | None) -> int | None:
    """Convert a count, read from a column of floats, to an int; None for NaN."""
    return None if value is None or np.isnan(value) else int(value)


def observed(values: Floats) -> list[float | None]:
    """Convert a column to a list in which None replaces NaN."""
    column = values.astype(object)
    column[np.isnan(values)] = None
    found: list[float | None] = column.tolist()
    return found


# --- rates on the line ---------------------------------------------------------------------------


def packets_of(
    verbs: Mapping[str, object],
    opened: Mapping[tuple[str, str], Record],
    transport: str,
    flows: PhaseFlows,
) -> Packets:
    """Return path MTU and header bytes of the packets of each RDMA flow.

    The sizes follow from the options of transport verbs, from the `port-open` records (`opened`, by
    port and transport) and from the flow's path MTU.
    """
    mtu = np.where(
        flows.reported("source"), flows["sent_path_mtu_bytes"], flows["received_path_mtu_bytes"]
    )
    shapes = [
        packet_shape(verbs, opened.get((src, transport), {}), one)
        for (src, _), one in zip(flows.pairs, observed(mtu), strict=True)
    ]
    return Packets(*np.array(shapes, dtype=np.float64).reshape(-1, 3).T)


def packet_shape(verbs: Mapping[str, object], opened: Record, mtu: float | None) -> Packets:
    """Return an RDMA flow's path MTU, and its layer-1 overhead per packet and message."""
    if opened.get("link_layer") == "InfiniBand":
        packet = _INFINIBAND_PACKET
    else:
        mapped = str(opened.get("gid") or _IPV4_MAPPED).startswith(_IPV4_MAPPED)
        packet = _ROCE_PACKET["ipv4" if mapped else "ipv6"]
    packet += _DATAGRAM if verbs.get("service") == "ud" else 0
    message = _WRITE if verbs.get("operation") == "write" else 0
    return Packets(int(mtu or opened.get("mtu") or USUAL_PATH_MTU), packet, message)


def line_bits(flows: PhaseFlows, end: str) -> Floats:
    """Return each flow's layer-1 bits in the window of one end, `sent` or `received`.

    The bits are exact for transports that count frames. For verbs and tcp they are computed from
    the payload, as RDMA packets or full TCP segments.
    """
    payload = flows[f"{end}_window_payload_bytes"]
    if (packets := flows.packets) is not None:
        messages = or_zero(flows[f"{end}_window_messages"])
        each = payload / np.maximum(messages, 1.0)  # the last packet may be short
        count = np.ceil(each / packets.path_mtu_bytes) * np.maximum(messages, 1.0)
        headers = count * packets.packet_bytes + messages * packets.message_bytes
        shaped = 8.0 * (payload + headers)
    else:
        # A full TCP segment: payload and overhead, which the kernel reports (TCP_INFO).
        full, beside = flows["sent_mss_bytes"], flows["sent_segment_overhead_bytes"]
        segment = np.where(or_zero(full) == 0, TCP_SEGMENT_PAYLOAD, full)
        overhead = np.where(or_zero(beside) == 0, TCP_SEGMENT_OVERHEAD, beside)
        with np.errstate(over="ignore"):
            shaped = 8.0 * payload * (segment + overhead) / segment
    frames = flows[f"{end}_window_frames"]
    bits = 8.0 * (flows[f"{end}_window_frame_bytes"] + FRAME_OVERHEAD_L1 * frames)
    return np.where(np.isnan(bits), shaped, bits)


def per_second(amount: Floats, span_ns: Floats) -> Floats:
    """Return the rate per second of an amount over a window in ns; NaN for a window of 0 ns."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(span_ns > 0, amount * 1e9 / span_ns, np.nan)


def payload_bps(flows: PhaseFlows) -> Floats:
    """Return each flow's throughput in bit/s: payload verified in the receiver's window."""
    return per_second(8.0 * flows["received_window_payload_bytes"], flows["received_window_ns"])


def offered_payload_bps(flows: PhaseFlows) -> Floats:
    """Return the payload in bit/s that each flow's source sent in its window."""
    return per_second(8.0 * flows["sent_window_payload_bytes"], flows["sent_window_ns"])


def delivered_line_bps(flows: PhaseFlows) -> Floats:
    """Return each flow's delivered layer-1 rate in bit/s, in the window of its destination."""
    return per_second(line_bits(flows, "received"), flows["received_window_ns"])


def offered_line_bps(flows: PhaseFlows) -> Floats:
    """Return each flow's offered layer-1 rate in bit/s, in the window of its source."""
    return per_second(line_bits(flows, "sent"), flows["sent_window_ns"])


def intended_line_bps(flows: PhaseFlows) -> Floats:
    """Return each flow's intended layer-1 rate: offered rate x intended frames / sent frames."""
    offered, sent, said = offered_line_bps(flows), flows["sent_frames"], flows["intended"]
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = offered * np.where(or_zero(said) == 0, sent, said) / sent
    return np.where(or_zero(sent) == 0, offered, scaled)


# --- lost frames and drops -----------------------------------------------------------------------

# Phases in these states were stopped with frames in flight, so that their loss is unknown.
UNSETTLED = ("flooded", "stopped")


def lost_frames(flows: PhaseFlows, unit: str = "frames") -> Floats:
    """Return each flow's lost frames (or messages): offered - (delivered + corrupted).

    Counts are over the whole trial, after the drain. Delivered frames are distinct: each sequence
    number counts once, without duplicates. NaN: the loss is unknown, for example in a phase that
    was stopped with frames in flight.
    """
    if not flows.settled:
        return np.full(len(flows), np.nan)
    corrupted = or_zero(flows["corrupted"]) if unit == "frames" else 0.0
    lost = flows[f"sent_{unit}"] - flows[f"received_{unit}"] - corrupted
    return np.asarray(np.maximum(lost, 0.0))


def loss_percent(flows: PhaseFlows) -> Floats:
    """Return the percentage of each flow's offered frames that were lost."""
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: no frame was offered
        return 100.0 * lost_frames(flows) / flows["sent_frames"]


def surplus_frames(flows: PhaseFlows) -> Floats:
    """Return each flow's surplus: delivered distinct frames less offered frames, at least 0.

    A surplus above 0 shows a counting error.
    """
    more = flows["received_frames"] - flows["sent_frames"]
    return or_zero(np.maximum(more, 0.0))


# --- columns of flows that are computed from other columns ---------------------------------------


def _judged(name: str) -> Callable[[PhaseFlows], Floats]:
    """Return a function that reads the flows' column `name`; NaN for flows without frame counts."""
    return lambda flows: np.where(np.isnan(flows["received_frames"]), np.nan, flows[name])


def _of_times(value: Callable[[Times], float | None]) -> Callable[[PhaseFlows], Floats]:
    """Return a function that applies `value` to the latency histograms of each flow."""
    return lambda flows: np.array(
        [value(flows.times.get(pair, {})) for pair in flows.pairs], dtype=np.float64
    )


def _latency(kind: str, name: str) -> Callable[[PhaseFlows], Floats]:
    return _of_times(lambda times: figure(kind, name, times.get(kind)))


DERIVED: dict[str, Callable[[PhaseFlows], Floats]] = {
    "throughput": lambda flows: np.where(flows.window_off, np.nan, payload_bps(flows) / MEGA),
    "every_throughput": lambda flows: payload_bps(flows) / MEGA,
    "lost_frames": lost_frames,
    "lost_messages": lambda flows: lost_frames(flows, "messages"),
    "loss_percent": loss_percent,
    "lost_probes": _of_times(lambda times: times.get("round_trip", Histogram()).lost),
    **{name: _judged(name) for name in ("duplicated", "reordered", "late", "corrupted")},
    "duplicated_messages": lambda flows: flows["duplicated"],
    "reordered_messages": lambda flows: flows["reordered"],
    "corrupted_bytes": lambda flows: flows["corrupted"],
    **{key: _latency(kind, name) for key, (kind, name) in LATENCY_MEASURES.items()},
}


def flow_column(flows: PhaseFlows, name: str) -> Floats:
    """Return each flow's value of the measure `name`: a stored or a computed (DERIVED) column."""
    return DERIVED[name](flows) if name in DERIVED else flows[name]


# Measures of ports that are the sum of two columns, one for each direction.
_PORT_SUMS = {"host_drops": ("dropped_receive", "dropped_send"),
              "discards": ("rx_discards", "tx_discards")}  # fmt: skip


def port_column(ports: Rows, name: str) -> Floats:
    """Return each port's value of the measure `name`: a column of `ports`, or a sum of two columns.

    The sum adds the known values of the receive and the send direction. A sum of 0 becomes NaN if
    too little is known: drops in a host need both directions, discards of a device at least one.
    """
    if name not in _PORT_SUMS:
        return ports.floats(name)
    received, sent = (ports.floats(column) for column in _PORT_SUMS[name])
    known, both = or_zero(received) + or_zero(sent), ~np.isnan(received + sent)
    if name == "discards":
        both = ~(np.isnan(received) & np.isnan(sent))
    return np.where((known > 0) | both, known, np.nan)


# --- by port -------------------------------------------------------------------------------------

ByPort = dict[str, float | None]


def lines_of(ports: NameIndex[str], line_bps: Mapping[str, int]) -> Floats:
    """Return the line rate of each port in bit/s; NaN if unknown."""
    found = np.array([*map(line_bps.get, ports.names)], dtype=np.float64)
    found[found == 0] = np.nan
    return found


def sum_by_port(ports: NameIndex[str], values: Floats) -> ByPort:
    """Return for each port the sum of its flows' values; None if one value is unknown."""
    sums = np.bincount(ports.place, values, len(ports.names)).astype(np.float64)
    return dict(zip(ports.names, observed(sums), strict=True))


@dataclass(frozen=True)
class PortShares:
    """Rates of ports in percent of line rate: delivered from a port, to it, and offered by it."""

    source: ByPort
    destination: ByPort
    offered: ByPort  # without flows that the port only forwards


def port_shares(flows: PhaseFlows, line_bps: Mapping[str, int], every: bool = False) -> PortShares:
    """Return each port's rates in percent of line rate.

    None: the port's line rate, or the rate of one of its flows, is unknown.

    `every`: include flows whose measurement window was longer or shorter than agreed.
    """

    def percent(ports: NameIndex[str], rates: Floats) -> ByPort:
        sums = np.bincount(ports.place, rates, len(ports.names))
        shares = 100.0 * sums / lines_of(ports, line_bps)
        return dict(zip(ports.names, observed(shares), strict=True))

    delivered, offered = (
        rates if every else np.where(flows.window_off, np.nan, rates)
        for rates in (delivered_line_bps(flows), offered_line_bps(flows))
    )
    made = flows.generates | ~flows.reported("source")
    once = ~flows.has_role("copy")

    def by_source(rates: Floats, some: Bools) -> ByPort:
        return percent(flows.ends("src").select(some), rates[some])

    return PortShares(
        source=by_source(delivered, once),
        destination=percent(flows.ends("dst"), delivered),
        offered=by_source(offered, made),
    )


# Frame counts by source, destination (None: unknown) and the wrong port that received the frames.
MisdeliveredFrames = Counter[tuple[str | None, str | None, str]]


def phase_label(entry: PhaseEntry) -> str:
    """Return the short name of a phase for messages, from the phase's entry in the summary."""
    return f"trial {entry['trial']} {entry['pattern']} phase {entry['phase']}"


@dataclass(frozen=True)
class PhaseResult:
    """Result of one phase in one network."""

    key: PhaseKey
    entry: PhaseEntry  # entry in the summary's `trials`
    flows: PhaseFlows
    shares: PortShares
    lines: Mapping[str, int]  # line rates by port
    every: PhaseFlows  # all flows, including idle ones
    ports: Rows  # rows of `ports`
    misdelivered: MisdeliveredFrames
    # lost frames by port that foreign traffic may have displaced (tester.displaced_frames)
    displaced: dict[str, int] = field(default_factory=dict)
    burst_bps: Floats | None = None  # rate of each flow during a burst (phases.burst_line_bps)
    intervals: Any = None  # phases.Intervals

    @property
    def label(self) -> str:
        """Return the short name of the phase for messages."""
        return phase_label(self.entry)


def machine_cpu_s(nodes: Rows, machines: Mapping[str, str]) -> float | None:
    """Return the CPU seconds that all machines used in a phase: span x CPUs - idle time.

    The kernel's time is included. `machines`: the machine of each node. Nodes on one machine report
    nearly equal values, of which the highest counts.
    """
    busy = nodes.floats("cpu_span_s") * nodes.floats("cpus") - nodes.floats("cpu_idle_s")
    of = NameIndex.of(machines.get(name, name) for name in nodes.texts("node"))
    highest = np.full(len(of.names), np.nan)
    np.fmax.at(highest, of.place, np.maximum(busy, 0.0))
    return total(highest)
