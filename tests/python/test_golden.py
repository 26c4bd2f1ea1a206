# SPDX-License-Identifier: BSD-3-Clause
"""Of ten runs that are kept, all readers of their records say the numbers that they said then."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import golden
from recorded import Feed, write_tables
from switchbench.analysis import tidy
from switchbench.analysis.data import Measured, plan_key
from switchbench.analysis.remake import remade
from switchbench.cli.main import main
from switchbench.records.plan_file import read_plan
from switchbench.records.schema import BY_PHASE
from switchbench.run.live.state import phase_loss

Key = tuple[int, int, str, int]  # trial, repeat, network, phase


@pytest.fixture(params=golden.NAMES)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


def key_of(entry: dict[str, Any]) -> Key:
    return entry["trial"], entry["repeat"], entry["network"], entry["phase"]


def test_ten_are_kept() -> None:
    assert len(golden.NAMES) == 10


def test_the_summary_stays_what_it_was(directory: Path) -> None:
    kept = golden.kept_summary(directory)
    assert len(kept["trials"]) > 3
    assert remade(read_plan(directory), directory, kept) == kept


def test_streams_say_what_parquet_says(directory: Path, tmp_path: Path) -> None:
    """Of the same rows in streams, in any order of trials, the summary is the same."""
    kept, run = golden.kept_summary(directory), read_plan(directory)
    before = flow_table(directory)
    for file in directory.glob("*.parquet"):
        file.unlink()
    write_tables(directory, run, golden.records_of(directory.name))
    assert remade(run, directory, kept) == kept
    assert flow_table(directory) == {
        key: pytest.approx(sums, nan_ok=True) for key, sums in before.items()
    }


def test_duckdbs_way_of_reading_is_enough(directory: Path) -> None:
    """Each table is one Parquet file whose columns have a unit and a meaning."""
    for table in BY_PHASE:
        path = directory / f"{table}.parquet"
        if path.exists():
            schema = pq.read_schema(path)
            assert all(b"meaning" in field.metadata for field in schema)


def flow_table(directory: Path) -> dict[Key, tuple[float, float, float]]:
    """By phase what the flow table's columns sum to: offered, lost (NaN: not seen) and Mbit/s."""
    measured = Measured.load(directory)
    assert measured.damage == []
    found = {}
    for plan in {plan_key(entry): entry for entry in measured.summary["trials"]}.values():
        flows = measured.records.flows(plan_key(plan))
        assert flows is not None
        for phase in np.unique(flows.phase):
            here = flows.phase == phase
            sums = (flows.offered, flows.lost, flows.mbps)
            found[*plan_key(plan), int(phase)] = tuple(float(one[here].sum()) for one in sums)
    return found


def test_flow_table_and_summary_agree(directory: Path) -> None:
    kept = {key_of(entry): entry for entry in golden.kept_summary(directory)["trials"]}
    table = flow_table(directory)
    compared = 0
    for key, (offered, lost, mbps) in table.items():
        entry = kept[key]
        for value, name in ((offered, "offered_frames"), (lost, "lost_frames")):
            if entry[name] is not None and entry["state"] == "complete":
                assert value == entry[name], (key, name)
                compared += 1
        total = (entry["throughput"] or {}).get("total")
        if total is not None and np.isfinite(mbps):
            assert mbps == pytest.approx(total, abs=1e-5), key
            compared += 1
    assert compared


def test_export_and_summary_agree(directory: Path, tmp_path: Path) -> None:
    tidy.write(directory, golden.kept_summary(directory), tmp_path / "export")
    sums: defaultdict[Key, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    with (tmp_path / "export" / "flows.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = int(row["trial"]), int(row["repeat"]), row["network"], int(row["phase"])
            for name in ("offered_frames", "delivered_frames", "lost_frames"):
                sums[key][name] += int(row[name] or 0)
    for entry in golden.kept_summary(directory)["trials"]:
        for name, total in sums[key_of(entry)].items():
            if entry["state"] == "complete":
                assert total == (entry[name] or 0), (key_of(entry), name)
    assert sums


def test_live_screen_and_summary_agree(directory: Path) -> None:
    kept = golden.kept_summary(directory)
    feed = Feed(read_plan(directory), brief=True)
    summary = feed.summary
    lost: dict[tuple[int, int, int], int] = {}
    for record in golden.records_of(directory.name):
        feed.take(record)
        if record["type"] == "phase":
            loss = phase_loss(summary.ended_phase)
            lost[loss.trial, loss.repeat, loss.phase] = loss.lost.total()
    expected: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    for entry in kept["trials"]:
        if entry["state"] == "complete":
            key = entry["trial"], entry["repeat"] or 0, entry["phase"]
            expected[key] += entry["lost_frames"] or 0
    assert {key: lost[key] for key in expected} == expected


_STEPS_ONLY = ("imb", "kernels")  # what predict refuses without parameters
_CUT_SHORT = "stopped"


def test_commands_read_results_without_the_engine(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Flows that a run that was cut short has not recorded are all that the engine is asked for."""
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    name = directory.name
    assert main(["report", str(directory), "--out", str(tmp_path / "r.html")]) == 0
    assert main(["compare", f"a={directory}", f"b={directory}"]) == 0
    assert main(["table", str(directory), "--again"]) == (3 if name == _CUT_SHORT else 0)
    said = capsys.readouterr()
    assert "switchbench-node" not in said.out + said.err
    status = main(["predict", str(directory)])
    said = capsys.readouterr()
    assert status == (2 if name in (*_STEPS_ONLY, _CUT_SHORT) else 0)
    asked = "only the engine knows the others: SWITCHBENCH_NODE=/nowhere"
    assert (asked in said.err) == (name == _CUT_SHORT)
