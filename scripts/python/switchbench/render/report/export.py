# SPDX-License-Identifier: BSD-3-Clause
"""Every figure of a report as PNG and SVG files, drawn by the page itself in headless Chromium."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import unquote_to_bytes

from ...base.errors import RunError
from .browser import Browser

FORMATS = ("png", "svg")


def write_figures(page: Path, folder: Path, program: str) -> list[Path]:
    """Writes FOLDER/NAME.png and NAME.svg of each figure of the page; returns their paths.

    `program` is browser.find()'s, so that a missing browser is said before anything is made.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Browser(program) as browser:
            browser.open(page)
            for name in browser.value("switchbench.figures()"):
                for form in FORMATS:
                    asked = f"switchbench.image({json.dumps(name)}, {json.dumps(form)})"
                    path = folder / f"{name}.{form}"
                    path.write_bytes(_content(browser.value(asked)))
                    written.append(path)
    except OSError as error:
        raise RunError(f"can't write into {folder}: {error.strerror}") from error
    return written


def _content(url: str) -> bytes:
    """What a data: URL holds."""
    head, _, body = url.partition(",")
    return base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
