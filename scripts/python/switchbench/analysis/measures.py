# SPDX-License-Identifier: BSD-3-Clause
"""The measures by formula, as doc/reference/measures.md states them. Pure functions of joined
records.

None is "not observed" and stays so: a sum with an unknown part is unknown.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..records.records import Count, Flow, NodePhase, PacketShape, PhaseKey, PortCount

LEAST_FRAME = 64
FRAME_OVERHEAD_L1 = 20  # preamble 7, start delimiter 1, gap 12 bytes (IEEE 802.3)

# A TCP stream in full segments over Ethernet, IPv4, time stamps on: each has 90 bytes beside its
# payload on the line (TCP 32, IPv4 20, Ethernet 18, layer 1 20); at MTU 1500, 1,448 of 1,538.
TCP_SEGMENT_PAYLOAD = 1448
TCP_SEGMENT_OVERHEAD = 90

# A packet of RDMA on the line beside its payload. RoCE v2: layer 1 20, Ethernet 18, IP, UDP 8, BTH
# 12, ICRC 4. InfiniBand inside of a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2. (IBTA 1.4, 5.2 and A17)
_ROCE_PACKET = {"ipv4": 20 + 18 + 20 + 8 + 12 + 4, "ipv6": 20 + 18 + 40 + 8 + 12 + 4}
_INFINIBAND_PACKET = 8 + 12 + 4 + 2
_DATAGRAM = 8  # DETH, of each packet of service ud
_WRITE = {False: 16, True: 16 + 4}  # RETH; with immediate data
_IPV4_MAPPED = "::ffff:"
USUAL_PATH_MTU = 1024  # of RoCE on an Ethernet of MTU 1500

MEGA = 1e6
GIGA = 1e9


def total(values: Iterable[float | None]) -> float | None:
    """The sum; None when any part, or everything, is unknown."""
    parts = list(values)
    known = [value for value in parts if value is not None]
    return sum(known) if known and len(known) == len(parts) else None


def total_int(values: Iterable[int | None]) -> int | None:
    """`total` of counts."""
    result = total(values)
    return None if result is None else int(result)


def total_known(values: Iterable[int | None]) -> int | None:
    """The sum of events: what is known counts, but 0 is only said when every part is known."""
    parts = list(values)
    known = sum(value for value in parts if value is not None)
    return known if known or (parts and None not in parts) else None


def least(values: Iterable[float | None]) -> float | None:
    """The minimum of what is known."""
    return min((value for value in values if value is not None), default=None)


def greatest(values: Iterable[float | None]) -> float | None:
    """The maximum of what is known."""
    return max((value for value in values if value is not None), default=None)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def median(values: Iterable[float | None]) -> float | None:
    """The median of what is known."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def packet_shape(verbs: dict[str, Any], opened: dict[str, Any], mtu: float | None) -> PacketShape:
    """The packets of a flow: by its options, what the node said of its port, and its path MTU."""
    if opened.get("link_layer") == "InfiniBand":
        packet = _INFINIBAND_PACKET
    else:
        mapped = str(opened.get("gid") or _IPV4_MAPPED).startswith(_IPV4_MAPPED)
        packet = _ROCE_PACKET["ipv4" if mapped else "ipv6"]
    packet += _DATAGRAM if verbs.get("service") == "ud" else 0
    writes = verbs.get("operation") == "write"
    message = _WRITE[bool(verbs.get("immediate", True))] if writes else 0
    return PacketShape(int(mtu or opened.get("mtu") or USUAL_PATH_MTU), packet, message)


def _packet_bits(shape: PacketShape, count: Count) -> float:
    """Payload with the headers of its packets; the last packet of a message may be short."""
    payload, messages = count.payload_bytes or 0, count.messages or 0
    each = payload / messages if messages else float(payload)
    packets = math.ceil(each / shape.path_mtu_bytes) * max(1, messages)
    return 8.0 * (payload + packets * shape.packet_bytes + messages * shape.message_bytes)


def line_bits(flow: Flow, count: Count) -> float | None:
    """Layer-1 bits: exact where frames are counted, else by packets or full TCP segments."""
    if count.frames is not None and count.frame_bytes is not None:
        return 8.0 * (count.frame_bytes + FRAME_OVERHEAD_L1 * count.frames)
    if count.payload_bytes is not None and flow.packet is not None:
        return _packet_bits(flow.packet, count)
    if count.payload_bytes is not None:
        segment = _segment_payload(flow)
        return 8.0 * count.payload_bytes * (segment + TCP_SEGMENT_OVERHEAD) / segment
    return None


def _segment_payload(flow: Flow) -> float:
    """As the sender's kernel says (TCP_INFO), else that of MTU 1500."""
    measures = flow.source.measures if flow.source else {}
    return measures.get("mss_bytes") or TCP_SEGMENT_PAYLOAD


def per_second(amount: float | None, span_ns: int | None) -> float | None:
    """A rate over a window; None without one."""
    return None if amount is None or not span_ns else amount * 1e9 / span_ns


def payload_bps(flow: Flow) -> float | None:
    """The flow's throughput: payload that its destination verified in its window."""
    side = flow.destination
    if side is None or side.window.payload_bytes is None:
        return None
    return per_second(8.0 * side.window.payload_bytes, side.window_ns)


def delivered_line_bps(flow: Flow) -> float | None:
    """Layer-1 bit/s that the destination verified in its window."""
    side = flow.destination
    return None if side is None else per_second(line_bits(flow, side.window), side.window_ns)


def offered_line_bps(flow: Flow) -> float | None:
    """Layer-1 bit/s that the source really sent in its window."""
    side = flow.source
    return None if side is None else per_second(line_bits(flow, side.window), side.window_ns)


def intended_line_bps(flow: Flow) -> float | None:
    """What the load asked for: as much more than was offered as frames were intended."""
    offered = offered_line_bps(flow)
    if offered is None or flow.source is None:
        return None
    sent = flow.source.whole.frames
    return offered * (flow.source.intended or sent) / sent if sent else offered


# Phases in which frames were still in flight when they were stopped: none of them counts as lost.
UNSETTLED = ("flooded", "stopped")


def missing(offered: Any, delivered: Any, corrupted: Any) -> Any:
    """Offered and not arrived, of numbers or of arrays; NaN in them is unknown."""
    gap = offered - delivered - corrupted
    return gap * (gap > 0)


def lost_frames(flow: Flow) -> int | None:
    """Offered and not arrived: offered - (delivered + corrupted), whole trial, after the drain.

    `frames` of a destination are distinct: each sequence number counts once, duplicates apart.
    Unknown in a phase that was stopped: what was under way was neither lost nor delivered.
    """
    if flow.source is None or flow.destination is None or not flow.settled:
        return None
    sent, came = flow.source.whole.frames, flow.destination.whole.frames
    if sent is None or came is None:
        return None
    lost: int = missing(sent, came, flow.destination.corrupted or 0)
    return lost


def loss_percent(flow: Flow) -> float | None:
    """Lost frames of 100 offered."""
    lost = lost_frames(flow)
    offered = None if flow.source is None else flow.source.whole.frames
    return None if lost is None or not offered else 100.0 * lost / offered


def surplus_frames(flow: Flow) -> int:
    """Distinct frames delivered beyond those offered: a fault of the counting, never right."""
    if flow.source is None or flow.destination is None:
        return 0
    sent, came = flow.source.whole.frames, flow.destination.whole.frames
    return 0 if sent is None or came is None else max(0, came - sent)


def host_drops(port: PortCount) -> int | None:
    """Frames dropped inside this host: its receive ring, its queueing discipline, its driver."""
    return total_known((port.dropped_receive, port.dropped_send))


def sum_by_port(
    flows: Iterable[Flow], end: str, values: Iterable[float | None]
) -> dict[str, float | None]:
    """Sums a flow's values by their `src` or `dst` port; a port with an unknown flow is None."""
    sums: dict[str, list[float | None]] = {}
    for flow, value in zip(flows, values, strict=True):
        sums.setdefault(getattr(flow, end), []).append(value)
    return {port: total(parts) for port, parts in sums.items()}


@dataclass(frozen=True)
class PortShares:
    """Percent of line by port: what arrived from it, what arrived at it, what it sent."""

    source: dict[str, float | None]
    destination: dict[str, float | None]
    offered: dict[str, float | None]  # of flows that the port generates


def port_shares(flows: list[Flow], line_bps: dict[str, int], every: bool = False) -> PortShares:
    """Percent of each port's own line rate; None where that is unknown, or a flow's rate. `every`:
    rates in windows that were not as agreed, too."""

    def percent(rates: dict[str, float | None]) -> dict[str, float | None]:
        shares: dict[str, float | None] = {}
        for port, rate in rates.items():
            line = line_bps.get(port)
            shares[port] = 100.0 * rate / line if rate is not None and line else None
        return shares

    def known(of: Callable[[Flow], float | None], some: list[Flow]) -> list[float | None]:
        return [None if flow.window_off and not every else of(flow) for flow in some]

    delivered = known(delivered_line_bps, flows)
    made = [flow for flow in flows if flow.source is None or flow.source.role == "generate"]
    return PortShares(
        source=percent(sum_by_port(flows, "src", delivered)),
        destination=percent(sum_by_port(flows, "dst", delivered)),
        offered=percent(sum_by_port(made, "src", known(offered_line_bps, made))),
    )


@dataclass(frozen=True)
class PhaseResult:
    """One phase in one network, as those see it who judge it."""

    key: PhaseKey
    entry: Mapping[str, Any]  # its entry in the summary's `trials`
    flows: list[Flow]
    shares: PortShares

    @property
    def frame_bytes(self) -> list[int]:
        """The sizes of the frames that were sent; of messages, which are cut, the smallest."""
        sizes = self.entry["frame_bytes"] or LEAST_FRAME
        return sizes if isinstance(sizes, list) else [sizes]

    @property
    def label(self) -> str:
        """What people are shown."""
        return f"trial {self.key.trial} {self.entry['pattern']} phase {self.key.phase}"


def machine_cpu_s(nodes: dict[str, NodePhase], machines: dict[str, str]) -> float | None:
    """CPU seconds of all machines in the phase, kernel included: span x cpus - idle.

    `machines`: by node. Nodes of one machine say nearly the same; the most counts.
    """
    by_machine: dict[str, float | None] = {}
    for name, node in nodes.items():
        if node.cpu_span_s is None or node.cpus is None or node.cpu_idle_s is None:
            busy = None
        else:
            busy = max(0.0, node.cpu_span_s * node.cpus - node.cpu_idle_s)
        machine = machines.get(name, name)
        by_machine[machine] = greatest((by_machine.get(machine), busy))
    return total(by_machine.values())


def process_cpu_s(nodes: dict[str, NodePhase]) -> float | None:
    """CPU seconds of the node processes alone: what is missing from the machines' is the kernel's
    own (softirq, its threads) and all else that they did."""
    return total(node.cpu_s for node in nodes.values())
