# SPDX-License-Identifier: BSD-3-Clause
"""`push`: the folder that it copies, the programs in it, and the work on a host, with an ssh that
stays on this machine. With real hosts: tests/system."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

import runs
from hostkit import site, ssh_script
from switchbench import __version__
from switchbench.base import programs
from switchbench.base.errors import ConfigurationError
from switchbench.hosts import doctor, push
from switchbench.hosts.push import Collection, Piece
from switchbench.run.launch.far import Answer
from switchbench.run.launch.ssh import NOT_ASKED

ENGINE = f"#!/bin/sh\necho switchbench-node {__version__}\n".encode()
COLLECTION = Collection(platform.machine(), (Piece("switchbench-node", ENGINE, 0o755),))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def ordered(folder: Path, privilege: str = "none", collection: Collection = COLLECTION) -> Any:
    return push.PushOrder(collection, privilege, str(folder))


def pushed(tmp_path: Path) -> Answer:
    here = site(tmp_path)
    return push.push(here, here.processes[:1], ordered(tmp_path / "there"))["node1"]


@pytest.mark.usefixtures("fake_ssh")
def test_twice(tmp_path: Path) -> None:
    said = f"{COLLECTION.name} in {tmp_path}/there"
    assert pushed(tmp_path) == Answer(0, [f"copied, 0.0 MB: {said}"])
    assert pushed(tmp_path) == Answer(0, [f"has this build already: {said}"])


@pytest.mark.rows
def test_a_login_that_writes_text(before: str, shown: str, tmp_path: Path, fake_ssh: Path) -> None:
    """A run would fail by it: the same sentence warns, and the copy is made all the same."""
    fake_ssh.write_text(ssh_script(before))
    for _ in range(2):
        result = pushed(tmp_path)
        assert result.status == NOT_ASKED
        assert result.output[0].startswith(f"its login prints {shown!r}, which ")
        assert (tmp_path / "there" / "current" / "switchbench-node").read_bytes() == ENGINE
    fake_ssh.write_text(ssh_script(""))
    assert pushed(tmp_path).output[0].startswith("has this build already")


def receive(order: push.PushOrder, task: str, archive: Path | None = None) -> Any:
    """Receive a collection, as a host does."""
    with (archive or Path(os.devnull)).open("rb") as given:
        return runs.program(*order.words(task), stdin=given)


def test_a_folder_that_only_agrees_with_itself_is_not_the_build(tmp_path: Path) -> None:
    order = ordered(tmp_path / "there")
    other = Collection(platform.machine(), (Piece("switchbench-node", b"#!/bin/sh\n", 0o755),))
    other.write(tmp_path / "there" / COLLECTION.name)
    assert receive(order, "ask").stdout == "switchbench push: lack\n"
    archive = tmp_path / "archive"
    with archive.open("wb") as file:
        other.archive(file)
    assert (
        "the received files differ from the sent ones: push again"
        in receive(order, "take", archive).stderr
    )
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
    """Folders of an engine that is started with root's rights."""

    def test_of_roots_alone(self, tmp_path: Path) -> None:
        done = receive(ordered(tmp_path / "new" / "there", "sudo"), "ask")
        assert (done.stdout, done.stderr) == ("switchbench push: lack\n", "")

    @pytest.mark.parametrize("which", [".", "..", "new"])
    def test_somebody_elses(self, tmp_path: Path, which: str) -> None:
        there = tmp_path / "above" / "there"
        there.mkdir(parents=True)
        os.chown(there if which != ".." else there.parent, 65534, 0)
        to = there / "new" if which == "new" else there
        done = receive(ordered(to, "sudo"), "ask")
        assert (done.returncode, done.stdout) == (1, "")
        assert "privilege sudo needs a folder that only root can write" in done.stderr
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


# --- the folder that `push` copies ----------------------------------------------------------------


@pytest.fixture(scope="module")
def collection() -> Collection:
    """Return the collection of the engine that is built here."""
    try:
        return push.collect()
    except ConfigurationError as error:
        pytest.skip(str(error))  # nothing is built here


@pytest.fixture(scope="module")
def folder(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the collection."""
    path = tmp_path_factory.mktemp("collected") / collection.name
    collection.write(path)
    return path


def node(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / "switchbench-node"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def test_it_runs_from_anywhere(folder: Path, tmp_path: Path) -> None:
    assert node(folder, "--version").stdout == f"switchbench-node {__version__}\n"
    shutil.copytree(folder, tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "switchbench-node")
    done = subprocess.run([tmp_path / "link", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: switchbench-node ")
    assert node(tmp_path / "elsewhere", "--no-such-option").returncode == 2
    # What a caller says of libraries is not heeded; the shell alone warns of it.
    done = node(folder, "--version", LD_PRELOAD="/no/such.so", LD_LIBRARY_PATH="/no/such")
    assert (done.returncode, done.stdout) == (0, f"switchbench-node {__version__}\n")


def test_the_modelled_switch_runs_too(folder: Path) -> None:
    switch = folder / "switchbench-switch"
    if not switch.exists():
        pytest.skip("a build without DPDK")
    done = subprocess.run([switch], input="", capture_output=True, text=True, check=False, env={})
    assert done.stderr.startswith("switchbench-switch: standard input ended before the")


def test_half_a_command_does_not_stop_the_modelled_switch(folder: Path) -> None:
    """It forwards while the rest of a line is awaited, and then answers the whole line."""
    switch = folder / "switchbench-switch"
    if not switch.exists():
        pytest.skip("a build without DPDK")
    ports = [{"name": f"p{number}", "vdev": f"net_null{number}"} for number in range(2)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [switch], stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1, env={}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"switch": {"name": "s", "ports": ports}}) + "\nrep")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["type"] == "ready"
        time.sleep(0.2)
        process.stdin.write("ort\n")
        said, errors = process.communicate()
    reports = [json.loads(line) for line in said.splitlines()]
    totals = [record for record in reports if record["type"] == "total"]
    assert [record["reason"] for record in totals] == ["report", "end-of-input"]
    assert totals[0]["received"] >= 32  # net_null has 32 frames whenever it is asked
    assert errors == ""


def test_doctor_knows_its_transports(
    folder: Path, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHBENCH_NODE", str(folder / "switchbench-node"))
    (check,) = (one for one in doctor.examine() if one.what == "libraries")
    for transport, library in (("dpdk", "lib/librte_eal.so"), ("verbs", "lib/libibverbs.so")):
        has = any(piece.place.startswith(library) for piece in collection.pieces)
        assert has == (transport in check.detail.partition(", without ")[0])


def test_one_of_another_machine_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SWITCHBENCH_NODE", raising=False)
    monkeypatch.setattr(programs, "_PARENTS", (tmp_path, tmp_path))
    shutil.copytree(folder, tmp_path / "engine")
    assert programs.find_engine() == tmp_path / "engine" / "switchbench-node"
    (tmp_path / "engine" / "VERSION").write_text("0.1.0 ppc64\n")
    with pytest.raises(ConfigurationError, match=r"is built for ppc64, and this machine is .*: in"):
        programs.find_engine()


def test_all_libraries_are_its_own(folder: Path) -> None:
    command = [folder / "lib/loader", "--inhibit-cache", "--library-path", folder / "lib", "--list"]
    done = runs.program(*command, folder / "libexec/switchbench-node", check=True)
    found = [line.split()[2] for line in done.stdout.splitlines() if " => " in line]
    assert any("/libc.so" in path for path in found)
    assert [path for path in found if not path.startswith(f"{folder}/lib/")] == []


def test_the_sums_are_those_of_the_files(folder: Path) -> None:
    words = ["sha256sum", "--check", "--quiet", "--strict", push.SUMS]
    assert subprocess.run(words, cwd=folder, check=False).returncode == 0
    (folder.parent / "copy").mkdir()
    shutil.copytree(folder, folder.parent / "copy", dirs_exist_ok=True)
    (folder.parent / "copy" / "VERSION").write_text("another\n")
    assert subprocess.run(words, cwd=folder.parent / "copy", check=False).returncode == 1


def test_the_same_build_gives_the_same_archive(collection: Collection, folder: Path) -> None:
    again, packed = io.BytesIO(), io.BytesIO()
    collection.archive(packed)
    push.collect().archive(again)
    assert again.getvalue() == packed.getvalue()
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        modes = {entry.name: entry.mode for entry in archive if entry.isfile()}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert set(modes) == {str(path.relative_to(folder)) for path in files}
    assert modes["switchbench-node"] == 0o755


def test_drivers_are_there_once(collection: Collection) -> None:
    if not any(piece.place.startswith("lib/librte_eal") for piece in collection.pieces):
        pytest.skip("a build without DPDK")
    names = [piece.place for piece in collection.pieces]
    assert any(name.startswith("lib/dpdk/librte_net_af_packet.so.") for name in names)
    assert [name for name in names if name.startswith("lib/librte_bus_")] == []
    (eal,) = (one for one in collection.pieces if one.place.startswith("lib/librte_eal.so"))
    (here,) = Path("/usr/lib").glob(f"*/{os.path.basename(eal.place)}")
    assert b"\0/usr/lib/" in here.read_bytes()
    assert push.HOST_FOLDERS[0][1].search(eal.content) is None
    assert len(eal.content) == here.stat().st_size


def test_drivers_are_found_where_distributions_put_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The doctor looked in Fedora's folder, and push did not."""
    monkeypatch.setattr(push, "ROOT", tmp_path)
    places = ["usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0", "usr/lib64/dpdk-pmds"]
    for place in (*places, "usr/local/lib64/dpdk/pmds-24.1"):
        (tmp_path / place).mkdir(parents=True)
    assert len(push.driver_folders()) == 3
    (tmp_path / places[1] / "librte_net_tap.so.23.0").touch()
    assert push._drivers() == [tmp_path / places[1] / "librte_net_tap.so.23.0"]


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ldd").write_text("#!/bin/sh\necho '\tlibnone.so.1 => not found'\n")
    (tmp_path / "ldd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(ConfigurationError, match=r"libnone\.so\.1 => not found"):
        push.libraries([Path("/bin/true")])
    (tmp_path / "ldd").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="ldd can't be run: No such file"):
        push.libraries([Path("/bin/true")])


def test_nothing_of_the_host_is_looked_for(collection: Collection) -> None:
    """Providers and programs for the kernel are those of the folder."""
    places = {piece.place for piece in collection.pieces}
    for library, pattern, ours in (
        ("lib/libibverbs.so", rb"\0/(usr|etc)/[^\0]*(rdmav|libibverbs\.d)", "lib/verbs/librxe-"),
        ("lib/libxdp.so", None, "lib/bpf/xdp-dispatcher.o"),
    ):
        found = [piece for piece in collection.pieces if piece.place.startswith(library)]
        if not found:
            continue  # a build without it
        assert any(place.startswith(ours) for place in places)
        assert pattern is None or re.search(pattern, found[0].content) is None


def test_a_folder_is_collected_again(
    collection: Collection, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`push` from a wheel copies its folder, whatever modes the umask of its user made."""
    folder = shutil.copytree(folder, tmp_path / "wheel")
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    (tmp_path / "switchbench-node").symlink_to(folder / "switchbench-node")
    monkeypatch.setenv("SWITCHBENCH_NODE", str(tmp_path / "switchbench-node"))
    assert push.collect() == collection


@pytest.mark.parametrize("place", ["lib/libstray.so", "lib/dpdk/librte_net_stray.so", "VERSION"])
def test_a_folder_that_is_not_as_it_was_made_goes_no_further(
    place: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What lies beside the libraries would be loaded on every host."""
    shutil.copytree(folder, tmp_path / "spoilt")
    (tmp_path / "spoilt" / place).parent.mkdir(exist_ok=True)
    (tmp_path / "spoilt" / place).write_text("other\n")
    monkeypatch.setenv("SWITCHBENCH_NODE", str(tmp_path / "spoilt" / "switchbench-node"))
    with pytest.raises(
        ConfigurationError, match=f"{place} differs from its checksum in SHA256SUMS: install"
    ):
        push.collect()
