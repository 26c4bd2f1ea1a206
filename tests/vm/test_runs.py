# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs on labs of guests: `switchbench run` boots, measures, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import runs
import vmkit
from switchbench.base.programs import find_engine
from switchbench.labs.vm.monitor import Monitor
from switchbench.labs.vm.rig import FOLDER_PREFIX

CONF = Path(__file__).resolve().parents[2] / "conf"
EXAMPLES = sorted(CONF.glob("*-guests.yaml"))
RUN_LIMIT_S = 300
# Half a minute to a whole one however short their windows. Four guests come up in test_rig.py, each
# pattern's roles over verbs are played by the battery, and two guests run all transports below.
LONG = {"paper-salmon-guests", "verbs-guests", "verbs-tcp-guests"}

# How fast an emulator on a busy machine is decides clauses and nothing else.
DONE = (0, 1, 4)


def has_verbs() -> bool:
    """Whether the engine was built with libibverbs."""
    said = subprocess.run(
        ["ldd", str(find_engine())], capture_output=True, text=True, check=True
    ).stdout
    return "libibverbs" in said


pytestmark = [
    vmkit.needs_guests,
    pytest.mark.skipif(not has_verbs(), reason="this build of the engine has no verbs"),
]


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in EXAMPLES
    ],
)
def test_example_runs(conf: Path, tmp_path: Path) -> None:
    configuration = yaml.safe_load(conf.read_text())
    short = {"warmup": "100ms", "window": "400ms", "repeat": 1}
    result = runs.run(tmp_path, configuration | short, RUN_LIMIT_S)
    print(result.output)
    assert result.status in DONE, result.errors
    assert result.summary["status"] == "complete"
    assert result.summary["errors"] == []
    ends = [record for record in result.records("flow") if record["side"] == "destination"]
    assert ends
    for end in ends:
        assert end["payload_bytes"] > 0, end
        assert end["corrupted"] in (0, None), end


def test_three_transports_on_the_same_port(tmp_path: Path) -> None:
    configuration = {
        "site": {"lab": "verbs-guests", "guests": 2},
        "transports": ["tcp", "dpdk", "verbs"],
        "load": "8Mbit",
        "warmup": "200ms",
        "window": "1s",
        "verbs": {"timeout": 18},
        "latency": {"probes": "50/s"},
        "tests": [{"pattern": "pairs"}],
    }
    result = runs.run(tmp_path, configuration, RUN_LIMIT_S)
    print(result.output)
    assert result.status in DONE, result.errors
    for transport in ("tcp", "dpdk", "verbs"):
        (trial,) = result.trials(transport=transport)
        assert trial["state"] == "complete"
        for flow in result.flows(trial):
            assert flow.delivered_payload_bps > 1e6, flow.name
        trip = trial["latency"]["round_trip"]
        assert trip["count"] > 10, transport  # of 100, less what an emulated machine was away
        assert trip["lost"] == 0, transport
        assert 10 < trip["min"] <= trip["p50"] <= trip["max"], transport
    assert "Transports side by side" in result.output


# --- faults ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Underway:
    """A run on two guests that has begun to measure."""

    process: subprocess.Popen[str]
    out: Path

    @property
    def folder(self) -> Path:
        """Of its guests."""
        (found,) = Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}{self.process.pid}-*")
        return found

    def measures(self) -> bool:
        """Whether some node is in a window."""
        assert self.process.poll() is None, self.process.communicate()
        records = self.out / "records.ndjson"
        return records.exists() and '"step":"window"' in records.read_text().replace(" ", "")


@contextmanager
def underway(directory: Path) -> Iterator[Underway]:
    configuration = {
        "switchbench": 1,
        "site": {"lab": "verbs-guests", "guests": 2},
        "transport": "tcp",
        "load": "8Mbit",
        "window": "20s",
        "tests": [{"pattern": "pairs"}],
    }
    conf, out = directory / "conf.yaml", directory / "results"
    conf.write_text(yaml.safe_dump(configuration))
    with subprocess.Popen(
        runs.command("run", str(conf), "--out", str(out)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        run = Underway(process, out)
        try:
            vmkit.wait_until(run.measures, "it measures", 60)
            yield run
        finally:
            process.kill()


def test_a_guest_that_dies_in_a_run_is_named(tmp_path: Path) -> None:
    with underway(tmp_path) as run:
        with Monitor(run.folder / "node2" / "qmp") as monitor:
            monitor.execute("system_reset")  # -no-reboot: QEMU ends
        _, errors = run.process.communicate(timeout=60)
        assert run.process.returncode == 3
        assert "node2 (switch p2) ended with status 255" in errors
        assert "node2: the guest has ended" in errors
        assert vmkit.traces(run.process.pid) == set()


@pytest.mark.parametrize(
    "number",
    [
        # In order, as after every run.
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        signal.SIGKILL,
    ],
)
def test_no_guest_outlives_a_run_that_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    with underway(tmp_path) as run:
        pid = run.process.pid
        assert len([line for line in vmkit.traces(pid) if "qemu" in line]) == 2
        os.kill(pid, number)
        run.process.wait(60)
        vmkit.wait_until(lambda: not vmkit.traces(pid), "nothing is left", 15)
    assert run.process.returncode == (3 if number == signal.SIGINT else -number)
