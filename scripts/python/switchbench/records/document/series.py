# SPDX-License-Identifier: BSD-3-Clause
"""The summary's entries over several trials: curves, collectives, comparisons, searches."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .trials import Free, Size, SizeUnit, Traffic


class CurveSetting(TypedDict):
    """What tells a curve over sizes from others.

    transport: dpdk, packet, tcp, udp or verbs
    network: The ports that can reach each other
    ranks: Endpoints of traffic in this network
    pattern: Its name
    parameters: The pattern's, as the configuration gives them
    """

    transport: str
    network: str
    ranks: int
    pattern: str
    parameters: Free


class CurveLatency(TypedDict):
    """Half the round trip.

    min: Shortest
    mean: Mean
    p50: Median
    p99: 99th percentile
    max: Longest
    """

    min: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    max: float | None


class SlowestPair(TypedDict):
    """The pair with the longest times.

    src: The port that sends
    dst: The port that receives
    mean_us: Its mean time
    bandwidth_mbps: Its bandwidth
    """

    src: str
    dst: str
    mean_us: float | None
    bandwidth_mbps: float | None


class CurvePoint(TypedDict):
    """One size of a curve.

    size: Bytes of a message
    round_trips: Measured, of all flows and repeats
    lost: Messages that did not come back
    flows: Pairs that were measured
    latency_us: Half the round trip
    bandwidth_mbps: Mbit/s: the size by half the mean round trip
    slowest: The flow with the largest mean
    """

    size: int
    round_trips: int
    lost: int | None
    flows: int
    latency_us: CurveLatency
    bandwidth_mbps: float | None
    slowest: SlowestPair | None


class Peak(TypedDict):
    """The largest bandwidth of a curve.

    peak_mbps: The largest bandwidth
    peak_size: Its size, bytes
    peak_at_end: The largest size has it: beyond, it may be higher
    size_at_half_peak: The size that reaches half the peak, between two points in logarithms
    size_at_90_percent_peak: The same for 90 % of the peak
    """

    peak_mbps: float | None
    peak_size: int | None
    peak_at_end: bool
    size_at_half_peak: float | None
    size_at_90_percent_peak: float | None


class Curve(CurveSetting, Peak):
    """Times and bandwidth over the size of messages.

    points: By size
    """

    points: list[CurvePoint]


# Sizes at which one path is the fastest; `from` can be no name of a class's.
CrossingRange = TypedDict(
    "CrossingRange",
    {
        "use": Annotated[str | None, "The faster path; null: they differ by less than 5 %"],
        "from": Annotated[int, "Smallest size, bytes"],
        "to": Annotated[int, "Largest size, bytes"],
        "crossover_size": Annotated[
            float | None, "Size at which this path becomes the faster one, bytes"
        ],
    },
)


class Crossing(TypedDict):
    """Where one path becomes faster than another.

    paths: Transport and network, two
    ranks: Endpoints of traffic in this network
    pattern: Its name
    parameters: The pattern's, as the configuration gives them
    ranges: By size, in bytes
    """

    paths: list[str]
    ranks: int
    pattern: str
    parameters: Free
    ranges: list[CrossingRange]


class ScatterTimes(CurveSetting):
    """Times of single messages of random sizes: half the round trip.

    trial: Number of the trial in the run
    repeat: Which repetition, from 0
    messages: Messages with a time
    min_size: Smallest size, bytes
    max_size: Largest size, bytes
    p50_us: Median over messages of all sizes, microseconds
    p99_us: 99th percentile, likewise
    max_us: Longest, likewise
    """

    trial: int
    repeat: int
    messages: int
    min_size: int
    max_size: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None


class ScatterEntry(ScatterTimes):
    """Times of single messages, and how many had none.

    lost: Messages that never came back, and so have no time; null: not known
    """

    lost: int | None


class PieceTimes(TypedDict):
    """Times of pieces of computation.

    p50: Median
    p99: 99th percentile
    max: Longest
    """

    p50: float | None
    p99: float | None
    max: float | None


class Pieces(TypedDict):
    """Of single pieces, the worst node's.

    compute_only: Without messages
    concurrent: While messages are in flight
    """

    compute_only: PieceTimes
    concurrent: PieceTimes


class Computing(TypedDict):
    """Computation alone, and beside messages.

    trial: Number of the trial in the run
    repeat: Which repetition, from 0
    transport: dpdk, packet, tcp, udp or verbs
    parameters: The pattern's, as the configuration gives them
    nodes: Nodes that computed
    share: Part of the time that a node computes, from 0 to 1
    compute_only_mflops: Of one thread, the mean
    concurrent_mflops: The same while messages are in flight
    slowdown_percent: How far the rate of concurrent computation was below compute_only;
        negative: it was above
    slowdown_ci_half_width_percent: Of the 95 % confidence interval of the nodes' mean; null:
        one node
    slowest_node: The node that messages slow down most
    max_slowdown_percent: How much slower that node computes
    piece_us: Of single pieces, the worst node's
    """

    trial: int
    repeat: int
    transport: str
    parameters: Free
    nodes: int
    share: float | None
    compute_only_mflops: float | None
    concurrent_mflops: float | None
    slowdown_percent: float | None
    slowdown_ci_half_width_percent: float | None
    slowest_node: str | None
    max_slowdown_percent: float | None
    piece_us: Pieces


class Messages(TypedDict):
    """Messages there and back (doc/reference/messages.md).

    curves: Latency and bandwidth against size
    crossovers: Which of two paths to use
    scatter: Times of single messages of random sizes
    concurrent_computation: What nodes computed beside them
    """

    curves: list[Curve]
    crossovers: list[Crossing]
    scatter: list[ScatterEntry]
    concurrent_computation: list[Computing]


class ImbFigures(TypedDict):
    """By IMB's definitions.

    t_min_us: IMB's t_min: minimum over ranks of the mean time of a repetition, microseconds
    t_avg_us: IMB's t_avg: mean over ranks of the mean time of a repetition, microseconds
    t_max_us: IMB's t_max: maximum over ranks of the mean time of a repetition, microseconds
    mbytes_s: IMB's Mbytes/sec, 10^6 bytes; null: IMB gives none for this function
    """

    t_min_us: float | None
    t_avg_us: float | None
    t_max_us: float | None
    mbytes_s: float | None


class RepetitionTimes(TypedDict):
    """Times of single repetitions.

    min: Shortest batch of any rank
    mean: Mean over ranks and repeats
    p50: Median
    p99: 99 %; null: fewer than 100 batches
    max: Longest batch of any rank
    """

    min: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    max: float | None


class ConfidenceIntervalEntry(TypedDict):
    """Of confidence.

    low: Lower limit
    high: Upper limit
    """

    low: float | None
    high: float | None


class FunctionPoint(TypedDict):
    """One size of a function.

    size: Bytes of a message
    trials: Its repeats' trials, in order
    repetitions: Timed by a rank in a repeat
    batch: So many repetitions follow each other with nothing between
    imb: By IMB's definitions
    by_repeat: The same of each repeat, in the order of `trials`; null: not measured whole
    repetition_us: Time of a repetition, microseconds, over all ranks and repeats; of batches
        their means
    ci_us: Confidence interval of the mean over repeats, as in `statistics`; null: fewer than
        two
    port_mbps: Payload that reached a port, Mbit/s: mean over the ports that received any, as
        the receivers saw it
    verified: Results that were computed and found right; null: nothing was computed
    """

    size: int
    trials: list[int]
    repetitions: int
    batch: int
    imb: ImbFigures
    by_repeat: NotRequired[list[ImbFigures]]
    repetition_us: RepetitionTimes
    ci_us: ConfidenceIntervalEntry | None
    port_mbps: float | None
    verified: int | None


class Function(CurveSetting):
    """A collective over its sizes.

    points: By size
    """

    points: list[FunctionPoint]


class KernelEntry(CurveSetting):
    """A kernel: the same steps repeated.

    trials: Its repeats' trials, in order
    repetitions: Iterations that were timed by a rank in a repeat
    iterations: Of the whole benchmark
    iteration_us: Time of one iteration, microseconds: the slowest rank's mean, mean over
        repeats
    total_s: Time of the whole benchmark: iterations x iteration_us
    by_repeat_s: The same of each repeat, in the order of `trials`; null: not measured whole
    ci_s: Confidence interval of total_s over repeats, as in `statistics`; null: fewer than two
    port_mbps: Payload that reached a port, Mbit/s: mean over the ports that received any
    """

    trials: list[int]
    repetitions: int
    iterations: int
    iteration_us: float | None
    total_s: float | None
    by_repeat_s: NotRequired[list[float | None]]
    ci_s: ConfidenceIntervalEntry | None
    port_mbps: float | None


class RankedPath(TypedDict):
    """A path in a ranking.

    path: A transport in a network
    total_s: Time of the whole benchmark
    ratio_to_fastest: total_s / that of the fastest
    """

    path: str
    total_s: float | None
    ratio_to_fastest: float | None


class Ranking(TypedDict):
    """Paths by the time of a kernel.

    pattern: Its name
    parameters: The pattern's, as the configuration gives them
    ranks: Endpoints of traffic in this network
    paths: The fastest first
    """

    pattern: str
    parameters: Free
    ranks: int
    paths: list[RankedPath]


class Steps(TypedDict):
    """What goes by steps (doc/how-to/hpcc-imb.md).

    functions: Times and rates against size
    kernels: Application kernels: the time of the whole benchmark (doc/reference/patterns.md)
    rankings: Kernels that several paths ran
    """

    functions: list[Function]
    kernels: list[KernelEntry]
    rankings: list[Ranking]


class ComparedThroughput(TypedDict):
    """Mean over the plan's flows, one way, verified by the receivers.

    layer: The bytes that an application would call its data
    unit: Decimal
    mean: Mean over the repetitions
    min: The slowest repetition
    max: The fastest repetition
    """

    layer: Literal["payload"]
    unit: Literal["Mbit/s"]
    mean: float | None
    min: float | None
    max: float | None


class RatioEntry(TypedDict):
    """Ratios to the baseline's: throughput above 1 is faster, CPU above 1 costs more.

    throughput: Of the means over the repetitions
    throughput_min: The lowest of one repetition by the baseline's same repetition
    throughput_max: The highest of these
    cpu_s_per_gb: Of CPU seconds by GB
    """

    throughput: float | None
    throughput_min: float | None
    throughput_max: float | None
    cpu_s_per_gb: float | None


class ComparedEntry(TypedDict):
    """One transport at one setting in a comparison, over all its repetitions.

    transport: dpdk, packet, tcp, udp or verbs
    options: What the sweep chose of its own options
    size: Bytes of a frame or a message, or the sizes of a mix
    size_unit: What `size` is of
    message_bytes: Payload of one message, or of one frame
    equal_size: false: frames whose payload is not the message's stand beside it
    load: The load as asked: percent of line rate, bps at layer 1, or fps
    intended_load: The load as asked in percent of line rate, mean over the ports
    repeats: How many repetitions were measured
    trials: Their numbers
    throughput: Mean over the plan's flows, one way, verified by the receivers
    percent_of_line: Mean over the repetitions; layer 1
    cpu_s_per_gb: CPU seconds of all machines by 10^9 bytes of payload, kernel and softirq
        included
    cpu_process_s_per_gb: Of it what the node processes used
    polling: Whether workers polled: each then burns a core, whatever comes
    ratio: This by the baseline's: throughput above 1 is faster, CPU above 1 costs more
    """

    transport: str
    options: Free
    size: Size
    size_unit: SizeUnit
    message_bytes: int | None
    equal_size: bool
    load: Free
    intended_load: float | None
    repeats: int
    trials: list[int]
    throughput: ComparedThroughput
    percent_of_line: float | None
    cpu_s_per_gb: float | None
    cpu_process_s_per_gb: float | None
    polling: bool | None
    ratio: RatioEntry


class ComparisonEntry(TypedDict):
    """One matrix at one message size over several transports, on the same ports.

    pattern: chain, pairs, aapc or ring
    parameters: The pattern's, as the configuration gives them
    network: The ports that can reach each other
    concurrent_networks: All networks of the trial, when several run at the same time
    ranks: Endpoints of traffic in this network
    traffic: stream: a rate for a time; transfer: a number of bytes; pingpong: round trips
    message_bytes: Payload of one message
    baseline: The transport that the others are divided by: tcp where it ran; of several
        settings its fastest
    alternated: Whether each repetition of all was over before the next of any; null: there was
        only one
    reason: Why they did not alternate
    transports: Each transport's settings: tcp, dpdk, verbs, and of one transport as they ran
    """

    pattern: str
    parameters: Free
    network: str
    concurrent_networks: list[str] | None
    ranks: Annotated[int, Field(ge=2)]
    traffic: Traffic
    message_bytes: Annotated[int, Field(ge=1)]
    baseline: str
    alternated: bool | None
    reason: str | None
    transports: Annotated[list[ComparedEntry], Field(min_length=2)]


class StatisticEntry(TypedDict):
    """The mean over the repeats of one setting.

    point: Number of the setting: what its repeats have in common
    test: Which entry of `tests`
    trials: Its repeats' trials, in order
    network: The ports that the plan ran on
    measure: Over the pattern's phases; repetition_us: of dependent steps, mean over ranks of a
        repetition's time
    unit: Of the values
    values: One for each repeat; null: not measured whole
    min_repeats: Made in any case
    max_repeats: Made at most
    target_ci_width_percent: Full width of the interval that was asked for, of the mean; null:
        none was
    confidence_percent: That the interval covers the true mean, if repeats are independent
    mean: Of the values that are known
    standard_deviation: Standard deviation of the sample
    ci_half_width: Of the interval; wider than Student's where repeats depend on each other
    ci_low: Lower end of the interval
    ci_high: Upper end of the interval
    ci_width_percent: Its full width, of the mean
    autocorrelation: Of each repeat with the next; null with less than 5
    dependent: Autocorrelation is beyond chance: Student's interval would be too narrow
    verdict: null: no width was asked for
    reason: Why it is inconclusive
    """

    point: int
    test: int
    trials: list[int]
    network: str
    measure: Literal["throughput", "repetition_us"]
    unit: str
    values: list[float | None]
    min_repeats: int
    max_repeats: int
    target_ci_width_percent: float | None
    confidence_percent: float
    mean: float | None
    standard_deviation: float | None
    ci_half_width: float | None
    ci_low: float | None
    ci_high: float | None
    ci_width_percent: float | None
    autocorrelation: float | None
    dependent: bool | None
    verdict: Literal["conclusive", "inconclusive"] | None
    reason: str | None


class SuiteSetting(TypedDict):
    """What a suite sent.

    pattern: What was sent
    parameters: The pattern's, by name
    transport: That carried it
    networks: Networks that were loaded together
    size: Of a frame, or an IMIX
    size_unit: frame
    """

    pattern: str
    parameters: Free
    transport: str
    networks: list[str]
    size: int | list[int]
    size_unit: str


class SearchEntry(SuiteSetting):
    """One goal of one search (RFC 9971, Goal Result).

    search: Number of the search in the run
    goal: Its goal: ndr, pdr, rfc2544 or tst009
    load_unit: Of the bounds, each port's: % of line, ...
    relevant_lower_bound: Highest load that met the goal; null: none did
    relevant_upper_bound: Lowest load that did not; null: all did
    conditional_throughput: Of the lower bound, less what its trials lost
    relative_width: Difference of the bounds by the upper one
    trials: Of the whole search, for all of its goals
    regular: Both bounds are there and near enough
    outcome: How the search ended, a sentence
    goal_loss_ratio: Of a trial, that the goal allows: 0 to 1
    goal_exceed_ratio: Of the sum of durations, of trials that may lose more
    goal_initial_trial_s: Of the first, short trials
    goal_final_trial_s: Of a trial that decides
    goal_duration_sum_s: Of the trials that decide a load, together
    goal_width: Largest relative_width that ends the search
    min_load: Of the range that is searched, in load_unit
    max_load: Of the range that is searched, in load_unit
    """

    search: int
    goal: str
    load_unit: str
    relevant_lower_bound: float | None
    relevant_upper_bound: float | None
    conditional_throughput: float | None
    relative_width: float | None
    trials: int
    regular: bool
    outcome: str
    goal_loss_ratio: float
    goal_exceed_ratio: float
    goal_initial_trial_s: float
    goal_final_trial_s: float
    goal_duration_sum_s: float
    goal_width: float
    min_load: float
    max_load: float


class TrialEntry(TypedDict):
    """One trial of a subtest, as its search was told of it.

    value: What the search varied, in the subtest's unit
    duration_s: Asked for; 0: the value says how long
    learning_rate: Addresses announced per second; null: none were
    offered: Test frames that were sent, all ports
    forwarded: That came to their destinations, all ports
    lost: Of the offered ones
    flooded: Frames that came to other ports than their destinations
    tester_limited: It decided nothing
    """

    value: float
    duration_s: float
    learning_rate: float | None
    offered: int
    forwarded: int
    lost: int
    flooded: int
    tester_limited: bool


class SubtestEntry(SuiteSetting):
    """One subtest of a suite at one size, with the rows of its table.

    subtest: Its name in the suite
    variant: Which of its matrices; null: the only one
    rows: Values by the keys of doc/reference/standards.md; null: not observed
    iterations: The longest burst of each search, in frames, in order
    unit: Of what its trials vary
    trials: That were measured, in order
    complete: Nothing that was asked for is missing
    outcome: How it ended, a sentence
    """

    subtest: str
    variant: str | None
    rows: list[dict[str, float | None]]
    iterations: list[int]
    unit: str
    trials: list[TrialEntry]
    complete: bool
    outcome: str


class SuiteEntry(TypedDict):
    """A document's suite: what each of its subtests found.

    name: ndr-pdr, rfc2544, rfc9004, rfc2889 or rfc8239
    parameters: Durations, widths, repeats, limits
    media: Of the ports, with their line rates
    traffic_classes: DSCP and PCP (CoS) of its frames; []: they have none
    subtests: In the order of the document
    """

    name: str
    parameters: dict[str, float]
    media: str
    traffic_classes: list[str]
    subtests: list[SubtestEntry]
