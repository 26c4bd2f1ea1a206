# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that several files share, and which tests are smokes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import labkit
import underway
from smokes import SMOKES
from switchbench import labs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the smokes: by a test's name alone all its cases, else one."""
    for item in items:
        name = f"{item.path.name}::{item.name}"
        if item.path.parent == Path(__file__).parent and (
            name in SMOKES or name.partition("[")[0] in SMOKES
        ):
            item.add_marker(pytest.mark.smoke)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """The labs of a test leave nothing on the machine."""
    yield
    assert labkit.leftovers() == []


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """A switch with four nodes."""
    return underway.write_topology(tmp_path, *underway.NODES)


@pytest.fixture
def kept_lab(topology: Path) -> Iterator[labs.Lab]:
    """A lab of that topology that stays up around a run."""
    with underway.kept(topology) as lab:
        yield lab
