# SPDX-License-Identifier: BSD-3-Clause
"""The wheel with the engine, and `meson install`: what is installed works where the source tree is
not."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import labkit
import runs
import sshkit
from switchbench import __version__
from switchbench.base.programs import find_engine
from switchbench.run.launch import far

CONFIGURATION = (labkit.DATA / "installed.yaml").read_text()

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where `meson install` has put everything, by DESTDIR."""
    build = find_engine().resolve().parent.parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} is no build folder of Meson")
    place = tmp_path_factory.mktemp("installed")
    words = ["meson", "install", "-C", str(build), "--no-rebuild", "--destdir", str(place)]
    done = runs.program(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    options = json.loads(subprocess.check_output(["meson", "introspect", "--buildoptions", build]))
    (usual,) = (one["value"] for one in options if one["name"] == "prefix")
    yield place / usual.lstrip("/")
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what scripts/wheel makes of the engine that is built here."""
    if not (PROJECT / ".venv/bin/python").exists():
        pytest.skip("scripts/wheel needs the environment that scripts/setup makes")
    folder = tmp_path_factory.mktemp("wheel")
    done = runs.program(PROJECT / "scripts" / "wheel", folder)
    if "No matching distribution" in done.stderr or "Connection" in done.stderr:
        pytest.skip("pip has no index to take setuptools from")
    assert done.returncode == 0, done.stderr
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel in an environment, with the packages of this one (below `packages`, once
    `without_sources` has put them there): no index is needed."""
    folder = tmp_path_factory.mktemp("environment")
    words = ["-m", "venv", "--without-pip", str(folder)]
    subprocess.run([str(Path(sys.executable).resolve()), *words], check=True)
    (folder / "packages").mkdir()
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "packages.pth").write_text(f"{folder / 'packages'}\n")
    return folder


def without_sources(
    environment: Path, *words: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run the wheel's command where the source tree is empty."""
    if os.geteuid() != 0:
        pytest.skip("hiding the source tree needs root")
    mounts = f'mount --bind "{Path(numpy.__file__).parents[1]}" "{environment}/packages"'
    script = f'{mounts} && mount -t tmpfs none "{PROJECT}" && cd "{folder}" && exec "$@"'
    command = [str(environment / "bin" / "switchbench"), *words]
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}
    apart = ["unshare", "--mount", "--net", "sh", "-c", script, "sh"]
    return runs.program(*apart, *command, timeout=200, env=variables)


def test_what_meson_installs(prefix: Path) -> None:
    share = prefix / "share"
    for path in (
        prefix / "bin" / "switchbench-node",
        share / "switchbench" / "conf" / "labs" / "one-switch.yaml",
        share / "doc" / "switchbench" / "reference" / "configuration.md",
    ):
        assert path.is_file(), path


def test_what_a_wheel_holds(wheel: Path) -> None:
    machine = platform.machine()
    assert re.fullmatch(
        rf"switchbench-{__version__}-py3-none-manylinux_2_\d+_{machine}\.whl", wheel.name
    )
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        version = archive.read("switchbench/engine/VERSION").decode()
        sums = archive.read("switchbench/engine/SHA256SUMS").decode()
    assert version == f"{__version__} {machine}\n"
    engine = {line.partition("  ")[2] for line in sums.splitlines()}
    assert {f"switchbench/engine/{place}" for place in engine} <= names
    assert {"switchbench-node", "libexec/switchbench-node", "lib/loader"} <= engine
    share = f"switchbench-{__version__}.data/data/share"
    examples = [path for path in (PROJECT / "conf").rglob("*") if path.is_file()]
    assert {f"{share}/switchbench/{path.relative_to(PROJECT)}" for path in examples} <= names
    package = PROJECT / "scripts" / "python"
    ours = [path for path in (package / "switchbench").rglob("*") if path.suffix != ".pyc"]
    assert {str(path.relative_to(package)) for path in ours if path.is_file()} <= names


def test_a_run_without_the_source_tree(environment: Path, tmp_path: Path, topology: Path) -> None:
    """With the wheel's engine; `push` would bring the same folder to hosts."""
    shown = without_sources(environment, "--version", folder=tmp_path)
    assert (shown.stdout, shown.stderr) == (f"switchbench {__version__}\n", "")
    found = without_sources(environment, "doctor", folder=tmp_path).stdout.splitlines()[0]
    (engine,) = environment.glob("lib/python*/site-packages/switchbench/engine/switchbench-node")
    assert found == f"engine   ok   switchbench-node: switchbench-node {__version__}, {engine}"
    planned = without_sources(environment, "plan", "two-modules", "--json", folder=tmp_path)
    assert json.loads(planned.stdout)["trials"], planned.stderr
    (tmp_path / "conf.yaml").write_text(CONFIGURATION.replace("LAB", str(topology)))
    done = without_sources(environment, "run", "conf.yaml", "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = runs.Result(0, "", "", tmp_path / "out").summary
    assert {trial["transport"] for trial in summary["trials"]} == {"dpdk", "tcp"}
    assert summary["errors"] == []


@labkit.needs_lab
@sshkit.needs_sshd
def test_push_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    """Its folder comes to a host as it is, and runs there."""
    topology = labkit.write_topology(tmp_path, "node1", "node2")
    packages = str(Path(numpy.__file__).parents[1])
    with sshkit.hosts(topology, tmp_path / "keys") as hosts:
        site = hosts.site()
        del site["ssh"]["engine"]
        path = runs.write(tmp_path / "push", {"site": site, "tests": [{"pattern": "pairs"}]})
        words = [str(environment / "bin" / "switchbench"), "push", str(path)]
        process = hosts.popen(words, PYTHONPATH=packages)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, output + errors
        (engine,) = environment.glob("lib/python*/site-packages/switchbench/engine")
        for name in hosts.names:
            there = hosts.home(name) / far.HOME_FOLDER / far.CURRENT
            assert (there / "SHA256SUMS").read_bytes() == (engine / "SHA256SUMS").read_bytes()
