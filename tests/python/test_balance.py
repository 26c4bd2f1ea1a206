# SPDX-License-Identifier: BSD-3-Clause
"""The ratio analysis of the HPCC paper (Saini et al. 2005), with the numbers that it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from compared import balance
from foreign_data import DATA, FOREIGN, bring_in, hpccoutf
from switchbench.cli.main import main
from switchbench.compare import subjects, systems
from switchbench.render.compare.size_charts import balance as charts

PAPER: dict[str, Any] = yaml.safe_load((DATA / "saini2005.yaml").read_text())
TERA, GIGA = 1e12, 1e9


def run_of(path: Path, processes: int, hpl: float, ring_by_hpl: float, **more: Any) -> Path:
    """What HPCC would have written on a system with this ratio, in B/kFlop."""
    ring = ring_by_hpl / 1e3 * hpl / processes
    return hpccoutf(
        path,
        CommWorldProcs=processes,
        HPL_Tflops=hpl / TERA,
        RandomlyOrderedRingBandwidth_GBytes=ring / GIGA,
        **more,
    )


def test_figure_2_has_the_ratios_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process's ring bandwidth times the processes, by HPL, whatever HPL is."""
    for place, printed in enumerate(PAPER["ring_by_hpl"]):
        folder = tmp_path / str(place)
        hpl = (1.0 + place) * TERA
        file = run_of(folder / "in.txt", printed["processes"], hpl, printed["ratio"])
        (system,) = balance(capsys, bring_in(folder / "out", file))["systems"]
        assert 1e3 * system["ring_by_hpl"] == pytest.approx(printed["ratio"], rel=1e-5)
        assert system["ring"] == pytest.approx(printed["ratio"] / 1e3 * hpl, rel=1e-5)
        assert system["ranks"] == printed["processes"]


def test_figure_4_is_of_all_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process of the SX-8 with 41 GB/s and 14.2 GFlop/s: 576 of them have the same ratio."""
    for processes in (1, 64, 576):
        folder = tmp_path / str(processes)
        hpl = 14.2e9 * processes
        file = run_of(folder / "in.txt", processes, hpl, 59.64, StarSTREAM_Copy=41.0)
        (system,) = balance(capsys, bring_in(folder / "out", file))["systems"]
        assert system["stream_by_hpl"] == pytest.approx(41.0 / 14.2, rel=1e-5)
        assert system["stream_by_hpl"] >= PAPER["stream_by_hpl"][0]["least"]


def test_the_ring_of_table_2_is_numalink3s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text and table agree: of the systems as wholes the greatest is 93.81 B/kFlop, 0.094 B/F. The
    ratio of Numalink4 within one box (203.12) is of a part of its system."""
    words = []
    for name, hpl_of in (("Numalink3", 2.0), ("Numalink4", 8.729), ("SX-8", 8.0)):
        files = [
            run_of(
                tmp_path / name / f"{one['processes']}.txt",
                one["processes"],
                hpl_of * TERA * one["processes"] / 2024,
                one["ratio"],
            )
            for one in PAPER["ring_by_hpl"]
            if one["system"].endswith(name)
        ]
        words.append(f"{name}={bring_in(tmp_path / name / 'out', *files)}")
    found = balance(capsys, *words)
    (axis,) = [axis for axis in found["axes"] if axis["name"] == "ring"]
    assert round(axis["max"], 3) == PAPER["table2"]["ring"]
    assert axis["shares"] == [
        1.0,
        pytest.approx(23.18 / 93.81, rel=1e-4),
        pytest.approx(59.64 / 93.81, rel=1e-4),
    ]
    assert [one["ranks"] for one in found["systems"]] == [440, 506, 2024, 576]


def test_all_axes_of_figure_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One system has what Table 2 has as the greatest, the other half of each ratio."""
    table = PAPER["table2"]
    words = []
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
        words.append(f"{name}={bring_in(tmp_path / name, file)}")
    axes = {axis["name"]: axis for axis in balance(capsys, *words)["axes"]}
    assert {name: axis["max"] for name, axis in axes.items()} == pytest.approx(table, rel=1e-5)
    for axis in axes.values():
        assert axis["shares"] == [1.0, pytest.approx(0.5, rel=1e-5)]


def test_one_result_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = bring_in(tmp_path / "out", *(FOREIGN / f"hpcc-{count}.txt" for count in (2, 4)))
    capsys.readouterr()
    assert main(["compare", str(out), "--balance", "--html", str(tmp_path / "b.html")]) == 0
    shown = capsys.readouterr().out
    assert "Figures 1 to 4" in shown
    assert "8,059" in shown  # 4 processes: 2 flows of 5804.52 Mbit/s each, 0.720273 GFlop/s
    page = (tmp_path / "b.html").read_text()
    assert "Random ring bandwidth by HPL" in page
    assert "Ratios, the best of each axis is 1" not in page


def test_the_figures_have_a_point_for_each_number_of_processes(tmp_path: Path) -> None:
    out = bring_in(tmp_path / "out", *(FOREIGN / f"hpcc-{count}.txt" for count in (2, 4)))
    found = subjects.load([f"here={out}"], None)
    made = {one.name: one for one in charts(found, [systems.systems_of(found[0])], "Balance")}
    assert list(made) == [
        *("balance-ring", "balance-ring-ratio", "balance-stream", "balance-stream-ratio"),
    ]
    (line,) = made["balance-ring-ratio"].data
    assert line["x"] == [pytest.approx(4.75619), pytest.approx(0.720273)]
    ring = [2 * 4.97589 / 4.75619 * 1e3, 4 * 1.45113 / 0.720273 * 1e3]
    assert line["y"] == [pytest.approx(value) for value in ring]


def test_hpl_of_another_run_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result with rings and without HPL, as ours are: Figures 1 and 2 by what --hpl says."""
    out = bring_in(tmp_path / "out", hpccoutf(tmp_path / "hpccoutf.txt", HPL_Tflops=-1))
    capsys.readouterr()
    assert main(["compare", str(out), "--balance"]) == 2
    assert "HPL of out is not known, and a balance is by HPL" in capsys.readouterr().err
    assert main(["compare", str(out), "--balance", "--hpl", "10GFlop/s"]) == 0
    shown = capsys.readouterr().out
    assert "Figures 1 to 4" in shown
    assert "580.5" in shown  # 4 processes of 1.45113 GB/s each, 10 GFlop/s


def test_without_hpcc_there_is_no_balance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = bring_in(tmp_path / "out", FOREIGN / "imb-2019.txt")
    capsys.readouterr()
    assert main(["compare", str(out), "--balance"]) == 2
    assert "says how communication and computing balance" in capsys.readouterr().err
