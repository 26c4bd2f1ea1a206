# SPDX-License-Identifier: BSD-3-Clause
"""Ten kept results directories: every reader gives the same numbers as when they were kept, the
printed tables and reports are the same, and `switchbench.load` gives all data. A change of any word
or number fails here.

Transcripts are written by: PYTHONPATH=tests/system python tests/python/test_golden.py"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

import golden
import switchbench
from conftest import Command
from recorded import rows_in, write_tables
from switchbench.analysis import sealing
from switchbench.analysis.data import Measured
from switchbench.analysis.summary import remade
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.records import results
from switchbench.records.directory import CONFIGURATION, PLAN, read_plan, write_plan
from switchbench.records.schema import FORM, TABLES
from switchbench.render.printer import Table
from switchbench.render.report import build
from switchbench.render.report.build import Facts, Glance, Sentences, Words
from switchbench.render.report.chart import Figure
from switchbench.render.terminal import SummaryPrinter
from synthetic import make_run, make_site, make_trial


@pytest.fixture(params=golden.NAMES)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


def test_the_summary_stays_what_it_was(directory: Path) -> None:
    kept = golden.kept_summary(directory)
    assert len(kept["trials"]) > 3
    assert remade(read_plan(directory), directory, kept) == kept


def test_streams_say_what_parquet_says(directory: Path, tmp_path: Path) -> None:
    """The summary of the same rows in streams, in any order of trials, is the same."""
    kept, run = golden.kept_summary(directory), read_plan(directory)
    for file in directory.glob("*.parquet"):
        file.unlink()
    write_tables(directory, run, golden.records_of(directory.name))
    assert remade(run, directory, kept) == kept


_CUT_SHORT = "stopped"


def test_commands_read_results_anywhere(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """On a host without the engine, with one core and no memory to spare."""
    monkeypatch.setenv("SWITCHBENCH_NODE", "/nowhere/switchbench-node")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0})
    monkeypatch.setattr("switchbench.plan.compile.spare_bytes", lambda: 1)
    name, page = directory.name, tmp_path / "r.html"
    sealing.seal(directory)
    again = 3 if name == _CUT_SHORT else 0
    for words, status in (
        (("report", directory, "--out", page), 0),
        (("compare", f"a={directory}", f"b={directory}"), 0),
        (("table", directory, "--again"), again),
        *([(("verify", directory), 0)] if name == "clauses" else []),
    ):
        said = cli(*words)
        assert (said.status, "switchbench-node" in said.out + said.err) == (status, False), words


# --- what people see of the golden results, whole -------------------------------------------------


KEPT = Path(__file__).parent / "data" / "transcripts"


def printed(*words: str) -> str:
    """Return the output of a command, and its exit status."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        status = main(list(words))
    return f"{stream.getvalue()}exit status {status}\n"


def table(name: str) -> str:
    return printed("table", name, "--all")


def compare(name: str) -> str:
    return printed("compare", name, "--by", "transport")


def screen(name: str) -> str:
    """Return what a run prints on a terminal of 80 columns: without --all, the worst of all."""
    stream = io.StringIO()
    console = Console(file=stream, width=80, no_color=True)
    SummaryPrinter(golden.kept_summary(Path(name)), console).print(name)
    return stream.getvalue()


def report(name: str) -> str:
    """Return the page's sections in their order: words, sizes of tables, figures."""
    page = build._Page(Measured.load(Path(name)))
    page.finish()
    return "\n".join(line for section in page.sections.values() for line in outline(section)) + "\n"


def outline(section: Any) -> Iterator[str]:
    if section.parts:
        yield f"{section.title}: {section.contents}{'' if section.open else ', folded'}"
    for part in section.parts:
        figure = part.figure if isinstance(part, Glance) else part
        if isinstance(figure, Figure):
            yield f"  {figure.name}: {figure.title}, {figure.height} px"
            yield from (f"    {json.dumps(short(one))}" for one in (*figure.data, figure.layout))
        if isinstance(part, Glance):
            yield f"  {part.sign} {part.word}: {part.text}"
            yield from (
                f"  {one.mood or '-'} {one.label}: {one.value}; {one.text}" for one in part.tiles
            )
            yield from (f"  {key}: {short(value)}" for key, value in (part.page or {}).items())
        elif isinstance(part, Table):
            yield f"  table {part.name}: {part.rows} rows, {len(part.columns)} columns"
        elif isinstance(part, Words):
            yield f"  {part.text}"
        elif isinstance(part, Sentences):
            yield from (f"  {part.title}: {line}" for line in part.every)
        elif isinstance(part, Facts) and section.title != "What the numbers mean":
            yield from (f"  {key}: {value}" for key, value in part.rows)


def short(value: Any) -> Any:
    """Return a value with five digits of each number, and of long arrays their ends and mean."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    long = isinstance(value, list) and len(value) > 16
    if long and isinstance(value[0], str | list | dict | tuple):
        return [short(value[0]), f"{len(value)} in all", short(value[-1])]
    if long or (isinstance(value, dict) and "bdata" in value):
        known = golden.unpacked(value)
        known = known[~np.isnan(known)]
        return f"{known.min():.5g} to {known.max():.5g}, mean {known.mean():.5g}"
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    return list(map(short, value)) if isinstance(value, list | tuple) else value


KINDS: dict[str, Callable[[str], str]] = {
    "table": table, "screen": screen, "report": report, "compare": compare,
}  # fmt: skip
CASES = [
    *((kind, name) for name in golden.NAMES for kind in ("table", "screen", "report")),
    ("compare", "matrices"),
]


def made(kind: str, name: str, folder: Path) -> str:
    """Return a transcript, without the name of the folder of the results."""
    golden.unpack(name, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return KINDS[kind](name).replace(str(folder), "FOLDER")
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_people_see(kind: str, name: str, tmp_path: Path) -> None:
    assert made(kind, name, tmp_path) == (KEPT / f"{name}.{kind}.txt").read_text()


# --- `switchbench.load` ---------------------------------------------------------------------------


PAGE = Path(__file__).resolve().parents[2] / "doc" / "reference" / "results.md"
COLUMNS = PAGE.parents[1] / "developer" / "summary.md"
NAMED = "results/20260101-120000-four-matrices"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture
def matrices(tmp_path: Path) -> Path:
    return golden.unpack("matrices", tmp_path)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_runs(
    example: str, matrices: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLES) == 3
    assert NAMED in example
    exec(example.replace(NAMED, str(matrices)), {})
    assert "limited" in example or capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", ["flows", "ports", "phases", "histograms"])
def test_the_keys_of_the_page_name_one_row(name: str, matrices: Path) -> None:
    (line,) = re.findall(rf"## {name}\n\n.* Keys: (.*)\.\n", COLUMNS.read_text())
    keys = re.findall(r"`(\w+)`", line)
    rows = [tuple(row.get(key) for key in keys) for row in rows_in(matrices, name)]
    assert len(set(rows)) == len(rows) > 0


def test_duckdb_reads_the_files_as_they_are(matrices: Path) -> None:
    (query,) = QUERIES
    found = duckdb.sql(query.replace(NAMED, str(matrices))).fetchall()
    assert {port for port, _ in found} == {row["dst"] for row in rows_in(matrices, "flows")}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_goes_to(library: str, matrices: Path) -> None:
    flows = switchbench.load(matrices).flows
    found = getattr(flows, f"to_{library}")()
    assert found.shape == flows.arrow.shape
    assert list(found["src"]) == flows.arrow["src"].to_pylist()


def test_tables_plan_and_summary(matrices: Path) -> None:
    run = switchbench.load(matrices)
    for name, columns in TABLES.items():
        table = getattr(run, name)
        assert table.arrow.schema.names == [column.name for column in columns]
        assert len(table) == len(rows_in(matrices, name))
        schema = pq.read_schema(matrices / f"{name}.parquet") if len(table) else table.arrow.schema
        assert schema.metadata[b"form"].decode() == FORM
        for column in columns:
            metadata = schema.field(column.name).metadata
            assert metadata[b"unit"].decode() == column.unit
            assert metadata[b"meaning"].decode() == column.meaning
    assert len(run.flows) > 100
    assert run.summary["run"]["id"] == golden.kept_summary(matrices)["run"]["id"]
    assert len(run.plan.trials) == len({plan["trial"] for plan in run.summary["plans"]})


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no results in"):
        switchbench.load(tmp_path / "nowhere")


def test_times_for_the_plotter_of_hdrhistogram(matrices: Path, tmp_path: Path) -> None:
    """Each file ends with all of its times, whose mean and maximum are those of the table."""
    loaded = results.load(matrices)
    written = results.write_hgrm(loaded, tmp_path / "times")
    table = loaded.histograms.arrow.to_pylist()
    used = [row for row in table if row["count"] and row["kind"] != "execution"]
    assert written
    for path in written:
        trial, phase, kind = re.fullmatch(r"trial(\d+)-phase(-?\d+)-lab-(\w+)", path.stem).groups()  # type: ignore[union-attr]
        rows = [
            row for row in used
            if (row["trial"], row["phase"], row["kind"]) == (int(trial), int(phase), kind)
        ]  # fmt: skip
        count = sum(row["count"] for row in rows)
        text = path.read_text()
        *_, last = [line.split() for line in text.splitlines() if re.match(r" *\d", line)]
        assert (float(last[1]), int(last[2])) == (1.0, count)
        mean = sum(row["sum_ns"] for row in rows) / count / 1000
        assert float(re.search(r"Mean\s+= +([\d.]+)", text)[1]) == pytest.approx(mean, abs=1e-3)  # type: ignore[index]
        top = max(row["max_ns"] for row in rows) / 1000
        assert float(re.search(r"Max\s+= +([\d.]+)", text)[1]) == pytest.approx(top, abs=1e-3)  # type: ignore[index]
        assert f"Total count    = {count:12d}" in text


# --- plan.json ------------------------------------------------------------------------------------


# --- there and back ------------------------------------------------------------------------------


def test_a_port_and_a_list_of_ranks_stand_there_once(tmp_path: Path) -> None:
    """A plan of 1,024 ranks and 36 trials takes half a megabyte."""
    site = make_site(200)
    sizes = []
    for count in (1, 30):
        trials = [make_trial(site, number) for number in range(count)]
        write_plan(tmp_path, make_run(site, *trials))
        again = read_plan(tmp_path)
        assert again.trials[-1].parts[0] is again.trials[0].parts[0]
        assert again.trials[0].parts[0].ranks[7] is again.site.ports[7]
        sizes.append((tmp_path / PLAN).stat().st_size)
    assert sizes[1] - sizes[0] < 29 * 1000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run that was really measured, with clauses."""
    return golden.unpack("clauses", tmp_path)


def test_predictions_fit_what_was_measured(run: Path, cli: Command) -> None:
    """A lab with a healthy switch: nearly all flows are within 10 % of their prediction."""
    for trial in json.loads(cli.prints("predict", run, "--json"))["trials"]:
        assert {one["model"] for one in trial["fits"]} == {"max-min", "proportional", "constrained"}
        assert {one["flows"] for one in trial["fits"]} == {trial["flows"]}
        assert min(one["close"] for one in trial["fits"]) > 0.9


def test_a_configuration_of_another_run_is_found(run: Path, cli: Command) -> None:
    other = yaml.safe_load((run / CONFIGURATION).read_text()) | {"seed": 2}
    (run / CONFIGURATION).write_text(yaml.safe_dump(other))
    sealing.seal(run)
    said = cli.prints("verify", run, status=2)
    assert "NO plan       plan.json does not follow from configuration.yaml" in said


# --- damaged -------------------------------------------------------------------------------------


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for kind, name in CASES:
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                (KEPT / f"{name}.{kind}.txt").write_text(made(kind, name, Path(folder)))
