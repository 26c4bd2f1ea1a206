# SPDX-License-Identifier: BSD-3-Clause
"""RFC 2544, Benchmarking Methodology for Network Interconnect Devices, section 26."""

from __future__ import annotations

from ...base.measures import LESS, NEITHER
from ..loads import FixedTrials
from . import declaration
from .declaration import (
    PREAMBLE_BYTES,
    Earlier,
    Excluded,
    Method,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    Value,
)
from .methods import (
    BURST_VALUES,
    LATE_SENDERS,
    LATENCY_DEFINITION,
    LATENCY_TRIALS,
    LOSS,
    PHASES,
    THROUGHPUT_VALUES,
    LossSteps,
    above_forwarding,
    burst_range,
    burst_row,
    fixed,
    latency_row,
    latency_values,
    load_value,
    search_bursts,
    search_throughput,
    spread,
    throughput_goal,
    throughput_percent,
    throughput_rows,
)

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # 9.1


def _latency_rows(measured: SubtestTrials) -> Rows:
    """Return the rows of latency.

    The frame is once on the line after its first bit in, and twice after its last (RFC 1242).
    """
    point, row = measured.point, latency_row(measured)
    percent = measured.trials[0][0].value
    row |= {"load_percent": percent, "rate": point.fps(percent)}
    if row["latency"] is not None and point.line_bps:
        frame_us = (point.size + PREAMBLE_BYTES) * 8e6 / point.line_bps
        row["latency_bit_forwarding"] = row["latency"] - frame_us
        row["latency_store_and_forward"] = row["latency"] - 2 * frame_us
    return [row]


def _loss_steps(point: SuitePoint, _earlier: Earlier) -> Method:
    asked = point.parameters
    return LossSteps(point.loads.max, asked.loss_step_percent, asked.trial_s, "% of line")


def _loss_rows(measured: SubtestTrials) -> Rows:
    """Return one row per load, the highest first."""
    return [
        {
            "load_percent": proposed.value,
            "offered_rate": facts.offered_fps,
            "loss": facts.loss_percent,
            "lost_frames": facts.lost,
        }
        for proposed, facts in measured.trials
    ]


OVERLOAD = 1.1  # of the throughput (26.5)
FALLS_TO = 0.5  # of the overload


def _recovery(point: SuitePoint, earlier: Earlier) -> Method | str:
    percent = throughput_percent(earlier)
    if isinstance(percent, str):
        return percent
    if percent >= point.loads.max:
        return Excluded("Excluded: the device forwards this size at the max rate: no overload.")
    asked = point.parameters
    loads = [min(OVERLOAD * percent, point.loads.max)] * int(asked.repeats)
    return FixedTrials(loads, asked.trial_s + asked.recovery_s, "% of line")


def _recovery_rows(measured: SubtestTrials) -> Rows:
    """Return the row of the recovery time.

    A frame was sent one interval before the one behind the last gap: it is the last lost one.
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
    return [
        spread("recovery_time", times)
        | {
            "throughput_rate": None if isinstance(throughput, str) else point.fps(throughput),
            "load_percent": percent,
            "rate": point.fps(percent),
            "recovery_resolution": 1e3 * interval_s or None,
            "recovery_trials": len(times),
        }
    ]


BACK_S = 0.1  # before the end of a trial's traffic: all frames come again


def _no_reset(measured: SubtestTrials) -> str:
    """Says why a trial does not have the device's reset from its begin to its end."""
    if not all(facts.lost for facts in measured.facts):
        return "A trial lost no frame: the command of device_reset reset nothing."
    silent = [facts.silent_s for facts in measured.facts if facts.silent_s is not None]
    if len(silent) < len(measured.facts):
        return "The receivers did not say when their last frames came."
    if max(silent) > BACK_S:
        return (
            f"Traffic was not back at the end of a trial, {max(silent):.1f} s after its last "
            f"frame: raise reset_s, {measured.point.parameters.reset_s:g}."
        )
    return ""


def _reset_rows(measured: SubtestTrials) -> Rows:
    every = [] if _no_reset(measured) else measured.facts
    times = [1e3 * facts.lost / facts.offered_fps for facts in every if facts.offered_fps]
    numbers = {"load_percent": measured.trials[0][0].value, "reset_trials": len(times)}
    return [spread("reset_time", times) | numbers]


RFC2544 = Suite(
    name="rfc2544",
    document="RFC 2544",
    title="Network interconnect devices (RFC 2544)",
    subtests=(
        Subtest(
            "throughput", "26.1", "Throughput",
            "The fastest rate at which the device loses no frame, per port; both ports of a pair "
            "send.",
            declaration.both_ways, search_throughput, throughput_rows, THROUGHPUT_VALUES,
            goals=throughput_goal, no_result=above_forwarding,
        ),
        Subtest(
            "latency", "26.2", "Latency",
            "Mean of the trials' mean one-way latencies at the throughput rate. "
            f"{LATENCY_DEFINITION}.",
            declaration.both_ways, fixed("latency_s", "latency_repeats", at_throughput=True),
            _latency_rows,
            (
                load_value(),
                Value("rate", "rate", "frames/s", "At which it was measured", of_setting=True),
                *latency_values(LATENCY_DEFINITION),
                Value("latency_store_and_forward", "store and forward", "us",
                      "LIFO: from the frame's last bit in to its first bit out (RFC 1242, 3.8): "
                      "the mean less two times of the frame on the line, without the gap",
                      better=LESS),
                Value("latency_bit_forwarding", "bit forwarding", "us",
                      "FIFO: from the frame's first bit in to its first bit out (RFC 1242, 3.8), "
                      "of cut-through devices: the mean less one time of the frame", better=LESS),
                LATENCY_TRIALS,
            ),
            needs=("throughput",), keys={"latency": {"one_way": "on"}},
        ),
        Subtest(
            "loss-rate", "26.3", "Frame loss rate",
            "From the max load down in steps, until two trials in a row lose no frame.",
            declaration.both_ways, _loss_steps, _loss_rows,
            (
                load_value(),
                Value("offered_rate", "offered", "frames/s", "What all ports together sent",
                      of_setting=True),
                LOSS,
                Value("lost_frames", "lost frames", "", "In - out, whole trial", "count", LESS),
            ),
        ),
        Subtest(
            "back-to-back", "26.4", "Back-to-back frames",
            "The longest burst at the min interframe gap that the device forwards without loss. "
            "The longest one that is tried is burst_s x the theoretical max.",
            declaration.both_ways, search_bursts,
            lambda measured: [burst_row(measured)], BURST_VALUES,
            quantity="burst", range=burst_range, keys={"traffic": "burst"},
        ),
        Subtest(
            "recovery", "26.5", "System recovery",
            "At 110 % of the throughput, or the max load if that is lower, for trial_s, then at "
            "half of that for recovery_s: from the fall of the rate to the last lost frame of the "
            "slowest flow. Sequence numbers say which frame that is, the sender's stamp of the "
            "frame behind it when it was sent.",
            declaration.both_ways, _recovery, _recovery_rows,
            (
                Value("throughput_rate", "throughput", "frames/s", "Of the size",
                      of_setting=True),
                load_value(),
                Value("rate", "rate", "frames/s", "Of the overload", of_setting=True),
                Value("recovery_time", "recovery time", "ms", "Mean of the trials", better=LESS),
                Value("recovery_time_max", "max", "ms", "The longest of the trials", better=LESS),
                Value("recovery_resolution", "resolution", "ms",
                      "From one frame to the next of a port behind the fall", better=NEITHER,
                      of_setting=True),
                Value("recovery_trials", "trials", "", "That were averaged: a trial that still "
                      "loses frames at its end, or reorders them, has no time", "count",
                      of_setting=True),
            ),
            quantity="overload", needs=("throughput",),
        ),
        Subtest(
            "reset", "26.6", "Reset",
            "At the throughput rate the device is reset within a trial, by the command of "
            "`device_reset`: lost frames / offered rate (RFC 6201, 4.1). A trial without loss, or "
            "in which traffic is not back before its end, has no time.",
            declaration.both_ways, fixed("reset_s", at_throughput=True), _reset_rows,
            (
                load_value(),
                Value("reset_time", "reset time", "ms", "Mean of the trials: lost frames / offered "
                      "rate", better=LESS),
                Value("reset_time_max", "max", "ms", "The longest of the trials", better=LESS),
                Value("reset_trials", "trials", "", "That were averaged", "count",
                      of_setting=True),
            ),
            needs=("throughput",), resets=True, no_result=_no_reset,
            keys={"frame_sizes": [64], "flood_limit": 0},
        ),
    ),
    sizes=SIZES,
    parameters=SuiteParameters(),
    lab=SuiteParameters(
        trial_s=2.0, initial_s=0.5, latency_s=1.0, latency_repeats=2, burst_s=0.2,
        burst_repeats=1, drain_s=0.3, repeats=2, reset_s=6.0,
        recovery_s=2.0,
    ),
    uses=(
        "trial_s", "initial_s", "width", "latency_s", "latency_repeats", "loss_step_percent",
        "burst_s", "burst_repeats", "drain_s", "repeats", "recovery_s",
        "reset_s",
    ),
    refused={},
    statements=(
        Statement("26.1", "SHOULD", "a graph of frame rate over frame size, with the theoretical "
                  "rate as one line and the results as the second",
                  "figure `rfc2544-throughput`"),
        Statement("26.1", "SHOULD", "text with protocol, data stream format and media",
                  "sentence `Set-up`"),
        Statement("26.1", "MUST", "a single quoted value is in frames per second",
                  "sentence `Performance`, at the min size"),
        Statement("26.1", "MUST", "the statement of performance has the max frame rate, the size, "
                  "the theoretical limit and the protocol",
                  "sentence `Performance`, all four"),
        Statement("26.2", "MUST", "the definition of latency (RFC 1242) that was used",
                  "table `rfc2544-latency`, sentence above it and columns' definitions"),
        Statement("26.2", "SHOULD", "a table with a row per size: size, rate, media, latency",
                  "table `rfc2544-latency`, columns size, rate, media, latency"),
        Statement("26.3", "MUST", "X axis: input rate in percent of the theoretical rate, 0 to "
                  "100", "figure `rfc2544-loss-rate`, X axis"),
        Statement("26.3", "MUST", "Y axis: loss in percent, 0 to 100",
                  "figure `rfc2544-loss-rate`, Y axis"),
        Statement("26.5", "SHOULD", "a table with a row per size: size, throughput rate, recovery "
                  "time", "table `rfc2544-recovery`, columns throughput, recovery time"),
        Statement("26.6", "SHOULD", "a statement for each reset type",
                  "table `rfc2544-reset`; `device_reset` says which reset it is"),
        Statement("26.4", "SHOULD", "a table with a row per size: size, mean frame count",
                  "table `rfc2544-back-to-back`"),
    ),
    deviations=(
        "All pairs of ports are loaded at the same time.",
        PHASES,
        "Addresses are those of the ports, without the second run over 256 networks of section 12.",
        "The modifiers of section 11 (broadcast and management frames, routing updates, filters) "
        "are not sent.",
        "Frames have a constant interval, without the bursts of section 21.",
        "Throughput is searched as RFC 9971 does, with short trials first; only trials of the "
        "final duration decide.",
        "Recovery is at half of the overload for recovery_s; trial_s includes the warm-up.",
        "Reset times follow from lost frames (RFC 6201), not from two time stamps; reset_s has to "
        "be longer than the reset takes.",
        "Latency is read from every frame of a trial, not from one tagged frame.",
        LATE_SENDERS,
    ),
)  # fmt: skip
