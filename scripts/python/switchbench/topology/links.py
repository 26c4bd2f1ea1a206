# SPDX-License-Identifier: BSD-3-Clause
"""Point-to-point links of a topology: cables between two nodes, past every switch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from .behaviour import Bytes, LinkRate, TopologyKeys


@dataclass(frozen=True)
class NodeLink:
    """A cable, full duplex, with a shaper each way."""

    a: str
    b: str
    """Nodes; of a real site `b` may be a switch, one more that node `a` is on."""
    rate_bps: int
    """Layer-1 rate each way; `UNSHAPED` when nothing limits it."""
    queue_bytes: int

    @property
    def name(self) -> str:
        """`node1-node10`."""
        return f"{self.a}-{self.b}"


class LinkEntry(TopologyKeys):
    """One entry of a topology file's `links`: two node sets of one size, joined one by one."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    rate: LinkRate | None = None
    queue: Bytes | None = None


class Reader:
    """Makes links of a file's entries, and keeps what is wrong with them."""

    def __init__(self, expand: Callable[[str, str, list[str]], list[str]], mistakes: list[str]):
        self._expand = expand
        self._mistakes = mistakes
        self._joined: dict[frozenset[str], str] = {}

    def links(
        self, entries: Sequence[LinkEntry], ends: Collection[str], rate: int | None, queue: int
    ) -> list[NodeLink]:
        """Return all links; `ends` are the names that a link may join."""
        found = []
        for number, entry in enumerate(entries):
            where = f"links.{number}"
            link_bps = entry.rate if entry.rate is not None else rate
            if link_bps is None:
                self._mistakes.append(f"{where}: has no rate, and there is no `rate` for all")
                continue
            link_queue = entry.queue if entry.queue is not None else queue
            for a, b in self._pairs(entry, where):
                if self._may_join(a, b, ends, where):
                    found.append(NodeLink(a, b, link_bps, link_queue))
        return found

    def _pairs(self, entry: LinkEntry, where: str) -> list[tuple[str, str]]:
        left, right = (self._expand(names, f"{where}.between", self._mistakes)
                       for names in entry.between)  # fmt: skip
        if len(left) != len(right) and left and right:
            self._mistakes.append(
                f"{where}.between: joins {len(left)} to {len(right)}; two sets of one size are "
                "joined one by one"
            )
            return []
        return list(zip(left, right, strict=False))

    def _may_join(self, a: str, b: str, ends: Collection[str], where: str) -> bool:
        both = frozenset((a, b))
        unknown = [name for name in (a, b) if name not in ends]
        if unknown:
            sentence = f"{where}.between: there is no node {unknown[0]!r}"
        elif a == b:
            sentence = f"{where}.between: joins {a!r} to itself"
        elif both in self._joined:
            sentence = f"{where}: {a!r} and {b!r} are joined by {self._joined[both]} already"
        else:
            self._joined[both] = where
            return True
        self._mistakes.append(sentence)
        return False
