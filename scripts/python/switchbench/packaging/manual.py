# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: of the command and its commands from the parser, by argparse-manpage; of programs
from what their --help says; of the configuration from doc/reference/configuration.md."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from argparse_manpage.manpage import Manpage

from .. import __version__
from .roff import Page, escaped

_USER, _FORMATS, _ADMINISTRATOR = 1, 5, 8
_SOURCE = f"Switchbench {__version__}"
_SUMMARY = "measure a network with every port busy at once"
_ENVIRONMENT = (
    ("SWITCHBENCH_NODE", "The engine to use, instead of the one that belongs to the command."),
    ("SWITCHBENCH_SWITCH", "The modelled switch's program."),
    ("SWITCHBENCH_GUEST", "The agent in virtual machines."),
)
_TITLES = ("examples", "exit status")
_HELP_TITLES = {
    "switchbench-node": "one node of a run: reads documents, sends, receives, writes records",
    "switchbench-switch": "an Ethernet switch that behaves as described",
}


def command_pages(root: argparse.ArgumentParser) -> Iterator[Page]:
    """switchbench(1), and one page for each of its commands."""
    found = [one for one in root._actions if isinstance(one, argparse._SubParsersAction)]
    commands = found[0].choices
    summaries = {one.dest: one.help or "" for one in found[0]._choices_actions}
    yield _root_page(root, summaries)
    for name, parser in commands.items():
        page = _parser_page(parser, f"switchbench-{name}", summaries[name])
        _see_also(page, ["switchbench(1)", "switchbench.conf(5)"])
        yield page


def _root_page(root: argparse.ArgumentParser, summaries: dict[str, str]) -> Page:
    alone = copy.copy(root)  # its commands have pages of their own
    alone._action_groups = [group for group in root._action_groups if group is not root._subparsers]
    page = _parser_page(alone, "switchbench", _SUMMARY)
    page.section("commands")
    references = [f"switchbench-{name}({_USER})" for name in summaries]
    for (name, summary), reference in zip(summaries.items(), references, strict=True):
        page.tagged(name, f"{summary[:1].upper()}{summary[1:]}. See {reference}.")
    page.section("environment")
    for name, meaning in _ENVIRONMENT:
        page.tagged(name, meaning)
    others = (f"{name}({_ADMINISTRATOR})" for name in _HELP_TITLES)
    _see_also(page, [*references, f"switchbench.conf({_FORMATS})", *others])
    return page


def _parser_page(parser: argparse.ArgumentParser, name: str, summary: str) -> Page:
    """What the parser says; sections of its epilog follow."""
    parser = copy.copy(parser)
    epilog, parser.epilog = parser.epilog or "", None
    made = Manpage(parser, format="single-commands-section")
    made.prog, made.description = name, summary
    made.date, made.source, made.manual = "", _SOURCE, "Switchbench"
    page = Page(name, _USER, re.sub(r"`([^`]+)`", r"\\fB\1\\fP", str(made).rstrip()))
    _add_epilog(page, epilog)
    return page


def _new_page(name: str, section: int, title: str) -> Page:
    """A page with its name. It has no date: the same source gives the same page."""
    head = f'.TH "{escaped(name.upper())}" "{section}" "" "{_SOURCE}" "Switchbench"'
    page = Page(name, section, head)
    page.section("name")
    page.paragraph(f"{name} - {title}")
    return page


def _see_also(page: Page, names: Sequence[str]) -> None:
    page.section("see also")
    page.paragraph(", ".join(f"**{name[:-3]}**{name[-3:]}" for name in names))


def _add_epilog(page: Page, epilog: str) -> None:
    """What stands below the options in --help: `examples:` and the like begin sections."""
    section = ""
    for block in re.split(r"\n\s*\n", epilog.strip("\n")):
        title, colon, rest = block.partition(":")
        if colon and title in _TITLES:
            section = title.upper()
            page.section(section)
            _add_mixed(page, rest.lstrip(" ").strip("\n"))
        elif block.strip():
            if section != "NOTES":
                section = "NOTES"
                page.section(section)
            _add_mixed(page, block)


def program_page(name: str, help_text: str) -> Page:
    """A program's page from what its --help prints: `usage:`, paragraphs, and indented options."""
    page = _new_page(name, _ADMINISTRATOR, _HELP_TITLES[name])
    usage, _, rest = help_text.partition("\n\n")
    page.section("synopsis")
    page.verbatim(re.sub(r"^(usage:)? +", "", usage, flags=re.MULTILINE))
    page.section("description")
    for block in re.split(r"\n\s*\n", rest.strip("\n")):
        options = _options(block)
        if options:
            page.section("options")
            for tag, text in options:
                page.tagged(tag, text)
            page.section("notes")
        else:
            _add_mixed(page, block)
    _see_also(page, ["switchbench(1)"])
    return page


def _options(block: str) -> list[tuple[str, str]]:
    """`  --name NAME    what it is`, its text going on on deeper lines."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        option = re.match(r"  (--?\S.*?)(?:\s{2,}(\S.*))?$", line)
        if option:
            found.append((option[1], option[2] or ""))
        elif found and line.startswith("    "):
            tag, text = found[-1]
            found[-1] = (tag, f"{text} {line.strip()}".strip())
        else:
            return []
    return found


def _add_mixed(page: Page, block: str) -> None:
    """Filled lines, and indented ones as they are."""
    for indented, lines in _runs(block.splitlines()):
        text = "\n".join(lines)
        if indented:
            page.verbatim(text)
        else:
            page.paragraph(text)


def _runs(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    run: list[str] = []
    for line in lines:
        if run and line.startswith(" ") != run[-1].startswith(" "):
            yield run[-1].startswith(" "), run
            run = []
        run.append(line)
    if run:
        yield run[-1].startswith(" "), run


def configuration_page(markdown: str) -> Page:
    """switchbench.conf(5) from doc/reference/configuration.md: its tables become lists of keys."""
    page = _new_page("switchbench.conf", _FORMATS, "what a run is configured with")
    page.section("description")
    lines = iter(re.split(r"(?m)^# .*\n", markdown, maxsplit=1)[-1].splitlines())
    for block in _blocks(lines):
        _add_block(page, block)
    _see_also(page, ["switchbench(1)", "switchbench-plan(1)", "switchbench-run(1)"])
    return page


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Paragraphs, tables, lists and fenced code; headings alone."""
    block: list[str] = []
    for line in lines:
        if line.startswith("```"):
            yield block
            yield [line, *takewhile(lambda line: not line.startswith("```"), lines)]
            block = []
        elif not line.strip() or line.startswith("#"):
            yield block
            block = []
            if line.strip():
                yield [line]
        elif line.startswith("- ") and block:
            yield block
            block = [line]
        else:
            block.append(line)
    yield block


def _add_block(page: Page, block: Sequence[str]) -> None:
    if not block:
        return
    first = block[0]
    if first.startswith("```"):
        page.verbatim("\n".join(block[1:]))
    elif first.startswith("## "):
        page.section(first[3:])
    elif first.startswith("#"):
        page.part(first.lstrip("# "))
    elif first.startswith("|"):
        _add_table(page, block)
    elif first.startswith("- "):
        page.tagged("\u2022", " ".join(block)[2:])
    else:
        page.paragraph(" ".join(block))


def _add_table(page: Page, rows: Sequence[str]) -> None:
    """Each row a term, and below it the other cells under their headings."""
    cells = [_cells(row) for row in rows]
    heading = cells[0]
    for key, *others in cells[2:]:
        texts = [
            text if number == 0 else f"{name}: {text}"
            for number, (name, text) in enumerate(zip(heading[1:], others, strict=False))
            if text
        ]
        page.tagged(key.replace("`", ""), *texts)


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
