# SPDX-License-Identifier: BSD-3-Clause
"""scripts/setup on machines of our making: a copy of it in a folder, and a PATH on which the
system's tools are stubs that write down how they were called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import runs

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    *("awk", "basename", "bash", "cat", "comm", "dirname", "env", "flock", "paste", "sed"),
    *("sha256sum", "sort", "uname"),
)


class Machine:
    """A tree with scripts/setup in it, and the commands that it finds."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree with space"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.installed = folder / "installed"
        (self.tree / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("setup", "lib.sh"):
            shutil.copy(ROOT / "scripts" / name, self.tree / "scripts")
        (self.tree / "scripts" / "packages").write_text(
            "# a list\nuse  alpha\nuse  beta\ntest gamma\nguests delta\n"
        )
        (self.tree / "pyproject.toml").write_text("[project]\n")
        self.calls.write_text("")
        self.installed.write_text("alpha ii \nbeta ii \ngamma ii \ndelta ii \n")
        for name in TOOLS:
            found = shutil.which(name)
            assert found, name
            (self.bin / name).symlink_to(found)
        self.stub("id", "echo 0")
        self.stub("dpkg-query", f"cat '{self.installed}'")
        self.stub("apt-get", self.note("apt-get"))
        self.environment()

    def stub(self, name: str, body: str) -> None:
        """A command that does what `body` says."""
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def note(self, name: str) -> str:
        """Return the body of a stub that only writes down its arguments."""
        return f"printf '%s\\n' \"{name} $*\" >> '{self.calls}'"

    def environment(self) -> None:
        """Return a Python environment with a stub as its interpreter."""
        self.stub("venv-python", self.note("python"))
        folder = self.tree / ".venv" / "bin"
        folder.mkdir(parents=True)
        (folder / "python").symlink_to(self.bin / "venv-python")

    def setup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it, from a folder of no meaning."""
        self.calls.write_text("")
        words = [self.tree / "scripts" / "setup", "--no-build", *arguments]
        return runs.program(*words, cwd="/", env={"PATH": str(self.bin)})

    def called(self, command: str) -> list[str]:
        """Return the calls of one stub in the last run."""
        return [line for line in self.calls.read_text().splitlines() if line.startswith(command)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_done_twice(machine: Machine) -> None:
    first = machine.setup()
    assert first.returncode == 0, first.stderr
    assert any("pip install" in call for call in machine.called("python"))
    second = machine.setup()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert machine.calls.read_text() == ""


def test_a_changed_project_file_brings_the_environment_up_to_date(machine: Machine) -> None:
    machine.setup()
    (machine.tree / "pyproject.toml").write_text("[project]\ndependencies = ['x']\n")
    machine.setup()
    assert [call for call in machine.called("python") if "--editable" in call and "[dev]" in call]


def test_testing_needs_more_than_using(machine: Machine) -> None:
    machine.setup("--use")
    (call,) = (call for call in machine.called("python") if "--editable" in call)
    assert "[dev]" not in call
    machine.setup()
    assert [call for call in machine.called("python") if "[dev]" in call]
    machine.setup("--use")
    assert machine.calls.read_text() == ""


def test_only_what_is_missing_is_installed(machine: Machine) -> None:
    machine.installed.write_text("alpha ii \nbeta rc \ndelta ii \n")
    assert machine.setup("--use").returncode == 0
    update, install = machine.called("apt-get")
    assert update.endswith("update")
    assert install.split("install ")[1] == "beta"
    assert "--no-install-recommends" in install
    assert machine.setup().returncode == 0
    assert machine.called("apt-get")[1].endswith("install beta gamma")


@pytest.mark.rows
def test_a_package_that_can_not_be_had_is_named(
    machine: Machine, installed: str, stubs: dict[str, str], status: int, sentence: str
) -> None:
    """Those for guests are missed: all else is done."""
    names = [name for name in ("alpha", "beta", "gamma", "delta") if name[0] in installed]
    machine.installed.write_text("".join(f"{name} ii \n" for name in names))
    for name, body in stubs.items():
        machine.stub(name, body)
    done = machine.setup()
    assert done.returncode == status
    assert sentence in done.stderr
    assert machine.called("apt-get") == []
    assert status or machine.setup("--use").stderr == ""


def test_without_root_sudo_is_used_if_it_does_not_ask(machine: Machine) -> None:
    machine.installed.write_text("alpha ii \ngamma ii \n")
    machine.stub("id", "echo 1000")
    machine.stub("true", "exit 0")
    machine.stub("sudo", 'test "$1" = -n && shift && exec "$@"')
    assert machine.setup().returncode == 0
    assert machine.called("apt-get")[1].endswith("install beta")


def test_another_system_is_told_what_it_needs(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    done = machine.setup()
    assert done.returncode == 1
    assert "not Debian or Ubuntu" in done.stderr
    assert "alpha beta gamma" in done.stderr
    assert machine.setup("--no-packages").returncode == 0
