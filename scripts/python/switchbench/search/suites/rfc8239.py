# SPDX-License-Identifier: BSD-3-Clause
"""RFC 8239, Data Center Benchmarking Methodology."""

from __future__ import annotations

from ...base.measures import LESS, NEITHER, PERCENT
from ..loads import LoadRange
from . import declaration, methods
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
    Value,
)
from .methods import (
    ITERATIONS,
    LATE_SENDERS,
    UNIT,
    CountSearch,
    capped,
    fixed,
    known,
    latency_row,
    latency_values,
    load_value,
    mean,
    spread,
    spread_values,
    variation_value,
)

SIZES = (64, 128, 256, 512, 1024, 1518, 4096, 8000, 9216)  # 2.3


def _line_rows(measured: SubtestTrials) -> Rows:
    """Jitter is PDV (RFC 5481): delays less the least one."""
    point, every = measured.point, measured.facts
    receivers = len({destination for _, destination in point.flows})
    whole = point.max_fps and point.max_fps * receivers
    rates = [100 * facts.delivered_fps / whole for facts in every if facts.delivered_fps and whole]
    offered, lost = sum(facts.offered for facts in every), sum(facts.lost for facts in every)
    lost_percent = 100 * lost / offered if offered else None
    times = [facts.latency_us for facts in every]
    ends = (known((each.get("mean"), each.get("min"))) for each in times)
    jitter = [pair[0] - pair[1] for pair in ends if len(pair) == 2]
    return [
        latency_row(measured)
        | spread("line_rate", rates)
        | {
            "load_percent": point.loads.max,
            "received_percent": None if lost_percent is None else 100 - lost_percent,
            "lost_frames": lost,
            "lost_percent": lost_percent,
            "jitter": max(known(each.get("pdv") for each in times), default=None),
            "jitter_mean": mean(jitter),
            "iterations": len(every),
        }
    ]


def _longest_microburst(point: SuitePoint) -> int:
    return max(2, round(point.parameters.microburst_s * (point.max_fps or 1e6)))


def _search_microburst(point: SuitePoint, _earlier: Earlier) -> Method:
    repeats = int(point.parameters.burst_repeats)
    each_s = 1.0 / (point.max_fps or 1e6)
    return CountSearch(_longest_microburst(point), UNIT, repeats=repeats, seconds_each=each_s)


def _microburst_rows(measured: SubtestTrials) -> Rows:
    if capped(measured):
        return [{}]
    point, longest = measured.point, measured.result.longest
    row = spread("microburst", longest)
    return [
        row
        | {
            "ingress": point.sources,
            "egress": len({destination for _, destination in point.flows}),
            "microburst_total": row["microburst"] and row["microburst"] * point.sources,
            "iterations": len(longest),
        }
    ]


def _blocking_rows(measured: SubtestTrials) -> Rows:
    """Loss of the flows to ports that are not congested, by the worst of groups."""
    single = measured.point.receivers(congested=False)
    worst = [
        max(facts.ports[port].loss_percent for port in single) for facts in measured.facts if single
    ]
    blocking = int(max(worst) > 0) if worst else None
    return [spread("blocked_loss", worst) | {"blocking": blocking, "iterations": len(worst)}]


def _incast_rows(measured: SubtestTrials) -> Rows:
    goodput = spread("goodput", (facts.goodput for facts in measured.facts))
    return [
        goodput | latency_row(measured, "incast_latency") | {"iterations": len(measured.trials)}
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
            declaration.pairs_and_mesh, fixed("trial_s"), _line_rows,
            (
                load_value(),
                Value("line_rate", "received", "%", "Layer-1 rate at receiving ports, percent of "
                      "line rate", PERCENT),
                Value("received_percent", "of sent", "%", "Received of 100 transmitted frames"),
                Value("lost_frames", "drops", "", "Packets that were lost", "count", LESS),
                Value("lost_percent", "drops share", "%", "The same of 100 transmitted frames",
                      better=LESS),
                *latency_values("FILO"),
                Value("jitter_mean", "jitter mean", "us", "PDV (RFC 5481): mean delay less the "
                      "min, mean of the iterations; its own min is 0 by definition", better=LESS),
                Value("jitter", "jitter max", "us", "PDV (RFC 5481): the highest of the iterations",
                      better=LESS),
                variation_value("line_rate"),
                ITERATIONS,
            ),
            keys={"latency": {"one_way": "on"}},
        ),
        methods.by_extra_frames(
            1, "buffer-efficiency", "Buffer efficiency",
            "Port 1 sends 99.98 % and port 3 oversubscription_percent of line rate to port 2, with "
            "frames of each size; the size with the largest buffer is the most efficient one.",
            methods.first_ports, 3,
        ),
        methods.by_extra_frames(
            2, "buffer-port", "Buffer of each port",
            "The same of each port but the first and the last, which its two neighbours send to.",
            methods.each_port, 3,
        ),
        methods.by_extra_frames(
            3, "buffer-port-pairs", "Buffers of port pairs",
            "All ports but two send 99.98 % of line rate as pairs, one way; the last two "
            "oversubscribe the receivers of two adjacent pairs, of which both have to hold it.",
            methods.port_pairs, 6, 2,
        ),
        methods.by_many_ports(
            "buffer-many-to-one", "Buffer, many ports to one",
            "All ports but one send (99.98 + oversubscription_percent) / (N - 1) % of line rate to "
            "that one; bursts of exact length find the last one that the buffer holds.",
        ),
        Subtest(
            "microburst", "4", "Microburst",
            "Bursts at 100 % intensity of N - 1 ports to one, N - 2 to two, and so on.",
            declaration.to_fewer, _search_microburst, _microburst_rows,
            (
                Value("ingress", "ingress", "", "Sending ports", "count", NEITHER,
                      of_setting=True),
                Value("egress", "egress", "", "Receiving ports", "count", NEITHER,
                      of_setting=True),
                *spread_values("microburst", "per ingress", "frames", "Longest burst per ingress "
                               "port without loss, mean of the iterations", ends="count"),
                Value("microburst_total", "all ingress", "frames", "The same of all ports"),
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
            declaration.shifted_groups, fixed("trial_s"), _blocking_rows,
            (
                *spread_values("blocked_loss", "lost", "%", "Of the worst group, mean of the "
                               "iterations", LESS),
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
            declaration.incast, fixed("trial_s"), _incast_rows,
            (
                *spread_values("goodput", "goodput", "Mbit/s", "Payload by TCP, all ports: mean of "
                               "the iterations"),
                *latency_values("FILO", "incast_latency"),
                variation_value("incast_latency", "latency variation"),
                ITERATIONS,
            ),
            by_name=True, ports_min=3,
            keys={"latency": {"one_way": "on", "probes": 0}},
        ),
    ),
    sizes=SIZES,
    parameters=SuiteParameters(burst_repeats=3),
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
        Statement("3.3", "MUST", "DSCP or CoS value; location of the ports on the device",
                  "sentence `Set-up`; table `ports`, columns switch and switch port"),
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
