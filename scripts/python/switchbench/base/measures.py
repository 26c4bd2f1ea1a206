# SPDX-License-Identifier: BSD-3-Clause
"""Registry of measures: measures.toml declares each once, with unit, words and formula.

Clauses, the summary's schema, the code book, the report's columns, the directions of a comparison
and the tables of doc/reference/measures.md are generated from it (tests/python/pages.py).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .model import LATENCY_FIGURES, LATENCY_KINDS

PHASES = ("phase", "plan", "run")  # levels at which every measure can be judged
MORE, LESS, NEITHER = +1, -1, 0  # direction in which a value is better
# Validity of a measure for the network if the phase was tester-limited.
VALID, AT_LEAST, NOTHING = "valid", "at least", "not valid"
RATE, PERCENT, COUNT, NUMBER = "rate", "percent", "count", "number"  # format in which it is printed
FRAMES, MESSAGES, RDMA, ANY = "frames", "messages", "rdma", ""  # transports that have a measure
Reduce = str | Callable[[Sequence[float]], float | None]
"""Combination of several values: min, mean, max or sum; known (the sum of the known values); or a
function of values that are all known."""


@dataclass(frozen=True)
class Measure:
    """Measure of a phase, with the rules to judge it; measures.toml describes the fields."""

    key: str  # name in clauses
    title: str
    unit: str
    definition: str
    better: int = LESS
    format: str = NUMBER
    over_phases: str = "max"
    formula: str = ""
    entry: str = ""
    overs: tuple[str, ...] = PHASES
    when_limited: str = NOTHING
    plan: str = ""
    of_repeats: bool = False
    flow: str = ""
    port: str = ""
    reduce: Reduce = ""  # "": a phase's value does not come from a column
    seen: str = ANY


def _jain(values: Sequence[float]) -> float | None:
    most = max(values, default=0.0)
    if not most:
        return None
    shares = [value / most for value in values]  # exactly 1 if all flows are equal
    squares = sum(share * share for share in shares)
    return min(1.0, round(sum(shares) ** 2 / (len(shares) * squares), 12))


def _declared() -> Iterator[Measure]:
    data = tomllib.loads(Path(__file__).with_name("measures.toml").read_text("utf-8"))
    for key, own in data["measure"].items():
        kind = own.pop("kind", "")
        values = data["kind"].get(kind, {}) | own
        if kind in ("count", "run"):
            values.setdefault("entry", key)
        if values.get("reduce") == "jain":
            values["reduce"] = _jain
        values["better"] = MORE if values.get("better") == "more" else LESS
        yield Measure(key, overs=(*values.pop("also_over", ()), *PHASES), **values)


# Kind and figure of each latency measure, such as round_trip_p99_us (doc/reference/latency.md).
LATENCY_MEASURES = {
    f"{kind}_{name}_us": (kind, name) for kind in LATENCY_KINDS for name in LATENCY_FIGURES
}
MEASURES = {measure.key: measure for measure in _declared()} | {
    key: Measure(
        key,
        f"{kind} {name}".replace("_", " "),
        "us",
        f"{name} of the phase's times of kind {kind}",
        entry=f"latency.{kind}.{name}",
        overs=("flow", *PHASES),
        flow=key,
    )
    for key, (kind, name) in LATENCY_MEASURES.items()
}
REDUCED = tuple(m for m in MEASURES.values() if m.entry.startswith("reduced."))
"""Measures with a key of their own in each phase's entry."""
