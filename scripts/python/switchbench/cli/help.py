# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench help COMMAND`: the same as `switchbench COMMAND --help`."""

from __future__ import annotations

import argparse

from .main import build_parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("commands", metavar="COMMAND", nargs="*", help="none: all of them")


def main(args: argparse.Namespace) -> int:
    """Print the help of a command and end with status 0, or 2 for an unknown command."""
    build_parser(args.commands).parse_args([*args.commands, "--help"])
    raise AssertionError("argparse ends after --help")
