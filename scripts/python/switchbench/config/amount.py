# SPDX-License-Identifier: BSD-3-Clause
"""How many trials a configuration asks for, before anybody makes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base.source import Document
from . import settings

if TYPE_CHECKING:
    from .point import ResolvedTest

TRIALS_MOST = 20_000  # of 3 s each they would take 17 hours
_AXES = (("load", "loads"), ("frame_size", "frame_sizes"), ("message_size", "message_sizes"))


def refuse_many(trials: int, document: Document) -> None:
    """ConfigurationError for more than TRIALS_MOST."""
    if trials > TRIALS_MOST:
        raise document.problem(
            ("tests",),
            f"loads, sizes, ranks, sweeps and repeats multiply to {trials} trials and more; "
            f"at most {TRIALS_MOST} are allowed",
        )


def trials_of(test: ResolvedTest) -> int:
    """An upper bound: a swept key may change nothing at some points."""
    axes = [settings.axis(test.values, one, several) for one, several in _AXES]
    lists = [*test.sweep.values(), test.values.get("ranks"), *axes]
    return math.prod(len(values) for values in lists if values) * int(test.values["repeat"].most)
