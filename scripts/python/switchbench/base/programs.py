# SPDX-License-Identifier: BSD-3-Clause
"""Where programs and example configurations are: in the source tree and its build, or installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigurationError

ENGINE = "switchbench-node"
ENGINE_VARIABLE = "SWITCHBENCH_NODE"
_PARENTS = Path(__file__).resolve().parents


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
        for place in self._places():
            if os.access(place / self.name, os.X_OK):
                return place / self.name
        found = shutil.which(self.name)
        if found is None:
            raise self.missing(
                f"{self.name} is not here: install it (doc/how-to/install.md), build it in the "
                f"tree (`meson setup build && ninja -C build`), or name it in {self.variable}"
            )
        return Path(found)

    def _places(self) -> Iterator[Path]:
        """Beside the engine that was named, or in its build: they fit together. Then the source
        tree's build, and where this package is installed."""
        engine = os.environ.get(ENGINE_VARIABLE)
        if engine:
            yield Path(engine).absolute().parent
            yield Path(engine).absolute().parent.parent / self.folder
        for parent in _PARENTS:
            yield parent / "build" / self.folder
            yield parent / "bin"
            yield parent / "libexec" / "switchbench"


def find_engine() -> Path:
    """$SWITCHBENCH_NODE, the source tree's build, or $PATH: the first that there is."""
    return Program(ENGINE, "engine", ENGINE_VARIABLE, ConfigurationError).find()


PORT_BINDING = _PARENTS[1] / "hosts" / "port_binding.py"
"""Binds PCI ports on the host where it runs."""


def port_binding_words(words: Sequence[str]) -> list[str]:
    """Return a command that takes this program from its standard input, and leaves there what
    follows."""
    size = PORT_BINDING.stat().st_size
    return ["python3", "-c", f"import sys; exec(sys.stdin.buffer.read({size}))", *words]


def configurations() -> Path:
    """The folder of example configurations and of `labs/`: `conf` in the source tree, and below
    `share/switchbench` of whatever prefix this package is installed in."""
    for parent in _PARENTS:
        for folder in (parent / "conf", parent / "share" / "switchbench" / "conf"):
            if (folder / "labs").exists():
                return folder
    return Path("conf")
