# SPDX-License-Identifier: BSD-3-Clause
"""HTML as values: what is text is escaped, and nothing else has to think of it."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *inside: str | None, **attributes: str | None) -> Html:
    """An element; text inside is escaped, None left out. `class_` is class, `data_x` data-x."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{said}>{join(inside)}</{name}>")


def join(parts: Iterable[str | None]) -> Html:
    """Parts one after the other, text among them escaped."""
    return Html(
        "".join(
            p if isinstance(p, Html) else escape(p, quote=False) for p in parts if p is not None
        )
    )


def paragraph(text: str, kind: str | None = None) -> Html | None:
    """A paragraph; None without text."""
    return tag("p", text, class_=kind) if text else None


def listed(sentences: Iterable[str], kind: str = "plain") -> Html:
    """A list, one sentence an item."""
    return tag("ul", *(tag("li", sentence) for sentence in sentences), class_=kind)


def packed(name: str, text: bytes) -> Html:
    """A block of the page that its script unpacks: gzip in base64, which nobody takes for code."""
    data = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    return Html(f'<script type="application/gzip" id="{escape(name)}">{data}</script>')
