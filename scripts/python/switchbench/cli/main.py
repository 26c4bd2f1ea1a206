# SPDX-License-Identifier: BSD-3-Clause
"""The `switchbench` command: a table of commands, and one map from error to exit status."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Collection, Sequence
from keyword import iskeyword
from typing import NoReturn

from .. import __version__
from ..base.errors import RunError, SwitchbenchError, printable
from .command_list import COMMANDS, HELP, PROGRAM
from .output import Streams

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; every failure is one sentence."""
    streams = Streams()
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
    except SystemExit:  # argparse's, of --help or a wrong argument
        if streams.lost() is None:
            raise
        status = 0
    lost = streams.lost()
    if lost is not None:
        print(f"switchbench: {lost}", file=sys.stderr)
        return status or RunError.status
    return status


def _run(words: Sequence[str]) -> int:
    try:
        args, unknown = build_parser(words).parse_known_args(words)
        if unknown:
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        command: Callable[[argparse.Namespace], int] = args.main
        return command(args)
    except SwitchbenchError as error:
        print(f"switchbench: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("switchbench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (MemoryError, ImportError, RuntimeError, SystemError) as error:
        if type(error) is RuntimeError and "new thread" not in str(error):
            raise
        reason = (str(error).splitlines() or ["no more memory was given"])[-1]
        hint = ", or an incomplete installation" if isinstance(error, ImportError) else ""
        print(f"switchbench: too little memory{hint}: {reason}", file=sys.stderr)
        return RunError.status


class _Parser(argparse.ArgumentParser):
    """Arguments are quoted in errors, as a terminal can show them."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def build_parser(words: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """Return the parser of a line with these words.

    Commands that are not among them are names alone: to load them all takes longer than most of
    them do.
    """
    parser = _Parser(
        prog="switchbench",
        description=PROGRAM["summary"],
        epilog=PROGRAM["notes"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"switchbench {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name not in words:
            subparsers.add_parser(name, help=summary)
            continue
        module = importlib.import_module(
            f".{name}_" if iskeyword(name) else f".{name}", __package__
        )
        command = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=HELP[name]["notes"],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(parser=command, main=module.main)
        module.add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
