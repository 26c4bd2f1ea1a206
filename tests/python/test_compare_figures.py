# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare` with other programs' results: the same definition stands side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compared import Repeats, compared, make
from foreign_data import FOREIGN, bring_in, hpccoutf
from switchbench.cli.main import main
from switchbench.records.directory import SUMMARY, replace_json
from synthetic import blank

MIB = 1 << 20


Key = tuple[str, str, int, int | None]  # measure, programs, ranks and size


def figures(
    capsys: pytest.CaptureFixture[str], *words: object, status: int = 0
) -> dict[Key, tuple[float, float]]:
    """Return the values of both sides."""
    _, one = compared(capsys, *words, status=status)
    found = {}
    for row in one["plans"]:
        sides = [one["pairs"][row["pair"]][side]["settings"] for side in ("baseline", "other")]
        programs = " ".join(side["transport"] for side in sides)
        size = sides[0]["size"]
        key = (row["measure"], programs, int(sides[0]["ranks"]), None if size == "-" else int(size))
        found[key] = (row["baseline"], row["other"])
    return found


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
    found = figures(capsys, imb, osu)
    assert found["allreduce_time", "imb osu", 4, 4] == (35.6, 35.4)
    assert found["pingpong_time", "imb osu", 2, MIB] == (9062.5, 9070.11)
    # PingPing as it is, bibw by half
    expected = pytest.approx((114.22 * 8, 230.20 * 4))
    assert found["both_ways_rate", "imb osu", 2, MIB] == expected
    assert not any(key[0] == "sendrecv_rate" for key in found)  # OSU has no such test


def test_ours_beside_iperf3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ranks over TCP; both directions at once are iperf3's --bidir, and not its single."""
    iperf3 = bring_in(
        tmp_path / "iperf3",
        *(FOREIGN / f"iperf3-client_{name}.json" for name in ("single", "bidir")),
    )
    mine = ours(tmp_path / "mine", 12000.0)
    (((key, values)),) = figures(capsys, mine, iperf3).items()
    assert key == ("both_ways_rate", "tcp iperf3", 2, None)
    assert values == (12000.0, pytest.approx((27774.06 + 3200.99) / 2, rel=1e-4))


def test_a_load_below_the_line_is_no_rate_of_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    iperf3 = bring_in(tmp_path / "iperf3", FOREIGN / "iperf3-client_bidir.json")
    mine = ours(tmp_path / "mine", intended_load=80.0)
    assert figures(capsys, mine, iperf3, status=2) == {}


def with_summary(mine: Path, **parts: Any) -> Path:
    """Replace parts of a summary."""
    summary = json.loads((mine / SUMMARY).read_text())
    replace_json(mine / SUMMARY, summary | parts)
    return mine


def test_our_messages_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = ours(tmp_path / "mine")
    messages = json.loads((mine / SUMMARY).read_text())["messages"]
    point = blank("CurvePoint") | {"size": 8, "bandwidth_mbps": 6.1}
    point["latency_us"] |= {"mean": 10.5}
    curve = blank("Curve") | {"transport": "tcp", "network": "lab", "ranks": 2}
    messages["curves"] = [curve | {"points": [point]}]
    imb = bring_in(tmp_path / "imb", FOREIGN / "imb-2019.txt")
    found = figures(capsys, with_summary(mine, messages=messages), imb)
    assert found["pingpong_time", "tcp imb", 2, 8] == (10.5, 11.31)
    assert found["pingpong_rate", "tcp imb", 2, 8] == (6.1, pytest.approx(0.71 * 8))


def function(name: str, time_us: float, size: int = MIB, **parameters: Any) -> dict[str, Any]:
    """Return what went by steps on 4 ranks."""
    imb = blank("ImbFigures") | {"t_avg_us": time_us}
    return {
        **blank("Function"),
        **{"transport": "tcp", "network": "lab", "ranks": 4, "pattern": name},
        "parameters": parameters,
        "points": [blank("FunctionPoint") | {"size": size, "imb": imb}],
    }


def test_our_steps_beside_imb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By IMB's definitions they are its figures, at each setting its own; sizes that differ are
    none of IMB's, and a ping-pong among four is of two."""
    exchange = function("exchange", 18000.0, algorithm="ring")
    exchange["points"][0]["imb"]["mbytes_s"] = 230.0
    functions = [
        function("allreduce", 20000.0, algorithm="ring", batch=1),
        function("allreduce", 14000.0, algorithm="ring", batch=100),
        function("alltoall", 30000.0, skew="40%"),
        function("pingpong", 12.0, size=8),
        exchange,
    ]
    mine = with_summary(ours(tmp_path / "mine"), steps=blank("Steps") | {"functions": functions})
    found = figures(capsys, mine, bring_in(tmp_path / "theirs", FOREIGN / "imb-2019.txt"))
    assert found["allreduce_time", "tcp ring imb", 4, MIB] == (20000.0, 14260.0)
    assert found["allreduce_time", "tcp ring batch=100 imb", 4, MIB] == (14000.0, 14260.0)
    assert found["ring_rate", "tcp ring imb", 4, MIB][0] == pytest.approx(230.0 * 8 / 4)
    assert found["pingpong_time", "tcp imb", 2, 8] == (12.0, 11.31)
    assert not any(key[0] == "alltoall_time" for key in found)


def test_several_programs_in_one_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each stands beside the other result's; where both have the same program, beside that."""
    both = bring_in(tmp_path / "both", FOREIGN / "imb-2019.txt", FOREIGN / "hpcc-4.txt")
    osu = bring_in(tmp_path / "osu", FOREIGN / "osu.txt")
    found = figures(capsys, both, osu)
    assert ("pingpong_time", "imb osu", 2, 8) in found
    assert ("pingpong_time", "hpcc osu", 2, 8) in found
    assert ("pingpong_time", "hpcc osu", 2, MIB) not in found
    imb = bring_in(tmp_path / "imb", FOREIGN / "imb-2019.txt")
    assert {key[1] for key in figures(capsys, both, imb)} == {"imb imb"}


def test_buffers_in_gpu_memory_are_a_program_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes over PCIe first is not averaged with host memory."""
    host = bring_in(tmp_path / "host", FOREIGN / "imb-2019.txt")
    both = bring_in(tmp_path / "both", FOREIGN / "osu.txt", FOREIGN / "osu-cuda.txt")
    found = figures(capsys, host, both)
    assert found["pingpong_time", "imb osu", 2, MIB] == (9062.5, 9070.11)
    assert found["pingpong_time", "imb osu (GPU memory)", 2, MIB] == (9062.5, 54.18)


def test_values_of_several_files_are_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one comparison serves: two files of one program have an interval and a verdict."""
    files = []
    for number, share in enumerate((1.0, 1.001, 0.999)):
        for name, slower in (("a", 1.0), ("b", 3.0)):
            file = tmp_path / f"{name}{number}" / "hpccoutf.txt"
            latency = 10 * share * slower
            files.append(hpccoutf(file, AvgPingPongLatency_usec=latency))
    one, other = bring_in(tmp_path / "a", *files[::2]), bring_in(tmp_path / "b", *files[1::2])
    rows = {row["measure"]: row for row in compared(capsys, one, other)[1]["plans"]}
    row = rows["pingpong_time"]
    assert (row["repeats"], row["verdict"], row["better"]) == ([3, 3], "worse", "less")
    assert rows["hpl"]["verdict"] == "same"


def test_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hpcc = bring_in(tmp_path / "hpcc", FOREIGN / "hpcc-4.txt")
    old = bring_in(tmp_path / "old", FOREIGN / "imb-3.2.txt")
    capsys.readouterr()
    assert main(["compare", str(hpcc), str(old)]) == 2
    assert "no measure is in both at the same number of ranks" in capsys.readouterr().err
