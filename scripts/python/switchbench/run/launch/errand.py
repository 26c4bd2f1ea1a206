# SPDX-License-Identifier: BSD-3-Clause
"""One thing to do by the engine on many hosts at once, and what came of it, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...base.model import Site
from .fan import Answer, fan_out
from .nodesets import folded
from .openssh import OpenSsh, find_client, refusal

FAILED = 3  # a host that could not be asked: as a run that could not be completed
_PREFIX = "switchbench-node: "


@dataclass(frozen=True)
class Result:
    """What a host did: its engine's exit status, and what it said."""

    host: str
    status: int
    lines: tuple[str, ...]


def errands(site: Site, words: Mapping[str, Sequence[str]], timeout_s: float) -> list[Result]:
    """Runs the engine with each host's words, as many at a time as the site's fan-out says."""
    find_client()
    way = OpenSsh.of(site)
    commands = {host: way.node(host, list(arguments)) for host, arguments in words.items()}
    answers = fan_out(commands, way.fanout, way.timeout_s + timeout_s)
    return [_result(host, answer, way.engine) for host, answer in answers.items()]


def _result(host: str, answer: Answer, engine: str) -> Result:
    if answer.status is None:
        return Result(host, FAILED, ("it took too long: it is not known what it did; ask again",))
    reason = refusal(host, answer, engine)
    if reason is not None:
        return Result(host, FAILED, (reason,))
    lines = [line.removeprefix(_PREFIX) for line in (*answer.output, *answer.errors)]
    return Result(host, answer.status, tuple(lines))


def side_by_side(results: Sequence[Result]) -> Iterator[str]:
    """The results in lines; hosts that say the same share them: `node[1-4]: done`."""
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for result in results:
        alike.setdefault((result.status, result.lines), []).append(result.host)
    for (status, lines), hosts in alike.items():
        ending = "done" if status == 0 else f"failed with status {status}, without a word"
        for line in lines or (ending,):
            yield f"{folded(hosts)}: {line}"
