# SPDX-License-Identifier: BSD-3-Clause
"""Every figure of a report: one module a kind, each a function of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....analysis.data import Measured
from ..figure import Figure
from . import (
    course,
    heat,
    latency,
    loss,
    messages,
    models,
    nodes,
    plans,
    scatter,
    steps,
    suite,
)

KINDS: tuple[Callable[[Measured], Iterator[Figure]], ...] = (
    suite.figures,
    nodes.figures,
    nodes.pairs,
    plans.figures,
    heat.figures,
    course.figures,
    messages.figures,
    scatter.figures,
    steps.figures,
    latency.figures,
    loss.figures,
    models.figures,
)
"""In the order of SECTIONS."""


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield all figures that the run has data for, in the order of SECTIONS."""
    for kind in KINDS:
        yield from kind(measured)
