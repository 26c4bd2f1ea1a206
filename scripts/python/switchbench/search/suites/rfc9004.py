# SPDX-License-Identifier: BSD-3-Clause
"""RFC 9004, Updates for the Back-to-Back Frame Benchmark in RFC 2544."""

from __future__ import annotations

from ...base.measures import NEITHER
from . import declaration
from .declaration import (
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
    THROUGHPUT_VALUES,
    above_forwarding,
    burst_range,
    burst_row,
    capped,
    search_bursts,
    search_throughput,
    throughput_goal,
    throughput_percent,
    throughput_rows,
)
from .rfc2544 import SIZES

AT_LINE_RATE = (
    "Excluded: the device forwards this size at the max rate, so that no burst fills its buffers "
    "(RFC 9004, 6.1)."
)


def _bursts(point: SuitePoint, earlier: Earlier) -> Method | str:
    percent = throughput_percent(earlier)
    if isinstance(percent, str):
        return percent
    if percent >= point.loads.max:
        return Excluded(AT_LINE_RATE)
    return search_bursts(point, earlier)


def _rows(measured: SubtestTrials) -> Rows:
    row, percent = burst_row(measured), throughput_percent(measured.earlier)
    mean, max_fps = row["back_to_back"], measured.point.max_fps
    if mean is not None and max_fps is not None and not isinstance(percent, str):
        row["implied_buffer_us"] = mean / max_fps * 1e6
        if not capped(measured):
            # 6.4, of the port that receives: of all frames of a burst those that did not leave.
            waits = measured.point.sources * (1 - percent / 100)
            row["buffer_us"] = waits * row["implied_buffer_us"]
    return [row]


RFC9004 = Suite(
    name="rfc9004",
    document="RFC 9004",
    title="Back-to-back frames (RFC 9004)",
    subtests=(
        Subtest(
            "throughput", "5", "Throughput, many to one",
            "The prerequisite: of each sending port the fastest rate at which no frame is lost.",
            declaration.many_to_one, search_throughput, throughput_rows, THROUGHPUT_VALUES,
            goals=throughput_goal, ports_min=3, no_result=above_forwarding,
        ),
        Subtest(
            "back-to-back", "6", "Back-to-back frames",
            "Bursts at line rate of all ports but one to that one, of the sizes whose throughput "
            "is below line rate. The step of the search is one frame.",
            declaration.many_to_one, _bursts, _rows,
            (
                *BURST_VALUES,
                Value("implied_buffer_us", "implied buffer", "us",
                      "Mean burst of one sending port / theoretical max rate", better=NEITHER),
                Value("buffer_us", "corrected buffer", "us",
                      "Sending ports x implied buffer time x (1 - throughput / theoretical max): "
                      "what the buffers hold, without the frames that left during the burst, as "
                      "time of the port that receives; none where the longest burst was held"),
            ),
            quantity="burst", range=burst_range, needs=("throughput",), ports_min=3,
            keys={"traffic": "burst"},
        ),
    ),
    sizes=SIZES,
    parameters=SuiteParameters(burst_s=30.0),
    lab=SuiteParameters(
        trial_s=2.0, initial_s=0.5, burst_s=0.2, burst_repeats=2, drain_s=0.3,
    ),
    lab_sizes=(64, 512, 1518),
    uses=("trial_s", "initial_s", "width", "burst_s", "burst_repeats", "drain_s"),
    refused={},
    statements=(
        Statement("6.2", "MUST", "the search algorithm's input parameters, and its step size",
                  "sentence `Parameters`; table `rfc9004-back-to-back`, sentence above it"),
        Statement("6.3", "MUST", "each back-to-back value is there for further processing",
                  "table `rfc9004-back-to-back`, column each search"),
        Statement("7", "MUST", "the number of tests averaged, N",
                  "table `rfc9004-back-to-back`, column searches"),
        Statement("7", "SHOULD", "a table with a row per size: size, mean frame count",
                  "table `rfc9004-back-to-back`"),
        Statement("7", "SHOULD", "min, max and standard deviation over the tests",
                  "table `rfc9004-back-to-back`"),
        Statement("7", "SHOULD", "the corrected DUT buffer time",
                  "table `rfc9004-back-to-back`, column corrected buffer"),
        Statement("7", "SHOULD", "the max burst length, where it is limited",
                  "sentence `Parameters`, burst_s x the theoretical max"),
    ),
    deviations=(
        "Bursts come from all ports but one at the same time, so that devices at line rate have a "
        "limit, too. The buffer is that of the receiving port: formula 6.4 counts the frames of "
        "all sending ports.",
        "The binary search of TST 009 has loss verification: a length that lost frames is tried "
        "once more.",
        LATE_SENDERS,
    ),
)  # fmt: skip
