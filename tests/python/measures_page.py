# SPDX-License-Identifier: BSD-3-Clause
"""What doc/reference/measures.md says of registered measures: formulas in its tables, and all of
them in one; and the page's words, which are installed as definitions.json."""

from __future__ import annotations

import re
from collections.abc import Iterator

from switchbench.base.measures import LATENCY_MEASURES, LESS, MEASURES, MORE, PHASES, Measure

_BEGIN = "<!-- made of base/measures.toml -->"
_END = "<!-- end -->"
_ROW = re.compile(r"^\| `([\w.]+)` \| [^\n]* \|$", re.M)
_BETTER = {MORE: "more", LESS: "less"}


def refreshed(page: str) -> str:
    """Return the page with the registry's formulas, and with the table between its marks."""
    formulas = {_name(m): m.formula for m in MEASURES.values() if m.formula}

    def row(found: re.Match[str]) -> str:
        formula = formulas.get(found[1])
        return found[0] if formula is None else f"| `{found[1]}` | {formula} |"

    begin, end = page.index(_BEGIN), page.index(_END)
    return f"{_ROW.sub(row, page[:begin])}{_BEGIN}\n{table()}{_ROW.sub(row, page[end:])}"


def _name(measure: Measure) -> str:
    """Return a measure's name as the page's tables have it: without `intervals.`."""
    return measure.entry.removeprefix("intervals.")


def table() -> str:
    """Return all measures; those of times in one row, as they differ in their names alone."""
    lines = [
        "| measure | unit | better | also over | phases of a run | of a plan | tester-limited "
        "| what it is |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(f"`{m.key}`", m) for m in MEASURES.values() if m.key not in LATENCY_MEASURES]
    times = list(LATENCY_MEASURES)
    what = "Figures of times by kind ([latency.md](latency.md))"
    lines.append(_row(", ".join(f"`{key}`" for key in times), MEASURES[times[0]], what))
    return "\n".join(lines) + "\n"


def _row(names: str, measure: Measure, what: str = "") -> str:
    cells = (
        names,
        measure.unit,
        _BETTER[measure.better],
        ", ".join(over for over in measure.overs if over not in PHASES),
        measure.over_phases,
        f"`{measure.plan}`" if measure.plan else measure.over_phases,
        measure.when_limited,
        what or measure.definition,
    )
    return f"| {' | '.join(cells)} |"


# --- the page's words ----------------------------------------------------------------------------

# Sections of the page whose keys have short names: the key before them in the summary.
_PREFIXES = {
    "Interval results": "intervals.",
    "Order": "reordering.",
    "Loss by location": "loss_location.",
    "Repeats": "statistics.",
    "Transports side by side": "comparisons.",
    "Dependent steps": "steps.functions.points.",
}


def parse(page: str) -> dict[str, str]:
    """Return the definitions of doc/reference/measures.md: key -> words, without Markdown."""
    found: dict[str, str] = {}
    for heading, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        for names, words in _rows(body):
            for name in names:
                found.setdefault(_PREFIXES.get(heading, "") + name, words)
    return found


def _rows(body: str) -> Iterator[tuple[list[str], str]]:
    """Return the rows of a section's tables of keys: names in the first cell, words in the last."""
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
    """Return a text without Markdown's marks."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\1", text)
    return text.replace("`", "").replace("\\|", "|")
