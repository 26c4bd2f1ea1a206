# SPDX-License-Identifier: BSD-3-Clause
"""From a configuration to trial documents, and back from what was understood."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from configs import (
    LAB,
    PROJECT,
    again,
    compile_text,
    needs_engine,
)
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run, Trial
from switchbench.base.source import load, read_file
from switchbench.config import Request, read
from switchbench.plan import documents
from switchbench.plan.compile import compile_run
from switchbench.plan.documents import trial_document
from switchbench.records.directory import CONFIGURATION, RunDirectory, read_plan, write_plan

pytestmark = needs_engine

CONFIGURATIONS = sorted(
    str(path.relative_to(PROJECT)) for path in (PROJECT / "conf").glob("*.yaml")
)


def assert_same(folder: Path, run: Run) -> None:
    """What was understood gives the same run, and so does what results have of it."""
    second = again(run)
    assert second.trials == run.trials
    assert second.site == run.site
    assert second.effective == run.effective
    assert second == run
    write_plan(folder, run)
    assert read_plan(folder) == run


@pytest.mark.parametrize("conf", CONFIGURATIONS)
def test_every_file_of_conf(conf: str, tmp_path: Path) -> None:
    """The project's own examples compile, and what was understood gives the same run."""
    run = compile_run(read(Request(PROJECT / conf)))
    assert_same(tmp_path, run)
    RunDirectory(tmp_path / "new").write_configuration(run.effective)
    assert load(tmp_path / "new" / CONFIGURATION) == run.effective


COMPILED: dict[str, dict[str, Any]] = read_file(PROJECT / "tests/python/data/compiled.yaml").data


def assert_has(found: Any, wanted: Any) -> None:
    """What is wanted is there; keys below `only` have nothing else in them; "A .. B" is a range."""
    for key, value in wanted.items():
        span = value.split(" .. ") if isinstance(value, str) else []
        if key == "only":
            assert {name: found[name] for name in value} == value
        elif isinstance(value, dict):
            assert_has(found[key], value)
        elif len(span) == 2:
            assert float(span[0]) <= found[key] <= float(span[1]), key
        else:
            assert found.get(key) == value, key


def facts(trial: Trial) -> dict[str, Any]:
    """A trial's own values, and those of its document."""
    document = json.loads(json.dumps(trial_document(trial)))
    of_parts = {
        "ranks": len(trial.parts[0].ranks),
        "networks": [part.network for part in trial.parts],
        "first": [part.ranks[0].name for part in trial.parts],
    }
    return {**vars(trial), **document, **of_parts, "repeats": vars(trial.repeats)}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each configuration gives these trials, and what was understood gives the same run."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    case = COMPILED[name]
    run = compile_text(tmp_path, case["text"], *case.get("set", ()))
    for trial, wanted in zip(run.trials, case.get("trials", run.trials), strict=True):
        if wanted is not trial:
            assert_has(facts(trial), wanted)
    for trial in run.trials if "every" in case else ():
        assert_has(facts(trial), case["every"])
    groups = {name: list(ports) for name, ports in run.site.groups.items()}
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in vars(run).items()}
    assert_has(plain | {"groups": groups}, case.get("run", {}))
    assert_same(tmp_path, run)


@pytest.mark.parametrize("transport", ["dpdk", "tcp"])
def test_expected_time_of_phases_that_follow_by_the_clock(transport: str, tmp_path: Path) -> None:
    """As the engine steps: sending, silence, and what it adds, between phases and at the end."""
    source = (PROJECT / "engine" / "trial" / "phase_times.c").read_text()
    hold_s, gap_s = (
        int(re.search(rf"#define CLOCK_{name}_NS \((\d+) \* NS_PER_MS\)", source)[1]) / 1000
        for name in ("HOLD", "GAP")
    )
    text = f"{LAB}transport: {transport}\nconnectivity_check: false\ndrain_timeout: 200ms\n"
    (trial,) = compile_text(tmp_path, text + "tests: [{pattern: aapc, sync: none}]\n").trials
    phases_s = 7 * (0.5 + 2 + 0.1 + 0.2 + hold_s) + 6 * gap_s
    assert trial.expected_s == pytest.approx(phases_s + 0.03 + 8 * 0.005, abs=1e-6)


@pytest.mark.parametrize(("latency", "stamped"), [("", True), ("latency: {probes: 0}\n", False)])
def test_job_opens_what_the_trials_use(latency: str, stamped: bool, tmp_path: Path) -> None:
    """Each port in the transports that some trial needs; a port of no trial is left alone.

    Frames are stamped where probes use it: stamps make some drivers receive without vectors.
    """
    text = f"{LAB}{latency}tests:\n- {{pattern: chain, ranks: [2], transports: [tcp, dpdk]}}\n"
    text += "- {pattern: chain, ranks: [4], transport: udp}\n"
    job = documents.job_document(compile_text(tmp_path, text), "r-1")
    ports = [(node["name"], port) for node in job["nodes"] for port in node["ports"]]
    every, udp = ["tcp", "dpdk", "udp"], ["udp"]
    assert [(port["name"], port["transports"]) for _, port in ports] == [
        ("node1:e0", every), ("node2:e0", every), ("node3:e0", udp), ("node4:e0", udp),
    ]  # fmt: skip
    assert [port.get("timestamps", False) for _, port in ports] == [stamped, stamped, False, False]
    assert len(job["nodes"]) == 8
    assert (job["protocol"], job["run"], job["controlled"]) == (2, "r-1", True)


HAND = """\
switchbench: 1
site:
  launch: hand
  hosts: [a, b]
  control: {addresses: {a: 192.0.2.1, b: "2001:db8::2"}}
  ports: {e0: {network: cable, iface: eth9, transports: [tcp]}}
tests: [{pattern: pairs}]
"""


def job_documents(text: str) -> dict[str, Any]:
    """A job's documents by their key, the last of each kind."""
    return {key: value for line in text.splitlines() for key, value in json.loads(line).items()}


def test_job_by_hand(tmp_path: Path) -> None:
    """Everything in one file: addresses, a fresh key, the trials, the end."""
    run = compile_text(tmp_path, HAND)
    text = documents.hand_job(run, "hand-1")
    found = job_documents(text)
    assert list(found) == ["job", "peers", "trial", "quit"]
    required = [trial for trial in run.trials if not trial.optional]
    assert text.count("\n") == 3 + len(required)
    assert found["job"]["controlled"] is False
    assert found["peers"]["addresses"] == ["192.0.2.1:7600", "[2001:db8::2]:7600"]
    assert found["job"]["nodes"][1]["control"] == {"address": "[2001:db8::2]:7600"}
    assert len(bytes.fromhex(found["peers"]["key"])) == 32
    assert found["trial"] == json.loads(json.dumps(trial_document(required[-1])))
    other = job_documents(documents.hand_job(run, "hand-1"))
    assert other["peers"]["key"] != found["peers"]["key"]


def test_job_by_hand_in_a_lab(tmp_path: Path) -> None:
    """A lab's nodes have a namespace each: one control port for all."""
    run = compile_text(tmp_path, LAB + "pattern: chain\n")
    found = job_documents(documents.hand_job(run, "hand-1"))
    assert found["peers"]["addresses"][:2] == ["100.64.0.1:7600", "100.64.0.2:7600"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("}}\n  ports", "}, udp_port: 0}\n  ports", "control.udp_port: 0 leaves the port open"),
        ("a: 192.0.2.1", "a: no-such-host.invalid", "cannot resolve no-such-host.invalid of a"),
    ],
)
def test_job_by_hand_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    """What people at two hosts could not start."""
    run = compile_text(tmp_path, HAND.replace(old, new))
    with pytest.raises(ConfigurationError, match=sentence):
        documents.hand_job(run, "hand-1")


def test_the_key_stays_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode 0600 from the first moment; a file with another mode is not written to."""
    path = tmp_path / "job.ndjson"
    documents.write_private(path, "one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    documents.write_private(path, "2")
    assert path.read_text() == "2"
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match=r"has mode 0644.* with mode 0600"):
        documents.write_private(path, "three")
    path.chmod(0o600)
    other = tmp_path / "other.yaml"
    other.hardlink_to(path)
    with pytest.raises(ConfigurationError, match="has 2 names"):
        documents.write_private(path, "three")
    other.unlink()
    monkeypatch.setattr(documents.os, "geteuid", lambda: 12345)
    with pytest.raises(ConfigurationError, match="belongs to user"):
        documents.write_private(path, "three")
    monkeypatch.undo()
    os.mkfifo(other, 0o600)
    with pytest.raises(ConfigurationError, match="can't be written"):  # nobody reads it
        documents.write_private(other, "three")
    assert path.read_text() == "2"
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    with pytest.raises(ConfigurationError, match="can't be written"):
        documents.write_private(link, "four")
    with pytest.raises(ConfigurationError, match=r"no/job\.ndjson: can't be written"):
        documents.write_private(tmp_path / "no" / "job.ndjson", "five")
