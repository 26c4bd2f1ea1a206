# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare` with other programs' results: the same definition stands side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from compared import Repeats, make, rate_mbps
from foreign_data import FOREIGN, bring_in
from switchbench.analysis.columns import FlowColumns
from switchbench.cli.main import main
from switchbench.compare import form
from switchbench.compare.shared import slowest_rank_mbps
from switchbench.records.directory import SUMMARY, replace_json

MIB = 1 << 20


def shared(
    capsys: pytest.CaptureFixture[str], *words: object, status: int = 0
) -> tuple[list[str], dict[tuple[str, int, int | None], dict[str, Any]]]:
    """The programs, and the rows by measure, ranks and size."""
    capsys.readouterr()
    assert main(["compare", *map(str, words), "--json", "-"]) == status
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    Draft202012Validator(form.schema()).validate(value)
    rows = {(row["measure"], row["ranks"], row["size"]): row for row in value["shared"]["rows"]}
    return value["shared"]["programs"], rows


def ours(path: Path, mean_mbps: float = 5000.0, **changes: Any) -> Path:
    """A result of ours over TCP; `changes`: of its plans and phases."""
    make(path, Repeats([(7000, 6800)]))
    summary = json.loads((path / SUMMARY).read_text())
    for entry in (*summary["plans"], *summary["trials"]):
        entry |= {"transport": "tcp", "size": MIB, "size_unit": "message", "intended_load": None}
        entry |= {name: value for name, value in changes.items() if name in entry}
        entry["throughput"]["mean"] = mean_mbps
    replace_json(path / SUMMARY, summary)
    return path


def test_imb_beside_osu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imb = bring_in(tmp_path / "imb", FOREIGN / "imb-2019.txt")
    osu = bring_in(tmp_path / "osu", FOREIGN / "osu.txt", ranks=4)
    programs, rows = shared(capsys, imb, osu)
    assert programs == ["imb", "osu"]
    assert rows["allreduce_time", 4, 4]["values"] == [35.6, 35.4]
    assert rows["pingpong_time", 2, MIB]["values"] == [9062.5, 9070.11]
    both = rows["both_ways_rate", 2, MIB]  # PingPing as it is, bibw by half
    assert both["values"] == [pytest.approx(114.22 * 8), pytest.approx(230.20 * 4)]
    assert both["ratios"][1] == pytest.approx(115.10 / 114.22)
    assert ("sendrecv_rate", 4, MIB) not in rows  # OSU has no such test


def test_ours_beside_iperf3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ranks over TCP; both directions at once are iperf3's --bidir, and not its single."""
    iperf3 = bring_in(
        tmp_path / "iperf3",
        *(FOREIGN / f"iperf3-client_{name}.json" for name in ("single", "bidir")),
    )
    mine = ours(tmp_path / "mine", 12000.0)
    _, rows = shared(capsys, mine, iperf3)
    assert list(rows) == [("both_ways_rate", 2, None)]
    value, theirs = rows["both_ways_rate", 2, None]["values"]
    assert value == 12000.0
    assert theirs == pytest.approx((27774.06 + 3200.99) / 2, rel=1e-4)


def test_a_load_below_the_line_is_no_rate_of_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    iperf3 = bring_in(tmp_path / "iperf3", FOREIGN / "iperf3-client_bidir.json")
    mine = ours(tmp_path / "mine", intended_load=80.0)
    assert shared(capsys, mine, iperf3, status=2)[1] == {}


def test_our_ring_is_one_flow_of_hpccs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hpcc = bring_in(tmp_path / "hpcc", FOREIGN / "hpcc-4.txt")
    ring: dict[str, Any] = {
        "pattern": "ring",
        "parameters": {"natural": True},
        "ranks": 4,
        "size": 2_000_000,
    }
    _, rows = shared(capsys, ours(tmp_path / "mine", 5000.0, **ring), hpcc)
    ring_rate = rows["ring_rate", 4, 2_000_000]["values"]
    assert ring_rate == pytest.approx([rate_mbps(6800), 5667.8])  # the slower one's, not the mean
    forward = ring | {"parameters": {"natural": True, "directions": "forward"}}
    assert shared(capsys, ours(tmp_path / "one", 5000.0, **forward), hpcc, status=2)[1] == {}


@pytest.mark.parametrize(
    ("mbps", "slowest"),
    [
        ([10, 20, 30, 40, 50, 60], 25.0),  # port 0 sends 10 and 40
        ([90, 90, 90, 90, 90, 90], 90.0),
        ([90, 90, float("nan"), 90, 90, 90], float("nan")),
    ],
)
def test_of_a_streamed_ring_the_slowest_process_counts(mbps: list[float], slowest: float) -> None:
    """HPCC's definition: one flow of the process that is slowest at both of either side; another
    phase does not count."""
    ends = np.array([[0, 1], [1, 2], [2, 0], [0, 2], [2, 1], [1, 0], [0, 1]], dtype=np.int32)
    phase = np.array([0] * 6 + [1], dtype=np.int32)
    rates, none = np.array([*mbps, 1.0]), np.full(7, np.nan)
    flows = FlowColumns(phase, ends[:, 0], ends[:, 1], rates, none, none)
    assert slowest_rank_mbps(flows, 0) == pytest.approx(slowest, nan_ok=True)


def test_our_messages_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = ours(tmp_path / "mine")
    summary = json.loads((mine / SUMMARY).read_text())
    point = {"size": 8, "latency_us": {"mean": 10.5}, "bandwidth_mbps": 6.1}
    summary["messages"]["curves"] = [
        {"transport": "tcp", "network": "lab", "ranks": 2, "points": [point]}
    ]
    replace_json(mine / SUMMARY, summary)
    imb = bring_in(tmp_path / "imb", FOREIGN / "imb-2019.txt")
    _, rows = shared(capsys, mine, imb)
    assert rows["pingpong_time", 2, 8]["values"] == [10.5, 11.31]
    assert rows["pingpong_rate", 2, 8]["values"] == [6.1, pytest.approx(0.71 * 8)]


def steps(**functions: float) -> list[dict[str, Any]]:
    """What went by steps on 4 ranks, 1 MiB: t_avg of each function."""
    return [
        {
            **{"transport": "tcp", "network": "lab", "ranks": 4, "pattern": name},
            "parameters": {"algorithm": "ring"},
            "points": [{"size": MIB, "imb": {"t_avg_us": time, "mbytes_s": None}}],
        }
        for name, time in functions.items()
    ]


def test_our_steps_beside_imb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By IMB's definitions they are its figures."""
    mine = ours(tmp_path / "mine")
    summary = json.loads((mine / SUMMARY).read_text())
    functions = steps(allreduce=14000.0)
    exchange = steps(exchange=18000.0)
    exchange[0]["points"][0]["imb"]["mbytes_s"] = 230.0
    summary["steps"] = {"functions": functions + exchange}
    replace_json(mine / SUMMARY, summary)
    theirs = bring_in(tmp_path / "theirs", FOREIGN / "imb-2019.txt")
    programs, rows = shared(capsys, mine, theirs)
    assert programs == ["mine tcp ring", "theirs"]
    assert rows["allreduce_time", 4, MIB]["values"] == [14000.0, 14260.0]
    exchanged = rows["ring_rate", 4, MIB]["values"]  # 4 messages by IMB's count
    assert exchanged[0] == pytest.approx(230.0 * 8 / 4)


def test_settings_of_one_function_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of 1 and one of 100 are two figures, no mean; sizes that differ are none of IMB's."""
    mine = ours(tmp_path / "mine")
    summary = json.loads((mine / SUMMARY).read_text())
    functions = steps(allreduce=20000.0) + steps(allreduce=14000.0) + steps(alltoall=30000.0)
    for function, batch in zip(functions, (1, 100, 100), strict=True):
        function["parameters"]["batch"] = batch
    functions[2]["parameters"]["skew"] = "40%"
    summary["steps"] = {"functions": functions}
    replace_json(mine / SUMMARY, summary)
    theirs = bring_in(tmp_path / "theirs", FOREIGN / "imb-2019.txt")
    programs, rows = shared(capsys, mine, theirs)
    assert programs == ["mine tcp ring batch=1", "mine tcp ring batch=100", "theirs"]
    assert rows["allreduce_time", 4, MIB]["values"] == [20000.0, 14000.0, 14260.0]
    assert ("alltoall_time", 4, MIB) not in rows


def test_a_ping_pong_among_four_is_of_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others wait in the barrier, as IMB's do."""
    mine = ours(tmp_path / "mine")
    summary = json.loads((mine / SUMMARY).read_text())
    functions = steps(pingpong=12.0)
    functions[0]["parameters"] = {}
    functions[0]["points"][0]["size"] = 8
    summary["steps"] = {"functions": functions}
    replace_json(mine / SUMMARY, summary)
    theirs = bring_in(tmp_path / "theirs", FOREIGN / "imb-2019.txt")
    _, rows = shared(capsys, mine, theirs)
    assert rows["pingpong_time", 2, 8]["values"] == [12.0, 11.31]


def test_a_program_of_several_in_one_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = bring_in(tmp_path / "both", FOREIGN / "imb-2019.txt", FOREIGN / "hpcc-4.txt")
    osu = bring_in(tmp_path / "osu", FOREIGN / "osu.txt")
    programs, rows = shared(capsys, both, osu)
    assert programs == ["both imb", "both hpcc", "osu"]
    assert None not in rows["pingpong_time", 2, 8]["values"]
    assert rows["pingpong_time", 2, MIB]["values"][1] is None


def test_buffers_in_gpu_memory_are_a_program_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes over PCIe first is neither averaged with host memory nor shown without a remark."""
    host = bring_in(tmp_path / "host", FOREIGN / "osu.txt")
    both = bring_in(tmp_path / "both", FOREIGN / "osu.txt", FOREIGN / "osu-cuda.txt")
    gpu = bring_in(tmp_path / "gpu", FOREIGN / "osu-cuda.txt")
    programs, rows = shared(capsys, host, gpu)
    assert programs == ["host", "gpu osu (GPU memory)"]
    assert rows["pingpong_time", 2, MIB]["values"] == [9070.11, 54.18]
    programs, rows = shared(capsys, host, both)
    assert programs == ["host", "both osu", "both osu (GPU memory)"]
    assert rows["pingpong_time", 2, MIB]["values"] == [9070.11, 9070.11, 54.18]


def test_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hpcc = bring_in(tmp_path / "hpcc", FOREIGN / "hpcc-4.txt")
    old = bring_in(tmp_path / "old", FOREIGN / "imb-3.2.txt")
    capsys.readouterr()
    assert main(["compare", str(hpcc), str(old)]) == 2
    assert "no measure is in both at the same number of ranks" in capsys.readouterr().err


def test_on_the_terminal_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imb = bring_in(tmp_path / "imb", FOREIGN / "imb-2019.txt")
    osu = bring_in(tmp_path / "osu", FOREIGN / "osu.txt", ranks=4)
    page = tmp_path / "page.html"
    capsys.readouterr()
    assert main(["compare", str(imb), str(osu), "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "By definition: the same measured by several programs" in shown
    assert "measured by" in shown
    assert "35.40 (0.994)" in shown
    assert "in brackets: how many times the first" in page.read_text()
