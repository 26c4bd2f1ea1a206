# SPDX-License-Identifier: BSD-3-Clause
"""Plans of patterns (phases and flows), which the engine computes without any traffic.

Only the engine's C library computes patterns. The command requests a plan from
`switchbench-node --plan` (doc/developer/node-protocol.md), so that its plan equals the nodes' plan.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json

from ..base.errors import ConfigurationError, RunError
from ..base.model import Part, Pattern, ScheduleShape, Trial
from ..base.programs import find_engine

_TIMEOUT_S = 60

Flows = npt.NDArray[np.int64]  # one row per flow: rank numbers of source and destination

_HEAD = 2 + 64 // 4  # words before the flows of a phase: number, count, name
_FORWARDS = 1 << 31  # flag in a source's number: the source forwards


class PlanRefused(ConfigurationError):
    """Error: the pattern is impossible for these ranks; the text is the engine's message."""


@dataclass(frozen=True)
class PlanSize:
    """Number of phases and flows of a plan, and the shape of a schedule."""

    phases: int
    flows: int
    share: ScheduleShape | None = None  # for schedules
    memory_bytes: int = 0  # memory of one repetition on all ranks together


@dataclass(frozen=True)
class Phase:
    """Flows of one phase by rank number."""

    number: int
    name: str
    flows: Flows
    forwards: npt.NDArray[np.bool_]  # true where a flow's source forwards received data


def request(ranks: int, pattern: Mapping[str, object], seed: int, **how: object) -> str:
    """Return a `plan` document as JSON; `how`: further keys of the document."""
    given = {key: value for key, value in how.items() if value is not None}
    return json.dumps({"plan": {"ranks": ranks, "pattern": pattern, "seed": seed, **given}}) + "\n"


def plan_size(ranks: int, pattern: Mapping[str, object], seed: int) -> PlanSize:
    """Return the size (phases, flows) of a plan; raise PlanRefused for an impossible pattern."""
    return _size(request(ranks, pattern, seed, totals_only=True))


@lru_cache(maxsize=4096)
def _size(document: str) -> PlanSize:
    record = from_json(_asked(document))
    said = record.get("schedule")
    share, memory = None, 0
    if said is not None:
        memory = int(said["memory_all"])
        steps, messages, payload = (int(said[name]) for name in ("steps", "messages", "bytes"))
        share = ScheduleShape(steps, messages, payload, int(said["iterations"]) or None)
    return PlanSize(int(record["phases"]), int(record["flows"]), share, memory)


def plan_phases(
    ranks: int, pattern: Mapping[str, object], seed: int, phases: Sequence[int] | None = None
) -> Iterator[Phase]:
    """Yield the given phases of a plan, by default all; memory holds one phase at a time."""
    packed = np.frombuffer(_asked(request(ranks, pattern, seed, phases=phases)), dtype="<u4")
    at = 0
    while at < packed.size:
        number, count = (int(word) for word in packed[at : at + 2])
        name = packed[at + 2 : at + _HEAD].tobytes().rstrip(b"\0").decode()
        flows = packed[at + _HEAD : at + _HEAD + 2 * count].reshape(count, 2)
        ends = (flows & (_FORWARDS - 1)).astype(np.int64)
        yield Phase(number, name, ends, flows[:, 0] >= _FORWARDS)
        at += _HEAD + 2 * count


def _asked(document: str) -> bytes:
    """Send a `plan` document to the engine, and return the reply.

    Raise PlanRefused or RunError if there is no reply.
    """
    with open(os.memfd_create("plan"), "w+b") as answer:  # replies have up to 130 MB
        try:
            result = subprocess.run(
                [str(find_engine()), "--plan"],
                input=document.encode(),
                stdout=answer,
                stderr=subprocess.PIPE,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise RunError(f"switchbench-node can't be started: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise RunError(f"switchbench-node returned no plan within {_TIMEOUT_S} s") from None
        answer.seek(0)
        output = answer.read()
    if result.returncode != 0:
        # The engine's message is its `error` record, else its last log line.
        records = [from_json(line) for line in output.splitlines() if line.startswith(b"{")]
        texts = [str(record["text"]) for record in records if record.get("type") == "error"]
        lines = texts or result.stderr.decode(errors="replace").strip().splitlines()
        text = lines[-1] if lines else f"ended with status {result.returncode}"
        text = text.removeprefix("switchbench-node: ")
        raise PlanRefused(text) if result.returncode == 2 else RunError(f"switchbench-node: {text}")
    return output


# --- shares ---------------------------------------------------------------------------------------
# Division of a port's load among its flows, and the load that receivers are offered.


MOST_FLOWS = 200_000  # plans with more flows are not checked for oversubscription
_SLACK = 1.0005  # tolerance for clock differences (RFC 8239 allows 0.02 %)

Parts = npt.NDArray[np.float64]


def divided(pattern: Pattern) -> bool:
    """Return true if a pattern may let some ports send less than the configured load."""
    return "shares" in pattern or pattern.get("load_of") == "receivers"


def flow_parts(pattern: Pattern, flows: Flows) -> Parts:
    """Return, for each flow of a phase, the flow's share of its source port's load."""
    sources, destinations = flows.T
    if pattern.get("load_of") == "receivers":
        return np.asarray(1 / np.bincount(destinations)[destinations])
    given = np.zeros(len(flows))
    if "shares" in pattern:
        by_source = np.argsort(pattern["list"][::2], kind="stable")
        given = np.asarray(pattern["shares"])[by_source] / 1e9
    left = 1 - np.bincount(sources, weights=given)
    without = np.maximum(1, np.bincount(sources, weights=given == 0))
    return np.asarray(np.where(given > 0, given, (left / without)[sources]))


def port_parts(pattern: Pattern, ranks: int, seed: int) -> Parts:
    """Return, for each rank, the largest share of the load that the rank sends in a phase.

    The share is 0 for a rank that never sends.
    """
    if not divided(pattern):
        return np.ones(ranks)
    largest = np.zeros(ranks)
    for phase in plan_phases(ranks, pattern, seed):
        flows = phase.flows
        sent = np.bincount(flows[:, 0], weights=flow_parts(pattern, flows), minlength=ranks)
        largest = np.maximum(largest, sent)
    return largest


def oversubscribed(trial: Trial, part: Part) -> Iterator[tuple[str, float]]:
    """Yield each port that is offered more than its line rate in a phase, with the percentage.

    The excess is lost, or delayed if the network can slow the senders down. Ports with an unknown
    line rate are left out.
    """
    lines = np.array([float(port.line_rate_bps) for port in part.ranks])
    loads = np.array([trial.layer1_bps(line) for line in lines])
    for phase in plan_phases(len(lines), trial.pattern, trial.seed):
        sources, destinations = phase.flows.T
        offered = np.bincount(
            destinations,
            weights=flow_parts(trial.pattern, phase.flows) * loads[sources],
            minlength=len(lines),
        )
        for rank in np.flatnonzero((offered > lines * _SLACK) & (lines > 0)):
            yield part.ranks[rank].name, float(100 * offered[rank] / lines[rank])
