# SPDX-License-Identifier: BSD-3-Clause
"""YAML of people, read in bounded memory and time.

A few hundred bytes of aliases stand for billions of values, and PyYAML recurses for each bracket.
So a file's size, its depth and its values, those of aliases counted each time, have limits far
beyond any real configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

BYTES_MOST = 4 << 20
DEPTH_MOST = 64
VALUES_MOST = 50_000


class TooLargeError(yaml.MarkedYAMLError):
    """A text beyond the limits; `problem` says which."""


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader with limits."""

    def __init__(self, stream: str) -> None:
        """Reads a text of at most BYTES_MOST."""
        super().__init__(stream)
        self._values = [0]  # inside each open node, the innermost last
        self._sizes: dict[int, int] = {}  # of closed nodes: what an alias to them stands for

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """PyYAML's own, counting."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if len(self._values) > DEPTH_MOST:
            raise TooLargeError(
                problem=f"lists and mappings are more than {DEPTH_MOST} deep", problem_mark=mark
            )
        self._values.append(1)
        node = super().compose_node(parent, index)
        size = self._sizes.setdefault(id(node), self._values.pop())
        self._values[-1] += size
        if sum(self._values) > VALUES_MOST:
            raise TooLargeError(
                problem=f"more than {VALUES_MOST} values, those of aliases counted each time",
                problem_mark=mark,
            )
        return node


def load(path: Path) -> Any:
    """What a file holds, in YAML 1.1; OSError, ValueError or yaml.YAMLError."""
    return yaml.load(read_text(path), Loader=Loader)


def read_text(path: Path) -> str:
    """A file's text; OSError, UnicodeDecodeError, or TooLargeError for a file that is too long."""
    with path.open("rb") as file:
        content = file.read(BYTES_MOST + 1)
    if len(content) > BYTES_MOST:
        raise TooLargeError(problem=f"more than {BYTES_MOST >> 20} MiB of text")
    return content.decode()
