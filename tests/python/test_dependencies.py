# SPDX-License-Identifier: BSD-3-Clause
"""doc/developer/dependencies.md says why of everything that scripts/setup installs, and of nothing
else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

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
    """The rows below the heading that holds these words: name -> reason."""
    section = re.search(rf"^## [^\n]*{heading}[^\n]*$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert section, f"doc/developer/dependencies.md has no section '{heading}'"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section[1], re.M)
    return {name: reason for name, reason in rows if name not in ("package", "---")}


def packages(tier: str) -> list[str]:
    """What scripts/packages lists for a tier."""
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
    """Every dependency that Meson asks for comes with a package of the first tier."""
    package_of = {
        "cmocka": "libcmocka-dev",
        "yaml-0.1": "libyaml-dev",
        "libdpdk": "libdpdk-dev",
        "jansson": "libjansson-dev",
        "libmnl": "libmnl-dev",
        "libsodium": "libsodium-dev",
        "libbpf": "libdpdk-dev",
        "libxdp": "libdpdk-dev",
        "libibverbs": "libibverbs-dev",
        "threads": "libc6-dev",
    }
    folders = ("engine", "patterns", "verbs", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("meson.build")]
    asked = {
        name for file in files for name in re.findall(r"\bdependency\('([^']+)'", file.read_text())
    }
    assert asked
    assert asked <= package_of.keys()
    assert {package_of[name] for name in asked} <= set(packages("use"))
