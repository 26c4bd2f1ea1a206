# SPDX-License-Identifier: BSD-3-Clause
"""The registry of measures: each is declared here, once, with its unit, its words and its formula.

Clauses, the summary's schema, the code book, the report's columns, the directions of a comparison
and the tables of doc/reference/measures.md are made of it (tests/python/measures_page.py). `flow`
or `port` names the column that a phase's figure is made of, and `reduce` says by what: a column of
the tables, or one that follows from them (analysis/measures.py, DERIVED). One declaration is all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .model import LATENCY_FIGURES, LATENCY_KINDS

PHASES = ("phase", "plan", "run")  # over these every measure can be judged
_FLOWS = ("flow", *PHASES)
_PORTS = ("port", *PHASES)
_FLOWS_AND_PORTS = ("flow", *_PORTS)

MORE, LESS, NEITHER = +1, -1, 0  # what is better
# What a measure of a tester-limited phase says of the network.
VALID = "valid"  # it is what it is: the tester's load, times, counters of hosts
AT_LEAST = "at least"  # so many, whatever the tester did: they break a limit, and never keep one
NOTHING = "not valid"

RATE, PERCENT, COUNT, NUMBER = "rate", "percent", "count", "number"  # how it is printed
FRAMES, MESSAGES, RDMA, ANY = "frames", "messages", "rdma", ""  # transports that have it
Reduce = str | Callable[[Sequence[float]], float | None]
"""min, mean, max, sum; known: the sum of what is known; or a function, where all is known."""


@dataclass(frozen=True)
class Measure:
    """One measure of a phase, and how it is judged."""

    key: str  # as clauses name it
    title: str  # of a column
    unit: str
    better: int
    format: str
    over_phases: str  # how several phases are put together: min, max or sum
    definition: str  # one sentence
    formula: str = ""  # over the flows or ports of a phase, as doc/reference/measures.md prints it
    entry: str = ""  # where the summary's entry of a phase has it; "": computed from the flows
    overs: tuple[str, ...] = PHASES
    when_limited: str = NOTHING
    plan: str = ""  # where the summary's entry of a plan has it; "": its phases' are joined
    of_repeats: bool = False  # a rate whose mean over the repeats has to be sure
    flow: str = ""  # the column of flows that it is of
    port: str = ""  # the column of ports that it is of
    reduce: Reduce = ""  # how a phase's figure is made of the column; "": it is not
    seen: str = ANY  # transports that have it


def registry(*measures: Measure) -> dict[str, Measure]:
    """Return the measures by key; none is declared twice, no two have one place in a summary."""
    found: dict[str, Measure] = {}
    entries: dict[str, str] = {}
    for measure in measures:
        other = entries.setdefault(measure.entry or measure.key, measure.key)
        if measure.key in found or other != measure.key:
            raise ValueError(measure.key)  # declared twice
        found[measure.key] = measure
    return found


def _rate(
    key: str, title: str, name: str, over_phases: str, definition: str, formula: str,
    overs: tuple[str, ...] = PHASES, unit: str = "Mbit/s", format: str = RATE,
    flow: str = "throughput", reduce: Reduce = "",
) -> Measure:  # fmt: skip
    entry = f"throughput.{name}"
    return Measure(
        key, title, unit, MORE, format, over_phases, definition, formula, entry, overs,
        plan=entry, of_repeats=True, flow=flow, reduce=reduce,
    )  # fmt: skip


def _count(
    key: str, title: str, definition: str, formula: str, overs: tuple[str, ...] = PHASES,
    unit: str = "frames", better: int = LESS, when_limited: str = AT_LEAST, flow: str = "",
    port: str = "", reduce: Reduce = "sum", seen: str = FRAMES,
) -> Measure:  # fmt: skip
    return Measure(
        key, title, unit, better, COUNT, "sum", definition, formula, key, overs, when_limited,
        flow=flow, port=port, reduce=reduce, seen=seen,
    )  # fmt: skip


def _of_run(
    key: str, title: str, unit: str, over_phases: str, definition: str, formula: str,
    better: int = LESS, format: str = NUMBER, plan: str = "",
) -> Measure:  # fmt: skip
    return Measure(
        key, title, unit, better, format, over_phases, definition, formula, key,
        when_limited=VALID, plan=plan,
    )  # fmt: skip


_THROUGHPUT = (
    _rate("throughput", "mean flow", "mean", "min",
          "Payload rate of a flow in the window, mean over flows",
          "mean of the flows that were observed, Mbit/s", _FLOWS, reduce="mean"),
    _rate("throughput_min", "min flow", "min", "min", "Payload rate of the slowest flow",
          "lowest of the flows that were observed, Mbit/s", reduce="min"),
    _rate("throughput_max", "max flow", "max", "max", "Payload rate of the fastest flow",
          "highest of the flows that were observed, Mbit/s", reduce="max"),
    Measure("throughput_min_interval", "lowest interval", "Mbit/s", MORE, RATE, "min",
            "Lowest payload rate of a flow in an interval, Mbit/s",
            "lowest over flows and intervals of: payload x 8 / its length, Mbit/s; "
            "`slowest` names flow and time. As a clause's measure: `throughput_min_interval`",
            "intervals.min"),
    _rate("throughput_total", "all flows", "total", "min",
          "Payload rate, sum over flows; null when any flow is unknown",
          "their sum; null when one was not observed", flow="every_throughput", reduce="sum"),
    _rate("percent_of_line", "mean port", "percent_of_line", "min",
          "Mean over receiving ports of layer-1 bits delivered in percent of the port's line rate",
          "mean over *receiving ports* of: layer-1 bits delivered to the port in the window / "
          "(window x the port's line rate)", _PORTS, "%", PERCENT, flow=""),
    _rate("min_percent_of_line", "min port", "min_percent_of_line", "min",
          "Percent of line of the worst receiving port", "the lowest of these ports",
          unit="%", format=PERCENT, flow=""),
    Measure("uniformity_percent", "uniformity", "%", MORE, PERCENT, "min",
            "Percent of line of the worst port by that of the median port of the phase",
            overs=_PORTS),
)  # fmt: skip

_LOAD = (
    _of_run("offered_load", "offered load", "%", "min",
            "What sources really sent in the window (RFC 2285, 3.5.2), percent of line rate, "
            "mean over generating ports",
            "mean over generating ports of: layer-1 bits sent in the window / (window x the "
            "port's line rate)", MORE, PERCENT),
)  # fmt: skip

_FRAMES = (
    _count("offered_frames", "offered frames", "Frames that sources really sent, whole trial",
           "sent by sources and forwarders", _FLOWS, better=MORE, when_limited=VALID,
           flow="sent_frames"),
    _count("delivered_frames", "delivered frames",
           "Distinct frames that destinations verified, whole trial",
           "verified by destinations; each sequence number counts once", _FLOWS, better=MORE,
           when_limited=NOTHING, flow="received_frames"),
    _count("lost_frames", "lost frames",
           "Offered, neither delivered nor corrupted, after the drain",
           "sum over flows of offered - delivered - corrupted, after the drain. Null in a phase "
           "that was stopped in the middle", _FLOWS_AND_PORTS, flow="lost_frames"),
    Measure("loss_percent", "lost", "%", LESS, NUMBER, "max",
            "lost_frames of 100 offered_frames (RFC 2544, 26.3)", "lost of 100 offered",
            "loss_percent", _FLOWS_AND_PORTS, AT_LEAST, flow="loss_percent"),
    _count("duplicated_frames", "duplicated", "Frames that came once more (RFC 5560)",
           "came once more, within the last 1,024 sequence numbers", _FLOWS, flow="duplicated"),
    _count("reordered_frames", "out of order", "Frames behind a later one (RFC 4737, 3.3)",
           "behind a later one (RFC 4737, 3.3: type-P-reordered), within the last 1,024", _FLOWS,
           flow="reordered"),
    _count("late_frames", "late",
           "Frames more than 1,024 numbers behind: too late to tell duplicated from reordered",
           "more than 1,024 behind: neither of the two can be judged. Not delivered: they are in "
           "`lost_frames` too", _FLOWS, flow="late"),
    _count("corrupted_frames", "corrupted", "Frames with a bad checksum or content",
           "bad checksum or content", _FLOWS, flow="corrupted"),
    _count("misdelivered_frames", "misdelivered",
           "Frames of this trial that came to another rank: flooding",
           "this trial's frames for another rank: the switch flooded, or sent them out by a wrong "
           "port", port="misdelivered"),
    _count("host_dropped_frames", "dropped in hosts",
           "Dropped in a host (NIC, queueing discipline, socket), both sides",
           "dropped in a host: receive ring, queueing discipline, driver; both ends. A known drop "
           "counts although others are unknown; 0 is said only when all are known",
           when_limited=VALID, port="host_drops", reduce="known", seen=ANY),
    _count("pause_frames", "PAUSE frames",
           "PAUSE and PFC frames received (IEEE 802.3, 31B; 802.1Q, 36)",
           "PAUSE and PFC received by our ports: the network's doing", when_limited=VALID,
           port="pause", reduce="known", seen=ANY),
    _count("retransmitted_segments", "retransmitted segments",
           "Retransmitted TCP segments; null for frames", "TCP_INFO of all streams", _FLOWS,
           "segments", when_limited=VALID, flow="retransmitted_segments", seen=MESSAGES),
    _count("retransmitted_packets", "retransmitted packets",
           "Retransmitted RDMA packets, by the devices' counters; null where they have none",
           "verbs: differences of the devices' own counters over the phase, sum over the ports "
           "(doc/how-to/verbs.md); null where no device has one",
           unit="packets", when_limited=VALID, port="retransmitted", reduce="known", seen=RDMA),
    _count("lost_messages", "lost messages",
           "verbs: messages offered and not delivered, after the drain; null for other transports",
           "verbs: sum over flows of messages offered - delivered, after the drain; 0 with service "
           "`rc`, or the flow has failed", unit="messages", when_limited=NOTHING,
           flow="lost_messages", seen=RDMA),
)  # fmt: skip

_TIME = (
    _of_run("start_skew_us", "start skew", "us", "max",
            "Latest start less earliest, over all ranks",
            "latest less earliest real start of all ranks of the run, on the run's clock; null "
            "without a common clock"),
    _of_run("stop_skew_us", "stop skew", "us", "max", "Latest stop less earliest, over all ranks",
            "latest less earliest real stop of all ranks of the run, on the run's clock; null "
            "without a common clock"),
    _of_run("elapsed_s", "time", "s", "sum", "From the agreed start to the end of the phase",
            "max over nodes of: end of the phase - its agreed start", plan="elapsed_s"),
    _of_run("cpu_s_per_gb", "CPU", "s/GB", "max",
            "cpu_s for each 10^9 payload bytes delivered in this network",
            "`cpu_s` / (payload delivered in this network / 10^9 bytes)"),
)  # fmt: skip

# round_trip_p99_us, one_way_max_us, ipdv_p99_9_us ... by kind and figure (doc/reference/latency.md)
LATENCY_MEASURES = {
    f"{kind}_{name}_us": (kind, name)
    for kind in LATENCY_KINDS
    for name in LATENCY_FIGURES
    if (kind, name) != ("ipdv", "pdv")
}

_LATENCY = (
    *(
        Measure(
            key, f"{kind} {name}".replace("_", " "), "us", LESS, NUMBER, "max",
            f"{name} of the phase's times of kind {kind}", entry=f"latency.{kind}.{name}",
            overs=_FLOWS, flow=key,
        )
        for key, (kind, name) in LATENCY_MEASURES.items()
    ),
    Measure("lost_probes", "lost probes", "probes", LESS, COUNT, "sum",
            "Probes or messages that never came back; null: none were to",
            entry="latency.round_trip.lost", overs=_FLOWS, flow="lost_probes"),
)  # fmt: skip


def _jain(values: Sequence[float]) -> float | None:
    most = max(values, default=0.0)
    if not most:
        return None
    shares = [value / most for value in values]  # of equal flows exactly 1
    squares = sum(share * share for share in shares)
    return min(1.0, round(sum(shares) ** 2 / (len(shares) * squares), 12))


_OF_ALL_FLOWS = (
    Measure("fairness", "fairness", "of 1", MORE, NUMBER, "min",
            "Jain's index of the flows' payload rates, from 1 / flows to 1: all are equal "
            "(Jain, Chiu, Hawe 1984)", entry="reduced.fairness", flow="throughput", reduce=_jain),
)  # fmt: skip

MEASURES = registry(*_THROUGHPUT, *_LOAD, *_FRAMES, *_TIME, *_LATENCY, *_OF_ALL_FLOWS)
REDUCED = _OF_ALL_FLOWS  # with a key of its own in each phase's entry
