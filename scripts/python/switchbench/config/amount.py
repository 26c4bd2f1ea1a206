# SPDX-License-Identifier: BSD-3-Clause
"""How many trials a configuration asks for, before anybody makes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base.source import Document

if TYPE_CHECKING:
    from .point import ResolvedTest

TRIALS_MOST = 20_000  # of 3 s each they would take 17 hours


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
    values = test.values
    axes = (values.ranks, values.loads, values.frame_sizes, values.message_sizes)
    lists = [*test.sweep.values(), *axes]
    return math.prod(len(each) for each in lists if each) * values.repeat.most
