# SPDX-License-Identifier: BSD-3-Clause
"""Other programs' results for the tests: real files, and real ones with other figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from switchbench.cli.main import main

DATA = Path(__file__).parent / "data"
FOREIGN = DATA / "foreign"


def hpccoutf(path: Path, **values: Any) -> Path:
    """A real hpccoutf.txt with other values for some of its names."""
    text = (FOREIGN / "hpcc-4.txt").read_text()
    for name, value in values.items():
        text, count = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.M)
        assert count == 1, name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def bring_in(out: Path, *files: Path, ranks: int | None = None) -> Path:
    """The results directory of these files."""
    more = [] if ranks is None else ["--ranks", str(ranks)]
    assert main(["import", *map(str, files), "--out", str(out), *more]) == 0
    return out
