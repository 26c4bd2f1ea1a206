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
from recorded import fed, printed
from switchbench.analysis.data import Measured
from switchbench.base import format
from switchbench.render import printer, tables
from switchbench.render.first_screen import bypasses, findings, lines, named
from switchbench.render.printer import Column
from switchbench.render.report import build
from synthetic import about, make_run, make_site, make_trial, pair_records

SITE = make_site()


def test_the_phase_that_lost_most_is_shown_too() -> None:
    """Five of seven phases are shown, the slowest ones."""
    summary = summary_of("matrices")
    assert "  distance 4 " not in printed(summary)
    lossy = (one for one in summary["trials"] if one["phase_name"] == "distance 4")
    next(lossy)["lost_frames"] = 72
    assert printed(summary).count("  distance 4 ") == 1


def test_markup_in_names_is_text() -> None:
    run = make_run(SITE, make_trial(SITE, parameters={"partners": "[bold]x[/bold]"}))
    assert "pairs [bold]x[/bold]" in printed(fed(run, pair_records()).finish(about(), []))


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


@pytest.mark.rows
def test_how_values_are_shown(kind: str, value: float | None, shown: str) -> None:
    assert Column("a", "a", kind).show(value) == shown


WIDE = (
    Column("name", "name", "text"),
    Column("first of two", "first", unit="Mbit/s", drop=2),
    Column("second", "second", "count", drop=1),
)
ROWS = [{"name": "node1", "first": 1.0, "second": 7}, {"name": "node2", "first": 2.0, "second": 8}]


@pytest.mark.parametrize(("width", "titles"), [(30, 3), (16, 2), (8, 1)])
def test_a_narrow_terminal_loses_columns_in_their_order(width: int, titles: int) -> None:
    stream = io.StringIO()
    made = printer.make("t", "T", "", WIDE, ROWS, "zeros")
    printer.show(made, Console(file=stream, width=width, no_color=True))
    lines = stream.getvalue().splitlines()
    assert sum(column.title.split()[0] in lines[0] for column in WIDE) == titles
    assert max(map(len, lines)) <= width


def test_page_and_terminal_have_the_same_kinds() -> None:
    """page/table.js and SHOWN print the same kinds of values."""
    script = (Path(build.__file__).parent / "page" / "table.js").read_text("utf-8")
    body = script.partition("const SHOW = {")[2].partition("};")[0]
    assert set(re.findall(r"^\s+(\w+)", body, re.M)) == set(printer.SHOWN)


# --- what stands first on a screen ----------------------------------------------------------------


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
