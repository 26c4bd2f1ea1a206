# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of standard test suites: functions from a subtest's trials to its table rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, stdev

from ..loads import End
from .declaration import (
    MORE_OFFERED,
    PREAMBLE_BYTES,
    Earlier,
    PortFacts,
    Row,
    Rows,
    SubtestTrials,
    TrialFacts,
)

FALLS_TO = 0.5  # part of the overload to which the load falls


ERRORED_SIZES = (36, 63, 1519, 9018)  # the smallest holds headers, signature and FCS


LATENCY_PARTS = (0.1, 0.5, 0.9)  # loads of latency trials, as parts of NDR


def loads_of_latency(ndr: float) -> list[float]:
    """Return the loads of the latency trials after a search for the NDR; [] without an NDR."""
    return [part * ndr for part in LATENCY_PARTS if ndr]


def variation_percent(values: Sequence[float]) -> float | None:
    """Return the variation of a repeated measure in percent (RFC 8239, 3.3).

    The result is the largest change from one iteration to the next; None if the earlier value is 0.
    """
    pairs = list(pairwise(values))
    if not all(before for before, _ in pairs):
        return None
    return max((abs(now - before) / before * 100 for before, now in pairs), default=None)


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None without values."""
    observed = known(values)
    return fmean(observed) if observed else None


def spread(key: str, values: Iterable[float | None]) -> Row:
    """Return a table row with mean, min, max and variation of a repeated measure."""
    observed = known(values)
    return {
        key: mean(observed),
        f"{key}_min": min(observed, default=None),
        f"{key}_max": max(observed, default=None),
        f"{key}_variation": variation_percent(observed),
    }


def latency_row(measured: SubtestTrials, key: str = "latency") -> Row:
    """Return a row of one-way delays over all trials: mean of means, min and max of all frames."""
    times = [facts.latency_us for facts in measured.facts if facts.latency_us]
    return spread(key, (each.get("mean") for each in times)) | {
        f"{key}_min": min(known(each.get("min") for each in times), default=None),
        f"{key}_max": max(known(each.get("max") for each in times), default=None),
        "latency_trials": len(times),
    }


def throughput_percent(earlier: Earlier) -> float | str:
    """Return the earlier result of the throughput in % of line, or a sentence if it is missing."""
    found = earlier.get("throughput", {}).get("throughput_percent")
    if found is None:
        return "Not measured: throughput has no result at this size."
    return float(found)


def throughput_row(measured: SubtestTrials) -> Row:
    """Return the table row of the throughput, which is the max load if no trial fails."""
    point, [result] = measured.point, measured.results
    usable = result.is_regular or result.outcome.end is End.NO_LOSS_AT_MAX
    percent = result.relevant_lower_bound if usable else None
    rate = point.fps(percent)
    return {
        "throughput": rate,
        "throughput_percent": percent,
        "upper_bound_percent": result.relevant_upper_bound,
        "theoretical_max": point.max_fps,
        "throughput_bps": None if rate is None else rate * point.size * 8 / 1e6,
    }


def above_forwarding(measured: SubtestTrials) -> str:
    """Return a sentence if buffers raised the throughput above the forwarding rate, else ""."""
    [result] = measured.results
    held = [
        facts.offered_fps or 0.0
        for trial, facts in measured.trials
        if trial.value == result.relevant_lower_bound
    ]
    rates = [facts.delivered_fps or 0.0 for facts in measured.facts]
    offered, forwarded = max(held, default=0.0), max(rates)
    if not forwarded or offered <= MORE_OFFERED * forwarded:
        return ""
    return (
        f"The throughput, {offered:.0f} frames/s of all ports, is above the max forwarding rate, "
        f"{forwarded:.0f}: buffers held the rest to the end of the trial. Raise trial_s, "
        f"{measured.point.parameters.trial_s:g}."
    )


def capped(measured: SubtestTrials) -> str:
    """Return a sentence if the largest value did not fail, so the limit is unknown; else ""."""
    outcome = measured.results[0].outcome
    return outcome.sentence if outcome.end is End.NO_LOSS_AT_MAX else ""


def burst_row(measured: SubtestTrials) -> Row:
    """Return the table row of the longest back-to-back bursts, over all searches."""
    longest = measured.results[0].longest
    return spread("back_to_back", longest) | {
        "back_to_back_deviation": stdev(longest) if len(longest) > 1 else 0.0 if longest else None,
        "searches": len(longest) or None,
    }


def buffer_time_row(measured: SubtestTrials) -> Row:
    """Return the table row of back-to-back bursts with the buffer time (RFC 9004, 6.4)."""
    row, percent = burst_row(measured), throughput_percent(measured.earlier)
    mean, max_fps = row["back_to_back"], measured.point.max_fps
    if mean is not None and max_fps is not None and not isinstance(percent, str):
        row["implied_buffer_us"] = mean / max_fps * 1e6
        if not capped(measured):
            # RFC 9004, 6.4: frames of the burst that are still in the device, at the receiving
            # port.
            waits = measured.point.sources * (1 - percent / 100)
            row["buffer_us"] = waits * row["implied_buffer_us"]
    return row


def learning_rate_row(measured: SubtestTrials) -> Row:
    """Return the table row of the address learning rate."""
    [found] = measured.results
    return {
        "address_learning_rate": None if capped(measured) else found.relevant_lower_bound,
        "upper_bound_rate": found.relevant_upper_bound,
        "addresses": int(measured.point.parameters.learning_addresses),
        "learning_trials": len(measured.trials),
    }


def address_row(measured: SubtestTrials) -> Row:
    """Return the table row of the address capacity, with the addresses of all other ports."""
    [found] = measured.results
    in_table = (found.relevant_lower_bound or 0) + len(measured.point.ports) - 1
    return {
        "address_capacity": in_table if found.outcome.end is End.REACHED else None,
        "learned": found.relevant_lower_bound,
        "learning_rate": measured.point.parameters.learning_fps,
    }


def latency_at_throughput_row(measured: SubtestTrials) -> Row:
    """Return the table row of latency at the throughput, by the standard's definitions.

    One frame time is subtracted for bit-forwarding devices, two for store-and-forward devices (RFC
    1242).
    """
    point, row = measured.point, latency_row(measured)
    percent = measured.trials[0][0].value
    row |= {"load_percent": percent, "rate": point.fps(percent)}
    if row["latency"] is not None and point.line_bps:
        frame_us = (point.size + PREAMBLE_BYTES) * 8e6 / point.line_bps
        row["latency_bit_forwarding"] = row["latency"] - frame_us
        row["latency_store_and_forward"] = row["latency"] - 2 * frame_us
    return row


def loss_rows(measured: SubtestTrials) -> Rows:
    """Return one table row of loss for each load, the highest load first."""
    return [
        {
            "load_percent": proposed.value,
            "offered_rate": facts.offered_fps,
            "loss": facts.loss_percent,
            "lost_frames": facts.lost,
        }
        for proposed, facts in measured.trials
    ]


def recovery_row(measured: SubtestTrials) -> Row:
    """Return the table row of the recovery time.

    The recovery time ends with the last lost frame, one interval before the frame after the last
    gap.
    """
    point, percent = measured.point, measured.trials[0][0].value
    throughput = throughput_percent(measured.earlier)
    after_fps = FALLS_TO * (point.fps(percent) or 0.0)
    interval_s = 1 / after_fps if after_fps else 0.0
    times = [
        1e3 * max(0.0, facts.last_gap_s - interval_s - point.parameters.trial_s)
        for facts in measured.facts
        if facts.last_gap_s is not None and facts.lost
    ]
    return spread("recovery_time", times) | {
        "throughput_rate": None if isinstance(throughput, str) else point.fps(throughput),
        "load_percent": percent,
        "rate": point.fps(percent),
        "recovery_resolution": 1e3 * interval_s or None,
        "recovery_trials": len(times),
    }


BACK_S = 0.1  # last seconds of a trial's traffic in which no frame may be lost


def no_reset(measured: SubtestTrials) -> str:
    """Return a sentence if the trials do not contain a complete reset of the device, else ""."""
    if not all(facts.lost for facts in measured.facts):
        return "A trial lost no frame: the command of device_reset reset nothing."
    silent = [facts.silent_s for facts in measured.facts if facts.silent_s is not None]
    if len(silent) < len(measured.facts):
        return "The receivers did not report when their last frames arrived."
    if max(silent) > BACK_S:
        return (
            f"Traffic was not back at the end of a trial, {max(silent):.1f} s after its last "
            f"frame: raise reset_s, {measured.point.parameters.reset_s:g}."
        )
    return ""


def reset_row(measured: SubtestTrials) -> Row:
    """Return the table row of the reset time; without a value if a reset was not complete."""
    every = [] if no_reset(measured) else measured.facts
    times = [1e3 * facts.lost / facts.offered_fps for facts in every if facts.offered_fps]
    numbers = {"load_percent": measured.trials[0][0].value, "reset_trials": len(times)}
    return spread("reset_time", times) | numbers


def forwarding_row(measured: SubtestTrials) -> Row:
    """Return the table row of throughput and forwarding rates, over all trials of the search."""
    most = [facts for trial, facts in measured.trials if trial.value >= measured.point.loads.max]
    every = [facts for facts in measured.facts if facts.delivered_fps is not None]
    best = max(every, key=lambda facts: facts.delivered_fps or 0.0, default=TrialFacts())
    last = most[-1] if most else TrialFacts()
    return throughput_row(measured) | {
        "frmol": last.delivered_fps,
        "mol": last.offered_fps,
        "mfr": best.delivered_fps,
        "mfr_load": best.offered_fps,
        "loss": last.loss_percent,
        "flooded": sum(facts.flooded for facts in measured.facts),
    }


def congestion_row(measured: SubtestTrials) -> Row:
    """Return the table row of congestion control: the worst value over trials and groups.

    Loss at a port that is not congested is head-of-line blocking.
    """

    def ports(*, congested: bool) -> list[PortFacts]:
        names = measured.point.receivers(congested=congested)
        return [facts.ports[name] for facts in measured.facts for name in names]

    free, full = ports(congested=False), ports(congested=True)
    blocked = max((port.loss_percent for port in free), default=None)
    lossless = max((port.loss_percent for port in full), default=None)
    return {
        "offered_rate": max(known(facts.offered_fps for facts in measured.facts), default=None),
        "uncongested_loss": blocked,
        "uncongested_rate": min(known(port.delivered_fps for port in free), default=None),
        "congested_loss": lossless,
        "head_of_line_blocking": None if blocked is None else int(blocked > 0),
        "backpressure": None if lossless is None else int(lossless == 0),
    }


def errored_rows(measured: SubtestTrials) -> Rows:
    """Return one table row for each errored frame size; without counts if it was not sent."""
    counts = {
        proposed.value: {
            "errored_offered": facts.offered,
            "errored_forwarded": (forwarded := facts.offered - facts.lost + facts.flooded),
            "errored_filtered": int(forwarded == 0),
        }
        for proposed, facts in measured.trials
    }
    return [{"errored_size": size, **counts.get(size, {})} for size in ERRORED_SIZES]


def line_row(measured: SubtestTrials) -> Row:
    """Return the table row of a line-rate test; jitter is PDV (RFC 5481): delays minus the min."""
    point, every = measured.point, measured.facts
    receivers = len({destination for _, destination in point.flows})
    whole = point.max_fps and point.max_fps * receivers
    rates = [100 * facts.delivered_fps / whole for facts in every if facts.delivered_fps and whole]
    offered, lost = sum(facts.offered for facts in every), sum(facts.lost for facts in every)
    lost_percent = 100 * lost / offered if offered else None
    times = [facts.latency_us for facts in every]
    ends = (known((each.get("mean"), each.get("min"))) for each in times)
    jitter = [pair[0] - pair[1] for pair in ends if len(pair) == 2]
    numbers = {
        "load_percent": point.loads.max,
        "received_percent": None if lost_percent is None else 100 - lost_percent,
        "lost_frames": lost,
        "lost_percent": lost_percent,
        "jitter": max(known(each.get("pdv") for each in times), default=None),
        "jitter_mean": mean(jitter),
        "iterations": len(every),
    }
    return latency_row(measured) | spread("line_rate", rates) | numbers


def microburst_row(measured: SubtestTrials) -> Row:
    """Return the table row of the longest bursts, with the numbers of sources and receivers."""
    if capped(measured):
        return {}
    point, longest = measured.point, measured.results[0].longest
    row = spread("microburst", longest)
    return row | {
        "ingress": point.sources,
        "egress": len({destination for _, destination in point.flows}),
        "microburst_total": row["microburst"] and row["microburst"] * point.sources,
        "iterations": len(longest),
    }


def blocking_row(measured: SubtestTrials) -> Row:
    """Return the table row of loss at uncongested ports, at the port with the highest loss."""
    single = measured.point.receivers(congested=False)
    worst = [
        max(facts.ports[port].loss_percent for port in single) for facts in measured.facts if single
    ]
    blocking = int(max(worst) > 0) if worst else None
    return spread("blocked_loss", worst) | {"blocking": blocking, "iterations": len(worst)}


def incast_row(measured: SubtestTrials) -> Row:
    """Return the table row of an incast test: TCP goodput and UDP latency."""
    goodput = spread("goodput", (facts.goodput for facts in measured.facts))
    return goodput | latency_row(measured, "incast_latency") | {"iterations": len(measured.trials)}


def ndr_latency_rows(measured: SubtestTrials) -> Rows:
    """Return one table row of latency for each load that is a part of the NDR."""
    ndr = measured.results[0].relevant_lower_bound or 0.0
    last = {trial.value: (trial, facts) for trial, facts in measured.trials}
    at = {load: [last[load]] for load in loads_of_latency(ndr) if load in last}
    return [
        latency_row(replace(measured, trials=trials))
        | {"load_percent": load, "of_ndr": 100 * load / ndr, "rtt": trials[0][1].rtt_us.get("mean")}
        for load, trials in at.items()
    ]
