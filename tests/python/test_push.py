# SPDX-License-Identifier: BSD-3-Clause
"""What `push` says and does on a host, with an ssh that stays here; for real: tests/system."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostkit import in_path, program, site, ssh_script
from switchbench import __version__
from switchbench.hosts import push
from switchbench.hosts.push import Collection, Piece
from switchbench.run.launch.ssh import NOT_ASKED, HostResult

ENGINE = f"#!/bin/sh\necho switchbench-node {__version__}\n".encode()
COLLECTION = Collection(
    __version__, platform.machine(), (Piece("switchbench-node", ENGINE, 0o755),)
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def ordered(folder: Path, privilege: str = "none", collection: Collection = COLLECTION) -> Any:
    return push.PushOrder(collection, privilege, str(folder))


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh to this machine."""
    return program(in_path(tmp_path / "bin", monkeypatch) / "ssh", ssh_script(""))


def pushed(tmp_path: Path) -> HostResult:
    here = site(tmp_path)
    (result,) = push.push(here, here.processes[:1], ordered(tmp_path / "there"))
    return result


@pytest.mark.usefixtures("ssh")
def test_twice(tmp_path: Path) -> None:
    said = f"{COLLECTION.name} in {tmp_path}/there"
    assert pushed(tmp_path) == HostResult("node1", 0, (f"copied, 0.0 MB: {said}",))
    assert pushed(tmp_path) == HostResult("node1", 0, (f"has it already: {said}",))


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("echo Welcome; echo have a nice day", "Welcome"),
        ("printf 'Welcome> '", "Welcome> "),
        ("echo lack; echo copied /all; printf lack", "lack"),
    ],
)
def test_a_login_that_writes_text(before: str, shown: str, tmp_path: Path, ssh: Path) -> None:
    """A run can't do with it, so it is said in the same words, and all the same it is done."""
    ssh.write_text(ssh_script(before))
    for _ in range(2):
        result = pushed(tmp_path)
        assert result.status == NOT_ASKED
        assert result.lines[0].startswith(f"its login writes text of its own ({shown!r}), which ")
        assert (tmp_path / "there" / "current" / "switchbench-node").read_bytes() == ENGINE
    ssh.write_text(ssh_script(""))
    assert pushed(tmp_path).lines[0].startswith("has it already")


def receive(order: push.PushOrder, task: str, archive: Path | None = None) -> Any:
    """What is run on a host."""
    with (archive or Path(os.devnull)).open("rb") as given:
        return subprocess.run(
            order.words(task), stdin=given, capture_output=True, text=True, check=False
        )


def test_a_folder_that_only_agrees_with_itself_is_not_the_build(tmp_path: Path) -> None:
    order = ordered(tmp_path / "there")
    other = Collection(
        __version__, platform.machine(), (Piece("switchbench-node", b"#!/bin/sh\n", 0o755),)
    )
    other.write(tmp_path / "there" / COLLECTION.name)
    assert receive(order, "ask").stdout == "switchbench push: lack\n"
    archive = tmp_path / "archive"
    with archive.open("wb") as file:
        other.archive(file)
    assert "what came is not what was sent" in receive(order, "take", archive).stderr
    with archive.open("wb") as file:
        COLLECTION.archive(file)
    assert receive(order, "take", archive).stdout == f"switchbench push: copied {tmp_path}/there\n"
    assert (tmp_path / "there" / "current" / "switchbench-node").read_bytes() == ENGINE


@pytest.mark.parametrize("stranger", ["libmine.so", "lib/mine", "SHA256SUMS.mine", "link"])
def test_one_file_more_is_not_the_build(stranger: str, tmp_path: Path) -> None:
    """Libraries and drivers are found by their folder."""
    order = ordered(tmp_path / "there")
    folder = tmp_path / "there" / COLLECTION.name
    COLLECTION.write(folder)
    assert receive(order, "ask").stdout == f"switchbench push: have {tmp_path}/there\n"
    (folder / stranger).parent.mkdir(exist_ok=True)
    (folder / stranger).symlink_to("nowhere")
    assert receive(order, "ask").stdout == "switchbench push: lack\n"
    archive = tmp_path / "archive"
    with archive.open("wb") as file:
        COLLECTION.archive(file)
    assert receive(order, "take", archive).stdout == f"switchbench push: copied {tmp_path}/there\n"
    assert sorted(path.name for path in folder.iterdir()) == ["SHA256SUMS", "switchbench-node"]


@needs_root
class TestRootsFolder:
    """Where the engine is started with root's rights."""

    def test_of_roots_alone(self, tmp_path: Path) -> None:
        done = receive(ordered(tmp_path / "new" / "there", "sudo"), "ask")
        assert (done.stdout, done.stderr) == ("switchbench push: lack\n", "")

    @pytest.mark.parametrize("which", [".", "..", "new"])
    def test_somebody_elses(self, tmp_path: Path, which: str) -> None:
        there = tmp_path / "above" / "there"
        there.mkdir(parents=True)
        os.chown(there if which != ".." else there.parent, 65534, 0)
        to = there / "new" if which == "new" else there
        done = receive(ordered(to, "setcap"), "ask")
        assert (done.returncode, done.stdout) == (1, "")
        assert "can be written by others than root, and setcap wants one of root's" in done.stderr
        assert receive(ordered(to, "none"), "ask").stdout == "switchbench push: lack\n"

    @pytest.mark.parametrize(("mode", "status"), [(0o775, 1), (0o757, 1), (0o1777, 1), (0o755, 0)])
    def test_for_others_to_write(self, tmp_path: Path, mode: int, status: int) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "there").chmod(mode)
        assert receive(ordered(tmp_path / "there", "sudo"), "ask").returncode == status

    def test_by_a_link_of_somebody_elses(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs" / "link").symlink_to(tmp_path / "real")
        to = tmp_path / "theirs" / "link"
        assert receive(ordered(to, "sudo"), "ask").returncode == 0
        os.chown(tmp_path / "theirs", 65534, 0)
        assert receive(ordered(to, "sudo"), "ask").returncode == 1
