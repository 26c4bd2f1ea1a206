# SPDX-License-Identifier: BSD-3-Clause
"""`meson install` and the wheel: what is installed works where the source tree is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from switchbench import __version__
from switchbench.base.programs import find_engine
from switchbench.cli.command_list import COMMANDS

CONFIGURATION = """\
switchbench: 1
site: {lab: LAB}
transports: [dpdk, tcp]
window: 300ms
tests:
- {pattern: pairs, partners: neighbours}
"""

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where `meson install` has put everything, by DESTDIR and then moved; too large to be kept."""
    build = find_engine().resolve().parent.parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} is no build folder of Meson")
    place = tmp_path_factory.mktemp("installed")
    done = subprocess.run(
        ["meson", "install", "-C", str(build), "--no-rebuild", "--destdir", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    options = json.loads(subprocess.check_output(["meson", "introspect", "--buildoptions", build]))
    (usual,) = (one["value"] for one in options if one["name"] == "prefix")
    moved = place / "moved"
    shutil.move(place / usual.lstrip("/"), moved)
    yield moved
    shutil.rmtree(place)


def without_sources(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command where the source tree, and with it the environment that tests run in, is empty."""
    if os.geteuid() != 0:
        pytest.skip("hiding the source tree needs root")
    script = f'mount -t tmpfs none "{PROJECT}" && cd "{folder}" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-c", script, "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)},
    )


def test_what_is_where(prefix: Path) -> None:
    share = prefix / "share"
    for path in (
        prefix / "bin" / "switchbench-node",
        prefix / "libexec" / "switchbench" / "switchbench-start",
        *(share / "man" / "man1" / f"switchbench-{name}.1" for name in COMMANDS),
        share / "bash-completion" / "completions" / "switchbench",
        share / "zsh" / "site-functions" / "_switchbench",
        share / "fish" / "vendor_completions.d" / "switchbench.fish",
        share / "switchbench" / "conf" / "labs" / "one-switch.yaml",
        share / "doc" / "switchbench" / "reference" / "configuration.md",
    ):
        assert path.is_file(), path


def test_a_run_without_the_source_tree(prefix: Path, tmp_path: Path, topology: Path) -> None:
    command = str(prefix / "bin" / "switchbench")
    shown = without_sources(command, "--version", folder=tmp_path)
    assert (shown.stdout, shown.stderr) == (f"switchbench {__version__}\n", "")
    planned = without_sources(command, "plan", "two-modules", "--json", folder=tmp_path)
    assert json.loads(planned.stdout)["trials"], planned.stderr
    here = CONFIGURATION.replace("LAB", str(topology))
    (tmp_path / "conf.yaml").write_text(here)
    done = without_sources(command, "run", "conf.yaml", "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {trial["transport"] for trial in summary["trials"]} == {"dpdk", "tcp"}
    assert summary["errors"] == []


def test_the_command_heeds_nothing_of_its_caller(prefix: Path, tmp_path: Path) -> None:
    """Neither a module in the current folder nor PYTHONPATH takes the place of its own."""
    (tmp_path / "yaml.py").write_text("raise SystemExit('not mine')\n")
    done = subprocess.run(
        [str(prefix / "bin" / "switchbench"), "--version"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, f"switchbench {__version__}\n")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """As pip builds it, of a copy: setuptools writes beside what it builds."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(PROJECT / name, source)
    for name in ("conf", "scripts"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(PROJECT / name, source / name, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(source)]
    done = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if "No matching distribution" in done.stderr or "Connection" in done.stderr:
        pytest.skip("pip has no index to take setuptools from")
    assert done.returncode == 0, done.stderr
    (found,) = tmp_path.glob("switchbench-*.whl")
    return found


def test_a_wheel(wheel: Path, tmp_path: Path) -> None:
    """Command, schemas and examples; the engine is found where $PATH has it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    data = f"switchbench-{__version__}.data/data/share/switchbench/conf"
    examples = [path for path in (PROJECT / "conf").rglob("*") if path.is_file()]
    assert {f"{data}/{path.relative_to(PROJECT / 'conf')}" for path in examples} <= set(names)
    package = PROJECT / "scripts" / "python"
    ours = [path for path in (package / "switchbench").rglob("*") if path.suffix != ".pyc"]
    assert {str(path.relative_to(package)) for path in ours if path.is_file()} <= set(names)
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True)
    script = "import sys, switchbench.cli.main as cli; print(cli.__file__); sys.exit(cli.main())"
    done = subprocess.run(
        [sys.executable, "-c", script, "plan", "two-modules", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(target), "SWITCHBENCH_NODE": str(find_engine())},
    )
    where, _, plan = done.stdout.partition("\n")
    assert where.startswith(str(target)), done.stderr
    assert json.loads(plan)["trials"]
