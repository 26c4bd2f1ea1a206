# SPDX-License-Identifier: BSD-3-Clause
"""Before a run: is every host reached, without a question, and has it this version's engine?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ... import __version__
from ...base.errors import RunError
from ...base.words import some
from .fan import Answer
from .openssh import refusal

GREETING = "switchbench-node "
_GREETING = re.compile(rf"{GREETING}(\d\S*)$")


@dataclass(frozen=True)
class Unreached:
    """A host that can't take part, and why."""

    host: str
    reason: str

    def __str__(self) -> str:
        return f"{self.host}: {self.reason}"


def refuse(unreached: Sequence[Unreached]) -> None:
    """One sentence that names all of them, by what they have in common."""
    if not unreached:
        return
    if len(unreached) == 1:
        raise RunError(str(unreached[0]))
    names = some(host.host for host in unreached)
    kinds: dict[str, Unreached] = {}  # the first host of each: reasons of one kind begin alike
    for one in unreached:
        kinds.setdefault(one.reason.partition(" (")[0], one)
    reasons = "; ".join(map(str, kinds.values()))
    raise RunError(f"{len(unreached)} hosts can't take part ({names}): {reasons}")


def greeted(line: str) -> str | None:
    """The version that an engine says at the end of a line: what a login writes without ending its
    own stands before it."""
    found = _GREETING.search(line)
    return found[1] if found else None


def lack(host: str, answer: Answer, engine: str) -> str | None:
    """What a host lacks that was asked for its engine's version; None: nothing."""
    reason = refusal(host, answer, engine)
    if reason is not None:
        return reason
    if answer.output == [f"{GREETING}{__version__}"]:
        return None
    versions = [version for line in answer.output if (version := greeted(line))]
    if __version__ in versions:
        said = answer.output[0].removesuffix(f"{GREETING}{__version__}")
        return (
            f"its login writes text of its own ({said[:60]!r}), which a node's records "
            "would be mixed with: shell start files must be silent without a terminal"
        )
    if versions:
        return (
            f"it has version {versions[0]} (its {engine}), this command {__version__}: "
            "bring the same one to all hosts, by `switchbench push`"
        )
    last = (answer.errors or answer.output or ["no word"])[-1]
    return f"{engine} --version ended with status {answer.status} ({last.strip()})"
