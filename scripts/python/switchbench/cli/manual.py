# SPDX-License-Identifier: BSD-3-Clause
"""Commands `help`, `explain` and `completion`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

from ..base.errors import explained, titles
from .main import build_parser

# Completion of an argument (folders or files), by the argument's placeholder in the help. An option
# with choices completes its choices.
_OFFERS = {
    **dict.fromkeys(("DIR", "[NAME=]DIR", "FOLDER", "RESULTS"), shtab.DIRECTORY),
    **dict.fromkeys(("FILE", "CONF", "SITE", "TOPOLOGY", "KEY"), shtab.FILE),
}


def help_command(args: argparse.Namespace) -> int:
    """Print the help of a command; exit with status 0, or 2 for an unknown command."""
    build_parser(args.commands).parse_args([*args.commands, "--help"])
    raise AssertionError("argparse ends after --help")


def explain_command(args: argparse.Namespace) -> int:
    """Print the explanation of a code or message, or all codes with their titles."""
    print(explained(" ".join(args.words)) if args.words else titles())
    return 0


def completion_command(args: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    print(script(build_parser(), args.shell))
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a shell for the command line that a parser reads."""
    for action in _actions(parser):
        if str(action.metavar) in _OFFERS:
            action.complete = _OFFERS[str(action.metavar)]  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of all its subparsers."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
