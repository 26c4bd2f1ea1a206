# SPDX-License-Identifier: BSD-3-Clause
"""One comparison: the matched cases, the reasons for unmatched ones, and all differences.

Two cases match if matrix, size, load and transport are equal, except for the settings under
question. Where the transport is in question, frames match messages as in the summary's comparisons
(analysis/series.py): at equal payload, else the largest frames. Schedules have no load, and match
the same schedule at equal size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..analysis.series import matrix_series, rows_of
from ..base import format
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE
from ..base.transports import NAMES
from .cases import (
    NETWORK,
    SIZE,
    TRANSPORT,
    Case,
    Differing,
    Subject,
    differing,
    figure_cases,
)
from .differences import SHARES, Family, Pair, Row, Tester, adjusted, places_of


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison: confidence level, settings that may differ, number of flow rows."""

    confidence: float = 0.95
    question: frozenset[str] = frozenset()  # settings that may differ
    most_flows: int | None = 20  # rows per measure and pair; None for all


@dataclass
class Compared:
    """Comparison of one result with the baseline."""

    base: Subject
    other: Subject
    pairs: list[Pair] = field(default_factory=list)
    # settings that make two different measurements
    differing: list[Differing] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)  # a sentence per case that only one side has
    levels: dict[str, list[Row]] = field(default_factory=lambda: {level: [] for level in SHARES})
    flow_count: int = 0  # compared flows, of which only the first have rows
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """Comparison of all results with the baseline, which is the first subject."""

    subjects: list[Subject]  # the baseline first
    asked: CompareOptions
    question: list[Differing]  # settings under question that differ
    compared: list[Compared]

    @property
    def differing(self) -> list[Differing]:
        """Return the settings that make matched cases different measurements."""
        return list(dict.fromkeys(d for one in self.compared for d in one.differing))

    @property
    def damage(self) -> list[str]:
        """Return a sentence with its directory for each unreadable part of the results."""
        found: dict[str, None] = {}
        for result in (result for subject in self.subjects for result in subject.results):
            for sentence in result.measured.damage:
                where = "" if str(result.directory) in sentence else f"{result.directory}: "
                found[f"{where}{sentence}"] = None
        return list(found)

    @property
    def whole(self) -> bool:
        """Return true where every result has matched cases, all comparable, and no damage."""
        some = all(one.pairs for one in self.compared)
        return some and not self.differing and not self.damage

    def document(self) -> dict[str, object]:
        """Return the comparison as JSON for other programs (doc/how-to/compare.md)."""
        return {
            "schema": "switchbench-comparison/2",
            "exit_status": 0 if self.whole else 2,
            "confidence_percent": 100 * self.asked.confidence,
            "baseline": self.subjects[0].name,
            "results": [
                {
                    "name": subject.name,
                    "directory": str(subject.measured.directory),
                    "id": subject.measured.summary["run"].get("id"),
                    "started": subject.measured.summary["run"].get("started"),
                    "status": subject.measured.summary.get("status"),
                    "settings": subject.settings,
                }
                for subject in self.subjects
            ],
            "question": [_differing(one) for one in self.question],
            "comparisons": [
                {
                    "result": one.other.name,
                    "pairs": [
                        {"baseline": _case(pair.base), "other": _case(pair.other)}
                        for pair in one.pairs
                    ],
                    # The surest and largest differences come first.
                    **{level: list(map(_rounded, rows)) for level, rows in one.levels.items()},
                    "flows_compared": one.flow_count,
                    "differing": [_differing(each) for each in one.differing],
                    "alone": one.alone,
                    "notes": one.notes,
                }
                for one in self.compared
            ],
            "damage": self.damage,
        }


def _differing(one: Differing) -> dict[str, object]:
    return {"of": one.of or None, "setting": one.setting, "values": list(one.values)}


def _case(case: Case) -> dict[str, object]:
    trials = [plan["trial"] for plan in case.plans]  # one per repeat
    return {"title": case.title, "settings": case.settings, "trials": trials}


def _rounded(row: Row) -> Row:
    """Return a row with its figures rounded to six digits, except for probabilities."""
    return {
        name: round(value, 6) if isinstance(value, float) and name[0] != "p" else value
        for name, value in row.items()
    } | {"percent": None if row["percent"] is None else round(row["percent"], 6)}


def compare(subjects: Sequence[Subject], asked: CompareOptions) -> Comparison:
    """Compare each further subject with the first one; ConfigurationError for unknown settings."""
    known = {name for subject in subjects for case in subject.cases for name in case.settings}
    for name in sorted(asked.question - known):
        raise ConfigurationError(
            f"--question {name}: there is no setting {name!r} in any of the results "
            f"(there are: {', '.join(sorted(known))})"
        )
    allowed = set(asked.question) | {name for subject in subjects for name in subject.chosen}
    families: dict[str, list[tuple[Compared, Family]]] = {level: [] for level in SHARES}
    compared = [match(subjects[0], other, allowed) for other in subjects[1:]]
    for one in compared:
        _test(one, asked, families)
    corrected = adjusted({level: [one for _, one in found] for level, found in families.items()})
    for level, found in families.items():
        for (one, family), p in zip(found, corrected[level], strict=True):
            one.levels[level] += family.rows(p)
    for one in compared:
        one.levels["plans"].sort(key=lambda row: row["pair"])
    question = list(_question(subjects, compared, allowed))
    return Comparison(list(subjects), asked, question, compared)


def _test(
    one: Compared, asked: CompareOptions, families: dict[str, list[tuple[Compared, Family]]]
) -> None:
    """Add the tests of one result to `families`; rows follow when all families are complete."""
    for number, pair in enumerate(one.pairs):
        tester = Tester(number, pair, (one.base, one.other), asked.confidence)
        (common, *sides), flows = tester.flows(asked.most_flows)
        levels = {"plans": tester.plans(), "phases": tester.by_phase(), "flows": flows}
        for level, found in levels.items():
            families[level] += [(one, family) for family in found]
        base, other = tester.phases
        one.flow_count += common
        for noun, both, counts in (
            ("phase", len(base.keys() & other.keys()), (len(base), len(other))),
            ("flow", common, sides if common else (0, 0)),
        ):
            if both < max(counts):
                what = f"{format.of(both, noun)} {'is' if both == 1 else 'are'} in both"
                one.notes.append(f"{pair.base.title}: {what}, of {counts[0]:,} and {counts[1]:,}")
    one.notes += _notes(one)


def _notes(one: Compared) -> Iterator[str]:
    """Yield notes on incomparable flows, truncated tables, and possible limits of the hosts."""
    base, other = one.base.measured.ports, one.other.measured.ports
    if places_of(base, other) is None:
        counts = f"{one.base.name} has {len(base)} ports and {one.other.name} {len(other)}"
        yield f"flows are not compared: {counts}"
    elif set(base) != set(other):
        yield (
            f"the ports have other names in {one.other.name}: flows are compared by the ports' "
            f"places, {base[0]} with {other[0]} and so on"
        )
    for subject in (one.base, one.other):
        measured = subject.measured
        if measured.records.cut and not measured.damage:
            yield (
                f"{measured.directory}: a table ends in half a piece: nothing is lost by it that "
                "the summary was made of"
            )
    for subject, cases in (
        (one.base, [pair.base for pair in one.pairs]),
        (one.other, [pair.other for pair in one.pairs]),
    ):
        measured = subject.measured
        plans = {id(plan): plan for case in cases for plan in case.plans}.values()
        phases = [phase for plan in plans for phase in measured.phases_of(plan)]
        if limited := sum(1 for phase in phases if phase["tester_limited"]):
            yield (
                f"{subject.name}: in {limited} of {format.of(len(phases), 'phase')} a host may "
                f"have been the limit, not the network (`switchbench table {measured.directory}` "
                "names it)"
            )


def _question(
    subjects: Sequence[Subject], compared: Sequence[Compared], allowed: set[str]
) -> Iterator[Differing]:
    """Yield the differing settings of the test bed, and those in `allowed` that differ."""
    if any(subject.imported for subject in subjects):
        programs = tuple(subject.measured_by for subject in subjects)
        if len(set(programs)) > 1:
            yield Differing("", "measured by", programs)
        return
    yield from differing("", [subject.settings for subject in subjects], set())
    names = (TRANSPORT, NETWORK, *allowed)
    words = [{name: ", ".join(one.values(name)) for name in names} for one in subjects]
    if any(one.pairs for one in compared):
        chosen = {name for subject in subjects for name in subject.chosen}
        yield from differing("", words, chosen)


# --- which case stands beside which ---------------------------------------------------------------


def match(base: Subject, other: Subject, question: set[str]) -> Compared:
    """Match the cases of two subjects; `question` has the settings that may differ."""
    found = Compared(base, other)
    if base.imported or other.imported:
        _match_figures(found)
        return found
    own = _own_question(base, other)
    asked = question | own
    if TRANSPORT in asked and set(base.values(TRANSPORT)).isdisjoint(other.values(TRANSPORT)):
        asked.add(SIZE)
        mine, theirs = (list(filter(_is_schedule, one.cases)) for one in (base, other))
        found.pairs = list(_by_transport(base, other, asked))
        found.pairs += _equal(mine, theirs, own | {TRANSPORT})
    else:
        found.pairs = list(_equal(base.cases, other.cases, asked))
    for pair in found.pairs:
        both = [pair.base.settings, pair.other.settings]
        found.differing += differing(pair.title, both, asked | _options(pair))
    _name_the_rest(found, asked)
    return found


def _match_figures(found: Compared) -> None:
    """Match every program's figures with every other program's of equal definition, ranks and size.

    Where both sides have figures of one program, only figures of equal programs match.
    """
    base, other = figure_cases(found.base), figure_cases(found.other)
    programs = [{case.settings[TRANSPORT] for case in cases} for cases in (base, other)]
    asked = set() if programs[0] & programs[1] else {TRANSPORT}
    found.pairs = [
        Pair(case, one)
        for case in base
        for one in other
        if not list(differing("", [case.settings, one.settings], asked))
    ]
    beside = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
    if alone := sum(id(case) not in beside for case in (*base, *other)):
        found.alone.append(f"{format.of(alone, 'figure')} of one program alone")


def _own_question(base: Subject, other: Subject) -> set[str]:
    """Return settings that have no value in common, and so must be the subject of the comparison.

    Examples: one network on each side, with different names; or only different transports.
    """
    found = set()
    networks = [set(one.values(NETWORK)) for one in (base, other)]
    if networks[0].isdisjoint(networks[1]) and len(networks[0]) == len(networks[1]) == 1:
        found.add(NETWORK)
    if set(base.values(TRANSPORT)).isdisjoint(other.values(TRANSPORT)):
        found.add(TRANSPORT)
    return found


def _options(pair: Pair) -> set[str]:
    """Return the transport options, which are ignored where a pair's transports differ."""
    if pair.base.settings[TRANSPORT] == pair.other.settings[TRANSPORT]:
        return set()
    names = pair.base.settings.keys() | pair.other.settings.keys()
    return {n for n in names if n.partition(".")[0] in NAMES or n.startswith("latency")}


def _equal(base: Sequence[Case], other: Sequence[Case], asked: set[str]) -> Iterator[Pair]:
    """Yield pairs of cases with equal identity.

    Among several, the case with most equal settings.
    """
    theirs: dict[Any, list[Case]] = {}
    for case in other:
        theirs.setdefault(case.identity(asked), []).append(case)
    for case in base:
        if alike := theirs.get(case.identity(asked)):
            yield Pair(case, _nearest(case, alike))


def _nearest(case: Case, others: Sequence[Case]) -> Case:
    """Return the case in `others` with the fewest different settings."""
    return min(others, key=lambda o: len(list(differing("", [case.settings, o.settings], set()))))


def _by_transport(base: Subject, other: Subject, asked: set[str]) -> Iterator[Pair]:
    """Yield pairs across transports: the baseline's best case with each transport of the other."""
    matrices: dict[Any, list[Case]] = {}
    for case in (case for one in (base, other) for case in one.cases if not _is_schedule(case)):
        matrices.setdefault(case.identity(asked), []).append(case)
    mine = base.values(TRANSPORT)
    for cases in matrices.values():
        of = {id(case.plans[0]): case for case in cases}
        for row in rows_of(list(matrix_series(p for c in cases for p in c.plans))):
            own = [one for one in row if one.transport in mine]
            beside = [one for one in row if one.transport not in mine]
            if own:
                best = max(own, key=lambda one: one.rate or 0.0)
                yield from (Pair(of[id(best.plans[0])], of[id(one.plans[0])]) for one in beside)


def _is_schedule(case: Case) -> bool:
    return bool(case.plans[0]["traffic"] == SCHEDULE)


def _name_the_rest(found: Compared, asked: set[str]) -> None:
    """Append unmatched cases to `found.alone`, with the settings that differ from the nearest case.

    The nearest case is an unmatched one of the same pattern, where there is one.
    """
    taken = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
    right = [case for case in found.other.cases if id(case) not in taken]
    for case in (case for case in found.base.cases if id(case) not in taken):
        near = [one for one in right if one.settings["pattern"] == case.settings["pattern"]]
        if not near:
            found.alone.append(f"{case.title}: only in {found.base.name}")
            continue
        nearest = _nearest(case, near)
        right.remove(nearest)
        what = f"{format.pattern(case.plans[0])}, {case.plans[0]['transport']}"
        found.differing += differing(what, [case.settings, nearest.settings], asked)
    found.alone += [f"{case.title}: only in {found.other.name}" for case in right]
