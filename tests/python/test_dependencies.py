# SPDX-License-Identifier: BSD-3-Clause
"""doc/developer/dependencies.md says why of everything that scripts/setup installs, and of nothing
else."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "doc" / "developer" / "dependencies.md").read_text()
HEADINGS = {
    "use": "to build and run",
    "test": "to test",
    "guests": "for guests",
    "launch": "for launchers",
    "labs": "for labs of kind ovs",
}


def table(heading: str) -> dict[str, str]:
    """Return the rows below the heading that holds these words: name -> reason."""
    section = re.search(rf"^## [^\n]*{heading}[^\n]*$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert section, f"doc/developer/dependencies.md has no section '{heading}'"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section[1], re.M)
    return {name: reason for name, reason in rows if name not in ("package", "---")}


def packages(tier: str) -> list[str]:
    """Return the packages of a tier in scripts/packages."""
    lines = (ROOT / "scripts" / "packages").read_text().splitlines()
    return [line.split()[1] for line in lines if line.split()[:1] == [tier]]


@pytest.mark.parametrize("tier", HEADINGS)
def test_each_package_has_its_reason(tier: str) -> None:
    reasons = table(HEADINGS[tier])
    assert sorted(packages(tier)) == sorted(reasons)
    assert all(len(reason) > 10 for reason in reasons.values())


def test_no_package_twice() -> None:
    every = [name for tier in HEADINGS for name in packages(tier)]
    assert len(every) == len(set(every))


def test_each_python_package_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in wanted}  # type: ignore[index]
    documented = {name for row in table("Python packages") for name in row.split(", ")}
    assert names == documented


def test_libraries_of_the_build_are_installed_by_setup() -> None:
    """Every dependency that Meson asks for comes with a package of the first tier, and those of
    programs that are installed are in Spack's recipe."""
    package_of = yaml.safe_load((ROOT / "tests/python/data/libraries.yaml").read_text())
    folders = ("engine", "patterns", "verbs", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("meson.build")]
    asked = {
        name for file in files for name in re.findall(r"\bdependency\('([^']+)'", file.read_text())
    }
    assert asked
    assert asked <= package_of.keys()
    assert {package_of[name] for name in asked} <= set(packages("use"))
    spack = {"libdpdk": "dpdk", "libibverbs": "rdma-core"}
    recipe = (ROOT / "packaging" / "spack" / "package.py").read_text()
    named = {name.partition("@")[0] for name in re.findall(r'depends_on\("([^"]+)"', recipe)}
    brought = {"threads", "cmocka", "libbpf", "libxdp"}
    assert {spack.get(name, name) for name in asked - brought} <= named


def test_recipes_name_what_there_is() -> None:
    """Workflow and container call scripts of the tree, and install what scripts/wheel makes."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    scripts = {step["run"].split()[0] for step in steps if "run" in step}
    assert "scripts/test" in scripts
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)
    assert "COPY dist/switchbench-*.whl" in (ROOT / "Containerfile").read_text()
    role = yaml.safe_load((ROOT / "packaging" / "ansible" / "tasks" / "main.yml").read_text())
    values = yaml.safe_load((ROOT / "packaging" / "ansible" / "defaults" / "main.yml").read_text())
    asked = set(re.findall(r"switchbench_\w+", json.dumps(role))) - {"switchbench_copied"}
    assert asked == values.keys()
