# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what the network did: plans, phases, losses, times, CPU, ports, nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...analysis.loss_location import NO_LOSS, in_network
from ...base import format
from ...base.measures import MEASURES, REDUCED
from ...records.document.schema import at
from .. import first_screen
from ..printer import (
    PAGE,
    RATE,
    TERMINAL,
    TOTAL,
    Column,
    Entry,
    Spec,
    Summary,
    count,
    measured,
    text,
)

SIZE = "Of frames with FCS (RFC 2544), or of messages"


def load_words(entry: Entry) -> str:
    """Return what was asked for, in percent of line."""
    return "" if entry["intended_load"] is None else f", {entry['intended_load']:g} %"


def plan_title(plan: Entry) -> str:
    """`pairs neighbours, tcp, 64 KiB messages, 50 %`."""
    return f"{format.pattern(plan)}, {plan['transport']}, {format.size(plan)}{load_words(plan)}"


def phase_name(entry: Entry) -> str:
    """As the plan calls it; else its number."""
    return str(entry["phase_name"] or entry["phase"])


PLAN = text("plan", "pattern", value=plan_title, output=TERMINAL, about="What a row is of")
PATTERN = text("pattern", "pattern", value=format.pattern, fold=True)
TRANSPORT = text("transport", "transport", fold=True)
NETWORK = text("network", "network", fold=True, drop=9)
RANKS = count("ranks", "ranks", fold=True, drop=8)
PHASE = text("phase", "phase_name", value=phase_name)
TRIAL = count("trial", "trial", output=PAGE)
STATE = text("state", "state", fold=True, output=PAGE)
LOAD = Column("intended load", "intended_load", "percent", "% of line", fold=True, output=PAGE,
              value=lambda entry: entry.get("intended_load"))  # fmt: skip
LIMITED = Column(
    "T", "tester_limited", "mark", seldom=True,
    about="T: tester-limited, no figure of the network",
    value=lambda entry: "T" if entry.get("tester_limited") else None,
)  # fmt: skip
# A path of messages and steps; the terminal has it in headings.
PATH = (TRANSPORT, NETWORK, RANKS)
HEADED = tuple(replace(column, output=PAGE) for column in (PATTERN, *PATH))

# Said once above the table where all rows have the same; the terminal has it in headings.
SETTING = (
    text("pattern", "pattern", value=format.pattern, fold=True, output=PAGE),
    text("transport", "transport", fold=True, output=PAGE),
    text("network", "network", fold=True, output=PAGE),
    RANKS,
    text("size", "size", value=format.size, about=SIZE, fold=True, output=PAGE),
    LOAD,
    count("repeat", "repeat", fold=True, silent=True, output=PAGE),
)

TITLED = tuple(replace(column, output=PAGE) for column in SETTING)  # the terminal: in titles

RATES = (
    measured("throughput_min", drop=13),
    measured("throughput", drop=8),
    measured("throughput_max", drop=6),
    measured("throughput_total", unit=TOTAL, drop=11),
)
SHARES = (
    measured("percent_of_line", unit="% line", drop=7),
    measured("min_percent_of_line", unit="% line", drop=12),
)
SLOWEST = text("slowest flow", "slowest")


def _ppm(entry: Entry) -> float | None:
    lost, offered = entry.get("lost_frames"), entry.get("offered_frames")
    return None if lost is None or not offered else 1e6 * lost / offered


LOSS_PPM = Column("loss", "loss_ppm", unit="ppm", fold=True, silent=True, seldom=True, drop=10,
                  value=_ppm, about="Lost frames by those offered")  # fmt: skip


# --- plans and phases: rates, losses, order, repeats, transports side by side ---------------------


def _plans(summary: Summary) -> Iterator[Entry]:
    limited = {_place(e) for e in summary.get("trials") or [] if e["tester_limited"]}
    names = {
        (e["trial"], e["repeat"], e["network"], e["phase"]): str(e["phase_name"] or e["phase"])
        for e in summary.get("trials") or []
    }
    for plan in summary.get("plans") or []:
        key = (plan["trial"], plan["repeat"], plan["network"], plan.get("worst_phase"))
        in_phase = names.get(key) if plan["phases"] > 1 else None
        yield {**plan, "in_phase": in_phase, "tester_limited": _place(plan) in limited}


def _place(entry: Entry) -> tuple[int, str]:
    return entry["trial"], entry["network"]


plans = Spec(
    "plans",
    "Results by plan",
    "One row for each pattern on each transport. Rates are payload, one way, as the receivers "
    "verified them, of one flow.",
    (
        PLAN,
        *SETTING,
        LIMITED,
        count("phases", "phases", fold=True, output=PAGE),
        measured("elapsed_s", about="All phases, barriers and drains included"),
        measured("throughput_min"),
        *(replace(column, output=PAGE) for column in (*RATES[1:], *SHARES, SLOWEST)),
        text("in phase", "in_phase", about="The phase of the slowest flow", seldom=True),
        text("by phase", "spark", output=TERMINAL, drop=5, seldom=True,
             about="% of line of the port that got the lowest share, a bar for each phase"),
        measured("lost_frames", output=PAGE),
        replace(LOSS_PPM, output=PAGE),
        measured("host_dropped_frames", fold=True, output=PAGE),
        TRIAL,
    ),
    _plans,
)  # fmt: skip

phases = Spec(
    "phases",
    "Results by phase",
    "Flows of one phase run at the same time, and have one window.",
    (
        text("pattern and phase", "row", value=lambda entry: entry["row"], output=TERMINAL,
             about="Its name, and how it ended where it is not complete"),
        *(replace(column, output=PAGE) for column in SETTING),
        replace(PHASE, output=PAGE),
        LIMITED,
        measured("offered_load", unit="% line", drop=4),
        *RATES,
        Column("frames/s", "frames_per_s", "count", drop=9, seldom=True,
               about="Frames of all flows in the window: their payload by what one frame carries",
               value=lambda entry: (fps := first_screen.frames_per_s(entry)) and round(fps)),
        *SHARES,
        *(measured(one.key, output=PAGE, seldom=True) for one in REDUCED),
        measured("lost_frames", fold=True, seldom=True, drop=5),
        LOSS_PPM,
        measured("host_dropped_frames", fold=True),
        measured("reordered_frames", fold=True, seldom=True, drop=5),
        measured("duplicated_frames", fold=True, seldom=True, drop=5),
        measured("corrupted_frames", fold=True, seldom=True),
        measured("misdelivered_frames", fold=True, seldom=True),
        measured("retransmitted_segments", fold=True, seldom=True, drop=5),
        measured("lost_messages", fold=True, seldom=True),
        measured("retransmitted_packets", fold=True, seldom=True, drop=5),
        *(
            Column(f"RTT {name}", f"latency.round_trip.{name}", unit="µs", seldom=True, drop=3,
                   about=f"Round trips of the phase's probes, {name}")
            for name in ("p50", "p99", "max")
        ),
        measured("start_skew_us", drop=2),
        measured("cpu_s_per_gb", drop=1),
        SLOWEST,
        STATE,
        TRIAL,
    ),
    "trials",
)  # fmt: skip


def _percent(key: str) -> Callable[[Entry], float | None]:
    """Return the value of a ratio's column in percent."""
    return lambda entry: None if (ratio := entry[key]) is None else 100.0 * ratio


searches = Spec(
    "searches",
    "Searches",
    "Highest loads that goals allow (RFC 9971), each port's; a goal's attributes have columns.",
    (
        text("goal", "goal", about="Non-drop rate, partial drop rate, or another (RFC 9971)"),
        text("pattern", "pattern", value=format.pattern, fold=True, about="What was sent"),
        text("transport", "transport", fold=True, about="That carried it"),
        text("size", "size", value=format.size, fold=True, about=SIZE),
        text("load unit", "load_unit", fold=True, about="Of both bounds and the throughput"),
        Column("lower bound", "relevant_lower_bound", about="Highest load that met the goal"),
        Column("upper bound", "relevant_upper_bound", about="Lowest load that did not"),
        Column("throughput", "conditional_throughput",
               about="Of the lower bound, less what its trials lost (conditional throughput)"),
        Column("width", "relative_width", "percent", "%",
               value=_percent("relative_width"),
               about="Difference of the bounds by the upper one"),
        count("trials", "trials", fold=True, about="Of the whole search, for all of its goals"),
        Column("loss ratio", "goal_loss_ratio", "percent", "%", value=_percent("goal_loss_ratio"),
               output=PAGE, about="That the goal allows a trial"),
        Column("exceed ratio", "goal_exceed_ratio", "percent", "%",
               value=_percent("goal_exceed_ratio"), output=PAGE,
               about="Of the duration sum, of trials that may lose more"),
        Column("initial trial", "goal_initial_trial_s", unit="s", output=PAGE,
               about="Of the first trials"),
        Column("final trial", "goal_final_trial_s", unit="s", output=PAGE,
               about="Of a trial that decides"),
        Column("duration sum", "goal_duration_sum_s", unit="s", output=PAGE,
               about="Of the trials that decide a load"),
        Column("goal width", "goal_width", "percent", "%", value=_percent("goal_width"),
               output=PAGE, about="Largest width that ends the search"),
        Column("min load", "min_load", output=PAGE, about="Of the range, in the load unit"),
        Column("max load", "max_load", output=PAGE, about="Of the range, in the load unit"),
        text("outcome", "outcome", output=PAGE, about="How the search ended"),
    ),
    "searches",
)  # fmt: skip


losses = Spec(
    "losses",
    "Losses",
    "TCP and reliable RDMA repair loss themselves: what they retransmitted says what was lost, or "
    "believed to be.",
    (
        PLAN,
        *TITLED,
        PHASE,
        measured("offered_frames", output=PAGE),
        measured("delivered_frames", output=PAGE),
        measured("lost_frames"),
        measured("loss_percent", output=PAGE),
        Column("lost, worst flow", "worst_loss_percent", unit="%", output=PAGE),
        count("lost in sender's host", "loss_location.sender_host", fold=True),
        count(
            "lost in network",
            "loss_location.network",
            fold=True,
            value=in_network,
            note=NO_LOSS,
        ),
        count("lost in receiver's host", "loss_location.receiver_host", fold=True),
        count("beside other traffic", "loss_location.other_traffic", fold=True, seldom=True),
        text("first port", "loss_location.ports", seldom=True,
             value=lambda entry: [p["port"] for p in at(entry, "loss_location.ports") or ()][:1],
             about="Whose frames were lost the most"),
        count("damaged on wires", "loss_location.wire_errors", fold=True),
        measured("duplicated_frames", fold=True, output=PAGE),
        measured("reordered_frames", fold=True, output=PAGE),
        measured("late_frames", fold=True),
        count("forged", "forged_frames", fold=True, seldom=True),
        measured("corrupted_frames", fold=True, output=PAGE),
        count("corrupted bytes", "corrupted_bytes", fold=True, seldom=True),
        measured("misdelivered_frames", fold=True, output=PAGE),
        count("unexpected", "unexpected_frames", fold=True),
        measured("pause_frames", fold=True),
        measured("retransmitted_segments", seldom=True, fold=True, output=PAGE),
        measured("lost_messages", seldom=True, fold=True, output=PAGE),
        measured("retransmitted_packets", seldom=True, fold=True, output=PAGE),
        count("ECN-marked packets", "ecn_marked_packets", fold=True, seldom=True),
        count("congestion notices", "cnp_sent", fold=True, seldom=True),
        STATE,
    ),
    "trials",
)  # fmt: skip


order = Spec(
    "order",
    "Order",
    "Phases in which frames came behind later ones (RFC 4737).",
    (
        *SETTING,
        PHASE,
        Column("out of order", "reordering.reordered_percent", unit="%"),
        Column("3-reordered", "reordering.three_reordered_percent", unit="%"),
        Column("mean extent", "reordering.extent_mean", unit="frames"),
        Column("max extent", "reordering.extent_max", "count", "frames"),
        text("worst flow", "reordering.worst"),
    ),
    lambda summary: (e for e in summary.get("trials", []) if at(e, "reordering.extent_max")),
)


# --- the same again, and by several transports ----------------------------------------------------


def _compared(summary: Summary) -> Iterator[Entry]:
    """No ratio is made of what the tester limited, and none where nothing bypasses the kernel."""
    limited = {_place(e) for e in summary.get("trials") or [] if e["tester_limited"]}
    for entry in summary.get("comparisons", []):
        sides = [
            one | {"tester_limited": any((t, entry["network"]) in limited for t in one["trials"])}
            for one in entry["transports"]
        ]
        fast = any(first_screen.bypasses(one["transport"]) for one in sides)
        base = any(s["tester_limited"] for s in sides if s["transport"] == entry["baseline"])
        for one in sides:
            kept = fast and not base and not one["tester_limited"]
            ratio = one["ratio"] if kept else dict.fromkeys(one["ratio"])
            yield {**entry, **one, "ratio": ratio, "baseline": entry["baseline"]}


def transport_words(one: Entry) -> str:
    """`tcp`; `verbs depth 16` where the sweep chose."""
    options = (f"{k.partition('.')[2].replace('_', ' ')} {v}" for k, v in one["options"].items())
    return " ".join([one["transport"], *options])


def _of_repeats(end: str) -> Callable[[Entry], float | None]:
    """Of several."""
    return lambda one: one["throughput"][end] if one["repeats"] > 1 else None


transports = Spec(
    "transports",
    "Transports side by side",
    "The same matrix over each transport. Above 1: faster than the baseline, or dearer.",
    (
        PATTERN,
        text("network", "network", fold=True, output=PAGE),
        RANKS,
        text("transport", "transport", value=transport_words),
        LIMITED,
        text("size", "size", value=format.size, about=SIZE),
        LOAD,
        Column("mean flow", "throughput.mean", unit=RATE),
        Column("min repeat", "throughput.min", unit=RATE, drop=5, seldom=True,
               value=_of_repeats("min")),
        Column("max repeat", "throughput.max", unit=RATE, drop=5, seldom=True,
               value=_of_repeats("max")),
        Column("rate ÷ baseline", "ratio.throughput", seldom=True),
        Column("CPU", "cpu_s_per_gb", unit=MEASURES["cpu_s_per_gb"].unit, drop=2),
        Column("CPU ÷ baseline", "ratio.cpu_s_per_gb", drop=1, seldom=True),
        text("polling", "polling", fold=True, drop=3, seldom=True,
             value=lambda one: "yes" if one["polling"] else None),
        text("baseline", "baseline", fold=True, output=PAGE),
        count("repeats", "repeats", fold=True, drop=4, seldom=True,
              value=lambda one: one["repeats"] if one["repeats"] > 1 else None),
    ),
    _compared,
    "comparisons",
)  # fmt: skip


def _repeated(summary: Summary) -> Iterator[Entry]:
    plan_of = {(p["trial"], p["network"]): p for p in summary.get("plans", [])}
    for entry in summary.get("statistics", []):
        plan = plan_of.get((entry["trials"][0], entry["network"]))
        if plan is not None:
            yield {**plan, "statistics": entry}


repeats = Spec(
    "repeats",
    "Repeats, mean with its confidence interval",
    "The mean over repeats and the interval in which the true mean lies.",
    (
        PLAN,
        *(column for column in SETTING if column.key != "repeat"),
        count("repeats", "statistics.values",
              value=lambda entry: len(entry["statistics"]["values"])),
        Column("mean", "statistics.mean", unit=RATE),
        Column("from", "statistics.ci_low", unit=RATE),
        Column("to", "statistics.ci_high", unit=RATE),
        Column("width", "statistics.ci_width_percent", "percent", "% of mean"),
        Column(
            "width asked", "statistics.target_ci_width_percent", "percent", "% of mean", fold=True,
            seldom=True,
        ),
        Column("confidence", "statistics.confidence_percent", "percent", "%", fold=True, drop=1),
        text("conclusive", "statistics.verdict", fold=True, seldom=True),
        text("depend on each other", "statistics.dependent", fold=True, drop=2),
    ),
    _repeated,
)  # fmt: skip


# --- what others say ------------------------------------------------------------------------------


def _units(key: str) -> Callable[[Entry], str | None]:
    def unit(entry: Entry) -> str | None:
        said = at(entry, key)
        return None if said is None else str(said).replace("us", "µs")

    return unit


imported = Spec(
    "imported",
    "Other programs",
    "What other programs printed, and the same by definitions that several of them share.",
    (
        text("program", "tool", fold=True, about="Which program measured, and its version",
             value=lambda e: f"{e['tool']} {e['version']}" if e["version"] else e["tool"]),
        text("benchmark", "benchmark", about="In the program's words"),
        count("ranks", "ranks", fold=True, seldom=True, about="Processes, or hosts"),
        Column("message", "size", "bytes", about="By the program's count", seldom=True),
        text("figure", "name", about="The figure's own name"),
        Column("value", "value", "scientific", about="As it was printed, in its own unit"),
        text("unit", "unit", value=_units("unit"), about="Of the value"),
        Column("as ours", "comparable.value", "scientific", seldom=True,
               about="By a definition that programs share (doc/how-to/compare.md)"),
        text("our unit", "comparable.unit", value=_units("comparable.unit"), seldom=True,
             about="Of the figure as ours"),
        text("our measure", "comparable.measure", seldom=True, about="Which of these definitions"),
    ),
    "imported",
)  # fmt: skip


# --- latencies, skew, intervals, CPU time ---------------------------------------------------------

_KIND = text("kind", "kind", about="What is timed: doc/reference/latency.md")
_TIMED = count("times", "times.count", about="Times measured")

KINDS = {
    "one_way": "one way",
    "ipdv": "delay variation",
    "round_trip": "round trip",
    "pingpong": "ping-pong",
}

skew = Spec(
    "skew",
    "Start and stop skew",
    "How far apart the first and the last rank began, and ended, in each phase.",
    (
        *SETTING,
        PHASE,
        measured("start_skew_us"),
        measured("stop_skew_us"),
        Column("either within twice", "skew_bound_us", unit="µs", fold=True),
        Column("window", "window_s", unit="s", fold=True),
        Column("phase took", "elapsed_s", unit="s"),
        text("drained", "drained", fold=True),
        TRIAL,
    ),
    "trials",
)


def _low(title: str, key: str, kind: str = "number", unit: str = "") -> Column:
    return Column(title, f"low.{key}", kind, unit, defined=f"intervals.lowest.{key}")


intervals = Spec(
    "intervals",
    "Lowest interval results",
    "Of each phase the five flows that fell the furthest below their own mean, and when.",
    (
        *SETTING,
        PHASE,
        text("flow", "slowest", about="The flow that fell"),
        _low("fell to", "mbps", unit=RATE),
        _low("of its mean", "percent_of_mean", "percent", "%"),
        _low("from", "from_s", unit="s"),
        _low("to", "to_s", unit="s"),
    ),
    lambda summary: (
        {**entry, "low": low, "slowest": low}
        for entry in summary.get("trials", ())
        for low in at(entry, "intervals.lowest") or ()
    ),
)

_PERCENTILES = (
    *(
        Column(title, f"times.{key}", unit="µs", defined=f"latency.one_way.{key}", drop=drop)
        for title, key, drop in (
            ("min", "min", 0), ("mean", "mean", 3), ("p50", "p50", 0), ("p90", "p90", 2),
            ("p99", "p99", 0), ("p99.9", "p99_9", 6), ("p99.99", "p99_99", 4), ("max", "max", 0),
            ("PDV", "pdv", 5),
        )
    ),
    Column("clocks within", "times.bound", unit="µs", defined="latency.one_way.bound", drop=1,
           seldom=True, value=lambda row: row["times"].get("bound") or None),
)  # fmt: skip


def of_phase(entry: Entry) -> Iterator[Entry]:
    """Yield a row for each kind of times that a phase has."""
    for kind, times in (entry.get("latency") or {}).items():
        if times:
            yield {**entry, "kind": KINDS.get(kind, kind), "times": times}


latencies = Spec(
    "times",
    "Times",
    "Measured beside the load. The way of each is in doc/reference/latency.md.",
    (
        *TITLED,
        replace(PHASE, output=PAGE),
        _KIND,
        _TIMED,
        count("lost", "times.lost", fold=True, about="Probes or messages that never came back"),
        *_PERCENTILES,
        text("worst flow", "times.worst", about="The flow with the largest p99", drop=1),
    ),
    lambda summary: (row for entry in summary.get("trials", ()) for row in of_phase(entry)),
)


def _per_gb(entry: Entry) -> float | None:
    """Return a plan's CPU seconds by 10^9 bytes of payload."""
    used, delivered = entry.get("cpu_s"), entry.get("delivered_bytes")
    return used * 1e9 / delivered if used is not None and delivered else None


cpu = Spec(
    "cpu",
    "CPU cost",
    "Of all machines together, kernel and interrupts included.",
    (
        *SETTING,
        count("payload delivered", "delivered_bytes", unit="B"),
        Column("CPU time", "cpu_s", unit="s"),
        Column("CPU time of nodes' processes", "cpu_process_s", unit="s"),
        measured("cpu_s_per_gb", value=_per_gb),
        text("polling", "polling", fold=True),
        TRIAL,
    ),
    "plans",
)


# --- ports, nodes, tuning and switch counters -----------------------------------------------------

_PORT = text("port", "port")
_TRANSPORT = text("transport", "transport", fold=True)


def _side(words: str, key: str) -> tuple[Column, ...]:
    return (
        Column(f"{words}, median", f"{key}.median_percent_of_line", "percent", "% of line"),
        Column(f"{words}, min", f"{key}.min_percent_of_line", "percent", "% of line", drop=2),
        Column(f"{words} ÷ median port", f"{key}.relative_to_median"),
        count(f"{words}, lost", f"{key}.lost_frames", drop=3),
    )


ports = Spec(
    "ports",
    "Ports",
    "Over all phases, so that a bad port or cable stands out whatever the pattern.",
    (
        _PORT,
        _TRANSPORT,
        text("network", "network", fold=True, output=PAGE),
        text("switch", "switch", fold=True, seldom=True),
        text("switch port", "switch_port", seldom=True),
        *_side("sent", "as_source"),
        *_side("received", "as_destination"),
        text("suspect", "suspect", seldom=True, output=PAGE),
        count("link downs", "link_downs", fold=True),
        count("slowest in", "slowest_phases", unit="phases", drop=1,
              value=lambda entry: len(entry.get("slowest_phases") or [])),
    ),
    "ports",
)  # fmt: skip

tuning = Spec(
    "tuning",
    "Ports and their tuning",
    "What each port was sent and received through, as the nodes found it.",
    (
        _PORT,
        _TRANSPORT,
        text("driver", "driver", fold=True),
        count("NUMA node", "numa", fold=True),
        count("queues", "queues", fold=True),
        text("cores", "cores"),
        text("offloads", "offloads", fold=True),
        text("hot paths", "variants", fold=True),
        text("RDMA device", "rdma.rdma", seldom=True),
        text("RDMA link", "rdma.link_layer", fold=True, seldom=True,
             about="The link layer of the device's port: InfiniBand or Ethernet"),
        count("RDMA MTU", "rdma.mtu", unit="B", fold=True, seldom=True,
              about="Active path MTU of the device's port: payload of a packet at the most"),
    ),
    "ports",
)  # fmt: skip


def _nodes(summary: Summary) -> Iterator[Entry]:
    clocks = {clock["node"]: clock for clock in summary.get("clocks", [])}
    for node in at(summary, "run.nodes") or []:
        yield {**node, "how": clocks.get(node["node"], {})}


nodes = Spec(
    "nodes",
    "Nodes",
    "One process of the engine each.",
    (
        text("node", "node", about="Its name"),
        text("host", "host", fold=True, about="The machine that the node runs on"),
        text("version", "version", fold=True),
        count("CPUs", "cpus", fold=True, about="That the node's machine has online"),
        count("workers", "workers", fold=True, about="Threads that send and receive"),
        text("between bursts", "worker", fold=True,
             about="What workers do: poll, or sleep until there is something to do"),
        text("cores", "cores"),
        text("clock", "how.clock", fold=True, defined="clocks.clock"),
        Column("clock within", "how.bound_us", unit="µs", defined="clocks.bound_us"),
    ),
    _nodes,
)  # fmt: skip

switch_counters = Spec(
    "switch-counters",
    "The switch's own counters",
    "What the switch itself counted; only what differs is here.",
    (
        text("counter", "counter", about="As the switch's own command names it"),
        count("difference", "difference", about="After the last trial less before"),
    ),
    lambda summary: (
        {"counter": name, "difference": difference}
        for name, difference in (at(summary, "switch_counters.differences") or {}).items()
    ),
)
