# SPDX-License-Identifier: BSD-3-Clause
"""What README.md and the pages in doc/ show: commands and YAML, each with its place.

    ```sh        commands that anybody can give here: run as they stand, page by page
    ```yaml      configurations and parts of them: planned
    four spaces  lines that begin with a program of ours: forms of a command, read by its parser

A line of sh with the comment `needs hardware` is read and not run: hosts, PCI or RDMA devices.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDS_HARDWARE = "needs hardware"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_OURS = re.compile(r"^(?:scripts/)?switchbench(?:-node|-switch)? .+")


@dataclass(frozen=True)
class Block:
    """A fenced block, or one line that stands four spaces in."""

    page: str  # "doc/how-to/live.md"
    line: int
    language: str  # sh | yaml | form | others
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]


def blocks(*languages: str) -> list[Block]:
    """Return all blocks of these languages, in the order of pages."""
    return [block for page in pages() for block in _blocks_of(page) if block.language in languages]


def _blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    name = str(page.relative_to(ROOT))
    for found in _FENCE.finditer(text):
        yield Block(name, text.count("\n", 0, found.start()) + 2, found[1], found[2])
    for number, line in enumerate(_FENCE.sub(_blank, text).splitlines(), start=1):
        form = re.sub(r"\s{3,}.*$", "", line[4:])
        if line.startswith("    ") and _OURS.match(form):
            yield Block(name, number, "form", form)


def _blank(found: re.Match[str]) -> str:
    """As many empty lines, so that numbers of lines stay."""
    return "\n" * found[0].count("\n")


def commands(block: Block) -> Iterator[str]:
    """Yield the shell's lines of a block: those that go on on the next line in one."""
    text = block.text.replace("\\\n", " ")
    yield from (line for line in text.splitlines() if line.strip() and not line.startswith("#"))


def ours(line: str) -> Iterator[list[str]]:
    """Yield the words of each `switchbench` in a line of shell or a form, its own name left out."""
    lexer = shlex.shlex(_without_options(line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set(";|&<>()"):
            if words and re.fullmatch(r"(.*/)?switchbench", words[0]):
                yield words[1:]
            words = []
        else:
            words.append(word)


def _without_options(form: str) -> str:
    """`[--json]` shows that an option may be left out: here it is given."""
    return re.sub(r"(?<=\s)\[(-[^\[\]]*(?:\[[^\]]*\])?[^\[\]]*)\]", r"\1", form)
