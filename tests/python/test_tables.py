# SPDX-License-Identifier: BSD-3-Clause
"""Tables are declared once: the terminal, the report and CSV files say the same of a run."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
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
from switchbench.render.printer import PAGE, TERMINAL, Column, Spec, Table
from switchbench.render.report import build


@pytest.fixture(scope="module", params=NAMES)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured.load(unpack(request.param, tmp_path_factory.mktemp("golden")))


def lines_of(table: Table) -> list[str]:
    """As a wide terminal prints it, without what stands above and below."""
    stream = io.StringIO()
    printer.show(table, Console(file=stream, width=100_000, no_color=True))
    return stream.getvalue().splitlines()


def block(page: str, name: str) -> Any:
    """The data of one table, as the page's script unpacks it."""
    found = re.search(rf'id="data-table-{name}">([^<]+)</script>', page)
    return None if found is None else json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_page_csv_and_terminal_bear_the_same(measured: Measured, tmp_path: Path) -> None:
    """Headings and numbers of each declared table; what a page says once, a file has in each row,
    and a terminal in words."""
    page = build.make(measured).text
    measured = replace(measured, summary=named(measured.summary))
    written = {
        path.stem: path for path in printer.write_csv(tables.EVERY, measured.summary, tmp_path)
    }
    compared = 0
    for spec in tables.EVERY:
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
        compared += compare_with_terminal(spec, measured, made)
    assert compared > 10


def compare_with_terminal(spec: Spec, measured: Measured, page: Table) -> int:
    """How many columns both have."""
    shown = spec.on_terminal(rows_of(spec, measured))
    assert shown is not None
    lines = lines_of(shown)
    rule = next(i for i, line in enumerate(lines) if set(line) == {"─"})
    first = " ".join(" ".join(lines[:rule]).split())
    both = [c for c in page.columns if any(c.heading == o.heading for o in shown.columns)]
    for column in both:
        assert set(column.title.split()) <= set(first.split()), column.title
        values = page.values[page.columns.index(column)]
        for value, line in zip(values, lines[rule + 1 :], strict=False):
            assert column.show(value) in line, f"{spec.name}: {column.title}"
    return len(both)


def rows_of(spec: Spec, measured: Measured) -> Iterator[Any]:
    for entry in spec.entries(measured.summary):
        name = str(entry.get("phase_name") or entry.get("phase"))
        yield {**entry, "row": name, "spark": None}


@pytest.mark.parametrize("name", ["matrices", "tree"])
def test_report_writes_every_table(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = unpack(name, tmp_path)
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
    assert len({spec.name for spec in tables.EVERY}) == len(tables.EVERY)
    assert len({spec.title for spec in tables.EVERY}) == len(tables.EVERY)


def test_no_heading_stands_twice_in_an_output() -> None:
    for spec in tables.EVERY:
        for output in (PAGE, TERMINAL):
            some = [c.title for c in spec.columns if c.output in (output, printer.BOTH)]
            assert len(some) == len(set(some)), (spec.name, output)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("number", 0.00912345, "0.009123"),
        ("number", 0.005, "0.005"),
        ("number", 12345.6, "12,346"),
        ("signed", 1.5, "+1.500"),
        ("signed", -1.5, "-1.500"),
        ("percent", 94.8, "94.80"),
        ("bytes", 65536, "64 KiB"),
        ("bytes", 3.5, "4 B"),
        ("count", 1234567, "1,234,567"),
        ("text", None, "-"),
    ],
)
def test_how_values_are_shown(kind: str, value: Any, text: str) -> None:
    assert Column("a", "a", kind).show(value) == text


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


def test_groups_stand_above_their_rows() -> None:
    lines = printed(80, *WIDE, entries=ROWS, groups=["a", "b"])
    assert [line for line in lines if line in ("a", "b") or "node" in line][::2] == ["a", "b"]


def test_counters_of_0_are_folded_and_the_rest_is_not() -> None:
    counters = (
        Column("lost", "lost", "count", fold=True),
        Column("same", "same", "text", fold=True),
    )
    entries = [{"name": "x", "lost": 0, "same": "y"}] * 2
    lines = printed(80, WIDE[0], *counters, entries=entries)
    assert lines[0].split() == ["name", "same"]
    assert lines[-1].strip() == "In all rows: lost 0."


def test_page_and_terminal_have_the_same_kinds() -> None:
    """page/table.js says how each kind is shown; so does SHOWN."""
    script = (Path(build.__file__).parent / "page" / "table.js").read_text("utf-8")
    body = script.partition("const SHOW = {")[2].partition("};")[0]
    assert set(re.findall(r"^\s+(\w+)", body, re.M)) == set(printer.SHOWN)
