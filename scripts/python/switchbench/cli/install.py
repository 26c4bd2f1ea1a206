# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` calls: `python -m switchbench.cli.install` puts the command, its manual and
its completion into the prefix. No command of its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import SwitchbenchError
from ..packaging.place import environment, pages
from .main import build_parser


def main(arguments: Sequence[str]) -> int:
    """`meson install`: the prefix as it was told, below $DESTDIR."""
    parser = argparse.ArgumentParser(prog="switchbench.cli.install", description=__doc__)
    parser.add_argument("--share", type=Path, default=Path("share"), help="in the prefix")
    parser.add_argument("--no-command", action="store_true", help="manual and completion only")
    options = parser.parse_args(arguments)
    prefix = Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"])
    try:
        pages(build_parser(), prefix / options.share)
        if not options.no_command:
            environment(prefix)
    except SwitchbenchError as error:
        print(f"the command can't be installed: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
