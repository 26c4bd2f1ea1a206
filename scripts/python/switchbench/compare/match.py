# SPDX-License-Identifier: BSD-3-Clause
"""Which case of one result stands beside which of another, and what keeps the others apart.

Two cases are beside each other if matrix, size, load and transport are the same, but for what is
the question. Where the transport is, frames stand beside messages as in the summary's comparisons
(analysis/transports.py): at equal payload, else the largest frames. What goes by steps has no
load, and stands beside the same at equal size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..analysis import transports
from ..base import format
from ..base.model import SCHEDULE
from ..base.transports import NAMES
from . import settings
from .figures import cases_of
from .settings import Differing
from .subjects import Case, Subject


@dataclass(frozen=True)
class Pair:
    """Two cases beside each other."""

    base: Case
    other: Case

    @property
    def title(self) -> str:
        """For a person: what both measured."""
        if self.base.title == self.other.title:
            return self.base.title
        both = f"{self.base.setting} → {self.other.setting}"
        return f"{self.base.matrix}, {self.base.ranks}: {both}"

    @property
    def samples(self) -> str:
        """`5 repeats`, or `3 and 2 runs` where a side has several."""
        runs = [1 + len(case.further) for case in (self.base, self.other)]
        repeats = [len(case.plans) for case in (self.base, self.other)]
        noun, counts = ("run", runs) if max(runs) > 1 else ("repeat", repeats)
        *first, last = dict.fromkeys(counts)
        return " and ".join([*map(str, first), format.of(last, noun)])


@dataclass
class Match:
    """What of one result stands beside the baseline."""

    base: Subject
    other: Subject
    pairs: list[Pair] = field(default_factory=list)
    differing: list[Differing] = field(default_factory=list)  # that make them other measurements
    alone: list[str] = field(default_factory=list)  # a sentence for each case of one alone


def match(base: Subject, other: Subject, question: set[str]) -> Match:
    """`question`: the settings that may differ."""
    found = Match(base, other)
    if base.imported or other.imported:
        return _by_figure(found)
    asked = question | _own_question(base, other)
    if settings.TRANSPORT in asked and _transports(base).isdisjoint(_transports(other)):
        asked.add(settings.SIZE)
        own = {settings.TRANSPORT} | _own_question(base, other)
        steps, theirs = (list(filter(_steps, one.cases)) for one in (base, other))
        found.pairs = [*_by_transport(base, other, asked), *_equal(steps, theirs, own)]
    else:
        found.pairs = list(_equal(base.cases, other.cases, asked))
    for pair in found.pairs:
        both = [pair.base.settings, pair.other.settings]
        found.differing += settings.differing(pair.title, both, asked | set(_options(pair)))
    _name_the_rest(found, asked)
    return found


def _by_figure(found: Match) -> Match:
    """Return every program's figure beside every other's of the same definition.

    Ranks and size; the same program's where both have one.
    """
    base, other = cases_of(found.base), cases_of(found.other)
    programs = [{case.settings[settings.TRANSPORT] for case in cases} for cases in (base, other)]
    both = programs[0] & programs[1]
    asked = set() if both else {settings.TRANSPORT}
    found.pairs = [
        Pair(case, one)
        for case in base
        for one in other
        if _words(case, asked) == _words(one, asked)
    ]
    beside = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
    if alone := sum(id(case) not in beside for case in (*base, *other)):
        found.alone.append(f"{format.of(alone, 'figure')} of one program alone")
    return found


def _words(case: Case, asked: set[str]) -> list[str]:
    return [word for name, word in case.settings.items() if name not in asked]


def _own_question(base: Subject, other: Subject) -> set[str]:
    """Return what differs so wholly that it can only be the question.

    One switch's network has another name; one was run over other transports.
    """
    found = set()
    networks = [{case.settings[settings.NETWORK] for case in one.cases} for one in (base, other)]
    if networks[0].isdisjoint(networks[1]) and len(networks[0]) == len(networks[1]) == 1:
        found.add(settings.NETWORK)
    if _transports(base).isdisjoint(_transports(other)):
        found.add(settings.TRANSPORT)
    return found


def _transports(subject: Subject) -> set[str]:
    return {case.settings[settings.TRANSPORT] for case in subject.cases}


def _options(pair: Pair) -> Iterator[str]:
    """Of two transports each has options that the other has not."""
    if pair.base.settings[settings.TRANSPORT] == pair.other.settings[settings.TRANSPORT]:
        return
    for name in pair.base.settings.keys() | pair.other.settings.keys():
        if name.partition(".")[0] in NAMES or name.startswith("latency"):
            yield name


def _identity(case: Case, asked: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the settings that cases beside each other share.

    A transport's options are none of them where the transport is the question.
    """
    chosen = settings.matrix(case.settings, case.plans[0])
    if settings.TRANSPORT in asked:
        chosen = {name: word for name, word in chosen.items() if "." not in name}
    return tuple(sorted((name, word) for name, word in chosen.items() if name not in asked))


def _equal(base: Sequence[Case], other: Sequence[Case], asked: set[str]) -> Iterator[Pair]:
    """Yield each case of the one beside the case of the other that is most like it."""
    theirs: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in other:
        theirs.setdefault(_identity(case, asked), []).append(case)
    for case in base:
        if alike := theirs.get(_identity(case, asked)):
            yield Pair(case, min(alike, key=lambda one: _distance(case, one)))


def _distance(case: Case, other: Case) -> int:
    return sum(1 for _ in settings.differing("", [case.settings, other.settings], set()))


def _by_transport(base: Subject, other: Subject, asked: set[str]) -> Iterator[Pair]:
    """Yield rows of transports side by side: the baseline's best beside each of the other's."""
    matrices: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in (case for one in (base, other) for case in one.cases if not _steps(case)):
        matrices.setdefault(_identity(case, asked), []).append(case)
    mine = _transports(base)
    for cases in matrices.values():
        of = {id(case.plans[0]): case for case in cases}
        for row in transports.rows(list(transports.series(p for c in cases for p in c.plans))):
            own = [one for one in row if one.transport in mine]
            beside = [one for one in row if one.transport not in mine]
            if own:
                best = max(own, key=lambda one: one.rate or 0.0)
                yield from (Pair(of[id(best.plans[0])], of[id(one.plans[0])]) for one in beside)


def _steps(case: Case) -> bool:
    return bool(case.plans[0]["traffic"] == SCHEDULE)


# --- what is not beside each other ---------------------------------------------------------------


def _name_the_rest(found: Match, asked: set[str]) -> None:
    """Name cases without a partner, with the settings that keep them from the nearest.

    If there is one of their pattern that has no partner either.
    """
    taken = {id(case) for pair in found.pairs for case in (pair.base, pair.other)}
    left = [case for case in found.base.cases if id(case) not in taken]
    right = [case for case in found.other.cases if id(case) not in taken]
    for case in left:
        near = [one for one in right if one.settings["pattern"] == case.settings["pattern"]]
        if not near:
            found.alone.append(f"{case.title}: only in {found.base.name}")
            continue
        nearest = min(near, key=lambda one: _distance(case, one))
        right.remove(nearest)
        what = f"{case.matrix}, {case.plans[0]['transport']}"
        found.differing += settings.differing(what, [case.settings, nearest.settings], asked)
    found.alone += [f"{case.title}: only in {found.other.name}" for case in right]
