# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench push` for real: over ssh to hosts of their own home folders, and runs on what came
there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labkit
import runs
import sshkit
from sshkit import PAIRS
from switchbench.base.errors import ConfigurationError
from switchbench.hosts.push import Collection, collect
from switchbench.run.launch import far

pytestmark = [labkit.needs_lab, sshkit.needs_sshd]

PLACE = f"{far.HOME_FOLDER}/{far.CURRENT}"
QUICK: dict[str, Any] = {"warmup": "100ms", "window": "200ms", "load": "50%", "repeat": 1}


@pytest.fixture(scope="module")
def collection() -> Collection:
    """Return the collection that hosts must have after a push."""
    try:
        return collect()
    except ConfigurationError as error:
        pytest.skip(str(error))


def site_of(hosts: sshkit.Hosts, *names: str, **ssh: Any) -> dict[str, Any]:
    """Return a site that names no engine."""
    site = hosts.site(*names, **ssh)
    if "engine" not in ssh:
        del site["ssh"]["engine"]
    return site


def push(
    hosts: sshkit.Hosts, folder: Path, site: dict[str, Any], *words: str
) -> subprocess.CompletedProcess[str]:
    path = runs.write(folder, {"site": site, "tests": [PAIRS]})
    return hosts.command("push", str(path), *words)


def test_from_nothing_to_a_run(hosts: sshkit.Hosts, collection: Collection, tmp_path: Path) -> None:
    config = hosts.rewrite(tmp_path, "Host node4\n  Port 22023")
    four = [f"node{i}" for i in range(1, 5)]
    done = push(hosts, tmp_path, site_of(hosts, *four, config=str(config)))
    print(done.stdout)
    assert done.returncode == 3
    lines = {line.partition(": ")[0]: line.partition(": ")[2] for line in done.stdout.splitlines()}
    for name in ("node1", "node2", "node3"):
        where = hosts.home(name) / far.HOME_FOLDER
        assert re.fullmatch(rf"copied, [\d.]+ MB: {collection.name} in {where}", lines[name])
        assert os.readlink(where / "current") == collection.name
        assert sorted(path.name for path in where.iterdir()) == [collection.name, "current"]
    assert lines["node4"].startswith("it can't be reached (connect to host 100.64.0.4 port 22023")
    again = push(hosts, tmp_path, site_of(hosts, *four))
    assert again.returncode == 0, again.stdout + again.stderr
    said = sorted(re.sub(r" in \S+", "", line) for line in again.stdout.splitlines())
    assert said[:3] == [f"node{i}: has this build already: {collection.name}" for i in (1, 2, 3)]
    assert said[3].startswith("node4: copied, ")
    asked = {
        "site": site_of(hosts, *four),
        "transports": ["dpdk", "tcp"],
        **QUICK,
        "window": "2s",  # the nodes are looked at meanwhile
        "tests": [PAIRS],
    }
    with hosts.started(tmp_path / "run", asked) as run:
        runs.wait_until(lambda: len(run.node_pids()) == 4, "all said hello", limit_s=60)
        loaders = {os.readlink(f"/proc/{pid}/exe") for pid in run.node_pids()}
        result = run.end()
    assert result.status == 0, result.errors
    assert loaders == {
        str(hosts.home(name) / far.HOME_FOLDER / collection.name / "lib" / "loader")
        for name in four
    }


def test_what_was_changed_there_is_brought_again(
    hosts: sshkit.Hosts, collection: Collection, tmp_path: Path
) -> None:
    site = site_of(hosts, "node1", "node2")
    assert push(hosts, tmp_path, site).returncode == 0
    engine = hosts.home("node2") / PLACE / "switchbench-node"
    engine.write_text("#!/bin/sh\necho switchbench-node 0.0.9\n")
    asked = {"site": site, "transport": "tcp", **QUICK, "tests": [PAIRS]}
    result = hosts.run(tmp_path / "run", asked)
    assert result.status == 3
    said = result.sentence
    assert said.startswith("node2: it has version 0.0.9 (its switchbench-node), this command ")
    assert "by `switchbench push`" in said
    done = push(hosts, tmp_path, site)
    assert re.search(rf"^node2: copied, [\d.]+ MB: {collection.name}", done.stdout, re.M)
    assert "node1: has this build already" in done.stdout
    assert hosts.run(tmp_path / "again", asked).status == 0


def test_many_hosts_with_one_disk(
    hosts: sshkit.Hosts, collection: Collection, tmp_path: Path
) -> None:
    done = push(hosts, tmp_path, site_of(hosts), "--to", str(tmp_path / "shared"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == [
        collection.name, "current",
    ]  # fmt: skip


def test_where_nothing_can_be_written(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    done = push(hosts, tmp_path, site_of(hosts, "node1", "node2"), "--to", "/proc/nowhere")
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == "node[1-2]: can't make the folder /proc/nowhere"
    done = push(hosts, tmp_path, site_of(hosts), "--to", "here")
    assert done.returncode == 2
    assert "an absolute path is needed" in runs.sentence(done.stderr)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user can reach."""
    folder = Path("/run") / f"switchbench-push-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def test_sudo_runs_what_root_owns(hosts: sshkit.Hosts, open_folder: Path, tmp_path: Path) -> None:
    if shutil.which("sudo") is None:
        pytest.skip("there is no sudo")
    engine = open_folder / "current" / "switchbench-node"
    site = site_of(hosts, "node1", "node2", privilege="sudo", engine=str(engine))
    done = push(hosts, tmp_path, site, "--to", str(open_folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].endswith(f" in {open_folder}, run by sudo")
    asked: runs.Record = {"site": site, "transport": "tcp", **QUICK, "tests": [PAIRS]}
    assert hosts.run(tmp_path, asked).status == 0


def test_two_hosts_and_an_interface_are_enough(
    hosts: sshkit.Hosts, collection: Collection, tmp_path: Path
) -> None:
    """No file and no engine there: one line brings it, says what it made, and measures."""
    shutil.rmtree(hosts.home("node1") / far.HOME_FOLDER, ignore_errors=True)
    site = hosts.site("node1", "node2")
    more = (
        f"site.ssh.config={site['ssh']['config']}",
        f"site.control.addresses={site['control']['addresses']}".replace("'", ""),
        "repeat=1",
        "warmup=100ms",
    )
    words = "--hosts node1,node2 --iface eth0 --pattern pairs --transport tcp --load 5Mbit"
    sets = [word for assignment in more for word in ("--set", assignment)]
    done = hosts.command(
        *("run", *words.split(), "--duration", "500ms", "--out", str(tmp_path / "out"), *sets)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  hosts: node1,node2\n" in done.stderr
    assert re.search(rf"^node1: copied, [\d.]+ MB: {collection.name} in ", done.stderr, re.M)
    (trial,) = runs.Result(0, "", "", tmp_path / "out").summary["trials"]
    assert trial["transport"] == "tcp"
    assert trial["ranks"] == 2
    assert (tmp_path / "out" / "configuration.yaml").exists()
