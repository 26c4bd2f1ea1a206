# SPDX-License-Identifier: BSD-3-Clause
"""Suites that search: which goals each of them has, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .goals import GOALS, SearchGoal

MIN_PART = 0.01  # of the max load: where a suite's range of loads begins

SUITES: Mapping[str, tuple[str, ...]] = MappingProxyType({"ndr-pdr": ("ndr", "pdr")})
"""Name of a suite -> names of its goals (goals.py)."""


def goals_of(suite: str) -> tuple[SearchGoal, ...]:
    """The goals of a suite, in the order of their names; KeyError for an unknown one."""
    return tuple(GOALS[name] for name in SUITES[suite])
