# SPDX-License-Identifier: BSD-3-Clause
"""What stands first on a screen: at most nine lines, true of what was measured."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from golden import NAMES, kept_summary, unpack
from switchbench.render.first_screen import AtLoad, bypasses, findings, lines, named, ports_at_load
from switchbench.render.terminal import SummaryPrinter


def said(name: str, tmp_path: Path) -> dict[str, str]:
    summary = named(kept_summary(unpack(name, tmp_path)))
    return {line.label: line.text for line in lines(named(summary))}


def printed(summary: dict[str, Any], width: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True)
    SummaryPrinter(summary, console).print("results/x")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_terminal_of_80_columns(name: str, tmp_path: Path) -> None:
    """Whatever the run: long names, many phases, large counts, all that can be said at once."""
    summary = kept_summary(unpack(name, tmp_path))
    summary["run"] |= {"elapsed_s": 98765.4, "remeasured_phases": 12}
    summary["verdict"] = {
        "verdict": "INCONCLUSIVE", "passed": 0, "failed": 0, "inconclusive": 1000, "warnings": [],
        "scope": "", "clauses_sha256": "0", "sentence": "",
    }  # fmt: skip
    summary["expectations"] = [{"verdict": "INCONCLUSIVE"}] * 1000
    for port in summary["ports"]:
        port |= {"driver": "net_mlx5_vdpa", "switch": "leaf-12-of-hall-2", "suspect": "x"}
        port["port"] = f"gpu-node-with-a-long-name-{port['port']}"
    for entry in summary["trials"]:
        entry["pattern"] = "imported-pattern-of-a-long-name"
        entry |= {"retransmitted_segments": 10**7, "retransmitted_packets": 10**8}
        if entry["lost_frames"] is not None:
            entry |= {"lost_frames": 10**9, "offered_frames": 10**12}
    limit = {"port": "node1:e0", "shortfall_percent": 12.3, "dropped_frames": None, "reason": ""}
    summary["trials"][-1]["tester_limited"] = [limit]
    found = lines(named(summary))
    assert 4 <= len(found) <= 7
    for line in found:
        assert len(line.fitted(68)) <= 68
        assert line.fitted(68).startswith(line.text[:30])
        assert line.fitted(1000) == line.text


def test_messages_that_did_not_come_back_are_said_to_be_lost(tmp_path: Path) -> None:
    """A ping-pong over UDP asks again after a lost message: its frames add up, and 17 are lost."""
    summary = kept_summary(unpack("matrices", tmp_path))
    summary.pop("suite", None)
    for entry in summary["trials"]:
        entry |= {"traffic": "pingpong", "lost_frames": 0, "offered_frames": 1000}
        entry["latency"]["round_trip"] = None
    times = dict.fromkeys(("p50", "p99", "max", "mean", "min"), 50.0)
    summary["trials"][0]["latency"]["round_trip"] = {**times, "unit": "us", "count": 99, "lost": 17}
    (line,) = (line for line in lines(named(summary)) if line.label == "Lost")
    assert line.value == "0"
    assert line.said.endswith("; 17 messages of ping-pongs did not come back")
    assert line.style == "yellow"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int, tmp_path: Path) -> None:
    summary = kept_summary(unpack(name, tmp_path))
    summary["run"]["command"] = ["switchbench"]
    text = printed(summary, width)
    assert [line for line in text if len(line) > width] == []
    blank = text.index("", 1)
    assert len(text[:blank]) <= 9
    for line in lines(named(summary)):
        assert sum(row.startswith(f"{line.label} ") for row in text[:blank]) == 1


def test_suspects_are_named_three_at_most(tmp_path: Path) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    suspect = {
        "brief": "left:p7 out (towards node7:e0) loses 0.86 % of frames", "confidence": 0.99,
        "suffering": 7, "through": 7, "beside": 49, "beside_suffering": 0,
    }  # fmt: skip
    summary["location"]["suspects"] = [suspect] * 5
    found = [line for line in lines(named(summary)) if line.label == "Fault"]
    assert [line.style for line in found] == ["bold red"] * 3
    assert found[0].text == f"{suspect['brief']}; 7 of 7 flows; 0 of 49 beside; 99 % sure"
    assert found[2].text.endswith("; 2 more (switchbench locate)")
    assert "Ports" not in {line.label for line in lines(named(summary))}


@pytest.mark.parametrize(
    ("limited", "text"),
    [
        (44, "not judged: the tester was the limit in 44 of 44 phases"),
        (
            43,
            "alike: 94.9 to 95.0 % of line over dpdk (af_packet); 94.9 to 95.1 % of line over tcp",
        ),
    ],
)
def test_where_nothing_is_wrong_it_is_said_whether_anything_was_judged(
    limited: int, text: str, tmp_path: Path
) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    summary["location"] |= {"phases": 44, "limited_phases": limited}
    assert {line.label: line.text for line in lines(named(summary))}["Ports"] == text


def test_a_clause_that_fails_and_a_tester_that_was_the_limit(tmp_path: Path) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    (limited,) = [entry for entry in summary["trials"] if entry["tester_limited"]]
    limited["tester_limited"][0]["shortfall_percent"] = 7.94
    summary["expectations"] = [{"verdict": "PASS"}, {"verdict": "FAIL"}]
    summary["verdict"] = {"verdict": "FAIL", "passed": 1, "failed": 1, "inconclusive": 0}
    summary["trials"][0]["lost_frames"] = 12
    summary["trials"][0]["host_dropped_frames"] = 5
    found = {line.label: (line.text, line.style) for line in lines(named(summary))}
    assert found["Result"][0].startswith("FAIL: 1 failed, 0 inconclusive, 1 passed; 12 trials")
    assert found["Result"][1] == "bold red"
    tester = "1 of 44 phases tester-limited (T), load up to 7.9 % below intended"
    assert found["Tester"] == (tester, "yellow")
    lost = f"12 of 1,006,259 frames, {12 / 1.006259:.3g} ppm; 5 in hosts"
    assert found["Lost"][0].startswith(lost)
    assert found["Lost"][1] == "yellow"


def test_a_run_in_which_nothing_could_be_judged(tmp_path: Path) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    summary |= {"expectations": [], "verdict": None, "exit_status": 4}
    result = lines(named(summary))[0]
    assert result.text.startswith("INCONCLUSIVE: nothing could be judged; 12 trials on 8 ports")
    assert result.style == "yellow"


def test_what_the_tester_limited_is_no_figure_of_the_network(tmp_path: Path) -> None:
    """The best rate and the longest round trip are of other phases; without one there is none."""
    summary = kept_summary(unpack("matrices", tmp_path))
    entry = max(summary["trials"], key=lambda entry: float(entry["throughput"]["total"]))
    rate = {line.label: line.value for line in lines(named(summary))}["Max rate"]
    limit = {"port": "node1:e0", "shortfall_percent": 5.0, "dropped_frames": None, "reason": ""}
    entry["tester_limited"] = [limit]
    assert {line.label: line.value for line in lines(named(summary))}["Max rate"] < rate
    for entry in summary["trials"]:
        entry["tester_limited"] = [limit]
    found = {line.label: line.text for line in lines(named(summary))}
    assert {"Max rate", "RTT p50/p99"}.isdisjoint(found)
    assert found["Tester"].startswith("44 of 44 phases tester-limited (T)")


def test_a_driver_of_the_kernel_is_named_and_is_no_bypass(tmp_path: Path) -> None:
    summary = named(kept_summary(unpack("matrices", tmp_path)))
    assert {entry["transport"] for entry in summary["trials"]} == {"dpdk (af_packet)", "tcp"}
    (row, *_) = summary["comparisons"]
    assert [one["transport"] for one in row["transports"]] == ["tcp", "dpdk (af_packet)"]
    names = (
        "dpdk (mlx5)",
        "dpdk",
        "verbs (mlx5_core)",
        "dpdk (af_packet)",
        "verbs (rdma_rxe)",
        "tcp",
    )
    assert [bypasses(name) for name in names] == [True] * 3 + [False] * 3


def test_ports_at_the_load_asked(tmp_path: Path) -> None:
    """In every phase, and in the median one; a port that is behind over one transport is behind."""
    summary = kept_summary(unpack("matrices", tmp_path))
    assert ports_at_load(named(summary)) == AtLoad(8, 8, 8)
    summary["ports"][0]["as_destination"]["min_percent_of_line"] = 92.0  # of 95 asked
    assert ports_at_load(named(summary)) == AtLoad(7, 8, 8)
    summary["ports"][0]["as_destination"]["median_percent_of_line"] = 92.0
    assert ports_at_load(named(summary)) == AtLoad(7, 7, 8)
    assert ports_at_load(named(kept_summary(unpack("tree", tmp_path)))) == AtLoad(0, 0, 16)
    assert ports_at_load(named(kept_summary(unpack("imb", tmp_path)))) is None


def test_sentences_that_differ_in_numbers_alone_are_one_finding(tmp_path: Path) -> None:
    """A search has a hundred trials, and each of them may be above the line."""
    summary = kept_summary(unpack(NAMES[0], tmp_path))
    summary |= {"errors": [], "findings": [], "not_measured": [], "trials": []}
    summary["warnings"] = [
        f"{port}: 100.{trial} % of its line rate delivered to it in trial {trial} pairs phase 0"
        for port in ("node1:e0", "node2:e0")
        for trial in range(1, 40)
    ]
    first, second = findings(summary)
    assert first.text.startswith("node1:e0: 100.1 % of its line rate")
    assert first.text.endswith("(and 38 more of this kind)")
    assert second.text.startswith("node2:e0: ")
    assert list(first.parts + second.parts) == summary["warnings"]
    summary["warnings"] = [
        f"node1:e0: {words} lost in trial 0" for words in ("2 frames", "1 frame")
    ]
    (one,) = findings(summary)
    assert one.text == "node1:e0: 2 frames lost in trial 0 (and 1 more of this kind)"


def test_a_suite_says_nothing_of_ports_that_are_alike(tmp_path: Path) -> None:
    """Its trials have any load, and lose frames on purpose."""
    summary = kept_summary(unpack("matrices", tmp_path))
    summary["suite"] = {"name": "rfc8239"}
    summary["trials"][0]["lost_frames"] = 12
    found = {line.label: line for line in lines(named(summary))}
    assert "Ports" not in found
    assert found["Lost"].value != "0"
    assert found["Lost"].style is None
