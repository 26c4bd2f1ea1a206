# SPDX-License-Identifier: BSD-3-Clause
"""Paths of the C programs and example configurations, in a source tree or an installation."""

from __future__ import annotations

import os
import platform
import shutil
import signal
from collections.abc import Callable
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
"""Name of the file in an engine folder that states the engine's build and machine type."""
_PARENTS = Path(__file__).resolve().parents


@dataclass(frozen=True)
class Program:
    """C program: its name, folder in a build, and environment variable that overrides its path."""

    name: str
    folder: str
    variable: str

    def find(self, missing: type[Exception] = ConfigurationError) -> Path:
        """Return the program's path: from the environment variable, else the first one found.

        Raise an error of class `missing` if there is no program that this machine can run.
        """
        named = os.environ.get(self.variable)
        if named:
            if not os.access(named, os.X_OK):
                raise missing(f"{self.variable}={named} can't be executed")
            return Path(named).absolute()
        # Most specific first: beside the engine that the user named, or in its build, because these
        # fit together; the wheel's; the source tree's build; the prefix of this package.
        places = []
        if engine := os.environ.get(ENGINE_VARIABLE):
            beside = Path(engine).absolute().parent
            places = [beside, beside.parent / self.folder]
        places.append(_PARENTS[1] / "engine")
        for parent in _PARENTS:
            places += (parent / "build" / self.folder, parent / "bin")
            places.append(parent / "libexec" / "switchbench")
        for place in places:
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


def machine_of(folder: Path) -> str:
    """Return the machine type of the programs in a folder, as `uname -m` prints it.

    Read from the folder's VERSION file; this machine's type where there is no such file.
    """
    with suppress(OSError, IndexError):
        return (folder / VERSION).read_text("utf-8").split()[1]
    return platform.machine()


SWITCH = Program("switchbench-switch", "lab/switch", "SWITCHBENCH_SWITCH")


def find_engine() -> Path:
    """Return the path of the engine, `switchbench-node`, that commands on this machine use."""
    return Program(ENGINE, "engine", ENGINE_VARIABLE).find()


PORT_BINDING = _PARENTS[1] / "hosts" / "port_binding.py"
"""Program that binds PCI ports of the host that executes it to a driver for DPDK."""


def configurations() -> Path:
    """Return the folder with the example configurations and `labs/`.

    `conf` in the source tree, or below `share/switchbench` in the prefix of this package.
    """
    for parent in _PARENTS:
        for folder in (parent / "conf", parent / "share" / "switchbench" / "conf"):
            if (folder / "labs").exists():
                return folder
    return Path("conf")


# --- signals --------------------------------------------------------------------------------------
# Temporary handlers for the signals that end a command.


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Handled:
    """Context in which `handler` receives SIGINT, SIGTERM and SIGHUP."""

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Store the handler; `__enter__` installs it."""
        self._handler = handler
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Install the handler for SIGINT, SIGTERM and SIGHUP."""
        for number in _SIGNALS:
            self._previous[number] = signal.signal(number, self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous signal handlers."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class Deferred(Handled):
    """Context that only records the first signal, and raises RunError at the second."""

    def __init__(self) -> None:
        """Prepare to record a signal; `__enter__` installs the handler."""
        super().__init__(self._note)
        self.name: str | None = None
        """Name of the received signal."""

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.name is not None:
            raise RunError(f"interrupted by signal {self.name}, received twice")
        self.name = signal.Signals(number).name


class Later:
    """Proxy for a module that is slow to import: the first use of an attribute imports it."""

    def __init__(self, name: str) -> None:
        """Store the module's name without importing the module."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Return an attribute of the module, importing it if necessary."""
        return getattr(import_module(self._name), attribute)
