# SPDX-License-Identifier: BSD-3-Clause
"""Where programs and example configurations are: in the source tree and its build, or installed."""

from __future__ import annotations

import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Self

from .errors import ConfigurationError, RunError

ENGINE = "switchbench-node"
ENGINE_VARIABLE = "SWITCHBENCH_NODE"
VERSION = "VERSION"
"""What a folder with the engine and all that it needs calls the file with its build and machine."""
_PARENTS = Path(__file__).resolve().parents


@dataclass(frozen=True)
class Program:
    """A program in C: `folder` is where a build directory has it, `variable` names another one."""

    name: str
    folder: str
    variable: str

    def find(self, missing: type[Exception] = ConfigurationError) -> Path:
        """Return the one that $`variable` names, else the first that there is.

        Raise `missing` where there is none that this machine can run.
        """
        named = os.environ.get(self.variable)
        if named:
            if not os.access(named, os.X_OK):
                raise missing(f"{self.variable}={named} can't be executed")
            return Path(named).absolute()
        for place in self._places():
            if os.access(place / self.name, os.X_OK):
                machine = machine_of(place)
                if machine != platform.machine():
                    raise missing(
                        f"{place / self.name} is built for {machine}, and this machine is "
                        f"{platform.machine()}: install the wheel for {platform.machine()}"
                    )
                return place / self.name
        found = shutil.which(self.name)
        if found is None:
            raise missing(
                f"{self.name} is not here: install it (doc/how-to/install.md), build it in the "
                f"tree (`meson setup build && ninja -C build`), or name it in {self.variable}"
            )
        return Path(found)

    def _places(self) -> Iterator[Path]:
        """Yield folders: beside the engine that was named, or in its build.

        Because they fit together; what the wheel brings; the source tree's build; the prefix of
        this package.
        """
        engine = os.environ.get(ENGINE_VARIABLE)
        if engine:
            yield Path(engine).absolute().parent
            yield Path(engine).absolute().parent.parent / self.folder
        yield _PARENTS[1] / "engine"
        for parent in _PARENTS:
            yield parent / "build" / self.folder
            yield parent / "bin"
            yield parent / "libexec" / "switchbench"


def machine_of(folder: Path) -> str:
    """Return the machine, in the kernel's word, that a folder's programs are for.

    As its VERSION has it; this one where there is no such file.
    """
    with suppress(OSError, IndexError):
        return (folder / VERSION).read_text("utf-8").split()[1]
    return platform.machine()


START = Program("switchbench-start", "engine", "SWITCHBENCH_START")
SWITCH = Program("switchbench-switch", "lab/switch", "SWITCHBENCH_SWITCH")


def find_engine() -> Path:
    """Return the engine that is used here."""
    return Program(ENGINE, "engine", ENGINE_VARIABLE).find()


PORT_BINDING = _PARENTS[1] / "hosts" / "port_binding.py"
"""Binds PCI ports on the host where it runs."""


def port_binding_words(words: Sequence[str]) -> list[str]:
    """Return a command that takes this program from its standard input.

    And leaves there what follows.
    """
    size = PORT_BINDING.stat().st_size
    return ["python3", "-c", f"import sys; exec(sys.stdin.buffer.read({size}))", *words]


def configurations() -> Path:
    """Return the folder of example configurations and of `labs/`.

    `conf` in the source tree, and below `share/switchbench` of whatever prefix this package is
    installed in.
    """
    for parent in _PARENTS:
        for folder in (parent / "conf", parent / "share" / "switchbench" / "conf"):
            if (folder / "labs").exists():
                return folder
    return Path("conf")


# --- signals --------------------------------------------------------------------------------------
# Ctrl-C and its like in other hands for a while.


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Handled:
    """While entered, `handler` has the signals by which people and machines end a command."""

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Nothing is changed before it is entered."""
        self._handler = handler
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        for number in _SIGNALS:
            self._previous[number] = signal.signal(number, self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class Deferred(Handled):
    """While entered, the first signal is only noted; a second one ends what is being done."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._note)
        self.name: str | None = None
        """Of the signal that came."""
        self.twice = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.name is not None:
            self.twice = True
            raise RunError(f"interrupted ({self.name}, twice)")
        self.name = signal.Signals(number).name


class Later:
    """A module that takes long to load: it is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        """Import nothing yet."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Return what the module has of that name."""
        return getattr(import_module(self._name), attribute)
