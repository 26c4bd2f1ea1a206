# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench bundle`: installed without network where its C library is not, and run there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rootfs
import runs
from switchbench import __version__
from switchbench.packaging import bundle

INSTALL = Path(bundle.__file__).with_name("install.sh")


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """What the archive holds, with programs that only say that they are there."""
    folder = tmp_path / "unpacked"
    for program in ("engine/switchbench-node", "bin/switchbench"):
        (folder / program).parent.mkdir(parents=True)
        (folder / program).write_text("#!/bin/sh\necho here\n")
        (folder / program).chmod(0o755)
    for name in ("python", "share"):
        (folder / name).mkdir()
    (folder / "share" / "text").write_text("as it was\n")
    machine = subprocess.check_output(["uname", "-m"], text=True).strip()
    (folder / "CONTENTS").write_text(f"switchbench 1.2.3 {machine}\n")
    (folder / "install").write_text(INSTALL.read_text())
    (folder / "install").chmod(0o755)
    (folder / "SHA256SUMS").write_text("".join(f"{line}\n" for line in bundle.sums(folder)))
    return folder


def install(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The install script of an unpacked archive, called from elsewhere."""
    command = [str(folder / "install"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder.parent, timeout=60
    )


class TestInstallScript:
    """What it refuses, and that it leaves things as they were when it does."""

    def test_into_a_new_folder_and_again(self, unpacked: Path, tmp_path: Path) -> None:
        done = install(unpacked, "there/sb")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Switchbench 1.2.3 is in {tmp_path}/there/sb." in done.stdout
        (tmp_path / "there/sb/share/old").touch()
        assert install(unpacked, str(tmp_path / "there/sb")).returncode == 0
        assert sorted(path.name for path in (tmp_path / "there/sb/share").iterdir()) == ["text"]
        assert [path.name for path in (tmp_path / "there").iterdir()] == ["sb"]

    @pytest.mark.parametrize("words", [("there",), ("--check",)])
    def test_a_damaged_archive(self, unpacked: Path, tmp_path: Path, words: tuple[str]) -> None:
        (unpacked / "share" / "text").write_text("as it is not\n")
        done = install(unpacked, *words)
        assert done.returncode == 1
        assert "install: the archive is damaged" in done.stderr
        assert "share/text" in done.stderr
        assert not (tmp_path / "there").exists()

    def test_sums_are_believed_in_every_language(self, unpacked: Path, tmp_path: Path) -> None:
        """coreutils say OK in the caller's words: here in those of a sha256sum that always does."""
        (tmp_path / "tools").mkdir()
        tool = tmp_path / "tools" / "sha256sum"
        tool.write_text(
            '#!/bin/sh\n[ "${LC_ALL-}" = C ] || echo "share/text: RICHTIG"\n'
            'exec /usr/bin/sha256sum "$@"\n'
        )
        tool.chmod(0o755)
        command = ["env", f"PATH={tmp_path}/tools:/usr/bin:/bin", str(unpacked / "install")]
        done = subprocess.run(
            [*command, "--check"], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("end", ["/", "//"])
    def test_a_slash_at_the_end(self, unpacked: Path, tmp_path: Path, end: str) -> None:
        for _ in range(2):
            done = install(unpacked, f"{tmp_path}/sb{end}")
            assert (done.returncode, done.stderr) == (0, "")
            assert sorted(path.name for path in tmp_path.iterdir()) == ["sb", "unpacked"]
            assert (tmp_path / "sb/share/text").read_text() == "as it was\n"

    @pytest.mark.parametrize("prefix", ["/", "//", ".", "./", "..", "a/.."])
    def test_what_is_no_folder_of_its_own(
        self, unpacked: Path, tmp_path: Path, prefix: str
    ) -> None:
        done = install(unpacked, prefix)
        assert done.returncode == 1
        assert "PREFIX is a folder of its own" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["unpacked"]

    def test_the_former_one_stays_where_the_new_one_can_not_be_moved(
        self, unpacked: Path, tmp_path: Path
    ) -> None:
        assert install(unpacked, "sb").returncode == 0
        (tmp_path / "sb/share/old").touch()
        (tmp_path / "tools").mkdir()
        tool = tmp_path / "tools" / "mv"
        tool.write_text('#!/bin/sh\ncase $1 in *.new.*) exit 1 ;; esac\nexec /bin/mv "$@"\n')
        tool.chmod(0o755)
        command = ["env", f"PATH={tmp_path}/tools:/usr/bin:/bin", str(unpacked / "install")]
        done = subprocess.run(
            [*command, f"{tmp_path}/sb"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 1
        assert "can't be moved to" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["sb", "tools", "unpacked"]
        assert (tmp_path / "sb/share/old").exists()

    def test_a_file_that_is_missing(self, unpacked: Path) -> None:
        (unpacked / "share" / "text").unlink()
        assert "share/text" in install(unpacked, "--check").stderr

    def test_a_file_that_nobody_named(self, unpacked: Path, tmp_path: Path) -> None:
        caches = unpacked / "python" / "__pycache__"
        caches.mkdir()
        (caches / "there.pyc").touch()  # it was run before it was installed
        assert install(unpacked, "--check").returncode == 0
        (unpacked / "engine" / "libstray.so").touch()
        done = install(unpacked, "there")
        assert done.returncode == 1
        assert "files that are none of the archive's; unpack it again: engine/libstray.so" in (
            done.stderr
        )
        assert not (tmp_path / "there").exists()

    def test_a_folder_of_somebody_else(self, unpacked: Path, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        assert install(unpacked, "there").returncode == 0
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "precious").touch()
        done = install(unpacked, "mine")
        assert done.returncode == 1
        assert "is no installation of Switchbench" in done.stderr
        assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious"]

    def test_another_machine(self, unpacked: Path) -> None:
        (unpacked / "CONTENTS").write_text("switchbench 1.2.3 pdp11\n")
        assert "is for pdp11" in install(unpacked, "there").stderr

    def test_programs_that_do_not_start(self, unpacked: Path, tmp_path: Path) -> None:
        (unpacked / "engine/switchbench-node").write_text("#!/bin/sh\nexit 1\n")
        (unpacked / "SHA256SUMS").write_text("".join(f"{one}\n" for one in bundle.sums(unpacked)))
        done = install(unpacked, "there")
        assert "the engine does not start here" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["unpacked"]


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    done = subprocess.run(
        runs.command("bundle", "--out", str(tmp_path / "no" / "such.tar.gz")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no/such.tar.gz can't be written" in done.stderr


def test_a_build_without_switch_and_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the engine was built: it brings what there is."""
    for name in ("SWITCH", "GUEST"):
        monkeypatch.setenv(f"SWITCHBENCH_{name}", "/nowhere/program")
    assert list(bundle._others()) == []


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The real one, as the command makes it; too large to be kept."""
    path = tmp_path_factory.mktemp("bundle") / "sb.tar.gz"
    done = subprocess.run(
        runs.command("bundle", "--out", str(path)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    yield path
    path.unlink()


def install_and_run(root: rootfs.Root, archive: Path) -> None:
    """Unpacks, installs, looks around and runs a lab, all in there."""
    target = root.path / "root" / "sb.tar.gz"
    target.write_bytes(archive.read_bytes())
    installed = root.run("sh", "-c", "tar -xzf sb.tar.gz && switchbench-*/install")
    assert installed.returncode == 0, installed.stderr
    assert f"Switchbench {__version__} is in /opt/switchbench." in installed.stdout
    command = "/opt/switchbench/bin/switchbench"
    rootfs.prove(root, command)
    pages = root.path / "opt/switchbench/share/man"
    assert (pages / "man1/switchbench-run.1").is_file()
    again = root.run(command, "bundle", "--out", "again.tar.gz")
    assert again.returncode == 0, again.stderr
    assert (root.path / "root/again.tar.gz").stat().st_size > archive.stat().st_size / 2
    shutil.rmtree(root.path)


@pytest.mark.slow
def test_where_there_is_no_c_library(archive: Path, tmp_path: Path) -> None:
    install_and_run(rootfs.bare(tmp_path / "root"), archive)


@pytest.mark.slow
def test_where_the_c_library_is_older(archive: Path, tmp_path: Path) -> None:
    """Debian 11: glibc 2.31, and no Python."""
    root = rootfs.debian(tmp_path / "root", "bullseye")
    assert " 2.31" in root.run("ldd", "--version").stdout
    assert root.run("sh", "-c", "command -v python3").returncode != 0
    install_and_run(root, archive)
