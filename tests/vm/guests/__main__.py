# SPDX-License-Identifier: BSD-3-Clause
"""Fetch and unpack the guests' kernel; status 77 with the reason where guests can't be booted."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3] / "scripts/python")]

from guests import why_not  # noqa: E402 (it lies where this file's place says)

reason = why_not()
if reason is not None:
    print(reason, file=sys.stderr)
sys.exit(77 if reason else 0)
