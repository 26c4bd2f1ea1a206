# SPDX-License-Identifier: BSD-3-Clause
"""doc/papers/saini_ratios.py with the numbers that Saini et al. 2005 (HPCC and IMB) print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from compared import Repeats, make, rate_mbps
from foreign_data import DATA, FOREIGN, bring_in, hpccoutf
from switchbench.records.directory import SUMMARY, replace_json

SCRIPT = Path(__file__).parents[2] / "doc" / "papers" / "saini_ratios.py"
PAPER: dict[str, Any] = yaml.safe_load((DATA / "saini2005.yaml").read_text())
TERA, GIGA = 1e12, 1e9


def ask(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def ratios(*words: object) -> dict[str, Any]:
    """Return what the script writes as JSON."""
    found: dict[str, Any] = json.loads(ask("--json", *words).stdout)
    return found


def run_of(path: Path, processes: int, hpl: float, ring_by_hpl: float, **more: Any) -> Path:
    """Write what HPCC would have written on a system with this ratio, in B/kFlop."""
    ring = ring_by_hpl / 1e3 * hpl / processes
    return hpccoutf(
        path,
        CommWorldProcs=processes,
        HPL_Tflops=hpl / TERA,
        RandomlyOrderedRingBandwidth_GBytes=ring / GIGA,
        **more,
    )


def test_figures_2_and_4_have_the_ratios_of_the_text(tmp_path: Path) -> None:
    """A process's ring bandwidth times the processes, by HPL, whatever HPL is."""
    files = []
    for place, printed in enumerate(PAPER["ring_by_hpl"]):
        processes, hpl = printed["processes"], (1.0 + place) * TERA
        stream = PAPER["stream_by_hpl"][0]["least"] * hpl / processes / GIGA
        file = tmp_path / f"{place}.txt"
        files.append(run_of(file, processes, hpl, printed["ratio"], StarSTREAM_Copy=stream))
    rows = ratios(bring_in(tmp_path / "out", *files))["systems"]
    by_processes = {row["processes"]: row for row in rows}
    for printed in PAPER["ring_by_hpl"]:
        row = by_processes[printed["processes"]]
        assert row["ring / HPL, B/kFlop"] == pytest.approx(printed["ratio"], rel=1e-5)
        assert row["STREAM / HPL, B/Flop"] == pytest.approx(2.67, rel=1e-5)


def test_all_axes_of_figure_5(tmp_path: Path) -> None:
    """One system has what Table 2 has as the greatest, the other half of each ratio."""
    table, places = PAPER["table2"], []
    for name, share in (("best", 1.0), ("half", 0.5)):
        hpl, processes = share * table["hpl"], 512
        file = run_of(
            tmp_path / f"{name}.txt",
            processes,
            hpl,
            1e3 * share * table["ring"],
            StarDGEMM_Gflops=share * table["dgemm"] * hpl / processes / GIGA,
            MPIFFT_Gflops=share * table["fft"] * hpl / GIGA,
            PTRANS_GBs=share * table["ptrans"] * hpl / GIGA,
            StarSTREAM_Copy=share * table["stream"] * hpl / processes / GIGA,
            MPIRandomAccess_GUPs=share * table["random_access"] * hpl / GIGA,
            RandomlyOrderedRingLatency_usec=1 / (share * table["ring_latency"]),
        )
        places.append(bring_in(tmp_path / name, file))
    axes = ratios(*places)["ratios"]
    assert sorted(axis["1 is"] for axis in axes) == pytest.approx(sorted(table.values()), rel=1e-5)
    for axis in axes:
        assert (axis["best 512"], axis["half 512"]) == (1.0, pytest.approx(0.5, rel=1e-5))


def test_our_rings_by_the_hpl_that_is_given(tmp_path: Path) -> None:
    mine = make(tmp_path / "mine", Repeats([(7000, 6800)]))
    summary = json.loads((mine / SUMMARY).read_text())
    for plan in summary["plans"]:
        plan |= {"pattern": "ring", "parameters": {"natural": False}}
    replace_json(mine / SUMMARY, summary)
    (row,) = ratios(mine, "--hpl", 2)["systems"]
    ring = rate_mbps(7000 + 6800) * 1e6 / 8
    assert row["random ring, GB/s"] == pytest.approx(ring / GIGA)
    assert row["ring / HPL, B/kFlop"] == pytest.approx(ring / 2e9 * 1e3)
    assert "no system has HPL" in ask(mine, status=2).stderr
    assert "is no results directory" in ask(tmp_path, status=2).stderr


def test_a_point_for_each_number_of_processes(tmp_path: Path) -> None:
    out = bring_in(tmp_path / "out", *(FOREIGN / f"hpcc-{count}.txt" for count in (2, 4)))
    shown = ask(out).stdout
    assert "Figures 1 to 4" in shown
    assert "2092" in shown  # 2 processes: 2 flows of 19,903 Mbit/s each, 4.75619 GFlop/s
    assert "8059" in shown  # 4 processes: 2 flows of 5,804.52 Mbit/s each, 0.720273 GFlop/s
