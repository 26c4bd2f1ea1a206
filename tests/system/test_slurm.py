# SPDX-License-Identifier: BSD-3-Clause
"""`launch: slurm` for real: slurmctld, munged and four slurmd's in a lab, srun starting nodes.

All of Slurm has its own folder and its own ports; nothing of this system's is started or asked.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
import sshkit
from sshkit import ALL_TO_ALL, PAIRS, configuration, long
from switchbench import labs

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "salloc", "scancel", "squeue", "sinfo")
LACKING = [name for name in PROGRAMS if shutil.which(name) is None]

pytestmark = [
    labkit.needs_lab,
    pytest.mark.skipif(
        bool(LACKING), reason=f"needs {', '.join(LACKING)}: apt-get install slurm-wlm munge"
    ),
]

STOP_LIMIT_S = 3.0  # the heartbeat_timeout's second, and Slurm's messages
CTLD_PORT, SLURMD_PORT = 36817, 36818
CONF = (labkit.DATA / "slurm.conf").read_text()
NODE = "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port} CPUs=1 State=UNKNOWN\n"


class Cluster(sshkit.LabHosts):
    """A lab with a Slurm daemon on each node."""

    def output(self, *words: str) -> str:
        """Return what one of Slurm's commands prints."""
        process = self.popen(list(words))
        output, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        return output.strip()

    def site(self) -> dict[str, Any]:
        """Return the four hosts."""
        return self.near("slurm")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Up for all tests of this file; ended by the processes' own ids."""
    folder = tmp_path_factory.mktemp("slurm")
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)  # munged wants to be reached by everybody
    topology = labkit.write_topology(folder, "node1", "node2", "node3", "node4")
    with ExitStack() as stack:
        lab = stack.enter_context(labs.session(labs.load(topology)))
        made = Cluster(lab, folder, {"SLURM_CONF": str(folder / "slurm.conf")})
        sshkit.join_control(lab)
        configure(made)
        for node, words in daemons(made):
            stack.enter_context(
                sshkit.daemon(made, node, words, f"{words[0]}-{node}", own_sys=False)
            )
            if words[0] == "munged":
                runs.wait_until((folder / "munge.sock").exists, "munged listens", 20)

        def idle() -> bool:
            process = made.popen(["sinfo", "--noheader", "--format=%t %D"])
            return process.communicate(timeout=30)[0].split() == ["idle", "4"]

        runs.wait_until(idle, "four nodes are idle", 60)
        yield made
    assert labkit.leftovers() == []


def configure(made: Cluster) -> None:
    """Slurm's files and munge's key."""
    host = platform.node().partition(".")[0]
    text = CONF.format(
        host=host, controller=sshkit.CONTROLLER, ctld_port=CTLD_PORT, folder=made.folder
    )
    for node in made.lab.nodes:
        text += NODE.format(name=node.name, host=host, address=node.control_ipv4, port=SLURMD_PORT)
    (made.folder / "slurm.conf").write_text(text)
    (made.folder / "cgroup.conf").write_text("")
    (made.folder / "state").mkdir()
    (made.folder / "munge.key").write_bytes(os.urandom(1024))
    (made.folder / "munge.key").chmod(0o600)


def daemons(made: Cluster) -> Iterator[tuple[str, list[str]]]:
    """Where each runs, and its command line."""
    files = {
        "socket": "munge.sock", "key-file": "munge.key", "log-file": "munged.log",
        "pid-file": "munged.pid", "seed-file": "munged.seed",
    }  # fmt: skip
    munge = [f"--{option}={made.folder / name}" for option, name in files.items()]
    yield "switch", ["munged", "--foreground", "--force", *munge]
    yield "switch", ["slurmctld", "-D", "-i"]
    for node in made.lab.nodes:
        yield node.name, ["slurmd", "-D", "-N", node.name]


def jobs(cluster: Cluster) -> list[str]:
    return cluster.output("squeue", "--noheader", "--format=%i").split()


@pytest.fixture(params=["node[1-4]"])
def allocated(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Commands run in an allocation."""
    cluster.output("salloc", "--no-shell", f"--nodelist={request.param}")
    (job,) = jobs(cluster)
    cluster.variables["SLURM_JOB_ID"] = job
    yield cluster
    assert jobs(cluster) == [job]
    del cluster.variables["SLURM_JOB_ID"]
    cluster.output("scancel", job)
    runs.wait_until(lambda: not jobs(cluster), "the allocation has ended", 20)


def test_a_run_in_an_allocation(allocated: Cluster, tmp_path: Path) -> None:
    asked = configuration(allocated.site(), tests=[PAIRS, ALL_TO_ALL], transports=["dpdk", "tcp"])
    del asked["transport"]
    result = allocated.run(tmp_path, asked | {"frame_size": 1518}).complete
    names = [node["node"] for node in result.summary["run"]["nodes"]]
    assert names == [f"node{i}" for i in range(1, 5)]
    assert result.summary["run"]["launch"] == "slurm"
    assert all(trial["state"] == "complete" for trial in result.summary["trials"])


def test_nodes_end_with_the_command(allocated: Cluster, tmp_path: Path) -> None:
    with allocated.started(tmp_path, long(allocated.site())) as run:
        run.wait_for_load(phase=1)
        nodes = run.node_pids()
        run.process.kill()
        runs.wait_until(
            lambda: not any(map(runs.is_alive, nodes)), "the nodes are gone", STOP_LIMIT_S
        )


@pytest.mark.parametrize("allocated", ["node[1-3]"], indirect=True)
def test_the_run_goes_on_without_them(allocated: Cluster, tmp_path: Path) -> None:
    """One is outside the allocation."""
    site = allocated.site()
    result = allocated.run(tmp_path, configuration(site))
    assert result.status == 3
    assert result.sentence.startswith("node4: Slurm can't start a step there (")
    asked = configuration(site, tests=[ALL_TO_ALL], on_missing="exclude")
    result = allocated.run(tmp_path / "exclude", asked)
    assert result.status == 0, result.errors
    (lost,) = result.summary["run"]["excluded_hosts"]
    assert lost["host"] == "node4"
    assert [node["node"] for node in result.summary["run"]["nodes"]] == ["node1", "node2", "node3"]
