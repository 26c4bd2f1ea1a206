# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: one for each command, with every option, rendered without a warning."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from switchbench.cli import manual
from switchbench.cli.main import COMMANDS, build_parser


def rendered(text: str, path: Path) -> str:
    """Return the page as a person reads it; a warning of the formatter fails."""
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    path.write_text(text)
    done = subprocess.run(
        ["man", "--warnings=all", "-l", str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "120", "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == ""
    return re.sub(r"\s+", " ", re.sub(r"\u2010\n\s*", "", done.stdout))


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the flags of a command and of its parts."""
    found = {flag for one in parser._actions for flag in one.option_strings}
    for one in parser._actions:
        if isinstance(one, argparse._SubParsersAction):
            found |= {flag for part in one.choices.values() for flag in options(part)}
    return found


def test_every_command_has_a_page_with_its_options(tmp_path: Path) -> None:
    root = build_parser()
    pages = dict(manual.command_pages(root))
    assert pages.keys() == {"switchbench.1"} | {f"switchbench-{name}.1" for name in COMMANDS}
    (commands,) = (one for one in root._actions if isinstance(one, argparse._SubParsersAction))
    for file, text in pages.items():
        said = rendered(text, tmp_path / file)
        assert "NAME" in said
        name = file.removeprefix("switchbench-").removesuffix(".1")
        if name in commands.choices:  # --help stands there as -h
            flags = options(commands.choices[name]) - {"--help"}
            assert [flag for flag in flags if flag not in said] == []
