# SPDX-License-Identifier: BSD-3-Clause
"""The printed result: columns, figures, verdict, gaps, and what a narrow terminal leaves out."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from recorded import fed
from switchbench.base import format
from switchbench.base.model import Run
from switchbench.render.terminal import SummaryPrinter
from synthetic import (
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    pair_records,
    phase_record,
    trial_record,
)

SITE = make_site()


def summarise(records: list[dict[str, Any]], run: Run, *faults: str) -> dict[str, Any]:
    summary = fed(run, records)
    return summary.finish(about(), faults)


def printed(summary: dict[str, Any], width: int = 120, every_phase: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True)
    SummaryPrinter(summary, console, every_phase).print("results/x")
    return stream.getvalue()


def row(text: str, start: str) -> list[str]:
    """The cells of the first line that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return line.split()


def phases_in(text: str) -> list[str]:
    """The distances of the table's phases, in its order."""
    rows = [line for line in text.splitlines() if line.startswith("  distance ")]
    return [line.split()[1] for line in rows]


def plan_records(site: Any, rates: list[int], trial: int = 0) -> list[dict[str, Any]]:
    """One flow a phase, so many frames in each."""
    records = []
    for phase, frames in enumerate(rates):
        place = {"trial": trial, "phase": phase}
        for side in ("source", "destination"):
            records.append(frame_side(side, "node1:e0", "node2:e0", frames, frames) | place)
        for process in site.processes:
            records.append(phase_record(process.name, name=f"distance {phase + 1}", **place))
    for process in site.processes:
        records.append(trial_record(process.name, trial=trial, elapsed_ns=12_300_000_000))
    return records


def aapc(rates: list[int]) -> dict[str, Any]:
    trial = make_trial(
        SITE,
        pattern={"name": "aapc"},
        parameters={"order": "shift", "sync": "barrier"},
        phases=len(rates),
        flows=len(rates),
    )
    return summarise(plan_records(SITE, rates), make_run(SITE, trial))


def test_a_row_by_hand() -> None:
    summary = summarise(pair_records(), make_run(SITE, make_trial(SITE)))
    text = printed(summary, width=160)
    assert "dpdk, 1518 B frames at 95 % of line, network lab, payload, one way" in text
    cells = row(text, "pairs neighbours,")
    # pattern, ranks, offered, min, mean, max, all, frames/s, mean port, min port, lost, ppm,
    # reordered, duplicated frames, skew, CPU, flow
    assert cells == ["pairs", "neighbours,", "2", "ranks", "94.99", "92.52", "92.58", "92.64",
                     "185.2", "15,430", "94.93", "94.86", "10", "625.0", "3", "2", "120.5", "20.85",
                     "node2", "→", "node1"]  # fmt: skip
    assert "In all rows: dropped in hosts 0, corrupted 0, misdelivered 0." in text
    assert max(map(len, printed(summary).splitlines())) <= 120


def test_aapc_shows_its_five_worst_phases() -> None:
    summary = aapc([7000, 6000, 7100, 5000, 7200, 6500, 6400, 6300])
    text = printed(summary)
    assert phases_in(text) == ["4", "2", "8", "7", "6"]
    whole = next(line for line in text.splitlines() if "aapc shift, 2 ranks, 8 phases" in line)
    assert "60.00" in whole  # 5,000 frames of 12,000 bit
    assert "3 more phases of these patterns: --all" in text
    every = printed(summary, every_phase=True)
    assert phases_in(every) == [str(i + 1) for i in range(8)]
    assert "more phase" not in every


def test_the_phase_that_lost_most_is_shown_too() -> None:
    summary = aapc([7000, 6000, 7100, 5000, 7200, 6500, 6400, 6300])
    summary["trials"][4]["lost_frames"] = 72
    assert phases_in(printed(summary)) == ["4", "2", "8", "7", "6", "5"]


def test_bad_port_is_listed_with_its_switch_port() -> None:
    site = make_site(6)
    object.__setattr__(site.ports[3], "switch", "leaf2")
    object.__setattr__(site.ports[3], "switch_port", "Eth1/17")
    records = []
    for number in range(6):
        ends = (f"node{number + 1}:e0", f"node{(number + 1) % 6 + 1}:e0")
        got = 900 if ends[1] == "node4:e0" else 1000
        records.append(frame_side("source", *ends, 1000, 1000))
        records.append(frame_side("destination", *ends, got, got))
    text = printed(summarise(records, make_run(site, make_trial(site, flows=6))))
    line = next(line for line in text.splitlines() if line.startswith("node4:e0 "))
    assert {"leaf2", "Eth1/17", "0.900"} <= set(line.split())
    assert "100" in line
    assert "Fault " in text


def test_verdict_faults_alarms_and_gaps() -> None:
    clauses = (
        {"id": "4.2", "clause": "No frame lost", "measure": "lost_frames", "over": "flow",
         "require": "== 0"},
        {"id": "4.3", "measure": "throughput", "over": "flow", "require": ">= 90"},
    )  # fmt: skip
    run = make_run(SITE, make_trial(SITE), make_trial(SITE, 1), expectations=clauses)
    records = [*pair_records(), {"type": "event", "node": "node1", "kind": "link-down",
                                 "port": "node1:e0", "text": "lost"}]  # fmt: skip
    text = printed(summarise(records, run, "node2 died"))
    words = " ".join(text.split())
    assert "4.2 FAIL lost_frames == 0 10.00 frames -10.00" in words
    assert "4.3 INCONCLUSIVE throughput >= 90 92.52 Mbit/s 2.520" in words
    assert "4.2: No frame lost" in words
    assert "4.3: 1 of 2 trials were not measured" in words
    counts = "(1 failed, 1 inconclusive, 0 passed)"
    assert f"FAIL: The system under test does not meet 1 of 2 clauses {counts}." in words
    assert "not a conformance certificate" in words
    assert "1 of 2 trials were not measured" in " ".join(text.split())
    assert "trial 1 (pairs, dpdk, lab, 2 ranks): nothing measured" in text
    found = text[text.index("Findings\n") :]
    assert "  error    node2 died\n" in found
    assert "  warning  node1:e0: link-down: lost\n" in found
    assert "partial in" in text


@pytest.mark.parametrize("width", [50, 60, 80, 100, 120, 160])
def test_narrow_terminals_lose_columns_not_figures(width: int) -> None:
    text = printed(aapc([7000, 6000, 7100]), width)
    rows = ("pattern and", "aapc shift, 2 ranks", "  distance")
    table = [line for line in text.splitlines() if line.startswith(rows)]
    assert len(table) == 5
    for line in table:
        assert len(line) <= width
        assert "…" not in line
        assert line is table[0] or "node1 → node2" in line  # whatever goes, the worst flow stays
    assert [name in table[0] for name in ("min", "frames/s")] == [width > 50, width > 60]


def test_markup_in_names_is_text() -> None:
    trial = make_trial(SITE, parameters={"partners": "[bold]x[/bold]"})
    assert "pairs [bold]x[/bold]" in printed(summarise(pair_records(), make_run(SITE, trial)))


def test_units() -> None:
    assert format.unit_for([0.5]).name == "kbit/s"
    assert format.unit_for([9999.0, None]).show(9999.0) == "9,999"
    assert format.unit_for([94_000.0]).show(94_000.0) == "94.00"
    assert format.unit_for([94_000.0]).name == "Gbit/s"
    assert format.seconds(99.94) == "99.9 s"
    assert format.seconds(125) == "2:05"
    assert format.seconds(7260) == "2 h 01 min"
