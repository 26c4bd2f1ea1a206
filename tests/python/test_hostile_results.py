# SPDX-License-Identifier: BSD-3-Clause
"""Damaged and made-up results: a sentence, the right status, nothing that a terminal obeys.

One whole results directory is damaged in one way at a time, by formula; all commands that read
results are run on each, in this process.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from conftest import Command
from recorded import Feed, results, rows_in, write_tables
from switchbench.analysis import sealing
from switchbench.analysis.data import Measured
from switchbench.analysis.summary import gather
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import Run
from switchbench.cli.main import main
from switchbench.predict.predictor import measured_bps
from switchbench.records.collector import Expected
from switchbench.records.directory import PLAN, SUMMARY, RunDirectory, load_summary, write_plan
from switchbench.records.schema import BY_PHASE, TABLES, DamagedRecord, arrow_schema, parse
from switchbench.records.store import parquet_file
from synthetic import about, make_run, make_site, make_trial, pair_records

Json = dict[str, Any]
Damage = Callable[[Path], object]

CLAUSE = {"id": "4.2", "measure": "lost_frames", "require": "== 0", "over": "flow"}
ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e"
STRANGE: list[Any] = [
    None, True, -1, 0, 2**63, 2**200, -(2**63), 1.5, 1e308, "", "x", ESCAPE, "\ud800", [], [[]],
    {}, {"x": 1},
]  # fmt: skip


RECORDS: dict[str, list[Json]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "records.yaml").read_text()
)


def rich_records() -> list[Json]:
    """Return a record of each type that the summary reads."""
    opened, measured, ended = copy.deepcopy(list(RECORDS.values()))
    records = pair_records()
    return [*records[:2], *opened, *records[2:-4], *measured, *records[-4:], *ended]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    site = make_site()
    run = make_run(site, make_trial(site), expectations=(CLAUSE,))
    return results(tmp_path_factory.mktemp("hostile") / "whole", run, rich_records()), run


# --- damage --------------------------------------------------------------------------------------


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each part of a value, to some depth."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value)
    if len(at) < 6 and isinstance(value, dict | list):
        for key, inner in items:
            if not isinstance(inner, dict | list) or inner:
                yield from (
                    places(inner, (*at, key)) if isinstance(inner, dict | list) else [(*at, key)]
                )


def changed(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """Return the value with another one at this place; `...`: without it."""
    result = copy.deepcopy(value)
    inner = result
    for key in at[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return result


def of_records() -> Iterator[tuple[str, list[Json]]]:
    """Yield every part of one record of each type, and each strange value in its place."""
    records = rich_records()
    seen: set[str] = set()
    for number, record in enumerate(records):
        if record["type"] in seen:
            continue
        seen.add(record["type"])
        for at in places(record):
            for new in (*STRANGE, ...):
                others = list(records)
                others[number] = changed(record, at, new)
                yield f"{record['type']} {at} {new!r}", others


def table_of(table: str, change: Callable[[list[Json], pa.Schema], pa.Table]) -> Damage:
    """Return the damage that replaces a table by the result of `change` for its rows and schema."""

    def damage(path: Path) -> None:
        made = change(rows_in(path, table), arrow_schema(table))
        pq.write_table(made, parquet_file(path, table))

    return damage


def more_rows(table: str, *rows: Json) -> Damage:
    """Return the table with more rows, each like its first one but for some values."""
    return table_of(
        table,
        lambda there, schema: pa.Table.from_pylist(
            [*there, *(there[0] | row for row in rows)], schema
        ),
    )


def without(name: str, rows: list[Json], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema).drop_columns(name)


def with_values(name: str, value: Any, rows: list[Json], schema: pa.Schema) -> pa.Table:
    """Return a table with another value in a column's first row, and if need be another type."""
    field = schema.field(name).with_nullable(True)
    values = [value, *(row[name] for row in rows[1:])]
    place = schema.get_field_index(name)
    try:
        column = pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        strange = value if value == {"x": 1} or isinstance(value, list) else ascii(value)
        column = pa.array([strange] * len(rows))
    found = pa.Table.from_pylist(rows, schema)
    return found.set_column(place, field.with_type(column.type), column)


def damaged_tables() -> Iterator[tuple[str, Damage]]:
    """Yield every column of every table: away, and each strange value in its first row."""
    for table in (*BY_PHASE, "events"):
        for column in TABLES[table]:
            yield (
                f"{table} without {column.name}",
                table_of(table, partial(without, column.name)),
            )
            for value in STRANGE:
                name = f"{table}.{column.name} is {value!r:.40}"
                yield name, table_of(table, partial(with_values, column.name, value))


def text(name: str, content: bytes) -> Damage:
    return lambda path: (path / name).write_bytes(content)


def details(text: str) -> Damage:
    return more_rows("events", {"type": "event", "node": "node1", "details": text})


FLOWS = "flows.parquet"
FILES = (FLOWS, SUMMARY, PLAN, sealing.MANIFEST, "configuration.yaml", "clauses.json")
SPOILT: dict[str, Damage] = {
    "no": Path.unlink,
    "an empty": lambda file: file.write_bytes(b""),
    "a binary": lambda file: file.write_bytes(b"\xff\x00" * 100),
    "half a": lambda file: file.write_bytes(file.read_bytes()[:500]),
    "brackets as": lambda file: file.write_bytes(b"[" * 200_000),
}
BY_HAND: dict[str, Damage] = {
    "a table with a binary end": text(FLOWS, b"PAR1" + bytes(64) + b"@\0\0\0PAR1"),
    "a table of something else": table_of("flows", lambda _, __: pa.table({"a": [1]})),
    "another table": lambda path: shutil.copy(path / "ports.parquet", path / FLOWS),
    "a stream that is none": text("flows.2.arrows", b"\xff" * 100),
    "copies": more_rows("flows", *[{}] * 500),
    "flows of a phase that is none": more_rows("flows", *({"phase": n} for n in range(1, 300))),
    "flows of a trial that is none": more_rows("flows", *({"trial": n} for n in range(1, 300))),
    "a node that is none": more_rows("phases", {"node": "node9"}),
    "a port that is none": more_rows("flows", {"src": ESCAPE}),
    "a port of a megabyte": more_rows("flows", {"src": "x" * 2**20}),
    "a network that is none": more_rows("flows", {"network": ESCAPE}),
    "an event that clears the screen": more_rows("events", {"type": "event", "text": ESCAPE}),
    "details of brackets": details("[" * 50_000),
    "details that are none": details("x"),
    "details of another type": details("[1]"),
    "details that clear the screen": details(json.dumps({"kind": ESCAPE})),
    "a list for a summary": text(SUMMARY, b"[1,2]"),
    "a manifest of nothing": text(sealing.MANIFEST, b"{}"),
    "no plan and no summary": lambda path: [(path / n).unlink() for n in (PLAN, SUMMARY)],
} | {
    f"{what} {name}": lambda path, act=act, name=name: act(path / name)  # type: ignore[misc]
    for (what, act), name in product(SPOILT.items(), FILES)
}


def changed_part(file: str, at: tuple[Any, ...], new: Any) -> Damage:
    """Change a value of a JSON file; a plan's summary goes, so that the plan is read."""

    def act(path: Path) -> None:
        value = json.loads((path / file).read_text())
        (path / file).write_text(json.dumps(changed(value, at, new)))
        if file == PLAN:
            (path / SUMMARY).unlink()

    return act


def damaged_summaries() -> dict[str, Damage]:
    """Return a hundred parts of the summary, chosen by a fixed seed, each replaced."""

    def damage(number: int, path: Path) -> None:
        choose = random.Random(number)
        every = sorted(places(json.loads((path / SUMMARY).read_text())), key=str)
        changed_part(SUMMARY, choose.choice(every), choose.choice([*STRANGE, ...]))(path)

    top = {
        f"summary's {key} is {new!r}": changed_part(SUMMARY, (key,), new)
        for key in ("run", "trials", "plans", "findings", "warnings", "status", "verdict", "errors")
        for new in (..., None, 7, "x", [7], {"x": []})
    }
    return top | {f"summary {number}": partial(damage, number) for number in range(100)}


def damaged_plans() -> dict[str, Damage]:
    """Return every part of the plan, each with one of the strange values."""
    site = make_site()
    with TemporaryDirectory() as folder:
        write_plan(Path(folder), make_run(site, make_trial(site), expectations=(CLAUSE,)))
        plan = json.loads((Path(folder) / PLAN).read_text())
    pairs = zip(places(plan), cycle([*STRANGE, ...]), strict=False)
    return {f"plan's {at} is {new!r}": changed_part(PLAN, at, new) for at, new in pairs}


# --- commands ------------------------------------------------------------------------------------


def commands(good: Path, bad: Path, out: Path) -> dict[str, list[str]]:
    return {
        "table": ["table", str(bad), "--all"],
        "report": ["report", str(bad), "--out", str(out / "r.html")],
        "compare": ["compare", str(good), str(bad), "--json", str(out / "c.json")],
        "verify": ["verify", str(bad)],
        "sign": ["sign", str(bad), "--key", str(out / "no-key")],
        "again": ["table", str(bad), "--again"],
    }


# What a terminal obeys, and what turns text round.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    "damage",
    [pytest.param(damage, id=name) for name, damage in BY_HAND.items()]
    + [
        pytest.param(damage, id=name, marks=[] if number % 24 == 0 else pytest.mark.slow)
        for number, (name, damage) in enumerate(
            [
                *damaged_summaries().items(),
                *damaged_plans().items(),
                *islice(damaged_tables(), 0, None, 23),
            ]
        )
    ],
)
def test_every_command_says_a_sentence(
    damage: Damage, whole: tuple[Path, Run], tmp_path: Path, cli: Command
) -> None:
    good, bad = whole[0], tmp_path / "bad"
    for name, words in commands(good, bad, tmp_path).items():
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        damage(bad)
        if name == "verify" and (bad / SUMMARY).exists():
            with suppress(ConfigurationError):  # as somebody would who made it up: else nothing
                sealing.seal(bad)  # but a hash is looked at
        said = cli(*words)
        sentences = said.err.splitlines()
        assert said.status in range(5), name
        assert all(line.startswith("switchbench: ") for line in sentences), name
        assert sentences or said.status != 2, name
        assert name == "report" or len(sentences) < 2, name
        assert len(said.err) <= 4000, name
        assert not OBEYED.search(said.out + said.err), name


NEVER_ENDING: dict[str, Damage] = {
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a terabyte": lambda path: os.truncate(path, 1 << 40),
}


@pytest.mark.parametrize("name", [SUMMARY, PLAN, FLOWS, sealing.MANIFEST])
@pytest.mark.parametrize("kind", NEVER_ENDING)
def test_files_without_an_end_are_not_read(
    kind: str, name: str, whole: tuple[Path, Run], tmp_path: Path, cli: Command
) -> None:
    """A command that waits for a FIFO's writer, or reads a device, would never come back."""
    if kind == "a terabyte" and name == FLOWS:
        pytest.skip("tables are read a piece at a time")
    shutil.copytree(whole[0], tmp_path / "bad")
    NEVER_ENDING[kind](tmp_path / "bad" / name)

    def too_late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_late)
    for command, words in commands(whole[0], tmp_path / "bad", tmp_path).items():
        signal.alarm(20)
        try:
            status, _, err = cli(*words)
        finally:
            signal.alarm(0)
        assert status == 2, command
        assert re.fullmatch(r"switchbench: \S+ is (not a regular file|too large): .*\n", err), (
            command
        )


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_is_in_a_record_the_controller_takes_or_refuses_it(
    step: int, whole: tuple[Path, Run]
) -> None:
    """Each part of each type, each strange value: taken, or refused; never else."""
    run = whole[1]
    refused = taken = 0
    for name, records in islice(of_records(), 0, None, step):
        feed, expected = Feed(run), Expected(run)
        sentence = ""
        try:
            for record in records:
                found = parse(json.dumps(record).encode())
                expected.check(found)
                feed.take(found)
            feed.all().finish(about(), [])
            taken += 1
        except DamagedRecord as error:
            sentence = str(error)
            refused += 1
        assert sentence.isprintable(), name
    assert refused > 1000 / step
    assert taken > 300 / step


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_is_in_a_table_the_reader_says_what_is_wrong(
    step: int, whole: tuple[Path, Run], tmp_path: Path
) -> None:
    """Each column, each strange value: read, or refused in one sentence; never else."""
    run = whole[1]
    refused = read = 0
    for number, (name, damage) in enumerate(islice(damaged_tables(), 0, None, step)):
        shutil.copytree(whole[0], path := tmp_path / str(number))
        damage(path)
        sentence = str(path)
        try:
            gather(run, path).finish(about(), [])
            measured_bps({(0, 0): run.trials[0]}, path)
            read += 1
        except ConfigurationError as error:
            sentence = str(error)
            refused += 1
        assert sentence.isprintable(), name
        assert str(path) in sentence, name
        measured = Measured(path, {}, ports=[port.name for port in run.site.ports])
        measured.read()
        assert all(sentence.isprintable() for sentence in measured.damage), name
    assert refused > 600 / step
    assert read > 100 / step


TCP_SIDE: Json = dict.fromkeys(("frames", "frame_bytes", "window_frames", "window_frame_bytes"))


@pytest.mark.rows
def test_a_record_that_no_node_of_the_run_wrote(
    kind: str, changes: Json, words: str, whole: tuple[Path, Run]
) -> None:
    record = next(r for r in rich_records() if r["type"] == kind)
    expected = Expected(whole[1])
    expected.check(parse(json.dumps(record).encode()))
    with pytest.raises(DamagedRecord, match=words):
        expected.check(parse(json.dumps(record | changes).encode()))


def test_what_is_no_json_is_not_written_and_what_has_no_end_is_unknown(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "new")
    with pytest.raises(RunError, match="the file can't be written as JSON"):
        directory.write_summary({"mean": object()})
    assert not (tmp_path / "new" / SUMMARY).exists()
    directory.write_summary({"mean": float("inf"), "min": float("nan")})
    assert json.loads((tmp_path / "new" / SUMMARY).read_text()) == {"mean": None, "min": None}


def test_a_summary_made_again_can_be_read(whole: tuple[Path, Run], tmp_path: Path) -> None:
    """JSON has no infinity, and a quotient of two good figures may be beyond a float."""
    short = TCP_SIDE | {"measures": {"mss_bytes": 1e-300}, "window_payload_bytes": 10**9}
    records = [r | short if r["type"] == "flow" else r for r in rich_records()]
    write_tables(tmp_path, whole[1], records)
    again = gather(whole[1], tmp_path).finish(about(), [])
    RunDirectory(tmp_path / "again").write_summary(again)
    (entry,) = load_summary(tmp_path / "again")["trials"]
    assert entry["offered_load"] is None


@pytest.mark.parametrize(
    "words",
    [["table", ESCAPE], ["table", "x", ESCAPE], ["plan", "conf/tree.yaml", "--set", f"{ESCAPE}=1"],
     ["plan"]],
)  # fmt: skip
def test_an_error_shows_what_it_quotes(words: list[str], tmp_path: Path, capsys: Any) -> None:
    """Arguments, and the keys of a configuration."""
    (tmp_path / "conf.yaml").write_text(json.dumps({"switchbench": 1, ESCAPE: 1}))
    with suppress(SystemExit):
        assert main(words if len(words) > 1 else ["plan", str(tmp_path / "conf.yaml")]) == 2
    said = capsys.readouterr().err
    assert r"\x1b[2J" in said
    assert not OBEYED.search(said)


def test_text_shows_as_what_it_is() -> None:
    record = parse(json.dumps({"type": "event", "node": "n", "text": ESCAPE + "é"}).encode())
    assert record["text"] == r"\x1b]0;owned\x07\x1b[2J\u202eé"
