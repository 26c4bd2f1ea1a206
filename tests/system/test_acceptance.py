# SPDX-License-Identifier: BSD-3-Clause
"""From the clauses of conf/acceptance.yaml to a verdict: a good switch passes, one whose fabric
is too small fails; and signed results are distinguished from changed ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import labkit
import runs
import sshkit
from switchbench.base import programs

pytestmark = [labkit.needs_lab, labkit.needs_switch]

CONF = programs.configurations() / "acceptance.yaml"
# Half of its ports, and shorter: 40 Mbit/s in all.
SHORT = ("site.nodes=4", "window=1s", "warmup=300ms")
TOO_SMALL = "site.model.capacity=25M"


@dataclass(frozen=True)
class Bench:
    """Two finished runs and the key that signed them."""

    key: Path
    allowed: Path
    good: runs.Result
    bad: runs.Result


def run(out: Path, *words: str) -> runs.Result:
    """conf/acceptance.yaml as a person runs it."""
    settings = [word for setting in SHORT for word in ("--set", setting)]
    done = runs.execute("run", str(CONF), "--out", str(out), *settings, *words)
    return runs.Result(done.returncode, done.stdout, done.stderr, out)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("acceptance")
    key = folder / "key"
    public = sshkit.keygen(key)
    allowed = folder / "allowed"
    allowed.write_text(f"lab@example {public}\n")
    good = run(folder / "good", "--sign", str(key))
    bad = run(folder / "bad", "--sign", str(key), "--set", TOO_SMALL)
    yield Bench(key, allowed, good, bad)
    assert labkit.leftovers() == []


def verify(directory: Path, bench: Bench) -> subprocess.CompletedProcess[str]:
    return runs.execute("verify", str(directory), "--allowed-signers", str(bench.allowed))


def verdicts(result: runs.Result) -> dict[str, str]:
    return {clause["id"]: clause["verdict"] for clause in result.summary["expectations"]}


def test_a_good_switch_passes(bench: Bench) -> None:
    result = bench.good
    assert result.status == 0, result.output + result.errors
    assert set(verdicts(result).values()) == {"PASS"}
    sentence = "X8, modelled (serial SN-0012, firmware 1.0.3) meets all 6 clauses"
    assert sentence in " ".join(result.output.split())


def test_one_whose_fabric_is_too_small_fails(bench: Bench) -> None:
    result = bench.bad
    assert result.status == 1, result.output + result.errors
    failed = {name for name, verdict in verdicts(result).items() if verdict == "FAIL"}
    assert {"B.1", "B.2", "B.3"} <= failed
    throughput = result.summary["expectations"][0]
    # 25 of the 40 Mbit/s that four ports have.
    assert throughput["value"] == pytest.approx(62.5, abs=4)
    assert throughput["margin"] == pytest.approx(throughput["value"] - 90)
    assert throughput["at"]["port"].startswith("node")
    lost = result.summary["expectations"][2]
    assert lost["failed"] == lost["judged"] == 16  # 4 flows of pairs and 3 times 4 of aapc


def test_the_hash_is_known_before_and_the_same_in_both(bench: Bench) -> None:
    planned = json.loads(runs.execute("plan", str(CONF), "--json").stdout)["clauses_sha256"]
    for result in (bench.good, bench.bad):
        assert result.summary["verdict"]["clauses_sha256"] == planned
        assert planned in result.errors  # said when the run begins
    page = (CONF.parents[1] / "doc" / "tutorial" / "acceptance.md").read_text()
    assert page.count(planned) == 2


def test_both_are_as_they_were_signed(bench: Bench) -> None:
    for result, word in ((bench.good, "PASS"), (bench.bad, "FAIL")):
        done = verify(result.directory, bench)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "lab@example with ED25519 key" in done.stdout
        assert f": {word}: " in done.stdout
