# SPDX-License-Identifier: BSD-3-Clause
"""What the command asks of the engine's binary without traffic: plans.

Patterns are computed in one place, the C library below the engine; `switchbench-node --plan` says
what it makes of a request (doc/reference/node-protocol.md), so that the command can't disagree with
a node.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from pydantic_core import from_json

from ..base.errors import ConfigurationError, RunError
from ..base.model import ScheduleShape
from ..base.programs import find_engine

_TIMEOUT_S = 60

Flows = npt.NDArray[np.int64]
"""A row an operation: its step, its action, the other rank, bytes or floating point operations."""

SEND, RECEIVE, REDUCE, COPY, WORK = range(5)
"""Actions, as patterns/schedule.h counts them."""


class PlanRefused(ConfigurationError):
    """The pattern can't be made of these ranks: the pattern's own sentence."""


@dataclass(frozen=True)
class PlanSize:
    """How much a plan is."""

    phases: int
    flows: int
    share: ScheduleShape | None = None  # of what goes by steps
    memory_bytes: int = 0  # ... that one repetition of all ranks together needs


@dataclass(frozen=True)
class Phase:
    """The flows of one phase by rank number: (source, destination, whether it forwards)."""

    number: int
    name: str
    flows: list[tuple[int, int, bool]]  # lists of three
    idle: list[int]


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is made of. `pattern` is the `trial` document's, as JSON: a value to cache by."""

    ranks: int
    pattern: str
    seed: int

    @classmethod
    def of(cls, ranks: int, pattern: Mapping[str, object], seed: int) -> PlanRequest:
        """From a pattern's mapping."""
        return cls(ranks, json.dumps(pattern, sort_keys=True), seed)

    def document(
        self, phases: Sequence[int] | None, totals_only: bool = False, packed: bool = False
    ) -> str:
        """Return the request as the engine reads it; `packed`: numbers instead of records."""
        plan: dict[str, object] = {
            "ranks": self.ranks,
            "pattern": json.loads(self.pattern),
            "seed": self.seed,
        }
        if packed:
            plan["packed"] = True
        if totals_only:
            plan["totals_only"] = True
        elif phases is not None:
            plan["phases"] = list(phases)
        text: str = yaml.safe_dump({"plan": plan}, explicit_end=True, sort_keys=False)
        return text


@lru_cache(maxsize=4096)
def plan_size(request: PlanRequest) -> PlanSize:
    """Phases and flows of a plan; PlanRefused with the reason."""
    record = next(_records(request, totals_only=True))
    said = record.get("schedule")
    share, memory = None, 0
    if said is not None:
        memory = int(said["memory_all"])
        steps, messages, payload = (int(said[name]) for name in ("steps", "messages", "bytes"))
        share = ScheduleShape(steps, messages, payload, int(said["iterations"]) or None)
    return PlanSize(int(record["phases"]), int(record["flows"]), share, memory)


def plan_phases(request: PlanRequest, phases: Sequence[int] | None = None) -> list[Phase]:
    """The flows of a plan's phases, all of them or those named."""
    return [
        Phase(record["phase"], record["name"], record["flows"], record["idle"])
        for record in _records(request, phases)
        if record["type"] == "plan-phase"
    ]


def plan_flows(
    request: PlanRequest, phases: Sequence[int] | None = None
) -> Iterator[tuple[int, Flows]]:
    """Each phase's number and its flows, as rows of source and destination by rank number.

    What `plan_phases` is for people, this is for computing: plans of many million flows.
    """
    packed = np.frombuffer(_asked(request.document(phases, packed=True)), dtype="<u4")
    at = 0
    while at < packed.size:
        phase, count = (int(number) for number in packed[at : at + 2])
        yield phase, packed[at + 2 : at + 2 + 2 * count].reshape(count, 2).astype(np.int64)
        at += 2 + 2 * count


def _records(
    request: PlanRequest, phases: Sequence[int] | None = None, totals_only: bool = False
) -> Iterator[dict[str, Any]]:
    yield from map(from_json, _asked(request.document(phases, totals_only)).splitlines())


def _asked(document: str) -> bytes:
    """What the engine answers to a `plan` document; PlanRefused or RunError if it does not."""
    with open(os.memfd_create("plan"), "w+b") as answer:  # of 130 MB, say: too much for a pipe
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
            raise RunError(f"switchbench-node made no plan within {_TIMEOUT_S} s") from None
        answer.seek(0)
        output = answer.read()
    if result.returncode != 0:
        raise _refusal(output, result.stderr.decode(errors="replace"), result.returncode)
    return output


def _refusal(output: bytes, log: str, status: int) -> Exception:
    """The engine's own sentence: its error record, else the last line of its log."""
    records = [from_json(line) for line in output.splitlines() if line.startswith(b"{")]
    texts = [str(record["text"]) for record in records if record.get("type") == "error"]
    lines = log.strip().splitlines()
    text = texts[-1] if texts else (lines[-1] if lines else f"ended with status {status}")
    text = text.removeprefix("switchbench-node: ")
    return PlanRefused(text) if status == 2 else RunError(f"switchbench-node: {text}")
