# SPDX-License-Identifier: BSD-3-Clause
"""Where frames went missing, how they were out of order, and what the switch says of it."""

from __future__ import annotations

import pytest

from switchbench.analysis.tester import in_network


@pytest.mark.parametrize(
    ("network", "lost", "said"), [(4, None, 0), (5, None, 5), (4, 4, 4), (None, 4, None)]
)
def test_a_frame_per_rank_may_be_the_counters_own(
    network: int | None, lost: int | None, said: int | None
) -> None:
    location = {"network": network, "lost_frames": lost}
    assert in_network({"loss_location": location, "ranks": 4}) == said
