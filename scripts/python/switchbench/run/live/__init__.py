# SPDX-License-Identifier: BSD-3-Clause
"""A run while it runs (doc/how-to/live.md): a screen on a terminal, plain lines elsewhere, metrics.

records -> state (loss, found) -> terminal (screen, worst, keys) | plain | metrics
"""

from .screen import Watch, Wish, offer_metrics, watch

__all__ = ["Watch", "Wish", "offer_metrics", "watch"]
