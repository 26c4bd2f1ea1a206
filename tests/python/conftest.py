# SPDX-License-Identifier: BSD-3-Clause
"""What tests have in common: commands that are run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

from hostkit import in_path, program, ssh_script
from switchbench.cli.main import main

hypothesis.settings.register_profile("busy machine", deadline=None)
hypothesis.settings.load_profile("busy machine")


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


class Command:
    """`switchbench WORDS` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Begin without an output."""
        self._capsys = capsys

    def __call__(self, *words: object) -> Said:
        """Run it to its end."""
        self._capsys.readouterr()
        status = main([str(word) for word in words])
        return Said(status, *self._capsys.readouterr())

    def prints(self, *words: object, status: int = 0) -> str:
        """Return what a command prints that ends so."""
        said = self(*words)
        assert said.status == status, said.err
        return said.out

    def refuses(self, *words: object, status: int = 2) -> str:
        """Return the one sentence of a command that does nothing."""
        said = self(*words)
        assert (said.status, said.out, said.err.count("\n")) == (status, "", 1), said
        return said.err


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an ssh that stays on this machine."""
    return program(in_path(tmp_path / "bin", monkeypatch) / "ssh", ssh_script(""))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run commands."""
    return Command(capsys)
