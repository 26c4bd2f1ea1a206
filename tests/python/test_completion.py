# SPDX-License-Identifier: BSD-3-Clause
"""Completion of words by bash and fish themselves; shtab makes the scripts, zsh's too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from switchbench.cli import manual
from switchbench.cli.main import COMMANDS, build_parser
from switchbench.config.rules import PROFILES


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the shells' files."""
    folder = tmp_path_factory.mktemp("share")
    for shell, name in (("bash", "bash"), ("fish", "fish")):
        (folder / name).write_text(manual.script(build_parser(), shell))
    return folder


def bash_offers(share: Path, line: str) -> set[str]:
    """Return what bash would offer for the last word."""
    script = """
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _shtab_switchbench
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    words = ["bash", "-c", script, "bash", str(share / "bash"), *line.split(" ")]
    done = runs.program(*words, cwd=share, check=True)
    return {word for word in done.stdout.splitlines() if word}


def fish_offers(share: Path, line: str) -> set[str]:
    """Return what fish would offer for the last word."""
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    home = {"HOME": str(share), "XDG_DATA_HOME": str(share)}
    words = ["fish", "--no-config", "-c", f"source {share / 'fish'}; complete -C '{line}'"]
    done = runs.program(*words, cwd=share, env=os.environ | home, check=True)
    return {offer.split("\t")[0] for offer in done.stdout.splitlines()}


@pytest.mark.parametrize("offers", [bash_offers, fish_offers])
def test_commands_options_and_words(share: Path, offers: Callable[[Path, str], set[str]]) -> None:
    assert set(COMMANDS) <= offers(share, "switchbench ")
    assert {"up", "down", "status", "exec"} <= offers(share, "switchbench lab ")
    assert {"--set", "--name"} <= offers(share, "switchbench lab up --")
    assert "--all" not in offers(share, "switchbench lab up --")
    assert offers(share, "switchbench run --profile ") == set(PROFILES)


@pytest.mark.parametrize("offers", [bash_offers, fish_offers])
def test_files_and_folders(share: Path, offers: Callable[[Path, str], set[str]]) -> None:
    (share / "mine.yaml").touch()
    (share / "mine").mkdir(exist_ok=True)
    assert "mine.yaml" in offers(share, "switchbench run mi")
    out = {name.rstrip("/") for name in offers(share, "switchbench run --out mi")}
    assert out == {"mine"}
    assert {name.rstrip("/") for name in offers(share, "switchbench compare mi")} == {"mine"}
