# SPDX-License-Identifier: BSD-3-Clause
"""The run record: what is written beside the summary once it stands, and sealed with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...records.directory import JUNIT, replace_bytes
from . import manifest, signature
from .junit import junit


def write_record(directory: Path, summary: Mapping[str, Any], key: Path | None = None) -> None:
    """Write the verdict for CI, then the manifest over all files, then its signature by `key`."""
    if summary.get("verdict") is not None:
        replace_bytes(directory / JUNIT, junit(summary))
    if key is None:
        manifest.seal(directory)
    else:
        signature.sign(directory, key)
