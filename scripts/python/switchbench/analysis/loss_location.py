# SPDX-License-Identifier: BSD-3-Clause
"""Where did it go missing: in the sender's host, in the network, in the receiver's host; or did
other traffic take its place?

Our own counts (frames offered and verified) are compared with those of the ports' drivers and
interfaces, whose differences over the phase stand in the `port` records. Formulas:
doc/reference/measures.md, "Where it went missing".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..records.records import PhaseRecords, PortCount
from . import measures as m

PORTS_SHOWN = 16
FULL_FRAME = 1518
AS_MANY = 10  # equal numbers below may be so by chance
NO_LOSS = (
    "Transports that see no frames: up to one for each port counts as none, because the counters "
    "of ports are not read at the same instant"
)


def loss_location(
    phase: PhaseRecords, lost: int | None, displaced_at: Mapping[str, int]
) -> dict[str, Any]:
    """The `loss_location` of a phase's entry in the summary; `lost`: as the flows say;
    `displaced_at`: displaced_frames."""
    found = _hosts(phase)
    sender = m.total_int(host.sender for host in found.values())
    receiver = m.total_int(host.receiver for host in found.values())
    counted = m.total_int(map(_left_less_arrived, phase.ports.values()))
    others = m.total_int(map(_others, phase.ports.values()))
    settled = all(flow.settled for flow in phase.flows.values())
    network, displaced = counted if settled else None, None
    if lost is not None:
        network = None
        displaced = sum(displaced_at.values())
        if sender is not None and receiver is not None:
            displaced = max(0, min(displaced, lost - sender - receiver))
            network = lost - sender - receiver - displaced
    agree = None
    if network is not None and displaced is not None and counted is not None and others is not None:
        agree = _agree(phase, network + displaced, counted, others)
    return {
        "lost_frames": lost,
        "sender_host": sender,
        "network": network,
        "other_traffic": displaced,
        "receiver_host": receiver,
        "wire_errors": m.total_known(host.wire_errors for host in found.values()),
        "counted_in_network": counted,
        "other_frames": others,
        "consistent": agree,
        "ports": _worst(found),
    }


def _agree(phase: PhaseRecords, missing: int, counted: int, others: int) -> bool:
    """Whether as many frames are missing on the way by the ports' counters as by the flows.

    What arrived and is no flow's is counted, too; foreign frames may have come before the counters
    were read first. Guests and probes leave doubt. Where as many came to a port as foreign
    as it lacks, and not a few, they are most likely the same.
    """
    ports, ends = phase.ports.values(), [flow.destination for flow in phase.flows.values()]
    foreign = sum(port.unexpected or 0 for port in ports)
    besides = sum(port.misdelivered or 0 for port in ports)
    besides += sum((end.duplicated or 0) + (end.late or 0) for end in ends if end)
    lacks = _lacking(phase)
    if any(AS_MANY <= (port.unexpected or 0) == lacks[name] for name, port in phase.ports.items()):
        return False
    return -others <= missing - counted - besides <= foreign + others


def _lacking(phase: PhaseRecords) -> dict[str, int]:
    """By port: frames that were lost on the way to it, in no host as far as its counters say."""
    lost = Counter[str]()
    for flow in phase.flows.values():
        lost[flow.dst] += m.lost_frames(flow) or 0
    return {name: lost[name] - (_receiver_host(port) or 0) for name, port in phase.ports.items()}


def displaced_frames(phase: PhaseRecords, lines: Mapping[str, int]) -> dict[str, int]:
    """By port: frames that it lacks and for which foreign frames that arrived there took the time:
    one for one, where its load and full foreign frames are more than its line carries in a window.
    """
    flows = phase.flows.values()
    asked = m.sum_by_port(flows, "dst", map(m.intended_line_bps, flows))
    window_ns = max((flow.source.window_ns or 0 for flow in flows if flow.source), default=0)
    found = {}
    for name, lacks in _lacking(phase).items():
        foreign = phase.ports[name].unexpected or 0
        full_bps = m.per_second(8.0 * foreign * (FULL_FRAME + m.FRAME_OVERHEAD_L1), window_ns)
        together = m.total((asked.get(name), full_bps))
        if together is None or together > lines.get(name, 0):
            found[name] = min(lacks, foreign)
    return {name: count for name, count in found.items() if count > 0}


def not_in_network(phase: PhaseRecords, displaced: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """By flow: how many of its frames its two hosts, or other traffic, may have cost it."""
    hosts = _hosts(phase)
    sender = {name: host.sender or 0 for name, host in hosts.items()}
    receiver = {name: host.receiver or 0 for name, host in hosts.items()}
    return {
        (src, dst): sender.get(src, 0) + receiver.get(dst, 0) + displaced.get(dst, 0)
        for src, dst in phase.flows
    }


def contradicted(found: Mapping[str, Any]) -> bool:
    """Whether flows miss frames that the ports' counters do not miss, or others."""
    return found["consistent"] is False and (found["lost_frames"] or 0) > 0


def in_network(entry: Mapping[str, Any]) -> int | None:
    """What a phase lost in the network, of its entry in the summary, for a person: NO_LOSS."""
    found = entry["loss_location"] or {}
    network: int | None = found.get("network")
    if network is None or found.get("lost_frames") is not None:
        return network
    return network if network > entry["ranks"] else 0


@dataclass(frozen=True)
class _Host:
    """What one port's counters say of its host and its end of the wire."""

    sender: int | None
    receiver: int | None
    wire_errors: int | None

    @property
    def badness(self) -> int:
        return (self.sender or 0) + (self.receiver or 0) + (self.wire_errors or 0)


def _hosts(phase: PhaseRecords) -> dict[str, _Host]:
    forwarders = {
        flow.src
        for flow in phase.flows.values()
        if flow.source is not None and flow.source.role == "forward"
    }
    return {
        name: _Host(_sender_host(port, name in forwarders), _receiver_host(port), port.errors)
        for name, port in phase.ports.items()
    }


def _sender_host(port: PortCount, forwards: bool) -> int | None:
    """Frames that our worker sent and that never left. Two counters see the same frames: what is
    missing in the one, and the drops of the other; the latter of a forwarder are no flow's loss."""
    missing = None
    if port.sent_frames is not None and port.hardware_sent is not None:
        missing = max(0, port.sent_frames + (port.probes_sent or 0) - port.hardware_sent)
    if forwards:
        return missing
    if port.dropped_send is None:
        return None
    return max(missing or 0, port.dropped_send)


def _receiver_host(port: PortCount) -> int | None:
    """Frames that reached the port and never our worker."""
    if port.dropped_receive is None:
        return None
    taken = m.total_int(
        (port.received_frames, port.misdelivered, port.unexpected, port.arp_nd_received)
    )
    probes = port.probes_received or 0
    if taken is None or port.hardware_received is None:
        return port.dropped_receive
    return port.dropped_receive + max(0, port.hardware_received - taken - probes)


def _left_less_arrived(port: PortCount) -> int | None:
    """What left by the port less what reached it: over all ports, what the network kept.

    A kernel's interface counts what it drops as received, a driver of dpdk does not.
    """
    if port.hardware_sent is None or port.hardware_received is None:
        return None
    if port.sent_frames is None:
        return port.hardware_sent - port.hardware_received
    if port.dropped_receive is None:
        return None
    return port.hardware_sent - port.hardware_received - port.dropped_receive


def _others(port: PortCount) -> int:
    """Guests' frames and probes, which are not counted when the port's counters are read: those may
    be off by them."""
    guest = (port.arp_nd_sent or 0) + (port.arp_nd_received or 0)
    return guest + (port.probes_sent or 0) + (port.probes_received or 0)


def _worst(found: dict[str, _Host]) -> list[dict[str, Any]]:
    """The ports at which something went missing, the worst first."""
    bad = sorted(
        (name for name, host in found.items() if host.badness),
        key=lambda name: -found[name].badness,
    )
    return [
        {
            "port": name,
            "sender_host": found[name].sender,
            "receiver_host": found[name].receiver,
            "wire_errors": found[name].wire_errors,
        }
        for name in bad[:PORTS_SHOWN]
    ]
