# SPDX-License-Identifier: BSD-3-Clause
"""What shapes one direction of a lab's link, as values.

What plans need to know of it without the kernel (shaper.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from switchbench.topology.file_form import LAYER1_OVERHEAD

ETHERNET_HEADER_AND_TAG = 18
_BURST_S = 0.016


@dataclass(frozen=True)
class Shaper:
    """One direction of a link."""

    rate_bps: int
    queue_bytes: int
    mtu: int
    burst: int | None = None
    """Layer-1 bytes that the topology asks for instead of 16 ms of line."""

    @property
    def burst_bytes(self) -> int:
        """The token bucket's depth: what may pass at once after silence.

        16 ms of line, unless the topology says less: where cores are shared, the timer's softirq
        waits for some time slices, and the link must not lose rate for it (beside compilers 4 ms
        lost up to 1 % at 100M, 8 ms up to 6 % of an uplink of 10M). A window of 2 s that begins
        after silence shows 0.8 % too much at most; one that begins after a warm-up at full load,
        nothing. Two frames at least.
        """
        if self.burst is not None:
            return self.burst
        frame = self.mtu + ETHERNET_HEADER_AND_TAG + LAYER1_OVERHEAD
        return max(2 * frame, round(self.rate_bps / 8 * _BURST_S))
