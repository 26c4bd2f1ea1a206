# SPDX-License-Identifier: BSD-3-Clause
"""Of ten runs that are kept, all readers of their records say the numbers that they said then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden
from recorded import write_tables
from switchbench.analysis.data import Measured, plan_key
from switchbench.analysis.remake import remade
from switchbench.cli.main import main
from switchbench.records.directory import read_plan

Key = tuple[int, int, str, int]  # trial, repeat, network, phase


@pytest.fixture(params=golden.NAMES)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


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
