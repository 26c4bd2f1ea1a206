# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that several files share, and which tests are smokes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import labkit
import sshkit
from switchbench import labs

SMOKES = yaml.safe_load((labkit.DATA / "smokes.yaml").read_text())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the smokes: by a test's name alone all its cases, else one."""
    for item in items:
        name = f"{item.path.name}::{item.name}"
        if item.path.parent == Path(__file__).parent and (
            name in SMOKES or name.partition("[")[0] in SMOKES
        ):
            item.add_marker(pytest.mark.smoke)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Let the labs of a test leave nothing on the machine."""
    yield
    assert labkit.leftovers() == []


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """Return a switch with four nodes."""
    return labkit.write_topology(tmp_path, *labkit.NODES)


@pytest.fixture
def kept_lab(topology: Path) -> Iterator[labs.Lab]:
    """Yield a lab of that topology that stays up around a run."""
    with labkit.kept(topology) as lab:
        yield lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[labs.Lab]:
    """Yield two hosts, and a switch between them."""
    with labs.session(labs.load(labkit.write_topology(tmp_path, "alice", "bob"))) as made:
        yield made


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshkit.Hosts]:
    """Eight hosts with an sshd each on one slow switch, up for all tests of a file."""
    folder = tmp_path_factory.mktemp("hosts")
    topology = labkit.write_topology(folder, *(f"node{i}" for i in range(1, 9)))
    with sshkit.hosts(topology, folder / "keys") as made:
        yield made
    assert labkit.leftovers() == []
