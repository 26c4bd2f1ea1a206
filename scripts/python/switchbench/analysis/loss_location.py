# SPDX-License-Identifier: BSD-3-Clause
"""Where did it go missing: in the sender's host, in the network, in the receiver's host.

Or did other traffic take its place?

Our own counts (frames offered and verified) are compared with those of the ports' drivers and
interfaces, whose differences over the phase stand in the `port` records. Formulas:
doc/reference/measures.md, "Loss by location".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records.rows import Bools, Floats, Rows
from ..records.summary_form import Entry
from . import measures as m

PORTS_SHOWN = 16
FULL_FRAME = 1518
AS_MANY = 10  # equal numbers below may be so by chance
NO_LOSS = (
    "Transports that see no frames: up to one for each port counts as none, because the counters "
    "of ports are not read at the same instant"
)


def loss_location(result: m.PhaseResult) -> Entry:
    """Return the `loss_location` of a phase's entry in the summary."""
    ports, lost = result.ports, result.entry["lost_frames"]
    hosts = _hosts(result)
    sender = m.total_int(hosts.sender)
    receiver = m.total_int(hosts.receiver)
    counted = m.total_int(_left_less_arrived(ports))
    others = m.total_int(_others(ports))
    network, displaced = counted if result.flows.settled else None, None
    if lost is not None:
        network = None
        displaced = sum(result.displaced.values())
        if sender is not None and receiver is not None:
            displaced = max(0, min(displaced, lost - sender - receiver))
            network = lost - sender - receiver - displaced
    agree = None
    if network is not None and displaced is not None and counted is not None and others is not None:
        agree = _agree(result, network + displaced, counted, others)
    if network is not None and lost is not None:
        network = max(network, 0)  # hosts drop probes, too, which no flow misses
    return {
        "lost_frames": lost,
        "sender_host": sender,
        "network": network,
        "other_traffic": displaced,
        "receiver_host": receiver,
        "wire_errors": m.total_known(hosts.wire_errors),
        "counted_in_network": counted,
        "other_frames": others,
        "consistent": agree,
        "ports": _worst(hosts),
    }


def _agree(result: m.PhaseResult, missing: int, counted: int, others: int) -> bool:
    """Return whether as many frames are missing on the way by the ports' counters as by the flows.

    What arrived and is no flow's is counted, too; foreign frames may have come before the counters
    were read first. Guests and probes leave doubt. Where as many came to a port as foreign
    as it lacks, and not a few, they are most likely the same.
    """
    flows = result.every
    unexpected = m.or_zero(result.ports.floats("unexpected"))
    besides = m.or_zero(result.ports.floats("misdelivered")).sum() + sum(
        m.or_zero(flows[name]).sum() for name in ("duplicated", "late")
    )
    besides += m.or_zero(flows["sent_frames"])[flows.has_role("copy")].sum()
    many = unexpected >= AS_MANY
    if many.any() and (many & (unexpected == _lacking(result))).any():
        return False
    return bool(-others <= missing - counted - besides <= unexpected.sum() + others)


def _lacking(result: m.PhaseResult) -> Floats:
    """By port: frames that were lost on the way to it, in no host as far as its counters say."""
    flows = result.every
    lost = m.sum_by_port(flows.ends("dst"), m.or_zero(m.lost_frames(flows)))
    came = np.array([lost.get(port) or 0.0 for port in result.ports.texts("port")])
    return came - m.or_zero(_receiver_host(result.ports))


def displaced_frames(result: m.PhaseResult) -> dict[str, int]:
    """Return by port the frames that it lacks because foreign frames there took the time.

    One for one, where its load and full foreign frames are more than its line carries in a window.
    """
    foreign = m.or_zero(result.ports.floats("unexpected"))
    may_be = np.minimum(_lacking(result), foreign) if foreign.any() else foreign
    if not (may_be > 0).any():
        return {}
    flows = result.every
    asked = m.sum_by_port(flows.ends("dst"), m.intended_line_bps(flows))
    window_ns = max(0.0, *m.or_zero(flows["sent_window_ns"]).tolist())
    full_bps = m.per_second(
        8.0 * foreign * (FULL_FRAME + m.FRAME_OVERHEAD_L1), np.full(len(foreign), window_ns)
    )
    found = {}
    for name, count, bps in zip(
        result.ports.texts("port"), may_be.tolist(), m.observed(full_bps), strict=True
    ):
        together = m.total((asked.get(name), bps))
        if count > 0 and (together is None or together > result.lines.get(name, 0)):
            found[name] = int(count)
    return found


def clumped_frames(result: m.PhaseResult) -> dict[str, float]:
    """Return by port, where some were lost.

    The most frames for it that may have found its queue full because senders fell behind: these
    sent at once what was due meanwhile (`late_frames`).

    Only where a sender offered less than intended. A cable that lost its carrier is not theirs.
    """
    behind = {
        limit["port"]
        for limit in result.entry["tester_limited"]
        if limit["shortfall_percent"] is not None
    }
    if not behind or not result.entry["lost_frames"]:
        return {}
    carriers = zip(
        result.ports.texts("port"), m.or_zero(result.ports.floats("no_carrier")), strict=True
    )
    cut = {port for port, frames in carriers if frames}
    late = m.or_zero(result.flows["late_frames"])
    found: dict[str, float] = {}
    for (src, dst), frames in zip(result.flows.pairs, late.tolist(), strict=True):
        if frames and src in behind and not cut & {src, dst}:
            found[dst] = found.get(dst, 0.0) + frames
    return found


@dataclass(frozen=True)
class HostLoss:
    """Lost frames of a port's flows that hosts or foreign traffic explain."""

    port: str
    cause: str  # sender_host, receiver_host, other_traffic of `loss_location`, or late_sender
    frames: int


def without_hosts(result: m.PhaseResult) -> tuple[Floats, list[HostLoss]]:
    """Return the lost frames of each flow less what hosts or foreign traffic explain, and that.

    A port's drops are shared among its flows by what they lost: no counter says whose they were.
    """
    left, found = m.lost_frames(result.flows), []
    if not (left > 0).any():
        return left, []
    hosts = _hosts(result)
    sender, receiver = (
        dict(zip(hosts.ports, m.or_zero(counts).tolist(), strict=True))
        for counts in (hosts.sender, hosts.receiver)
    )
    for cause, end, drops in (
        ("sender_host", "src", sender),
        ("receiver_host", "dst", receiver),
        ("other_traffic", "dst", result.displaced),
        ("late_sender", "dst", clumped_frames(result)),
    ):
        ports = result.flows.ends(end)
        lost = np.bincount(ports.place, m.or_zero(left), len(ports.names))
        dropped = np.array([drops.get(name, 0.0) for name in ports.names], dtype=np.float64)
        taken = np.minimum(dropped, lost)
        left = np.rint(left * (1 - taken / np.maximum(lost, 1.0))[ports.place])
        found += [
            HostLoss(ports.names[port], cause, int(taken[port]))
            for port in np.flatnonzero(taken >= 1).tolist()
        ]
    return left, found


def beyond_hosts(result: m.PhaseResult) -> Floats:
    """By flow: the lost frames that neither a drop in its hosts nor other traffic explains.

    At least; NaN where these are not known, or where flows and ports contradict each other.
    """
    if contradicted(result.entry["loss_location"]):
        return np.full(len(result.flows), np.nan)
    hosts = _hosts(result)
    sender = dict(zip(hosts.ports, hosts.sender.tolist(), strict=True))
    receiver = dict(zip(hosts.ports, hosts.receiver.tolist(), strict=True))
    others = Counter[str](result.displaced)
    others.update(clumped_frames(result))
    explained = np.array(
        [
            sender.get(src, np.nan) + receiver.get(dst, np.nan) + others[dst]
            for src, dst in result.flows.pairs
        ]
    )
    found: Floats = np.maximum(m.lost_frames(result.flows) - explained, 0.0)
    return found


def lost_in_network(result: m.PhaseResult) -> int | None:
    """Return the frames that a phase lost in the network, at least.

    None where that is not known.
    """
    location = result.entry["loss_location"]
    if location["lost_frames"] is None or contradicted(location):
        return None
    by_flow, network = m.total_known(beyond_hosts(result)), location["network"]
    if network is not None:
        network = max(0, network - int(sum(clumped_frames(result).values())))
    return max((count for count in (by_flow, network) if count is not None), default=None)


def contradicted(found: Entry) -> bool:
    """Return whether flows miss frames that the ports' counters do not miss, or others."""
    return found["consistent"] is False and (found["lost_frames"] or 0) > 0


def in_network(entry: Mapping[str, Any]) -> int | None:
    """Return what a phase lost in the network, of its entry in the summary, for a person.

    NO_LOSS.
    """
    found = entry["loss_location"] or {}
    network: int | None = found.get("network")
    if network is None or found.get("lost_frames") is not None:
        return network
    return network if network > entry["ranks"] else 0


@dataclass(frozen=True)
class _Hosts:
    """By port: what its counters say of its host and its end of the wire."""

    ports: list[str]
    sender: Floats
    receiver: Floats
    wire_errors: Floats


def _hosts(result: m.PhaseResult) -> _Hosts:
    flows, ports = result.every, result.ports
    forwarders = set(flows.ends("src").select(flows.has_role("forward")).names)
    names = ports.texts("port")
    return _Hosts(
        names,
        _sender_host(ports, np.array([name in forwarders for name in names], dtype=bool)),
        _receiver_host(ports),
        ports.floats("errors"),
    )


def _sender_host(ports: Rows, forwards: Bools) -> Floats:
    """Frames that our worker sent and that never left.

    Two counters see the same frames: what is missing in the one, and the drops of the other; the
    latter of a forwarder are no flow's loss.
    """
    sent = ports.floats("sent_frames") + m.or_zero(ports.floats("probes_sent"))
    missing = np.maximum(sent - ports.floats("hardware_sent"), 0.0)
    dropped = np.maximum(m.or_zero(missing), ports.floats("dropped_send"))
    found: Floats = np.where(forwards, missing, dropped)
    return found


def _receiver_host(ports: Rows) -> Floats:
    """Frames that reached the port and never our worker."""
    taken = m.or_zero(ports.floats("probes_received"))
    for name in ("received_frames", "misdelivered", "unexpected", "arp_nd_received"):
        taken = taken + ports.floats(name)
    missing = np.maximum(ports.floats("hardware_received") - taken, 0.0)
    found: Floats = ports.floats("dropped_receive") + m.or_zero(missing)
    return found


def _left_less_arrived(ports: Rows) -> Floats:
    """Return what left by each port less what reached it: over all ports, what the network kept.

    A kernel's interface counts what it drops as received, a driver of dpdk does not.
    """
    more = ports.floats("hardware_sent") - ports.floats("hardware_received")
    sees_frames = ~np.isnan(ports.floats("sent_frames"))
    found: Floats = np.where(sees_frames, more - ports.floats("dropped_receive"), more)
    return found


def _others(ports: Rows) -> Floats:
    """Guests' frames and probes, which are not counted when the port's counters are read.

    Those may be off by them.
    """
    names = ("arp_nd_sent", "arp_nd_received", "probes_sent", "probes_received")
    found: Floats = np.sum([m.or_zero(ports.floats(name)) for name in names], axis=0)
    return found


def _worst(hosts: _Hosts) -> list[Entry]:
    """Return the ports at which something went missing, the worst first."""
    counts = (hosts.sender, hosts.receiver, hosts.wire_errors)
    badness: Floats = np.sum([m.or_zero(count) for count in counts], axis=0)
    order = np.argsort(-badness, kind="stable")[: int((badness != 0).sum())]
    return [
        {
            "port": hosts.ports[port],
            "sender_host": m.as_int(hosts.sender[port]),
            "receiver_host": m.as_int(hosts.receiver[port]),
            "wire_errors": m.as_int(hosts.wire_errors[port]),
        }
        for port in order[:PORTS_SHOWN].tolist()
    ]
