# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench.load`: the examples of the page on results run, and all that is there is given."""

from __future__ import annotations

import ast
import math
import re
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import golden
import switchbench
from recorded import rows_in
from switchbench.base.errors import ConfigurationError
from switchbench.records import results
from switchbench.records.schema import FORM, TABLES

PAGE = Path(__file__).resolve().parents[2] / "doc" / "reference" / "results.md"
COLUMNS = PAGE.parents[1] / "developer" / "summary.md"
NAMED = "results/20260101-120000-four-matrices"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return golden.unpack("matrices", tmp_path)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_runs(
    example: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLES) == 3
    assert NAMED in example
    exec(example.replace(NAMED, str(directory)), {})
    assert "limited" in example or capsys.readouterr().out.strip()


def test_a_port_received_what_its_flows_did_together(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(EXAMPLES[1].replace(NAMED, str(directory)), {})
    said = {row["dst"]: row["mbps_sum_mean"] for row in ast.literal_eval(capsys.readouterr().out)}
    phases: dict[str, dict[tuple[object, ...], list[float | None]]] = {}
    for row in rows_in(directory, "flows"):
        moment = tuple(row.get(key) for key in ("trial", "repeat", "network", "phase"))
        bits, ns = (row.get(f"received_window_{key}") for key in ("payload_bytes", "ns"))
        rate = 8e3 * bits / ns if bits is not None and ns else None
        phases.setdefault(row["dst"], {}).setdefault(moment, []).append(rate)
    for port, rates in phases.items():
        sums = [math.fsum(of) for of in rates.values() if None not in of]
        assert said.pop(port) == pytest.approx(math.fsum(sums) / len(sums))
    assert any(len(of) > 1 for rates in phases.values() for of in rates.values())
    assert said == {}


@pytest.mark.parametrize("name", ["flows", "ports", "phases", "histograms"])
def test_the_keys_of_the_page_name_one_row(name: str, directory: Path) -> None:
    (line,) = re.findall(rf"## {name}\n\n.* Keys: (.*)\.\n", COLUMNS.read_text())
    keys = re.findall(r"`(\w+)`", line)
    rows = [tuple(row.get(key) for key in keys) for row in rows_in(directory, name)]
    assert len(set(rows)) == len(rows) > 0


def test_duckdb_reads_the_files_as_they_are(directory: Path) -> None:
    (query,) = QUERIES
    found = duckdb.sql(query.replace(NAMED, str(directory))).fetchall()
    assert {port for port, _ in found} == {row["dst"] for row in rows_in(directory, "flows")}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_goes_to(library: str, directory: Path) -> None:
    flows = switchbench.load(directory).flows
    found = getattr(flows, f"to_{library}")()
    assert found.shape == flows.arrow.shape
    assert list(found["src"]) == flows.arrow["src"].to_pylist()


def test_tables_plan_and_summary(directory: Path) -> None:
    run = switchbench.load(directory)
    for name, columns in TABLES.items():
        table = getattr(run, name)
        assert table.arrow.schema.names == [column.name for column in columns]
        assert len(table) == len(rows_in(directory, name))
        schema = pq.read_schema(directory / f"{name}.parquet") if len(table) else table.arrow.schema
        assert schema.metadata[b"form"].decode() == FORM
        for column in columns:
            metadata = schema.field(column.name).metadata
            assert metadata[b"unit"].decode() == column.unit
            assert metadata[b"meaning"].decode() == column.meaning
    assert len(run.flows) > 100
    assert run.summary["run"]["id"] == golden.kept_summary(directory)["run"]["id"]
    assert len(run.plan.trials) == len({plan["trial"] for plan in run.summary["plans"]})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda d: (d / "flows.parquet").write_text("x"), "flows.parquet can't be read as Parquet"),
        (lambda d: shutil.copy(d / "ports.parquet", d / "flows.parquet"), "lacks the column src"),
        (
            lambda d: pq.write_table(
                pq.read_table(d / "flows.parquet").drop_columns("sent_frames"), d / "flows.parquet"
            ),
            "lacks the column sent_frames",
        ),
    ],
)
def test_what_is_damaged_is_said_and_the_rest_is_read(
    damage: object, sentence: str, directory: Path
) -> None:
    assert callable(damage)
    damage(directory)
    run = switchbench.load(directory)
    with pytest.raises(ConfigurationError, match=sentence):
        _ = run.flows
    assert len(run.ports) > 0


def test_results_of_the_old_form_are_refused(tmp_path: Path) -> None:
    (tmp_path / "records.ndjson").write_text("{}\n")
    with pytest.raises(ConfigurationError, match=r"older form \(records\.ndjson\)"):
        switchbench.load(tmp_path)
    with pytest.raises(ConfigurationError, match="no results in"):
        switchbench.load(tmp_path / "nowhere")


def test_times_for_the_plotter_of_hdrhistogram(directory: Path, tmp_path: Path) -> None:
    """Each file ends with all of its times, whose mean and maximum are those of the table."""
    loaded = results.load(directory)
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
