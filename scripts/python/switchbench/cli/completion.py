# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench completion SHELL`.

Completion for bash, zsh and fish, made by shtab from the parser that prints --help.

The word that stands for a value in help says what is offered for it: a file or a folder. Options
with choices offer these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from .main import build_parser

_OFFERS = {
    **dict.fromkeys(("DIR", "[NAME=]DIR", "FOLDER", "RESULTS"), shtab.DIRECTORY),
    **dict.fromkeys(("FILE", "CONF", "SITE", "TOPOLOGY", "KEY"), shtab.FILE),
}

SHELLS = {
    "bash": "bash-completion/completions/switchbench",
    "zsh": "zsh/site-functions/_switchbench",
    "fish": "fish/vendor_completions.d/switchbench.fish",
}
"""By shell: where it looks, below `share`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("shell", choices=list(SHELLS), help="whose completion to print")


def main(args: argparse.Namespace) -> int:
    """Print the completion of a shell."""
    print(script(build_parser(), args.shell))
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return what a shell reads to complete the command that this parser reads."""
    for action in _actions(parser):
        if str(action.metavar) in _OFFERS:
            action.complete = _OFFERS[str(action.metavar)]  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of all parsers below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
