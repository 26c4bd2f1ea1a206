# SPDX-License-Identifier: BSD-3-Clause
"""What each number is: the words beside its type, and the formula in those of
doc/reference/measures.md.

The page is not installed with the package: definitions.json has its words, is made by

    python -m switchbench.render.report.measures_page doc/reference/measures.md

and a test compares the two, so that there is one source.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .schema import summary_schema

WORDS = "definitions.json"

# Sections of the page whose keys have short names: the key before them in the summary.
_PREFIXES = {
    "Interval results": "intervals.",
    "Order": "reordering.",
    "Loss by location": "loss_location.",
    "Repeats": "statistics.",
    "Transports side by side": "comparisons.",
    "Dependent steps": "steps.functions.points.",
}

# Parts of the summary whose keys are known without those before them.
_UNPREFIXED = (
    *("PhaseEntry", "PlanEntry", "ImportedEntry", "FindingEntry", "Throughput", "FlowEnds"),
    *("PortEntry", "ClauseEntry", "ValueLocationEntry"),
    *("QueuePairs", "ComparisonEntry", "ComparedEntry", "StatisticEntry", "Lowest"),
    *("TimesEntry", "LoopbackBaselineEntry"),
)


def definition(key: str) -> str:
    """What a key of the summary means, such as `throughput.min`; nothing where nobody says."""
    short, formula = _from_schema().get(key), _words().get(key)
    if short and formula:
        return f"{short}. Formula: {formula}"
    words = short or formula
    if words is None:
        outer, dot, inner = key.partition(".")
        return definition(inner) if dot and outer else ""
    return words


def at(entry: Any, key: str) -> Any:
    """The value below a path of keys; None where there is none: older results have fewer."""
    for name in key.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


def parse(page: str) -> dict[str, str]:
    """The definitions of doc/reference/measures.md: key -> words, without Markdown."""
    found: dict[str, str] = {}
    for heading, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        for names, words in _rows(body):
            for name in names:
                found.setdefault(_PREFIXES.get(heading, "") + name, words)
    return found


def _rows(body: str) -> Iterator[tuple[list[str], str]]:
    """The rows of a section's tables of keys: names in the first cell, words in the last."""
    for line in body.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        names = re.findall(r"`([\w.]+)`", cells[0])
        if line.startswith("|") and len(cells) == 2 and names:
            yield list(_whole(names)), _plain(cells[1])


def _whole(names: list[str]) -> Iterator[str]:
    """`throughput.min`, `.mean`: the second is `throughput.mean`."""
    stem = names[0].rpartition(".")[0]
    for name in names:
        yield stem + name if name.startswith(".") else name


def _plain(text: str) -> str:
    """Markdown's marks taken away."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\1", text)
    return text.replace("`", "").replace("\\|", "|")


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


def main() -> None:
    """Makes definitions.json anew from the page that is named."""
    words = parse(Path(sys.argv[1]).read_text("utf-8"))
    target = Path(__file__).with_name(WORDS)
    target.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
