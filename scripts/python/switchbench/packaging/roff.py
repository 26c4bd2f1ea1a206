# SPDX-License-Identifier: BSD-3-Clause
"""Text as man(7) wants it."""

from __future__ import annotations

import re

_CODE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")


class Page:
    """A manual page that grows section by section."""

    def __init__(self, name: str, section: int, head: str) -> None:
        """`head` is what the page begins with, its line .TH included."""
        self.file = f"{name}.{section}"
        self._lines = ['.\\" SPDX-License-Identifier: BSD-3-Clause', head]

    def section(self, name: str) -> None:
        """A heading."""
        self._lines.append(f".SH {escaped(name.upper())}")

    def part(self, name: str) -> None:
        """A heading in a section."""
        self._lines.append(f".SS {escaped(name)}")

    def paragraph(self, text: str) -> None:
        """Text that is filled; a few marks of Markdown become bold."""
        self._lines += [".PP", marked(text)]

    def tagged(self, tag: str, *texts: str) -> None:
        """A term, and below it what it means; further texts are paragraphs of their own."""
        self._lines += [".TP", bold(tag)]
        for number, text in enumerate(text for text in texts if text):
            self._lines += [".br", marked(text)] if number else [marked(text)]
        if not any(texts):
            self._lines.append("\\&")

    def verbatim(self, text: str) -> None:
        """Lines as they are."""
        self._lines += [".PP", ".RS 2", ".nf", escaped(text.strip("\n")), ".fi", ".RE"]

    def render(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"


def escaped(text: str) -> str:
    """Text without a meaning to roff: every hyphen is one that can be searched and copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def bold(text: str) -> str:
    """Text in bold, on a line of its own or in one."""
    return f"\\fB{escaped(text)}\\fP"


def marked(text: str) -> str:
    """A paragraph of Markdown: code and emphasis in bold, of a link its text."""
    found, at = [], 0
    text = " ".join(text.split())
    for mark in _CODE.finditer(text):
        found.append(escaped(text[at : mark.start()]))
        code, strong, link, target = mark.groups()
        if link:
            found.append(escaped(link if link == target else f"{link} ({target})"))
        else:
            found.append(bold((code or strong).replace("`", "")))
        at = mark.end()
    found.append(escaped(text[at:]))
    line = "".join(found)
    return "\\&" + line if line.startswith((".", "'")) else line
