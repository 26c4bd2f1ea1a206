# SPDX-License-Identifier: BSD-3-Clause
"""RFC 8239, Data Center Benchmarking Methodology."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ...base.measures import LESS, NEITHER, PERCENT
from ..loads import LoadRange
from . import buffering, flows
from .buffering import ITERATIONS, variation, variation_percent
from .bursts import RepeatedBursts, burst_row, capped
from .declaration import (
    LINE_RATE_PERCENT,
    Earlier,
    Method,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
    Value,
)
from .rfc2889 import at_max_load
from .throughput import LATE_SENDERS, load_value

SIZES = (64, 128, 256, 512, 1024, 1518, 4096, 8000, 9216)  # 2.3


def _jitter(every: Sequence[TrialFacts]) -> list[float]:
    """The mean PDV of each trial (RFC 5481): the mean delay less the least one."""
    ends = [(facts.latency_us.get("mean"), facts.latency_us.get("min")) for facts in every]
    return [mean - least for mean, least in ends if mean is not None and least is not None]


def _line_rows(point: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
    every = [facts for _, facts in measured.trials]
    receivers = len({destination for _, destination in point.flows})
    whole = point.max_fps and point.max_fps * receivers
    rates = [facts.delivered_fps for facts in every if facts.delivered_fps is not None]
    offered, lost = sum(facts.offered for facts in every), sum(facts.lost for facts in every)

    def times(kind: str, figure: str) -> list[float]:
        found = [getattr(facts, kind).get(figure) for facts in every]
        return [value for value in found if value is not None]

    return [
        {
            "load_percent": point.loads.max,
            "line_rate": 100 * fmean(rates) / whole if rates and whole else None,
            "received_percent": 100 * (1 - lost / offered) if offered else None,
            "lost_frames": lost,
            "lost_percent": 100 * lost / offered if offered else None,
            "latency_min": min(times("latency_us", "min"), default=None),
            "latency": fmean(times("latency_us", "mean")) if times("latency_us", "mean") else None,
            "latency_max": max(times("latency_us", "max"), default=None),
            "jitter": max(times("latency_us", "pdv"), default=None),
            "jitter_mean": fmean(jitter) if (jitter := _jitter(every)) else None,
            "line_rate_variation": variation_percent(rates),
            "iterations": len(every),
        }
    ]


def _longest_microburst(point: SuitePoint) -> int:
    return max(2, round(point.parameters.microburst_s * (point.max_fps or 1e6)))


def _search_microburst(point: SuitePoint, _earlier: Earlier) -> Method:
    repeats = int(point.parameters.burst_repeats)
    return RepeatedBursts(_longest_microburst(point), repeats, 1.0 / (point.max_fps or 1e6))


def _microburst_rows(point: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
    row = burst_row(measured)
    if row["back_to_back"] is None or capped(point, measured):
        return [{}]
    return [
        {
            "ingress": point.sources,
            "egress": len({destination for _, destination in point.flows}),
            "microburst": row["back_to_back"],
            "microburst_total": row["back_to_back"] * point.sources,
            "microburst_min": row["back_to_back_min"],
            "microburst_max": row["back_to_back_max"],
            "microburst_variation": variation_percent(measured.result.longest),
            "iterations": row["searches"],
        }
    ]


def _blocking_rows(point: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
    """Loss of the flows to ports that are not congested, by the worst of groups."""
    single = point.receivers(congested=False)
    worst = [
        max(losses)
        for _, facts in measured.trials
        if (losses := [facts.ports[port].loss_percent for port in single])
    ]
    return [
        {
            "blocked_loss": fmean(worst) if worst else None,
            "blocked_loss_min": min(worst, default=None),
            "blocked_loss_max": max(worst, default=None),
            "blocked_variation": variation_percent(worst),
            "blocking": int(max(worst) > 0) if worst else None,
            "iterations": len(worst),
        }
    ]


def _incast_rows(_point: SuitePoint, _earlier: Earlier, measured: SubtestTrials) -> Rows:
    every = [facts for _, facts in measured.trials]
    goodputs = [facts.goodput for facts in every if facts.goodput is not None]
    times = {
        figure: [value for facts in every if (value := facts.latency_us.get(figure)) is not None]
        for figure in ("min", "mean", "max")
    }
    return [
        {
            "goodput": fmean(goodputs) if goodputs else None,
            "goodput_min": min(goodputs, default=None),
            "goodput_max": max(goodputs, default=None),
            "goodput_variation": variation_percent(goodputs),
            "incast_latency_min": min(times["min"], default=None),
            "incast_latency": fmean(times["mean"]) if times["mean"] else None,
            "incast_latency_max": max(times["max"], default=None),
            "incast_latency_variation": variation_percent(times["mean"]),
            "iterations": len(every),
        }
    ]


RFC8239 = Suite(
    name="rfc8239",
    document="RFC 8239",
    title="Data center switches (RFC 8239)",
    subtests=(
        Subtest(
            "line-rate", "2", "Line rate",
            "All ports send at 99.98 % of line rate, as pairs and as a full mesh; latency is FILO, "
            "jitter the variation of it (RFC 5481, PDV).",
            flows.pairs_and_mesh, at_max_load, _line_rows,
            (
                load_value(),
                Value("line_rate", "received", "%", "Layer-1 rate at receiving ports, percent of "
                      "line rate", PERCENT),
                Value("received_percent", "of sent", "%", "Received of 100 transmitted frames"),
                Value("lost_frames", "drops", "", "Packets that were lost", "count", LESS),
                Value("lost_percent", "drops share", "%", "The same of 100 transmitted frames",
                      better=LESS),
                Value("latency_min", "latency min", "us", "Of all frames", better=LESS),
                Value("latency", "latency mean", "us", "Mean of the iterations' means",
                      better=LESS),
                Value("latency_max", "latency max", "us", "Of all frames", better=LESS),
                Value("jitter_mean", "jitter mean", "us", "PDV (RFC 5481): mean delay less the "
                      "min, mean of the iterations; its own min is 0 by definition", better=LESS),
                Value("jitter", "jitter max", "us", "PDV (RFC 5481): the highest of the iterations",
                      better=LESS),
                variation("line_rate_variation"),
                ITERATIONS,
            ),
            keys={"latency": {"one_way": "on"}},
        ),
        buffering.by_extra_frames(
            1, "buffer-efficiency", "Buffer efficiency",
            "Port 1 sends 99.98 % and port 3 oversubscription_percent of line rate to port 2, with "
            "frames of each size; the size with the largest buffer is the most efficient one.",
            buffering.first_ports, 3,
        ),
        buffering.by_extra_frames(
            2, "buffer-port", "Buffer of each port",
            "The same of each port but the first and the last, which its two neighbours send to.",
            buffering.each_port, 3,
        ),
        buffering.by_extra_frames(
            3, "buffer-port-pairs", "Buffers of port pairs",
            "All ports but two send 99.98 % of line rate as pairs, one way; the last two "
            "oversubscribe the receivers of two adjacent pairs, of which both have to hold it.",
            buffering.port_pairs, 6, 2,
        ),
        buffering.by_many_ports(
            "buffer-many-to-one", "Buffer, many ports to one",
            "All ports but one send (99.98 + oversubscription_percent) / (N - 1) % of line rate to "
            "that one; bursts of exact length find the last one that the buffer holds.",
        ),
        Subtest(
            "microburst", "4", "Microburst",
            "Bursts at 100 % intensity of N - 1 ports to one, N - 2 to two, and so on.",
            flows.to_fewer, _search_microburst, _microburst_rows,
            (
                Value("ingress", "ingress", "", "Sending ports", "count", NEITHER,
                      of_setting=True),
                Value("egress", "egress", "", "Receiving ports", "count", NEITHER,
                      of_setting=True),
                Value("microburst", "per ingress", "frames",
                      "Longest burst per ingress port without loss, mean of the iterations"),
                Value("microburst_total", "all ingress", "frames", "The same of all ports"),
                Value("microburst_min", "min", "frames", "Per ingress, of the iterations", "count"),
                Value("microburst_max", "max", "frames", "Per ingress, of the iterations", "count"),
                variation("microburst_variation"),
                ITERATIONS,
            ),
            quantity="burst",
            range=lambda point: LoadRange(1, _longest_microburst(point), "frames"),
            ports_min=3, keys={"traffic": "burst"}, no_result=capped,
        ),
        Subtest(
            "head-of-line", "5", "Head-of-line blocking",
            "Two groups of four ports, then all groups, whose first port sends to those of the "
            "next group too (25 % each); shifted port by port: loss of the flows to the port that "
            "is not congested.",
            flows.shifted_groups, at_max_load, _blocking_rows,
            (
                Value("blocked_loss", "lost", "%", "Of the worst group, mean of the iterations",
                      better=LESS),
                Value("blocked_loss_min", "min", "%", "Of the iterations", better=LESS),
                Value("blocked_loss_max", "max", "%", "Of the iterations", better=LESS),
                variation("blocked_variation"),
                Value("blocking", "blocking", "yes 1, no 0", "Whether any frame of it was lost",
                      "count", LESS),
                ITERATIONS,
            ),
            ports_min=8,
        ),
        Subtest(
            "incast", "6", "Incast, stateful and stateless",
            "1 to N - 2 ports send by TCP at the max rate and one a burst by UDP to the same port, "
            "then the reverse; only where it is named, with transport udp.",
            flows.incast, at_max_load, _incast_rows,
            (
                Value("goodput", "goodput", "Mbit/s", "Payload by TCP, all ports: mean of the "
                      "iterations"),
                Value("goodput_min", "min", "Mbit/s", "Of the iterations"),
                Value("goodput_max", "max", "Mbit/s", "Of the iterations"),
                variation("goodput_variation"),
                Value("incast_latency_min", "latency min", "us", "Of all frames", better=LESS),
                Value("incast_latency", "latency mean", "us", "Mean of the iterations' means",
                      better=LESS),
                Value("incast_latency_max", "latency max", "us", "Of all frames", better=LESS),
                variation("incast_latency_variation", "latency variation"),
                ITERATIONS,
            ),
            by_name=True, ports_min=3,
            keys={"latency": {"one_way": "on", "probes": 0}},
        ),
    ),
    sizes=SIZES,
    parameters=SuiteParameters(repeats=3, burst_s=2.0, burst_repeats=3),
    lab=SuiteParameters(
        trial_s=1.0, initial_s=0.5, repeats=1, burst_s=3.0, burst_repeats=1, drain_s=0.3,
        microburst_s=0.2, oversubscription_percent=10.0, incast_s=0.05,
    ),
    lab_sizes=(1518,),
    uses=(
        "trial_s", "repeats", "burst_s", "microburst_s", "oversubscription_percent",
        "burst_repeats", "drain_s", "incast_s",
    ),
    refused={},
    statements=(
        Statement("2.3", "MUST", "number of ports", "sentence `Set-up`"),
        Statement("2.3", "MUST", "throughput received as a percentage of bandwidth at 99.98 % per "
                  "size", "table `rfc8239-line-rate`, column received"),
        Statement("2.3", "MUST", "packet drops as a count and as a percentage",
                  "table `rfc8239-line-rate`, columns drops and drops share"),
        Statement("2.2", "MUST", "min, mean and max of latency in the same iteration",
                  "table `rfc8239-line-rate`, columns latency"),
        Statement("3.3", "MUST", "packet size, oversubscription, ingress and egress ports",
                  "sentence `Parameters`; table `rfc8239-buffer-many-to-one`"),
        Statement("3.3", "MUST", "packet size of the most efficient buffer",
                  "table `rfc8239-buffer-efficiency`, the size of the max in column buffer size"),
        Statement("3.3", "MUST", "max buffer size of each port",
                  "table `rfc8239-buffer-port`, column buffer size; table "
                  "`rfc8239-buffer-port-pairs`"),
        Statement("3.3", "MUST", "max DUT buffer size; repeatability",
                  "table `rfc8239-buffer-many-to-one`, columns buffer, min, max, iterations"),
        Statement("4.3", "MUST", "max packets per ingress port without loss; packet size; ingress "
                  "and egress ports; repeatability", "table `rfc8239-microburst`"),
        Statement("5.3", "MUST", "ports; whether HOLB was observed; percent of loss; "
                  "repeatability", "table `rfc8239-head-of-line`"),
        Statement("6.3", "MUST", "ports, stateful or stateless; stateful goodput; stateless "
                  "latency; repeatability", "table `rfc8239-incast`"),
    ),
    deviations=(
        "Physical-layer calibration (RFC 8238, 4) is stated by the user under `about` only.",
        "Buffers are found by bursts of exact length, not by the inflection of the max latency.",
        "Procedure 1 of section 3 is measured at the frame sizes of the suite, not at every size "
        "from 64 bytes on; procedures 2 to 4 at each of them, not at the most efficient one alone.",
        "Section 3 is measured with one DSCP or CoS value and unicast frames per run.",
        LATE_SENDERS,
        "In procedure 3 of section 3 the two oversubscribed ports are the receivers of adjacent "
        "pairs: a port that receives from no pair has nothing to hold.",
        "The ports of section 6 do not vary.",
        "Procedure 2 of section 5 does not name the four egress ports: they are the two of the "
        "port's own group and the two of the next.",
    ),
    load_percent=LINE_RATE_PERCENT,
)  # fmt: skip
