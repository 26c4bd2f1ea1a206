# SPDX-License-Identifier: BSD-3-Clause
"""Guests that several tests share: each set is booted once, when its first test wants it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import guests


@pytest.fixture(scope="module")
def two() -> Iterator[guests.Rig]:
    """Yield two guests on a switch."""
    with guests.boot(guests.machines(2)) as rig:
        yield rig
