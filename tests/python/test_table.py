# SPDX-License-Identifier: BSD-3-Clause
"""Tables are declared once: the terminal, the report and CSV files say the same of a run; and what
stands first on a screen."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import Command
from golden import NAMES, block, summary_of, unpack
from recorded import fed
from switchbench.analysis.data import Measured
from switchbench.base import format
from switchbench.base.model import Run
from switchbench.render import printer, tables
from switchbench.render.first_screen import bypasses, findings, lines, named
from switchbench.render.printer import PAGE, TERMINAL, Column
from switchbench.render.report import build
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
    """Return the cells of the first line that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return line.split()


def phases_in(text: str) -> list[str]:
    """Return the distances of the table's phases, in its order."""
    rows = [line for line in text.splitlines() if line.startswith("  distance ")]
    return [line.split()[1] for line in rows]


def plan_records(site: Any, rates: list[int], trial: int = 0) -> list[dict[str, Any]]:
    """Return the records of one flow a phase, with these numbers of frames."""
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


# --- tables are declared once ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=NAMES)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured.load(unpack(request.param, tmp_path_factory.mktemp("golden")))


def test_page_and_csv_bear_the_same(measured: Measured) -> None:
    """Headings and numbers of each table; what a page says once, a file has in each row."""
    page = build.make(measured).text
    measured = replace(measured, summary=named(measured.summary))
    written = {one.name: one for one in printer.whole_tables(tables.every(), measured.summary)}
    compared = 0
    for spec in tables.every():
        data = block(page, f"table-{spec.name}")
        made = spec(measured.summary)
        assert (made is None) == (spec.name not in written), spec.name
        if made is None or data is None:
            continue
        lines = written[spec.name].lines()
        head, *rows = (["" if cell is None else str(cell) for cell in line] for line in lines)
        assert [(c["title"], c["unit"]) for c in data["columns"]] == [
            (column.title, column.unit) for column in made.columns
        ]
        titles = [heading.partition(" (")[0] for heading in head]
        for column, values in zip(made.columns, data["values"], strict=True):
            cells = [row[titles.index(column.title)] for row in rows]
            if column.heading in head:
                assert cells == ["" if value is None else str(value) for value in values], spec.name
            else:  # a rate, which the page has in the unit that fits
                scale = {"Gbit/s": 1e-3, "kbit/s": 1e3, "bit/s": 1e6, "Mbit/s": 1}[column.unit]
                known = [(float(c) * scale, v) for c, v in zip(cells, values, strict=True) if c]
                assert known == [(pytest.approx(value), value) for _, value in known]
        compared += len(titles)
    assert compared > 10


@pytest.mark.parametrize("name", ["matrices", "tree"])
def test_table_writes_for_programs(name: str, tmp_path: Path, cli: Command) -> None:
    """JSON and CSV have the same tables, columns and numbers, in units that no run changes."""
    directory = unpack(name, tmp_path)
    status, text, _ = cli("table", directory, "--json")
    found = json.loads(text)["tables"]
    assert {"plans", "phases", "ports", "nodes"} <= found.keys()
    for table in found.values():
        keys = [column["key"] for column in table["columns"]]
        assert len(set(keys)) == len(keys), table["title"]
        assert all(list(row) == keys for row in table["rows"])
        assert {c["unit"] for c in table["columns"]}.isdisjoint({"Gbit/s", "kbit/s"})
    parts = cli.prints("table", directory, "--csv", status=status).split("\n\n")
    assert [part.splitlines()[0] for part in parts] == [f"# {name}" for name in found]
    text = cli.prints("table", directory, "--csv", "--only", "phases", status=status)
    head, *rows = csv.reader(io.StringIO(text))
    columns = found["phases"]["columns"]
    assert len(head) == len(columns)
    for row, wanted in zip(rows, found["phases"]["rows"], strict=True):
        assert row == ["" if value is None else str(value) for value in wanted.values()]


@pytest.mark.rows
def test_tables_that_there_are_not(
    words: list[str], sentence: str, tmp_path: Path, cli: Command
) -> None:
    assert sentence in cli.refuses("table", unpack("matrices", tmp_path), *words)


def test_no_table_has_the_name_or_the_title_of_another() -> None:
    assert len({spec.name for spec in tables.every()}) == len(tables.every())
    assert len({spec.title for spec in tables.every()}) == len(tables.every())


def test_no_heading_stands_twice_in_an_output() -> None:
    for spec in tables.every():
        for output in (PAGE, TERMINAL):
            some = [c.title for c in spec.columns if c.output in (output, printer.BOTH)]
            assert len(some) == len(set(some)), (spec.name, output)


SHOWN: dict[str, dict[Any, str]] = {
    "number": {
        None: "-", 0: "0", 0.00912345: "0.009123", 0.005: "0.005", 0.12345: "0.123",
        9.8765: "9.877", 92.638: "92.64", 9876.5: "9,876", 12345.6: "12,346", -12.345: "-12.35",
    },
    "signed": {1.5: "+1.500", -1.5: "-1.500", -0.0: "+0", -1e-12: "+0", -0.0004: "-4.000e-04"},
    "scientific": {
        0.001: "1.000e-03", 0.05: "5.000e-02", 0.12345: "0.1235", 0.99999: "1.0000",
        1.5: "1.500", -0.25: "-0.2500", 2e6: "2.000e+06",
    },
    "percent": {94.8: "94.80"},
    "bytes": {65536: "64 KiB", 3.5: "4 B"},
    "count": {1234567: "1,234,567"},
    "text": {None: "-"},
}  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN)
def test_how_values_are_shown(kind: str) -> None:
    column = Column("a", "a", kind)
    assert {value: column.show(value) for value in SHOWN[kind]} == SHOWN[kind]


def shown_rows(
    width: int, *columns: Column, entries: list[dict[str, Any]], **more: Any
) -> list[str]:
    stream = io.StringIO()
    made = printer.make("t", "T", "", columns, entries, "zeros")
    printer.show(made, Console(file=stream, width=width, no_color=True), **more)
    return stream.getvalue().splitlines()


WIDE = (
    Column("name", "name", "text"),
    Column("first of two", "first", unit="Mbit/s", drop=2),
    Column("second", "second", "count", drop=1),
)
ROWS = [{"name": "node1", "first": 1.0, "second": 7}, {"name": "node2", "first": 2.0, "second": 8}]


@pytest.mark.parametrize(("width", "titles"), [(30, 3), (16, 2), (8, 1)])
def test_a_narrow_terminal_loses_columns_in_their_order(width: int, titles: int) -> None:
    lines = shown_rows(width, *WIDE, entries=ROWS)
    assert sum(column.title.split()[0] in lines[0] for column in WIDE) == titles
    assert max(map(len, lines)) <= width


def test_page_and_terminal_have_the_same_kinds() -> None:
    """page/table.js and SHOWN print the same kinds of values."""
    script = (Path(build.__file__).parent / "page" / "table.js").read_text("utf-8")
    body = script.partition("const SHOW = {")[2].partition("};")[0]
    assert set(re.findall(r"^\s+(\w+)", body, re.M)) == set(printer.SHOWN)


# --- what stands first on a screen ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_terminal_of_80_columns(name: str) -> None:
    """Runs with long names, many phases and large counts at once."""
    summary = summary_of(name)
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


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    summary = summary_of(name)
    summary["run"]["command"] = ["switchbench"]
    text = printed(summary, width).splitlines()
    assert [line for line in text if len(line) > width] == []
    blank = text.index("", 1)
    assert len(text[:blank]) <= 9
    for line in lines(named(summary)):
        assert sum(row.startswith(f"{line.label} ") for row in text[:blank]) == 1


def put(part: Any, path: str, value: Any) -> None:
    """Put a value at a path of a summary, in which `*` stands for all elements of a list."""
    head, _, rest = path.partition(".")
    for key in range(len(part)) if head == "*" else [int(head) if head.isdigit() else head]:
        if rest:
            put(part[key], rest, value)
        else:
            part[key] = value


@pytest.mark.rows
def test_what_stands_first(changes: dict[str, Any], says: dict[str, Any]) -> None:
    """Each line's text and style; null: there is no such line."""
    summary = summary_of("matrices")
    for path, value in changes.items():
        put(summary, path, value)
    found = [(line.label, line.text, line.style) for line in lines(named(summary))]
    for label, wanted in says.items():
        mine = [one for one in found if one[0] == label]
        assert (len(mine) > 0) == (wanted is not None), label
        for (_, text, style), (expression, expected) in zip(mine, wanted or (), strict=True):
            assert re.fullmatch(expression, text), text
            assert style == expected


def test_what_the_tester_limited_is_no_figure_of_the_network() -> None:
    """The best rate and the longest round trip are of other phases; without one there is none."""
    summary = summary_of("matrices")
    entry = max(summary["trials"], key=lambda entry: float(entry["throughput"]["total"]))
    rate = {line.label: line.value for line in lines(named(summary))}["Max rate"]
    limit = {"port": "node1:e0", "shortfall_percent": 5.0, "dropped_frames": None, "reason": ""}
    entry["tester_limited"] = [limit]
    assert {line.label: line.value for line in lines(named(summary))}["Max rate"] < rate


def test_a_driver_of_the_kernel_is_named_and_is_no_bypass() -> None:
    summary = named(summary_of("matrices"))
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


def test_sentences_that_differ_in_numbers_alone_are_one_finding() -> None:
    """A search has a hundred trials, and each of them may be above the line."""
    summary = summary_of(NAMES[0])
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
