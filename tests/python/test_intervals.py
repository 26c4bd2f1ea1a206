# SPDX-License-Identifier: BSD-3-Clause
"""How low a flow fell, and when, from `interval` records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recorded import write_tables
from switchbench.analysis.data import Columns, PlanKey
from switchbench.analysis.phases import Intervals, interval_entry
from switchbench.records.collector import Collector
from switchbench.records.rows import Rows
from synthetic import make_run, make_site

Record = dict[str, Any]


def interval(dst: str, from_ms: float, at_ms: list[float], **flows: list[int]) -> Record:
    return {
        "type": "interval",
        "dst": dst,
        "from_ms": from_ms,
        "at_ms": at_ms,
        "flows": [[src, counts] for src, counts in flows.items()],
    }


def entry_of(*records: Record, traffic: str = "stream") -> Record:
    collector = Collector(make_run(make_site()))
    for record in records:
        collector.take({"trial": 0, "phase": 0, "network": "lab"} | record)
    spans = [row for phase in collector.rest() for row in phase.get("intervals", ())]
    rows = Rows.of("intervals", spans)
    intervals = Intervals.of(rows, set(), traffic == "stream")
    return interval_entry(intervals, set())


def test_a_sag_is_found_with_its_time() -> None:
    """Two flows of 80 Mbit/s; b falls to a quarter in the third tenth of a second."""
    full, sag = 1_000_000, 250_000
    entry = entry_of(
        interval("c", 0.0, [100.0, 200.0], a=[full, full], b=[full, full]),
        interval("c", 200.0, [300.0, 400.0], a=[full, full], b=[sag, full]),
    )
    assert (entry["count"], entry["length_s"]) == (4, pytest.approx(0.1))
    assert entry["min"] == pytest.approx(20.0)
    assert entry["slowest"] == entry["lowest"][0]
    low = entry["lowest"][0]
    assert (low["src"], low["dst"]) == ("b", "c")
    assert (low["from_s"], low["to_s"]) == (0.2, 0.3)
    assert low["percent_of_mean"] == pytest.approx(100 * 0.25 / 0.8125)
    assert entry["lowest"][1]["percent_of_mean"] == pytest.approx(100)


def test_a_slow_flow_is_not_one_that_sags() -> None:
    entry = entry_of(interval("c", 0.0, [100.0, 200.0], a=[100, 100], b=[9000, 5000]))
    assert entry["slowest"]["src"] == "a"
    assert entry["lowest"][0]["src"] == "b"


def test_late_marks_are_divided_by_their_time() -> None:
    entry = entry_of(interval("c", 0.5, [250.5, 300.5], a=[2_500_000, 500_000]))
    assert entry["min"] == pytest.approx(80.0)
    assert entry["lowest"][0]["percent_of_mean"] == pytest.approx(100)


def test_silence_is_0_in_a_stream_and_the_end_of_a_transfer() -> None:
    record = interval("c", 0.0, [100.0, 200.0, 300.0, 400.0], a=[8000, 4000, 300, 0])
    assert entry_of(record)["min"] == 0.0
    transfer = entry_of(record, traffic="transfer")
    assert transfer["min"] == pytest.approx(0.32)
    assert transfer["count"] == 2
    held = interval("c", 0.0, [100.0, 200.0, 300.0, 400.0], a=[8000, 0, 8000, 50])
    assert entry_of(held, traffic="transfer")["min"] == 0.0


def test_none_is_unknown() -> None:
    entry = entry_of()
    assert entry == {"count": 0, "length_s": None, "min": None, "slowest": None, "lowest": []}


def test_a_table_of_all_spans(tmp_path: Path) -> None:
    """Ends are numbered as the ports are. A count has the time since the mark before; a flow of no
    known port and a count without a mark are left out."""
    place = {"node": "c", "trial": 3, "repeat": 1, "network": "lab", "phase": 2}
    records = [
        interval("c", 0.5, [100.0, 200.0], a=[10, 20], b=[30, 40, 99], strange=[7, 7]),
        interval("strange", 0.5, [100.0], a=[7]),
        interval("a", 200.0, [450.0], c=[50]),
        interval("a", 450.0, [450.0], c=[99]),
    ]
    write_tables(tmp_path, make_run(make_site()), [record | place for record in records])
    table = Columns(["a", "b", "c"])
    table.read(tmp_path)
    assert table.damage == []
    spans = table.spans(PlanKey(3, 1, "lab"))
    assert spans is not None
    columns = (spans.phase, spans.src, spans.dst, spans.from_ms, spans.to_ms, spans.payload_bytes)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == [
        (2, 0, 2, 0.5, 100.0, 10.0),
        (2, 0, 2, 100.0, 200.0, 20.0),
        (2, 1, 2, 0.5, 100.0, 30.0),
        (2, 1, 2, 100.0, 200.0, 40.0),
        (2, 2, 0, 200.0, 450.0, 50.0),
    ]
    assert table.spans(PlanKey(3, 0, "lab")) is None
