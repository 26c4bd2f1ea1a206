# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench import`: what other programs wrote, in our terms; and what is refused, how."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foreign_data import FOREIGN as DATA
from foreign_data import bring_in
from schemas import validate_summary
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.importers import kinds
from switchbench.importers.measures import COMMON
from switchbench.records.directory import SUMMARY, load_summary, replace_json
from switchbench.records.record_forms import parse
from switchbench.render.tables import results as tables


def imported(tmp_path: Path, *names: str, ranks: int | None = None) -> list[dict[str, Any]]:
    """The figures of these files, as a directory's summary has them."""
    out = tmp_path / "out"
    more = [] if ranks is None else ["--ranks", str(ranks)]
    assert main(["import", *(str(DATA / name) for name in names), "--out", str(out), *more]) == 0
    summary = load_summary(out)
    validate_summary(summary)
    entries: list[dict[str, Any]] = summary["imported"]
    return entries


def named(entries: list[dict[str, Any]], name: str, **more: Any) -> dict[str, Any]:
    """The only one of that name."""
    (found,) = [
        one
        for one in entries
        if one["name"] == name and all(one[key] == value for key, value in more.items())
    ]
    return found


def in_ours(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Measure, ranks, size and value."""
    ours = entry["comparable"]
    assert ours["unit"] == COMMON[ours["measure"]].unit
    return ours["measure"], ours["ranks"], ours["size"], pytest.approx(ours["value"], rel=1e-9)


# --- what is in them -----------------------------------------------------------------------------


def test_hpcc(tmp_path: Path) -> None:
    """Of a real run: its own names and units, and the same whole system in ours."""
    entries = imported(tmp_path, "hpcc-4.txt")
    assert {(one["tool"], one["version"], one["ranks"]) for one in entries} == {
        ("hpcc", "1.5.0", 4)
    }
    ring = named(entries, "RandomlyOrderedRingBandwidth_GBytes")
    assert (ring["value"], ring["unit"], ring["size"]) == (1.45113, "GB/s", 2_000_000)
    # 2 flows of a process: 1.45113 GB/s are 11,609.04 Mbit/s, half of it a flow.
    assert in_ours(ring) == ("random_ring_rate", 4, 2_000_000, 5804.52)
    assert in_ours(named(entries, "RandomlyOrderedRingLatency_usec"))[:3] == (
        "random_ring_time",
        4,
        8,
    )
    assert in_ours(named(entries, "HPL_Tflops")) == ("hpl", 4, None, 0.000720273e12)
    stream = named(entries, "StarSTREAM_Copy")
    assert in_ours(stream) == ("stream_copy", 4, None, 4 * stream["value"] * 1e9)
    # Ping-pong has the network for itself, two processes at a time.
    assert in_ours(named(entries, "AvgPingPongLatency_usec"))[:3] == ("pingpong_time", 2, 8)
    assert named(entries, "SingleSTREAM_Copy")["comparable"] is None
    assert {"MPIFFT_Gflops", "PTRANS_GBs", "MPIRandomAccess_GUPs", "StarDGEMM_Gflops"} <= {
        one["name"] for one in entries
    }


def test_what_hpcc_did_not_measure_is_left_out(tmp_path: Path) -> None:
    text = (DATA / "hpcc-4.txt").read_text()
    path = tmp_path / "hpccoutf.txt"
    path.write_text(text.replace("HPL_Tflops=0.000720273", "HPL_Tflops=-1"))
    names = {one.name for one in kinds.read(path).figures}
    assert "HPL_Tflops" not in names
    assert "PTRANS_GBs" in names


def test_the_last_of_several_runs_in_one_file(tmp_path: Path) -> None:
    """HPCC appends."""
    path = tmp_path / "hpccoutf.txt"
    path.write_text((DATA / "hpcc-2.txt").read_text() + (DATA / "hpcc-4.txt").read_text())
    assert {one.ranks for one in kinds.read(path).figures} == {4}


def test_imb(tmp_path: Path) -> None:
    """Its factors of messages: 1, 2 and 4; a megabyte of 10^6, as its times say."""
    entries = imported(tmp_path, "imb-2019.txt")
    assert {one["version"] for one in entries} == {"2019 Update 6"}
    mib = 1 << 20
    rates = [one for one in entries if one["name"] == "Mbytes/sec" and one["comparable"]]
    found = {(one["benchmark"], one["ranks"]): in_ours(one) for one in rates}
    assert found == {
        ("PingPong", 2): ("pingpong_rate", 2, mib, 115.70 * 8),
        ("PingPing", 2): ("both_ways_rate", 2, mib, 114.22 * 8),
        ("Sendrecv", 2): ("sendrecv_rate", 2, mib, 227.95 * 4),
        ("Sendrecv", 4): ("sendrecv_rate", 4, mib, 223.10 * 4),
        ("Exchange", 4): ("ring_rate", 4, mib, 225.50 * 2),
    }
    times = [one for one in entries if one["benchmark"] == "Alltoall" and one["comparable"]]
    assert [in_ours(one) for one in times] == [
        ("alltoall_time", 4, 0, 0.05),
        ("alltoall_time", 4, 8, 45.0),
        ("alltoall_time", 4, mib, 28000),
    ]
    assert {one["name"] for one in times} == {"t_avg[usec]"}
    barrier = named(entries, "t_avg[usec]", benchmark="Barrier")
    assert in_ours(barrier) == ("barrier_time", 4, 0, 28.6)


def test_a_megabyte_of_an_old_imb_is_of_2_to_the_20(tmp_path: Path) -> None:
    (rate,) = [one for one in imported(tmp_path, "imb-3.2.txt") if one["name"] == "Mbytes/sec"]
    assert rate["unit"] == "MiB/s"
    assert in_ours(rate) == ("ring_rate", 4, 1 << 20, 215.05 * 1.048576 * 8 / 4)


@pytest.mark.parametrize(
    ("rate", "mega", "unit"), [(3711.45, 1 << 20, "MiB/s"), (3891.72, 10**6, "MB/s")]
)
def test_an_imbs_times_say_what_its_megabyte_is(
    tmp_path: Path, rate: float, mega: int, unit: str
) -> None:
    """4.1 still had 2^20: 4 MiB in 1077.75 us were 3711.45 Mbytes/sec."""
    path = tmp_path / "imb.txt"
    path.write_text(
        "#    Intel (R) MPI Benchmarks 4.1 Update 1, MPI-1 part\n"
        "# Benchmarking PingPong\n# #processes = 2\n"
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        f"      4194304           10      1077.75      {rate}\n"
        "# All processes entering MPI_Finalize\n"
    )
    (found,) = (one for one in kinds.read(path).figures if one.name == "Mbytes/sec")
    assert found.comparable is not None
    assert (found.unit, found.comparable.value) == (unit, pytest.approx(rate * mega * 8 / 1e6))
    assert found.comparable.value == pytest.approx(8 * 4194304 / 1077.75, rel=1e-5)


def test_osu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = imported(tmp_path, "osu.txt", ranks=4)
    mib = 1 << 20
    assert in_ours(named(entries, "Latency (us)", size=8)) == ("pingpong_time", 2, 8, 11.20)
    one_way = named(entries, "Bandwidth (MB/s)", benchmark="Bandwidth", size=mib)
    assert in_ours(one_way) == ("one_way_rate", 2, mib, 117.40 * 8)
    both = named(entries, "Bandwidth (MB/s)", benchmark="Bi-Directional Bandwidth")
    assert in_ours(both) == ("both_ways_rate", 2, mib, 230.20 * 4)
    assert both["version"] == "7.5"
    averages = [one for one in entries if one["name"] == "Avg Latency(us)"]
    assert [in_ours(one)[:3] for one in averages] == [
        *(("allreduce_time", 4, 4), ("allreduce_time", 4, mib)),
        *(("alltoall_time", 4, 8), ("bcast_time", 4, 8), ("barrier_time", 4, 0)),
    ]
    assert named(entries, "Max Latency(us)", size=4)["comparable"] is None
    assert named(entries, "MB/s")["comparable"] is None  # two pairs at a time
    assert capsys.readouterr().err == ""


def test_osu_does_not_say_on_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = imported(tmp_path, "osu.txt")
    assert all(one["comparable"] is None for one in entries if one["name"] == "Avg Latency(us)")
    assert "say --ranks N" in capsys.readouterr().err


def test_iperf3(tmp_path: Path) -> None:
    """What was received counts, at the client and at the server."""
    one, server, three, udp, both = (
        imported(tmp_path / name, f"iperf3-{name}.json")
        for name in (
            "client_single",
            "server_single",
            "client_parallel",
            "client_udp",
            "client_bidir",
        )
    )
    name = "sum_received.bits_per_second"
    rate = named(one, name)
    assert in_ours(rate) == ("one_way_rate", 2, None, rate["value"] / 1e6)
    assert named(server, name)["value"] == rate["value"]
    assert named(three, name)["benchmark"] == "TCP, 3 connections"
    assert len([each for each in three if each["name"].startswith("streams.")]) == 3
    assert {each["name"]: each["comparable"] for each in udp}["sum.lost_percent"] is None
    assert named(udp, name)["comparable"] is None  # the rate that was asked for
    ways = [in_ours(each)[0] for each in both if each["comparable"]]
    assert ways == ["both_ways_rate", "both_ways_rate"]


def test_perftest(tmp_path: Path) -> None:
    """Its MB is of 2^20 bytes, its Gb of 10^9 bits; both ways are added up."""
    average = "BW average[MB/sec]"
    one_way = named(imported(tmp_path / "a", "ib_write_bw.txt"), average)
    assert one_way["unit"] == "MiB/s"
    assert in_ours(one_way) == ("one_way_rate", 2, 65536, one_way["value"] * 1.048576 * 8)
    both = named(imported(tmp_path / "b", "ib_write_bw-both.txt"), average)
    assert in_ours(both) == ("both_ways_rate", 2, 65536, both["value"] * 1.048576 * 4)
    gigabits = named(imported(tmp_path / "c", "ib_write_bw-gbits.txt"), "BW average[Gb/sec]")
    assert in_ours(gigabits) == ("one_way_rate", 2, 65536, gigabits["value"] * 1e3)
    latency = imported(tmp_path / "d", "ib_send_lat.txt")
    assert in_ours(named(latency, "t_avg[usec]")) == ("pingpong_time", 2, 8, 1136.56)
    assert named(latency, "99% percentile[usec]")["value"] == 4046.36


def test_perftest_with_its_processor_time(tmp_path: Path) -> None:
    """--cpu_util adds a column: it is no damage."""
    path = tmp_path / "ib_write_bw.txt"
    lines = (DATA / "ib_write_bw.txt").read_text().splitlines()
    head = next(n for n, line in enumerate(lines) if line.lstrip().startswith("#bytes"))
    lines[head] += "   CPU_Util[%]"
    lines[head + 1] += "      25.00"
    path.write_text("\n".join(lines) + "\n")
    (used,) = (one for one in kinds.read(path).figures if one.name == "CPU_Util[%]")
    assert (used.value, used.unit, used.comparable) == (25.0, "%", None)


def test_a_read_takes_the_whole_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "ib_read_lat.txt"
    text = (DATA / "ib_send_lat.txt").read_text()
    path.write_text(text.replace("Send Latency Test", "RDMA_Read Latency Test"))
    figures = kinds.read(path).figures
    assert figures
    assert all(one.comparable is None for one in figures)


# --- what holds for every program ----------------------------------------------------------------

FILES = sorted(path.name for path in DATA.iterdir() if path.suffix != ".md")
every = pytest.mark.parametrize("name", FILES)


def test_every_program_has_a_file_here() -> None:
    assert {kinds.read(DATA / name).figures[0].tool for name in FILES} == {
        kind.tool for kind in kinds.KINDS
    }


@every
def test_a_file_is_known_by_one_reader(name: str) -> None:
    knowing = [kind.tool for kind in kinds.KINDS if kind.knows((DATA / name).read_text())]
    assert knowing == [kinds.read(DATA / name).figures[0].tool]


@every
def test_each_figure_says_what_it_is(name: str) -> None:
    for figure in kinds.read(DATA / name, 4).figures:
        assert math.isfinite(figure.value)
        assert figure.name
        assert figure.benchmark
        assert figure.definition
        assert figure.ranks is None or figure.ranks > 0
        ours = figure.comparable
        if ours is not None:
            assert ours.measure in COMMON
            assert ours.ranks > 0
            assert ours.value > 0
            assert ours.conversion


@every
def test_a_file_that_windows_has_kept(name: str, tmp_path: Path) -> None:
    """A mark of the encoding before it, and lines that end with two characters."""
    kept = tmp_path / "kept.txt"
    kept.write_bytes(b"\xef\xbb\xbf" + (DATA / name).read_bytes().replace(b"\n", b"\r\n"))
    assert kinds.read(kept, 4).figures == kinds.read(DATA / name, 4).figures


@every
def test_a_file_that_was_cut_is_refused_or_says_less(name: str, tmp_path: Path) -> None:
    """Never another figure than the whole file has, and never a traceback."""
    content = (DATA / name).read_bytes()
    whole = kinds.read(DATA / name, 4).figures
    path = tmp_path / "cut.txt"
    for at in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:at])
        found, refusal = [], f"{path}: no figure"
        try:
            found = kinds.read(path, 4).figures
        except ConfigurationError as error:
            refusal = str(error)
        assert all(figure in whole for figure in found)
        assert refusal.startswith(f"{path}: ")
        assert "\n" not in refusal


# --- the directory -------------------------------------------------------------------------------


def test_records_and_originals(tmp_path: Path) -> None:
    entries = imported(tmp_path, "hpcc-2.txt", "imb-2019.txt", "hpcc-2.txt")
    out = tmp_path / "out"
    records = [parse(line) for line in (out / "records.ndjson").read_bytes().splitlines()]
    assert {record["type"] for record in records} == {"imported"}
    assert [record["value"] for record in records] == [one["value"] for one in entries]
    assert {one["file"] for one in entries} == {
        "originals/hpcc-2.txt", "originals/imb-2019.txt", "originals/hpcc-2-2.txt",
    }  # fmt: skip
    for one in entries:
        assert (out / one["file"]).read_bytes().startswith((DATA / "hpcc-2.txt").read_bytes()[:1])


def test_a_directory_that_holds_something_is_not_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["import", str(DATA / "osu.txt"), "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


# --- what is refused -----------------------------------------------------------------------------


def cut(name: str, share: float) -> Callable[[], bytes]:
    """The first part of a file."""
    return lambda: (DATA / name).read_bytes()[: int(share * (DATA / name).stat().st_size)]


def changed(name: str, old: str, new: str) -> Callable[[], bytes]:
    """A file with some words changed."""

    def make() -> bytes:
        text = (DATA / name).read_text()
        assert old in text
        return text.replace(old, new).encode()

    return make


def header(name: str, until: str) -> Callable[[], bytes]:
    """A file up to these words."""
    return lambda: (DATA / name).read_text().partition(until)[0].encode()


REFUSED: list[tuple[Callable[[], bytes], str]] = [
    (lambda: b"", "it is empty"),
    (lambda: b"hello\n", "it is none of what is read: HPCC's hpccoutf.txt"),
    (lambda: b"\xff\xfe\0\0", "is no text"),
    (lambda: b"HPLinpack benchmark input file\n", "HPCC's input: take hpccoutf.txt"),
    (lambda: b"Connecting to host 10.0.0.1, port 5201\n", "run it with --json"),
    (lambda: b'{\n "schema": "switchbench-summary/1"\n}', "a result of Switchbench itself"),
    (cut("hpcc-4.txt", 0.5), "cut before HPCC's summary section"),
    (cut("hpcc-4.txt", 0.9), "cut within HPCC's summary section"),
    (changed("hpcc-4.txt", "VersionMinor=5", "VersionMinor=6"), "HPCC 1.6.0 wrote it"),
    (changed("hpcc-4.txt", "VersionMajor=1", "VersionMajor=0"), "measured otherwise"),
    (changed("hpcc-4.txt", "PTRANS_GBs=0", "PTRANS_GBs=x0"), "PTRANS_GBs is 'x0.28"),
    (changed("hpcc-4.txt", "CommWorldProcs=", "Procs="), "lacks VersionMajor or CommWorldProcs"),
    (cut("imb-2019.txt", 0.7), "cut"),
    (changed("imb-2019.txt", "2019", "2031"), "IMB 2031 wrote it, which is newer"),
    (changed("imb-2019.txt", "MPI-1 part", "MPI-2 part"), "IMB's part MPI-2: only MPI-1"),
    (changed("imb-2019.txt", "      9400.00", ""), "5 values below 6 columns of Sendrecv"),
    (cut("osu.txt", 0.2), "cut"),
    (header("osu.txt", "0                      11.05"), "OSU's Latency has no results"),
    (changed("osu.txt", "v7.5", "v8.0"), "OSU 8.0 wrote it, which is newer"),
    (cut("iperf3-client_single.json", 0.6), "cut or damaged"),
    (lambda: b'{"start": {"version": "iperf 3.12"}, "error": "no server"}', "failed: no server"),
    (changed("iperf3-client_single.json", "iperf 3.12", "iperf 4.0"), "iperf3 4.0 wrote it"),
    (changed("iperf3-client_single.json", "sum_received", "sum_got"), "no sum of what was"),
    (cut("ib_write_bw.txt", 0.92), "the line below the table of RDMA_Write BW is missing"),
    (header("ib_write_bw.txt", " 65536 "), "RDMA_Write BW has no results"),
    (changed("hpcc-4.txt", "CommWorldProcs=4", "CommWorldProcs=0"), "is no number of processes"),
    (changed("hpcc-4.txt", "PTRANS_GBs=0", "PTRANS_GBs=inf #"), "PTRANS_GBs is 'inf"),
    (changed("osu.txt", "11.05", "nan"), "Latency (us) is 'nan', which is no number"),
    (changed("osu.txt", "11.05", "-11.05"), "Latency (us) of Latency is -11.05: it is damaged"),
    (changed("osu.txt", "\n8 ", "\n8.5 "), "2 values below 2 columns of Latency"),
    (changed("imb-2019.txt", "      9400.00", "  nan"), "6 values below 6 columns of Sendrecv"),
    (changed("iperf3-client_single.json", '"blksize":\t131072', '"blksize": []'), "is damaged"),
    (changed("iperf3-client_udp.json", '"jitter_ms":', '"jitter_ms": NaN, "was":'), "NaN"),
    (lambda: b'{"intervals":' + b"[" * 100_000, "it is cut or damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), REFUSED)
def test_one_sentence_and_nothing_written(
    content: Callable[[], bytes], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "given.txt", tmp_path / "out"
    path.write_bytes(content())
    assert main(["import", str(DATA / "osu.txt"), str(path), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert str(path) in said.err
    assert not out.exists()


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "can't be read: No such file or directory" in capsys.readouterr().err


def test_the_command_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["import", str(DATA / "hpcc-4.txt"), "--out", str(out), "--all"]) == 0
    shown = capsys.readouterr().out
    assert "hpcc 1.5.0" in shown
    assert "31 figures, 12 by a definition that others share" in shown
    assert json.loads((out / "summary.json").read_text())["run"]["launch"] == "import"


@pytest.mark.parametrize(
    "damage",
    [
        {"value": "fast"},
        {"comparable": 7},
        {"comparable": {"measure": 3}},
        {"size": []},
        {"file": None},
        "x",
    ],
)
def test_table_of_a_damaged_figure(
    damage: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence that names it, and the rest of the table."""
    out = bring_in(tmp_path / "out", DATA / "hpcc-4.txt")
    summary = load_summary(out)
    entries = summary["imported"]
    entries[0] = damage if isinstance(damage, str) else entries[0] | damage
    replace_json(out / SUMMARY, summary)
    capsys.readouterr()
    assert main(["table", str(out)]) == 2
    said = capsys.readouterr()
    assert "RandomlyOrderedRing" in said.out
    assert re.match(r"switchbench: .*summary\.json is damaged: `imported[\w.]*` has a", said.err)
    assert said.err.count("\n") == 1


def test_table_and_report_show_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "hpcc-4.txt")
    out = tmp_path / "out"
    capsys.readouterr()
    assert main(["table", str(out)]) == 0
    assert "RandomlyOrderedRingBandwidth_GBytes" in capsys.readouterr().out
    table = tables.imported(load_summary(out))
    assert table is not None
    assert table.rows == 31
    assert main(["report", str(out)]) == 0
    assert "Other programs" in (out / "report.html").read_text()
