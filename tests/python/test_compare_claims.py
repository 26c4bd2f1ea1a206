# SPDX-License-Identifier: BSD-3-Clause
"""How often `compare` claims what is not there, and finds what is (claims.py)."""

from __future__ import annotations

import pytest

from claims import DESIGNS, Design, share_claiming, share_found


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_equal_networks_seldom_differ(design: Design) -> None:
    """At most 5 of 100 comparisons claim anything."""
    assert share_claiming(design, 100, 2) <= 0.05


@pytest.mark.parametrize("difference", [0.02, 0.05])
@pytest.mark.parametrize("design", [d for d in DESIGNS if d.repeats == 5], ids=lambda d: d.name)
def test_true_differences_are_found(design: Design, difference: float) -> None:
    """In at least 11 of 12."""
    assert share_found(design, -difference, 60, 3) >= 11 / 12
