# SPDX-License-Identifier: BSD-3-Clause
"""Tables of plans and phases: rates, losses, order, repeats, transports side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...analysis.loss_location import NO_LOSS, in_network
from ...base import format
from ...base.measures import MEASURES, REDUCED
from ...records.document.schema import at
from .. import first_screen
from .columns import (
    LIMITED,
    LOAD,
    LOSS_PPM,
    PATTERN,
    PHASE,
    PLAN,
    RANKS,
    RATES,
    SETTING,
    SHARES,
    SIZE,
    SLOWEST,
    STATE,
    TITLED,
    TRIAL,
)
from .table import PAGE, RATE, TERMINAL, Column, Entry, Spec, Summary, count, measured, text


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
