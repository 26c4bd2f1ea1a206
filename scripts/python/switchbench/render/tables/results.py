# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the report, made of the summary alone: which columns each has, and of what."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...analysis.loss_location import NO_LOSS, in_network
from ...base import format
from ...base.measures import MEASURES
from ..report import figure
from ..report.definitions import definition
from . import steps
from .ports import nodes, ports, switch_counters, tuning
from .table import RATE, Column, Entry, Table, at, make
from .times import (
    PHASE,
    SETTING,
    SIZE,
    STATE,
    TRIAL,
    Summary,
    cpu,
    floors,
    frames,
    intervals,
    latencies,
    measured,
    pattern,
    skew,
)

_THROUGHPUT = (
    measured("throughput_min"),
    measured("throughput"),
    measured("throughput_max"),
    measured("throughput_total"),
    measured("percent_of_line"),
    measured("min_percent_of_line"),
    Column("slowest flow", "slowest", "text"),
)
_MESSAGE = Column("message", "message_bytes", "count", "B")


def plans(summary: Summary) -> Table | None:
    """Whole plans: the first table that a reader looks at."""
    columns = (
        *SETTING,
        frames("phases", "phases"),
        measured("elapsed_s", about="The whole plan, barriers and drains included"),
        *_THROUGHPUT,
        measured("lost_frames"),
        measured("host_dropped_frames", fold=True),
        TRIAL,
    )
    about = (
        "One row for each pattern on each transport. Rates are payload, one way, as the receivers "
        "verified them, of one flow."
    )
    return make("plans", "Results by plan", about, columns, summary.get("plans", []))


def phases(summary: Summary) -> Table | None:
    """Every phase of every plan."""
    columns = (
        *SETTING,
        PHASE,
        Column("offered", "offered_load", "percent", "% of line"),
        *_THROUGHPUT,
        measured("lost_frames"),
        STATE,
        TRIAL,
    )
    about = "Flows of one phase run at the same time, and have one window."
    return make("phases", "Results by phase", about, columns, summary.get("trials", []))


def losses(summary: Summary) -> Table | None:
    """What did not arrive as it was sent, and where it went missing."""
    columns = (
        *SETTING,
        PHASE,
        measured("offered_frames"),
        measured("delivered_frames"),
        measured("lost_frames"),
        measured("loss_percent"),
        Column("lost, worst flow", "worst_loss_percent", unit="%"),
        frames("lost in sender's host", "loss_location.sender_host"),
        Column(
            "lost in network",
            "loss_location.network",
            "count",
            fold=True,
            value=in_network,
            about=f"{definition('loss_location.network')}. {NO_LOSS}",
        ),
        frames("lost in receiver's host", "loss_location.receiver_host"),
        frames("damaged on wires", "loss_location.wire_errors"),
        measured("duplicated_frames", fold=True),
        measured("reordered_frames", fold=True),
        measured("late_frames", fold=True),
        frames("forged", "forged_frames", seldom=True),
        measured("corrupted_frames", fold=True),
        frames("corrupted bytes", "corrupted_bytes", seldom=True),
        measured("misdelivered_frames", fold=True),
        frames("unexpected", "unexpected_frames"),
        measured("pause_frames", fold=True),
        measured("retransmitted_segments", seldom=True, fold=True),
        measured("lost_messages", seldom=True, fold=True),
        measured("retransmitted_packets", seldom=True, fold=True),
        frames("ECN-marked packets", "ecn_marked_packets", seldom=True),
        frames("congestion notices", "cnp_sent", seldom=True),
        STATE,
    )
    about = (
        "TCP and reliable RDMA repair loss themselves: what they sent again says what was lost, or "
        "believed to be."
    )
    return make("losses", "Losses", about, columns, summary.get("trials", []))


def order(summary: Summary) -> Table | None:
    """How frames were out of order, of phases in which some were."""
    columns = (
        *SETTING,
        PHASE,
        Column("out of order", "reordering.reordered_percent", unit="%"),
        Column("3-reordered", "reordering.three_reordered_percent", unit="%"),
        Column("mean extent", "reordering.extent_mean", unit="frames"),
        Column("greatest extent", "reordering.extent_max", "count", "frames"),
        Column("worst flow", "reordering.worst", "text"),
    )
    found = [entry for entry in summary.get("trials", []) if at(entry, "reordering.extent_max")]
    about = "Phases in which frames came behind later ones (RFC 4737)."
    return make("order", "Order", about, columns, found)


def _compared(summary: Summary) -> Iterator[Entry]:
    for entry in summary.get("comparisons", []):
        for one in entry["transports"]:
            yield {**entry, **one, "baseline": entry["baseline"]}


def transports(summary: Summary) -> Table | None:
    """The same matrix over several transports."""

    def compared(title: str, key: str, unit: str = "") -> Column:
        return Column(title, key, unit=unit, defined=f"comparisons.{key}")

    columns = (
        Column("pattern", "pattern", "text", fold=True, value=pattern),
        Column("network", "network", "text", fold=True),
        Column("ranks", "ranks", "count", fold=True),
        Column("transport", "transport", "text"),
        Column("size", "size", "text", value=format.size, about=SIZE),
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


def repeats(summary: Summary) -> Table | None:
    """How sure means over repeats are."""
    plan_of = {(p["trial"], p["network"]): p for p in summary.get("plans", [])}
    entries = [
        {**plan_of[entry["trials"][0], entry["network"]], "statistics": entry}
        for entry in summary.get("statistics", [])
        if (entry["trials"][0], entry["network"]) in plan_of
    ]
    columns = (
        *(column for column in SETTING if column.key != "repeat"),
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
        Column("pattern", "pattern", "text", fold=True, value=pattern),
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
        Column("pattern", "pattern", "text", fold=True, value=pattern),
        Column("transport", "transport", "text", fold=True),
        Column("size", "size", "count", "B", about="Bytes of the message"),
        Column("flow", "src", "text", value=lambda entry: format.flow(entry),
               about="Source and destination"),
        Column("time", "time_us", unit="µs", about="Half the round trip of this message"),
        Column("by the fit's", "ratio_to_fit", about="The time by what the fit says of its size"),
        Column("begun", "started_s", unit="s", about="When it was sent, after the trial's start"),
        TRIAL,
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
        steps.functions,
        steps.hpcc,
        steps.rings,
        steps.kernels,
        steps.rankings,
    ),
    figure.LATENCY: (latencies, floors),
    figure.LOSS: (losses, order, switch_counters),
    figure.SKEW: (skew,),
    figure.CPU: (cpu, transports),
    PORTS: (ports,),
}
