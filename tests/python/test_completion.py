# SPDX-License-Identifier: BSD-3-Clause
"""Completion of words by bash, zsh and fish themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from switchbench.cli import manual
from switchbench.cli.main import COMMANDS, build_parser
from switchbench.config.rules import PROFILES

LIMIT_S = 20


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the shells' files."""
    folder = tmp_path_factory.mktemp("share")
    for shell, name in (("bash", "bash"), ("fish", "fish"), ("zsh", "_switchbench")):
        (folder / name).write_text(manual.script(build_parser(), shell))
    return folder


def needs(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")


def bash_offers(share: Path, line: str) -> set[str]:
    """Return what bash would offer for the last word."""
    script = """
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _shtab_switchbench
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    place = share / "bash"
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(place), *line.split(" ")],
        capture_output=True,
        text=True,
        check=True,
        cwd=share,
    )
    return {word for word in done.stdout.splitlines() if word}


def fish_offers(share: Path, line: str) -> set[str]:
    """Return what fish would offer for the last word."""
    needs("fish")
    place = share / "fish"
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {place}; complete -C '{line}'"],
        capture_output=True,
        text=True,
        check=True,
        cwd=share,
        env=os.environ | {"HOME": str(share), "XDG_DATA_HOME": str(share)},
    )
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


def test_zsh(share: Path, tmp_path: Path) -> None:
    """In a terminal, because zsh completes nowhere else: a word, and a value."""
    needs("zsh")
    setup = (
        f"PS1=; fpath=({share} $fpath); autoload -Uz compinit; compinit -u -D; print -r re''ady\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"}
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
    try:
        os.write(terminal, setup.encode())
        wait_for(terminal, "ready")
        os.write(terminal, b"switchbench lab do\t")
        wait_for(terminal, "down")
        os.write(terminal, b"\x15switchbench run --profile acc\t")
        wait_for(terminal, "acceptance")
    finally:
        os.write(terminal, b"\x15\nexit\n")
        os.close(terminal)
        os.waitpid(process, 0)


def wait_for(terminal: int, text: str) -> None:
    """Reads until the text has come."""
    seen = ""
    limit = time.monotonic() + LIMIT_S
    while text not in seen:
        assert time.monotonic() < limit, f"zsh said {seen!r} and not {text!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
