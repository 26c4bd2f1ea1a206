# SPDX-License-Identifier: BSD-3-Clause
"""The report but for its browser: words, tables, what damaged results give, the tidy table."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
import yaml

import measures_page
import reports
from switchbench import __version__
from switchbench.analysis import data
from switchbench.analysis.data import Measured, plan_key
from switchbench.cli import main
from switchbench.records import summary_form
from switchbench.records.directory import SUMMARY, load_summary
from switchbench.records.summary_form import NOTHING_LOCATED
from switchbench.render import printer, tables
from switchbench.render.first_screen import named
from switchbench.render.report import build
from switchbench.render.report.chart import Figure
from switchbench.render.tables import Heading

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One results directory for the tests that only read it."""
    return reports.make_directory(tmp_path_factory.mktemp("results") / "run")


def block(page: str, name: str) -> Any:
    """The data of one table or figure, as the page's script unpacks it."""
    found = re.search(rf'id="data-{name}">([^<]+)</script>', page)
    assert found, f"no block {name}"
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def report(directory: Path, *options: str) -> int:
    return main.main(["report", str(directory), *options])


# --- definitions ---------------------------------------------------------------------------------


def test_definitions_are_those_of_the_page() -> None:
    """Made anew by: python tests/python/pages.py"""
    stored = json.loads(summary_form.WORDS.read_text())
    assert stored == measures_page.parse((ROOT / "doc" / "reference" / "measures.md").read_text())
    assert len(stored) > 60


def test_every_number_has_a_definition() -> None:
    for spec in tables.every():
        for column in spec.columns:
            assert column.definition, f"{spec.name}: {column.title}"
    for variable in data.VARIABLES:
        assert variable.meaning, variable.name


# --- the page ------------------------------------------------------------------------------------


def page_of(*parts: build.Part) -> str:
    """A page of these parts alone."""
    section = build.Section("S", list(parts))
    return build.render("what", "heading", "", [section])


def test_text_is_escaped_and_code_looks_typed() -> None:
    page = page_of(build.Words("`a < b` & `c", 'k"'), build.Facts([("<b>", "x")]))
    assert '<p class="k&#34;"><code>a &lt; b</code> &amp; `c</p>' in page
    assert "<dt>&lt;b&gt;</dt><dd>x</dd>" in page


def test_page_is_whole_and_alone(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert report(directory, "--out", str(out)) == 0
    page = out.read_text()
    assert "{{" not in re.sub(r"(?s)<script>.*", "", page)
    # What a browser would fetch: none of it.
    assert re.findall(r"<(?:link|img|iframe|object)\b", page) == []
    assert re.findall(r"<script[^>]+src=", page) == []
    assert "&lt;b&gt;&amp;amp;" in page  # the configuration, as text
    assert block(page, "table-phases")["values"][0]
    assert len(block(page, "table-skew")["values"][0]) == reports.PHASES
    assert out.stat().st_size < 4_000_000


def test_tiles_compare_like_with_like() -> None:
    """A ring's flows share their ports: the least of all rates is theirs, and says nothing."""

    def plan(pattern: str, least: float, mean: float) -> dict[str, Any]:
        rates = {"min": least, "mean": mean}
        return {
            "pattern": pattern, "parameters": {}, "traffic": "stream", "transport": "tcp",
            "trial": 0, "network": "lab",
            "ranks": 8, "size": 65536,
            "size_unit": "message", "lost_frames": None, "throughput": rates,
            "slowest": {"src": f"{pattern}1:e0", "dst": "b:e0"},
        }  # fmt: skip

    plans = [plan("ring", 44.0, 44.0), plan("aapc", 60.0, 80.0)]
    (tile,) = build._slowest(named(whole_summary() | {"plans": plans}))
    assert tile.value == "75.0 % of mean"
    assert tile.text == "aapc1:e0 → b:e0: 60.00 Mbit/s, aapc, tcp, 8 ranks, 64 KiB messages"


def whole_summary() -> dict[str, Any]:
    """As much as the first screen reads, of a run of nothing."""
    run = {"elapsed_s": 1.0}
    lists = ("plans", "ports", "trials", "expectations", "errors", "warnings", "not_measured",
             "findings")  # fmt: skip
    more = {"location": NOTHING_LOCATED, "exit_status": 0}
    return {"status": "complete", "run": run} | {name: [] for name in lists} | more


# --- results that are not whole ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ports": [{"port": "node1:e0", "switch": None}]}, "is damaged: it has no ports.0."),
        ({"mood": "good"}, "is damaged: at `mood`"),
        ({"schema": "switchbench-summary/3"}, "is of a newer form (switchbench-summary/3"),
    ],
)
def test_a_damaged_summary_is_made_again_of_the_records(
    changes: dict[str, Any],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = reports.make_directory(tmp_path / "run")
    reports.change_summary(directory, **changes)
    assert report(directory) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 2
    assert sentence in errors
    assert "what is shown here was made of the tables that there are" in errors
    page = (directory / build.REPORT).read_text()
    assert "This report is not whole." in page
    assert block(page, "table-phases")["values"][0]


def test_what_nobody_thought_of_leaves_the_rest(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_summary: Any) -> Any:
        raise KeyError("of another time")

    made_of = {
        Heading.PORTS: (printer.Spec("fail", "Fail", "", (), fail),),
        Heading.RESULTS: (tables.TABLES["phases"],),
    }
    monkeypatch.setattr(tables, "by_section", lambda: made_of)
    made = build.make(Measured.load(directory))
    assert len(made.damage) == 1
    assert "the table of fail can't be shown" in made.damage[0]
    assert "of another time" in made.damage[0]
    assert block(made.text, "table-phases")["values"][0]


def test_a_signed_directory_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = reports.make_directory(tmp_path / "run")
    (directory / "manifest.json.sig").touch()
    assert report(directory) == 2
    assert "is signed: name a file elsewhere with --out" in capsys.readouterr().err
    assert not (directory / build.REPORT).exists()
    assert report(directory, "--out", str(tmp_path / "report.html")) == 0


def test_no_results_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path / "nowhere") == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert "no results in" in errors


def test_out_that_can_t_be_written(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(directory, "--out", str(directory / SUMMARY / "x.html")) == 3
    assert "can't write" in capsys.readouterr().err


def test_without_a_browser_one_sentence(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(build.VARIABLE, raising=False)
    assert report(directory, "--out", str(tmp_path / "r"), "--figures", str(tmp_path / "f")) == 2
    errors = capsys.readouterr().err
    assert "install Chromium" in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "f").exists()


# --- the tidy table ------------------------------------------------------------------------------


def test_tidy_table_by_hand(directory: Path, tmp_path: Path) -> None:
    assert report(directory, "--out", str(tmp_path / "r"), "--table", str(tmp_path / "t")) == 0
    rows = parquet.read_table(tmp_path / "t" / "flows.parquet").to_pylist()
    assert len(rows) == reports.FLOWS
    phase, port = reports.LOST
    lossy = [row for row in rows if row["lost_frames"]]
    assert [(row["phase"], row["dst"], row["lost_frames"]) for row in lossy] == [
        (phase, port, reports.LOST_FRAMES)
    ]
    first = next(row for row in rows if (row["trial"], row["phase"]) == (0, 0))
    # 8,000 frames of 1,500 B in a second.
    assert first["throughput_mbps"] == pytest.approx(8000 * 1500 * 8 / 1e6)
    assert (first["pattern"], first["parameters"], first["size"]) == ("aapc", "shift", "1518")
    assert first["phase_name"] == "distance 1"
    tcp = next(row for row in rows if row["trial"] == 1)
    assert (tcp["offered_frames"], tcp["lost_frames"], tcp["transport"]) == (None, None, "tcp")


def test_codebook_has_every_column(directory: Path, tmp_path: Path) -> None:
    paths = data.export(directory, load_summary(directory), tmp_path)
    assert [path.name for path in paths] == ["flows.csv", "flows.parquet", "codebook.csv"]
    with (tmp_path / "codebook.csv").open(newline="") as file:
        book = list(csv.DictReader(file))
    with (tmp_path / "flows.csv").open(newline="") as file:
        columns = next(csv.reader(file))
    schema = parquet.read_schema(tmp_path / "flows.parquet")
    assert [row["column"] for row in book] == columns == schema.names
    for row in book:
        field = schema.field(row["column"])
        assert row["type"] == str(field.type)
        assert field.metadata[b"meaning"].decode() == row["meaning"] != ""
        assert field.metadata[b"unit"].decode() == row["unit"]


def test_a_stopped_phase_has_no_loss_anywhere(tmp_path: Path) -> None:
    """Summary, report and table: what was in flight was neither lost nor delivered."""
    directory = reports.make_directory(tmp_path / "run", state="stopped")
    measured = Measured.load(directory)
    plan = measured.summary["plans"][0]
    phases = measured.phases_of(plan)
    assert [entry["lost_frames"] for entry in phases] == [None] * len(phases)
    flows = measured.records.flows(plan_key(plan))
    assert flows is not None
    assert np.isnan(flows.lost).all()
    rows = data.tidy(directory, measured.summary).to_pylist()
    assert {row["lost_frames"] for row in rows if row["trial"] == 0} == {None}


def test_a_damaged_table_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = reports.make_directory(tmp_path / "run")
    (directory / "flows.parquet").write_text("not Parquet")
    assert report(directory, "--table", str(tmp_path / "t")) == 2
    assert "flows.parquet can't be read as Parquet" in capsys.readouterr().err


def test_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()


def test_a_figure_that_fails_costs_no_other(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file cut short is read by one kind of figures; the kinds after it have theirs."""
    whole = build.make(Measured.load(directory))
    drawn = re.findall(r'id="data-(?!table)([^"]+)"', whole.text)
    assert len(drawn) >= 2

    def broken(_measured: Measured) -> Iterator[Figure]:
        raise ValueError("cut short")
        yield

    monkeypatch.setattr(build, "KINDS", (broken, *build.KINDS))
    made = build.make(Measured.load(directory))
    assert re.findall(r'id="data-(?!table)([^"]+)"', made.text) == drawn
    (said,) = made.damage
    assert said.startswith("a figure of broken can't be shown")


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        (["a:e0", "b:e0"], ["a", "b"]),
        (["a:e0", "b:e1"], ["a:e0", "b:e1"]),
        (["a:e0", "a:e1"], ["a:e0", "a:e1"]),
    ],
)
def test_ports_are_named_by_host_where_all_are_called_alike(
    ports: list[str], names: list[str]
) -> None:
    assert Measured(Path(), {}, ports=ports).names == names
