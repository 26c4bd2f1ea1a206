# SPDX-License-Identifier: BSD-3-Clause
"""Two real switches beside each other: the Linux bridge and Open vSwitch, one configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import labkit
import runs

pytestmark = [labkit.needs_lab, labkit.needs_ovs, pytest.mark.usefixtures("nothing_left")]

CONFIGURATION = yaml.safe_load((labkit.DATA / "compare.yaml").read_text())


def test_bridge_against_open_vswitch(topology: Path, tmp_path: Path) -> None:
    found = {}
    for kind in ("bridges", "ovs"):
        site = {"lab": str(topology), "kind": kind, "pack": 4}
        found[kind] = runs.run(tmp_path / kind, {"site": site, **CONFIGURATION})
        assert found[kind].status == 0, found[kind].errors
        for trial in found[kind].trials():
            assert trial["flows_observed"] == trial["flows"]
    file = tmp_path / "found.json"
    names = [f"{kind}={result.directory}" for kind, result in found.items()]
    done = runs.execute("compare", *names, "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "By pattern: bridges → ovs" in done.stdout

    value = json.loads(file.read_text())
    assert {"of": None, "setting": "site.kind", "values": ["bridges", "ovs"]} in value["question"]
    (comparison,) = value["comparisons"]
    assert (len(comparison["pairs"]), comparison["differing"], comparison["alone"]) == (4, [], [])
    # Both carry what is offered, more or less: shared cores and a switch that is a process.
    rates = [row for row in comparison["plans"] if row["measure"] == "mean_rate"]
    assert all(0.5 < row["other"] / row["baseline"] < 1.5 for row in rates)
    # A frame's way through a process takes longer than one through the kernel.
    trips = [
        row
        for row in comparison["plans"]
        if row["measure"] == "round_trip_p50" and row["difference"] is not None
    ]
    assert trips
    assert sum(row["difference"] > 0 for row in trips) >= len(trips) / 2

    one = found["bridges"].directory
    done = runs.execute("compare", str(one), "--by", "transport", "--json", "-")
    assert done.returncode == 0, done.stderr
    by = json.loads(done.stdout)
    assert [result["name"] for result in by["results"]] == ["tcp", "dpdk"]
    assert len(by["comparisons"][0]["pairs"]) == 2
