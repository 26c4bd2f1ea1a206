# SPDX-License-Identifier: BSD-3-Clause
"""The report's figures: the numbers in their traces are the summary's and the records'."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from recorded import replace_rows, rows_in
from simulated import SPANS, Choice, simulate
from switchbench.analysis.data import Measured, PlanKey, PlanTimes, Spans, plan_key
from switchbench.records.directory import SUMMARY
from switchbench.records.summary_form import summary_schema
from switchbench.render.report import build, chart, rates, times
from switchbench.render.report.chart import Figure, packed, unpacked
from switchbench.render.tables import Heading as names

RANKS = 16
Trace = dict[str, Any]


def figures(measured: Measured) -> list[Figure]:
    """All figures that the run has data for."""
    return [one for kind in build.KINDS for one in kind(measured)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    choice = Choice(ranks=RANKS, repeats=2)
    return simulate(tmp_path_factory.mktemp("simulated") / "run", choice)


@pytest.fixture(scope="module")
def measured(directory: Path) -> Measured:
    return Measured.load(directory)


@pytest.fixture(scope="module")
def drawn(measured: Measured) -> dict[str, Figure]:
    return {one.name: one for one in figures(measured)}


def trace(one: Figure, *words: str) -> Trace:
    """The first trace whose name has all of these words."""
    return next(t for t in one.data if all(word in t["name"] for word in words))


def plans_of(measured: Measured, **wanted: Any) -> list[dict[str, Any]]:
    return [
        plan
        for plan in measured.summary["plans"]
        if all(plan[key] == value for key, value in wanted.items())
    ]


# --- all of them -------------------------------------------------------------------------------


def test_a_simulated_summary_is_of_the_schema(directory: Path) -> None:
    summary = json.loads((directory / SUMMARY).read_text())
    assert list(Draft202012Validator(summary_schema()).iter_errors(summary)) == []
    assert summary["status"] == "complete"


@pytest.mark.parametrize("part", ["PhaseEntry", "PlanEntry", "ComparisonEntry"])
def test_the_schema_and_the_figures_know_every_kind_of_traffic(part: str) -> None:
    known = summary_schema()["$defs"][part]["properties"]["traffic"]["enum"]
    kinds = {"stream", "transfer", "burst", "pingpong", "schedule"}
    assert set(known) == set(rates._TRAFFIC) == kinds


def test_every_kind_is_drawn_that_the_run_has_data_for(drawn: dict[str, Figure]) -> None:
    sections = [one.section for one in drawn.values()]
    assert sections == sorted(sections, key=list(names).index)
    assert set(sections) == {
        *(names.NODES, names.PAIRS, names.ALL_TO_ALL, names.WHOM, names.COURSE),
        *(names.LATENCY, names.LOSS),
    }


def test_figures_are_values_of_json_with_a_definition(drawn: dict[str, Figure]) -> None:
    for one in drawn.values():
        assert json.loads(json.dumps([one.data, one.layout], allow_nan=False))
        assert len(one.definition) > 60
        assert "title" not in one.layout
        for axis in ("xaxis", "yaxis"):
            assert axis in one.layout


def test_series_of_a_figure_differ_without_colour(drawn: dict[str, Figure]) -> None:
    for one in drawn.values():
        lines = [t for t in one.data if t["type"] == "scatter" and "lines" in t["mode"]]
        styles = [
            (t["line"].get("dash"), t["line"].get("width"), str(t.get("marker"))) for t in lines
        ]
        per_group = len({t.get("legendgroup") for t in lines}) if one.name[:6] == "phases" else 0
        assert len(set(styles)) >= (per_group or len(styles))


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    choice = Choice(ranks=8, transports=("tcp",), patterns=("pairs",), times_every=0)
    measured = Measured.load(simulate(tmp_path / "run", choice))
    assert [one.name for one in figures(measured)] == ["pairs", "course-1"]


# --- numbers -----------------------------------------------------------------------------------


def rate_of(directory: Path, plan: PlanKey, src: str, dst: str) -> float:
    """A flow's throughput in Mbit/s, by hand."""
    wanted = (*plan, src, dst)
    keys = ("trial", "repeat", "network", "src", "dst")
    rows = rows_in(directory, "flows")
    row = next(row for row in rows if tuple(row[key] for key in keys) == wanted)
    return 8e3 * float(row["received_window_payload_bytes"]) / float(row["received_window_ns"])


def test_heat_map_has_each_flow_at_its_place(
    directory: Path, measured: Measured, drawn: dict[str, Figure]
) -> None:
    one = drawn["heat-map-1"].data[0]
    cells = unpacked(one["z"])
    assert cells.shape == (RANKS, RANKS)
    assert np.isnan(np.diag(cells)).all()
    plans = plans_of(measured, pattern="aapc", transport="dpdk")
    for src, dst in (("node1", "node2"), ("node3", "node12"), ("node16", "node1")):
        by_hand = [rate_of(directory, plan_key(p), f"{src}:e0", f"{dst}:e0") for p in plans]
        shown = cells[one["y"].index(src), one["x"].index(dst)]
        assert shown == pytest.approx(np.mean(by_hand), rel=4e-5)


def test_heat_map_is_ordered_by_module(measured: Measured, drawn: dict[str, Figure]) -> None:
    assert [measured.modules[port] for port in measured.ports] == sorted(measured.modules.values())
    assert measured.names == [f"node{number + 1}" for number in range(RANKS)]
    layout = drawn["heat-map-1"].layout
    assert [note["text"] for note in layout["annotations"]] == [f"module{i}" for i in range(1, 5)]
    between = sorted({s["x0"] for s in layout["shapes"] if s["x0"] == s["x1"]})
    assert between == [3.5, 7.5, 11.5]


def test_modules_come_together_whatever_the_sites_order() -> None:
    from switchbench.analysis.data import _in_order

    ports = ["node10:e0", "node1:e0", "node2:e0", "node3:e0"]
    modules = {"node10:e0": "a", "node1:e0": "b", "node2:e0": "a", "node3:e0": "b"}
    summary = {"ports": [{"port": port} for port in ports]}
    assert _in_order(summary, modules) == ["node2:e0", "node10:e0", "node1:e0", "node3:e0"]
    assert _in_order(summary, {}) == ports


def test_a_pair_that_one_repeat_did_not_observe_has_the_others_mean() -> None:
    code = np.array([1, 1, 2])
    values = np.array([4.0, np.nan, np.nan])
    sums = rates._sums(code, values, 2)
    assert sums[0, 1] == 4.0
    assert np.isnan(sums[1, 0])
    assert np.isnan(sums[0, 0])
    assert rates._sums(code, np.ones(3), 2, values)[0, 1] == 1.0


def test_a_loss_map_is_made_of_all_frames_of_the_summary(measured: Measured) -> None:
    plans = plans_of(measured, transport="dpdk")
    assert plans
    for plan in plans:
        flows = measured.records.flows(plan_key(plan))
        assert flows is not None
        assert flows.lost.sum() == plan["lost_frames"]
        assert flows.offered.sum() == plan["offered_frames"]


def test_of_many_settings_the_most_uneven_have_a_map(
    measured: Measured, drawn: dict[str, Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MAPS", 1)
    (one, *others) = rates.maps(measured)
    maps = {name for name in drawn if name.startswith("heat-map") and "loss" not in name}
    assert [other.name for other in others] in ([], ["heat-map-1-loss"])
    assert f"{len(maps) - 1} settings whose pairs are more alike" in one.definition
    assert "pairs are more alike" not in drawn["heat-map-1"].definition


def test_many_ranks_share_cells_that_show_the_worst() -> None:
    axis = rates._Axis(np.arange(4), ["a to b", "c to d"], [], 2)
    cells = np.arange(16.0).reshape(4, 4)
    assert axis.folded(cells, np.fmin).tolist() == [[0.0, 2.0], [8.0, 10.0]]
    assert axis.folded(cells, np.fmax).tolist() == [[5.0, 7.0], [13.0, 15.0]]
    assert rates._block(6 * 1024 * 1024) == 1
    assert rates._block(8 * 1024 * 1024) == 2


def test_course_shows_the_span_in_which_all_fell(measured: Measured) -> None:
    plan = plans_of(measured, pattern="pairs", transport="tcp")[0]
    spans = measured.records.spans(plan_key(plan))
    assert spans is not None
    assert len(spans.src) == RANKS * SPANS
    last = spans.to_ms == spans.to_ms.max()
    least = measured.phases_of(plan)[0]["intervals"]["min"]
    assert spans.mbps[last].min() == pytest.approx(least, rel=1e-4)
    assert spans.mbps[last].max() < spans.mbps[~last].min()


def test_the_end_of_a_transfer_is_each_flows_own() -> None:
    """Flows of two phases and three ports; one of them brings nothing."""
    flows = [(phase, src, dst) for phase in (0, 1) for src, dst in ((0, 1), (1, 0), (0, 2), (2, 0))]
    phase, src, dst = (np.repeat([flow[i] for flow in flows], 3) for i in range(3))
    ends = np.tile([0.5, 1.5, 2.5], len(flows))
    came = np.concatenate([[9.0] * done + [0.0] * (3 - done) for done in (3, 2, 1, 0, 1, 2, 3, 3)])
    kept = Spans(phase, src, dst, ends - 0.5, ends, came).until_done()
    left = [int(((kept.phase == p) & (kept.src == s) & (kept.dst == d)).sum()) for p, s, d in flows]
    assert left == [2, 1, 0, 0, 0, 1, 2, 2]


def test_distribution_agrees_with_the_summarys_percentiles(
    measured: Measured, drawn: dict[str, Figure]
) -> None:
    plan = plans_of(measured, pattern="pairs", transport="dpdk")[0]
    times = measured.records.times(plan_key(plan), "one_way")
    assert times is not None
    latency = measured.phases_of(plan)[0]["latency"]["one_way"]
    assert times.counts.sum() == latency["count"]
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)):
        assert times.quantile_ns(share) / 1e3 == pytest.approx(latency[name], rel=0.01)
    curve = trace(drawn["percentiles-one-way"], "pairs")
    assert unpacked(curve["x"])[0] == pytest.approx(100)
    assert (np.diff(unpacked(curve["x"])) <= 0).all()


# --- messages ----------------------------------------------------------------------------------


def curve(transport: str, ranks: int) -> dict[str, Any]:
    times = {"min": 10.0, "p50": 19.0, "p99": 50.0, "max": 90.0}
    points = [
        {"size": size, "bandwidth_mbps": 2.0 * size, "latency_us": times | {"mean": 20.0 + size}}
        for size in (4, 1024, 1 << 20)
    ]
    about = {"pattern": "pairs", "parameters": {"partners": "neighbours"}, "network": "lab"}
    return about | {
        "transport": transport, "ranks": ranks, "points": points, "peak_mbps": 2.0 * (1 << 20)
    }  # fmt: skip


def test_messages_by_size_overlay_the_transports() -> None:
    curves = [curve(transport, ranks) for transport in ("tcp", "dpdk") for ranks in (2, 4)]
    measured = Measured(Path(), {"messages": {"curves": curves}})
    bandwidth, latency = times.messages(measured)
    for one in (bandwidth, latency):
        assert [t["name"] for t in one.data] == [
            "tcp, 2 nodes", "tcp, 4 nodes", "dpdk, 2 nodes", "dpdk, 4 nodes"
        ]  # fmt: skip
        assert len({(t["line"]["dash"], t["marker"]["symbol"]) for t in one.data}) == 4
        assert one.layout["xaxis"]["type"] == one.layout["yaxis"]["type"] == "log"
        assert one.layout["xaxis"]["ticktext"][:2] == ["4 B", "16 B"]
    assert latency.data[0]["y"] == [24.0, 1044.0, 20.0 + (1 << 20)]
    # In Gbit/s: the largest is beyond 10,000 Mbit/s.
    assert bandwidth.data[0]["y"] == pytest.approx([0.008, 2.048, 2.0 * (1 << 20) / 1000])


def test_thinning_keeps_lone_times() -> None:
    """Of 200 that are far from the rest nearly each is alone in its field."""
    random = np.random.default_rng(1)
    size = np.exp(random.uniform(np.log(4), np.log(1 << 18), 200_000))
    time_us = (100 + size / 10) * random.lognormal(0, 0.1, len(size))
    far = np.arange(0, len(size), 1000)
    time_us[far] *= 30
    chosen = times.thinned(size, time_us, 5000)
    assert len(set(far) & set(chosen)) > 0.8 * len(far)
    assert 4000 < len(np.unique(chosen)) == len(chosen) <= 5000
    assert len(times.thinned(size[:2000], random.uniform(90, 110, 2000), 1500)) == 1500


# --- what a directory may be like --------------------------------------------------------------


@pytest.fixture
def copy(directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(directory, tmp_path / "copy"))


def test_without_tables_the_summarys_figures_are_there(copy: Path) -> None:
    remove_tables(copy)
    names = {one.name for one in figures(Measured.load(copy))}
    assert {"nodes-chain", "pairs", "plans", "phases-1"} <= names
    assert not any(name.startswith(("heat", "course", "latency")) for name in names)


def remove_tables(directory: Path) -> None:
    for file in directory.glob("*.parquet"):
        file.unlink()


def test_what_was_not_observed_is_drawn_as_a_gap(copy: Path) -> None:
    """A run that broke off: times unknown, throughput of whole phases unknown."""
    rows = rows_in(copy, "flows")
    replace_rows(copy, "flows", [row | {"received_window_ns": None} for row in rows])
    summary = json.loads((copy / SUMMARY).read_text())
    for plan in summary["plans"]:
        plan["elapsed_s"] = None
    for phase in summary["trials"][::2]:
        phase["throughput"] |= dict.fromkeys(("min", "mean", "max", "total"))
        phase |= dict.fromkeys(("start_skew_us", "lost_frames", "cpu_s"))
    (copy / SUMMARY).write_text(json.dumps(summary))
    made = {one.name: one for one in figures(Measured.load(copy))}
    assert json.dumps([[one.data, one.layout] for one in made.values()], allow_nan=False)
    assert not any(name.startswith("heat") for name in made)
    assert trace(made["plan-times"], "tcp")["text"] == ["-"] * len(
        trace(made["plan-times"], "tcp")["y"]
    )


# --- arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        np.arange(100, dtype=np.float64) / 3,
        np.arange(100, dtype=np.int64),
        np.array([1 << 40] * 30),
        np.arange(60, dtype=np.float32).reshape(6, 10),
        np.array([1.5, np.nan, 2.5]),
    ],
)
def test_packed_arrays_come_back(values: Any) -> None:
    text = json.dumps(packed(values), allow_nan=False)  # null is what was not observed
    assert unpacked(json.loads(text)) == pytest.approx(values, nan_ok=True)


def test_coarse_numbers_are_within_what_is_shown() -> None:
    values = np.random.default_rng(1).uniform(1e-6, 1e6, 10_000)
    assert np.abs(chart.coarse(values) / values - 1).max() < 4e-5
    assert np.isnan(chart.coarse(np.array([np.nan]))).all()
    assert chart.coarse(np.array([0.0, 100.0])).tolist() == [0.0, 100.0]


def test_times_of_plans_add_up() -> None:
    one = PlanTimes(np.array([10.0, 20.0]), np.array([1, 2]))
    both = PlanTimes.merged([one, PlanTimes(np.array([20.0, 30.0]), np.array([3, 4]))])
    assert both.values_ns.tolist() == [10.0, 20.0, 30.0]
    assert both.counts.tolist() == [1, 5, 4]
    assert both.quantile_ns(0.5) == 20.0


def test_one_way_delays_are_put_right_as_in_the_summary(copy: Path) -> None:
    """Of nodes whose clocks were estimated, by what was learned of them later."""
    said = {"type": "ready", "clock": "estimated", "clock_reason": "boot ids differ"}
    details = [json.dumps(said | {"clock_id": f"node{node}"}) for node in range(1, RANKS + 1)]
    events = [
        row | {"details": details.pop(0)} if row["type"] == "ready" else row
        for row in rows_in(copy, "events")
    ]
    replace_rows(copy, "events", events)
    offset = {"clock_offset_ns": 0, "clock_bound_ns": 100}
    nodes = [
        row | offset | {"clock_shift_ns": 1000 * int(row["node"][4:])}
        if (row["trial"], row["repeat"], row["phase"]) == (0, 0, 0)
        else row
        for row in rows_in(copy, "phases")
    ]
    replace_rows(copy, "phases", nodes)
    times = Measured.load(copy).records.times(PlanKey(0, 0, "lab"), "one_way")
    before = Measured.load(copy).records.times(PlanKey(2, 1, "lab"), "one_way")
    assert times is not None
    assert before is not None
    # A chain's flow goes to the next node, which was off by 1 µs more than its source.
    assert times.values_ns.tolist() == (before.values_ns + 1000).tolist()
