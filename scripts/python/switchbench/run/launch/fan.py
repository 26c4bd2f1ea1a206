# SPDX-License-Identifier: BSD-3-Clause
"""One short command for each of many hosts, so many at a time: ClusterShell's task and fan-out.

For what ends by itself (a version, `bind`, a copy). A run's nodes live as long as it does, and
are processes of their own (`ssh`): ClusterShell would start no more of them than its fan-out, and
its event loop would stand between the heartbeats and their pipes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ClusterShell.Event import EventHandler
from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecClient, ExecWorker

# For ssh, and for the ssh's that it starts to its gateways, which BatchMode doesn't reach: without
# a terminal they would ask by a window.
UNASKED = {"SSH_ASKPASS_REQUIRE": "never"}


@dataclass
class Answer:
    """How a host's command ended, and what it wrote."""

    status: int | None = None  # None: it was ended, having taken too long
    output: list[str] = field(default_factory=list)  # lines
    errors: list[str] = field(default_factory=list)


# A command whose standard input is a file: its name, then the command's words.
_FED = ("sh", "-c", 'exec "$@" <"$0"')


def fan_out(
    commands: Mapping[str, Sequence[str]],
    fanout: int,
    timeout_s: float,
    given: Path | None = None,
) -> dict[str, Answer]:
    """Runs each host's command here (one that goes there, as `ssh`); all answers, by host.

    At most `fanout` run at a time, each at most `timeout_s`. Their standard input is the file
    `given`, or empty.
    """
    fed = [*_FED, str(given)] if given is not None else []
    task = task_self()
    task.set_info("fanout", fanout)
    answers = {host: Answer() for host in commands}
    for host, words in commands.items():
        worker = _Worker(host, _Ear(answers), timeout_s, command=[*fed, *words], stderr=True)
        task.schedule(worker)
        worker.set_write_eof()
    try:
        task.resume()
    except BaseException:
        task.abort()  # ends what still runs; the task can be used again
        raise
    return answers


class _Client(ExecClient):  # type: ignore[misc]
    """Starts the words as they are: no shell, no placeholders, no terminal to ask a person by.

    A child is nobody's group leader: setsid becomes the command, with the same process id.
    """

    def _build_cmd(self) -> tuple[list[str], dict[str, str]]:
        return ["setsid", *self.command], dict(UNASKED)


class _Worker(ExecWorker):  # type: ignore[misc]
    SHELL_CLASS = _Client


class _Ear(EventHandler):  # type: ignore[misc]
    """Keeps what hosts say."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self._answers = answers

    def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
        answer = self._answers[node]
        lines = answer.output if sname == worker.SNAME_STDOUT else answer.errors
        lines.append(msg.decode(errors="replace"))

    def ev_hup(self, _worker: Any, node: str, rc: int) -> None:
        self._answers[node].status = rc
