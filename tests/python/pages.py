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
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from switchbench.base.measures import LATENCY_MEASURES, LESS, MEASURES, MORE, PHASES, Measure
from switchbench.cli.main import build_parser
from switchbench.records.schema import TABLES, TITLES
from switchbench.records.summary_form import WORDS, summary_schema
from switchbench.search.suites import SUITES
from switchbench.search.suites.declaration import Suite, SuiteParameters

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "doc" / "reference"
HEAD = "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n<!-- made by tests/python/pages.py -->\n"

PLAIN = ("number", "integer", "string", "boolean", "object", "any")

# An argument that as many commands have, in the same words, is described once.
SHARED = 2
CHOOSES = "--profile"  # an option of every command that takes a whole configuration


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
        chosen = choice if set(choice) <= takes[name] else []
        also += ["[choice of a configuration](#choice-of-a-configuration)"] * bool(chosen)
        parts += [
            f"## {name}\n",
            _about(command),
            _table(a for a in _arguments(command) if a not in others + chosen),
            f"Also: {', '.join(also)}.\n" if also else "",
        ]
    return with_made(page, commands="\n".join(part for part in parts if part))


def _below(action: argparse.Action) -> dict[str, Parser]:
    """Return the commands that an argument chooses among."""
    return dict(action.choices or {}) if isinstance(action, argparse._SubParsersAction) else {}


def _commands(parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield the commands below a parser by whole names, their summaries for no description."""
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
    """Yield the keys of a part with their types, but for numbers, texts and truth values."""
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


# --- measures ------------------------------------------------------------------------------------

_BEGIN = "<!-- made of base/measures.toml -->"
_END = "<!-- end -->"
_ROW = re.compile(r"^\| `([\w.]+)` \| [^\n]* \|$", re.M)
_BETTER = {MORE: "more", LESS: "less"}


def measures(page: str) -> str:
    """Return the page with the registry's formulas, and with the table between its marks."""
    # The page's tables have names without `intervals.`.
    formulas = {
        m.entry.removeprefix("intervals."): m.formula for m in MEASURES.values() if m.formula
    }

    def row(found: re.Match[str]) -> str:
        formula = formulas.get(found[1])
        return found[0] if formula is None else f"| `{found[1]}` | {formula} |"

    begin, end = page.index(_BEGIN), page.index(_END)
    return f"{_ROW.sub(row, page[:begin])}{_BEGIN}\n{measures_table()}{_ROW.sub(row, page[end:])}"


def measures_table() -> str:
    """Return all measures; those of times in one row, as they differ in their names alone."""
    head = ("measure", "unit", "better", "also over", "phases of a run", "of a plan")
    rows = [_measure(f"`{m.key}`", m) for m in MEASURES.values() if m.key not in LATENCY_MEASURES]
    times = list(LATENCY_MEASURES)
    what = "Figures of times by kind ([latency.md](latency.md))"
    rows.append(_measure(", ".join(f"`{key}`" for key in times), MEASURES[times[0]], what))
    return rows_below((*head, "tester-limited", "what it is"), rows)


def _measure(names: str, measure: Measure, what: str = "") -> Sequence[str]:
    return (
        names,
        measure.unit,
        _BETTER[measure.better],
        ", ".join(over for over in measure.overs if over not in PHASES),
        measure.over_phases,
        f"`{measure.plan}`" if measure.plan else measure.over_phases,
        measure.when_limited,
        what or measure.definition,
    )


# --- the page's words ----------------------------------------------------------------------------

# Sections of the page whose keys have short names: the key before them in the summary.
_PREFIXES = {
    "Interval results": "intervals.",
    "Loss by location": "loss_location.",
    "Repeats": "statistics.",
    "Transports side by side": "comparisons.",
    "Dependent steps": "steps.functions.points.",
}


def words_of(page: str) -> dict[str, str]:
    """Return the definitions of doc/reference/measures.md: key -> words, without Markdown."""
    found: dict[str, str] = {}
    for heading, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        for names, words in _key_rows(body):
            for name in names:
                found.setdefault(_PREFIXES.get(heading, "") + name, words)
    return found


def _key_rows(body: str) -> Iterator[tuple[list[str], str]]:
    """Return the rows of a section's tables of keys: names in the first cell, words in the last."""
    for line in body.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        names = re.findall(r"`([\w.]+)`", cells[0])
        if line.startswith("|") and len(cells) == 2 and names:
            yield list(_whole_names(names)), _plain(cells[1])


def _whole_names(names: list[str]) -> Iterator[str]:
    """Yield whole names: `throughput.min` and `.mean` stand for the two of `throughput`."""
    stem = names[0].rpartition(".")[0]
    for name in names:
        yield stem + name if name.startswith(".") else name


def _plain(text: str) -> str:
    """Return a text without Markdown's marks."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\1", text)
    return text.replace("`", "").replace("\\|", "|")


# --- suites --------------------------------------------------------------------------------------

T = TypeVar("T")

_MARK = "<!-- made of search/suites/ -->\n"


def _below_mark(page: str, *parts: str) -> str:
    begin = page.index(_MARK) + len(_MARK)
    return page[:begin] + "\n" + "\n".join(parts)


def standards(page: str) -> str:
    """Return standards.md with the declarations' tables below its mark."""
    suites = list(SUITES.values())
    names = [", ".join(f"`{each.name}`" for each in suite.subtests) for suite in suites]
    listed = [
        (f"[`{suite.name}`]({suite.name}.md)", suite.title, some)
        for suite, some in zip(suites, names, strict=True)
    ]
    return _below_mark(
        page,
        "## Suites\n",
        rows_below(("suite", "document", "subtests"), listed),
        "## Parameters\n\nAs the document has them / with `profile: quick`:\n",
        rows_below(
            ("parameter", "what", *(f"`{suite.name}`" for suite in suites)),
            (
                (f"`{field.name}`", field.metadata["about"], *_values(field.name, suites))
                for field in fields(SuiteParameters)
            ),
        ),
        "## Deviations of all suites\n",
        _listed(_common(suites)),
    )


def _values(name: str, suites: Sequence[Suite]) -> Iterator[str]:
    for suite in suites:
        both = (getattr(suite.parameters, name), getattr(suite.lab, name))
        yield " / ".join(f"{value:g}" for value in both) if name in suite.uses else ""


def _listed(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def suite_pages() -> dict[str, str]:
    """Return a page for each suite, by its name."""
    suites = list(SUITES.values())
    common = _common(suites)
    defined: dict[tuple[str, str], tuple[Suite, str]] = {}
    return {f"{s.name}.md": _suite_page(s, defined, common) for s in suites}


def conformance(page: str) -> str:
    """Return conformance.md with what the documents ask of reports below its mark."""
    return _below_mark(page, *map(_statements, SUITES.values()))


def _common(suites: list[Suite]) -> list[str]:
    """Return the deviations that all suites of RFCs with trials have."""
    return [line for line in suites[0].deviations if all(line in s.deviations for s in suites)]


def _suite_page(
    suite: Suite, defined: dict[tuple[str, str], tuple[Suite, str]], common: list[str]
) -> str:
    """Return a suite's page. A definition in the words of an earlier suite's names its measure."""
    subtests = [(f"`{s.name}`", s.section, str(s.ports_min), s.about) for s in suite.subtests]
    subtests += [(f"`{name}`", "", "", f"rejected: {why}") for name, why in suite.refused.items()]
    rows = []
    for same, names in _joined(
        ((v.unit or "count", v.definition), v.key if v.of_setting else f"{suite.name}.{v.key}")
        for each in suite.subtests
        for v in each.values
    ):
        unit, definition = same
        of, first = defined.setdefault(same, (suite, names[0]))
        what = definition if of is suite else f"as `{of.name if first in names else first}`"
        rows.append((", ".join(f"`{name}`" for name in names), unit, what))
    own = [line for line in suite.deviations if line not in common]
    parts = [
        f"# {suite.title}: `suite: {suite.name}`\n",
        "Parameters, clauses and results of all suites: [standards](standards.md).\n",
        "## Subtests\n",
        rows_below(("subtest", "section", "ports", "what it does"), subtests),
        "## Measures\n",
        rows_below(("measure", "unit", "what it is"), rows),
    ]
    if own:
        parts += [
            "## Deviations from the document\n",
            "Beside [those of all suites](standards.md#deviations-of-all-suites):\n",
            _listed(own),
        ]
    return "\n".join(parts)


def _statements(suite: Suite) -> str:
    rows = []
    for (word, asks), ones in _joined(((s.word, s.asks), s) for s in suite.statements):
        sections = ", ".join(dict.fromkeys(one.section for one in ones))
        rows.append((sections, word, asks, _places(list(dict.fromkeys(o.where for o in ones)))))
    head = ("section", "word", "what the report has to say", "where it does")
    return f"## {suite.title}: `suite: {suite.name}`\n\n{rows_below(head, rows)}"


def _places(wheres: list[str]) -> str:
    """Return the names of tables or figures, with their kind once in front."""
    kinds = {where.partition(" ")[0] for where in wheres}
    if len(kinds) > 1:
        return ", ".join(wheres)
    return f"{kinds.pop()} {', '.join(where.partition(' ')[2] for where in wheres)}"


def _joined(
    pairs: Iterable[tuple[tuple[str, str], T]],
) -> Iterable[tuple[tuple[str, str], list[T]]]:
    """Return rows that differ in one cell as one, in the order of their first mention."""
    found: dict[tuple[str, str], dict[T, None]] = {}
    for same, other in pairs:
        found.setdefault(same, {})[other] = None
    return [(same, list(others)) for same, others in found.items()]


# --- all pages -----------------------------------------------------------------------------------

PAGES = {name: HEAD + text for name, text in suite_pages().items()}
# Pages of which a part has a source, and what makes it anew in the page.
PARTS = {
    "command-line.md": command_line,
    "results.md": results,
    "../developer/summary.md": types,
    "measures.md": measures,
    "standards.md": standards,
    "../developer/conformance.md": conformance,
}


def main() -> None:
    """Write all pages, and the definitions of measures.md that are installed."""
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text, "utf-8")
    for name, refreshed in PARTS.items():
        (FOLDER / name).write_text(refreshed((FOLDER / name).read_text("utf-8")), "utf-8")
    words = words_of((FOLDER / "measures.md").read_text("utf-8"))
    WORDS.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
