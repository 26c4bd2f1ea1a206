# SPDX-License-Identifier: BSD-3-Clause
"""Where the engine's binary is."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigurationError
from ..programs import ENGINE_VARIABLE, Program

BINARY = "switchbench-node"
_ENGINE = Program(BINARY, "engine", ENGINE_VARIABLE, ConfigurationError)


def find_engine() -> Path:
    """$SWITCHBENCH_NODE, the source tree's build, or $PATH: the first that there is."""
    return _ENGINE.find()
