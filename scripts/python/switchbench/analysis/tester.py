# SPDX-License-Identifier: BSD-3-Clause
"""Effects of the tester on a phase: frames that hosts lost, limits of hosts, wrong line rates.

A frame is lost in the sender's host, in the network, in the receiver's host, or because traffic of
other senders took its room on the line. The counts of switchbench (frames offered and verified) are
compared with the counters of the ports' drivers and interfaces: the `port` records have the
differences of these counters over the phase.
Formulas: doc/reference/measures.md, "Loss by location", "Tester-limited", "Above
line rate".

Rates above the line rate are computed for each port over the phase's window. The shapers of a lab
have a token bucket (`burst`) that fills while no frames are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from typing import Any

import numpy as np

from ..base import format
from ..base.model import Site
from ..records.rows import Bools, Floats, PhaseFlows, Rows
from ..records.summary_form import Entry, filled
from . import measures as m

# --- losses of hosts, by counters of ports --------------------------------------------------------

PORTS_SHOWN = 16
FULL_FRAME = 1518
AS_MANY = 10  # two counts below this number may be equal by chance
NO_LOSS = (
    "For transports that see no frames, a loss of up to one frame per port counts as 0: the "
    "counters of ports are not read at the same instant"
)


def loss_location(result: m.PhaseResult) -> Entry:
    """Return a phase's lost frames by location: `loss_location` of its entry in the summary."""
    ports, lost = result.ports, result.entry["lost_frames"]
    hosts = _hosts(result)
    sender = m.total_int(hosts["sender_host"])
    receiver = m.total_int(hosts["receiver_host"])
    # Frames that each port sent less frames that it received. The sum over all ports is the loss in
    # the network. A kernel's interface counts dropped frames as received, a DPDK driver does not.
    more = ports.floats("hardware_sent") - ports.floats("hardware_received")
    sees_frames = ~np.isnan(ports.floats("sent_frames"))
    counted = m.total_int(np.where(sees_frames, more - ports.floats("dropped_receive"), more))
    # Counters that are read early may lack frames of the ARP/ND responder and of probes. The number
    # of these frames is the allowed difference between flows and counters.
    beside = ("arp_nd_sent", "arp_nd_received", "probes_sent", "probes_received")
    others = m.total_int(np.sum([m.or_zero(ports.floats(name)) for name in beside], axis=0))
    names = ports.texts("port")
    network, displaced = counted if result.flows.settled else None, None
    if lost is not None:
        network = None
        displaced = sum(result.displaced.values())
        if sender is not None and receiver is not None:
            displaced = max(0, min(displaced, lost - sender - receiver))
            network = lost - sender - receiver - displaced
    agree = None
    if network is not None and displaced is not None and counted is not None and others is not None:
        # The counters include arriving frames that belong to no flow, and foreign frames that may
        # have arrived before the counters were first read. If a port received as many foreign
        # frames as it lacks own ones, and more than a few, these most likely displaced its own.
        flows = result.every
        foreign = m.or_zero(ports.floats("unexpected"))
        beyond = network + displaced - counted - m.or_zero(ports.floats("misdelivered")).sum()
        beyond -= sum(m.or_zero(flows[name]).sum() for name in ("duplicated", "late"))
        beyond -= m.or_zero(flows["sent_frames"])[flows.has_role("copy")].sum()
        as_many = ((foreign >= AS_MANY) & (foreign == _lacking(result))).any()
        agree = bool(not as_many and -others <= beyond <= foreign.sum() + others)
    if network is not None and lost is not None:
        network = max(network, 0)  # hosts also drop probes, which belong to no flow
    badness: Floats = np.sum([m.or_zero(count) for count in hosts.values()], axis=0)
    worst = np.argsort(-badness, kind="stable")[: int((badness != 0).sum())]
    return {
        "lost_frames": lost,
        "sender_host": sender,
        "network": network,
        "other_traffic": displaced,
        "receiver_host": receiver,
        "wire_errors": m.total_known(hosts["wire_errors"]),
        "counted_in_network": counted,
        "other_frames": others,
        "consistent": agree,
        "ports": [
            {
                "port": names[port],
                **{name: m.as_int(count[port]) for name, count in hosts.items()},
            }
            for port in worst[:PORTS_SHOWN].tolist()
        ],
    }


def _at_ports(result: m.PhaseResult, values: Floats) -> Floats:
    """Return for each port the sum of the flows to it; NaN without flows or if one is unknown."""
    sums = m.sum_by_port(result.every.ends("dst"), values)
    return np.array([sums.get(port) for port in result.ports.texts("port")], dtype=np.float64)


def _lacking(result: m.PhaseResult) -> Floats:
    """Return for each port the frames lost on the way to it, less the frames lost in its host."""
    lost = _at_ports(result, m.or_zero(m.lost_frames(result.every)))
    return m.or_zero(lost) - m.or_zero(_receiver_host(result.ports))


def displaced_frames(result: m.PhaseResult) -> dict[str, int]:
    """Return for each port how many of its lost frames foreign traffic may have displaced.

    A foreign frame counts as displacing one frame if the port's load, plus the foreign frames taken
    as full-sized, exceeds the port's line rate in the window.
    """
    foreign = m.or_zero(result.ports.floats("unexpected"))
    if not foreign.any():
        return {}
    may_be = np.minimum(_lacking(result), foreign)
    flows, names = result.every, result.ports.texts("port")
    window_ns = max(0.0, *m.or_zero(flows["sent_window_ns"]).tolist())
    full_bits = 8.0 * foreign * (FULL_FRAME + m.FRAME_OVERHEAD_L1)
    together = _at_ports(result, m.intended_line_bps(flows))
    together += m.per_second(full_bits, np.full(len(foreign), window_ns))
    lines = np.array([result.lines.get(name, 0) for name in names])
    found = np.flatnonzero((may_be > 0) & ~(together <= lines))  # or the load is unknown
    return {names[port]: int(may_be[port]) for port in found.tolist()}


def clumped_frames(result: m.PhaseResult) -> dict[str, float]:
    """Return for each port the frames sent to it late, which may have overfilled its queue.

    A sender that falls behind sends all overdue frames at once (`late_frames`), which may fill the
    port's queue. The count is above 0 only if a sender offered less than intended, and 0 for a port
    whose cable lost its carrier.
    """
    limits, ports, flows = result.entry["tester_limited"], result.ports, result.flows
    behind = {limit["port"] for limit in limits if limit["shortfall_percent"] is not None}
    if not behind or not result.entry["lost_frames"]:
        return {}
    cut = set(ports.objects("port")[m.or_zero(ports.floats("no_carrier")) > 0])
    counts = [src in behind and not cut & {src, dst} for src, dst in flows.pairs]
    late = np.where(counts, m.or_zero(flows["late_frames"]), 0.0)
    sums = m.sum_by_port(flows.ends("dst"), late)
    return {port: frames for port, frames in sums.items() if frames}


def without_hosts(result: m.PhaseResult) -> tuple[Floats, dict[tuple[str, str], int]]:
    """Split each flow's loss: frames lost in the network, and frames lost by other causes.

    The second result has the losses in hosts and by foreign traffic, by port and cause:
    sender_host, receiver_host, other_traffic (as in `loss_location`), or late_sender. A port's
    drops are shared among its flows in proportion to their losses, since no counter names the flow.
    """
    left = m.lost_frames(result.flows)
    found: dict[tuple[str, str], int] = {}
    if not (left > 0).any():
        return left, found
    for cause, end, drops in _causes(result):
        ports = result.flows.ends(end)
        lost = np.bincount(ports.place, m.or_zero(left), len(ports.names))
        taken = np.minimum(m.or_zero(drops), lost)
        left = np.rint(left * (1 - taken / np.maximum(lost, 1.0))[ports.place])
        for port in np.flatnonzero(taken >= 1).tolist():
            found[ports.names[port], cause] = int(taken[port])
    return left, found


def beyond_hosts(result: m.PhaseResult) -> Floats:
    """Return each flow's min number of lost frames that hosts and foreign traffic do not explain.

    NaN: the drops of a host are unknown, or counts of flows and counters of ports contradict each
    other.
    """
    if contradicted(result.entry["loss_location"]):
        return np.full(len(result.flows), np.nan)
    explained = np.zeros(len(result.flows))
    for _, end, drops in _causes(result):
        explained += drops[result.flows.ends(end).place]
    return np.maximum(m.lost_frames(result.flows) - explained, 0.0)


def _causes(result: m.PhaseResult) -> Iterator[tuple[str, str, Floats]]:
    """Yield each cause of loss outside the network: its name, affected ends, frames by port.

    The end, `src` or `dst`, selects the flows' sending or receiving ports. The frames are in the
    order of `PhaseFlows.ends`; NaN is unknown.
    """
    hosts = {cause: _by_port(result.ports, frames) for cause, frames in _hosts(result).items()}
    for cause, end, unknown, frames in (
        ("sender_host", "src", np.nan, hosts["sender_host"]),
        ("receiver_host", "dst", np.nan, hosts["receiver_host"]),
        ("other_traffic", "dst", 0.0, result.displaced),
        ("late_sender", "dst", 0.0, clumped_frames(result)),
    ):
        ports = result.flows.ends(end).names
        yield cause, end, np.array([frames.get(name, unknown) for name in ports], dtype=np.float64)


def lost_in_network(result: m.PhaseResult) -> int | None:
    """Return the min number of frames that the network lost in a phase; None if unknown."""
    location = result.entry["loss_location"]
    if location["lost_frames"] is None or contradicted(location):
        return None
    by_flow, network = m.total_known(beyond_hosts(result)), location["network"]
    if network is not None:
        network = max(0, network - int(sum(clumped_frames(result).values())))
    return max((count for count in (by_flow, network) if count is not None), default=None)


def contradicted(found: Entry) -> bool:
    """Return whether the lost frames of the flows contradict the counters of the ports."""
    return found["consistent"] is False and (found["lost_frames"] or 0) > 0


def in_network(entry: Mapping[str, Any]) -> int | None:
    """Return a phase's frames lost in the network, read from its entry in the summary.

    Transports that see no frames count a loss of at most one frame per port as 0 (NO_LOSS).
    """
    found = entry["loss_location"] or {}
    network: int | None = found.get("network")
    if network is None or found.get("lost_frames") is not None:
        return network
    return network if network > entry["ranks"] else 0


def _hosts(result: m.PhaseResult) -> dict[str, Floats]:
    """Return for each port the frames lost in its host, by direction, and its wire errors.

    A frame that never left its host is missing in the port's send counter, or is counted as
    dropped. Drops of a port that forwards frames are no loss of a flow.
    """
    flows, ports = result.every, result.ports
    forwarders = set(flows.ends("src").select(flows.has_role("forward")).names)
    names = ports.texts("port")
    forwards = np.array([name in forwarders for name in names], dtype=bool)
    sent = ports.floats("sent_frames") + m.or_zero(ports.floats("probes_sent"))
    missing = np.maximum(sent - ports.floats("hardware_sent"), 0.0)
    dropped = np.maximum(m.or_zero(missing), ports.floats("dropped_send"))
    sender = np.where(forwards, missing, dropped)
    receiver = _receiver_host(ports)
    return {"sender_host": sender, "receiver_host": receiver, "wire_errors": ports.floats("errors")}


def _by_port(ports: Rows, values: Floats) -> dict[str, float]:
    """Map the name of each port to its element of `values`, a column of the table `ports`."""
    return dict(zip(ports.texts("port"), values.tolist(), strict=True))


def _receiver_host(ports: Rows) -> Floats:
    """Return for each port the received frames that its host dropped or that no worker counted."""
    taken = m.or_zero(ports.floats("probes_received"))
    for name in ("received_frames", "misdelivered", "unexpected", "arp_nd_received"):
        taken = taken + ports.floats(name)
    missing = np.maximum(ports.floats("hardware_received") - taken, 0.0)
    return ports.floats("dropped_receive") + m.or_zero(missing)


# --- limits of the tester -------------------------------------------------------------------------

# a host that leaves a larger share of intended frames unsent is the limit
SHORT_SHARE_SITE = 0.001
SHORT_SHARE_LAB = 0.03
CPU_IDLE_SHARE = 0.05  # with a smaller idle share, no CPU of the lab was free
LATE_MS = 5.0  # a rank that starts later than this counts as late
WINDOW_SHARE = 0.01  # relative error that an end's window may have
MORE = 1.005  # multiple of the line rate that may be measured: clocks differ, and senders catch up
# A link is slow in both directions if the port's loss percentage in the receive direction is at
# least this share of its shortfall in the send direction.
BOTH_WAYS = 0.5
# longest time, in bits, for which one PAUSE frame stops a port (IEEE 802.3, 31B.2)
PAUSE_BITS = 65_535 * 512


def _limit(port: str, pauses: int = 0, **seen: float) -> Entry:
    """Return the summary's entry that says why a port's host may have limited the phase.

    `pauses`: received PAUSE frames, too few to explain that the host sent less than intended.
    `seen`: values of the entry's keys.
    """
    dropped = format.of(int(seen.get("dropped_frames", 0)), "frame")
    words = {
        "shortfall_percent": "offered {:.1f} % less than intended"
        + (f", PAUSE frames received: {pauses}" if pauses else ""),
        "dropped_frames": f"{dropped} dropped in the host",
        "start_delay_ms": "started {:.1f} ms late",
        "window_error_percent": "its window was {:.1f} % off the agreed length",
        "cpu_idle_percent": "received less than its load, lab CPUs idle {:.1f} % of the time",
    }
    reasons = (text.format(seen[name]) for name, text in words.items() if name in seen)
    return filled("TesterLimitEntry", seen, port=port, reason=", ".join(reasons))


_ODD = ("misdelivered_frames", "duplicated_frames", "reordered_frames", "late_frames",
        "corrupted_frames", "forged_frames", "lost_messages")  # fmt: skip


def explains_all(result: m.PhaseResult) -> bool:
    """Return whether the hosts caused every loss of the phase, so that the network caused none.

    Hosts dropped every lost frame, no cable lost its carrier, and no frame was duplicated, late,
    damaged or misdelivered.
    """
    entry: Mapping[str, object] = result.entry
    if not entry["tester_limited"] or entry["state"] not in ("complete", "partial"):
        return False
    if any(entry[name] for name in _ODD) or m.or_zero(result.ports.floats("no_carrier")).any():
        return False
    return not entry["lost_frames"] or lost_in_network(result) == 0


def windows_off(flows: PhaseFlows, window_s: float | None) -> Bools:
    """Return True for each flow whose window at either end is not as long as agreed."""
    off = [_off(flows, end, window_s) > WINDOW_SHARE for end in ("sent", "received")]
    return off[0] | off[1]


def host_limits(
    flows: PhaseFlows,
    ports: Rows,
    nodes: Rows,
    short_share: float,
    window_s: float | None,
    lines: Mapping[str, int],
) -> list[Entry]:
    """Return an entry for each port whose host may have limited the phase, with the reasons.

    Reasons: the host offered less than intended, dropped frames, started late, or measured in a
    window of the wrong length. `window_s`: the agreed window in seconds; None if no window was
    agreed.

    In two cases the network and not the host caused a low offered load. The port received PAUSE
    frames whose longest possible time explains the low load. Or the port's link is slow in both
    directions: the port could not send frames, and frames to it were lost as well.
    """
    pauses, refused, host_drops = (
        _by_port(ports, m.or_zero(m.port_column(ports, key)))
        for key in ("pause", "send_refused", "host_drops")
    )
    # Only the offered load of transports that send frames is judged: TCP also sends less than
    # intended if the network is slow.
    intended, sent = flows["intended"], flows["sent_frames"]
    judged = flows.generates & (m.or_zero(intended) > 0) & ~np.isnan(sent)
    sources = flows.ends("src").select(judged)
    due, offered, octets = (
        np.bincount(sources.place, each[judged], len(sources.names))
        for each in (intended, sent, m.or_zero(flows["sent_frame_bytes"]))
    )
    mean_bytes = np.maximum(m.LEAST_FRAME, octets / np.maximum(offered, 1.0))
    frames, percents = due - offered, 100.0 * (1.0 - offered / due)
    bits = 8 * frames * (mean_bytes + m.FRAME_OVERHEAD_L1)
    short: dict[str, float] = {}
    for place in np.flatnonzero(1.0 - offered / due > short_share).tolist():
        name, percent = sources.names[place], float(percents[place])
        both_ways = refused.get(name, 0) >= frames[place] and (
            _lost_percent(flows, lines, name) >= BOTH_WAYS * percent
        )
        if bits[place] > pauses.get(name, 0) * PAUSE_BITS and not both_ways:
            short[name] = percent
    agreed_ns = next((at_ns for at_ns in nodes.floats("start_run_ns").tolist() if at_ns > 0), nan)
    starts = _by_port(ports, (ports.floats("start_run_ns") - agreed_ns) / 1e6)
    late = {name: delay_ms for name, delay_ms in starts.items() if delay_ms > LATE_MS}
    off: dict[str, float] = {}
    for place, end in enumerate(("sent", "received")):
        shares = _off(flows, end, window_s)
        for flow in np.flatnonzero(shares > WINDOW_SHARE).tolist():
            port = flows.pairs[flow][place]
            off[port] = max(off.get(port, 0.0), 100.0 * float(shares[flow]))
    drops = {name: int(count) for name, count in host_drops.items() if count}
    limits: dict[str, Mapping[str, float]] = {
        "shortfall_percent": short, "dropped_frames": drops, "start_delay_ms": late,
        "window_error_percent": off,
    }  # fmt: skip
    return [
        _limit(
            name, int(pauses.get(name, 0)), **{k: v[name] for k, v in limits.items() if name in v}
        )
        for name in sorted(set().union(*limits.values()))
    ]


def starved(
    flows: PhaseFlows, shares: m.PortShares, load_percent: float | None, nodes: Rows
) -> list[Entry]:
    """Return an entry for each port of a lab whose host lacked CPU time.

    All hosts of a lab share one machine. A port counts if its delivered rate was below the load (in
    percent of line) while no CPU was idle, and the receiver's line was not full. TCP sends what it
    can, so a low rate is its only sign. A lack of CPU time affects all flows: if at most half of
    the flows are too slow, the network may be the cause, and no port counts.
    """
    machine_s = nodes.floats("cpu_span_s") * nodes.floats("cpus")
    idle = m.greatest(nodes.floats("cpu_idle_s") / machine_s)
    if idle is None or load_percent is None or idle > CPU_IDLE_SHARE:
        return []
    enough = (1.0 - SHORT_SHARE_LAB) * min(load_percent, 100.0)
    slow, free = (
        {port for port, percent in ends.items() if percent is not None and percent < enough}
        for ends in (shares.source, shares.destination)
    )
    short = [src for src, dst in flows.pairs if src in slow and dst in free]
    if 2 * len(short) <= len(flows.pairs):
        return []
    return [_limit(port, cpu_idle_percent=100.0 * idle) for port in sorted(set(short))]


def _lost_percent(flows: PhaseFlows, lines: Mapping[str, int], port: str) -> float:
    """Return the loss percentage of frames to a port; 0 if they exceeded the port's line rate."""
    mine = np.array([dst == port for _, dst in flows.pairs], dtype=bool)
    sent, lost, offered_bps = (
        float(m.or_zero(each)[mine].sum())
        for each in (flows["sent_frames"], m.lost_frames(flows), m.offered_line_bps(flows))
    )
    return 100.0 * lost / sent if sent and offered_bps <= MORE * lines.get(port, 0) else 0.0


def _off(flows: PhaseFlows, end: str, window_s: float | None) -> Floats:
    """Return the relative error of each flow's window length at one end; 0 if unknown."""
    if not window_s:
        return np.zeros(len(flows))
    return m.or_zero(np.abs(flows[f"{end}_window_ns"] / (1e9 * window_s) - 1.0))


# --- rates above the line -------------------------------------------------------------------------

LINE_ALARM_SHARE = 0.0002  # clocks may differ by 100 ppm each way
_NO_LINE = "no line carries that; the line rate is wrong or the count is"
_HELD = (
    "frames that a host, a switch or a lab's shaper (`site.burst`) held back before the window are "
    "counted in it"
)


def windows_above_line(result: m.PhaseResult, site: Site) -> Iterator[str]:
    """Yield a sentence for each direction and cause of a measured rate above the line rate.

    Some excess is allowed: for each flow a frame or message, and over TCP the bytes that were sent
    before the window and read in it; in the direction from a port also a queue of the switch. The
    sentence names the port with the highest share of its line rate, and the number of other ports.
    """
    flows, window_s, size = result.flows, result.entry["window_s"] or 0.0, result.entry["size"]
    every = result.shares
    if flows.window_off.any():
        every = m.port_shares(flows, result.lines, every=True)
    early = m.or_zero(m.delivered_line_bps(flows) - m.offered_line_bps(flows)) * window_s / 8.0
    unit = np.full(len(flows), float(m.FRAME_OVERHEAD_L1 + np.max(size)))
    if flows.packets is None and result.entry["size_unit"] != "frame":
        unit = unit + np.maximum(early, 0.0)
    for words, end, waiting, shares in (  # waiting: bytes queued when the window opens
        ("delivered to it", "dst", 0, every.destination),
        ("delivered from it", "src", site.queue_bytes or 0, every.source),
    ):
        fast = {port: share for port, share in shares.items() if share and share > 100.0}
        if not fast:
            continue
        allowed, before = (m.sum_by_port(flows.ends(end), each) for each in (unit, early))
        above: dict[str, list[tuple[float, str]]] = {}
        for port, percent in fast.items():
            line_bytes = (result.lines.get(port) or 0) * window_s / 8.0
            excess = (percent / 100.0 - 1.0) * line_bytes
            excess -= LINE_ALARM_SHARE * line_bytes + waiting + (allowed[port] or 0.0)
            held = max(site.burst_bytes or 0, before[port] or 0.0)
            if excess > 0.0:
                known = result.entry["tester_limited"] or excess <= held
                above.setdefault(_HELD if known else _NO_LINE, []).append((percent, port))
        for cause, ports in above.items():
            percent, port = max(ports, key=lambda found: found[0])
            more = f" (and {format.of(len(ports) - 1, 'more port')})" if len(ports) > 1 else ""
            yield (
                f"{port}{more}: {percent:.2f} % of its line rate {words} in {result.label}: {cause}"
            )
