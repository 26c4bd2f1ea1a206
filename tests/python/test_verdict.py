# SPDX-License-Identifier: BSD-3-Clause
"""Clauses and their verdicts, and the sealed record: its signature, and what `switchbench verify`
finds in a damaged one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conftest import Command
from golden import unpack
from recorded import fed, replace_rows, results, rows_in
from switchbench.analysis import sealing
from switchbench.analysis.judge import clause_judges, exit_status
from switchbench.analysis.summary import NOT_ENDED, Summary, gather, remade
from switchbench.base.errors import ConfigurationError
from switchbench.config.clauses import canonical, clauses_sha256, parse_clause
from switchbench.records.directory import as_read, load_summary, read_plan
from switchbench.records.store import TableWriter
from switchbench.records.summary_form import summary_schema
from switchbench.render.report import build
from synthetic import about, frame_side, make_run, make_site, make_trial, pair_records

SITE = make_site()


def judge(records: list[dict[str, Any]], *clauses: dict[str, Any], **changes: Any) -> Any:
    run = make_run(SITE, make_trial(SITE, **changes), expectations=clauses)
    summary = fed(run, records)
    return summary.finish(about(), [])


def clause(measure: str, require: str, over: str = "flow", **where: Any) -> dict[str, Any]:
    return {"id": "4.2", "measure": measure, "require": require, "over": over, "where": where}


def test_only_the_worst_failures_are_named() -> None:
    """Of 40 ports that lost 0 to 39 frames those are named that lost the most."""
    site = make_site(40)
    records = []
    for i, port in enumerate(site.ports):
        ends = (port.name, site.ports[i ^ 1].name)
        sent = frame_side("source", *ends, 8000, 7720)
        records += [sent, frame_side("destination", *ends, 8000 - i, 7710)]
    run = make_run(site, make_trial(site, flows=40), expectations=(clause("lost_frames", "== 0"),))
    summary = fed(run, records)
    (judged,) = summary.finish(about(), [])["expectations"]
    assert (judged["judged"], judged["failed"]) == (40, 39)
    assert [failure["value"] for failure in judged["failures"]] == list(range(39, 19, -1))


def test_the_whole_verdict() -> None:
    """FAIL wins over INCONCLUSIVE, and in a run that is not complete nothing passes."""
    fine, bad = clause("lost_frames", "<= 10"), clause("lost_frames", "== 0")
    tested = {"switches": [{"vendor": "Example", "model": "X48", "serial": "7", "firmware": "4.2"}]}

    def verdict(*clauses: dict[str, Any], faults: tuple[str, ...] = ()) -> Any:
        run = make_run(SITE, make_trial(SITE), expectations=clauses, about=tested)
        summary = fed(run, pair_records())
        result = summary.finish(about(), faults)
        jsonschema.validate(result, summary_schema())
        assert result["run"]["about"] == tested
        return result["verdict"]

    passed = verdict(fine)
    switch = "Example X48 (serial 7, firmware 4.2)"
    assert passed["sentence"] == f"{switch} meets its one clause"
    assert passed["clauses_sha256"] == clauses_sha256([fine])
    counts = "(1 failed, 0 inconclusive, 1 passed)"
    assert verdict(fine, bad)["sentence"] == f"{switch} does not meet 1 of 2 clauses {counts}"
    assert passed["warnings"] == []
    partial = verdict(fine, faults=("node2 died",))
    assert partial["verdict"] == "INCONCLUSIVE"
    assert partial["sentence"].endswith(
        "neither passes nor fails: no clause failed, but the run is not complete"
    )
    assert verdict(fine, bad, faults=("node2 died",))["verdict"] == "FAIL"
    assert judge(pair_records())["verdict"] is None


def test_who_was_left_out_is_a_reservation() -> None:
    fine = clause("lost_frames", "<= 10")
    run = make_run(SITE, make_trial(SITE), expectations=(fine,), reservations=("short",))
    left_out = {"excluded_hosts": [{"host": "node3", "reason": "it does not answer"}]}
    verdict = Summary(run).finish(about() | left_out, [])["verdict"]
    assert verdict["warnings"] == ["short", "node3 was left out: it does not answer"]


def test_a_clause_may_cite_a_standard_and_select_by_all_settings() -> None:
    words = "Throughput as RFC 1242, 3.17 defines it: no frame is lost (RFC 2544, 26.1)"
    where = {"pattern": "pairs", "transport": "dpdk", "load": "95%", "partners": "neighbours",
             "frame_size": 1518, "ranks": [2, 4], "network": "lab"}  # fmt: skip
    spec = clause("lost_frames", "== 10", "run", **where)
    cited = {"clause": words, "source": "RFC 2544, 26.1"}
    (judged,) = judge(pair_records(), spec | cited)["expectations"]
    assert judged.items() >= (cited | {"limit": 10, "verdict": "PASS"}).items()


def test_canonical_form() -> None:
    """Keys are in order, without spaces; defaults are written, keys without a value are not."""
    spec = {"require": "== 0", "measure": "lost_frames", "id": None, "clause": "Größe",
            "where": {"ranks": [2, 4], "load": "95%"}}  # fmt: skip
    text = (
        '[{"clause":"Größe","measure":"lost_frames","over":"run","require":"== 0",'
        '"where":{"load":"95%","ranks":[2,4]}}]'
    )
    assert canonical([spec]) == text.encode()
    assert clauses_sha256([spec]) == hashlib.sha256(text.encode()).hexdigest()
    assert clauses_sha256([spec | {"require": "== 1"}]) != clauses_sha256([spec])


def test_a_clause_about_repeats_that_were_not_needed_does_not_pass() -> None:
    trial = make_trial(SITE)
    (judge,) = clause_judges([clause("lost_frames", "== 0")], [trial])
    judged = judge.verdict({}, {(trial.id, trial.repeat)})
    assert (judged["judged"], judged["verdict"]) == (0, "INCONCLUSIVE")
    assert judged["reason"] == "no value of its measure was measured"


@pytest.mark.rows
def test_a_limit_may_have_another_unit(measure: str, require: str, sign: str, limit: float) -> None:
    found = parse_clause(clause(measure, require, "phase"))
    assert (found.sign, found.limit) == (sign, limit)


@pytest.mark.rows
def test_bad_clauses_are_refused_before_traffic(change: dict[str, Any], words: str) -> None:
    spec = clause("lost_frames", "== 0") | change
    with pytest.raises(ConfigurationError, match=r"expect 4\.2") as caught:
        Summary(make_run(SITE, make_trial(SITE), expectations=(spec,)))
    assert words in str(caught.value)


def test_every_key_of_the_summary_is_documented() -> None:
    """Each key says what it means."""
    schema = summary_schema()
    parts = {"": schema, **schema["$defs"]}
    lacking = [
        f"{part}.{key}"
        for part, form in parts.items()
        for key, value in form.get("properties", {}).items()
        if "description" not in value
    ]
    assert lacking == []


@pytest.mark.rows
def test_precedence_of_exit_status(
    run: str, words: tuple[str, ...], judged: bool, status: int
) -> None:
    assert exit_status(run, [{"verdict": word} for word in words], judged) == status


# --- the run record -------------------------------------------------------------------------------


CLAUSE = {"id": "4.2", "measure": "lost_frames", "require": "== 0", "over": "flow"}
RUN = make_run(SITE, make_trial(SITE), expectations=(CLAUSE,))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a results directory with a clause that failed."""
    return results(tmp_path / "results", RUN, pair_records())


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real run with its report, sealed."""
    path = unpack("acceptance", tmp_path_factory.mktemp("golden"))
    build.write(path)
    sealing.seal(path)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Return a key of OpenSSH without a passphrase; `allowed` beside it lets it sign."""
    path = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    (tmp_path / "allowed").write_text(f"lab@example {path.with_suffix('.pub').read_text()}")
    return path


def checks(directory: Path, **options: Any) -> list[sealing.VerifyCheck]:
    return list(sealing.verify(directory, **options))


def failures(directory: Path, **options: Any) -> list[str]:
    return [check.words for check in checks(directory, **options) if check.holds is False]


def flip(path: Path, position: int) -> None:
    """Change one bit of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x01
    path.write_bytes(content)


# --- what holds --------------------------------------------------------------------------------


def test_all_of_it_holds(directory: Path, cli: Command) -> None:
    status, out, _ = cli("verify", directory)
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["ok", "files"], ["-", "signature"], ["ok", "clauses"], ["ok", "verdict"],
    ]  # fmt: skip
    assert "FAIL: The system under test does not meet its one clause" in out
    agreed = clauses_sha256([CLAUSE])
    assert failures(directory, clauses=agreed.upper()) == []
    (words,) = failures(directory, clauses="00" * 32)
    assert words.startswith("are not those agreed on")


def test_the_verdict_of_an_older_version_may_have_another_scope(
    directory: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "__version__", "99.0.0")
    damage(directory, ["value", "summary.json", "verdict.scope", "Other words."])
    sealing.seal(directory)
    status, out, _ = cli("verify", directory)
    assert (status, "status and verdict agree, made by version" in out) == (0, True)


def test_a_run_without_clauses_is_verified_too(tmp_path: Path) -> None:
    path = results(tmp_path / "results", make_run(SITE, make_trial(SITE)), pair_records())
    assert failures(path) == []


def test_verify_writes_nothing(kept_run: Path, directory: Path, cli: Command) -> None:
    """A first call passed and took a stream away, a second one missed it: as of a run that was
    killed before it stored it."""
    with TableWriter(directory) as tables:
        tables.add_event({"type": "bye", "node": "node1"})
    sealing.seal(directory)
    for path in (kept_run, directory):
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        first, second = (cli("verify", path) for _ in range(2))
        assert first == second
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert "ok report" in cli("verify", kept_run).out


# --- signatures --------------------------------------------------------------------------------


def test_signed_by_ssh(directory: Path, key: Path, cli: Command) -> None:
    assert cli("sign", directory, "--key", key).out.strip() == f"{directory}/manifest.json.sig"
    for allowed, holds, words in (
        (key.parent / "allowed", True, "lab@example with ED25519 key SHA256:"),
        (None, None, "whose owner is not checked"),
    ):
        (found,) = [c for c in checks(directory, allowed=allowed) if c.name == "signature"]
        assert (found.holds, words in found.words) == (holds, True)
    again = cli("sign", directory, "--key", key)
    assert (again.status, "is signed already: move manifest.json.sig away" in again.err) == (
        2,
        True,
    )


def test_what_is_put_in_before_signing_is_sealed(directory: Path, key: Path, cli: Command) -> None:
    (directory / "photographs").mkdir()
    photograph = directory / "photographs" / "rack.jpg"
    photograph.write_bytes(b"\xff\xd8cables")
    (late,) = [check for check in checks(directory) if check.name == "file"]
    assert late.words == "photographs/rack.jpg is not sealed: it was added after the seal"
    assert cli("sign", directory, "--key", key).status == 0
    assert failures(directory) == []
    flip(photograph, 3)
    assert failures(directory) == ["photographs/rack.jpg was changed"]


def test_who_changes_the_manifest_too_is_found_by_the_signature(directory: Path, key: Path) -> None:
    sealing.sign(directory, key)
    flows = rows_in(directory, "flows")
    assert [row["received_frames"] for row in flows] == [8000, 7990]
    replace_rows(directory, "flows", [row | {"received_frames": 8000} for row in flows])
    files = {name: sealing.entry_of(directory / name) for name in sealing.files_of(directory)}
    (directory / "manifest.json").write_bytes(sealing.content(directory, files))
    (words, *_) = failures(directory, allowed=key.parent / "allowed")
    assert "manifest.json.sig does not match manifest.json" in words


def test_a_signed_manifest_is_not_renewed(directory: Path, key: Path) -> None:
    sealing.sign(directory, key)
    before = (directory / "manifest.json").read_bytes()
    (directory / "report.html").write_text("<html>")
    sealing.renew(directory)
    assert (directory / "manifest.json").read_bytes() == before
    (directory / "manifest.json.sig").unlink()
    sealing.renew(directory)
    assert "report.html" in sealing.load(directory)


@pytest.mark.rows
def test_wrong_keys(
    signed: bool, allowed: str | None, words: str, directory: Path, key: Path, cli: Command
) -> None:
    kind, other, *_ = key.with_suffix(".pub").read_text().split()
    signers = key.parent / "others"
    if allowed is not None:
        signers.write_text(allowed.format(other=f"{kind} {other[:-8]}AAAAAAAA") + "\n")
    if signed:
        sealing.sign(directory, key)
    status, _, err = cli("verify", directory, "--allowed-signers", signers)
    assert (status, len(err.splitlines()), words in err) == (2, 1, True)


@pytest.mark.rows
def test_what_can_not_sign(content: str | None, words: str, directory: Path, cli: Command) -> None:
    path = directory.parent / "bad"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
        path.chmod(0o600)
    status, _, err = cli("sign", directory, "--key", path)
    assert (status, len(err.splitlines()), words in err) == (2, 1, True)
    assert not (directory / "manifest.json.sig").exists()


def test_missing_programs(
    directory: Path, key: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    sealing.sign(directory, key)
    monkeypatch.setenv("PATH", "/nowhere")
    status, _, err = cli("verify", directory, "--allowed-signers", key.parent / "allowed")
    assert status == 2
    assert "ssh-keygen is not installed: install OpenSSH's client" in err


def test_nobody_signs_what_was_changed(directory: Path, key: Path, cli: Command) -> None:
    flip(directory / "flows.parquet", 5)
    status, _, err = cli("sign", directory, "--key", key)
    assert (
        status,
        "can't be signed, because it changed after its run: flows.parquet was changed" in err,
    ) == (2, True)


# --- what does not hold ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["clauses.json", "configuration.yaml", "plan.json", "flows.parquet", "summary.json"],
)
def test_each_changed_byte_is_named_by_file(directory: Path, name: str, cli: Command) -> None:
    path = directory / name
    whole = path.read_bytes()
    for position in (0, len(whole) // 2, len(whole) - 1):
        flip(path, position)
        status, out, err = cli("verify", directory)
        assert (status, f"NO file       {name} was changed\n" in out) == (2, True)
        assert err == f"switchbench: {directory} is not trustworthy: {name} was changed [SB-SIGN]\n"
        path.write_bytes(whole)


def test_each_byte_of_the_manifest_counts(directory: Path) -> None:
    """Every seventh byte of the manifest is changed: its keys, its hashes, its spaces."""
    path = directory / "manifest.json"
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        flip(path, position)
        try:
            found = failures(directory, again=False)
        except ConfigurationError as error:
            found = [str(error)]
        assert found, f"byte {position}: {whole[position : position + 1]!r}"
        path.write_bytes(whole)
    assert failures(directory) == []


def test_a_missing_and_a_shortened_file(directory: Path) -> None:
    (directory / "nodes.log").write_text("")
    sealing.seal(directory)
    (directory / "nodes.log").unlink()
    flows = directory / "flows.parquet"
    flows.write_bytes(flows.read_bytes()[:-1])
    first, second = failures(directory)
    assert first.startswith("flows.parquet was changed: ")
    assert second == "nodes.log is missing"


def damage(directory: Path, *steps: list[Any]) -> None:
    """Change a directory of results, step by step: what is done, to which file, and its values."""
    for what, file, *values in steps:
        path = directory / file
        if what == "text":  # the first text of a file becomes the second
            assert values[0] in path.read_text()
            path.write_text(path.read_text().replace(*values, 1))
        elif what == "value":  # of JSON, at a place
            found = document = json.loads(path.read_text())
            *parts, last = values[0].split(".")
            for part in parts:
                found = found[int(part) if part.isdecimal() else part]
            found[last] = values[1]
            path.write_text(json.dumps(document, indent=1))
        elif what == "row":  # the first row of a table
            first, *others = rows_in(directory, file)
            replace_rows(directory, file, [first | values[0], *others])
        elif what == "write":
            path.write_text(values[0])
        elif what == "half written":  # as a killed run does
            path.write_text(json.dumps(gather(RUN, directory).finish(about(), [NOT_ENDED])))
        elif what == "remove directory":
            shutil.rmtree(directory)
        for gone in directory.glob(file) if what == "remove" else ():
            gone.unlink()


@pytest.mark.rows
def test_what_was_changed_is_found_though_the_manifest_fits(
    steps: list[list[Any]], words: str, directory: Path, cli: Command
) -> None:
    found_though_sealed(steps, words, directory, cli)


def test_without_the_plan_the_rest_is_checked(directory: Path, cli: Command) -> None:
    (directory / "plan.json").unlink()
    sealing.seal(directory)
    assert "ok clauses" in cli("verify", directory).out
    assert cli("verify", directory, "--no-again").status == 0


@pytest.mark.rows
def test_what_was_changed_in_a_real_run(
    steps: list[list[Any]], words: str, kept_run: Path, tmp_path: Path, cli: Command
) -> None:
    path = Path(shutil.copytree(kept_run, tmp_path / "results"))
    found_though_sealed(steps, words, path, cli)


def found_though_sealed(steps: list[list[Any]], words: str, path: Path, cli: Command) -> None:
    damage(path, *steps)
    sealing.seal(path)
    status, out, err = cli("verify", path)
    assert (status, words in out + err) == (2, True)


def test_each_changed_number_is_found(kept_run: Path, tmp_path: Path) -> None:
    """Of any column that the summary rests on, though the manifest was made to fit."""
    run, kept, checked = read_plan(kept_run), load_summary(kept_run), 0
    for table, columns in {
        "flows": ("sent_frames", "received_frames", "received_window_payload_bytes", "reordered"),
        "ports": ("dropped_send", "dropped_receive", "no_carrier"),
        "phases": ("window_ns", "cpu_s", "start_skew_us"),
        "histograms": ("count",),
    }.items():
        for column in columns:
            shutil.rmtree(tmp_path / "changed", ignore_errors=True)
            path = Path(shutil.copytree(kept_run, tmp_path / "changed"))
            rows = rows_in(path, table)
            measured = (i for i, row in enumerate(rows) if row["phase"] >= 0)
            number = next((i for i in measured if rows[i][column] is not None), None)
            if number is None:
                continue
            checked += 1
            rows[number][column] += 10**6
            replace_rows(path, table, rows)
            assert as_read(remade(run, path, kept)) != kept, (table, column)
    assert checked > 6


# --- directories that are none -----------------------------------------------------------------


@pytest.mark.rows
def test_what_can_not_be_verified(
    steps: list[list[Any]], words: str, directory: Path, cli: Command
) -> None:
    damage(directory, *steps)
    status, _, err = cli("verify", directory)
    assert (status, len(err.splitlines()), words in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (os.fsdecode(b"Kabel-\xfc.jpg"), r"Kabel-\\udcfc\.jpg' is not UTF-8"),
        ("", "elsewhere is not a regular file"),
    ],
)
def test_a_strange_name_and_a_link_are_not_sealed(name: str, words: str, directory: Path) -> None:
    if name:
        (directory / name).write_bytes(b"")
    else:
        (directory / "elsewhere").symlink_to("/etc/hostname")
    with pytest.raises(ConfigurationError, match=words):
        sealing.seal(directory)
