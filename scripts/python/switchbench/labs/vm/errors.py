# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong with guests, as sentences for people."""

from __future__ import annotations


class GuestError(RuntimeError):
    """Guests can't be had, or one of them is gone: what, why, what to do."""


class GuestsMissingError(GuestError):
    """This machine lacks what guests need: tests are skipped, a run is refused."""
