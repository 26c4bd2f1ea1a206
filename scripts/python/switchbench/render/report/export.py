# SPDX-License-Identifier: BSD-3-Clause
"""Every figure of a report as PNG and SVG files, drawn by the page itself in headless Chromium.

No port is opened and nothing is fetched: Chromium opens the file, its script draws each figure, and
Chromium prints what the script leaves of the page (`--dump-dom`).
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote_to_bytes

from ...base.errors import ConfigurationError, RunError

VARIABLE = "SWITCHBENCH_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = (
    "figures can only be drawn by a browser, and there is none: install Chromium "
    f"(Debian: apt-get install chromium) or name one in {VARIABLE}; in report.html each figure "
    "can be saved as PNG or SVG without it"
)
_OPTIONS = (
    *("--headless=new", "--disable-gpu", "--disable-extensions", "--no-first-run"),
    *("--disable-background-networking", "--hide-scrollbars"),
    "--virtual-time-budget=600000",  # ms of the page's own clock, which waits for its script
)
_TIMEOUT_S = 300.0


def find_browser() -> str:
    """Return a Chromium of this machine; ConfigurationError where there is none."""
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        if found := shutil.which(name):
            return found
    raise ConfigurationError(f"{VARIABLE}={named} can't be executed" if named else MISSING)


def write_figures(page: Path, folder: Path, program: str) -> list[Path]:
    """Write FOLDER/NAME.png and NAME.svg of each figure of a page; return their paths.

    `program` is find_browser()'s, so that a missing browser is reported before anything is made.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, url in _images(page, program).items():
            head, _, body = url.partition(",")
            content = base64.b64decode(body) if head.endswith("base64") else unquote_to_bytes(body)
            written.append(folder / name)
            written[-1].write_bytes(content)
    except OSError as error:
        raise RunError(f"can't write into {folder}: {error.strerror}") from error
    return written


def _images(page: Path, program: str) -> dict[str, str]:
    """Return each picture as a data: URL, by its file's name."""
    # Chromium refuses its sandbox to root, and a page of ours needs none.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with TemporaryDirectory(prefix="switchbench-browser-", ignore_cleanup_errors=True) as profile:
        options = [*_OPTIONS, *sandbox, f"--user-data-dir={profile}", "--dump-dom"]
        try:
            done = subprocess.run(
                [program, *options, f"{page.resolve().as_uri()}#figures"],
                capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(f"{program} drew no figures within {_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise RunError(f"{program} can't be run: {error.strerror}") from error
    found = re.search(r'<pre id="figures">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise RunError(
            f"{program} has ended without an answer; does it run by itself? "
            f"{program} --headless=new --dump-dom about:blank"
        )
    images: dict[str, str] = json.loads(html.unescape(found[1]))
    return images
