# SPDX-License-Identifier: BSD-3-Clause
"""Before a run: is every host reached, without a question, and has it this version's engine?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import __version__
from ..config.words import some
from ..errors import RunError
from ..model import Site
from .fan import Answer, fan_out
from .openssh import OpenSsh, find_client, refusal

# Beyond ConnectTimeout: logging in, and loading the program from a cold disk.
_SLACK_S = 20.0


@dataclass(frozen=True)
class Unreached:
    """A host that can't take part, and why."""

    host: str
    reason: str

    def __str__(self) -> str:
        return f"{self.host}: {self.reason}"


def survey(site: Site) -> list[Unreached]:
    """The hosts of a site that can't take part; nothing is looked at but by ssh."""
    if site.launch != "ssh":
        return []
    find_client()
    way = OpenSsh.of(site)
    hosts = [process.name for process in site.processes]
    commands = {host: way.node(host, ["--version"]) for host in hosts}
    answers = fan_out(commands, way.fanout, way.timeout_s + _SLACK_S)
    return [
        Unreached(host, reason)
        for host in hosts
        if (reason := _lack(host, answers[host], way.engine)) is not None
    ]


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


def _lack(host: str, answer: Answer, engine: str) -> str | None:
    reason = refusal(host, answer, engine)
    if reason is not None:
        return reason
    wanted = f"switchbench-node {__version__}"
    if answer.output == [wanted]:
        return None
    if wanted in answer.output:
        return (
            f"its login writes text of its own ({answer.output[0][:60]!r}), which a node's records "
            "would be mixed with: shell start files must be silent without a terminal"
        )
    found = next((line for line in answer.output if line.startswith("switchbench-node ")), None)
    if found is not None:
        version = found.removeprefix("switchbench-node ")
        return (
            f"it has version {version} (its {engine}), this command {__version__}: "
            "install the same one on all hosts"
        )
    last = (answer.errors or answer.output or ["no word"])[-1]
    return f"{engine} --version ended with status {answer.status} ({last.strip()})"
