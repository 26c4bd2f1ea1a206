# SPDX-License-Identifier: BSD-3-Clause
"""What nodes are told of a trial: the `trial` document (doc/reference/node-protocol.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, Required

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

_OPEN = ConfigDict(extra="allow")


@with_config(_OPEN)
class PatternDocument(TypedDict, total=False):
    """A pattern's name and parameters, by rank number; most of them are for the engine alone."""

    name: Required[str]
    list: Sequence[int]
    shares: Sequence[int]
    load_of: str


class PartDocument(TypedDict):
    """One network's share of a trial."""

    network: str
    ranks: list[str]
    transport: NotRequired[str]
    sizes: NotRequired[list[int]]
    load: NotRequired[dict[str, float]]


class BurstDocument(TypedDict):
    """A burst of frames, and how often it is sent."""

    frames: int
    gap_ns: int
    count: int


class ScheduleDocument(TypedDict):
    """What is timed of dependent steps."""

    batch: int
    count: int
    warmup: int
    compute: bool


@with_config(_OPEN)
class TrialDocument(TypedDict, total=False):
    """The whole document, without the outer key. What is here alone is of all transports."""

    id: int
    repeat: int
    transport: str
    parts: list[PartDocument]
    pattern: PatternDocument
    phases: list[int]
    seed: int
    connectivity_check: bool
    connectivity_check_sizes: list[int]
    sync: str
    traffic: str
    sizes: list[int]
    load: dict[str, float]
    warmup_ns: int
    window_ns: int
    cooldown_ns: int
    drain_timeout_ns: int
    drain_max_ns: int
    interval_ns: int
    pingpong: dict[str, Any]
    schedule: ScheduleDocument
    transfer_bytes: int
    burst: BurstDocument
    listen: bool
    flood_limit: int
    latency: dict[str, object]
