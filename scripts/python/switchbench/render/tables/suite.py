# SPDX-License-Identifier: BSD-3-Clause
"""A table per subtest of each document's suite, made of the suites' declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...base import format
from ...base.measures import COUNT, PERCENT
from ...search.suites import SUITES
from ...search.suites.declaration import Subtest, Suite, Value
from .columns import SIZE
from .table import PAGE, Column, Entry, Spec, Summary, text


def _rows(summary: Summary, suite: str, subtest: str) -> Iterator[Entry]:
    found = summary.get("suite") or {}
    if found.get("name") != suite:
        return
    for entry in found["subtests"]:
        if entry["subtest"] == subtest:
            yield from ({**entry, "media": found["media"], **row} for row in entry["rows"])


def _column(value: Value) -> Column:
    kind = value.format if value.format in (PERCENT, COUNT) else "number"
    unit = value.unit.replace("us", "µs")
    return Column(value.title, value.key, kind, unit=unit, about=value.definition, seldom=True)


_MATRIX = (text("matrix", "variant", fold=True, about="Which ports send to which"),)
_EACH = (
    text("each search", "iterations", fold=True, output=PAGE,
         value=lambda entry: ", ".join(map(str, entry["iterations"])) or None,
         about="The longest burst of each search, frames, in order"),
)  # fmt: skip


def _table(suite: Suite, subtest: Subtest) -> Spec:
    entries: Callable[[Summary], Iterator[Entry]] = partial(
        _rows, suite=suite.name, subtest=subtest.name
    )
    return Spec(
        f"{suite.name}-{subtest.name}",
        f"{subtest.title} ({', '.join(filter(None, (suite.document, subtest.section)))})",
        subtest.about,
        (
            text("size", "size", value=format.size, about=SIZE),
            *(_MATRIX if subtest.variants else ()),
            *map(_column, subtest.values),
            *(_EACH if subtest.quantity == "burst" else ()),
            text("media", "media", fold=True, output=PAGE, about="Of the ports, with line rates"),
            text("network", "networks", fold=True, output=PAGE, about="Of the ports"),
            text(
                "outcome",
                "outcome",
                fold=True,
                silent=True,
                output=PAGE,
                about="How the subtest ended",
            ),
        ),
        entries,
    )


TABLES: tuple[Spec, ...] = tuple(
    _table(suite, subtest)
    for suite in SUITES.values()
    for subtest in suite.subtests
    if subtest.values
)
"""In the order of the suites and of their subtests."""


def _trials(summary: Summary) -> Iterator[Entry]:
    for entry in (summary.get("suite") or {}).get("subtests", []):
        for number, trial in enumerate(entry["trials"], 1):
            yield {**entry, "number": number, **trial}


trials = Spec(
    "suite-trials",
    "Trials of the suite",
    "Each trial in the order of its search. One that was tester-limited decided nothing.",
    (
        text("subtest", "subtest", fold=True, about="Of the suite"),
        *_MATRIX,
        text("size", "size", value=format.size, fold=True, about=SIZE),
        Column("trial", "number", COUNT, about="Of the search, in order"),
        Column("value", "value", about="What the search varies"),
        text("unit", "unit", fold=True, about="Of the value"),
        Column("learning rate", "learning_rate", unit="addresses/s", seldom=True,
               about="At which addresses were announced"),
        Column("duration", "duration_s", unit="s", about="Asked for"),
        Column("offered", "offered", COUNT, "frames", about="Test frames that were sent"),
        Column("forwarded", "forwarded", COUNT, "frames",
               about="That came to their destinations"),
        Column("lost", "lost", COUNT, "frames", about="Of the offered ones"),
        Column("flooded", "flooded", COUNT, "frames",
               about="That came to other ports than their destinations"),
        text("tester-limited", "tester_limited", seldom=True, about="It decided nothing"),
    ),
    _trials,
)  # fmt: skip
