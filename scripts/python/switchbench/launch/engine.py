# SPDX-License-Identifier: BSD-3-Clause
"""Where the engine's binary is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ..errors import ConfigurationError

BINARY = "switchbench-node"
VARIABLE = "SWITCHBENCH_NODE"


def find_engine() -> Path:
    """$SWITCHBENCH_NODE, the source tree's build, or $PATH: the first that there is."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise ConfigurationError(f"{VARIABLE}={named} can't be executed")
        return Path(named).absolute()
    for parent in Path(__file__).resolve().parents:
        built = parent / "build" / "engine" / BINARY
        if os.access(built, os.X_OK):
            return built
    found = shutil.which(BINARY)
    if found is None:
        raise ConfigurationError(
            f"{BINARY} is not built: `meson setup build && ninja -C build` in the project, "
            f"or name it in {VARIABLE}"
        )
    return Path(found)
