# SPDX-License-Identifier: BSD-3-Clause
"""What each number is: the words beside its type.

And the formula in those of doc/reference/measures.md.

The page is not installed with the package: definitions.json has its words. It is made by
tests/python/pages.py, and a test compares the two, so that there is one source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from .schema import summary_schema

WORDS = "definitions.json"

# Parts of the summary whose keys are known without those before them.
_UNPREFIXED = (
    *("PhaseEntry", "PlanEntry", "ImportedEntry", "FindingEntry", "Throughput", "FlowEnds"),
    *("PortEntry", "ClauseEntry", "ValueLocationEntry"),
    *("QueuePairs", "ComparisonEntry", "ComparedEntry", "StatisticEntry", "Lowest"),
    "TimesEntry",
)


def definition(key: str) -> str:
    """Return what a key of the summary means, such as `throughput.min`.

    Nothing where nobody says.
    """
    short, formula = _from_schema().get(key), _words().get(key)
    if short and formula:
        return f"{short}. Formula: {formula}"
    words = short or formula
    if words is None:
        outer, dot, inner = key.partition(".")
        return definition(inner) if dot and outer else ""
    return words


def at(entry: Any, key: str) -> Any:
    """Return the value below a path of keys; None where there is none: older results have fewer."""
    for name in key.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


@cache
def _words() -> dict[str, str]:
    loaded: dict[str, str] = json.loads(files(__package__).joinpath(WORDS).read_text("utf-8"))
    return loaded


@cache
def _from_schema() -> dict[str, str]:
    """Descriptions of the summary's schema by key: `lost_frames`, `throughput.min`."""
    found: dict[str, str] = {}
    whole = summary_schema()
    parts = whole["$defs"]
    # Phases and plans first: of keys that others have as well, theirs is the meaning.
    for part in (*(parts[name] for name in _UNPREFIXED), whole):
        for key, words in _described(part, whole, ""):
            found.setdefault(key, words)
    return found


def _described(
    part: Mapping[str, Any], whole: Mapping[str, Any], before: str
) -> Iterator[tuple[str, str]]:
    for name, value in part.get("properties", {}).items():
        key = before + name
        if value.get("description"):
            yield key, value["description"]
        inner = [value, *value.get("anyOf", []), value.get("items", {})]
        for one in inner:
            reference = one.get("$ref", "").rpartition("/")[2]
            yield from _described(whole["$defs"].get(reference, one), whole, f"{key}.")
