# SPDX-License-Identifier: BSD-3-Clause
"""Collective operations and ping-pong messages: keys, documents, times of repetitions, curves,
single times."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from configs import LAB, compile_text, needs_engine
from recorded import fed
from switchbench.analysis import series
from switchbench.analysis.series import ExecutionTable, port_rate_mbps
from switchbench.analysis.statistics import RepeatTable, interval
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Part, Repeats, Schedule, ScheduleShape, Site, Trial
from switchbench.plan import compile
from switchbench.plan.documents import trial_document
from switchbench.plan.engine import PlanSize, plan_size
from switchbench.records.collector import times_row
from switchbench.records.rows import Histogram, NameIndex, PhaseKey, PhaseRows, Rows
from switchbench.records.summary_form import summary_schema
from switchbench.render.tables import TABLES
from synthetic import (
    about,
    buckets_of,
    make_run,
    make_site,
    make_trial,
    phase_record,
    tcp_side,
    times_record,
)

TCP = LAB + "transport: tcp\n"


@pytest.mark.rows
def test_memory_of_all_ranks(
    test: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab's ranks share this host's."""

    def size(ranks: int, pattern: Any, seed: int) -> PlanSize:
        return PlanSize(1, 2, ScheduleShape(2, 3, 4096, None), 1000 << 20)

    monkeypatch.setattr(compile, "plan_size", size)
    monkeypatch.setattr(compile, "spare_bytes", lambda: 1000 << 20)
    compile_text(tmp_path, f"{TCP}tests:\n- {test}\n")
    monkeypatch.setattr(compile, "spare_bytes", lambda: 999 << 20)
    with pytest.raises(ConfigurationError) as error:
        compile_text(tmp_path, f"{TCP}tests:\n- {test}\n")
    assert str(error.value) == (
        f"{tmp_path / 'conf.yaml'}:5: tests.0.{key}: the messages of all ranks need 1000 MiB of "
        "memory, and this host has 999 MiB to spare: use smaller messages or fewer ranks"
    )


# --- what was measured ---------------------------------------------------------------------------


def execution(trial: Trial, rank: str, times_us: list[float], **changes: Any) -> dict[str, Any]:
    """Return a rank's record of repetitions; with a batch, of their means."""
    times = [round(1000 * time) for time in times_us]
    batch = trial_document(trial)["schedule"]["batch"]
    return {
        "type": "execution", "node": rank.partition(":")[0], "trial": trial.id,
        "repeat": trial.repeat, "phase": 0, "network": "lab", "rank": rank,
        "repetitions": batch * len(times), "batch": batch, "batches": len(times),
        "sum_ns": batch * sum(times), "min_ns": min(times), "max_ns": max(times),
        "verified": None, "buckets": buckets_of(times),
    } | changes  # fmt: skip


def steps_trial(number: int = 0, batch: int = 1, **changes: Any) -> Trial:
    """Return a trial of two ranks that goes by steps."""
    more = {
        "transport": "tcp", "traffic": "schedule", "size_unit": "message", "sizes": (1024,),
        "pattern": {"name": "sendrecv"}, "parameters": {"batch": batch},
        "schedule": Schedule(batch, 0, 1, False),
    }  # fmt: skip
    return make_trial(make_site(), number, **(more | changes))


def table_of(*records: tuple[Trial, dict[str, Any]]) -> ExecutionTable:
    """Return a table with these records."""
    table, by_trial = ExecutionTable(), {trial.id: trial for trial, _ in records}
    for trial in by_trial.values():
        rows = [times_row(record) for one, record in records if one is trial]
        table.add(trial, "lab", PhaseRows(tables={"histograms": Rows.of("histograms", rows)}))
    return table


@pytest.mark.rows
def test_times_over_ranks(
    times_us: list[list[float]], mean: float | None, slowest: float | None
) -> None:
    trial = steps_trial()
    ranks = enumerate(times_us, start=1)
    table = table_of(
        *((trial, execution(trial, f"node{i}:e0", some, verified=2)) for i, some in ranks)
    )
    (point,) = table.summary()["functions"][0]["points"]
    found = point["repetition_us"]
    assert (found["mean"], found["slowest_rank"], point["by_repeat_us"]) == (mean, slowest, [mean])
    assert table.average_us(trial, "lab") == mean
    every = [one for some in times_us for one in some]
    assert (point["repetitions"], point["verified"]) == (len(times_us[0]), 2 * len(times_us))
    assert (point["repetition_us"]["min"], point["repetition_us"]["max"]) == (
        min(every),
        max(every),
    )
    assert (point["repetition_us"]["p99"], point["ci_us"]) == (None, None)


def test_ranks_and_flows_of_barriers_alone_are_left_out() -> None:
    """A ping-pong among three: times are over the two that play, and so are percentiles; the
    flows that only barriers use are none of the plan's."""
    trial = steps_trial(
        pattern={"name": "pingpong"}, parts=(Part("lab", make_site(3).ports),), flows=3
    )
    times = {"node1:e0": [200.0, 220.0], "node2:e0": [180.0, 200.0], "node3:e0": [0.04, 0.06]}
    records = [
        tcp_side(side, f"node{src}:e0", f"node{dst}:e0", sent, sent, messages=count)
        for src, dst, sent, count in ((1, 2, 2048, 2), (2, 1, 2048, 2), (2, 3, 0, 0), (3, 1, 0, 0))
        for side in ("source", "destination")
    ]
    records += [execution(trial, rank, some) for rank, some in times.items()]
    records += [phase_record(f"node{i}") for i in (1, 2, 3)]
    summary = summary_of([trial], records, make_site(3))
    (point,) = summary["steps"]["functions"][0]["points"]
    times = point["repetition_us"]
    assert (times["mean"], times["slowest_rank"], times["min"]) == (200.0, 210.0, 180.0)
    (phase,) = summary["trials"]
    assert phase["state"] == "complete"
    assert (phase["flows"], phase["flows_observed"]) == (2, 2)
    assert phase["throughput"]["min"] == phase["throughput"]["mean"] > 0


def test_a_rank_that_ended_early_is_not_idle() -> None:
    """Without messages and without a repetition there is no mean, as before."""
    trial = steps_trial()
    table = table_of(
        (trial, execution(trial, "node1:e0", [10.0])),
        (trial, execution(trial, "node2:e0", [1.0], batches=0, buckets="")),
    )
    assert table.average_us(trial, "lab") is None


def test_interval_over_repeats() -> None:
    """Student's interval of the mean over the repeats: t is 4.303 for three of them."""
    trials = [steps_trial(i, repeat=i) for i in range(3)]
    records = [
        (trial, execution(trial, f"node{i}:e0", [float(90 + 10 * trial.id)]))
        for trial in trials
        for i in (1, 2)
    ]
    (point,) = table_of(*records).summary()["functions"][0]["points"]
    half = 4.303 * 10 / math.sqrt(3)
    assert (point["repetition_us"]["mean"], point["by_repeat_us"]) == (100.0, [90, 100, 110])
    assert point["ci_us"]["low"] == pytest.approx(100 - half, rel=1e-4)
    assert point["ci_us"]["high"] == pytest.approx(100 + half, rel=1e-4)
    assert point["trials"] == [0, 1, 2]


def test_rate_of_ports() -> None:
    """Flows of a port add up; a port that nothing was sent to has none; unknown stays unknown."""
    rates = np.array([1e6, 2e6, 5e6, 0.0])
    assert port_rate_mbps(NameIndex.of("aabc"), rates) == 4.0
    assert port_rate_mbps(NameIndex.of("aabcc"), np.append(rates, np.nan)) is None
    assert port_rate_mbps(NameIndex.of("a"), np.zeros(1)) is None


def summary_of(
    trials: list[Trial], records: list[dict[str, Any]], site: Site | None = None
) -> dict[str, Any]:
    """Return a whole summary of these records."""
    return fed(make_run(site or make_site(), *trials), records).finish(about(), [])


# --- kernels -------------------------------------------------------------------------------------


def kernel_run(
    transport: str, number: int, times_us: tuple[float, float], repeat: int = 0
) -> list[Any]:
    """Return a trial of a kernel of 15 iterations, and its two ranks' records."""
    trial = steps_trial(
        number, point=number - repeat, repeat=repeat, transport=transport,
        pattern={"name": "nas_cg", "class": "S"},
        parameters={"problem_class": "S", "batch": 1}, sizes=(0,),
        steps=ScheduleShape(131, 105, 291632, 15),
    )  # fmt: skip
    ranks = enumerate(times_us, start=1)
    return [trial, [execution(trial, f"node{i}:e0", [time]) for i, time in ranks]]


def test_kernels() -> None:
    """Iterations times the slowest rank's mean."""
    slow, fast = kernel_run("tcp", 0, (2000.0, 3000.0)), kernel_run("verbs", 1, (900.0, 1000.0))
    summary = summary_of([slow[0], fast[0]], slow[1] + fast[1])
    jsonschema.validate(summary, summary_schema())
    steps = summary["steps"]
    assert [kernel["total_s"] for kernel in steps["kernels"]] == [0.045, 0.015]
    assert steps["functions"] == []
    table = TABLES["kernels"](summary)
    assert table is not None
    assert table.rows == 2


def test_one_mean_has_one_interval() -> None:
    """Of repeats until their mean is sure enough: of functions, kernels and `statistics` alike."""
    asked, times = Repeats(5, 9, 0.5), (48.0, 51.0, 49.0, 53.0, 50.0)
    trials = [steps_trial(i, repeat=i, point=0, repeats=asked) for i in range(5)]
    repeats = RepeatTable(trials)
    for trial, us in zip(trials, times, strict=True):
        repeats.add(trial, "lab", us)
    (statistic,) = repeats.summary()
    table = table_of(
        *(
            (trial, execution(trial, f"node{i}:e0", [us]))
            for trial, us in zip(trials, times, strict=True)
            for i in (1, 2)
        )
    )
    (point,) = table.summary()["functions"][0]["points"]
    assert point["ci_us"] == {
        "low": pytest.approx(statistic["ci_low"]), "high": pytest.approx(statistic["ci_high"]),
    }  # fmt: skip
    found = interval(times, 0.95, chosen=True)
    assert found is not None
    assert statistic["ci_half_width"] == pytest.approx(found.ci_half_width)
    runs = [kernel_run("tcp", i, (us, us), repeat=i) for i, us in enumerate(times)]
    kernels = summary_of(
        [replace(trial, repeats=asked) for trial, _ in runs],
        [record for _, records in runs for record in records],
    )["steps"]["kernels"]
    assert (kernels[0]["trials"], kernels[0]["iteration_us"]) == ([0, 1, 2, 3, 4], 50.2)
    assert kernels[0]["by_repeat_s"] == pytest.approx([15e-6 * us for us in times])
    assert kernels[0]["ci_s"]["low"] == pytest.approx(15e-6 * found.ci_low, abs=1e-6)
    assert kernels[0]["ci_s"]["high"] == pytest.approx(15e-6 * found.ci_high, abs=1e-6)


@needs_engine
@pytest.mark.rows
def test_what_a_repetition_is(pattern: dict[str, Any], share: list[int | None] | None) -> None:
    """As the engine says it of four ranks; other plans have none."""
    found = plan_size(4, pattern, 1).share
    assert found == (share and ScheduleShape(*share))  # type: ignore[arg-type]


# --- messages there and back ----------------------------------------------------------------------


def pingpong(trial: int, times_ns: list[int], **changes: Any) -> dict[str, Any]:
    """Return a flow's record of a ping-pong's round trips."""
    return times_record(times_ns, trial=trial, **{"kind": "pingpong", "lost": 0} | changes)


def add(table: series.SweepTable, record: dict[str, Any]) -> None:
    """Add the times of one record to a table."""
    times = Histogram.of_row(times_row(record))
    key = PhaseKey(record["trial"], record["repeat"], record["network"], record["phase"])
    table.add(key, {(record["src"], record["dst"]): {record["kind"]: times}})


def test_curve() -> None:
    """Half the round trip, and the bandwidth by it."""
    table = series.SweepTable({(0, 0): make_trial(make_site(), sizes=(4,), traffic="pingpong")})
    add(table, pingpong(0, [100_064] * 100))
    (point,) = next(table.curves())["points"]
    assert point["latency_us"]["mean"] == pytest.approx(50.032, rel=1e-4)
    assert point["latency_us"]["p99"] == point["latency_us"]["max"]
    assert point["bandwidth_mbps"] == pytest.approx(8 * 4 / 50.032, rel=1e-4)


def test_few_round_trips_have_no_percentile() -> None:
    """p99 of fifty times would be a guess: there is none."""
    trials = {(0, 0): make_trial(make_site(), sizes=(64,), traffic="pingpong")}
    table = series.SweepTable(trials)
    add(table, pingpong(0, list(range(2000, 2050)), lost=2))
    (point,) = next(table.curves())["points"]
    assert point["latency_us"]["p99"] is None
    assert point["latency_us"]["p50"] == pytest.approx(1.012, abs=0.01)
    assert (point["round_trips"], point["lost"]) == (50, 2)
