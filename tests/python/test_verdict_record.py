# SPDX-License-Identifier: BSD-3-Clause
"""The run record: manifest, signatures, verification, and what is said of a damaged one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from golden import unpack
from recorded import replace_rows, results, rows_in
from switchbench.analysis import sealing
from switchbench.analysis.remake import gather, remade
from switchbench.analysis.sealing import write_record
from switchbench.analysis.summary import NOT_ENDED
from switchbench.base.errors import ConfigurationError
from switchbench.config.clauses import clauses_sha256
from switchbench.records.directory import as_read, load_summary, read_plan, write_plan
from switchbench.records.store import TableWriter
from switchbench.render.report import build
from synthetic import about, make_run, make_site, make_trial, pair_records

Damage = Callable[[Path], object]
CLAUSE = {"id": "4.2", "measure": "lost_frames", "require": "== 0", "over": "flow"}
SITE = make_site()
RUN = make_run(SITE, make_trial(SITE), expectations=(CLAUSE,))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One with a clause that failed."""
    return results(tmp_path / "results", RUN, pair_records())


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with its report, sealed."""
    path = unpack("acceptance", tmp_path_factory.mktemp("golden"))
    build.write(path)
    write_record(path, load_summary(path))
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key of OpenSSH without a passphrase; `allowed` beside it lets it sign."""
    path = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    (tmp_path / "allowed").write_text(f"lab@example {path.with_suffix('.pub').read_text()}")
    return path


def checks(directory: Path, **asked: Any) -> list[sealing.VerifyCheck]:
    return list(sealing.verify(directory, sealing.VerifyOptions(**asked)))


def failures(directory: Path, **asked: Any) -> list[str]:
    return [check.words for check in checks(directory, **asked) if check.holds is False]


def flip(path: Path, position: int) -> None:
    """Changes one bit of one byte."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x01
    path.write_bytes(content)


# --- what holds ----------------------------------------------------------------------------------


def test_all_of_it_holds(directory: Path, cli: Command) -> None:
    status, out, _ = cli("verify", directory)
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["ok", "files"], ["-", "signature"], ["ok", "clauses"], ["-", "plan"], ["ok", "verdict"],
        ["ok", "junit"],
    ]  # fmt: skip
    assert "FAIL: The system under test does not meet its one clause" in out
    agreed = clauses_sha256([CLAUSE])
    assert failures(directory, clauses=agreed.upper()) == []
    (words,) = failures(directory, clauses="00" * 32)
    assert words.startswith("are not those agreed on")


def test_a_run_without_clauses_is_verified_too(tmp_path: Path) -> None:
    path = results(tmp_path / "results", make_run(SITE, make_trial(SITE)), pair_records())
    assert (failures(path), (path / "verdict.xml").exists()) == ([], False)


def test_verify_writes_nothing(kept_run: Path, directory: Path, cli: Command) -> None:
    """A first call passed and took samples away, a second one missed them: as of a run that was
    killed before it stored them."""
    sample = {"type": "samples", "node": "node1", "trial": 0, "repeat": 0, "network": "lab"}
    with TableWriter(directory) as tables:
        tables.add_samples(sample | {"phase": 0, "rank": 0, "data": ""})
    sealing.seal(directory)
    for path in (kept_run, directory):
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        first, second = (cli("verify", path) for _ in range(2))
        assert first == second
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert "ok report" in cli("verify", kept_run).out


# --- signatures ----------------------------------------------------------------------------------


def test_signed_by_ssh(directory: Path, key: Path, cli: Command) -> None:
    assert cli("sign", directory, "--key", key).out.strip() == f"{directory}/manifest.json.sig"
    for allowed, holds, words in (
        (key.parent / "allowed", True, "lab@example with ED25519 key SHA256:"),
        (None, None, "whose owner is not checked"),
    ):
        (found,) = [c for c in checks(directory, allowed=allowed) if c.name == "signature"]
        assert (found.holds, words in found.words) == (holds, True)
    again = cli("sign", directory, "--key", key)
    assert (again.status, "is signed already: manifest.json.sig" in again.err) == (2, True)


def test_what_is_put_in_before_signing_is_sealed(directory: Path, key: Path, cli: Command) -> None:
    (directory / "photographs").mkdir()
    photograph = directory / "photographs" / "rack.jpg"
    photograph.write_bytes(b"\xff\xd8cables")
    (late,) = [check for check in checks(directory) if check.name == "file"]
    assert late.words == "photographs/rack.jpg is not sealed: it came later"
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
    assert "manifest.json.sig does not fit manifest.json" in words


def test_a_signed_manifest_is_not_renewed(directory: Path, key: Path) -> None:
    sealing.sign(directory, key)
    before = (directory / "manifest.json").read_bytes()
    (directory / "report.html").write_text("<html>")
    sealing.renew(directory)
    assert (directory / "manifest.json").read_bytes() == before
    (directory / "manifest.json.sig").unlink()
    sealing.renew(directory)
    assert "report.html" in sealing.load(directory)


@pytest.mark.parametrize(
    ("signed", "allowed", "words"),
    [
        (True, "x@example {other}", "was made with a key that"),  # by somebody else
        (False, "x@example {other}", "is not signed"),
        (True, "lab@example", "is no allowed_signers file"),
    ],
)
def test_wrong_keys(
    signed: bool, allowed: str, words: str, directory: Path, key: Path, cli: Command
) -> None:
    kind, other, *_ = key.with_suffix(".pub").read_text().split()
    signers = key.parent / "others"
    signers.write_text(allowed.format(other=f"{kind} {other[:-8]}AAAAAAAA") + "\n")
    if signed:
        sealing.sign(directory, key)
    status, _, err = cli("verify", directory, "--allowed-signers", signers)
    assert (status, len(err.splitlines()), words in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "can't be read: No such file or directory"),
        (b"hello", "is no secret key of ssh-keygen"),
        (b"\xff\xfe", "is no key: it is not text"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAA\n-----END OPENSSH PRIVATE KEY-----\n",
         "can't sign: "),
    ],
)  # fmt: skip
def test_what_can_not_sign(
    content: bytes | None, words: str, directory: Path, cli: Command
) -> None:
    path = directory.parent / "bad"
    if content is not None:
        path.write_bytes(content)
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
    assert "ssh-keygen is not installed: it is in Debian's package openssh-client" in err


def test_nobody_signs_what_was_changed(directory: Path, key: Path, cli: Command) -> None:
    flip(directory / "flows.parquet", 5)
    status, _, err = cli("sign", directory, "--key", key)
    assert (status, "is not signed: flows.parquet was changed" in err) == (2, True)


# --- what does not hold --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["clauses.json", "configuration.yaml", "plan.json", "flows.parquet", "summary.json",
     "verdict.xml"],
)  # fmt: skip
def test_each_changed_byte_is_named_by_file(directory: Path, name: str, cli: Command) -> None:
    path = directory / name
    whole = path.read_bytes()
    for position in (0, len(whole) // 2, len(whole) - 1):
        flip(path, position)
        status, out, err = cli("verify", directory)
        assert (status, f"NO file       {name} was changed\n" in out) == (2, True)
        assert err == f"switchbench: {directory} can't be relied on: {name} was changed [SB-SIGN]\n"
        path.write_bytes(whole)


def test_each_byte_of_the_manifest_counts(directory: Path) -> None:
    """One by one: what it says, its hashes, its spaces."""
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


def other_text(name: str, before: str, after: str) -> Damage:
    def change(directory: Path) -> None:
        text = (directory / name).read_text()
        assert before in text
        (directory / name).write_text(text.replace(before, after, 1))

    return change


def other_row(table: str, **values: Any) -> Damage:
    """Other values in the first row of a table."""

    def change(directory: Path) -> None:
        first, *others = rows_in(directory, table)
        replace_rows(directory, table, [first | values, *others])

    return change


def other_summary(change: Callable[[dict[str, Any]], object]) -> Damage:
    def act(directory: Path) -> None:
        summary = json.loads((directory / "summary.json").read_text())
        change(summary)
        (directory / "summary.json").write_text(json.dumps(summary, indent=1))

    return act


def better_verdict(summary: dict[str, Any]) -> None:
    """By somebody without a signature to fear."""
    summary["expectations"][0]["verdict"] = summary["verdict"]["verdict"] = "PASS"
    summary["exit_status"] = 0


def of_another_version(summary: dict[str, Any]) -> None:
    summary["run"]["versions"]["switchbench"] = "0.0.9"
    summary["plans"][0]["throughput"]["min"] = 999.0


def milder_clauses(directory: Path) -> None:
    """In the plan, than those that were hashed before traffic."""
    mild = {**CLAUSE, "require": "<= 10"}
    write_plan(directory, make_run(SITE, make_trial(SITE), expectations=(mild,)))


def half_written(directory: Path) -> None:
    """As a run's command leaves it that was killed."""
    summary = gather(RUN, directory).finish(about(), [NOT_ENDED])
    (directory / "summary.json").write_text(json.dumps(summary))
    (directory / "manifest.json").unlink()


OTHER_XML = other_text("verdict.xml", "failure", "skipped")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (other_summary(better_verdict),
         "is not what the tables amount to: exit_status, expectations, verdict"),
        (other_summary(of_another_version), "says that it was made by 0.0.9, and the tables by"),
        (other_summary(lambda s: s["verdict"].update(scope="Other words.")),
         "can't be relied on: verdict.xml is not the verdict of summary.json"),
        (milder_clauses, "summary.json is not what the tables amount to: "),
        (half_written, "summary.json is half written: "),
        (other_text("clauses.json", "== 0", "<= 9"), "clauses.json is not what was fixed before"),
        (OTHER_XML, "verdict.xml is not the verdict of"),
        (other_row("events", details='{"sha256":"0"}'), "first row of the table `events` has the"),
        (other_row("events", type="other"), "the table `events` does not begin with the clauses'"),
        (other_row("flows", received_frames=-1), "received_frames has the negative count"),
        (other_row("flows", src="node7:e0"), "trial 0 has no rank 'node7:e0'"),
        (other_row("flows", phase=3), "trial 0 has no phase 3"),
        (lambda d: (d / "plan.json").unlink(), "can't be judged again here (--no-again"),
    ],
)  # fmt: skip
def test_what_was_changed_is_found_though_the_manifest_fits(
    damage: Damage, words: str, directory: Path, cli: Command
) -> None:
    found_though_sealed(damage, words, directory, cli)


def test_without_the_plan_the_rest_is_checked(directory: Path, cli: Command) -> None:
    """And that a verdict.xml which was put there later is the summary's."""
    text = (directory / "verdict.xml").read_text()
    (directory / "verdict.xml").unlink()
    sealing.seal(directory)
    (directory / "verdict.xml").write_text(text.replace("failure", "skipped"))
    assert failures(directory) == ["verdict.xml is not the verdict of summary.json"]
    (directory / "verdict.xml").write_text(text)
    (directory / "plan.json").unlink()
    sealing.seal(directory)
    assert "ok clauses" in cli("verify", directory).out
    assert cli("verify", directory, "--no-again").status == 0


def other_trial(**changes: Any) -> Damage:
    def change(directory: Path) -> None:
        plan = json.loads((directory / "plan.json").read_text())
        plan["run"]["trials"][0].update(changes)
        (directory / "plan.json").write_text(json.dumps(plan))

    return change


NOT_IN_PLAN = "trial 0 has a load, window or size that is not in configuration.yaml"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (other_trial(load={"percent": 50.0, "bps": None, "fps": None}), NOT_IN_PLAN),
        (other_trial(window_s=9.0), NOT_IN_PLAN),
        (other_text("report.html", "acceptance", "triumph"), "does not show these results"),
    ],
)
def test_what_was_changed_in_a_real_run(
    damage: Damage, words: str, kept_run: Path, tmp_path: Path, cli: Command
) -> None:
    path = Path(shutil.copytree(kept_run, tmp_path / "results"))
    found_though_sealed(damage, words, path, cli)


def found_though_sealed(damage: Damage, words: str, path: Path, cli: Command) -> None:
    damage(path)
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


# --- directories that are none -------------------------------------------------------------------


def newer(name: str, own: int) -> Damage:
    def change(directory: Path) -> None:
        form = f"switchbench-{name}"
        other_text(f"{name}.json", f"{form}/{own}", f"{form}/{own + 1}")(directory)
        if name == "summary":
            (directory / "manifest.json").unlink()

    return change


def manifest(text: str) -> Damage:
    return lambda directory: (directory / "manifest.json").write_text(text)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (half_written, "its run has not ended or was killed (`switchbench table"),
        (newer("manifest", 1), "manifest.json is of a newer form (switchbench-manifest/2; this"),
        (newer("summary", 2), "summary.json is of a newer form (switchbench-summary/3; this"),
        (manifest("{"), "manifest.json is damaged"),
        (manifest("[]"), "manifest.json is damaged"),
        (other_text("manifest.json", '"flows.parquet"', '"\\ud800"'), "manifest.json is damaged: "),
        *((other_text("manifest.json", '"flows.parquet"', f'"{name}"'),
           f"manifest.json is damaged: at the file '{name}'")
          for name in ("/etc/passwd", "../elsewhere", "plots/../../elsewhere", "..")),
        (lambda d: shutil.rmtree(d), "is no results directory"),
        (lambda d: [path.unlink() for path in d.iterdir()], "no results in"),
    ],
)  # fmt: skip
def test_what_can_not_be_verified(
    damage: Damage, words: str, directory: Path, cli: Command
) -> None:
    damage(directory)
    status, _, err = cli("verify", directory)
    assert (status, len(err.splitlines()), words in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (os.fsdecode(b"Kabel-\xfc.jpg"), r"Kabel-\\udcfc\.jpg' is not UTF-8"),
        ("", "elsewhere is no file"),
    ],
)
def test_a_strange_name_and_a_link_are_not_sealed(name: str, words: str, directory: Path) -> None:
    if name:
        (directory / name).write_bytes(b"")
    else:
        (directory / "elsewhere").symlink_to("/etc/hostname")
    with pytest.raises(ConfigurationError, match=words):
        sealing.seal(directory)
