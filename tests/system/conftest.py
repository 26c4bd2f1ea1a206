# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that several files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import labkit
import underway
from switchbench import lab as labs


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
