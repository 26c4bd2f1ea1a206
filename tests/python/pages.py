# SPDX-License-Identifier: BSD-3-Clause
"""The pages of doc/reference that have a source: the command line and the results' keys.

    .venv/bin/python tests/python/pages.py

writes them; tests fail while one is out of date.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from switchbench.cli.main import build_parser
from switchbench.records.document.schema import summary_schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "doc" / "reference"
HEAD = "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n<!-- made by tests/python/pages.py -->\n"

PLAIN = ("number", "integer", "string", "boolean", "object", "any")

# An option that as many commands have, in the same words, is described once.
SHARED = 3

COMMAND_LINE = """\
# Command line

`switchbench COMMAND --help` says the same, with examples; so do the manual pages. Exit status: 0
done and PASS, 1 FAIL, 2 invalid input, 3 not completed (what was measured is kept), 4 INCONCLUSIVE.
When several apply, the order is 2, 3, 1, 4.
"""

RESULTS = """\
# Results

A run leaves one directory. `switchbench verify DIR` checks it, `table`, `report` and `compare` read
it, on any machine.

| file | holds |
| --- | --- |
| `configuration.yaml` | the effective configuration, which can be run again |
| `plan.json` | the trials that were made of it |
| `records.ndjson` | all records of the nodes, one JSON object a line |
| `nodes.log` | the log of the nodes |
| `summary.json` | what was concluded, by the schema below |
| `report.html` | the [report](../how-to/report.md) |
| `switch.ndjson` | counts of a [modelled switch](model.md) |
| `samples.parquet` | [single times](messages.md) of messages |
| `verdict.xml` | the verdict of [clauses](acceptance.md) as JUnit XML |
| `manifest.json` | SHA-256 of each of these files; a signature is of this file |

`python -m switchbench.records.document.schema` prints the JSON Schema of `summary.json`, with the
meaning of every key. [Measures](measures.md) has the formulas. `null` means *not observed*.
"""


def cells(*texts: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


# --- the command line ----------------------------------------------------------------------------

Parser = argparse.ArgumentParser
Option = tuple[str, str]  # as it is written, and its help


def command_line() -> str:
    """Every command with its arguments and options."""
    commands = dict(_commands(build_parser()))
    uses = Counter(option for command in commands.values() for option in _options(command))
    shared = [option for option, count in uses.items() if count >= SHARED]
    parts = [HEAD + COMMAND_LINE, "## Options of several commands\n", _table(shared)]
    for name, command in commands.items():
        options = list(_options(command))
        positional = [a for a in command._get_positional_actions() if not _below(a)]
        rows = [(_name(command, action), _help(command, action)) for action in positional]
        also = ", ".join(f"`{option[0].split()[0]}`" for option in options if option in shared)
        parts += [
            f"## {name}\n",
            _about(command),
            _table([*rows, *(option for option in options if option not in shared)]),
            f"Also: {also}.\n" if also else "",
        ]
    return "\n".join(part for part in parts if part)


def _below(action: argparse.Action) -> dict[str, Parser]:
    """The commands that an argument chooses among."""
    return dict(action.choices or {}) if isinstance(action, argparse._SubParsersAction) else {}


def _commands(parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Those below a parser, by their whole names; what has no description takes its summary."""
    for action in parser._actions:
        said = {choice.dest: choice.help for choice in getattr(action, "_choices_actions", ())}
        for word, command in _below(action).items():
            command.description = command.description or said.get(word)
            yield command.prog, command
            yield from _commands(command)


def _about(command: Parser) -> str:
    """Its first sentence, and its form without options."""
    words = [_name(command, a) for a in command._get_positional_actions() if not _below(a)]
    about = re.split(r"\n\s*\n", command.description or "")[0].rstrip(".")
    said = f"{about[:1].upper()}{about[1:]}.\n\n" if about else ""
    return f"{said}```text\n{' '.join([command.prog, *words])}\n```\n"


def _options(command: Parser) -> Iterator[Option]:
    for action in command._get_optional_actions():
        if action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
            yield _name(command, action), _help(command, action)


def _name(command: Parser, action: argparse.Action) -> str:
    """`--load LOAD`, or an argument by its place."""
    formatter = command._get_formatter()
    metavar = formatter._get_default_metavar_for_optional(action)
    if not action.option_strings:
        return formatter._format_args(action, action.dest)
    value = "" if action.nargs == 0 else f" {formatter._format_args(action, metavar)}"
    return f"{', '.join(action.option_strings)}{value}"


def _help(command: Parser, action: argparse.Action) -> str:
    return re.sub(r"\s+", " ", command._get_formatter()._expand_help(action))


def _table(options: Iterable[Option]) -> str:
    rows = [cells(f"`{name}`", words) for name, words in options]
    return "\n".join([cells("argument", "meaning"), cells("---", "---"), *rows, ""]) if rows else ""


# --- the results' keys ---------------------------------------------------------------------------


def results() -> str:
    """The keys of summary.json: those of the top level in words, all others by their types."""
    schema = summary_schema()
    parts = [HEAD + RESULTS, "## summary.json\n"]
    rows = [
        cells(f"`{key}`", _type(value), value.get("description", ""))
        for key, value in schema["properties"].items()
    ]
    head = [cells("key", "type", "meaning"), cells("---", "---", "---")]
    parts += ["\n".join([*head, *rows, ""]), "## Types\n\nPlain values stand without a type.\n"]
    named = {name: part for name, part in schema["$defs"].items() if part.get("properties")}
    rows = [cells(f"`{name}`", ", ".join(_keys(part))) for name, part in sorted(named.items())]
    parts.append("\n".join([cells("type", "keys"), cells("---", "---"), *rows, ""]))
    return "\n".join(parts)


def _keys(part: Mapping[str, Any]) -> Iterator[str]:
    """Plain values without their type: numbers, texts, truth values."""
    for key, value in part["properties"].items():
        shown = _type(value)
        plain = shown.removesuffix(" or null") in PLAIN
        yield f"`{key}`" if plain else f"`{key}` ({shown})"


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(one) for one in value["anyOf"]))
    if "enum" in value or "const" in value:
        return "one of " + " ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    return str(value.get("type", "any"))


PAGES = {"command-line.md": command_line, "results.md": results}


def main() -> None:
    """Writes all of them."""
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
