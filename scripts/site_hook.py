# SPDX-License-Identifier: BSD-3-Clause
"""Doxygen's pages of the C interfaces as part of the site that mkdocs builds, at interfaces/."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "interfaces"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the C interfaces to the site's files.

    Without doxygen there is one page that says so, so that links to it are right. A warning of
    doxygen is an error.
    """
    if shutil.which("doxygen") is None:
        text = "<!doctype html><p>This site was built without doxygen: it has no C interfaces.</p>"
        files.append(File.generated(config, f"{FOLDER}/index.html", content=text))
        return files
    with tempfile.TemporaryDirectory() as folder:
        settings = (ROOT / "doc/Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {folder}\n"
        made = subprocess.run(
            ["doxygen", "-"], input=settings, cwd=ROOT, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise PluginError(f"doxygen: {made.stderr.strip()}")
        for page in sorted((Path(folder) / FOLDER).rglob("*")):
            if page.is_file():
                name = f"{FOLDER}/{page.relative_to(Path(folder) / FOLDER)}"
                files.append(File.generated(config, name, content=page.read_bytes()))
    return files
