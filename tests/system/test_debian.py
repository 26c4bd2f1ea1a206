# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package: built as dpkg-buildpackage does it, installed by apt, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rootfs
from switchbench import __version__

PROJECT = Path(__file__).resolve().parents[2]
CONTROL = (PROJECT / "debian" / "control").read_text()
# What is made in the source tree, and is none of it.
MADE_AT_TOP = ("build*", "results", ".*")
MADE = ("__pycache__", "*.egg-info")


def test_its_version_is_the_projects() -> None:
    changelog = (PROJECT / "debian" / "changelog").read_text()
    assert changelog.startswith(f"switchbench ({__version__}) ")


def test_it_is_built_with_what_setup_installs() -> None:
    """All libraries of the build, and nothing that developers do not have."""
    section = re.search(r"^Build-Depends:\n((?: .*\n)+)", CONTROL, re.MULTILINE)
    assert section is not None
    needed = {line.split()[0].rstrip(",") for line in section[1].splitlines()}
    lines = (PROJECT / "scripts" / "packages").read_text().splitlines()
    have = {line.split()[1] for line in lines if line.startswith("use ")}
    assert needed - {"debhelper-compat"} <= have
    libraries = {name for name in have if name.startswith("lib")}
    assert libraries - needed == {"libc6-dev", "libcmocka-dev"}  # of every compiler; of the tests


def _not_copied(folder: str, names: list[str]) -> set[str]:
    patterns = (*MADE_AT_TOP, *MADE) if Path(folder) == PROJECT else MADE
    return shutil.ignore_patterns(*patterns)(folder, names)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The .deb. What it was built in is too large to be kept."""
    if shutil.which("dh") is None:
        pytest.skip("debhelper is not installed")
    source = tmp_path_factory.mktemp("debian") / "switchbench"
    shutil.copytree(PROJECT, source, ignore=_not_copied)
    done = subprocess.run(
        ["dpkg-buildpackage", "-us", "-uc", "-b"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (found,) = source.parent.glob(f"switchbench_{__version__}_*.deb")
    yield found
    shutil.rmtree(source.parent)


@pytest.mark.slow
def test_what_lintian_says(package: Path) -> None:
    """No error; what is on purpose is said in the package, with its reason."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_nothing_points_to_where_it_was_built(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    targets = {
        os.path.normpath(Path("/", path.parent.relative_to(tmp_path), path.readlink()))
        for path in tmp_path.rglob("*")
        if path.is_symlink()
    }
    (python,) = (target for target in targets if not (tmp_path / target.lstrip("/")).exists())
    assert re.fullmatch(r"/usr/bin/python3\.\d+", python)
    for path in (tmp_path / "usr/bin/switchbench", tmp_path / "usr/lib/switchbench/pyvenv.cfg"):
        assert str(package.parent) not in path.read_text()


@pytest.mark.slow
def test_installed_on_this_machine(package: Path, tmp_path: Path) -> None:
    """By dpkg, beside the libraries that setup installed; a run without network; and taken away."""
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(package, folder / "switchbench.deb")
    (folder / "conf.yaml").write_text(rootfs.CONFIGURATION)
    steps = (
        "dpkg --install switchbench.deb",
        "switchbench --version > version",
        "switchbench run conf.yaml --out out",
        "cp version out",
        "dpkg --purge switchbench",
        "! test -e /usr/lib/switchbench",
    )
    done = rootfs.overlaid(tmp_path / "machine", folder, " && ".join(steps))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "out" / "version").read_text() == f"switchbench {__version__}\n"
    rootfs.measured(folder / "out")
    assert not Path("/usr/lib/switchbench").exists()


@pytest.mark.slow
def test_installed_in_a_new_system(package: Path, tmp_path: Path) -> None:
    """By apt, with what it depends on and nothing else; then a run without network."""
    release = subprocess.check_output(
        ["sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME"], text=True
    ).strip()
    root = rootfs.debian(tmp_path / "root", release)
    shutil.copy(package, root.path / "root" / "switchbench.deb")
    shutil.copy("/etc/resolv.conf", root.path / "etc" / "resolv.conf")
    install = ("apt-get", "install", "-qq", "-y", "--no-install-recommends", "./switchbench.deb")
    done = root.run(*install, network=True, DEBIAN_FRONTEND="noninteractive")
    assert done.returncode == 0, done.stderr
    rootfs.prove(root, "switchbench")
    removed = root.run("apt-get", "purge", "-qq", "-y", "switchbench")
    assert removed.returncode == 0, removed.stderr
    assert not (root.path / "usr/lib/switchbench").exists()
    shutil.rmtree(root.path)
