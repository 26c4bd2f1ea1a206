# SPDX-License-Identifier: BSD-3-Clause
"""Times from histograms: put together without error, and said only as far as they can be."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from rich.console import Console

from recorded import fed
from schemas import validate_summary
from switchbench.base.model import IPDV, ONE_WAY, ROUND_TRIP
from switchbench.records.rows import (
    Histogram,
    bucket_bounds,
    figure,
    figures,
    merged,
    phase_latency,
)
from switchbench.render.terminal import SummaryPrinter
from synthetic import about, make_run, make_site, make_trial, pair_records


def index_of(value: int) -> int:
    """As engine/measure/histogram.h has it."""
    if value < 128:
        return value
    power = value.bit_length() - 1
    return (power - 6) * 64 + (value >> (power - 6))


def record(values: list[int], **changes: Any) -> dict[str, Any]:
    """A histogram record in one part."""
    counts: dict[int, int] = {}
    for value in values:
        counts[index_of(value)] = counts.get(index_of(value), 0) + 1
    return {
        "count": len(values),
        "sum_ns": sum(values),
        "min_ns": min(values, default=None),
        "max_ns": max(values, default=None),
        "overflow": 0,
        "lost": None,
        "bound_ns": None,
        "buckets": " ".join(f"{index}:{number}" for index, number in counts.items()),
    } | changes


def times(values: list[int], **changes: Any) -> Histogram:
    """Times of one record."""
    made = Histogram()
    made.add_record(record(values, **changes))
    return made


def test_buckets_are_the_engines() -> None:
    for value in (0, 1, 127, 128, 129, 1000, 123_456, 10**9, 2**39 + 5):
        least, width = bucket_bounds(index_of(value))
        assert least <= value < least + width
        assert width <= max(1, value / 64)
    with pytest.raises(ValueError, match="2240"):
        bucket_bounds(2240)


def test_percentiles_are_within_the_stated_error() -> None:
    random.seed(7)
    values = [int(random.lognormvariate(10, 1)) for _ in range(20_000)]
    measured = times(values)
    values.sort()
    for share in (0.5, 0.9, 0.99, 0.999, 0.9999):
        exact = values[-(-int(share * 1e6) * len(values) // 10**6) - 1]
        assert measured.quantile_ns(share) == pytest.approx(exact, rel=1 / 127)
    shown = figures(ROUND_TRIP, measured)
    assert shown["min"] == values[0] / 1000
    assert shown["max"] == values[-1] / 1000
    assert shown["mean"] == pytest.approx(sum(values) / len(values) / 1000, abs=0.001)
    assert shown["reasons"] == {}


def test_merging_is_the_same_as_measuring_together() -> None:
    random.seed(3)
    parts = [[random.randrange(10**6) for _ in range(500)] for _ in range(8)]
    together = times([value for part in parts for value in part])
    assert merged(times(part) for part in parts) == together
    assert merged([times([5], lost=2), times([6], lost=1)]).lost == 3
    assert merged([times([5]), times([6])]).lost is None
    assert figures(ONE_WAY, merged(map(times, parts))) == figures(ONE_WAY, together)


def test_too_few_samples_are_said_and_not_printed() -> None:
    shown = figures(ROUND_TRIP, times([1000 + i for i in range(3000)]))
    assert shown["p99_9"] is not None
    assert shown["p99_99"] is None
    assert shown["reasons"] == {"p99_99": "p99.99 needs 10,000 samples, there are 3,000"}
    shown = figures(ROUND_TRIP, times([1000]))
    assert (shown["min"], shown["p50"], shown["pdv"]) == (1.0, None, None)
    assert shown["reasons"]["p50"] == "p50 needs 2 samples, there is 1"
    assert figures(ROUND_TRIP, None)["reasons"] == {"all": "nothing was measured"}
    whole = record(list(range(1, 101)))
    torn = Histogram()
    torn.add_record(whole | {"buckets": " ".join(whole["buckets"].split()[:50])})
    assert figures(ROUND_TRIP, torn)["p50"] is None
    assert figures(ROUND_TRIP, torn)["reasons"]["p50"] == "some of the histogram is missing"
    variation = figures(IPDV, times([3] * 2000))
    assert (variation["pdv"], "pdv" in variation["reasons"]) == (None, False)


def test_one_way_is_refused_where_the_clocks_differ_by_more() -> None:
    delays = [2000] * 900 + [50_000] * 100
    shown = figures(ONE_WAY, times(delays, bound_ns=20_000))
    assert shown["p50"] is None
    assert "may differ by 20 us, more than the 2" in shown["reasons"]["p50"]
    assert shown["max"] == 50.0
    assert shown["pdv"] == pytest.approx(48, rel=0.01)  # the offset cancels
    assert figure(ONE_WAY, "p50", times(delays, bound_ns=0)) == pytest.approx(2, rel=0.01)
    cut = figures(ONE_WAY, times([0] * 500 + [900] * 500, bound_ns=20_000))
    assert cut["pdv"] is None
    assert "cut off" in cut["reasons"]["pdv"]


def test_a_phase_names_its_worst_flow() -> None:
    flows = {
        ("a:e0", "b:e0"): {ROUND_TRIP: times([1000] * 200)},
        ("b:e0", "a:e0"): {ROUND_TRIP: times([1000] * 190 + [9000] * 10)},
    }
    entry = phase_latency(flows)
    assert entry[ONE_WAY] is None
    assert entry[ROUND_TRIP]["count"] == 400
    worst = entry[ROUND_TRIP]["worst"]
    assert (worst["src"], worst["dst"]) == ("b:e0", "a:e0")
    assert worst["p99"] == pytest.approx(9, rel=0.01)


ENDS = {"src": "node1:e0", "dst": "node2:e0"}
PLACE = {"trial": 0, "repeat": 0, "network": "lab", "phase": 0}


def summarise(*clauses: dict[str, Any], bound_ns: int = 0) -> dict[str, Any]:
    """A run of one pair with times, checked against the schema."""
    head = {"type": "histogram", "node": "node1"} | PLACE | ENDS
    trips = head | {"kind": "round_trip"} | record([300_000] * 150, lost=2)
    delays = (
        head | {"node": "node2"} | {"kind": "one_way"} | record([150_000] * 8000, bound_ns=bound_ns)
    )
    records = pair_records()
    records[-4:-4] = [trips, delays]
    site = make_site()
    summary = fed(make_run(site, make_trial(site), expectations=clauses), records)
    result = summary.finish(about(), [])
    validate_summary(result)
    return result


def printed(summary: dict[str, Any], width: int = 220, **options: Any) -> str:
    stream = io.StringIO()
    SummaryPrinter(summary, Console(file=stream, width=width, no_color=True), **options).print(
        "results/x"
    )
    return stream.getvalue()


def test_a_narrow_terminal_has_fewer_figures_and_none_is_cut() -> None:
    summary = summarise(bound_ns=20_000)
    text = printed(summary, width=55, every_time=True)
    head = next(line for line in text.splitlines() if "lost  " in line and "p50" in line)
    assert head.split() == ["kind", "times", "lost", "min", "p50", "p99", "max"]
    assert "…" not in "".join(text.splitlines()[text.splitlines().index(head) :][:6])
    assert "one way: ± 20.00 µs, which the clocks may differ by" in text
    assert "± " not in printed(summarise(), every_time=True)


def test_of_many_phases_those_with_the_longest_times_are_printed() -> None:
    (entry,) = summarise()["trials"]
    phases = [
        entry
        | {"phase": number, "phase_name": f"phase {number}"}
        | {"latency": {ROUND_TRIP: figures(ROUND_TRIP, times([number * 1000] * 3))}}
        for number in range(8)
    ]
    summary = summarise() | {"trials": phases, "plans": []}
    shown = printed(summary, every_time=True).partition("Times in")[2].partition("\n\n")[0]
    assert [number for number in range(8) if f"phase {number}\n" in shown] == [3, 4, 5, 6, 7]
    shown = printed(summary, every_time=True, every_phase=True)
    assert all(f"phase {number}\n" in shown for number in range(8))
