# SPDX-License-Identifier: BSD-3-Clause
"""PCI ports bound on many hosts at once, and what came of it, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...base.model import Site
from ...base.programs import PORT_BINDING
from .fan import Answer, fan_out
from .nodesets import folded
from .openssh import OpenSsh, find_client, refusal

FAILED = 3  # a host that could not be asked: as a run that could not be completed


@dataclass(frozen=True)
class Result:
    """What a host did: the exit status, and what it said."""

    host: str
    status: int
    lines: tuple[str, ...]


def errands(site: Site, words: Mapping[str, Sequence[str]], timeout_s: float) -> list[Result]:
    """Runs the program that binds ports with each host's words, as many at a time as the site's
    fan-out says."""
    find_client()
    way = OpenSsh.of(site)
    commands = {host: way.port_binding(host, arguments) for host, arguments in words.items()}
    answers = fan_out(commands, way.fanout, way.timeout_s + timeout_s, PORT_BINDING)
    return [_result(host, answer) for host, answer in answers.items()]


def _result(host: str, answer: Answer) -> Result:
    if answer.status is None:
        return Result(host, FAILED, ("it took too long: it is not known what it did; ask again",))
    reason = refusal(host, answer, "python3")
    if reason is not None:
        return Result(host, FAILED, (reason,))
    return Result(host, answer.status, (*answer.output, *answer.errors))


def side_by_side(results: Sequence[Result]) -> Iterator[str]:
    """The results in lines; hosts that say the same share them: `node[1-4]: done`."""
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for result in results:
        alike.setdefault((result.status, result.lines), []).append(result.host)
    for (status, lines), hosts in alike.items():
        ending = "done" if status == 0 else f"failed with status {status}, without a word"
        for line in lines or (ending,):
            yield f"{folded(hosts)}: {line}"
