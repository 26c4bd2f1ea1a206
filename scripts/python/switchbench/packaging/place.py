# SPDX-License-Identifier: BSD-3-Clause
"""Puts what Python makes or has into a prefix: manual pages, completion, and the command with the
packages that it needs (cli/install.py, for `meson install`)."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import completion, manual, packages

_ENVIRONMENT = Path("lib/switchbench")

# The interpreter is the system's; -I: nothing of the user's environment or of the current folder.
_COMMAND = """\
#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
here=$(readlink -f "$0") && here=${{here%/bin/*}} || exit 1
exec "$here/{python}" -I -m switchbench "$@"
"""
_SETTINGS = """\
home = {home}
include-system-site-packages = false
version = {version}
"""


def pages(parser: argparse.ArgumentParser, share: Path) -> None:
    """Write manual pages and completion of the command that a parser reads, below `share`."""
    for file, text in manual.command_pages(parser):
        _write(share / "man" / "man1" / file, text)
    for shell, name in completion.SHELLS.items():
        _write(share / name, completion.script(parser, shell))


def environment(prefix: Path) -> None:
    """The command in `bin`, and in lib/switchbench an environment with its packages: what `venv`
    makes, but for what would name the place where it was made."""
    folder = prefix / _ENVIRONMENT
    python = Path(os.path.realpath(sys.executable))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages.copy(folder / "lib" / f"python{version}" / "site-packages")
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    link = folder / "bin" / "python3"
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    _write(folder / "pyvenv.cfg", _SETTINGS.format(home=python.parent, version=version))
    command(prefix, _ENVIRONMENT / "bin" / "python3")


def command(prefix: Path, python: Path) -> None:
    """bin/switchbench, which runs the command with this Python, a path below the prefix."""
    place = prefix / "bin" / "switchbench"
    _write(place, _COMMAND.format(python=python))
    place.chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
