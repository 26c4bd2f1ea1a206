# SPDX-License-Identifier: BSD-3-Clause
"""The `switchbench` command: a table of commands, and one map from error to exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Collection, Sequence
from keyword import iskeyword
from typing import NoReturn

from .. import __version__
from ..base.errors import SwitchbenchError
from ..base.text import printable
from .command_list import COMMANDS

DESCRIPTION = "Does this network still hold when every port is busy at once, and where not?"
EXAMPLES = """\
examples:
  switchbench plan conf/four-matrices.yaml          what would run, for how long, between whom
  switchbench run conf/four-matrices.yaml           run it on the lab of network namespaces
  switchbench run --site two-modules --profile quick
  switchbench COMMAND --help                        more examples for each command

exit status: 0 done and PASS, 1 FAIL, 2 invalid configuration or arguments,
3 the run could not be completed (what was measured is kept), 4 INCONCLUSIVE"""

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; every failure that a person can act on is one sentence."""
    _write_what_can_be()
    words = sys.argv[1:] if argv is None else argv
    args, unknown = build_parser(words).parse_known_args(words)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    command: Callable[[argparse.Namespace], int] = args.main
    try:
        return command(args)
    except SwitchbenchError as error:
        print(f"switchbench: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("switchbench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not complain about it when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _write_what_can_be() -> None:
    """A character that a terminal's encoding lacks is shown as `?` and ends no run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


class _Parser(argparse.ArgumentParser):
    """Arguments are quoted in errors, as a terminal can show them."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def build_parser(words: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """The parser of a line with these words. Commands that are not among them are names alone: to
    load them all takes longer than most of them do."""
    parser = _Parser(
        prog="switchbench",
        description=DESCRIPTION,
        epilog=EXAMPLES,
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
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(parser=command, main=module.main)
        module.add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
