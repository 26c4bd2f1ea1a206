# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what was concluded: findings, clauses, where they fail; subtests of suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...base import format
from ...base.measures import COUNT, PERCENT
from ...search.suites import SUITES
from ...search.suites.declaration import Subtest, Suite, Value
from ..printer import PAGE, Column, Entry, Spec, Summary, count, text
from .network import SIZE, TRANSPORT

suspects = Spec(
    "suspects",
    "Suspects",
    "What is at fault by all flows and their paths, the most certain first "
    "(doc/reference/measures.md, Location).",
    (
        text("suspect", "brief", about="Element and fault"),
        Column("from", "low", about="95 % interval of its size"),
        Column("to", "high", about="95 % interval of its size"),
        text("unit", "unit", about="Of from and to"),
        Column("sure", "confidence", "percent", "%",
               about="Probability that such a fault is there",
               value=lambda entry: 100 * min(entry["confidence"], 0.999)),
        text("evidence", "evidence", drop=1, about="Who suffers through it and beside it"),
        count("frames", "frames", about="Frames that it explains", drop=2),
        text("not told apart from", "alike", drop=3, seldom=True,
             about="Elements that the same flows pass", value=lambda entry: [
             " ".join((one["name"], one["direction"])).rstrip()
             for one in entry["alike"] if one != entry["element"]]),
    ),
    lambda summary: summary["location"]["suspects"],
)  # fmt: skip

findings = Spec(
    "findings",
    "Findings",
    "Suspects, what hosts and foreign traffic cost, what no line had room for, and counts that no "
    "element explains.",
    (
        text("severity", "severity", about="error, warning or info"),
        text("kind", "kind", about="Kinds: doc/reference/measures.md, Findings"),
        text("found", "sentence", about="What was found, for a person"),
        count("frames", "count", about="Frames that it explains"),
        text("port", "port", seldom=True),
        TRANSPORT,
        count("trial", "trial"),
        count("phase", "phase", about="From 0; empty: over the whole run"),
    ),
    "findings",
)

clauses = Spec(
    "clauses",
    "Clauses",
    "Each clause as stated, the worst of the valid values, and how far it is from the limit.",
    (
        text("clause", "id", seldom=True),
        Column("verdict", "verdict", "verdict", about="FAIL: a valid value is not as "
               "required; INCONCLUSIVE: none is, but some are tester-limited or missing"),
        text("measure", "measure", about="doc/reference/measures.md, Clauses"),
        text("required", "require", about="As stated"),
        Column("worst value", "value"),
        text("unit", "unit", about="Of worst value and margin"),
        Column("margin", "margin"),
        Column("margin of limit", "margin_percent", "percent", "%", seldom=True, drop=2),
        text("of", "of", seldom=True, drop=4),
        text("because", "reason", seldom=True, output=PAGE),
        text("wording", "clause", seldom=True, output=PAGE),
        text("source", "source", seldom=True, output=PAGE),
        text("over", "over", about="What each value is of", drop=3),
        count("judged", "judged", drop=1),
        count("failed", "failed"),
        count("not observed", "unobserved", drop=1),
        count("tester-limited", "limited", drop=1, seldom=True),
        count("trials", "trials", output=PAGE),
        count("trials measured", "trials_measured", output=PAGE),
    ),
    "expectations",
    "expectations",
)  # fmt: skip


failures = Spec(
    "failures",
    "Where clauses fail",
    "Values for which a clause does not hold, the worst first, at most 20 of each clause.",
    (
        text("clause", "id", value=lambda entry: entry["id"] or entry["clause"]),
        text("required", "require", about="As stated"),
        Column("value", "value", about="As seen"),
        text("unit", "unit", about="Of value and margin"),
        Column("margin", "margin", defined="expectations.margin"),
        text("of", "of", about="What the value is of"),
        count("trial", "at.trial", defined="trial"),
        count("phase", "at.phase", defined="phase"),
    ),
    lambda summary: (
        {**clause, **failure}
        for clause in summary.get("expectations", [])
        for failure in clause.get("failures", [])
    ),
)


superseded = Spec(
    "superseded",
    "Measured again",
    "Phases that the tester alone had limited, as they were before they were measured again.",
    (
        text("pattern", "pattern"),
        TRANSPORT,
        count("trial", "trial"),
        count("phase", "phase"),
        text("because", "reason", about="How the tester was the limit"),
        count("lost frames", "lost_frames", about="None of them in the network"),
        count("dropped in hosts", "host_dropped_frames"),
    ),
    "superseded",
)


# --- subtests of suites, made of their declarations -----------------------------------------------


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


SUBTESTS: tuple[Spec, ...] = tuple(
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
