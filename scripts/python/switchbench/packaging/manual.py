# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: of the command and its commands from the parser, of programs from what their
--help says, of the configuration from doc/reference/configuration.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .. import __version__
from .roff import Page
from .syntax import Argument, Command

_USER, _FORMATS, _ADMINISTRATOR = 1, 5, 8
_ENVIRONMENT = (
    ("SWITCHBENCH_NODE", "the engine to use, instead of the one that belongs to the command"),
    ("SWITCHBENCH_SWITCH", "the modelled switch's program"),
    ("SWITCHBENCH_GUEST", "the guests' agent"),
)
_TITLES = {
    "examples": "EXAMPLES",
    "exit status": "EXIT STATUS",
}
_HELP_TITLES = {
    "switchbench-node": "one node of a run: reads documents, sends, receives, writes records",
    "switchbench-switch": "an Ethernet switch that behaves as described",
}


def command_pages(root: Command) -> Iterator[Page]:
    """switchbench(1), and one page for each of its commands."""
    yield _root_page(root)
    for command in root.commands:
        yield _command_page(command)


def _root_page(root: Command) -> Page:
    page = Page("switchbench", _USER, "measure a network with every port busy at once", __version__)
    page.section("synopsis")
    page.paragraph("**switchbench** COMMAND [ARGUMENT ...]")
    page.section("description")
    page.paragraph(root.description)
    page.section("commands")
    for command in root.commands:
        page.tagged(command.name, f"{_sentence(command.summary)} See {_reference(command)}.")
    _add_arguments(page, "options", root.options)
    _add_epilog(page, root.epilog)
    page.section("environment")
    for name, meaning in _ENVIRONMENT:
        page.tagged(name, _sentence(meaning))
    others = (f"{name}(8)" for name in _HELP_TITLES)
    _see_also(page, [*map(_reference, root.commands), "switchbench.conf(5)", *others])
    return page


def _command_page(command: Command) -> Page:
    page = Page(f"switchbench-{command.name}", _USER, command.summary, __version__)
    page.section("synopsis")
    for form in command.commands or (command,):
        page.paragraph(_synopsis(form))
    page.section("description")
    page.paragraph(command.description)
    _add_arguments(page, "arguments", command.arguments)
    _add_arguments(page, "options", command.options)
    for part in command.commands:
        page.section(f"switchbench {part.name}")
        page.paragraph(_sentence(part.summary or part.description))
        for argument in (*part.arguments, *part.options):
            if "--help" not in argument.flags:
                _add_argument(page, argument)
        _add_epilog(page, part.epilog)
    _add_epilog(page, command.epilog)
    _see_also(page, ["switchbench(1)", "switchbench.conf(5)"])
    return page


def _reference(command: Command) -> str:
    return f"switchbench-{command.name}({_USER})"


def _see_also(page: Page, names: Sequence[str]) -> None:
    page.section("see also")
    page.paragraph(", ".join(f"**{name[:-3]}**{name[-3:]}" for name in names))


def _synopsis(command: Command) -> str:
    words = [f"**switchbench {command.name}**"]
    for option in command.options:
        if "--help" in option.flags:
            continue
        value = f" {option.wanted}" if option.value else ""
        words.append(f"[`{option.flags[-1]}`{value}]" + ("..." if option.repeated else ""))
    words += [argument.wanted for argument in command.arguments]
    return " ".join(words)


def _add_arguments(page: Page, title: str, arguments: Sequence[Argument]) -> None:
    if arguments:
        page.section(title)
    for argument in arguments:
        _add_argument(page, argument)


def _add_argument(page: Page, argument: Argument) -> None:
    value = f" {argument.wanted}" if argument.flags and argument.value else ""
    tag = ", ".join(f"{flag}{value}" for flag in argument.flags) or argument.wanted
    page.tagged(tag, _sentence(argument.help))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text and not text.endswith(".") else text


def _add_epilog(page: Page, epilog: str) -> None:
    """What stands below the options in --help: `examples:` and the like begin sections."""
    section = ""
    for block in re.split(r"\n\s*\n", epilog.strip("\n")):
        title, colon, rest = block.partition(":")
        if colon and title in _TITLES:
            section = _TITLES[title]
            page.section(section)
            _add_mixed(page, rest.lstrip(" ").strip("\n"))
        elif block.strip():
            if section != "NOTES":
                section = "NOTES"
                page.section(section)
            _add_mixed(page, block)


def program_page(name: str, help_text: str) -> Page:
    """A program's page from what its --help prints: `usage:`, paragraphs, and indented options."""
    page = Page(name, _ADMINISTRATOR, _HELP_TITLES[name], __version__)
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
    title = "what a run is configured with"
    page = Page("switchbench.conf", _FORMATS, title, __version__)
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
            yield [line, *_until_fence(lines)]
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


def _until_fence(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("```"):
            return
        yield line


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
