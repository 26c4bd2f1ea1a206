# SPDX-License-Identifier: BSD-3-Clause
"""Where the programs of a build are: the engine, the modelled switch, the guests' agent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENGINE_VARIABLE = "SWITCHBENCH_NODE"


@dataclass(frozen=True)
class Program:
    """One of them: `folder` is where a build directory has it, `variable` names another one, and
    `missing` is what its user raises without it."""

    name: str
    folder: str
    variable: str
    missing: type[Exception]

    def find(self) -> Path:
        """The one that $`variable` names, else the first that there is."""
        named = os.environ.get(self.variable)
        if named:
            if not os.access(named, os.X_OK):
                raise self.missing(f"{self.variable}={named} can't be executed")
            return Path(named).absolute()
        for build in _builds():
            built = build / self.folder / self.name
            if os.access(built, os.X_OK):
                return built
        found = shutil.which(self.name)
        if found is None:
            raise self.missing(
                f"{self.name} is not built: `meson setup build && ninja -C build` in the project, "
                f"or name it in {self.variable}"
            )
        return Path(found)


def _builds() -> Iterator[Path]:
    """The build of the engine that was named: its programs fit together. Then the source tree's."""
    engine = os.environ.get(ENGINE_VARIABLE)
    if engine:
        yield Path(engine).absolute().parent.parent
    for parent in Path(__file__).resolve().parents:
        yield parent / "build"
