# SPDX-License-Identifier: BSD-3-Clause
"""A lab whose nodes forward: messages take the hops that are predicted, there and back."""

from __future__ import annotations

from pathlib import Path

import pytest

import labkit
import runs
from switchbench.labs import Lab

pytestmark = labkit.needs_lab

FORWARD_COLUMN = 5  # of /proc/net/snmp's line Ip: ForwDatagrams, behind its label


def forwarded(lab: Lab) -> dict[str, int]:
    """Return what each node's kernel has sent on for others."""

    def count() -> int:
        lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
        _, values = (line.split() for line in lines if line.startswith("Ip:"))
        return int(values[FORWARD_COLUMN + 1])

    return {node.name: labkit.in_node(lab, node.name, count) for node in lab.nodes}


@pytest.mark.usefixtures("nothing_left")
def test_messages_pass_the_nodes_predicted(tmp_path: Path) -> None:
    path = tmp_path / f"{labkit.PREFIX}-routed.yaml"
    path.write_text((labkit.DATA / "routed.yaml").read_text())
    tests = [{"pattern": "pairs", "partners": [["a1", to]]} for to in ("a2", "b1", "b2")]
    conf = {"site": {"lab": str(path)}, "transport": "tcp", "traffic": "pingpong", "tests": tests}
    times = {"message_sizes": [1], "warmup": "100ms", "window": "500ms"}
    with labkit.kept(path) as made:
        assert set(forwarded(made).values()) == {0}
        result = runs.run(tmp_path, conf | times)
        passed = forwarded(made)
    assert result.status == 0, result.output + result.errors
    curves = result.summary["messages"]["curves"]
    assert [curve["parameters"]["partners"] for curve in curves] == [
        [["a1", "a2"]], [["a1", "b1"]], [["a1", "b2"]],
    ]  # fmt: skip
    (near,), (middle,), (far,) = (curve["points"] for curve in curves)
    assert min(point["round_trips"] for point in (near, middle, far)) > 100
    # Each message and each answer: a2 forwarded those of two pairs, b1 those of one.
    assert passed["a2"] > 2 * (middle["round_trips"] + far["round_trips"])
    assert 2 * far["round_trips"] < passed["b1"] < passed["a2"]
    assert {name for name, frames in passed.items() if not frames} == {"a1", "a3", "b2", "b3"}
