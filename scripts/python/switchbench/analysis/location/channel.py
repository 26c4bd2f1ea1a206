# SPDX-License-Identifier: BSD-3-Clause
"""Evidence of one measure: rows, the elements that they pass, and how likely a row is.

A channel holds the rows of one measure (lost frames of open loads, rates of closed ones,
retransmissions, duplicates, ...). Each row has a share that suffered, so that one set of fault
models serves all measures. Elements that the same pairs pass form a class: no observation tells
them apart, and all work is done on classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..statistics import gammaln
from .facts import Bools, Element, Floats, Ints, Observations, Paths

OUTLIER = 1e-3  # prior probability that a row follows no model
LARGE = 0.01  # share lost, which no host loses by itself
LARGE_OUTLIER = 1e-5  # prior probability that a row has such a share without a cause on its path
RATE_TAIL = 0.06  # mean shortfall of closed loads that the tester or chance holds back
IMPOSSIBLE = 40.0  # -log of a probability that is as good as none
ZETA = 2.612  # of 1.5: sum of k ** -1.5


@dataclass
class ElementClasses:
    """ElementClasses of elements, and which rows of a channel pass them.

    members: element numbers by class. row, of: incidences in the order of rows and paths.
    order, start: incidences by class: order[start[c]:start[c + 1]].
    """

    members: list[list[int]]
    elements: list[Element]
    row: Ints
    of: Ints
    order: Ints
    start: Ints
    pairs_through: Ints  # number of pairs by class
    first: Ints  # incidences by row: first[r] to first[r + 1]

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.members)

    def incidences(self, number: int) -> Ints:
        """Return the incidences of one class."""
        return self.order[self.start[number] : self.start[number + 1]]


@dataclass
class Channel:
    """Rows of one measure, as arrays of one length.

    measure: "loss", "rate", "retransmission", "duplication", "reordering", "corruption", "flooding"
        or "wrong-port".
    rows: row numbers in the observations. pair: number of the row's pair in the channel.
    n, k: frames and how many of them suffered; of "rate" n is 1 and k the shortfall, which may be
        slightly negative.
    load_bps: what the row brings to its elements.
    background: share that suffers without any fault. noisy: share of rows with a few frames lost.
    """

    measure: str
    rows: Ints
    phase: Ints
    pair: Ints
    src: Ints  # by pair
    dst: Ints
    n: Floats
    k: Floats
    load_bps: Floats
    limited: Bools
    size: Floats
    bursts: Bools
    classes: ElementClasses = field(init=False)
    background: float = 1e-7
    noisy: float = 0.01
    sigma: float = 0.03  # of closed rates
    constant: Floats = field(init=False)
    tail: Floats = field(init=False)
    outlier: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Precompute what does not depend on a model."""
        self.outlier = np.full(len(self.k), OUTLIER)
        if self.measure == "rate":
            self.constant = self.tail = np.zeros(len(self.k))
            self.estimate_noise(np.ones(len(self.k), np.bool_))
            return
        n, k = self.n, self.k
        self.constant = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        self.estimate_noise(np.ones(len(k), np.bool_))

    def estimate_noise(self, free: Bools) -> None:
        """Estimate background and noise from the rows that no suspect explains."""
        if self.measure == "rate":
            small = self.k[free & (self.k < 0.25)]
            if len(small) >= 4:
                spread = 1.4826 * float(np.median(np.abs(small)))
                self.sigma = float(np.clip(spread, 0.03, 0.1))
            return
        n, k = self.n, self.k
        share = k / n
        some = free & (share < 0.01) if free.any() else share < 0.01
        usual = float(np.median(share[some])) if some.sum() >= 8 else 0.0
        self.background = max(1e-7, usual)
        kept = np.maximum(3.0, (3e-4 + 3 * self.background) * n)
        noisy = some & (k > 2 * self.background * n) & (k > 0) & (k <= 4 * kept)
        self.noisy = float(np.clip((noisy.sum() + 0.5) / (some.sum() + 1), 0.004, 0.2))
        if self.measure == "retransmission":
            self.noisy = max(self.noisy, 0.1)
        extra = np.maximum(k, 1.0)
        tail = -np.log(ZETA) - 1.5 * np.log(extra)
        tail -= np.where(extra > kept, 2.0 * np.log(np.maximum(extra / kept, 1.0)), 0.0)
        self.tail = np.where(k > 0, np.exp(tail), 0.0)

    def share(self) -> Floats:
        """Return the share of each row that suffered."""
        share: Floats = self.k / self.n
        return share

    def log_likelihood(self, at: Ints, p: Floats, spread: Floats | float) -> Floats:
        """Return the log-likelihood of rows whose elements at fault let a share p suffer.

        at: row numbers of the channel. spread: relative standard deviation of p from row to row.
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
        # A row without losses has at most the probability (weight / (n + weight)) ** alpha.
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
    """Return the distinct keys below `most`, sorted, and the number of each key among them."""
    used = np.zeros(most, np.bool_)
    used[key] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[key]


def classify(channel: Channel, paths: Paths, suffering: Ints) -> None:
    """Set the channel's classes: of the paths' elements, of each network, of suffering pairs."""
    elements = list(paths.elements)
    count, pairs = len(elements), len(channel.src)
    names = list(paths.networks) or [""] * len(paths.ports)
    distinct = sorted(set(names))
    network_of = np.array([distinct.index(name) for name in names], np.int64)
    elements += [
        Element(f"network {name}" if name and len(distinct) > 1 else "network", "network")
        for name in distinct
    ]
    networks = count + network_of[channel.src]
    chosen = np.unique(channel.pair[suffering])
    own = len(elements) + np.arange(len(chosen))
    elements += [
        Element(f"{paths.ports[s]} -> {paths.ports[d]}", "pair")
        for s, d in zip(channel.src[chosen].tolist(), channel.dst[chosen].tolist(), strict=True)
    ]
    pair, of = _incidences(paths, channel, networks, chosen, own)
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
            continue  # an element of the same flows says more
        members[number[key]].append(one)
    first = np.full(len(elements), -1, np.int32)
    first[[group[0] for group in members]] = np.arange(len(members))
    kept = first[of] >= 0
    pair, of = pair[kept], first[of[kept]]
    # The same for rows, each of which passes what its pair does.
    length = np.bincount(pair, minlength=pairs)
    begin = (np.cumsum(length) - length)[channel.pair]
    length = length[channel.pair]
    by_row = np.concatenate([[0], np.cumsum(length)])
    row = np.repeat(np.arange(len(length), dtype=np.int32), length)
    of = of[np.repeat(begin - by_row[:-1], length) + np.arange(len(row))]
    small = of.astype(np.int16) if len(members) < 1 << 15 else of  # sorted by digits
    order = np.argsort(small, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(members)))])
    pairs_through = through[[group[0] for group in members]]
    channel.classes = ElementClasses(
        members, elements, row, of, order, start, pairs_through, by_row
    )


def _incidences(
    paths: Paths, channel: Channel, networks: Ints, chosen: Ints, own: Ints
) -> tuple[Ints, Ints]:
    """Return pair and element of all that pairs pass: path, network, themselves if chosen."""
    indptr, members = paths.of_pairs(channel.src, channel.dst)
    length = np.diff(indptr) + 1
    length[chosen] += 1
    end = np.cumsum(length)
    of = np.empty(int(end[-1]) if len(end) else 0, np.int32)
    on_path = np.ones(len(of), np.bool_)
    on_path[end[chosen] - 1] = False
    of[end[chosen] - 1] = own
    end[chosen] -= 1
    on_path[end - 1] = False
    of[end - 1] = networks
    of[on_path] = members
    return np.repeat(np.arange(len(length), dtype=np.int32), length), of


def channel_of(
    measure: str, found: Observations, rows: Ints, n: Floats, k: Floats, load_bps: Floats
) -> Channel:
    """Return a channel of the given rows of the observations."""
    ports = int(max(found.src.max(initial=0), found.dst.max(initial=0))) + 1
    keys, pair = np.unique(found.src[rows] * ports + found.dst[rows], return_inverse=True)
    phase = found.phase[rows]
    sizes = np.array([facts.frame_bytes for facts in found.phases], np.float64)
    bursts = np.array([facts.bursts for facts in found.phases], np.bool_)
    return Channel(
        measure, rows, phase, pair.astype(np.int64), keys // ports, keys % ports, n, k, load_bps,
        found.limited[rows], sizes[phase], bursts[phase],
    )  # fmt: skip
