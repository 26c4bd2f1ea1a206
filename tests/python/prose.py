# SPDX-License-Identifier: BSD-3-Clause
"""A linter of the English that a person meets: pages, help, error messages, other texts.

It finds the words of tests/prose/words.tsv, and sentences of more than 40 words, which a colon
or a semicolon ends as well."""

from __future__ import annotations

import argparse
import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import messages
from switchbench.cli.main import build_parser
from switchbench.render.report.chart import SPECS
from switchbench.render.tables import every

WORDS = messages.ROOT / "tests/prose/words.tsv"
DOC = messages.ROOT / "doc"
GENERATED = "<!-- made by tests/python/pages.py -->"
LONGEST = 40
SENTENCE = f"a sentence of more than {LONGEST} words"

_FENCE = re.compile(r"^( *)```.*?^\1```$|^<!--.*?-->$", re.M | re.S)
_LITERAL = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*(?:PRI\w+\s*)?)+')
_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


@dataclass(frozen=True)
class Text:
    """Something that a person reads, and where it is from."""

    kind: str  # page, help, message or text
    place: str
    words: str


@dataclass(frozen=True)
class Finding:
    """A rule that a text breaks."""

    kind: str
    place: str
    rule: str
    instead: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: “{self.found}”; write: {self.instead}"


@functools.cache
def rules() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Return each rule as written, as an expression, and what to write instead."""
    lines = [line for line in WORDS.read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split("\t") for line in lines]
    return tuple(
        (rule, re.compile(rf"(?<!\w)(?:{rule})(?!\w)", re.I), instead) for rule, instead in pairs
    )


def lint(texts: Iterable[Text]) -> list[Finding]:
    """Return the rules that texts break."""
    return [finding for text in texts for finding in _of(text)]


@functools.cache
def texts() -> list[Text]:
    """Return all texts that a person meets."""
    told = [Text("message", f"{one.file}:{one.line}", one.text) for one in messages.collect()]
    known = {one.words for one in told}
    return [
        *pages(), *helps(), *told, *(text for text in literals() if text.words not in known)
    ]  # fmt: skip


def pages() -> Iterator[Text]:
    """Paragraphs, entries of lists and cells of tables; what is made of help and schema is read
    there."""
    for path in [*sorted(messages.ROOT.glob("*.md")), *sorted(DOC.rglob("*.md"))]:
        if GENERATED in (written := path.read_text()):
            continue
        source = _FENCE.sub(lambda one: "\n" * one[0].count("\n"), written)
        start = 1
        for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\.) ?))", source):
            for cell in re.split(r"(?<!\\)\|", block) if block.startswith("|") else [block]:
                words = re.sub(r"\]\([^)]*\)", "]", cell)
                yield Text("page", f"{path.relative_to(messages.ROOT)}:{start}", words)
            start += block.count("\n")


def helps() -> Iterator[Text]:
    """Yield descriptions and help texts of the command and its subcommands."""
    waiting: list[argparse.ArgumentParser] = [build_parser()]
    for parser in waiting:
        for said in (parser.description, parser.epilog):
            yield from _parts("help", parser.prog, said or "")
        for action in parser._actions:
            said = action.help if action.help != argparse.SUPPRESS else ""
            yield Text("help", f"{parser.prog} {action.dest}", said or "")
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()


def literals() -> Iterator[Text]:
    """Yield the strings of the sources without docstrings, and the texts of tables and figures."""
    for spec in every():
        for words in (spec.title, spec.about, *(column.definition for column in spec.columns)):
            yield from _parts("text", f"table {spec.name}", words)
    for figure in SPECS.values():
        yield from _parts("text", f"figure {figure.name}", f"{figure.title}\n\n{figure.definition}")
    for path in sorted(messages.PACKAGE.rglob("*.py")):
        place = str(path.relative_to(messages.ROOT))
        tree = messages.parsed(path.read_text())
        skipped = {id(node) for node in _not_said(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
                yield from _parts("text", f"{place}:{node.lineno}", messages.template(node))
    for folder in messages.C_FOLDERS:
        for path in sorted((messages.ROOT / folder).rglob("*.c")):
            place = str(path.relative_to(messages.ROOT))
            source = _C_COMMENT.sub(lambda one: "\n" * one[0].count("\n"), path.read_text())
            for found in _LITERAL.finditer(source):
                line = source.count("\n", 0, found.start()) + 1
                yield from _parts("text", f"{place}:{line}", messages.c_text(found[0]))


def _parts(kind: str, place: str, said: str) -> Iterator[Text]:
    """Yield paragraphs and the indented lines of lists, which end a sentence."""
    for part in re.split(r"\n\s*\n|\n(?= {2}\S)", said):
        yield Text(kind, place, messages.squeezed(part))


def _not_said(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield documentation of the code, and parts of texts that are checked as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from node.values


def _of(text: Text) -> Iterator[Finding]:
    plain = re.sub(r"\s+", " ", text.words)
    for rule, expression, instead in rules():
        for found in expression.finditer(plain):
            around = plain[max(found.start() - 30, 0) : found.end() + 30]
            yield Finding(text.kind, text.place, rule, instead, around)
    for sentence in re.split(r"(?<=[.?!:;])\s", re.sub(r"`[^`]*`", "x", plain)):
        words = re.findall(r"[\w…][^\s]*", sentence)
        if len(words) > LONGEST:
            start = f"{' '.join(words[:8])} ..., {len(words)} words"
            yield Finding(text.kind, text.place, SENTENCE, "two sentences", start)
