# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the report, made of the summary alone: which columns each has, and of what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...analysis.loss_location import NO_LOSS, in_network
from ...base import format
from ...base.measures import COUNT, MEASURES, PERCENT
from . import figure, step_tables
from .definitions import definition
from .table import RATE, Column, Entry, Table, at, make

Summary = Mapping[str, Any]


def _pattern(entry: Entry) -> str:
    return format.pattern(entry)


def _phase(entry: Entry) -> str:
    return str(entry["phase_name"] or entry["phase"])


def _load(entry: Entry) -> float | None:
    load: float | None = entry.get("intended_load")
    return load


_SIZE = "Of frames with FCS (RFC 2544), or of messages"

# What a row is of. Folded: said once above the table where all rows have the same.
_SETTING = (
    Column("pattern", "pattern", "text", fold=True, value=_pattern),
    Column("transport", "transport", "text", fold=True),
    Column("network", "network", "text", fold=True),
    Column("ranks", "ranks", "count", fold=True),
    Column("size", "size", "text", fold=True, value=format.size, about=_SIZE),
    Column("load asked", "intended_load", "percent", "% of line", fold=True, value=_load),
    Column("repeat", "repeat", "count", fold=True),
)
_PHASE = Column("phase", "phase_name", "text", value=_phase)
_TRIAL = Column("trial", "trial", "count")
_STATE = Column("state", "state", "text", fold=True)


def _measured(key: str, **options: Any) -> Column:
    """The column of a measure of base.measures; `options` as of any other column."""
    measure = MEASURES[key]
    kind = measure.format if measure.format in (PERCENT, COUNT) else "number"
    unit = "" if kind == COUNT else measure.unit.replace("us", "µs")
    return Column(measure.title, measure.entry, kind, unit, **options)


_THROUGHPUT = (
    _measured("throughput_min"),
    _measured("throughput"),
    _measured("throughput_max"),
    _measured("throughput_total"),
    _measured("percent_of_line"),
    _measured("min_percent_of_line"),
    Column("slowest flow", "slowest", "text"),
)
_MESSAGE = Column("message", "message_bytes", "count", "B")


def _frames(title: str, key: str, fold: bool = True, seldom: bool = False) -> Column:
    return Column(title, key, "count", fold=fold, seldom=seldom)


def _per_gb(entry: Entry) -> float | None:
    """A plan's CPU seconds by 10^9 bytes of payload."""
    cpu, delivered = entry.get("cpu_s"), entry.get("delivered_bytes")
    return cpu * 1e9 / delivered if cpu is not None and delivered else None


def plans(summary: Summary) -> Table | None:
    """Whole plans: the first table that a reader looks at."""
    columns = (
        *_SETTING,
        _frames("phases", "phases"),
        _measured("elapsed_s", about="The whole plan, barriers and drains included"),
        *_THROUGHPUT,
        _measured("lost_frames"),
        _measured("host_dropped_frames", fold=True),
        _TRIAL,
    )
    about = (
        "One row for each pattern on each transport. Rates are payload, one way, as the receivers "
        "verified them, of one flow."
    )
    return make("plans", "Results by plan", about, columns, summary.get("plans", []))


def phases(summary: Summary) -> Table | None:
    """Every phase of every plan."""
    columns = (
        *_SETTING,
        _PHASE,
        Column("offered", "offered_load", "percent", "% of line"),
        *_THROUGHPUT,
        _measured("lost_frames"),
        _STATE,
        _TRIAL,
    )
    about = "Flows of one phase run at the same time, and have one window."
    return make("phases", "Results by phase", about, columns, summary.get("trials", []))


def losses(summary: Summary) -> Table | None:
    """What did not arrive as it was sent, and where it went missing."""
    columns = (
        *_SETTING,
        _PHASE,
        _measured("offered_frames"),
        _measured("delivered_frames"),
        _measured("lost_frames"),
        _measured("loss_percent"),
        Column("lost, worst flow", "worst_loss_percent", unit="%"),
        _frames("lost in sender's host", "loss_location.sender_host"),
        Column(
            "lost in network",
            "loss_location.network",
            "count",
            fold=True,
            value=in_network,
            about=f"{definition('loss_location.network')}. {NO_LOSS}",
        ),
        _frames("lost in receiver's host", "loss_location.receiver_host"),
        _frames("damaged on wires", "loss_location.wire_errors"),
        _measured("duplicated_frames", fold=True),
        _measured("reordered_frames", fold=True),
        _measured("late_frames", fold=True),
        _frames("forged", "forged_frames", seldom=True),
        _measured("corrupted_frames", fold=True),
        _frames("corrupted bytes", "corrupted_bytes", seldom=True),
        _measured("misdelivered_frames", fold=True),
        _frames("unexpected", "unexpected_frames"),
        _measured("pause_frames", fold=True),
        _measured("retransmitted_segments", seldom=True, fold=True),
        _measured("lost_messages", seldom=True, fold=True),
        _measured("retransmitted_packets", seldom=True, fold=True),
        _frames("ECN-marked packets", "ecn_marked_packets", seldom=True),
        _frames("congestion notices", "cnp_sent", seldom=True),
        _STATE,
    )
    about = (
        "TCP and reliable RDMA repair loss themselves: what they sent again says what was lost, or "
        "believed to be."
    )
    return make("losses", "Losses", about, columns, summary.get("trials", []))


def order(summary: Summary) -> Table | None:
    """How frames were out of order, of phases in which some were."""
    columns = (
        *_SETTING,
        _PHASE,
        Column("out of order", "reordering.reordered_percent", unit="%"),
        Column("3-reordered", "reordering.three_reordered_percent", unit="%"),
        Column("mean extent", "reordering.extent_mean", unit="frames"),
        Column("greatest extent", "reordering.extent_max", "count", "frames"),
        Column("worst flow", "reordering.worst", "text"),
    )
    found = [entry for entry in summary.get("trials", []) if at(entry, "reordering.extent_max")]
    about = "Phases in which frames came behind later ones (RFC 4737)."
    return make("order", "Order", about, columns, found)


def skew(summary: Summary) -> Table | None:
    """How well all ranks began and ended together."""
    columns = (
        *_SETTING,
        _PHASE,
        _measured("start_skew_us"),
        _measured("stop_skew_us"),
        Column("either within twice", "skew_bound_us", unit="µs", fold=True),
        Column("window", "window_s", unit="s", fold=True),
        Column("phase took", "elapsed_s", unit="s"),
        Column("drained", "drained", "text", fold=True),
        _TRIAL,
    )
    about = "How far apart the first and the last rank began, and ended, in each phase."
    return make("skew", "Start and stop skew", about, columns, summary.get("trials", []))


def _interval_entries(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("trials", []):
        for low in at(entry, "intervals.lowest") or []:
            yield {**entry, "low": low, "slowest": low}


def intervals(summary: Summary) -> Table | None:
    """How low flows fell while their phase ran."""
    columns = (
        *_SETTING,
        _PHASE,
        Column("flow", "slowest", "text", about="The flow that fell"),
        Column("fell to", "low.mbps", unit=RATE, defined="intervals.lowest.mbps"),
        Column("of its mean", "low.percent_of_mean", "percent", "%",
               defined="intervals.lowest.percent_of_mean"),
        Column("from", "low.from_s", unit="s", defined="intervals.lowest.from_s",
               value=lambda entry: round(entry["low"]["from_s"], 3)),
        Column("to", "low.to_s", unit="s", defined="intervals.lowest.to_s",
               value=lambda entry: round(entry["low"]["to_s"], 3)),
    )  # fmt: skip
    about = "Of each phase the five flows that fell the furthest below their own mean, and when."
    entries = _interval_entries(summary)
    return make("intervals", "Lowest interval results", about, columns, entries)


_KINDS = {
    "one_way": "one way",
    "ipdv": "delay variation (IPDV)",
    "round_trip": "round trip",
    "pingpong": "message, there and back",
}
_PERCENTILES = tuple(
    Column(title, f"times.{key}", unit="µs", defined=f"loopback_baselines.{key}")
    for title, key in (
        ("least", "min"), ("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"),
        ("p99.9", "p99_9"), ("p99.99", "p99_99"), ("greatest", "max"), ("variation", "pdv"),
        ("clocks within", "bound"),
    )
)  # fmt: skip


def _timed(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("trials", []):
        for kind, times in (entry.get("latency") or {}).items():
            if times:
                yield {**entry, "kind": _KINDS.get(kind, kind), "times": times}


def latencies(summary: Summary) -> Table | None:
    """Times under load, by phase and kind."""
    columns = (
        *_SETTING,
        _PHASE,
        Column("kind", "kind", "text", fold=True, about="What is timed: doc/latency.md"),
        Column("measured", "times.count", "count", about="Times measured"),
        Column("never came", "times.lost", "count", fold=True,
               about="Probes or messages that never came back"),
        *_PERCENTILES,
        Column("flow with the greatest p99", "times.worst", "text", about="Source and destination"),
    )  # fmt: skip
    about = "Measured beside the load. The way of each is in doc/latency.md."
    return make("times", "Times", about, columns, _timed(summary))


def floors(summary: Summary) -> Table | None:
    """The software's own path."""
    columns = (
        Column("node", "node", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("kind", "kind", "text", fold=True, about="What is timed: doc/latency.md"),
        Column("measured", "times.count", "count", about="Times measured"),
        *_PERCENTILES,
    )
    about = "The software's own path, measured on a loopback; not subtracted from anything."
    entries = [
        {**floor, "kind": _KINDS.get(floor["kind"], floor["kind"]), "times": floor}
        for floor in summary.get("loopback_baselines", [])
    ]
    return make("loopback_baselines", "Floor of times", about, columns, entries)


def cpu(summary: Summary) -> Table | None:
    """What moving the data cost the hosts."""
    columns = (
        *_SETTING,
        Column("payload delivered", "delivered_bytes", "count", "B"),
        Column("CPU", "cpu_s", unit="s"),
        Column("CPU of nodes' processes", "cpu_process_s", unit="s"),
        _measured("cpu_s_per_gb", value=_per_gb),
        Column("polling", "polling", "text", fold=True),
        _TRIAL,
    )
    about = "Of all machines together, kernel and interrupts included."
    return make("cpu", "CPU cost", about, columns, summary.get("plans", []))


def _compared(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("comparisons", []):
        for one in entry["transports"]:
            yield {**entry, **one, "baseline": entry["baseline"]}


def transports(summary: Summary) -> Table | None:
    """The same matrix over several transports."""

    def compared(title: str, key: str, unit: str = "") -> Column:
        return Column(title, key, unit=unit, defined=f"comparisons.{key}")

    columns = (
        Column("pattern", "pattern", "text", fold=True, value=_pattern),
        Column("network", "network", "text", fold=True),
        Column("ranks", "ranks", "count", fold=True),
        Column("transport", "transport", "text"),
        Column("size", "size", "text", value=format.size, about=_SIZE),
        Column("load asked", "intended_load", "percent", "% of line", fold=True),
        compared("mean rate", "throughput.mean", RATE),
        compared("slowest repetition", "throughput.min", RATE),
        compared("fastest repetition", "throughput.max", RATE),
        compared("rate by baseline's", "ratio.throughput"),
        compared("CPU by payload", "cpu_s_per_gb", MEASURES["cpu_s_per_gb"].unit),
        compared("CPU by baseline's", "ratio.cpu_s_per_gb"),
        Column("polling", "polling", "text", fold=True),
        Column("baseline", "baseline", "text", fold=True),
        Column("repeats", "repeats", "count", fold=True),
    )
    about = "The same matrix over each transport. Above 1: faster than the baseline, or dearer."
    return make("transports", "Transports side by side", about, columns, _compared(summary))


def ports(summary: Summary) -> Table | None:
    """Each port as source and as destination."""

    def side(words: str, key: str) -> tuple[Column, ...]:
        return (
            Column(f"{words}, median", f"{key}.median_percent_of_line", "percent", "% of line"),
            Column(f"{words}, least", f"{key}.min_percent_of_line", "percent", "% of line"),
            Column(f"{words}, by median port's", f"{key}.relative_to_median"),
            Column(f"{words}, lost", f"{key}.lost_frames", "count"),
        )

    columns = (
        Column("port", "port", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("network", "network", "text", fold=True),
        Column("switch", "switch", "text", fold=True),
        Column("switch port", "switch_port", "text"),
        *side("sent", "as_source"),
        *side("received", "as_destination"),
        Column("below median", "below_median", "text", fold=True),
        Column("link downs", "link_downs", "count", fold=True),
        Column("slowest in", "slowest_phases", "count", "phases",
               value=lambda entry: len(entry.get("slowest_phases") or [])),
    )  # fmt: skip
    about = "Over all phases, so that a bad port or cable stands out whatever the pattern."
    return make("ports", "Ports", about, columns, summary.get("ports", []))


def tuning(summary: Summary) -> Table | None:
    """How each port was driven."""
    columns = (
        Column("port", "port", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("driver", "driver", "text", fold=True),
        Column("NUMA node", "numa", "count", fold=True),
        Column("queues", "queues", "count", fold=True),
        Column("cores", "cores", "text"),
        Column("offloads", "offloads", "text", fold=True),
        Column("hot paths", "variants", "text", fold=True),
        Column("RDMA device", "rdma.rdma", "text", seldom=True),
        Column(
            "RDMA link",
            "rdma.link_layer",
            "text",
            fold=True,
            seldom=True,
            about="The link layer of the device's port: InfiniBand or Ethernet",
        ),
        Column(
            "RDMA MTU",
            "rdma.mtu",
            "count",
            "B",
            fold=True,
            seldom=True,
            about="Active path MTU of the device's port: payload of a packet at the most",
        ),
    )
    about = "What each port was sent and received through, as the nodes found it."
    return make("tuning", "Ports and their tuning", about, columns, summary.get("ports", []))


def nodes(summary: Summary) -> Table | None:
    """Each node and its clock."""
    clocks = {clock["node"]: clock for clock in summary.get("clocks", [])}
    found = at(summary, "run.nodes") or []
    entries = [{**node, "how": clocks.get(node["node"], {})} for node in found]
    columns = (
        Column("node", "node", "text"),
        Column("host", "host", "text", fold=True, about="The machine that the node runs on"),
        Column("version", "version", "text", fold=True),
        Column("CPUs", "cpus", "count", fold=True, about="That the node's machine has online"),
        Column("workers", "workers", "count", fold=True, about="Threads that send and receive"),
        Column(
            "between bursts",
            "worker",
            "text",
            fold=True,
            about="What workers do: poll, or sleep until there is something to do",
        ),
        Column("cores", "cores", "text"),
        Column("clock", "how.clock", "text", fold=True, defined="clocks.clock"),
        Column("clock within", "how.bound_us", unit="µs", defined="clocks.bound_us"),
        Column("TSC drift", "tsc_drift_ppm", unit="ppm", defined="run.nodes.tsc_drift_ppm"),
    )
    return make("nodes", "Nodes", "One process of the engine each.", columns, entries)


def repeats(summary: Summary) -> Table | None:
    """How sure means over repeats are."""
    plan_of = {(p["trial"], p["network"]): p for p in summary.get("plans", [])}
    entries = [
        {**plan_of[entry["trials"][0], entry["network"]], "statistics": entry}
        for entry in summary.get("statistics", [])
        if (entry["trials"][0], entry["network"]) in plan_of
    ]
    columns = (
        *(column for column in _SETTING if column.key != "repeat"),
        Column("repeats", "statistics.values", "count",
               value=lambda entry: len(entry["statistics"]["values"])),
        Column("mean", "statistics.mean", unit=RATE),
        Column("from", "statistics.ci_low", unit=RATE),
        Column("to", "statistics.ci_high", unit=RATE),
        Column("width", "statistics.ci_width_percent", "percent", "% of mean"),
        Column(
            "width asked", "statistics.target_ci_width_percent", "percent", "% of mean", fold=True
        ),
        Column("confidence", "statistics.confidence_percent", "percent", "%", fold=True),
        Column("conclusive", "statistics.verdict", "text", fold=True),
        Column("depend on each other", "statistics.dependent", "text", fold=True),
    )  # fmt: skip
    about = "The mean over repeats and the interval in which the true mean lies."
    return make("repeats", "Repeats", about, columns, entries)


def _points(summary: Summary) -> Iterator[Entry]:
    for curve in at(summary, "messages.curves") or []:
        for point in curve["points"]:
            yield {**curve, **point, "worst": point["slowest"]}


def messages(summary: Summary) -> Table | None:
    """Latency and bandwidth against size."""
    columns = (
        Column("pattern", "pattern", "text", fold=True, value=_pattern),
        Column("transport", "transport", "text", fold=True),
        Column("network", "network", "text", fold=True),
        Column("ranks", "ranks", "count", fold=True),
        Column("size", "size", "count", "B", about="Bytes of a message"),
        Column("round trips", "round_trips", "count", about="Measured, of all flows and repeats"),
        Column("lost", "lost", "count", fold=True, about="Messages that did not come back"),
        *(
            Column(title, f"latency_us.{key}", unit="µs", about=f"Half the round trip: {words}")
            for title, key, words in (
                ("least", "min", "the least"), ("mean", "mean", "the mean"),
                ("p50", "p50", "the median"), ("p99", "p99", "99 % are no greater"),
                ("greatest", "max", "the greatest"),
            )
        ),
        Column("bandwidth", "bandwidth_mbps", unit=RATE,
               about="The size by half the mean round trip"),
        Column("slowest flow", "worst", "text", about="The flow with the largest mean"),
    )  # fmt: skip
    about = "Messages there and back (doc/messages.md)."
    return make("messages", "Messages there and back", about, columns, _points(summary))


def outliers(summary: Summary) -> Table | None:
    """Single times far from their fit."""
    entries = [
        {**fit, **worst, "trial": fit["trial"]}
        for fit in at(summary, "messages.scatter") or []
        for worst in fit["worst"]
    ]
    columns = (
        Column("pattern", "pattern", "text", fold=True, value=_pattern),
        Column("transport", "transport", "text", fold=True),
        Column("size", "size", "count", "B", about="Bytes of the message"),
        Column("flow", "src", "text", value=lambda entry: format.flow(entry),
               about="Source and destination"),
        Column("time", "time_us", unit="µs", about="Half the round trip of this message"),
        Column("by the fit's", "ratio_to_fit", about="The time by what the fit says of its size"),
        Column("begun", "started_s", unit="s", about="When it was sent, after the trial's start"),
        _TRIAL,
    )  # fmt: skip
    about = "Single messages beyond six scales and twice the fit: the worst twenty of each trial."
    return make("outliers", "Outliers of single times", about, columns, entries)


def findings(summary: Summary) -> Table | None:
    """What went wrong with frames, by name."""
    columns = (
        Column("kind", "kind", "text", about="Kinds: doc/measures.md, Findings"),
        Column("found", "sentence", "text", about="What was found, for a person"),
        Column("frames", "count", "count", about="Frames that it explains"),
        Column("port", "port", "text", seldom=True),
        Column("groups", "groups", "text", seldom=True),
        Column("transport", "transport", "text", fold=True),
        Column("trial", "trial", "count"),
        Column("phase", "phase", "count", about="From 0; empty: over the whole run"),
    )
    about = "Each rests on counts alone, and is made only where they allow no other reading."
    return make("findings", "Findings", about, columns, summary.get("findings", []))


def clauses(summary: Summary) -> Table | None:
    """What was expected, and what came of it."""
    columns = (
        Column("clause", "id", "text"),
        Column("verdict", "verdict", "verdict", about="Accepted: holds for every value. Refused: "
               "fails for one. Inconclusive: a host was in doubt, or a value is missing"),
        Column("measure", "measure", "text", about="doc/measures.md, Clauses"),
        Column("required", "require", "text", about="As stated"),
        Column("worst value", "value", defined="expectations.value"),
        Column("unit", "unit", "text", about="Of worst value and margin"),
        Column("margin", "margin", defined="expectations.margin"),
        Column("margin of limit", "margin_percent", "percent", "%", seldom=True),
        Column("of", "of", "text", defined="expectations.of", seldom=True),
        Column("because", "reason", "text", defined="expectations.reason", seldom=True),
        Column("wording", "clause", "text", seldom=True),
        Column("source", "source", "text", seldom=True),
        Column("over", "over", "text", about="What each value is of"),
        Column("looked at", "judged", "count"),
        Column("failed", "failed", "count"),
        Column("not observed", "unobserved", "count"),
        Column("trials", "trials", "count", defined="expectations.trials"),
        Column("trials measured", "trials_measured", "count"),
    )  # fmt: skip
    about = (
        "Each clause as stated, the worst value that was seen, and how far it is from the limit."
    )
    return make("clauses", "Clauses", about, columns, summary.get("expectations", []))


def _failed(summary: Summary) -> Iterator[Entry]:
    for clause in summary.get("expectations", []):
        for failure in clause.get("failures", []):
            yield {**clause, **failure}


def failures(summary: Summary) -> Table | None:
    """For which values a clause does not hold."""
    columns = (
        Column("clause", "id", "text", value=lambda entry: entry["id"] or entry["clause"]),
        Column("required", "require", "text", about="As stated"),
        Column("value", "value", about="As seen"),
        Column("unit", "unit", "text", about="Of value and margin"),
        Column("margin", "margin", defined="expectations.margin"),
        Column("of", "of", "text", about="What the value is of"),
        Column("trial", "at.trial", "count", defined="trial"),
        Column("phase", "at.phase", "count", defined="phase"),
    )
    about = "Values for which a clause does not hold, the worst first, at most 20 of each clause."
    return make("failures", "Where clauses fail", about, columns, _failed(summary))


def switch_counters(summary: Summary) -> Table | None:
    """The switch's own view."""
    found = at(summary, "switch_counters.differences") or {}
    entries = [{"counter": name, "difference": count} for name, count in found.items()]
    columns = (
        Column("counter", "counter", "text", about="As the switch's own command names it"),
        Column("difference", "difference", "count", about="After the last trial less before"),
    )
    about = "What the switch itself counted; only what differs is here."
    return make("switch-counters", "The switch's own counters", about, columns, entries)


def imported(summary: Summary) -> Table | None:
    """Figures of other programs (`switchbench import`)."""
    columns = (
        Column("program", "tool", "text", fold=True, about="Which program measured"),
        Column("version", "version", "text", fold=True, about="As its output says"),
        Column("benchmark", "benchmark", "text", about="In the program's words"),
        Column("ranks", "ranks", "count", fold=True, about="Processes, or hosts"),
        Column("message", "size", "count", "B", about="By the program's count"),
        Column("figure", "name", "text", about="The figure's own name"),
        Column("value", "value", about="As it was printed, in its own unit"),
        Column("unit", "unit", "text", about="Of the value"),
        Column("what it is", "definition", "text", about="What the program counts"),
        Column(
            "as ours",
            "comparable.value",
            about="By a definition that programs share (doc/compare.md)",
        ),
        Column("our measure", "comparable.measure", "text", about="Which of these definitions"),
        Column("our unit", "comparable.unit", "text", about="Of the figure as ours"),
        Column("conversion", "comparable.conversion", "text", about="From the one to the other"),
    )
    about = "What other programs printed, and the same by definitions that several of them share."
    return make("imported", "Other programs", about, columns, summary.get("imported") or [])


Maker = Callable[[Summary], Table | None]

# Where each stands in the page: its own sections, and those of the figures.
VERDICT = "Verdict"
SET_UP = "Set-up"
FINDINGS = "Findings and alarms"
RESULTS = "Results"
PORTS = "Ports"
BY_SECTION: dict[str, tuple[Maker, ...]] = {
    VERDICT: (clauses, failures),
    SET_UP: (nodes, tuning),
    FINDINGS: (findings,),
    RESULTS: (plans, phases, repeats, imported),
    figure.COURSE: (intervals,),
    figure.MESSAGES: (messages, outliers),
    figure.STEPS: (
        step_tables.functions,
        step_tables.hpcc,
        step_tables.rings,
        step_tables.kernels,
        step_tables.rankings,
    ),
    figure.LATENCY: (latencies, floors),
    figure.LOSS: (losses, order, switch_counters),
    figure.SKEW: (skew,),
    figure.CPU: (cpu, transports),
    PORTS: (ports,),
}
