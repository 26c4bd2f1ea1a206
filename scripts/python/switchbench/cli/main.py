# SPDX-License-Identifier: BSD-3-Clause
"""The `switchbench` command: a table of commands, and one map from error to exit status.

A module of a command COMMAND has `COMMAND_arguments(parser)` and `COMMAND_command(args) -> int`,
its exit status. commands.toml has what a command does, its module, and what its help says, so that
--help loads none of them.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..base.errors import ConfigurationError, RunError, SwitchbenchError, printable

HELP = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
PROGRAM, SHARED = HELP.pop("switchbench"), HELP.pop("shared")
COMMANDS = {name: entry["summary"] for name, entry in HELP.items()}
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
        from ..base.codes import with_code

        print(f"switchbench: {with_code(error)}", file=sys.stderr)
        return error.status
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        name = printable(str(error.filename))
        print(f"switchbench: {name[:60]}...: the name is too long [SB-FILE]", file=sys.stderr)
        return ConfigurationError.status
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
    form: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = _Parser(
        prog="switchbench", description=PROGRAM["summary"], epilog=PROGRAM["notes"], **form
    )
    parser.add_argument("--version", action="version", version=f"switchbench {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name not in words:
            subparsers.add_parser(name, help=summary)
            continue
        described = f"{summary[0].upper()}{summary[1:]}."
        notes = HELP[name]["notes"]
        command = subparsers.add_parser(
            name, help=summary, description=described, epilog=notes, **form
        )
        module = importlib.import_module(f".{HELP[name]['module']}", __package__)
        command.set_defaults(parser=command, main=getattr(module, f"{name}_command"))
        _add_arguments(command, HELP[name]["arguments"], getattr(module, "TYPES", {}))
        getattr(module, f"{name}_arguments", lambda _: None)(command)
    return parser


_ARGUMENT = re.compile(
    r"(?P<beside>\| )?(?P<option>--[\w-]+)?(?:(?P<place>\w+):)?"
    r"(?: ?(?P<value>\S+?)(?P<times>(?<!,)\.\.\.|[*?!])?)?(?: -> (?P<dest>\w+))?"
)
_PATHS = ("DIR", "FILE", "FOLDER", "KEY")


def _add_arguments(
    parser: argparse.ArgumentParser, text: str, types: dict[str, Callable[[str], Any]]
) -> None:
    """Add the arguments of a text of commands.toml; `types` read values, by option or name."""
    group: Any = parser
    place: Any = parser
    lines = re.sub(r"\n  +", " ", _expanded(text)).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            group = parser.add_argument_group(line[2:]) if line[2:] else parser
            continue
        written, _, words = line.partition("  ")
        found = _ARGUMENT.fullmatch(written)
        assert found is not None, line
        option, value, times = found["option"], found["value"], found["times"]
        more: dict[str, Any] = {"help": words}
        if found["dest"]:
            more["dest"] = found["dest"]
        if value is None:
            more["action"] = "store_false" if option == f"--no-{found['dest']}" else "store_true"
        elif value.startswith("{"):
            more["choices"] = value[1:-1].split(",")
        else:
            reader = types.get(option or value, Path if value in _PATHS else str)
            more |= {"metavar": value, "type": types.get(value, reader)}
        if times == "*" and option:
            more |= {"action": "append", "default": []}
        elif times == "!":
            more["required"] = True
        elif times:
            more["nargs"] = "+" if times == "..." else times
        if not found["beside"]:
            excludes = "".join(lines[number + 1 : number + 2]).startswith("| ")
            place = group.add_mutually_exclusive_group() if excludes else group
        place.add_argument(option or found["place"], **more)


def _expanded(text: str) -> str:
    """Return a text with the shared arguments in place of their names."""
    return re.sub(r"^@(\w+)$", lambda name: _expanded(SHARED[name[1]]), text, flags=re.M)


class _Output(io.FileIO):
    """A descriptor to write to. What cannot be written is dropped, and the reason is kept."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Return the bytes that were written; all of them after an error."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class Streams:
    """Standard output and standard error while a command runs.

    A reader that goes, a full disk or a closed descriptor ends no run and changes nothing but what
    is shown.
    """

    def __init__(self) -> None:
        """Open what is closed, so that no file of a command takes a descriptor of theirs.

        Replace the two streams unless another program (a test) already did.
        """
        for descriptor in (0, 1, 2):
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
        self._output: _Output | None = None
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        if sys.stdout is sys.__stdout__:
            self._output, sys.stdout = _stream(1, sys.__stdout__)
        if sys.stderr is sys.__stderr__:
            _, sys.stderr = _stream(2, sys.__stderr__)

    def lost(self) -> str | None:
        """Return the reason why output was lost; None if all was written or its reader went."""
        with suppress(OSError):
            sys.stdout.flush()
        error = self._output.error if self._output else None
        if error is None or error.errno in (errno.EPIPE, errno.EIO):  # EIO: a terminal was closed
            return None
        return f"standard output can't be written: {error.strerror}"


def _stream(descriptor: int, old: io.TextIOWrapper | Any) -> tuple[_Output, io.TextIOWrapper]:
    """Characters that the encoding lacks are shown as `?`."""
    raw = _Output(descriptor)
    buffered = io.BufferedWriter(raw)
    lines = descriptor == 2 or os.isatty(descriptor)
    encoding = getattr(old, "encoding", None) or "utf-8"
    return raw, io.TextIOWrapper(buffered, encoding, "replace", line_buffering=lines)


if __name__ == "__main__":
    sys.exit(main())
