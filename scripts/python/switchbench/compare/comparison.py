# SPDX-License-Identifier: BSD-3-Clause
"""One comparison from its subjects to all its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..base import format
from ..base.errors import ConfigurationError
from . import settings
from .differences import (
    SHARES,
    DifferenceRow,
    Family,
    Tester,
    adjusted,
    both_phases,
    phase_families,
    plan_families,
)
from .flows import flow_table, places_of
from .match import Match, Pair, match
from .settings import Differing
from .subjects import Subject


@dataclass(frozen=True)
class CompareOptions:
    """How to compare."""

    confidence: float = 0.95
    question: frozenset[str] = frozenset()  # settings that may differ
    most_flows: int | None = 20  # of each measure of each pair; None: all


@dataclass
class Compared:
    """One result beside the baseline."""

    match: Match
    plans: list[DifferenceRow] = field(default_factory=list)
    phases: list[DifferenceRow] = field(default_factory=list)
    flows: list[DifferenceRow] = field(default_factory=list)
    flow_count: int = 0  # compared, of which `flows` are the first
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """All that a comparison found."""

    subjects: list[Subject]  # the baseline first
    asked: CompareOptions
    question: list[Differing]  # what differs and is the question
    compared: list[Compared]

    @property
    def differing(self) -> list[Differing]:
        """Settings that make other measurements of what is beside each other."""
        return list(dict.fromkeys(d for one in self.compared for d in one.match.differing))

    @property
    def damage(self) -> list[str]:
        """What could not be read, with where."""
        found: dict[str, None] = {}
        for subject in self.subjects:
            for run in subject.runs:
                for sentence in run.measured.damage:
                    where = "" if str(run.directory) in sentence else f"{run.directory}: "
                    found[f"{where}{sentence}"] = None
        return list(found)

    @property
    def whole(self) -> bool:
        """Whether all could be compared that both sides have."""
        some = all(one.match.pairs for one in self.compared)
        return some and not self.differing and not self.damage


def compare(subjects: Sequence[Subject], asked: CompareOptions) -> Comparison:
    """Return all other subjects beside the first."""
    base = subjects[0]
    known = {name for subject in subjects for case in subject.cases for name in case.settings}
    for name in sorted(asked.question - known):
        raise ConfigurationError(
            f"--question {name}: there is no setting {name!r} in any of the results "
            f"(there are: {', '.join(sorted(known))})"
        )
    chosen = {name for subject in subjects for name in subject.chosen}
    allowed = set(asked.question) | chosen
    families: dict[str, list[tuple[Compared, Family]]] = {level: [] for level in SHARES}
    compared = [_compared(match(base, other, allowed), asked, families) for other in subjects[1:]]
    corrected = adjusted({level: [one for _, one in found] for level, found in families.items()})
    for level, found in families.items():
        for (one, family), p in zip(found, corrected[level], strict=True):
            getattr(one, level).extend(family.rows(p))
    for one in compared:
        one.plans.sort(key=lambda row: row.pair)
    return Comparison(
        list(subjects),
        asked,
        list(_question(subjects, compared, allowed)),
        compared,
    )


def _compared(
    found: Match, asked: CompareOptions, families: dict[str, list[tuple[Compared, Family]]]
) -> Compared:
    """Add what is tested to `families`: rows follow when all that is asked is known."""
    one = Compared(found)
    for number, pair in enumerate(found.pairs):
        tester = Tester(number, found, asked.confidence)
        families["plans"] += [(one, family) for family in plan_families(tester)]
        families["phases"] += [(one, family) for family in phase_families(tester)]
        phases = both_phases(tester)
        common = len(phases[0].keys() & phases[1].keys())
        one.notes += _common_notes("phase", pair, common, (len(phases[0]), len(phases[1])))
        table = flow_table(tester)
        if table is not None:
            one.flow_count += len(table.codes)
            families["flows"] += [
                (one, family) for family in table.families(tester, asked.most_flows)
            ]
            one.notes += _common_notes("flow", pair, len(table.codes), table.sides)
    one.notes += _flow_notes(found)
    one.notes += _record_notes(found)
    one.notes += _host_notes(found)
    return one


def _host_notes(found: Match) -> Iterator[str]:
    """Yield a sentence where a difference may be a host's and not the network's."""
    for subject, cases in (
        (found.base, [pair.base for pair in found.pairs]),
        (found.other, [pair.other for pair in found.pairs]),
    ):
        plans = {id(plan): plan for case in cases for plan in case.plans}.values()
        phases = [phase for plan in plans for phase in subject.measured.phases_of(plan)]
        limited = sum(1 for phase in phases if phase["tester_limited"])
        if limited:
            yield (
                f"{subject.name}: in {limited} of {format.of(len(phases), 'phase')} a host may "
                f"have been the limit, not the network (`switchbench table {subject.directory}` "
                "names it)"
            )


def _common_notes(noun: str, pair: Pair, common: int, sides: tuple[int, int]) -> Iterator[str]:
    """Yield where one result has some that the other has not."""
    if common < max(sides):
        what = f"{format.of(common, noun)} {'is' if common == 1 else 'are'} in both"
        yield f"{pair.base.title}: {what}, of {sides[0]:,} and {sides[1]:,}"


def _record_notes(found: Match) -> Iterator[str]:
    """Yield what is cut off and was not needed."""
    for subject in (found.base, found.other):
        if subject.measured.records.cut and not subject.measured.damage:
            yield (
                f"{subject.directory}: a table ends in half a piece: nothing is lost by it that "
                "the summary was made of"
            )


def _flow_notes(found: Match) -> Iterator[str]:
    base, other = found.base.measured.ports, found.other.measured.ports
    if places_of(found.base, found.other) is None:
        counts = f"{found.base.name} has {len(base)} ports and {found.other.name} {len(other)}"
        yield f"flows are not compared: {counts}"
    elif set(base) != set(other):
        yield (
            f"the ports have other names in {found.other.name}: flows are compared by the ports' "
            f"places, {base[0]} with {other[0]} and so on"
        )


def _question(
    subjects: Sequence[Subject], compared: Sequence[Compared], allowed: set[str]
) -> Iterator[Differing]:
    """Yield what the results were made on, and what may differ and does."""
    if any(subject.imported for subject in subjects):
        programs = tuple(subject.measured_by for subject in subjects)
        if len(set(programs)) > 1:
            yield Differing("", "measured by", programs)
        return
    yield from settings.differing("", [subject.settings for subject in subjects], set())
    named = {name for subject in subjects for name in subject.chosen}
    words = [
        {name: _all_of(subject, name) for name in (settings.TRANSPORT, settings.NETWORK, *allowed)}
        for subject in subjects
    ]
    if any(one.match.pairs for one in compared):
        yield from settings.differing("", words, named)


def _all_of(subject: Subject, name: str) -> str:
    values = dict.fromkeys(case.settings.get(name, settings.ABSENT) for case in subject.cases)
    return ", ".join(values)
