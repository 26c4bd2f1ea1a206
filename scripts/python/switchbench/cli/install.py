# SPDX-License-Identifier: BSD-3-Clause
"""Write what is installed beside the Python package (`meson install`, scripts/wheel).

No command of its own: `python -m switchbench.cli.install SHARE [ENGINE]` writes manual pages and
completion below the folder SHARE, and the engine with all that it needs as the folder ENGINE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import SwitchbenchError
from ..hosts.push import collect
from . import completion, manual
from .main import build_parser


def main(words: Sequence[str]) -> int:
    """Write the files; SHARE may be in the prefix of `meson install`."""
    prefix = Path(os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", ""))
    share, *engines = map(Path, words)
    parser = build_parser()
    pages = {f"man/man1/{file}": text for file, text in manual.command_pages(parser)}
    pages |= {place: completion.script(parser, shell) for shell, place in completion.SHELLS.items()}
    for place, text in pages.items():
        path = prefix / share / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        for engine in engines:
            collect().write(engine)
    except SwitchbenchError as error:
        print(f"switchbench.cli.install: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
