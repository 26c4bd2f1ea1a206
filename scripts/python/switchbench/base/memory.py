# SPDX-License-Identifier: BSD-3-Clause
"""What this host's memory has left, so that what needs more is refused before it is tried."""

from __future__ import annotations

import re
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def spare_bytes() -> int | None:
    """As much as the engine takes at most (engine/platform/memory.h); None: not known."""
    try:
        found = re.search(r"^MemAvailable: *(\d+) kB$", _MEMINFO.read_text(), re.M)
    except OSError:
        return None
    return int(found[1]) * 1024 // 8 * 7 if found else None
