# SPDX-License-Identifier: BSD-3-Clause
"""`launch: command`: Open MPI's mpirun starts the nodes in the namespaces of a lab."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
from switchbench import labs
from switchbench.base.programs import find_engine
from switchbench.topology.lab_addresses import namespace_name

pytestmark = [
    labkit.needs_lab,
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun: openmpi-bin"),
    pytest.mark.usefixtures("nothing_left"),
]

# mpirun's remote shell: a namespace for a host, with a host name of its own.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "{space}$host" unshare --uts sh -c "hostname $host; $*"
"""


def configuration(lab: labs.Lab, folder: Path) -> dict[str, Any]:
    """Return a configuration of pairs between the lab's hosts, with nodes that mpirun starts."""
    agent = folder / "agent"
    agent.write_text(AGENT.format(space=namespace_name(lab.name, "")))
    agent.chmod(0o755)
    settings = {
        "plm_rsh_agent": str(agent),
        "plm_rsh_no_tree_spawn": "1",
        "oob_tcp_if_include": "100.64.0.0/10",
    }
    start = ["ip", "netns", "exec", namespace_name(lab.name, "alice"), "mpirun"]
    start += ["--allow-run-as-root", "--host", "{host}", "-np", "1"]
    for key, value in settings.items():
        start += ["--mca", key, value]
    site = {
        "launch": "command",
        "command": {"start": start, "engine": str(find_engine())},
        "hosts": ["alice", "bob"],
        "control": {"addresses": {node.name: node.control_ipv4 for node in lab.nodes}},
        "ports": {"e0": {"network": "cable", "iface": "eth0", "line_rate": "20Mbit"}},
    }
    test = {"pattern": "pairs", "transport": "tcp", "load": "80%"}
    times = {"warmup": "100ms", "window": "500ms", "repeat": 1}
    return {"switchbench": 1, "site": site, "tests": [test | times]}


def test_mpirun_starts_the_nodes(lab: labs.Lab, tmp_path: Path) -> None:
    """Documents and records go through mpirun as through any pipe; both nodes end."""
    result = runs.run(tmp_path, configuration(lab, tmp_path)).complete
    assert result.summary["run"]["launch"] == "command"
    (trial,) = result.summary["trials"]
    assert trial["flows"] == 2
    assert trial["throughput"]["min"] > 0
