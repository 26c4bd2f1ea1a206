# SPDX-License-Identifier: BSD-3-Clause
"""Evidence of one measure: its rows, the elements that each row passes, and the likelihood of rows.

A channel holds the rows of one measure (lost frames of open loads, rates of closed loads,
retransmissions, duplicates, ...). In each row a share of the frames is impaired, so that one set of
fault models serves all measures. Elements that the same pairs pass form a class: no observation
tells them apart, and all work is done on classes.

A flow always takes the same link of a trunk, but the link is unknown. The number of flows on this
link is binomially distributed; each number gives the share that the flow loses. A row's
likelihood is the mean over these alternatives. Faults of a trunk or of one of its links are
compared by `evidence`: the likelihood of all rows of a trunk together, as the mean over all ways to
spread its flows over its links. This mean respects that flows can only share a link
with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from ..statistics import gammaln
from .facts import Bools, Element, Floats, Ints, Observations, Paths

OUTLIER = 1e-3  # prior probability of a row that no model describes
LARGE = 0.01  # a host does not lose a larger share by itself
LARGE_OUTLIER = 1e-5  # prior probability of a LARGE share without a cause on the row's path
RATE_TAIL = 0.06  # mean shortfall of closed loads due to the tester or to chance
IMPOSSIBLE = 40.0  # -log of a probability that counts as zero
MOST_MARKED = 1 << 24  # max key for counting in an array; larger keys are sorted
ZETA = 2.612  # zeta(1.5): sum of k ** -1.5


@dataclass
class ElementClasses:
    """Classes of elements that the same pairs of ports pass, and the rows that pass each class.

    An incidence is one class on the path of one row.

    members: element numbers by class.
    row, of: row and class of each incidence, ordered by row and path.
    order, start: incidences of class c: order[start[c]:start[c + 1]].
    """

    members: list[list[int]]
    elements: list[Element]
    row: Ints
    of: Ints
    order: Ints
    start: Ints
    pairs_through: Ints  # number of pairs by class
    first: Ints  # row r has the incidences first[r] to first[r + 1]

    def __len__(self) -> int:
        """Return the number of classes of elements."""
        return len(self.members)

    def incidences(self, number: int) -> Ints:
        """Return the numbers of the incidences (a row and a class on its path) of one class."""
        return self.order[self.start[number] : self.start[number + 1]]


@dataclass
class Channel:
    """Observations of one measure, such as loss: arrays with a row for each flow and phase.

    measure: "loss", "rate", "retransmission", "duplication", "reordering", "corruption", "flooding"
        or "wrong-port".
    rows: row numbers in the observations.
    pair: number of the row's pair in the channel.
    n, k: frames, and impaired frames; for "rate" n is 1 and k the shortfall, which may be slightly
        negative.
    load_bps: load that the row brings to its elements.
    background: share that is impaired without any fault.
    noisy: share of rows with a few lost frames.
    """

    measure: str
    rows: Ints
    phase: Ints
    pair: Ints
    src: Ints  # source port of each pair
    dst: Ints
    n: Floats
    k: Floats
    load_bps: Floats
    limited: Bools
    size: Floats
    bursts: Bools
    classes: ElementClasses = field(init=False)
    sigma: float = 0.03  # standard deviation of closed rates

    def __post_init__(self) -> None:
        """Compute constants of the likelihood, and the noise from rows with little loss."""
        self.outlier = np.full(len(self.k), OUTLIER)
        if self.measure == "rate":
            small = self.k[self.k < 0.25]
            if len(small) >= 4:
                spread = 1.4826 * float(np.median(np.abs(small)))
                self.sigma = float(np.clip(spread, 0.03, 0.1))
            return
        n, k, share = self.n, self.k, self.share()
        hit = k > 0  # the constant of all other rows is 0
        self.constant = np.zeros(len(k))
        self.constant[hit] = gammaln(n[hit] + 1) - gammaln(k[hit] + 1) - gammaln((n - k)[hit] + 1)
        some = share < 0.01
        usual = float(np.median(share[some])) if some.sum() >= 8 else 0.0
        self.background = max(1e-7, usual)
        kept = np.maximum(3.0, (3e-4 + 3 * self.background) * n)
        noisy = some & (k > 2 * self.background * n) & hit & (k <= 4 * kept)
        least = 0.1 if self.measure == "retransmission" else 0.004
        self.noisy = float(np.clip((noisy.sum() + 0.5) / (some.sum() + 1), least, 0.2))
        extra = np.maximum(k, 1.0)
        tail = -np.log(ZETA) - 1.5 * np.log(extra) - 2.0 * np.log(np.maximum(extra / kept, 1.0))
        self.tail = np.where(hit, np.exp(tail), 0.0)

    def share(self) -> Floats:
        """Return the share of impaired frames of each row."""
        return self.k / self.n

    def log_likelihood(self, at: Ints, p: Floats, spread: Floats | float) -> Floats:
        """Return the log-likelihood of rows if faulty elements impair a share p of their frames.

        at: row numbers of the channel.
        spread: relative standard deviation of p from row to row.
        """
        k = self.k[at]
        if self.measure == "rate":
            wide = np.hypot(self.sigma, spread * p * (1 - p) + 0.02 * (p > 0))
            normal = np.exp(-0.5 * ((k - p) / wide) ** 2) / (wide * 2.5066)
            over = np.maximum(k - p, 0.0) / RATE_TAIL
            tail = np.where(k > p, np.exp(-over) / RATE_TAIL, 0.0)
            return np.asarray(np.log(0.97 * normal + 0.03 * tail + self.outlier[at]))
        n, mean = self.n[at], np.minimum(p + self.background, 1 - 1e-6)
        wide = np.where(p > 2 * self.background, spread, 1.0)
        weight = np.maximum(1 / (wide**2 * mean * (1 - mean)) - 1, 2.0)
        alpha, beta = mean * weight, (1 - mean) * weight
        # The probability of a row without losses is at most (weight / (n + weight)) ** alpha.
        some = np.flatnonzero((k > 0) | (alpha * np.log1p(n / weight) < IMPOSSIBLE))
        bad = some[k[some] > 0]
        body = np.full(len(at), -np.inf)
        body[some] = self.constant[at[some]] + gammaln(weight[some]) - gammaln((n + weight)[some])
        body[some] += gammaln((n - k + beta)[some]) - gammaln(beta[some])
        body[bad] += gammaln((k + alpha)[bad]) - gammaln(alpha[bad])
        noise, outlier = self.noisy * self.tail[at] * np.exp(-n * p), self.outlier[at]
        rest = (1 - self.noisy - outlier) * np.exp(body)
        return np.asarray(np.log(rest + noise + outlier / (n + 1)))


def numbered(key: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the distinct keys in order, and the index of each key; all keys are below `most`."""
    if most > MOST_MARKED:
        return np.unique(key, return_inverse=True)
    used = np.zeros(most, np.bool_)
    used[key] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[key]


def classify(channel: Channel, paths: Paths, suffering: Ints) -> None:
    """Group a channel's elements into classes: elements that the same pairs of ports pass.

    The elements are those of the paths, each network, and each pair with a row in `suffering`.
    """
    count, pairs = len(paths.elements), len(channel.src)
    names = paths.networks or [""] * len(paths.ports)
    distinct, network_of = np.unique(np.array(names), return_inverse=True)
    elements = [*paths.elements]
    elements += [
        Element(f"network {name}" if name and len(distinct) > 1 else "network", "network")
        for name in distinct.tolist()
    ]
    chosen = np.unique(channel.pair[suffering])
    own = len(elements) + np.arange(len(chosen))
    elements += [
        Element(f"{paths.ports[s]} -> {paths.ports[d]}", "pair")
        for s, d in zip(channel.src[chosen].tolist(), channel.dst[chosen].tolist(), strict=True)
    ]
    # Each pair passes the elements of its path, its network and, if chosen, itself.
    pair, of = paths.of_pairs(channel.src, channel.dst)
    pair = np.concatenate([pair, np.arange(pairs), chosen]).astype(np.int32)
    of = np.concatenate([of, count + network_of[channel.src], own]).astype(np.int32)
    order = np.argsort(pair, kind="stable")
    pair, of = pair[order], of[order]
    code = np.random.default_rng(1).integers(1, 2**62, pairs, np.int64)
    hashes = np.zeros(len(elements), np.int64)
    np.add.at(hashes, of, code[pair])
    through = np.bincount(of, minlength=len(elements))
    number: dict[tuple[int, int], int] = {}
    members: list[list[int]] = []
    for one in np.flatnonzero(through).tolist():
        key = (int(hashes[one]), int(through[one]))
        if key not in number:
            number[key] = len(members)
            members.append([])
        elif elements[one].kind in ("pair", "network"):
            continue  # another class of the same flows is more specific
        members[number[key]].append(one)
    first = np.full(len(elements), -1, np.int32)
    first[[group[0] for group in members]] = np.arange(len(members))
    kept = first[of] >= 0
    pair, of = pair[kept], first[of[kept]]
    # Classes of rows: each row passes the elements of its pair.
    length = np.bincount(pair, minlength=pairs)
    begin = (np.cumsum(length) - length)[channel.pair]
    length = length[channel.pair]
    by_row = np.concatenate([[0], np.cumsum(length)])
    row = np.repeat(np.arange(len(length), dtype=np.int32), length)
    of = of[np.repeat(begin - by_row[:-1], length) + np.arange(len(row))]
    small = of.astype(np.int16) if len(members) < 1 << 15 else of  # small integers sort faster
    order = np.argsort(small, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(members)))])
    pairs_through = through[[group[0] for group in members]]
    channel.classes = ElementClasses(
        members, elements, row, of, order, start, pairs_through, by_row
    )


def channel_of(
    measure: str, found: Observations, rows: Ints, n: Floats, k: Floats, load_bps: Floats
) -> Channel:
    """Return the given rows of the observations as the channel of one measure."""
    ports = int(max(found.src.max(initial=0), found.dst.max(initial=0))) + 1
    keys, pair = numbered(found.src[rows] * ports + found.dst[rows], ports * ports)
    phase = found.phase[rows]
    sizes = np.array([facts.frame_bytes for facts in found.phases], np.float64)
    bursts = np.array([facts.bursts for facts in found.phases], np.bool_)
    return Channel(
        measure, rows, phase, pair.astype(np.int64), keys // ports, keys % ports, n, k, load_bps,
        found.limited[rows], sizes[phase], bursts[phase],
    )  # fmt: skip


# --- parallel links -------------------------------------------------------------------------------

MOST_OTHERS = 24
RISK = 0.02  # a larger probability of a loss counts as a risk
RARE = 1e-4  # less probable numbers of flows on one link are ignored
MOST_FLOWS = 8  # up to this many flows, all assignments to a trunk's links are enumerated
LONE_EVIDENCE = 0.4  # weight of rows in phases of more flows, or that pass several trunks
# Limits of loss shares; alternatives between two limits are merged into their mean.
LIMITS = np.array([1e-6, 0.12, 0.25, 0.38, 0.5, 0.6, 0.7, 0.82])
BINS = len(LIMITS) + 1


@dataclass(frozen=True)
class Alternatives:
    """Possible shares of frames that flows lose on shared links, with their log-probabilities.

    of: index into the two arrays (by row and bin) for each row of the channel; -1 if the row shares
        no link.
    """

    of: Ints
    share: Floats
    log_weight: Floats

    def risk(self, rows: Ints) -> Bools:
        """Return for each given row whether its flow may lose frames on shared links."""
        of = self.of[rows]
        if not len(self.log_weight):
            return np.zeros(len(rows), np.bool_)
        return np.asarray((of >= 0) & (self.log_weight[of, 0] < -RISK))

    def mean(self, rows: int) -> Floats:
        """Return for each row the expected share of frames lost on shared links."""
        found = np.zeros(rows)
        some = self.of >= 0
        weights = np.exp(self.log_weight[self.of[some]])
        found[some] = (weights * self.share[self.of[some]]).sum(axis=1)
        return found


class Trunk:
    """Trunk of parallel links, and the rows (a flow in a phase) that pass the trunk.

    line_bps: capacity of all links together; infinite where sharing a link has no effect.
    separate: true if each link is a line, false if all links are one shaper.
    phase, pair: phase and pair of each row.
    others, load: number of other flows in each row's phase, and their mean load.
    """

    def __init__(self, channel: Channel, elements: Sequence[Element], row: Ints) -> None:
        """Create a trunk from elements of several links that the given rows of a channel pass."""
        separate = [x for x in elements if not x.pooled]
        lines = [(x.line_bps / x.links, x) for x in separate or elements]
        one = min(lines, key=lambda x: x[0] if x[0] > 0 else np.inf)[1]
        shared = channel.measure in ("loss", "rate") and bool(separate)
        self.links, self.line_bps = one.links, one.line_bps if shared else np.inf
        self.separate, self.row = bool(separate), row
        self.phase, self.pair, load = channel.phase[row], channel.pair[row], channel.load_bps[row]
        self.others = (np.bincount(self.phase)[self.phase] - 1).astype(np.float64)
        total = np.bincount(self.phase, load)[self.phase]
        self.load = (total - load) / np.maximum(self.others, 1)

    @cached_property
    def flows(self) -> tuple[Ints, Ints, Ints]:
        """Return each row's group of flows, its flow's number in the group, and all group sizes.

        A group is a set of pairs that use the trunk at the same time, in one or several phases.
        """
        pairs = int(self.pair.max()) + 1
        code = np.random.default_rng(2).integers(1, 2**62, pairs, np.int64)
        key = np.zeros(int(self.phase.max()) + 1, np.int64)
        np.add.at(key, self.phase, code[self.pair])
        group = np.unique(key[self.phase], return_inverse=True)[1].astype(np.int64)
        both, flow = np.unique(group * pairs + self.pair, return_inverse=True)
        first = np.searchsorted(both // pairs, np.arange(int(group.max()) + 1))
        return group, flow - first[group], np.diff(np.append(first, len(both)))


class Hashing:
    """Trunks of several links in a channel, and the losses of flows that hash to the same link."""

    def __init__(self, channel: Channel) -> None:
        """Find the trunks of a channel, and the load of their flows in each phase."""
        self._channel = channel
        self.trunks: dict[int, Trunk] = {}
        classes = channel.classes
        for place, members in enumerate(classes.members):
            some = [classes.elements[m] for m in members if classes.elements[m].links > 1]
            if some:
                row = classes.row[classes.incidences(place)]
                self.trunks[place] = Trunk(channel, some, row)
        self._known: dict[object, Floats] = {}
        self._beside: dict[object, tuple[Alternatives, Floats]] = {}
        self.healthy = self.alternatives({})

    def is_separate(self, place: int) -> bool:
        """Return whether a class of elements is a trunk whose links have separate line rates."""
        return place in self.trunks and self.trunks[place].separate

    def alternatives(
        self, lines: Mapping[int, float], only: Bools | None = None, beside: int = -1
    ) -> Alternatives:
        """Return the shares that rows may lose on shared links, with their probabilities.

        lines: total capacities by class that replace those of the trunks.
        only: rows to compute; other rows have no alternatives.
        beside: trunk to leave out.
        """
        rows, channel_load = len(self._channel.pair), self._channel.load_bps
        touched = np.zeros(rows, np.bool_)
        shares: list[tuple[Ints, Floats, Floats]] = []
        for place, trunk in self.trunks.items():
            if place == beside:
                continue
            line = lines.get(place, trunk.line_bps) / trunk.links
            with np.errstate(invalid="ignore"):
                risk = channel_load[trunk.row] + trunk.others * trunk.load > 1.003 * line
            if only is not None:
                risk &= only[trunk.row]
            if not risk.any():
                continue
            row, others, load = trunk.row[risk], trunk.others[risk], trunk.load[risk]
            number = np.arange(int(min(others.max(), MOST_OTHERS)) + 1)
            distinct, which = np.unique(others, return_inverse=True)
            weight = _binomial(number, distinct, 1 / trunk.links)[which]
            offered = channel_load[row][:, None] + number * load[:, None]
            share = np.maximum(0.0, 1 - line / np.maximum(offered, 1.0))
            weight /= weight.sum(axis=1, keepdims=True)
            touched[row] = True
            shares.append((row, weight, share))
        count = int(touched.sum())
        of = np.where(touched, np.cumsum(touched) - 1, -1)
        weights, means = np.zeros((count, BINS)), np.zeros((count, BINS))
        weights[:, 0] = 1.0
        for row, weight, share in shares:
            at = of[row]
            joint = (weights[at][:, :, None] * weight[:, None, :]).reshape(len(at), -1)
            both = 1 - (1 - means[at][:, :, None]) * (1 - share[:, None, :])
            both = both.reshape(len(at), -1)
            bins = np.searchsorted(LIMITS, both)
            key = np.arange(len(at))[:, None] * BINS + bins
            mass = np.bincount(key.ravel(), joint.ravel(), len(at) * BINS)
            sums = np.bincount(key.ravel(), (joint * both).ravel(), len(at) * BINS)
            weights[at] = mass.reshape(-1, BINS)
            means[at] = (sums / np.maximum(mass, 1e-300)).reshape(-1, BINS)
        with np.errstate(divide="ignore"):
            return Alternatives(of, means, np.log(weights))

    def beside(
        self, place: int, lines: Mapping[int, float], several: float
    ) -> tuple[Alternatives, Floats]:
        """Return the possible losses on other trunks of a trunk's flows, and the rows' weights.

        Rows of one flow have the same unknown errors, so that they count as one row. several:
        weight of rows that may also share links of other trunks: a collision there reduces the
        load, so that other flows lose as if a link were slow.
        """
        state = (place, several, *sorted(x for x in lines.items() if x[0] != place))
        if state not in self._beside:
            row = self.trunks[place].row
            group, flow, size = self.trunks[place].flows
            only = np.zeros(len(self._channel.pair), np.bool_)
            only[row] = True
            others = self.alternatives(lines, only, place)
            risky = self.healthy.risk(row)
            repeats = np.zeros((len(size), int(size.max())))
            np.add.at(repeats, (group, flow), risky)
            weight = np.where(risky, 1 / np.maximum(repeats[group, flow], 1), 1.0)
            self._beside[state] = others, np.where(others.risk(row), several * weight, weight)
        return self._beside[state]

    def evidence(
        self, place: int, passing: Floats, p: Floats, spread: Floats, lines: Mapping[int, float],
        link: tuple[str, float] | None = None, several: float = 0.0, each: bool = False,
    ) -> Floats:  # fmt: skip
        """Return for each group of a trunk's flows the log-likelihood of the group's rows.

        passing: share of each row's load that reaches the trunk.
        p, spread: by row of the channel.
        lines: capacities of trunks.
        link: fault of one link ("share" or "capacity", value).
        several: as in `beside`.
        each: return by row of the trunk the probability that its flow uses the faulty link,
            instead.
        """
        trunk, channel = self.trunks[place], self._channel
        row, phase, links = trunk.row, trunk.phase, trunk.links
        state = (place, link, several, each, p[row].tobytes(), tuple(sorted(lines.items())))
        if state in self._known:
            return self._known[state]
        group, flow, size = trunk.flows
        line, load = lines.get(place, trunk.line_bps) / links, channel.load_bps[row] * passing
        others = (np.bincount(phase, load)[phase] - load) / np.maximum(trunk.others, 1)
        beside, weight = self.beside(place, lines, several)
        chances = _binomial(np.arange(size.max()), np.array([size.max() - 1.0]), 1 / links)[0]
        most = 1 + int(np.flatnonzero(chances > RARE).max())
        offered = load[:, None] + np.arange(most) * others[:, None]

        def likely(share: Floats) -> Floats:
            """Return log-likelihoods by group, flow, and number of flows on the flow's link."""
            some = (share != np.roll(share, 1, axis=1)) & (weight > 0)[:, None]
            some[:, 0] = weight > 0
            if not some.any():
                return np.zeros((len(size), int(size.max()), most))
            at = np.nonzero(some)[0]
            both = 1 - (1 - p[row[at]]) * (1 - np.minimum(share[some], 1 - 1e-9))
            wide = np.where(share[some] > 0.02, np.maximum(spread[row[at]], 0.2), spread[row[at]])
            found = log_likelihood(channel, beside, row[at], both, wide)
            found = found[np.maximum(np.cumsum(some.ravel()) - 1, 0)].reshape(share.shape)
            total = np.zeros((len(size), int(size.max()), most))
            np.add.at(total, (group, flow), found * weight[:, None])
            return total

        with np.errstate(invalid="ignore"):
            healthy = likely(np.nan_to_num(np.maximum(0.0, 1 - line / offered)))
            if link is None:
                broken = None
            elif link[0] == "share":
                through = np.nan_to_num(np.maximum(0.0, 1 - line / (offered * (1 - link[1]))))
                broken = likely(1 - (1 - link[1]) * (1 - through))
            else:
                broken = likely(np.maximum(0.0, 1 - link[1] / offered))
        total, on_link = np.zeros(len(size)), np.zeros(healthy.shape[:2])
        for number in np.unique(size).tolist():
            at = np.flatnonzero(size == number)
            one = healthy[at, :number]
            other = None if broken is None else broken[at, :number]
            total[at] = _together(one, other, links)
            for index in range(number if each and other is not None else 0):
                forced = one.copy()
                forced[:, index] -= 100.0
                chance = _together(forced, other, links) - total[at]
                on_link[at, index] = np.exp(np.minimum(chance, 0.0))
        self._known[state] = on_link[group, flow] if each else total
        return self._known[state]


@cache
def _subsets(number: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the subsets of `number` flows as bit sets, with the size and the parts of each.

    The result has the size of each set, the parts of each set, the rest of the set for each part,
    and the index of each set's first part.
    """
    sets = np.arange(2**number)
    size = np.array([x.bit_count() for x in sets.tolist()])
    of, part = np.nonzero((sets[:, None] & sets) == sets)
    return size, part, of - part, np.searchsorted(of, sets)


def _together(healthy: Floats, broken: Floats | None, links: int) -> Floats:
    """Return the log-likelihood of groups of flows, over all ways to spread the flows over links.

    healthy, broken: by group, flow and number of flows on the link (from 1), for a healthy link and
    for the faulty one.
    """
    groups, number, most = healthy.shape
    top = healthy.max(axis=2) if broken is None else np.maximum(healthy, broken).max(axis=2)
    good = np.exp(healthy - top[:, :, None])
    bad = good if broken is None else np.exp(broken - top[:, :, None])
    plain = (np.ptp(good, axis=2) + np.ptp(bad, axis=2)).max(axis=1) < 1e-9
    result = np.zeros(groups)
    alone = np.flatnonzero(plain) if number <= MOST_FLOWS else np.arange(groups)
    if len(alone):
        weight = _binomial(np.arange(most), np.array([number - 1.0]), 1 / links)[0]
        weight /= weight.sum()
        mean = (good[alone] @ weight) * (1 - 1 / links) + (bad[alone] @ weight) / links
        found = np.log(np.maximum(mean, 1e-300)).sum(axis=1)
        result[alone] = np.where(plain[alone], found, LONE_EVIDENCE * found)
    joint = np.flatnonzero(~plain) if number <= MOST_FLOWS else alone[:0]
    if len(joint):
        size, part, rest, begin = _subsets(number)

        def on_one(flows: Floats) -> Floats:
            """Return each group's likelihood of each set of flows, if the set shares one link."""
            made = np.ones((len(joint), most, 1))
            for flow in range(number):
                both = made * flows[joint, flow][:, :, None]
                made = np.concatenate([made, both], axis=2)
            picked = np.take_along_axis(made, np.clip(size - 1, 0, most - 1)[None, None, :], axis=1)
            return np.asarray(picked[:, 0])

        def added(one: Floats, other: Floats) -> Floats:
            """Return the likelihood of each set of flows on two sets of links together."""
            return np.add.reduceat(one[:, part] * other[:, rest], begin, axis=1)

        power, left = on_one(good), links
        every = None
        if broken is not None:
            every, left = on_one(bad), links - 1
        while left:
            if left % 2:
                if every is None:
                    every = power
                elif left == 1:
                    every = (every * power[:, ::-1]).sum(axis=1, keepdims=True)
                else:
                    every = added(every, power)
            left //= 2
            if left:
                power = added(power, power)
        assert every is not None
        whole = np.log(np.maximum(every[:, -1], 1e-300))
        result[joint] = whole - number * np.log(links)
    return np.asarray(result + top.sum(axis=1))


def _binomial(number: Ints, count: Floats, chance: float) -> Floats:
    """Return binomial probabilities, with a row for each count and a column for each number."""
    failures = count[:, None] - number
    log = gammaln(count[:, None] + 1) - gammaln(number + 1) - gammaln(np.maximum(failures, 0) + 1)
    log += number * np.log(chance) + failures * np.log(1 - chance)
    return np.where(failures >= 0, np.exp(np.minimum(log, 0.0)), 0.0)


def log_likelihood(
    channel: Channel, hashed: Alternatives, at: Ints, p: Floats, spread: Floats | float
) -> Floats:
    """Return the log-likelihood of rows, given an impaired share p and losses on shared links."""
    found = channel.log_likelihood(at, p, spread)
    number = hashed.of[at]
    some = np.flatnonzero(number >= 0)
    if not len(some):
        return found
    weight = hashed.log_weight[number[some]]
    which, bin_number = np.nonzero(weight[:, 1:] > -12)
    one, bin_number = some[which], bin_number + 1
    both = 1 - (1 - p[one]) * (1 - hashed.share[number[one], bin_number])
    wide = np.maximum(np.broadcast_to(spread, p.shape)[one], 0.3)
    likely = weight[which, bin_number] + channel.log_likelihood(at[one], both, wide)
    total = np.bincount(which, np.exp(likely), len(some))
    found[some] = np.log(np.exp(weight[:, 0] + found[some]) + total)
    return found


def explained(channel: Channel, hashed: Alternatives, p: Floats) -> Floats:
    """Return for each row the share that shared links most likely lost, given the row's losses."""
    found = np.zeros(len(p))
    some = np.flatnonzero(hashed.of >= 0)
    if not len(some):
        return found
    number = hashed.of[some]
    both = 1 - (1 - p[some])[:, None] * (1 - hashed.share[number])
    likely = channel.log_likelihood(np.repeat(some, BINS), both.ravel(), 0.3)
    values = hashed.log_weight[number] + likely.reshape(both.shape)
    weight = np.exp(values - values.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    found[some] = (weight * hashed.share[number]).sum(axis=1)
    return found
