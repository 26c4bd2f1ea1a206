# SPDX-License-Identifier: BSD-3-Clause
"""What tests of commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from switchbench.cli.main import main


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `switchbench WORDS` in this process."""

    def run(*words: object) -> Said:
        capsys.readouterr()
        status = main([str(word) for word in words])
        return Said(status, *capsys.readouterr())

    return run
