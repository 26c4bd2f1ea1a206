# SPDX-License-Identifier: BSD-3-Clause
"""What doc/reference/measures.md says of registered measures: formulas in its tables, and all of
them in one.

    python -m switchbench.render.report.measures_page doc/reference/measures.md

writes both into the page, and the page's words into definitions.json. Tests fail while either is
out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ...base.measures import LATENCY_MEASURES, LESS, MEASURES, MORE, PHASES, Measure
from ...records.document import definitions

_BEGIN = "<!-- made of base/measures.py -->"
_END = "<!-- end -->"
_ROW = re.compile(r"^\| `([\w.]+)` \| [^\n]* \|$", re.M)
_BETTER = {MORE: "more", LESS: "less"}


def refreshed(page: str) -> str:
    """The page with the registry's formulas, and the table of all measures between its marks."""
    formulas = {_name(m): m.formula for m in MEASURES.values() if m.formula}

    def row(found: re.Match[str]) -> str:
        formula = formulas.get(found[1])
        return found[0] if formula is None else f"| `{found[1]}` | {formula} |"

    begin, end = page.index(_BEGIN), page.index(_END)
    return f"{_ROW.sub(row, page[:begin])}{_BEGIN}\n{table()}{_ROW.sub(row, page[end:])}"


def _name(measure: Measure) -> str:
    """As the page's tables name it: those of intervals go without `intervals.`."""
    return measure.entry.removeprefix("intervals.")


def table() -> str:
    """All measures; those of times in one row, as they differ in their names alone."""
    lines = [
        "| measure | unit | better | also over | several phases | what it is |",
        "| --- | --- | --- | --- | --- | --- |",
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
        what or measure.definition,
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Makes the page's tables and definitions.json anew."""
    path = Path(sys.argv[1])
    path.write_text(refreshed(path.read_text("utf-8")), "utf-8")
    definitions.main()


if __name__ == "__main__":
    main()
