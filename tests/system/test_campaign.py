# SPDX-License-Identifier: BSD-3-Clause
"""Devices with more ports than hosts: by rotation and through a chain the planted port is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labkit
import runs

pytestmark = [labkit.needs_lab, labkit.needs_switch, pytest.mark.usefixtures("nothing_left")]

CONF = {
    "transport": "dpdk", "load": "80%", "warmup": "100ms", "window": "400ms",
    "expect": [{"id": "1", "measure": "lost_frames", "over": "flow", "require": "== 0"}],
}  # fmt: skip
# A window of a chain is longer: on a busy machine a phase of 400 ms is over before all ports sent.
# At 20 Mbit/s the usual rate of probes is one a second, and a median needs two.
CHAIN = CONF | {"window": "1s", "latency": {"probes": 20}, "tests": [{"pattern": "pairs"}]}
HALVES = {8: ("p[1-4]", "p[5-8]"), 48: ("p[1-24]", "p[25-48]")}


def site(ports: int, nodes: int, faults: list[dict[str, Any]], chain: bool = False) -> runs.Record:
    """Return a lab of a device with so many ports."""
    device = {"ports": f"p[1-{ports}]", "chain": chain}
    if not chain:
        device["groups"] = dict(zip(("left", "right"), HALVES[ports], strict=True))
    model = {"seed": 7, "faults": faults}
    return {"lab": "model-48", "nodes": nodes, "device": device, "model": model}


def campaign(directory: Path, configuration: runs.Record) -> runs.Result:
    """Return a whole campaign: in a lab it moves the cables itself."""
    out = directory / "results"
    conf = runs.write(directory, configuration)
    done = runs.execute("campaign", str(conf), "--out", str(out), timeout_s=600)
    return runs.Result(done.returncode, done.stdout, done.stderr, out)


@pytest.mark.parametrize("ports", [8, 48])
def test_a_rotation_finds_the_port(ports: int, tmp_path: Path) -> None:
    """One verdict, one list of suspects, one table of ports, one report over all rounds."""
    nodes, bad = {8: (4, "p6"), 48: (8, "p29")}[ports]
    faults = [{"kind": "drop", "one_in": 25, "in": bad}]
    conf = CONF | {"site": site(ports, nodes, faults), "tests": [{"pattern": "aapc"}]}
    result = campaign(tmp_path, conf)
    assert result.status == 1, result.output + result.errors
    summary, out = result.summary, result.directory
    (suspect,) = summary["location"]["suspects"]
    assert suspect["element"]["name"] == f"dut:{bad}"
    assert suspect["element"]["direction"] == "in"
    assert [one["name"] for one in suspect["alike"]] == [f"dut:{bad}"]
    found = {port["switch_port"]: port for port in summary["ports"]}
    assert len(found) == ports
    assert {name for name, port in found.items() if port["suspect"]} == {bad}
    rounds = {number for port in summary["ports"] for number in port["rounds"]}
    assert rounds == set(range(1, ports // nodes + 2))
    assert summary["verdict"]["verdict"] == "FAIL"
    assert f"dut:{bad} in" in result.output
    assert runs.execute("table", str(out)).returncode == 1
    assert runs.execute("verify", str(out)).returncode == 0
    report = tmp_path / "again.html"
    assert runs.execute("report", str(out), "--out", str(report)).returncode == 0
    assert f'title="{bad}@' in report.read_text() or f"{bad}@" in report.read_text()
    again = runs.execute("campaign", str(out))  # nothing is left: it is judged again
    assert again.returncode == 1
    assert again.stdout.splitlines()[1] == result.output.splitlines()[1]


@pytest.mark.rows
def test_a_chain_of_48_ports_finds_the_port(
    fault: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """Two hosts load all; the exit moves until the VLAN is known, in at most nine rounds."""
    conf = CHAIN | {"site": site(48, 2, [fault], chain=True)}
    result = campaign(tmp_path, conf)
    assert result.output.splitlines()[-1].startswith(f"frames are lost at {says}, "), result.errors
    if fault["kind"] == "dead":
        assert result.status == 3
        return
    assert result.status == 1, result.errors
    summary = result.summary
    first = summary["chain"][0]
    assert (first["entry"], first["exit"], first["passes"]) == ("p1", "p48", 24)
    assert first["us_per_pass"] == pytest.approx(first["round_trip_us"] / 48)
    assert len(summary["chain"]) <= 9
    (suspect,) = summary["location"]["suspects"]
    named = {(one["name"], one["direction"]) for one in suspect["alike"]}
    assert named == {("dut:p29", "in"), ("dut:p30", "out")}


def test_a_whole_chain_is_one_round(tmp_path: Path) -> None:
    conf = CHAIN | {"site": site(48, 2, [], chain=True)}
    result = campaign(tmp_path, conf)
    assert result.status == 0, result.output + result.errors
    assert result.output.splitlines()[-1] == "no frame was lost in the chain: nothing to look for"
    assert {port["sent_frames"] > 0 for port in result.records("port")} == {True}
