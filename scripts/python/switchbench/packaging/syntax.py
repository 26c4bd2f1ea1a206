# SPDX-License-Identifier: BSD-3-Clause
"""The command's syntax as plain values, read from the parser that also prints --help: the one
source of manual pages and of completion."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """An option, or with no flags an argument by its place."""

    flags: tuple[str, ...]
    value: str  # what stands for its value in help, as KEY=VALUE; "" where it takes none
    wanted: str  # the value as a synopsis has it: "[CONF]", "ARG ..."
    choices: tuple[str, ...]
    help: str
    repeated: bool = False


@dataclass(frozen=True)
class Command:
    """A command, with those below it."""

    name: str  # "lab up"; "" for `switchbench` itself
    summary: str  # as the list of commands has it
    description: str
    epilog: str
    options: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]

    def walk(self) -> Iterator[Command]:
        """This command and all below."""
        yield self
        for command in self.commands:
            yield from command.walk()


def read(parser: argparse.ArgumentParser, name: str = "", summary: str = "") -> Command:
    """The syntax of a parser."""
    options, arguments, commands = [], [], []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands += [
                read(below, f"{name} {word}".strip(), summaries.get(word, ""))
                for word, below in action.choices.items()
            ]
        elif action.option_strings:
            options.append(_argument(parser, action))
        else:
            arguments.append(_argument(parser, action))
    return Command(
        name,
        summary,
        parser.description or "",
        parser.epilog or "",
        tuple(options),
        tuple(arguments),
        tuple(commands),
    )


def _argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Argument:
    choices = tuple(str(choice) for choice in action.choices or ())
    value = "" if action.nargs == 0 else _value(action, choices)
    return Argument(
        tuple(action.option_strings),
        value,
        _wanted(value, action.nargs),
        choices,
        (action.help or "") % {**vars(action), "prog": parser.prog},
        isinstance(action, argparse._AppendAction),
    )


def _value(action: argparse.Action, choices: tuple[str, ...]) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar:
        return action.metavar
    if choices:
        return "{" + ",".join(choices) + "}"
    return action.dest.upper()


def _wanted(value: str, nargs: int | str | None) -> str:
    forms = {
        argparse.OPTIONAL: "[{0}]",
        argparse.ZERO_OR_MORE: "[{0} ...]",
        argparse.ONE_OR_MORE: "{0} [{0} ...]",
        argparse.REMAINDER: "{0} ...",
    }
    return forms.get(str(nargs), "{0}").format(value)
