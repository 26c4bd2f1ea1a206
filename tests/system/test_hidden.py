# SPDX-License-Identifier: BSD-3-Clause
"""Faults hidden in labs are named: element, direction and kind, and nothing else is.

The network is shown to the benchmark without its faults: the kernel plants them when the lab is up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import kernel_faults
import labkit
import runs
from switchbench import labs
from switchbench.topology import lab_addresses

pytestmark = labkit.needs_lab

NETWORKS = yaml.safe_load((labkit.DATA / "hidden.yaml").read_text())
RECALL, PRECISION = 0.90, 0.98


class Fault(NamedTuple):
    """A planted fault: at a node's cable, `to` "in" or "out", or on the way between modules."""

    kind: str
    value: float
    at: str
    to: str
    link: int | None = None  # of a trunk's parallel links; None: all of them

    @property
    def trunk(self) -> bool:
        """Return true for a fault between modules."""
        return not self.at.startswith("node")


PLANTED: list[list[Fault]] = []
NAMED: list[list[list[bool]]] = []  # by case and suspect: whether it names each planted fault


def plant(lab: labs.Lab, fault: Fault) -> None:
    """Make the kernel break a lab of bridges."""
    links = 1
    if fault.trunk:
        for position, trunk in enumerate(lab.topology.trunks):
            if {trunk.a, trunk.b} == {fault.at, fault.to}:
                end = lab_addresses.trunk_ends(position)[trunk.a != fault.at]
                interface, rate_bps, links = end, trunk.rate_bps, trunk.links
    else:
        node = lab.topology.node(fault.at)
        out = lab_addresses.switch_port(node)
        interface = lab_addresses.inbound_shaper(node) if fault.to == "in" else out
        rate_bps = node.rate_bps
    if fault.kind == "capacity":
        kernel_faults.limit(lab, interface, round(fault.value * rate_bps))
    elif fault.kind == "flooding":
        kernel_faults.stop_learning(lab, interface)
    elif fault.kind == "size":
        kernel_faults.drop(lab, interface, kernel_faults.above(int(fault.value)))
    elif fault.link is None:
        kernel_faults.drop(lab, interface, kernel_faults.by_chance(fault.value))
    else:
        program = kernel_faults.of_link(fault.link, links, fault.value)
        kernel_faults.drop(lab, interface, program)


def names(suspect: dict[str, Any], fault: Fault) -> bool:
    """Return whether a suspect names a planted fault: its kind, its element and its direction.

    Of a cable its host's end stands for all that no traffic can tell apart. A bridge port that
    learns nothing makes the switch flood: to all other ports, or to some.
    """
    kinds = {fault.kind, "wrong-port"} if fault.kind == "flooding" else {fault.kind}
    way = {"in": "send", "out": "receive"}.get(fault.to, f"from {fault.at} to {fault.to}")
    return suspect["kind"] in kinds and any(
        element["direction"] == way
        and (
            element["kind"] in ("trunk", "link")
            if fault.trunk
            else (element["kind"], element["name"].partition(":")[0]) == ("host", fault.at)
        )
        for element in suspect["alike"]
    )


@pytest.mark.rows
def test_a_case_is_measured(
    network: str, transport: str, faults: list[list[Any]], more: runs.Record, tmp_path: Path
) -> None:
    """All-to-all at two loads. What other work on the machine spoils is measured again."""
    planted = [Fault(*one) for one in faults]
    document = {"topology": 1, "rate": "20M", "queue": "64KiB", **NETWORKS[network]}
    path = tmp_path / f"{labkit.PREFIX}-hidden.yaml"
    path.write_text(yaml.safe_dump(document))
    times = {"loads": ["40%", "90%"], "warmup": "100ms", "window": "600ms", "remeasure": 3}
    tests = [{"pattern": "aapc", "order": "shift"}]
    what = {"profile": "quick", "transport": transport, "tests": tests, **times, **more}
    with labkit.kept(path) as lab:
        for fault in planted:
            plant(lab, fault)
        result = runs.run(tmp_path, {"site": {"lab": str(path)}, **what})
    assert result.status in ((0, 1, 3) if planted else (0,)), result.output + result.errors
    print(planted, [one["brief"] for one in result.suspects])
    assert planted or not result.suspects
    NAMED.append([[names(one, fault) for fault in planted] for one in result.suspects])
    PLANTED.append(planted)


def test_the_faults_are_named_and_nothing_else() -> None:
    """Of all cases together."""
    found = [any(row[i] for row in named) for named, faults in zip(NAMED, PLANTED, strict=True)
             for i in range(len(faults))]  # fmt: skip
    right = [any(row) for named in NAMED for row in named]
    assert len(found) == 15
    assert sum(found) >= RECALL * len(found), (NAMED, PLANTED)
    assert sum(right) >= PRECISION * len(right), (NAMED, PLANTED)
