# SPDX-License-Identifier: BSD-3-Clause
"""Messages there and back: curves, crossovers, single times, fits, and the configuration's keys."""

from __future__ import annotations

import base64
import io
import struct
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from recorded import rows_in, write_tables
from switchbench.analysis import series
from switchbench.analysis.remake import gather
from switchbench.records.record_forms import DamagedRecord
from switchbench.records.rows import Histogram, PhaseKey
from switchbench.records.store import TableWriter
from switchbench.render.terminal import show_messages
from synthetic import make_run, make_site, make_trial


def bucket(ns: int) -> int:
    """engine/measure/histogram.h's index, by its formula."""
    shift = max(0, ns.bit_length() - 7)
    return (shift << 6) + (ns >> shift)


def histogram(trial: int, times_ns: list[int], **changes: Any) -> dict[str, Any]:
    """A flow's record of round trips."""
    counts: dict[int, int] = {}
    for ns in times_ns:
        counts[bucket(ns)] = counts.get(bucket(ns), 0) + 1
    return {
        "type": "histogram", "node": "node1", "kind": "pingpong", "trial": trial, "repeat": 0,
        "network": "lab", "phase": 0, "src": "node1:e0", "dst": "node2:e0", "unit": "ns",
        "count": len(times_ns),
        "sum_ns": sum(times_ns), "min_ns": min(times_ns, default=None),
        "max_ns": max(times_ns, default=None), "lost": 0,
        "buckets": " ".join(f"{index}:{count}" for index, count in sorted(counts.items())),
    } | changes  # fmt: skip


def add(table: series.SweepTable, record: dict[str, Any]) -> None:
    """The times of one record, as its phase has them."""
    times = Histogram()
    times.add_record(record)
    key = PhaseKey(record["trial"], record["repeat"], record["network"], record["phase"])
    table.add(key, {(record["src"], record["dst"]): {record["kind"]: times}})


def curves_of(*transports: tuple[str, float, float]) -> dict[str, Any]:
    """The summary of paths of (name, latency in us, bandwidth in Mbit/s) at sizes 4^1 .. 4^11."""
    site = make_site()
    trials = {}
    records = []
    for name, latency_us, mbps in transports:
        for power in range(1, 12):
            size, number = 4**power, len(trials)
            trial = make_trial(
                site, number, transport=name, sizes=(size,), traffic="pingpong", size_unit="message"
            )
            trials[number, 0] = trial
            round_ns = round(2000 * (latency_us + 8 * size / mbps))
            records.append(histogram(number, [round_ns] * 100))
    table = series.SweepTable(trials)
    for record in records:
        add(table, record)
    curves = list(table.curves())
    return {"curves": curves, "crossovers": list(series.crossovers(curves))}


def test_curve() -> None:
    """Half the round trip; bandwidth, its half and 90 % as the formula has them."""
    (curve,) = curves_of(("tcp", 50.0, 1000.0))["curves"]
    point = curve["points"][0]
    assert point["latency_us"]["mean"] == pytest.approx(50 + 8 * 4 / 1000, rel=1e-4)
    assert point["latency_us"]["p99"] == point["latency_us"]["max"]
    assert point["bandwidth_mbps"] == pytest.approx(8 * 4 / point["latency_us"]["mean"], rel=1e-4)
    assert curve["peak_at_end"]
    # t = a + s/B: half the bandwidth from s = a * B on.
    assert curve["size_at_half_peak"] == pytest.approx(50 * 1000 / 8, rel=0.15)
    assert curve["size_at_90_percent_peak"] == pytest.approx(9 * 50 * 1000 / 8, rel=0.2)


def test_crossing() -> None:
    """A quick path for small messages, a wide one for large ones: where they change places."""
    result = curves_of(("tcp", 50.0, 1000.0), ("verbs", 10.0, 500.0))
    (crossing,) = result["crossovers"]
    uses = [part["use"] for part in crossing["ranges"]]
    assert uses == ["verbs in lab", "tcp in lab"]
    # 50 + s/125 = 10 + s/62.5
    assert crossing["ranges"][1]["crossover_size"] == pytest.approx(5000, rel=0.3)


def test_paths_cross_in_one_matrix_though_another_has_only_one_path() -> None:
    alone, *others = curves_of(("dpdk", 9.0, 900.0), ("tcp", 50.0, 1000.0), ("verbs", 10.0, 500.0))[
        "curves"
    ]
    alone |= {"pattern": "another"}
    (crossing,) = series.crossovers([alone, *others])
    assert len(crossing["ranges"]) == 2


def test_alike_paths_do_not_cross() -> None:
    """Curves within 5 % of each other are one."""
    (crossing,) = curves_of(("tcp", 50.0, 1000.0), ("dpdk", 51.0, 1010.0))["crossovers"]
    assert [part["use"] for part in crossing["ranges"]] == [None]


def test_a_crossing_among_sizes_where_paths_are_alike() -> None:
    """It is told when another path is better behind them than before, and by chance never."""

    def curve(transport: str, *means: float) -> dict[str, Any]:
        points = [
            {"size": 1 << place, "latency_us": {"mean": mean}} for place, mean in enumerate(means)
        ]
        return {"transport": transport, "network": "lab", "points": points}

    even = curve("dpdk", 10, 10, 10, 10)
    before, alike, behind = series._ranges(curve("tcp", 8, 9.8, 10.2, 12), even)
    assert (before["use"], alike["use"], behind["use"]) == ("tcp in lab", None, "dpdk in lab")
    assert 2 < alike["crossover_size"] < 4
    there_and_back = curve("tcp", 8, 9.8, 10.2, 12, 10.2, 9.8, 8)
    ranges = series._ranges(there_and_back, curve("dpdk", *[10] * 7))
    assert [part["use"] for part in ranges] == [
        "tcp in lab", None, "dpdk in lab", None, "tcp in lab",
    ]  # fmt: skip
    assert 2 < ranges[1]["crossover_size"] < 4
    assert 16 < ranges[3]["crossover_size"] < 32
    _, chance, _ = series._ranges(curve("tcp", 8, 9.8, 10.2, 8), even)
    assert chance["crossover_size"] is None


def test_trials_that_are_no_sweep_have_no_curve() -> None:
    """A scatter's histogram says what was lost, and the sweep behind it has its curve."""
    sweeping = make_trial(make_site(), 1, sizes=(64,), traffic="pingpong", size_unit="message")
    table = series.SweepTable({(0, 0): scatter_trial(), (1, 0): sweeping})
    add(table, histogram(0, [2000] * 100, lost=4))
    add(table, histogram(1, [2000] * 50))
    (curve,) = table.curves()
    assert [(point["size"], point["round_trips"]) for point in curve["points"]] == [(64, 50)]


def test_few_round_trips_have_no_percentile() -> None:
    """p99 of fifty is a guess: it is not told."""
    trials = {(0, 0): make_trial(make_site(), sizes=(64,), traffic="pingpong")}
    table = series.SweepTable(trials)
    add(table, histogram(0, list(range(2000, 2050)), lost=2))
    (point,) = next(table.curves())["points"]
    assert point["latency_us"]["p99"] is None
    assert point["latency_us"]["p50"] == pytest.approx(1.012, abs=0.01)
    assert (point["round_trips"], point["lost"]) == (50, 2)


# --- single times ------------------------------------------------------------------------------


def samples_record(times: list[tuple[int, int, int, int]], **changes: Any) -> dict[str, Any]:
    """A `samples` record of (dst, size, begun_us, time_ns)."""
    data = b"".join(
        struct.pack("<QII", time_ns | dst << 48, size, begun_us)
        for dst, size, begun_us, time_ns in times
    )
    return {
        "type": "samples", "node": "node1", "trial": 0, "repeat": 0, "phase": 0, "network": "lab",
        "rank": 0, "data": base64.b64encode(data).decode(),
    } | changes  # fmt: skip


def scatter_trial(**changes: Any) -> Any:
    """A trial whose single times were kept."""
    return make_trial(
        make_site(4), transport="tcp", traffic="pingpong", size_unit="message",
        parameters={"scatter": {"sizes": [4, 65536]}}, **changes,
    )  # fmt: skip


def keep_samples(path: Path, *records: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that the controller makes of these records."""
    with TableWriter(path) as tables:
        for record in records:
            tables.add_samples(record)
    return rows_in(path, "samples")


def test_samples_are_stored_and_read(tmp_path: Path) -> None:
    rows = keep_samples(
        tmp_path,
        samples_record([(1, 4, 10, 123456), (3, 2**32 - 1, 2**32 - 1, 2**48 - 1)]),
        samples_record([(0, 77, 5, 99)], rank=2, trial=7, repeat=3, network="rail"),
    )
    assert [row["time_ns"] for row in rows] == [123456, 2**48 - 1, 99]
    assert [row["dst"] for row in rows] == [1, 3, 0]
    assert [row["src"] for row in rows] == [0, 0, 2]
    assert rows[1]["size"] == rows[1]["begun_us"] == 2**32 - 1
    assert (rows[2]["trial"], rows[2]["repeat"], rows[2]["network"]) == (7, 3, "rail")


@pytest.mark.parametrize(
    "change", [{"rank": 1 << 16}, {"phase": -1}, {"data": "AA"}, {"data": "?"}]
)
def test_samples_that_are_none_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(DamagedRecord, match="are no samples of 16 bytes"):
        keep_samples(tmp_path, samples_record([(1, 4, 10, 123456)]) | change)


def test_single_times_by_trial(tmp_path: Path) -> None:
    """Half the round trips of all sizes; a trial without a scatter has no entry."""
    times = [(1, 4 + i, i, 100_000 + 200 * i) for i in range(1001)]
    keep_samples(tmp_path, samples_record(times))
    sweeping = make_trial(make_site(4), 1, sizes=(64,), traffic="pingpong", size_unit="message")
    (entry,) = series.scatter_times(tmp_path, [sweeping, scatter_trial()])
    assert (entry["messages"], entry["min_size"], entry["max_size"]) == (1001, 4, 1004)
    assert (entry["p50_us"], entry["p99_us"], entry["max_us"]) == (100.0, 149.0, 150.0)


def test_lost_messages_stand_beside_the_times(tmp_path: Path) -> None:
    """The times are in one file, and the messages that never came back in another."""
    times = [(1, 4 + i, i, 100_000 + 200 * i) for i in range(1000)]
    flows = [histogram(0, [100_000] * 500, lost=2), histogram(0, [100_000] * 500, lost=1)]
    flows[1] |= {"node": "node3", "src": "node3:e0", "dst": "node4:e0"}
    run = make_run(make_site(4), scatter_trial())
    write_tables(tmp_path, run, [*flows, samples_record(times)])
    summary = gather(run, tmp_path)
    about = {"versions": {}, "id": "x", "started": "", "elapsed_s": 1.0, "command": [],
             "launch": "lab", "lab": None, "machine": {}}  # fmt: skip
    (entry,) = summary.finish(about, [])["messages"]["scatter"]
    assert (entry["lost"], entry["messages"]) == (3, 1000)


def compute_record(node: str, beside: int) -> dict[str, Any]:
    """A node that did 3e6 operations in 10 ms alone."""

    def part(busy_ns: int) -> dict[str, int]:
        pieces = {"piece_p50_ns": 1000, "piece_p99_ns": 2000, "piece_max_ns": 9000}
        return {"operations": 3_000_000, "busy_ns": busy_ns, **pieces}

    return {
        "type": "compute", "node": node, "trial": 0, "repeat": 0, "phase": 0, "threads": 1,
        "share": 0.5, "compute_only": part(10_000_000), "concurrent": part(beside),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ((12_500_000, 12_510_000, 12_490_000), "20.0 % slower"),
        ((8_000_000, 8_010_000, 7_990_000), "25.0 % faster"),
        ((8_000_000, 12_500_000, 9_000_000), "1.7 % faster, within noise (± 57.2 %)"),
        ((12_500_000,), "20.0 % slower"),
    ],
    ids=["slower", "faster", "noise", "one-node"],
)
def test_what_messages_did_to_computing_is_said_as_it_is(
    beside: tuple[int, ...], said: str
) -> None:
    """Nodes that compute faster beside messages are not slower by less than nothing."""
    records = [compute_record(f"node{number}", busy_ns) for number, busy_ns in enumerate(beside)]
    trial = make_trial(make_site(), transport="tcp", sizes=(64,), traffic="pingpong",
                       size_unit="message")  # fmt: skip
    output = io.StringIO()
    found = {"curves": [], "crossovers": [], "scatter": []} | {
        "concurrent_computation": series.computing([trial], {(0, 0): records})
    }
    show_messages(found, Console(file=output, width=160))
    assert said in output.getvalue()
    assert "-" not in output.getvalue()


def test_each_repeat_computes_for_itself() -> None:
    """A node was slower by 20 % in the first repeat, by half in the second."""
    times = {
        (0, repeat): [compute_record("node1", 12_500_000 + 7_500_000 * repeat)] for repeat in (0, 1)
    }
    trials = [make_trial(make_site(), transport="tcp", repeat=repeat) for repeat in range(3)]
    found = series.computing(trials, times)
    assert [(entry["repeat"], entry["max_slowdown_percent"]) for entry in found] == [
        (0, pytest.approx(20)),
        (1, pytest.approx(50)),
    ]
