# SPDX-License-Identifier: BSD-3-Clause
"""What tests have in common: rows of data, and commands that are run in this process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
import yaml

from hostkit import in_path, program, ssh_script
from switchbench.cli.main import main

hypothesis.settings.register_profile("busy machine", deadline=None)
hypothesis.settings.load_profile("busy machine")

ROWS = Path(__file__).parent / "data" / "rows"


@cache
def tables(module: str) -> dict[str, list[list[Any]]]:
    """Return the tables of rows of a module's tests, by test: the first row names the columns."""
    found: dict[str, list[list[Any]]] = yaml.load(
        (ROWS / f"{module}.yaml").read_text(), yaml.CSafeLoader
    )
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is marked `rows` with each row of its table in data/rows."""
    if metafunc.definition.get_closest_marker("rows"):
        columns, *rows = tables(metafunc.module.__name__)[metafunc.definition.originalname]
        metafunc.parametrize(columns, rows)


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
