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

from golden import unpack
from recorded import replace_rows, results, rows_in
from switchbench.analysis import sealing, verify
from switchbench.analysis.remake import gather, remade
from switchbench.analysis.sealing import write_record
from switchbench.analysis.summary import NOT_ENDED
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.config.clauses import clauses_sha256
from switchbench.records.directory import as_read, load_summary
from switchbench.records.plan_file import read_plan, write_plan
from switchbench.records.store import TableWriter
from switchbench.render.report import build
from synthetic import about, make_run, make_site, make_trial, pair_records

Damage = Callable[[Path], None]
CLAUSE = {"id": "4.2", "measure": "lost_frames", "require": "== 0", "over": "flow"}
SITE = make_site()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One with a clause that failed."""
    run = make_run(SITE, make_trial(SITE), expectations=(CLAUSE,))
    return results(tmp_path / "results", run, pair_records())


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key of OpenSSH without a passphrase; `allowed` beside it lets it sign."""
    path = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    (tmp_path / "allowed").write_text(f"lab@example {path.with_suffix('.pub').read_text()}")
    return path


def checks(directory: Path, **asked: Any) -> list[verify.VerifyCheck]:
    return list(verify.verify(directory, verify.VerifyOptions(**asked)))


def failures(directory: Path, **asked: Any) -> list[str]:
    return [check.words for check in checks(directory, **asked) if check.holds is False]


def flip(path: Path, position: int) -> None:
    """Changes one bit of one byte."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x01
    path.write_bytes(content)


# --- what holds ----------------------------------------------------------------------------------


def test_all_of_it_holds(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["ok", "files"], ["-", "signature"], ["ok", "clauses"], ["-", "plan"], ["ok", "verdict"],
        ["ok", "junit"],
    ]  # fmt: skip
    assert "FAIL: The system under test does not meet its one clause" in lines[-2]


def test_a_run_without_clauses_is_verified_too(tmp_path: Path) -> None:
    path = results(tmp_path / "results", make_run(SITE, make_trial(SITE)), pair_records())
    assert failures(path) == []
    assert not (path / "verdict.xml").exists()


def test_the_clauses_that_were_agreed_on(directory: Path) -> None:
    agreed = clauses_sha256([CLAUSE])
    assert failures(directory, clauses=agreed.upper()) == []
    (words,) = failures(directory, clauses="00" * 32)
    assert words.startswith("are not those agreed on")


def test_signed_by_ssh(directory: Path, key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", str(directory), "--key", str(key)]) == 0
    assert capsys.readouterr().out.strip() == str(directory / "manifest.json.sig")
    allowed = key.parent / "allowed"
    (found,) = [c for c in checks(directory, allowed=allowed) if c.name == "signature"]
    assert found.holds
    assert found.words.startswith("lab@example with ED25519 key SHA256:")
    (found,) = [c for c in checks(directory) if c.name == "signature"]
    assert found.holds is None
    assert "whose owner is not checked" in found.words


def test_what_is_put_in_before_signing_is_sealed(directory: Path, key: Path) -> None:
    (directory / "photographs").mkdir()
    photograph = directory / "photographs" / "rack.jpg"
    photograph.write_bytes(b"\xff\xd8cables")
    (late,) = [check for check in checks(directory) if check.name == "file"]
    assert late.words == "photographs/rack.jpg is not sealed: it came later"
    assert main(["sign", str(directory), "--key", str(key)]) == 0
    assert failures(directory) == []
    flip(photograph, 3)
    assert failures(directory) == ["photographs/rack.jpg was changed"]


# --- what does not -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("clauses.json", "configuration.yaml", "plan.json"),
        *("flows.parquet", "summary.json", "verdict.xml"),
    ],
)
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_each_changed_byte_is_named_by_file(
    directory: Path, name: str, place: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / name
    flip(path, round(place * (path.stat().st_size - 1)))
    assert main(["verify", str(directory)]) == 2
    said = capsys.readouterr()
    assert f"NO file       {name} was changed\n" in said.out
    assert (
        said.err == f"switchbench: {directory} can't be relied on: {name} was changed [SB-SIGN]\n"
    )


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


def test_who_changes_the_manifest_too_is_found_by_the_signature(directory: Path, key: Path) -> None:
    main(["sign", str(directory), "--key", str(key)])
    flows = rows_in(directory, "flows")
    assert [row["received_frames"] for row in flows] == [8000, 7990]
    replace_rows(directory, "flows", [row | {"received_frames": 8000} for row in flows])
    (directory / "manifest.json").write_bytes(
        sealing.content(
            directory,
            {name: sealing.entry_of(directory / name) for name in sealing.files_of(directory)},
        )
    )
    (words, *_) = failures(directory, allowed=key.parent / "allowed")
    assert "manifest.json.sig does not fit manifest.json" in words


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


def milder_clauses(directory: Path) -> None:
    """In the plan, than those that were hashed before traffic."""
    mild = {**CLAUSE, "require": "<= 10"}
    write_plan(directory, make_run(SITE, make_trial(SITE), expectations=(mild,)))


def better_verdict(directory: Path) -> None:
    """By somebody without a signature to fear."""
    summary = json.loads((directory / "summary.json").read_text())
    summary["expectations"][0]["verdict"] = summary["verdict"]["verdict"] = "PASS"
    summary["exit_status"] = 0
    (directory / "summary.json").write_text(json.dumps(summary, indent=1))


NOT_IN_PLAN = "trial 0 has a load, window or size that is not in configuration.yaml"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (better_verdict, "is not what the tables amount to: exit_status, expectations, verdict"),
        (milder_clauses, "summary.json is not what the tables amount to: "),
        (other_text("clauses.json", "== 0", "<= 9"), "clauses.json is not what was fixed before"),
        (other_text("verdict.xml", "failure", "skipped"), "verdict.xml is not the verdict of"),
        (other_row("events", details='{"sha256":"0"}'), "first row of the table `events` has the"),
        (other_row("events", type="other"), "the table `events` does not begin with the clauses'"),
        (other_row("flows", received_frames=-1), "received_frames has the negative count"),
        (other_row("flows", src="node7:e0"), "trial 0 has no rank 'node7:e0'"),
        (other_row("flows", phase=3), "trial 0 has no phase 3"),
    ],
)
def test_what_was_changed_is_found_though_the_manifest_fits(
    damage: Damage, words: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(directory)
    sealing.seal(directory)
    assert main(["verify", str(directory)]) == 2
    said = capsys.readouterr()
    assert words in said.out + said.err


@pytest.mark.parametrize("change", [{"load": {"percent": 50.0}}, {"window_s": 9.0}])
def test_a_plan_with_another_load_or_window(
    kept_run: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = shutil.copytree(kept_run, tmp_path / "results")
    plan = json.loads((path / "plan.json").read_text())
    trial = plan["run"]["trials"][0]
    trial |= {"load": trial["load"] | change.pop("load", {})} | change
    (path / "plan.json").write_text(json.dumps(plan))
    sealing.seal(path)
    assert any(NOT_IN_PLAN in failure for failure in failures(path))


def test_another_sentence_on_the_scope_is_no_other_verdict(directory: Path) -> None:
    summary = json.loads((directory / "summary.json").read_text())
    summary["verdict"]["scope"] = "Other words."
    (directory / "summary.json").write_text(json.dumps(summary))
    sealing.seal(directory)
    assert failures(directory) == ["verdict.xml is not the verdict of summary.json"]


def test_a_claim_of_another_version_does_not_pass_for_a_whole_check(directory: Path) -> None:
    summary = json.loads((directory / "summary.json").read_text())
    summary["run"]["versions"]["switchbench"] = "0.0.9"
    summary["plans"][0]["throughput"] = {"min": 999.0}
    (directory / "summary.json").write_text(json.dumps(summary))
    sealing.seal(directory)
    (said,) = (check for check in checks(directory) if check.name == "verdict")
    assert said.holds is not True


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with its report, sealed."""
    path = unpack("acceptance", tmp_path_factory.mktemp("golden"))
    build.write(path)
    write_record(path, load_summary(path))
    return path


def test_verify_writes_nothing(kept_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A first call passed and took samples away, a second one missed them."""
    before = {path.name: path.read_bytes() for path in kept_run.iterdir()}
    for _ in range(2):
        assert main(["verify", str(kept_run)]) == 0
        assert "ok report" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in kept_run.iterdir()} == before


def test_verify_leaves_samples_as_they_are(directory: Path) -> None:
    """As of a run that was killed before it stored them."""
    sample = {"type": "samples", "node": "node1", "trial": 0, "repeat": 0, "network": "lab"}
    sample |= {"phase": 0, "rank": 0, "data": ""}
    with TableWriter(directory) as tables:
        tables.add_samples(sample)
    sealing.seal(directory)
    first, second = checks(directory), checks(directory)
    assert [check.holds for check in first] == [check.holds for check in second]
    assert [*directory.glob("samples.*.arrows")]
    assert not (directory / "samples.parquet").exists()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_verdict_xml_that_says_something_else(directory: Path, sealed: bool) -> None:
    """Sealed or put there later."""
    path = directory / "verdict.xml"
    text = path.read_text()
    if not sealed:
        path.unlink()
        sealing.seal(directory)
    path.write_text(text.replace("failure", "skipped"))
    if sealed:
        sealing.seal(directory)
    assert failures(directory) == ["verdict.xml is not the verdict of summary.json"]


def test_a_report_that_shows_something_else(
    kept_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shutil.copytree(kept_run, tmp_path / "results")
    report = path / "report.html"
    report.write_text(report.read_text().replace("acceptance", "triumph"))
    sealing.seal(path)
    assert main(["verify", str(path)]) == 2
    assert "report.html does not show these results" in capsys.readouterr().err


def test_without_the_plan_the_rest_is_checked(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "plan.json").unlink()
    sealing.seal(directory)
    assert main(["verify", str(directory)]) == 2
    said = capsys.readouterr()
    assert "ok clauses" in said.out
    assert said.err.startswith("switchbench: the clauses can't be judged again here (--no-again")
    assert main(["verify", str(directory), "--no-again"]) == 0


@pytest.mark.parametrize("kind", ["other", "none", "text"])
def test_wrong_keys(
    kind: str, directory: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signature by somebody else, by nobody, and a file that names no key."""
    allowed = key.parent / "others"
    other = key.with_suffix(".pub").read_text().split()
    allowed.write_text(f"x@example {other[0]} {other[1][:-8]}AAAAAAAA\n")
    words = "is not signed"
    if kind != "none":
        main(["sign", str(directory), "--key", str(key)])
        words = "was made with a key that"
    if kind == "text":
        allowed.write_text("lab@example\n")
        words = "is no allowed_signers file"
    capsys.readouterr()
    assert main(["verify", str(directory), "--allowed-signers", str(allowed)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert words in sentence


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
    content: bytes | None, words: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory.parent / "bad"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    assert main(["sign", str(directory), "--key", str(path)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert words in sentence
    assert not (directory / "manifest.json.sig").exists()


def test_missing_programs(
    directory: Path, key: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["sign", str(directory), "--key", str(key)])
    capsys.readouterr()
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["verify", str(directory), "--allowed-signers", str(key.parent / "allowed")]) == 2
    assert "ssh-keygen is not installed: it is in Debian's package openssh-client" in (
        capsys.readouterr().err
    )


def test_nobody_signs_what_was_changed_or_over_another(
    directory: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (directory / "flows.parquet").read_bytes()
    flip(directory / "flows.parquet", 5)
    assert main(["sign", str(directory), "--key", str(key)]) == 2
    assert "is not signed: flows.parquet was changed" in capsys.readouterr().err
    (directory / "flows.parquet").write_bytes(whole)
    assert main(["sign", str(directory), "--key", str(key)]) == 0
    assert main(["sign", str(directory), "--key", str(key)]) == 2
    assert "is signed already: manifest.json.sig" in capsys.readouterr().err


# --- directories that are none -------------------------------------------------------------------


def half_written(directory: Path) -> None:
    """As a run's command leaves it that was killed."""
    run = make_run(SITE, make_trial(SITE), expectations=(CLAUSE,))
    (directory / "summary.json").write_text(
        json.dumps(gather(run, directory).finish(about(), [NOT_ENDED]))
    )
    (directory / "manifest.json").unlink()


def test_a_summary_that_is_sealed_half_written_does_not_pass(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half_written(directory)
    sealing.seal(directory)
    assert main(["verify", str(directory)]) == 2
    assert "summary.json is half written: " in capsys.readouterr().err


def newer(name: str) -> Any:
    def change(directory: Path) -> None:
        path = directory / f"{name}.json"
        form = f"switchbench-{name}"
        own = {"summary": 2, "manifest": 1}[name]
        path.write_text(path.read_text().replace(f"{form}/{own}", f"{form}/{own + 1}"))
        if name == "summary":
            (directory / "manifest.json").unlink()

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (half_written, "its run has not ended or was killed (`switchbench table"),
        (newer("manifest"), "manifest.json is of a newer form (switchbench-manifest/2; this"),
        (newer("summary"), "summary.json is of a newer form (switchbench-summary/3; this"),
        (lambda d: (d / "manifest.json").write_text("{"), "manifest.json is damaged"),
        (lambda d: (d / "manifest.json").write_text("[]"), "manifest.json is damaged"),
        (lambda d: shutil.rmtree(d), "is no results directory"),
        (lambda d: [path.unlink() for path in d.iterdir()], "no results in"),
    ],
)  # fmt: skip
def test_what_can_not_be_verified(
    damage: Any, words: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(directory)
    assert main(["verify", str(directory)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert words in sentence


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


@pytest.mark.parametrize("name", ["/etc/passwd", "../elsewhere", "plots/../../elsewhere", ".."])
def test_a_manifest_names_no_file_outside_the_directory(
    name: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / "manifest.json"
    content = json.loads(path.read_text())
    content["files"][name] = content["files"]["flows.parquet"]
    path.write_text(json.dumps(content))
    assert main(["verify", str(directory)]) == 2
    assert f"manifest.json is damaged: at the file '{name}'" in capsys.readouterr().err


def test_a_name_that_is_not_utf8_is_refused(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = directory / os.fsdecode(b"Kabel-\xfc.jpg")
    strange.write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"Kabel-\\udcfc\.jpg' is not UTF-8"):
        sealing.seal(directory)
    strange.unlink()
    path = directory / "manifest.json"
    path.write_text(path.read_text().replace('"flows.parquet"', '"\\ud800"'))
    assert main(["verify", str(directory)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "manifest.json is damaged: " in sentence


def test_a_link_is_not_sealed(directory: Path) -> None:
    (directory / "elsewhere").symlink_to("/etc/hostname")
    with pytest.raises(ConfigurationError, match="elsewhere is no file"):
        sealing.seal(directory)


def test_a_signed_manifest_is_not_renewed(directory: Path, key: Path) -> None:
    sealing.sign(directory, key)
    before = (directory / "manifest.json").read_bytes()
    (directory / "report.html").write_text("<html>")
    sealing.renew(directory)
    assert (directory / "manifest.json").read_bytes() == before
    (directory / "manifest.json.sig").unlink()
    sealing.renew(directory)
    assert "report.html" in json.loads((directory / "manifest.json").read_text())["files"]
