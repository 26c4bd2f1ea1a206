# SPDX-License-Identifier: BSD-3-Clause
"""Tables are declared once: the terminal, the report and CSV files say the same of a run."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from golden import NAMES, unpack
from switchbench.analysis.data import Measured
from switchbench.cli.main import main
from switchbench.render import printer, tables
from switchbench.render.first_screen import named
from switchbench.render.printer import PAGE, TERMINAL, Column
from switchbench.render.report import build


@pytest.fixture(scope="module", params=NAMES)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured.load(unpack(request.param, tmp_path_factory.mktemp("golden")))


def block(page: str, name: str) -> Any:
    """The data of one table, as the page's script unpacks it."""
    found = re.search(rf'id="data-table-{name}">([^<]+)</script>', page)
    return None if found is None else json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_page_and_csv_bear_the_same(measured: Measured, tmp_path: Path) -> None:
    """Headings and numbers of each table; what a page says once, a file has in each row."""
    page = build.make(measured).text
    measured = replace(measured, summary=named(measured.summary))
    written = {
        path.stem: path for path in printer.write_csv(tables.every(), measured.summary, tmp_path)
    }
    compared = 0
    for spec in tables.every():
        data = block(page, spec.name)
        made = spec(measured.summary)
        assert (made is None) == (spec.name not in written), spec.name
        if made is None or data is None:
            continue
        with written[spec.name].open(newline="") as file:
            head, *rows = csv.reader(file)
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


def test_report_writes_every_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = unpack("tree", tmp_path)
    folder = tmp_path / "data"
    out = tmp_path / "r.html"
    assert main(["report", str(directory), "--out", str(out), "--table", str(folder)]) == 0
    said = capsys.readouterr().out
    assert {"phases.csv", "plans.csv", "ports.csv"} <= {path.name for path in folder.iterdir()}
    assert str(folder / "phases.csv") in said


@pytest.mark.parametrize("name", ["matrices", "tree"])
def test_table_writes_for_programs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON and CSV have the same tables, columns and numbers, in units that no run changes."""
    directory = str(unpack(name, tmp_path))
    status = main(["table", directory, "--json"])
    found = json.loads(capsys.readouterr().out)["tables"]
    assert {"plans", "phases", "ports", "nodes"} <= found.keys()
    for table in found.values():
        keys = [column["key"] for column in table["columns"]]
        assert len(set(keys)) == len(keys), table["title"]
        assert all(list(row) == keys for row in table["rows"])
        assert {c["unit"] for c in table["columns"]}.isdisjoint({"Gbit/s", "kbit/s"})
    assert main(["table", directory, "--csv"]) == status
    parts = capsys.readouterr().out.split("\n\n")
    assert [part.splitlines()[0] for part in parts] == [f"# {name}" for name in found]
    assert main(["table", directory, "--csv", "--only", "phases"]) == status
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    columns = found["phases"]["columns"]
    assert len(head) == len(columns)
    for row, wanted in zip(rows, found["phases"]["rows"], strict=True):
        assert row == ["" if value is None else str(value) for value in wanted.values()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--json", "--only", "phase"], "--only phase: there is no such table (tables: clauses, "),
        (["--only", "phases"], "--only goes with --json or --csv"),
    ],
)
def test_tables_that_there_are_not(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["table", str(unpack("matrices", tmp_path)), *words]) == 2
    said = capsys.readouterr()
    assert (said.out, sentence in said.err) == ("", True)


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


def printed(width: int, *columns: Column, entries: list[dict[str, Any]], **more: Any) -> list[str]:
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
    lines = printed(width, *WIDE, entries=ROWS)
    assert sum(column.title.split()[0] in lines[0] for column in WIDE) == titles
    assert max(map(len, lines)) <= width


def test_page_and_terminal_have_the_same_kinds() -> None:
    """page/table.js says how each kind is shown; so does SHOWN."""
    script = (Path(build.__file__).parent / "page" / "table.js").read_text("utf-8")
    body = script.partition("const SHOW = {")[2].partition("};")[0]
    assert set(re.findall(r"^\s+(\w+)", body, re.M)) == set(printer.SHOWN)
