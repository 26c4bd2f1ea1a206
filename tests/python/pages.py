# SPDX-License-Identifier: BSD-3-Clause
"""The pages of doc that have a source, whole (suites) or in part, between marks.

    .venv/bin/python tests/python/pages.py

writes them; tests fail while one is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import measures_page
import standards_page
from switchbench.cli.main import build_parser
from switchbench.records.schema import TABLES, TITLES
from switchbench.records.summary_form import WORDS, summary_schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "doc" / "reference"
HEAD = "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n<!-- made by tests/python/pages.py -->\n"

PLAIN = ("number", "integer", "string", "boolean", "object", "any")

# An argument that as many commands have, in the same words, is described once.
SHARED = 3
CHOOSES = "--lab"  # an option of every command that takes a configuration


def cells(*texts: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


def rows_below(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [cells(*head), cells(*["---"] * len(head)), *(cells(*row) for row in rows)]
    return "\n".join([*lines, ""])


def with_made(page: str, **made: str) -> str:
    """Return the page with each part put anew between its marks."""
    for name, text in made.items():
        begin, end = f"<!-- made: {name} -->\n", "<!-- end -->\n"
        before, _, after = page.partition(begin)
        page = f"{before}{begin}\n{text.strip()}\n\n{end}{after.partition(end)[2]}"
    return page


# --- the command line ----------------------------------------------------------------------------

Parser = argparse.ArgumentParser
Option = tuple[str, str]  # an argument as it is written, and its help


def command_line(page: str) -> str:
    """Return the page with every command, its arguments and options."""
    commands = dict(_commands(build_parser()))
    takes = {name: set(_arguments(command)) for name, command in commands.items()}
    uses = Counter(argument for command in commands.values() for argument in _arguments(command))
    shared = [argument for argument, count in uses.items() if count >= SHARED]
    users = [taken for taken in takes.values() if any(a[0].startswith(CHOOSES) for a in taken)]
    choice = [a for a in shared if all(a in taken for taken in users)]  # of a configuration
    others = [a for a in shared if a not in choice]
    parts = [
        *("## Arguments of several commands\n", _table(others)),
        *("## Choice of a configuration\n", _table(choice)),
    ]
    for name, command in commands.items():
        also = [f"`{a[0].split()[0]}`" for a in others if a in takes[name]]
        also += ["[choice of a configuration](#choice-of-a-configuration)"] * (
            set(choice) <= takes[name]
        )
        parts += [
            f"## {name}\n",
            _about(command),
            _table(a for a in _arguments(command) if a not in shared),
            f"Also: {', '.join(also)}.\n" if also else "",
        ]
    return with_made(page, commands="\n".join(part for part in parts if part))


def _below(action: argparse.Action) -> dict[str, Parser]:
    """Return the commands that an argument chooses among."""
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
    """Return a command's first sentence, and its form without options."""
    words = [_name(command, a) for a in command._get_positional_actions() if not _below(a)]
    about = re.split(r"\n\s*\n", command.description or "")[0].rstrip(".")
    said = f"{about[:1].upper()}{about[1:]}.\n\n" if about else ""
    return f"{said}```text\n{' '.join([command.prog, *words])}\n```\n"


def _arguments(command: Parser) -> Iterator[Option]:
    """Return the arguments by their place, then the options."""
    for action in command._get_positional_actions():
        if not _below(action):
            yield _name(command, action), _help(command, action)
    for action in command._get_optional_actions():
        if action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
            yield _name(command, action), _help(command, action)


def _name(command: Parser, action: argparse.Action) -> str:
    """Return an option's name, as `--load LOAD`, or an argument's."""
    formatter = command._get_formatter()
    metavar = formatter._get_default_metavar_for_optional(action)
    if not action.option_strings:
        return formatter._format_args(action, action.dest)
    value = "" if action.nargs == 0 else f" {formatter._format_args(action, metavar)}"
    return f"{', '.join(action.option_strings)}{value}"


def _help(command: Parser, action: argparse.Action) -> str:
    return re.sub(r"\s+", " ", command._get_formatter()._expand_help(action))


def _table(options: Iterable[Option]) -> str:
    rows = [(f"`{name}`", words) for name, words in options]
    return rows_below(("argument", "meaning"), rows) if rows else ""


# --- the results' keys ---------------------------------------------------------------------------


def results(page: str) -> str:
    """Return the page with the top-level keys of summary.json, and the list of tables."""
    keys = (
        (f"`{key}`", _type(value), value.get("description", ""))
        for key, value in summary_schema()["properties"].items()
    )
    tables = ((f"`{name}`", TITLES[name]) for name in TABLES)
    return with_made(
        page,
        summary=rows_below(("key", "type", "meaning"), keys),
        tables=rows_below(("table", "holds"), tables),
    )


def types(page: str) -> str:
    """Return the page with the columns of each table, and the keys of each type of summary.json."""
    named = sorted(summary_schema()["$defs"].items())
    rows = ((f"`{name}`", ", ".join(_keys(part))) for name, part in named if part.get("properties"))
    return with_made(
        page,
        columns="\n".join(map(_table_columns, TABLES)),
        types=rows_below(("type", "keys"), rows),
    )


_KEYS = ("trial", "repeat", "network", "phase", "src", "dst")  # described once
_OWN_KEY = {"ports": "port", "phases": "node", "histograms": "kind"}
_OF_TRANSPORT = ("not tcp", "not verbs")  # when a column is null: only its name is on the page


def _table_columns(name: str) -> str:
    """Return the columns of one table; what both ends of a flow have stands in one row."""
    rows: dict[str, tuple[list[str], str, str]] = {}
    special: dict[str, list[str]] = {}
    for column in TABLES[name]:
        if column.null in _OF_TRANSPORT:
            special.setdefault(column.null.removeprefix("not "), []).append(f"`{column.name}`")
        elif column.name not in _KEYS:
            both = name == "flows" and column.key
            meaning = (
                column.meaning.replace(" sent", " sent or received") if both else column.meaning
            )
            row = rows.setdefault(column.key or column.name, ([], column.unit, meaning))
            row[0].append(f"`{column.name}`")
    keys = ", ".join(f"`{c.name}`" for c in TABLES[name] if c.name in (*_KEYS, _OWN_KEY.get(name)))
    body = (("<br>".join(names), unit, meaning) for names, unit, meaning in rows.values())
    others = [f"\nOf {kind}: {', '.join(names)}." for kind, names in special.items()]
    about = f"## {name}\n\n{TITLES[name]}. Keys: {keys}.\n"
    table = rows_below(("column", "unit", "meaning"), body)
    return "\n".join([about, table.removesuffix("\n"), *others, ""])


def _keys(part: Mapping[str, Any]) -> Iterator[str]:
    """Plain values without their type: numbers, texts, truth values."""
    for key, value in part["properties"].items():
        shown = _type(value)
        plain = shown.removesuffix("?") in PLAIN
        yield f"`{key}`" if plain else f"`{key}` ({shown})"


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    if "anyOf" in value:
        some = dict.fromkeys(_type(one) for one in value["anyOf"])
        null = "null" in some
        return " or ".join(one for one in some if one != "null") + "?" * null
    if "enum" in value or "const" in value:
        return " ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return f"{_type(value.get('items', {}))}\\[]"
    return str(value.get("type", "any"))


PAGES = {name: HEAD + text for name, text in standards_page.pages().items()}
# Pages of which a part has a source, and what makes it anew in the page.
PARTS = {
    "command-line.md": command_line,
    "results.md": results,
    "../developer/summary.md": types,
    "measures.md": measures_page.refreshed,
    "standards.md": standards_page.refreshed,
    "../developer/conformance.md": standards_page.conformance,
}


def main() -> None:
    """Writes all of them, and the words of measures.md that the package brings."""
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text, "utf-8")
    for name, refreshed in PARTS.items():
        (FOLDER / name).write_text(refreshed((FOLDER / name).read_text("utf-8")), "utf-8")
    words = measures_page.parse((FOLDER / "measures.md").read_text("utf-8"))
    target = WORDS
    target.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
