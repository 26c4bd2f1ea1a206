# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: made of the parser, of --help and of the configuration's page; no warning."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from configs import PROJECT
from switchbench.cli.command_list import COMMANDS
from switchbench.cli.main import build_parser
from switchbench.packaging import manual
from switchbench.packaging.roff import Page

HELP = """\
usage: switchbench-node [FILE] [--plan]
       switchbench-node --restore

One node: reads documents, and
writes records.

  --plan         print the plan and
                 send nothing
  --restore      give back

By hand:
  switchbench-node job.yaml    # on each
"""


@pytest.fixture(scope="module")
def root() -> argparse.ArgumentParser:
    return build_parser()


def pages(root: argparse.ArgumentParser) -> list[Page]:
    text = (PROJECT / "doc" / "reference" / "configuration.md").read_text()
    return [
        *manual.command_pages(root),
        manual.program_page("switchbench-node", HELP),
        manual.configuration_page(text),
    ]


def rendered(page: Page, folder: Path) -> str:
    """The page as a person reads it; a warning of the formatter fails."""
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    path = folder / page.file
    path.write_text(page.render())
    done = subprocess.run(
        ["man", "--warnings=all", "-l", str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == ""
    return re.sub(r"\s+", " ", re.sub(r"\u2010\n\s*", "", done.stdout))


def below(parser: argparse.ArgumentParser) -> dict[str, list[argparse.ArgumentParser]]:
    """By command: its parser, and those of its parts."""
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return {
        name: [command, *(part for parts in below(command).values() for part in parts)]
        for one in found
        for name, command in one.choices.items()
    }


def test_every_command_has_a_page(root: argparse.ArgumentParser) -> None:
    files = {page.file for page in manual.command_pages(root)}
    assert files == {"switchbench.1"} | {f"switchbench-{name}.1" for name in COMMANDS}


def test_every_option_is_in_its_page(root: argparse.ArgumentParser, tmp_path: Path) -> None:
    by_file = {page.file: page for page in manual.command_pages(root)}
    for name in COMMANDS:
        text = rendered(by_file[f"switchbench-{name}.1"], tmp_path)
        options = [one for parts in below(root)[name] for one in parts._actions]
        flags = {flag for one in options for flag in one.option_strings}
        assert [flag for flag in flags - {"--help"} if flag not in text] == []  # -h is there


def test_all_pages_are_rendered_without_a_warning(
    root: argparse.ArgumentParser, tmp_path: Path
) -> None:
    for page in pages(root):
        text = rendered(page, tmp_path)
        assert "NAME" in text
        filled = re.sub(r"^\.nf$.*?^\.fi$", "", page.render(), flags=re.MULTILINE | re.DOTALL)
        assert "`" not in filled, page.file


def test_a_programs_help(tmp_path: Path) -> None:
    text = rendered(manual.program_page("switchbench-node", HELP), tmp_path)
    assert "SYNOPSIS switchbench-node [FILE] [--plan] switchbench-node --restore DESC" in text
    assert "OPTIONS --plan print the plan and send nothing --restore give back NOTES" in text
    assert "By hand: switchbench-node job.yaml # on each" in text


def test_every_key_of_the_configuration(tmp_path: Path) -> None:
    markdown = (PROJECT / "doc" / "reference" / "configuration.md").read_text()
    text = rendered(manual.configuration_page(markdown), tmp_path)
    keys = re.findall(r"^\| `([\w.]+)`", markdown, re.MULTILINE)
    assert len(keys) > 50
    assert [key for key in keys if key not in text] == []


def test_what_roff_would_take_for_its_own() -> None:
    page = Page("x", 1, ".TH X 1")
    page.paragraph(".hidden `a-b` \\n")
    page.verbatim(".TH\n'quoted\n  kept")
    lines = page.render().splitlines()
    assert "\\&.hidden \\fBa\\-b\\fP \\en" in lines
    assert "\\&.TH" in lines
    assert "\\&'quoted" in lines
