# SPDX-License-Identifier: BSD-3-Clause
"""Fault models and their selection by penalised likelihood: forward selection, then elimination.

A fault is in one class of elements and impairs a share of the passing frames: a constant share, the
excess over a capacity, or a share of some rows only (large frames, bursts, some phases, the pairs
of one link). Every fault is penalised for its parameters and for the number of its
alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .channel import (
    LARGE,
    LARGE_OUTLIER,
    LONE_EVIDENCE,
    Channel,
    Hashing,
    explained,
    log_likelihood,
    numbered,
)
from .facts import Bools, Floats, Ints

RARITY = 5.0  # -log of the prior probability of one more fault
LEAST_SHORTFALL = 0.12  # a smaller shortfall of a closed load's rate is due to chance or the tester
REFUTED = 1.25  # closed loads that carry this multiple of a capacity refute it
LEAST_CUT = 0.015  # a capacity fault takes at least this share of the load
MOST_FAULTS = 16
MOST_TRUNKS = 4  # trunks of several links examined in each step
MOST_SPLIT = 3  # faults of some pairs or phases tried for replacement in each step
MOST_PARTS = 3  # max number of plain faults that replace a fault of some pairs or phases
ROWS_AT_ONCE = 1 << 16
MOST_FITTED = 1 << 16  # max number of rows to which a value is fitted
FIRST = 12  # classes examined before all others
CANDIDATES = 40
RIVAL = 12.0  # log-likelihood by which a rival explanation may be worse
HOPELESS = 20.0  # log-likelihood below the best at which a candidate is dropped
SAMPLE = 4  # every n-th row without excess is evaluated first
SHARED_EVIDENCE = 0.4  # weight of rows that flows on the same link explain nearly as well
CAPACITIES = np.linspace(0.92, 0.32, 6)  # capacities to try, as shares of a link's line rate
# penalty of a capacity fault of one link: links that are full by chance look the same
LINK_CAPACITY = 30.0
BY_CHANCE = 6.0  # log-likelihood cost of flows that meet on links by chance, per phase
EXCESS = 3.0  # min log-likelihood gain of an affected row
# Relative standard deviation of the impaired share from row to row, by kind of fault.
SPREAD = {"capacity": 0.25, "burst": 0.35, "expected": 0.6, "intermittent": 0.5}
USUAL_SPREAD = 0.15


@dataclass(frozen=True)
class PlacedFault:
    """Assumed fault of one class of elements: its kind, its size, and the rows that it affects.

    form: "share" (value: share of frames) or "capacity" (value: bit/s).
    kind: a kind of Suspect, or "expected" for the line of a healthy element, which comes first in a
        model. The next fields limit the fault to some rows: frames above `size_above`, `bursts`,
        phases from `phases[0]` to `phases[1]`, `pairs` (numbers in the channel).
    penalty: the fault's cost.
    score: log-likelihood gained when the fault was found, less the penalty.
    """

    place: int
    kind: str
    form: str
    value: float
    size_above: float | None = None
    bursts: bool = False
    phases: tuple[int, int] | None = None
    pairs: frozenset[int] | None = None
    penalty: float = 0.0
    score: float = 0.0

    def spread(self) -> float:
        """Return the relative standard deviation of the impaired share from row to row."""
        return SPREAD.get(self.kind, USUAL_SPREAD)

    def where(self, channel: Channel, fan_in: Bools) -> Ints:
        """Return the incidences (a row and a class on its path) to which the fault applies."""
        at = channel.classes.incidences(self.place)
        limits = (self.size_above, self.phases, self.pairs)
        if limits == (None, None, None) and not self.bursts:
            return at
        row = channel.classes.row[at]
        keep = np.ones(len(at), np.bool_)
        if self.size_above is not None:
            keep &= channel.size[row] > self.size_above
        if self.bursts:
            keep &= fan_in[at]
        if self.phases is not None:
            phase = channel.phase[row]
            keep &= (phase >= self.phases[0]) & (phase <= self.phases[1])
        if self.pairs is not None:
            keep &= np.isin(channel.pair[row], list(self.pairs))
        return at[keep]


class Model:
    """Statistical model of one measure: faults, and the impaired share they predict for each row.

    widest: number of incidences of the largest class in which faults are sought.
    lines: number of healthy lines at the beginning of the faults.
    fan_in: by incidence, true where several flows meet.
    p, spread, ll: by row, the expected impaired share, its relative standard deviation, and the
        log-likelihood.
    """

    def __init__(
        self, channel: Channel, phases: int, faults: list[PlacedFault], widest: float = np.inf,
        lines: int | None = None,
    ) -> None:  # fmt: skip
        """Find where several flows of a phase meet at an element, then apply the faults."""
        self.channel, self.phases, self.widest = channel, phases, widest
        self.lines = len(faults) if lines is None else lines
        self.is_rate = channel.measure == "rate"  # rows are rates of closed loads
        classes = channel.classes
        key = classes.of.astype(np.int64) * phases + channel.phase[classes.row]
        _, group = numbered(key, len(classes) * phases)
        self.fan_in = (np.bincount(group)[group] > 1) | channel.bursts[classes.row]
        self.hashing = Hashing(channel)
        self.hashed = self.hashing.healthy
        self.p = self.spread = self.ll = np.full(len(channel.pair), np.nan)
        self.use(faults)

    def is_trunk(self, fault: PlacedFault) -> bool:
        """Return whether a fault is a reduced capacity of all links of a trunk together."""
        separate = self.hashing.is_separate(fault.place)
        return fault.form == "capacity" and fault.pairs is None and separate

    def carried(self) -> dict[int, float]:
        """Return by class the total capacity of each trunk whose capacity a fault reduces."""
        return {f.place: f.value for f in self.faults if self.is_trunk(f)}

    def likelihood(self, at: Ints, p: Floats, spread: Floats | float) -> Floats:
        """Return the log-likelihood of rows if the share p of their frames is impaired."""
        return log_likelihood(self.channel, self.hashed, at, p, spread)

    def shares(self, fault: PlacedFault) -> tuple[Ints, Floats]:
        """Return the incidences (a row and a class) of a fault, and the impaired share at each."""
        at = fault.where(self.channel, self.fan_in)
        return at, self.share_at(fault, at, self.upstream)

    def share_at(self, fault: PlacedFault, at: Ints, upstream: Floats) -> Floats:
        """Return the share of a row's frames that a fault impairs, for each incidence in `at`."""
        if fault.form == "share":
            return np.full(len(at), fault.value)
        row = self.channel.classes.row[at]
        phase = self.channel.phase[row]
        load = np.bincount(phase, self.channel.load_bps[row] * np.exp(upstream[at]), self.phases)
        with np.errstate(divide="ignore"):
            share = np.maximum(0.0, 1 - fault.value / load)
        return np.asarray(np.minimum(share[phase], 1 - 1e-9))

    def use(self, faults: list[PlacedFault]) -> None:
        """Replace the model's faults; compute the expected share of impaired frames of each row."""
        self.faults = faults
        row, rows = self.channel.classes.row, len(self.channel.pair)
        before, trunks = self.hashed, self.carried()
        self.hashed = self.hashing.alternatives(trunks) if trunks else self.hashing.healthy
        placed = [
            (fault, fault.where(self.channel, self.fan_in))
            for fault in faults
            if not self.is_trunk(fault)
        ]
        cut = any(fault.form == "capacity" for fault, _ in placed)
        upstream = np.zeros(len(row) if cut else 0)
        for turn in range(3 if cut else 1):
            upstream = self._reaching() if turn else upstream
            shares = [self.share_at(fault, at, upstream) for fault, at in placed]
            # For each fault: its incidences, and the log of the share that passes at each.
            self._passed = [
                (at, np.log1p(-np.minimum(share, 1 - 1e-9)))
                for (_, at), share in zip(placed, shares, strict=True)
            ]
        self._upstream: Floats | None = None
        spread, passed = np.zeros(rows), np.zeros(rows)
        for (fault, _), share, (at, each) in zip(placed, shares, self._passed, strict=True):
            passed[row[at]] += each  # a class is on each path once
            hit = row[at[share > 0]]
            spread[hit] = np.maximum(spread[hit], fault.spread())
        p = 1 - np.exp(passed)
        spread = np.where(spread > 0, spread, USUAL_SPREAD)
        changed = (p != self.p) | (spread != self.spread) | (before is not self.hashed)
        self.p, self.spread = p, spread
        self.judge_again(np.flatnonzero(changed))

    def judge_again(self, rows: Ints) -> None:
        """Recompute the log-likelihood of some rows, in a new array, since models may share one."""
        self.ll = self.ll.copy()
        self.ll[rows] = self.likelihood(rows, self.p[rows], self.spread[rows])

    @property
    def upstream(self) -> Floats:
        """Return the logarithm of a flow's share of frames that reaches each path element."""
        if self._upstream is None:
            self._upstream = self._reaching()
        return self._upstream

    def _passes(self) -> Floats:
        """Return the logarithm of the share of arriving frames that each path element passes on."""
        found = np.zeros(len(self.channel.classes.row))
        for at, passed in self._passed:
            found[at] += passed
        return found

    def _reaching(self) -> Floats:
        """Compute `upstream`: the share that faults and shared links before each class let pass."""
        classes, found = self.channel.classes, self._passes()
        if self.hashing.trunks:
            mean = self.hashed.mean(len(self.channel.pair))
            for place, trunk in self.hashing.trunks.items():
                found[classes.incidences(place)] += np.log1p(-mean[trunk.row])
        # in place, since there are millions of rows
        for rows in range(0, len(classes.first) - 1, ROWS_AT_ONCE):
            first = classes.first[rows : rows + ROWS_AT_ONCE + 1]
            part = found[first[0] : first[-1]]
            until = np.cumsum(part) - part
            part[:] = until - np.repeat(until[first[:-1] - first[0]], np.diff(first))
        return found

    def doubt_outliers(self) -> bool:
        """Lower the outlier probability of large unexplained losses; return whether any exist."""
        channel = self.channel
        large = (self.excess() > EXCESS) & (channel.share() > LARGE) & (channel.measure == "loss")
        for trunk in self.hashing.trunks.values():  # these rows have an unknown faulty link
            large[trunk.row] &= not trunk.separate
        rows = np.flatnonzero(large)
        channel.outlier[rows] = LARGE_OUTLIER
        self.judge_again(rows)
        return len(rows) > 0

    def total(self) -> float:
        """Return the model's log-likelihood over all observed rows."""
        return float(self.ll.sum())

    def excess(self) -> Floats:
        """Return each row's gain in log-likelihood if the model expected its measured share."""
        share = np.clip(self.channel.share(), 0, 1 - 1e-9)
        more = np.flatnonzero(share > 1.2 * self.p + (0.02 if self.is_rate else 0))
        found = np.zeros(len(share))
        best = self.likelihood(more, share[more], self.spread[more])
        found[more] = np.maximum(best - self.ll[more], 0.0)
        return found


class Candidates:
    """Classes of elements that may be at fault, with the unexplained share of each passing row.

    places: class numbers. local: index into `places` by incidence.
    left, excess: by incidence, the impaired share beyond the present faults, and the row's
        possible gain in log-likelihood.
    floor: min gain of a candidate.
    """

    def __init__(
        self, model: Model, left: Floats, excess: Floats, places: Ints, floor: float
    ) -> None:
        """Use the given classes as candidates; `left` and `excess` are by row."""
        classes, self.model, self.floor = model.channel.classes, model, floor
        self.places = np.sort(places)
        at = [classes.incidences(place) for place in self.places.tolist()]
        self.at = np.concatenate([np.zeros(0, np.int32), *at])
        self.local = np.repeat(np.arange(len(at)), np.diff(classes.start)[self.places])
        self.row = classes.row[self.at]
        self.left, self.excess = left[self.row], excess[self.row]
        self.suffers = self.excess > EXCESS

    def gained(
        self, share: Floats, spread: float, group: Ints, shared: float = SHARED_EVIDENCE,
        cost: float = 0.0,
    ) -> Floats:  # fmt: skip
        """Return each row group's gain in log-likelihood if `share` of its frames is impaired.

        A group is some or all incidences of one candidate; `group` has the group's number of each
        incidence, from 0. A row gains at most its excess. So a sample of the rows without excess is
        evaluated first, and all rows only for candidates that can still reach the floor. shared:
        weight of rows that flows on the same link also explain. cost: min penalty in addition to
        the penalty of any fault.
        """
        model, count = self.model, int(group.max(initial=-1)) + 1
        cost += RARITY + float(np.log(min(len(model.channel.classes), len(model.channel.src))))
        hashed = model.hashed.of[self.row] >= 0
        hopes = np.where(hashed, shared, 1.0) * self.excess
        sampled = (self.excess <= 0) & (np.arange(len(self.row)) % SAMPLE == 0)
        owner, found = np.zeros(count, np.int64), np.zeros(count)
        owner[group] = self.local
        left = share > 0
        may = np.ones(len(self.places), np.bool_)
        for part in (sampled, self.excess > 0, np.ones(len(self.row), np.bool_)):
            use = np.flatnonzero(part & left & may[self.local])
            row = self.row[use]
            p = 1 - (1 - model.p[row]) * (1 - np.minimum(share[use], 1 - 1e-9))
            wide = np.where(model.p[row] > 0, np.maximum(model.spread[row], spread), spread)
            more = model.likelihood(row, p, wide) - model.ll[row]
            more = np.where(hashed[use] & (more > 0), shared * more, more)
            found += np.bincount(group[use], more, count)
            left &= ~part
            most = found + np.bincount(group, hopes * left, count)
            may &= np.bincount(owner, np.maximum(most, 0), len(may)) - cost >= self.floor
        return np.where(may[owner], found, -np.inf)

    def likeliest(
        self, tried: Iterable[tuple[Floats, Floats]], spread: float
    ) -> tuple[Floats, Floats]:
        """Return each candidate's largest gain in log-likelihood, and the tried value with it.

        tried: pairs of values by candidate (NaN: none) and the impaired share at each incidence.
        """
        best, value = np.full(len(self.places), -np.inf), np.zeros(len(self.places))
        for one, share in tried:
            gained = self.gained(share, spread, self.local)
            better = (gained > best) & ~np.isnan(one)
            best, value = np.where(better, gained, best), np.where(better, one, value)
        return best, value

    def sums(self, values: Floats) -> Floats:
        """Return for each candidate class the sum of the values of its rows."""
        return np.asarray(np.bincount(self.local, values, len(self.places)), np.float64)

    def medians(self, keep: Bools) -> Floats:
        """Return each candidate class's median unexplained share over rows in `keep`, or 0."""
        return _ranked(self.local, self.left, keep, 0.5, len(self.places))


def _ranked(owner: Ints, values: Floats, keep: Bools, rank: float, count: int) -> Floats:
    """Return for each number in `owner` the quantile `rank` of its values in `keep`, or 0."""
    use = np.flatnonzero(keep)
    order = use[np.lexsort((values[use], owner[use]))]
    number = np.bincount(owner[use], minlength=count)
    place = np.cumsum(number) - number + ((number - 1) * rank).astype(np.int64)
    found = np.zeros(count)
    found[number > 0] = values[order[place[number > 0]]]
    return found


def _fault(
    model: Model, place: int, kind: str, form: str, value: float, gained: float, rows: float,
    cost: float = 0.0, parameters: float = 1.0, **limits: Any,
) -> PlacedFault:  # fmt: skip
    """Return a fault with its penalty and its score, the gain in log-likelihood less the penalty.

    rows: number of rows to which its parameters are fitted. cost: further penalty.
    """
    classes = model.channel.classes
    of = classes.elements[classes.members[place][0]].kind
    alternatives = len(model.channel.src) if of == "pair" else len(classes)
    cost += RARITY + {"pair": 10.0, "network": 1.0}.get(of, 0.0)
    cost += float(np.log(max(alternatives, 2)) + 0.5 * parameters * np.log(max(rows, 2.0)))
    if kind == "loss":  # no capacity explains the share; large shares are rare
        cost += 2.5 + (1.5 if 0.08 < value < 0.97 else 0.0)
    return PlacedFault(place, kind, form, value, penalty=cost, score=gained - cost, **limits)


def hypotheses(model: Model, least: float = 0.0) -> list[PlacedFault]:
    """Return the best further fault of each class of elements and kind, with its gain.

    A class gains at most the excess of its rows. Classes far below the best, or with a score below
    `least`, are left out.
    """
    classes, excess = model.channel.classes, model.excess()
    gain = np.bincount(classes.of, excess[classes.row], len(classes))
    count = np.bincount(classes.of, minlength=len(classes))
    hit = np.bincount(classes.of, excess[classes.row] > EXCESS, len(classes))
    rank = gain * np.sqrt(hit / np.maximum(count, 1))
    places = np.flatnonzero((gain > RARITY) & (hit > 0) & (count <= model.widest))
    places = places[np.argsort(-rank[places], kind="stable")]
    alone = classes.pairs_through[places] == 1
    first = np.concatenate([places[~alone][:FIRST], places[alone][:2]])
    # Impaired share that the present faults and shared links leave unexplained. Shared links count
    # only for rows whose impairment the model predicts.
    share = np.clip(model.channel.share(), 0, 1)
    shared = np.where(excess > EXCESS, 0.0, explained(model.channel, model.hashed, model.p))
    taken = 1 - (1 - model.p) * (1 - shared)
    left = np.clip(1 - (1 - share) / np.maximum(1 - taken, 1e-9), 0, 1)
    made: list[PlacedFault] = []

    def examine(some: Ints) -> float:
        floor = max(least, max((x.score for x in made), default=0.0) - HOPELESS)
        made.extend(_of_candidates(Candidates(model, left, excess, some, floor)))
        return max((x.score for x in made), default=0.0)

    examine(first[:1])
    best = examine(first[1:])
    rest = places[(gain[places] > best - RIVAL) & ~np.isin(places, first)]
    alone = classes.pairs_through[rest] == 1
    examine(np.concatenate([rest[~alone][:CANDIDATES], rest[alone][: CANDIDATES // 2]]))
    return made


def _of_candidates(found: Candidates) -> list[PlacedFault]:
    """Return the possible faults of all kinds in the candidate classes of elements."""
    if not len(found.places):
        return []
    model, channel = found.model, found.model.channel
    made = _constant(found, np.ones(len(found.at), np.bool_), "loss")
    if channel.measure in ("loss", "rate"):
        made += _capacity(found)
    if channel.measure == "loss":
        sizes = np.unique(channel.size[np.isfinite(channel.size)])
        cost = 1.0 + float(np.log(max(len(sizes), 1)))
        for limit in sizes[:-1].tolist():
            above = channel.size[found.row] > limit
            made += _constant(found, above, "size", cost, size_above=limit)
        made += _constant(found, model.fan_in[found.at], "burst", 4.0, bursts=True)
        made += _intermittent(found)  # rates of closed loads vary with the tester
    found.floor = max(found.floor, max((x.score for x in made), default=0.0) - HOPELESS)
    return made + _trunk(found)


def _constant(
    found: Candidates, mask: Bools, kind: str, cost: float = 0.0, **limits: object
) -> list[PlacedFault]:
    """Return faults that impair the same share of frames in all rows that `mask` selects."""
    model = found.model
    weight = np.where(mask, model.channel.n[found.row], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        pooled = np.nan_to_num(found.sums(weight * found.left) / found.sums(weight))
    middle, suffering = found.medians(mask), found.medians(mask & found.suffers)
    shares = [np.clip(share, 0, 1 - 1e-6) for share in (pooled, middle, suffering)]
    tried = ((share, np.where(mask, share[found.local], 0.0)) for share in shares)
    best, value = found.likeliest(tried, SPREAD.get(kind, USUAL_SPREAD))
    inside, outside = (found.sums(part.astype(np.float64)) for part in (mask, ~mask))
    possible = (value > (LEAST_SHORTFALL if model.is_rate else 0.0)) & (inside > 0)
    if limits:
        possible &= outside > 0
    return [
        _fault(
            model, int(found.places[index]), kind, "share", float(value[index]),
            float(best[index]), inside[index], cost, 1.0 + bool(limits), **limits,
        )
        for index in np.flatnonzero(possible).tolist()
    ]  # fmt: skip


def _capacity(found: Candidates) -> list[PlacedFault]:
    """Return faults that limit the load on candidate classes of elements to a capacity."""
    model, channel, count = found.model, found.model.channel, len(found.places)
    key = found.local * model.phases + channel.phase[found.row]
    keys, group = numbered(key, count * model.phases)
    owner = keys // model.phases
    each = channel.load_bps[found.row] * np.exp(model.upstream[found.at])
    load, passed, free = (
        np.asarray(np.bincount(group, part, len(keys)), np.float64)
        for part in (each, each * (1 - found.left), each * ~channel.limited[found.row])
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        cut, valid = 1 - passed / load, np.nan_to_num(free / load)
    lossy = (cut > (0.08 if model.is_rate else 0.004)) & (valid > 0.5)
    taken = np.bincount(group, model.p[found.row]) / np.bincount(group)
    # TCP and RDMA are slow also where their acknowledgements wait, but not in all phases alike: a
    # class of elements has no capacity far below the rate that it delivered in some phases.
    most_delivered = np.zeros(count)
    if model.is_rate:
        arrived = channel.load_bps[found.row] * (1 - channel.share()[found.row])
        delivered = np.asarray(np.bincount(group, arrived, len(keys)), np.float64)
        most_delivered = _ranked(owner, delivered, load > 0, 0.95, count)

    def tried() -> Iterator[tuple[Floats, Floats]]:
        """Yield capacities to try, quantiles of the passed load, with the loss at each."""
        before = np.zeros((0, count))
        for rank, most in ((0.5, 0.02), (0.5, 1.0), (0.25, 1.0), (0.75, 1.0)):
            limit = _ranked(owner, passed, lossy & (taken <= most), rank, count)
            new = (limit > 0) & ~(before == limit).any(axis=0)
            new &= most_delivered <= REFUTED * limit
            before = np.vstack([before, limit])
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.where(load > 0, np.maximum(0.0, 1 - limit[owner] / load), 0.0)
            yield np.where(new, limit, np.nan), np.where(new[found.local], share[group], 0.0)

    best, value = found.likeliest(tried(), SPREAD["capacity"])
    made = []
    for index in np.flatnonzero(value > 0).tolist():
        place, mine = int(found.places[index]), (owner == index) & lossy
        largest = float(np.clip(cut[mine].max(initial=0.01), 0.01, 1))
        few = largest < (LEAST_SHORTFALL if model.is_rate else LEAST_CUT)
        if few or model.hashing.is_separate(place):
            continue
        cost = max(0.0, -1.5 * float(np.log(largest)) - 1.0)
        made.append(
            _fault(
                model, place, "capacity", "capacity", float(value[index]), float(best[index]),
                int(mine.sum()), cost,
            )
        )  # fmt: skip
    return made


def _intermittent(found: Candidates) -> list[PlacedFault]:
    """Return faults of consecutive phases, if the same elements are healthy in other phases."""
    model, channel = found.model, found.model.channel
    value = found.medians(found.suffers)
    key = found.local * model.phases + channel.phase[found.row]
    keys, group = numbered(key, len(found.places) * model.phases)
    share = np.clip(value, 0, 1 - 1e-6)[found.local]
    by_phase = found.gained(share, SPREAD["intermittent"], group, 0.0, 8.0)
    owner = keys // model.phases
    made = []
    for index, place in enumerate(found.places.tolist()):
        mine = np.flatnonzero(owner == index)
        if len(mine) < 3 or value[index] <= 0 or by_phase[mine[0]] == -np.inf:
            continue
        until = np.concatenate([[0.0], np.cumsum(by_phase[mine])])
        low = np.minimum.accumulate(until[:-1])
        end = int(np.argmax(until[1:] - low))
        begin = int(np.argmin(until[: end + 1]))
        if end + 1 - begin > len(mine) - 2:
            continue
        total, cost = float(until[end + 1] - until[begin]), 8.0 + 2.0 * float(np.log(len(mine)))
        phases = tuple((keys[mine] % model.phases)[[begin, end]].tolist())
        made.append(
            _fault(
                model, place, "intermittent", "share", float(value[index]), total, len(mine), cost,
                phases=phases,
            )
        )  # fmt: skip
    return made


def _trunk(found: Candidates) -> list[PlacedFault]:
    """Return faults of trunks of several links: lower capacity of all links, or one faulty link.

    A faulty link impairs only the pairs that hash to it.
    """
    model, channel = found.model, found.model.channel
    made: list[PlacedFault] = []
    every: list[tuple[float, int, bool]] = []
    for index, place in enumerate(found.places.tolist()):
        row = found.row[found.local == index]
        if place not in model.hashing.trunks or len(np.unique(channel.pair[row])) < 3:
            continue
        if 2 * found.excess[found.local == index].sum() < found.floor:
            continue
        least = max(RARITY, found.floor)
        if (odd := _odd(model, place, LONE_EVIDENCE)) > least:
            every.append((odd, index, _odd(model, place, 0.0) > least))
    for _, index, alone in sorted(every, key=lambda x: -x[0])[:MOST_TRUNKS]:
        place, mine = int(found.places[index]), found.local == index
        trunk = model.hashing.trunks[place]
        row, links = trunk.row, trunk.links
        line = min(trunk.line_bps / links, float(channel.load_bps[row].max()))
        left = found.left[mine & found.suffers & (found.left > 0)]
        shares = np.quantile(left, [0.1, 0.25, 0.5, 0.75]) if len(left) else left
        shares = np.unique(np.clip(shares, 1e-6, 1 - 1e-6))
        tried = [(1, "share", shares)] if len(left) and alone else []
        if channel.measure in ("loss", "rate") and trunk.separate:
            tried += [(1, "capacity", line * CAPACITIES)] if alone else []
            tried += [(links, "capacity", links * line * CAPACITIES)]
        for ways, form, values in tried:
            gained, value = -np.inf, 0.0
            # Rows that may share links of other trunks count only for a fault of all links.
            several = 0.0 if ways == 1 else LONE_EVIDENCE
            before = evidence(model, place, several=several).sum()
            for one in values.tolist():
                link, whole = ((form, one), None) if ways == 1 else (None, one)
                gain = float(evidence(model, place, link, whole, several).sum() - before)
                if gain < gained - HOPELESS:
                    break
                gained, value = max((gained, value), (gain, one))
            kind, rows = ("loss", row) if form == "share" else (form, np.unique(channel.phase[row]))
            fault = _fault(model, place, kind, form, value, gained, len(rows))
            if fault.score < 0:
                continue
            if ways == 1:
                chance = evidence(model, place, (form, value), each=True)
                pairs = frozenset(channel.pair[row[chance > 0.5]].tolist())
                if not 0 < len(pairs) < len(np.unique(channel.pair[row])):
                    continue
                cost = 1.5 + (LINK_CAPACITY if form == "capacity" else 0.0)
                penalty, score = fault.penalty + cost, fault.score - cost
                fault = replace(fault, pairs=pairs, penalty=penalty, score=score)
            made.append(fault)
    return made


def _odd(model: Model, place: int, several: float) -> float:
    """Return the log-likelihood gain of a trunk's rows if their measured losses were expected.

    The cost of meeting on links by chance is subtracted. several: as in `evidence`.
    """
    row = model.hashing.trunks[place].row
    seen = np.clip(model.channel.share()[row], 0, 1 - 1e-9)
    fitted = np.maximum(model.ll[row], model.channel.log_likelihood(row, seen, USUAL_SPREAD))
    fitted *= model.hashing.beside(place, model.carried(), several)[1]
    group = model.hashing.trunks[place].flows[0]
    unlikely = np.bincount(group, fitted) - evidence(model, place, several=several)
    return float(np.maximum(unlikely - BY_CHANCE, 0).sum())


def evidence(
    model: Model, place: int, link: tuple[str, float] | None = None, line: float | None = None,
    several: float = 0.0, each: bool = False,
) -> Floats:  # fmt: skip
    """Return by group of flows the log-likelihood of a trunk's rows, with one or all links faulty.

    several: weight of rows that may also share links of other trunks.
    each: return for each row the probability that its flow uses the faulty link, instead.
    """
    lines = model.carried() | ({} if line is None else {place: line})
    passing = np.exp(model.upstream[model.channel.classes.incidences(place)])
    return model.hashing.evidence(place, passing, model.p, model.spread, lines, link, several, each)


def refit(model: Model, index: int) -> None:
    """Fit one fault's value within a factor of two, with all other faults fixed."""
    fault = model.faults[index]
    likelihood = value_likelihood(without(model, index), fault)
    center, factor = fault.value, 2.0
    for _ in range(5):
        steps = center * factor ** np.linspace(-1, 1, 7)
        if fault.form == "share":
            steps = np.minimum(steps, 1 - 1e-6)
        found = [likelihood(step) for step in steps.tolist()]
        center, factor = float(steps[int(np.argmax(found))]), factor**0.34
    model.use([*model.faults[:index], replace(fault, value=center), *model.faults[index + 1 :]])


def value_likelihood(rest: Model, fault: PlacedFault) -> Callable[[float], float]:
    """Return a function from a fault's value to the log-likelihood of the affected rows."""
    rows = rest.channel.classes.row

    def likelihood(value: float) -> float:
        if rest.is_trunk(fault):
            several = LONE_EVIDENCE
            return float(evidence(rest, fault.place, None, value, several).sum())
        at, share = rest.shares(replace(fault, value=value))
        step = 1 + len(at) // MOST_FITTED * 2  # an odd step, to avoid a period of the pattern
        row, share = rows[at[::step]], share[::step]
        p = 1 - (1 - rest.p[row]) * (1 - np.minimum(share, 1 - 1e-9))
        wide = np.where(
            rest.p[row] > 0, np.maximum(rest.spread[row], fault.spread()), fault.spread()
        )
        wide = np.where(share > 0, wide, USUAL_SPREAD)
        return step * float(rest.channel.log_likelihood(row, p, wide).sum())

    return likelihood


def interval(rest: Model, fault: PlacedFault) -> tuple[float, float]:
    """Return the 95 % interval of a fault's value, by the likelihood of its rows.

    The likelihood at both ends is a seventh of the maximum.
    """
    likelihood = value_likelihood(rest, fault)
    most = 1 - 1e-9 if fault.form == "share" else np.inf
    top = likelihood(fault.value)
    ends = []
    for way in (-1.0, 1.0):

        def at(step: float, way: float = way) -> float:
            return float(min(fault.value * np.exp(way * step), most))

        step, inner = 0.002, 0.0
        while step < 3 and top - likelihood(at(step)) < 1.92:
            inner, step = step, 1.6 * step
        for _ in range(4):
            middle = (inner + step) / 2
            near = top - likelihood(at(middle)) < 1.92
            inner, step = (middle, step) if near else (inner, middle)
        ends.append(at(step))
    return ends[0], ends[1]


def without(model: Model, index: int) -> Model:
    """Return the model without one of its faults."""
    rest = copy(model)
    rest.use(model.faults[:index] + model.faults[index + 1 :])
    return rest


def select(model: Model) -> None:
    """Add faults that are worth their penalty to a model; drop or replace faults that are not.

    A step is kept only if the likelihood rises by more than the penalty.
    """
    for doubtful in (False, True):
        if doubtful and not model.doubt_outliers():
            return
        for _ in range(2):
            grow(model)
            if not _improve(model):
                break


def objective(model: Model) -> float:
    """Return the log-likelihood of a model less the penalties of all its faults."""
    return model.total() - sum(fault.penalty for fault in model.faults)


def grow(model: Model, most: int = MOST_FAULTS) -> None:
    """Add the best fault to a model up to `most` times; drop faults that become superfluous."""
    most = min(most + len(model.faults), MOST_FAULTS + model.lines)
    while len(model.faults) < most:
        found = sorted(hypotheses(model), key=lambda x: -x.score)[:3]
        before, kept = objective(model), list(model.faults)
        for best in found:
            if best.score <= 0:
                return
            _place(model, kept, len(kept), best, before)
            if objective(model) > before:
                break
            model.use(kept)
        else:
            return
        _drop(model)


def _place(
    model: Model, kept: list[PlacedFault], index: int, chosen: PlacedFault, before: float
) -> None:
    """Add a fault to the kept faults of a model, and fit the fault's value.

    A trunk's fault is worth the gain of the trunk's rows together. If the single rows gain more,
    its penalty includes the difference. before: the objective without the fault.
    """
    model.faults = [*kept[:index], chosen, *kept[index:]]
    refit(model, index)
    fault = model.faults[index]
    if fault.place in model.hashing.trunks and (model.is_trunk(fault) or fault.pairs is not None):
        excess = objective(model) - before - chosen.score
        model.faults[index] = replace(fault, penalty=fault.penalty + excess)


def _drop(model: Model) -> None:
    """Drop each fault that gains less log-likelihood than its penalty."""
    for index in reversed(range(model.lines, len(model.faults))):
        rest = without(model, index)
        if objective(rest) > objective(model):
            model.use(rest.faults)


def _by_chance(fault: PlacedFault) -> bool:
    """Return whether a fault applies to some pairs of ports or some phases only.

    Such a fault may explain by chance what several other faults cause together.
    """
    return fault.pairs is not None or fault.kind == "intermittent"


def _split(model: Model, index: int) -> bool:
    """Replace a fault of some port pairs or phases by several plain faults that explain more."""
    if not _by_chance(model.faults[index]):
        return False
    before, kept = objective(model), list(model.faults)
    model.use(kept[:index] + kept[index + 1 :])
    for _ in range(MOST_PARTS):
        found = [x for x in hypotheses(model) if not _by_chance(x)]
        best = max(found, key=lambda x: x.score, default=None)
        if best is None or best.score <= 0:
            break
        _place(model, model.faults, len(model.faults), best, objective(model))
        if objective(model) > before + 0.5:
            return True
    model.use(kept)
    return False


def _improve(model: Model) -> bool:
    """Fit all faults again, replace faults by better alternatives; return whether any changed."""
    changed, by_chance = False, 0
    for index in range(model.lines, len(model.faults)):
        by_chance += _by_chance(model.faults[index])
        if by_chance <= MOST_SPLIT and _split(model, index):
            return True
        refit(model, index)
        rest = without(model, index)
        before, kept = objective(model), list(model.faults)
        least = before + 0.5 - objective(rest)
        best = max(hypotheses(rest, max(least, 0.0)), key=lambda x: x.score, default=None)
        if best is None or best.score < least:
            continue
        others = kept[:index] + kept[index + 1 :]
        _place(model, others, index, best, objective(rest))
        if objective(model) > before + 0.5:
            changed = True
        else:
            model.use(kept)
    _drop(model)
    return changed
