# SPDX-License-Identifier: BSD-3-Clause
"""Mixes of frame sizes."""

from __future__ import annotations

from typing import Any

from ..base import quantities
from ..base.words import shown, unknown_key
from .sets import word


def frame_bytes(value: object) -> int:
    size = quantities.size_bytes(value)
    if not 64 <= size <= 9216:
        raise ValueError(f"a frame of {size} bytes: frames have 64 to 9216 bytes, FCS included")
    return size


# RFC 6985, section 3: the letters of an IMIX genome; h and i are jumbo frames.
GENOME = {
    "a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000,
}  # fmt: skip

# The simple IMIX: IP packets of 40, 576 and 1,500 bytes as 7:4:1, spread evenly.
PRESETS = {"simple": (64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 64, 594)}

IMIX_MOST = 64  # what a node takes (TRANSPORT_SIZES_MAX)


def imix(value: object) -> tuple[int, ...]:
    """A genome with custom letters, or the sizes themselves, in the order sent."""
    if isinstance(value, str) and value in PRESETS:
        return PRESETS[value]
    sizes = _genome(value) if isinstance(value, dict) else value
    if not isinstance(sizes, list):
        raise ValueError(
            f"found {shown(value)}, but simple (7:4:1 of 64, 594 and 1518 bytes), a genome "
            '({genome: "aaab"}) or a list of sizes is needed'
        )
    if not 2 <= len(sizes) <= IMIX_MOST:
        raise ValueError(f"has {len(sizes)} frames: an IMIX has 2 to {IMIX_MOST}")
    return tuple(frame_bytes(size) for size in sizes)


def _genome(value: dict[str, Any]) -> list[Any]:
    for key in value:
        if key not in ("genome", "custom"):
            raise ValueError(unknown_key(key, ("genome", "custom")))
    custom = value.get("custom", {})
    if not isinstance(custom, dict):
        raise ValueError(f"custom: found {shown(custom)}, but a mapping is needed, as {{A: 90}}")
    letters = GENOME | custom
    genome = word(value.get("genome"))
    for letter in genome:
        if letter not in letters:
            raise ValueError(
                f'genome: "{letter}" has no size: letters are {"".join(letters)} '
                "(RFC 6985), further ones stand under `custom`"
            )
    return [letters[letter] for letter in genome]
