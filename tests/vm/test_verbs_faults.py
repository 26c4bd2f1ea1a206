# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong with `verbs`: one sentence with the device and the remedy, the other ranks told,
and what was measured before is kept. Two nodes are run by hand on guests that stay up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import runs
import vmkit
from switchbench import guests
from switchbench.launch.engine import find_engine

pytestmark = vmkit.needs_guests

NODES = ("node1", "node2")
LIMIT_S = 90.0
LONG = {"timeout": 18, "depth": 16}

Record = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the nodes left: their status, records and messages, in the order of NODES."""

    status: list[int]
    records: list[list[Record]]
    errors: list[str]

    def of(self, kind: str, **where: Any) -> list[Record]:
        """All nodes' records of a type with these values."""
        every = [record for records in self.records for record in records]
        return [r for r in every if r["type"] == kind and where.items() <= r.items()]

    @property
    def text(self) -> str:
        """All that was said, for messages of assertions and for words that have to be there."""
        return "\n".join([*self.errors, *(json.dumps(r) for each in self.records for r in each)])


@pytest.fixture(scope="module")
def rig() -> Iterator[guests.Rig]:
    if (
        "libibverbs"
        not in subprocess.run(
            ["ldd", str(find_engine())], capture_output=True, text=True, check=True
        ).stdout
    ):
        pytest.skip("this build of the engine has no verbs")
    with guests.boot(guests.machines(2), guests.Job(programs=(find_engine(),))) as booted:
        yield booted


def job(directory: Path, tests: list[Record], port: Record) -> str:
    """The document for both nodes."""
    configuration = {
        "switchbench": 1,
        "site": {
            "launch": "hand",
            "hosts": list(NODES),
            "control": {
                "addresses": {name: f"100.64.0.{i + 1}" for i, name in enumerate(NODES)},
                "udp_port": 7600,
                "deadman": "20s",
                "barrier_timeout": "30s",
            },
            "ports": {"e0": {"network": "cable", **port}},
        },
        "transport": "verbs",
        "message_size": "64KiB",
        "warmup": "100ms",
        "window": "500ms",
        "repeat": 1,
        "tests": tests,
    }
    conf, document = directory / "conf.yaml", directory / "job.yaml"
    conf.write_text(yaml.safe_dump(configuration, sort_keys=False))
    done = subprocess.run(
        runs.command("plan", str(conf), "--job", str(document)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return document.read_text()


def play(rig: guests.Rig, document: str) -> Said:
    """Both nodes to their end."""
    started = []
    for name in NODES:
        rig[name].output(["sh", "-c", f"umask 077; cat >job.yaml <<'E'\n{document}\nE"])
        node = f"switchbench-node job.yaml --name {name}"
        started.append(
            rig[name].popen(
                ["sh", "-c", node],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ends = [process.communicate(timeout=LIMIT_S) for process in started]
    finally:
        for process in started:
            process.kill()
    said = Said(
        [process.returncode for process in started],
        [[json.loads(line) for line in out.splitlines()] for out, _ in ends],
        [errors for _, errors in ends],
    )
    print(said.text)
    return said


PORT = {"iface": "eth0"}
PAIRS = {"pattern": "pairs", "verbs": LONG}


# --- refused before any traffic -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "size", "words"),
    [
        pytest.param(
            {"mtu": 4096}, "64KiB", "mtu 4096 is larger than the port's active MTU 1024", id="mtu"
        ),
        pytest.param(
            {"gid_index": 77}, "64KiB", "gid_index 77 is not in the port's GID table", id="gid"
        ),
        pytest.param({}, "16MiB", "8388608 are the most that this device", id="size"),
    ],
)
def test_what_the_device_has_not(
    rig: guests.Rig, tmp_path: Path, options: Record, size: str, words: str
) -> None:
    wrong = {"pattern": "pairs", "verbs": LONG | options, "message_size": size}
    said = play(rig, job(tmp_path, [PAIRS, wrong], PORT))
    assert words in said.text
    assert "rxe0/1" in said.text
    kept = said.of("flow", trial=0, side="destination")
    assert len(kept) == 2
    assert all(flow["payload_bytes"] > 0 for flow in kept)
    assert not said.of("flow", trial=1)


def test_no_device_of_that_name(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, [PAIRS], {"rdma": "mlx5_9/1"}))
    assert "there is no RDMA device of that name; there are: rxe0" in said.text
    assert all(said.status)


def test_an_interface_without_a_device(rig: guests.Rig, tmp_path: Path) -> None:
    said = play(rig, job(tmp_path, [PAIRS], {"iface": "ctl0"}))
    assert "ctl0 has no RDMA device" in said.text
    assert "rdma link add rxe0 type rxe netdev ctl0" in said.text


def test_a_port_that_is_down(rig: guests.Rig, tmp_path: Path) -> None:
    rig["node1"].output(["ip", "link", "set", "eth0", "down"])
    try:
        said = play(rig, job(tmp_path, [PAIRS], PORT))
    finally:
        rig["node1"].output(["ip", "link", "set", "eth0", "up"])
        rig["node1"].run(["ip", "address", "add", "2001:2:0:1::1/64", "dev", "eth0", "nodad"])
    assert "port node1:e0 has had no link for 10 s: check its cable and its peer" in said.errors[0]
    assert "node1 gave up: port node1:e0" in said.errors[1]
    assert all(said.status)
