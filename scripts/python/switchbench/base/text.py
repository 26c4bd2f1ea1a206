# SPDX-License-Identifier: BSD-3-Clause
"""Text of others as a terminal can show it."""

from __future__ import annotations

from typing import Any


def printable(value: Any, keep: str = "") -> Any:
    """Return the same with escapes for all characters that a terminal would obey, or not show.

    Of keys, too. `keep`: of these the ones that stay.
    """
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join(
            c if c.isprintable() or c in keep else c.encode("unicode_escape").decode()
            for c in value
        )
    if isinstance(value, dict):
        return {printable(key): printable(item, keep) for key, item in value.items()}
    if isinstance(value, list):
        return [printable(item, keep) for item in value]
    return value
