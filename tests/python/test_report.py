# SPDX-License-Identifier: BSD-3-Clause
"""The report but for its browser: words, tables, figures, the first page, and what
damaged results give."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import golden
import pages
from conftest import Command
from golden import block, unpacked
from recorded import replace_rows, rows_in
from simulated import LOSSY, SPANS, Choice, simulate
from simulated import LOSSY_PHASES as PHASES
from switchbench import __version__
from switchbench.analysis.data import Measured
from switchbench.analysis.location.facts import WORDS
from switchbench.analysis.phases import before_last
from switchbench.base.errors import ConfigurationError
from switchbench.records import summary_form
from switchbench.records.directory import SUMMARY
from switchbench.records.summary_form import summary_schema
from switchbench.render import printer, tables
from switchbench.render.first_screen import about_what, first_page
from switchbench.render.report import build, chart, rates
from switchbench.render.report.chart import WORDS as ABOUT
from switchbench.render.report.chart import Figure, packed
from switchbench.render.tables import Heading

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results directory for the tests that only read it."""
    return simulate(tmp_path_factory.mktemp("results") / "run", LOSSY)


# --- definitions ---------------------------------------------------------------------------------


def test_definitions_are_those_of_the_page() -> None:
    """Made anew by: python tests/python/pages.py"""
    stored = json.loads(summary_form.WORDS.read_text())
    assert stored == pages.words_of((ROOT / "doc" / "reference" / "measures.md").read_text())
    assert len(stored) > 60


def test_every_number_has_a_definition() -> None:
    for spec in tables.every():
        for column in spec.columns:
            assert column.definition, f"{spec.name}: {column.title}"


# --- the page ------------------------------------------------------------------------------------


def test_page_is_whole_and_alone(directory: Path, tmp_path: Path, cli: Command) -> None:
    out = tmp_path / "page.html"
    cli.prints("report", directory, "--out", out)
    page = out.read_text()
    assert "{{" not in re.sub(r"(?s)<script>.*", "", page)
    # What a browser would fetch: none of it.
    assert re.findall(r"<(?:link|img|iframe|object)\b", page) == []
    assert re.findall(r"<script[^>]+src=", page) == []
    assert "&lt;b&gt;&amp;amp;" in page  # the configuration, as text
    assert block(page, "table-phases")["values"][0]
    assert len(block(page, "table-skew")["values"][0]) == PHASES
    assert out.stat().st_size < 4_000_000


# --- results that are not whole ------------------------------------------------------------------


@pytest.mark.rows
def test_a_damaged_summary_is_made_again_of_the_records(
    changes: dict[str, Any], sentence: str, tmp_path: Path, cli: Command
) -> None:
    directory = simulate(tmp_path / "run", LOSSY)
    summary = json.loads((directory / SUMMARY).read_text())
    (directory / SUMMARY).write_text(json.dumps(summary | changes))
    status, _, errors = cli("report", directory)
    assert status == 2
    assert errors.count("\n") == 2
    assert sentence in errors
    assert "this summary was rebuilt from the tables that can be read" in errors
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


def test_a_signed_directory_is_left_alone(tmp_path: Path, cli: Command) -> None:
    directory = simulate(tmp_path / "run", LOSSY)
    (directory / "manifest.json.sig").touch()
    said = cli.refuses("report", directory)
    assert "would break the signature: name a file elsewhere with --out" in said
    assert not (directory / build.REPORT).exists()
    cli.prints("report", directory, "--out", tmp_path / "report.html")


def test_where_nothing_can_be_written_or_drawn_there_is_one_sentence(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """The path is below a file; or a PDF is asked for without a browser."""
    words = ("report", directory, "--out")
    assert "can't write" in cli.refuses(*words, directory / SUMMARY / "x.html", status=3)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(build.VARIABLE, raising=False)
    assert "install Chromium" in cli.refuses(*words, tmp_path / "r", "--pdf", tmp_path / "p")
    assert not (tmp_path / "r").exists()


def test_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()


def test_a_figure_that_fails_costs_no_other(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kind of figures can't read a file that is cut; the other kinds are drawn."""
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


@pytest.mark.rows
def test_ports_are_named_by_host_where_all_are_called_alike(
    ports: list[str], names: list[str]
) -> None:
    assert Measured(Path(), {}, ports=ports).names == names


# --- the report's figures -------------------------------------------------------------------------


RANKS = 16
Json = dict[str, Any]


def figures(measured: Measured) -> list[Figure]:
    """Return all figures that the run has data for."""
    return [one for kind in build.KINDS for one in kind(measured)]


@pytest.fixture(scope="module")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    choice = Choice(ranks=RANKS, repeats=2)
    return simulate(tmp_path_factory.mktemp("simulated") / "run", choice)


@pytest.fixture(scope="module")
def measured(simulated_run: Path) -> Measured:
    return Measured.load(simulated_run)


@pytest.fixture(scope="module")
def drawn(measured: Measured) -> dict[str, Figure]:
    return {one.name: one for one in figures(measured)}


def trace(one: Figure, *words: str) -> Json:
    """Return the first trace with all of these words in its name."""
    return next(t for t in one.data if all(word in t["name"] for word in words))


def plans_of(measured: Measured, **wanted: Any) -> list[dict[str, Any]]:
    return [
        plan
        for plan in measured.summary["plans"]
        if all(plan[key] == value for key, value in wanted.items())
    ]


# --- all of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["PhaseEntry", "PlanEntry", "ComparisonEntry"])
def test_the_schema_and_the_figures_know_every_kind_of_traffic(part: str) -> None:
    known = summary_schema()["$defs"][part]["properties"]["traffic"]["enum"]
    kinds = {"stream", "transfer", "burst", "pingpong", "schedule"}
    assert set(known) == set(rates._TRAFFIC) == kinds


def test_series_of_a_figure_differ_without_colour(drawn: dict[str, Figure]) -> None:
    for one in drawn.values():
        lines = [t for t in one.data if t["type"] == "scatter" and "lines" in t["mode"]]
        styles = [
            (t["line"].get("dash"), t["line"].get("width"), str(t.get("marker"))) for t in lines
        ]
        per_group = len({t.get("legendgroup") for t in lines}) if one.name[:6] == "phases" else 0
        assert len(set(styles)) >= (per_group or len(styles))


# --- numbers -----------------------------------------------------------------------------------


def rate_of(simulated_run: Path, plan: dict[str, Any], src: str, dst: str) -> float:
    """Return a flow's throughput in Mbit/s, by hand."""
    wanted = {key: plan[key] for key in ("trial", "repeat", "network")} | {"src": src, "dst": dst}
    rows = rows_in(simulated_run, "flows")
    row = next(row for row in rows if row | wanted == row)
    return 8e3 * float(row["received_window_payload_bytes"]) / float(row["received_window_ns"])


def test_heat_map_has_each_flow_at_its_place(
    simulated_run: Path, measured: Measured, drawn: dict[str, Figure]
) -> None:
    one = drawn["heat-map-1"].data[0]
    cells = unpacked(one["z"])
    assert cells.shape == (RANKS, RANKS)
    assert np.isnan(np.diag(cells)).all()
    plans = plans_of(measured, pattern="aapc", transport="dpdk")
    for src, dst in (("node1", "node2"), ("node3", "node12"), ("node16", "node1")):
        by_hand = [rate_of(simulated_run, p, f"{src}:e0", f"{dst}:e0") for p in plans]
        shown = cells[one["y"].index(src), one["x"].index(dst)]
        assert shown == pytest.approx(np.mean(by_hand), rel=4e-5)


def test_heat_map_is_ordered_by_module(measured: Measured, drawn: dict[str, Figure]) -> None:
    assert [measured.modules[port] for port in measured.ports] == sorted(measured.modules.values())
    assert measured.names == [f"node{number + 1}" for number in range(RANKS)]
    layout = drawn["heat-map-1"].layout
    assert [note["text"] for note in layout["annotations"]] == [f"module{i}" for i in range(1, 5)]
    between = sorted({s["x0"] for s in layout["shapes"] if s["x0"] == s["x1"]})
    assert between == [3.5, 7.5, 11.5]


def test_modules_come_together_whatever_the_sites_order() -> None:
    from switchbench.analysis.data import _in_order

    ports = ["node10:e0", "node1:e0", "node2:e0", "node3:e0"]
    modules = {"node10:e0": "a", "node1:e0": "b", "node2:e0": "a", "node3:e0": "b"}
    summary = {"ports": [{"port": port} for port in ports]}
    assert _in_order(summary, modules) == ["node2:e0", "node10:e0", "node1:e0", "node3:e0"]
    assert _in_order(summary, {}) == ports


def test_a_pair_that_one_repeat_did_not_observe_has_the_others_mean() -> None:
    code = np.array([1, 1, 2])
    values = np.array([4.0, np.nan, np.nan])
    sums = rates._sums(code, values, 2)
    assert sums[0, 1] == 4.0
    assert np.isnan(sums[1, 0])
    assert np.isnan(sums[0, 0])
    assert rates._sums(code, np.ones(3), 2, values)[0, 1] == 1.0


def test_of_many_settings_the_most_uneven_have_a_map(
    measured: Measured, drawn: dict[str, Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MAPS", 1)
    (one, *others) = rates.maps(measured)
    maps = {name for name in drawn if name.startswith("heat-map") and "loss" not in name}
    assert [other.name for other in others] in ([], ["heat-map-1-loss"])
    assert f"{len(maps) - 1} settings with smaller differences between pairs" in one.definition
    assert "smaller differences between pairs" not in drawn["heat-map-1"].definition
    monkeypatch.setattr(rates, "_CELLS", 0)
    assert not [*rates.maps(measured)]


def test_the_end_of_a_transfer_is_each_flows_own(measured: Measured) -> None:
    """Flows of two phases and three ports; one of them brings nothing."""
    flows = [(phase, src, dst) for phase in (0, 1) for src, dst in ((0, 1), (1, 0), (0, 2), (2, 0))]
    flow = np.repeat(np.arange(len(flows)), 3)
    came = np.concatenate([[9.0] * done + [0.0] * (3 - done) for done in (3, 2, 1, 0, 1, 2, 3, 3)])
    assert np.bincount(flow, before_last(flow, came > 0)).tolist() == [2, 1, 0, 0, 0, 1, 2, 2]
    plan = plans_of(measured, pattern="pairs", transport="tcp")[0]
    every, left = (measured.intervals(one, 0) for one in (plan, plan | {"traffic": "transfer"}))
    assert len(left.flow) == RANKS * (SPANS - 1)
    assert left.spans.floats("to_ms").max() < every.spans.floats("to_ms").max()


# --- messages ----------------------------------------------------------------------------------


# --- what a directory may be like --------------------------------------------------------------


@pytest.fixture
def copy(simulated_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(simulated_run, tmp_path / "copy"))


def test_without_tables_the_summarys_figures_are_there(copy: Path) -> None:
    remove_tables(copy)
    names = {one.name for one in figures(Measured.load(copy))}
    assert {"nodes-chain", "plans", "phases-1"} <= names
    assert not any(name.startswith(("heat", "course", "latency")) for name in names)


def remove_tables(simulated_run: Path) -> None:
    for file in simulated_run.glob("*.parquet"):
        file.unlink()


def test_what_was_not_observed_is_drawn_as_a_gap(copy: Path) -> None:
    """A run broke off: its times and the throughput of whole phases are unknown."""
    rows = rows_in(copy, "flows")
    replace_rows(copy, "flows", [row | {"received_window_ns": None} for row in rows])
    summary = json.loads((copy / SUMMARY).read_text())
    for plan in summary["plans"]:
        plan["elapsed_s"] = None
    for phase in summary["trials"][::2]:
        phase["throughput"] |= dict.fromkeys(("min", "mean", "max", "total"))
        phase |= dict.fromkeys(("start_skew_us", "lost_frames", "cpu_s"))
    (copy / SUMMARY).write_text(json.dumps(summary))
    made = {one.name: one for one in figures(Measured.load(copy))}
    assert json.dumps([[one.data, one.layout] for one in made.values()], allow_nan=False)
    assert not any(name.startswith("heat") for name in made)
    assert trace(made["plan-times"], "tcp")["text"] == ["-"] * len(
        trace(made["plan-times"], "tcp")["y"]
    )


# --- arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        np.arange(100, dtype=np.float64) / 3,
        np.arange(100, dtype=np.int64),
        np.array([1 << 40] * 30),
        np.arange(60, dtype=np.float32).reshape(6, 10),
        np.array([1.5, np.nan, 2.5]),
    ],
)
def test_packed_arrays_come_back(values: Any) -> None:
    text = json.dumps(packed(values), allow_nan=False)  # null is what was not observed
    assert unpacked(json.loads(text)) == pytest.approx(values, nan_ok=True)


def test_coarse_numbers_are_within_what_is_shown() -> None:
    values = np.random.default_rng(1).uniform(1e-6, 1e6, 10_000)
    assert np.abs(chart.coarse(values) / values - 1).max() < 4e-5
    assert np.isnan(chart.coarse(np.array([np.nan]))).all()
    assert chart.coarse(np.array([0.0, 100.0])).tolist() == [0.0, 100.0]


def test_one_way_delays_between_different_clocks_have_no_curve(copy: Path) -> None:
    """Only the summary corrects them."""
    rows = [
        row | {"bound_ns": 100} if row["trial"] == 0 and row["kind"] == "one_way" else row
        for row in rows_in(copy, "histograms")
    ]
    replace_rows(copy, "histograms", rows)
    measured = Measured.load(copy)
    plans = [{"trial": trial, "repeat": trial // 2, "network": "lab"} for trial in (0, 2)]
    times = [measured.times(plan, "one_way") for plan in plans]
    assert [one is None for one in times] == [True, False]


# --- the report's first page ----------------------------------------------------------------------


SUSPECT = {
    "kind": "loss",
    "brief": "switch:p10 in (from node10:e0) loses 2 % of frames",
    "sentence": "switch:p10 in (from node10:e0): loses 2 %; 7 of 7 flows through it suffer",
    "confidence": 1.0,
}


def summary_of(**more: Any) -> dict[str, Any]:
    """Return what the page reads of a summary."""
    ports = [
        {
            "port": f"node{number}:e0",
            "switch": "switch",
            "switch_port": f"p{number}",
            "suspect": "loses 2 % of frames" if number == 10 else None,
            "as_destination": {"median_percent_of_line": None if number == 3 else 95.0},
        }
        for number in (2, 10, 1, 3)
    ]
    run = {"id": "1-a", "started": "2026-01-01T00:00:00Z", "lab": "one-switch", "command": ["x"]}
    location = {"suspects": [SUSPECT]}
    return {"run": run, "ports": ports, "location": location, "expectations": [], **more}


def test_ports_stand_as_on_the_devices_front() -> None:
    ((switch, ports),) = first_page(summary_of())["faces"]  # type: ignore[arg-type]
    assert switch == "switch"
    assert [(one.label, one.mood, one.share) for one in ports] == [
        ("p1", "good", "95 %"),
        ("p2", "good", "95 %"),
        ("p3", "", ""),
        ("p10", "bad", "95 %"),
    ]


def test_a_suspect_has_its_evidence_and_what_to_do() -> None:
    section = build.Section("first", [build.Glance("", "", [], page=first_page(summary_of()))])  # type: ignore[arg-type]
    text = build.render("", "", "", [section])
    assert f"✗ {SUSPECT['brief']}</b>" in text
    assert "suffer (99.9 % sure).</p><p>Swap the cable" in text


def test_each_kind_of_fault_has_advice() -> None:
    assert ABOUT["advice"].keys() == WORDS.keys()


@pytest.mark.rows
def test_the_title_is_the_device(about: dict[str, Any] | None, says: str) -> None:
    summary = summary_of()
    summary["run"]["about"] = about
    assert about_what(summary) == says  # type: ignore[arg-type]


def test_it_reads_without_a_script(tmp_path: Path) -> None:
    """Verdict, clauses with wording, value, limit and margin, and short tables are in the HTML."""
    directory = golden.unpack("acceptance", tmp_path)
    text = build.write(directory, tmp_path / "r.html").read_text()
    still = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "<h1>Example X8, modelled, serial SN-0012, firmware 1.0.3</h1>" in still
    row = re.search(r"<tr><td>B\.1: .*?</tr>", still)
    assert row is not None
    assert re.findall(r"<td[^>]*>(.*?)</td>", row[0])[1:5] == [
        "PASS", "94.76 %", "&gt;= 90 %", "4.760 %",
    ]  # fmt: skip
    assert still.count('<table class="long still">') > 5


def test_many_clauses_and_suspects_are_counted() -> None:
    clause = {
        "id": None, "clause": None, "measure": "lost_frames", "require": "== 0", "verdict": "PASS",
        "value": 0, "margin": 0, "unit": "frames", "of": None, "reason": None,
    }  # fmt: skip
    failed = clause | {"verdict": "FAIL", "value": 3}
    summary = summary_of(
        expectations=[clause] * 13 + [failed], location={"suspects": [SUSPECT] * 4}
    )
    page = first_page(summary)  # type: ignore[arg-type]
    assert [one["verdict"] for one in page["clauses"][:2]] == ["FAIL", "PASS"]
    assert page["further"] == "2 clauses and 1 suspect more below."


def test_the_page_prints(tmp_path: Path, cli: Command) -> None:
    """The first page ends where the paper does: what follows begins on another one."""
    try:
        build.find_browser()
    except ConfigurationError as error:
        pytest.skip(str(error))
    directory = golden.unpack("acceptance", tmp_path)
    pdf = tmp_path / "r.pdf"
    cli.prints("report", directory, "--out", tmp_path / "r.html", "--pdf", pdf)
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 3
