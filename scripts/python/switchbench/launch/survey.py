# SPDX-License-Identifier: BSD-3-Clause
"""Before a run: is every host reached, without a question, and has it this version's engine?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import __version__
from ..config.words import some
from ..errors import RunError
from .fan import Answer
from .openssh import refusal

GREETING = "switchbench-node "


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
    first, *others = unreached
    if not others:
        raise RunError(str(first))
    names = some(host.host for host in unreached)
    reasons = "; ".join(map(str, _of_each_kind(unreached)))
    raise RunError(f"{len(unreached)} hosts can't take part ({names}): {reasons}")


def _of_each_kind(unreached: Sequence[Unreached]) -> list[Unreached]:
    """The first host of each reason: reasons of one kind begin alike."""
    kinds: dict[str, Unreached] = {}
    for one in unreached:
        kinds.setdefault(one.reason.partition(" (")[0], one)
    return list(kinds.values())


def lack(host: str, answer: Answer, engine: str) -> str | None:
    """What a host lacks that was asked for its engine's version; None: nothing."""
    reason = refusal(host, answer, engine)
    if reason is not None:
        return reason
    wanted = f"{GREETING}{__version__}"
    if answer.output == [wanted]:
        return None
    if wanted in answer.output:
        return (
            f"its login writes text of its own ({answer.output[0][:60]!r}), which a node's records "
            "would be mixed with: shell start files must be silent without a terminal"
        )
    found = next((line for line in answer.output if line.startswith(GREETING)), None)
    if found is not None:
        version = found.removeprefix(GREETING)
        return (
            f"it has version {version} (its {engine}), this command {__version__}: "
            "bring the same one to all hosts, by `switchbench push`"
        )
    last = (answer.errors or answer.output or ["no word"])[-1]
    return f"{engine} --version ended with status {answer.status} ({last.strip()})"
