# SPDX-License-Identifier: BSD-3-Clause
"""Command line of `switchbench`: its subcommands, their arguments and their exit status.

A module with a subcommand NAME has `NAME_command(args) -> int`, which returns its exit status.
commands.toml has each subcommand's module and help, so that --help loads no module.
"""

from __future__ import annotations

import argparse
import errno
import gc
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
from ..base.errors import ConfigurationError, RunError, SwitchbenchError, printable, with_code

HELP = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
PROGRAM, SHARED = HELP.pop("switchbench"), HELP.pop("shared")
COMMANDS = {name: entry["summary"] for name, entry in HELP.items()}
INTERRUPTED = 130  # 128 + SIGINT, as in shells


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status. Every failure prints one sentence."""
    streams = Streams()
    gc.set_threshold(200_000)  # collect rarely: millions of objects of a summary stay in use
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
    except SystemExit:  # raised by argparse for --help or a wrong argument
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
        reason = (str(error).splitlines() or ["the system gave no more memory"])[-1]
        hint = ", or an incomplete installation" if isinstance(error, ImportError) else ""
        print(f"switchbench: too little memory{hint}: {reason}", file=sys.stderr)
        return RunError.status


class _Parser(argparse.ArgumentParser):
    """Argument parser whose errors escape control characters in quoted arguments."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def build_parser(words: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """Return a parser for a command line that contains the given words.

    The parser has arguments only for the commands in `words`: loading the modules of all commands
    would take longer than most commands run.
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
        types = getattr(module, "TYPES", {})
        if parts := HELP[name].get("commands"):
            below = command.add_subparsers(title="commands", metavar="|".join(parts), required=True)
            for word, entry in parts.items():
                part = below.add_parser(word, help=entry["summary"])
                part.set_defaults(parser=part, main=getattr(module, f"{name}_{word}_command"))
                _add_arguments(part, entry["arguments"], types)
            continue
        command.set_defaults(parser=command, main=getattr(module, f"{name}_command"))
        _add_arguments(command, HELP[name]["arguments"], types)
    return parser


class _OptionList(argparse.Action):
    """Action of argparse that appends (option, value) to a list, which keeps their order."""

    def __call__(self, _parser: Any, found: Any, value: Any, _option: str | None = None) -> None:
        setattr(found, self.dest, [*getattr(found, self.dest), (self.option_strings[0], value)])


_ARGUMENT = re.compile(
    r"(?P<beside>\| )?(?P<option>--[\w-]+)?(?:(?P<place>\w+):)?"
    r"(?: ?(?P<value>\S+?)(?P<times>(?<!,)\.\.\.|[*?!&])?)?(?: -> (?P<dest>\w+))?"
)
_PATHS = ("DIR", "FILE", "FOLDER", "KEY")


def _add_arguments(
    parser: argparse.ArgumentParser, text: str, types: dict[str, Callable[[str], Any]]
) -> None:
    """Add the arguments that a text of commands.toml declares to the parser of a command.

    `types` has functions that parse an argument's value, by option or placeholder.
    """
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
        more: dict[str, object] = {"help": words}
        if found["dest"]:
            more["dest"] = found["dest"]
        if value is None:
            more["action"] = "store_false" if option == f"--no-{found['dest']}" else "store_true"
        elif value.startswith("{"):
            more["choices"] = value[1:-1].split(",")
        else:
            reader = types.get(option or value, Path if value in _PATHS else str)
            more |= {"metavar": value, "type": _checked(option or value, types.get(value, reader))}
        if found["dest"] == "options":
            more |= {"action": _OptionList, "default": []}
        elif times == "*" and option:
            more |= {"action": "append", "default": []}
        elif times == "!":
            more["required"] = True
        elif times:
            more["nargs"] = {"...": "+", "&": argparse.REMAINDER}.get(times, times)
        if not found["beside"]:
            excludes = "".join(lines[number + 1 : number + 2]).startswith("| ")
            place = group.add_mutually_exclusive_group() if excludes else group
        place.add_argument(option or found["place"], **more)


def _checked(name: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return an argument's parser that calls `parse`, and turns ValueError into ConfigurationError.

    The error's message begins with the argument's name.
    """

    def checked(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None

    return checked


def _expanded(text: str) -> str:
    """Return a text in which `@NAME` is replaced by the shared arguments of this name."""
    return re.sub(r"^@(\w+)$", lambda name: _expanded(SHARED[name[1]]), text, flags=re.M)


class _Output(io.FileIO):
    """Raw output to a file descriptor; it stores the first error, and then discards all data."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write data; return the number of bytes written, after an error that of all bytes."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class Streams:
    """Standard output and standard error of a command, where errors of writing are ignored.

    A closed pipe, a full disk or a closed descriptor does not end a run; only the display is lost.
    """

    def __init__(self) -> None:
        """Open closed standard descriptors, so that no other file gets their numbers.

        Replace the two streams, unless another program (a test) has already done so.
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
        """Return why output was lost; None if none was lost, or if the reader closed the pipe."""
        with suppress(OSError):
            sys.stdout.flush()
        error = self._output.error if self._output else None
        if error is None or error.errno in (errno.EPIPE, errno.EIO):  # EIO: the terminal was closed
            return None
        return f"standard output can't be written: {error.strerror}"


def _stream(descriptor: int, old: io.TextIOWrapper | Any) -> tuple[_Output, io.TextIOWrapper]:
    """Return a raw output to a descriptor, and a text stream that writes to this output.

    The stream writes `?` for characters that its encoding does not have.
    """
    raw = _Output(descriptor)
    buffered = io.BufferedWriter(raw)
    lines = descriptor == 2 or os.isatty(descriptor)
    encoding = getattr(old, "encoding", None) or "utf-8"
    return raw, io.TextIOWrapper(buffered, encoding, "replace", line_buffering=lines)


if __name__ == "__main__":
    sys.exit(main())
