# SPDX-License-Identifier: BSD-3-Clause
"""Parallel links: what flows lose that happen to share one link of a trunk.

Which link a flow takes is unknown. How many others share its link follows a binomial law; each
possible number gives the share that the flow loses. A row's likelihood is the mean over these
alternatives, so that a healthy trunk explains the losses of a few unlucky flows, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .channel import Channel
from .facts import Bools, Floats, Ints

MOST_OTHERS = 24
# Alternatives are kept as the mean of those between two limits.
LIMITS = np.array([1e-6, 0.12, 0.25, 0.38, 0.5, 0.6, 0.7, 0.82])
BINS = len(LIMITS) + 1


@dataclass(frozen=True)
class Alternatives:
    """Shares that rows may lose, with their log-weights: arrays of rows by BINS.

    of: by row of the channel its number here; -1 where nothing is shared.
    """

    of: Ints
    share: Floats
    log_weight: Floats

    def mean(self, rows: int) -> Floats:
        """Return the mean share by row of the channel."""
        found = np.zeros(rows)
        some = self.of >= 0
        weights = np.exp(self.log_weight[self.of[some]])
        found[some] = (weights * self.share[self.of[some]]).sum(axis=1)
        return found


class Hashing:
    """The trunks of several links in a channel, and what each may take of its rows."""

    def __init__(self, channel: Channel, phases: int) -> None:
        """Find the trunks, and the loads that their flows bring in each phase."""
        self._rows = len(channel.pair)
        self.links: dict[int, int] = {}
        self.lines: dict[int, float] = {}
        self._parts: dict[int, tuple[Ints, Floats, Floats]] = {}
        classes = channel.classes
        for place, members in enumerate(classes.members):
            every = [classes.elements[m] for m in members]
            trunks = [x for x in every if x.links > 1 and not x.pooled]
            if not trunks or channel.measure not in ("loss", "rate"):
                continue
            one = min(trunks, key=lambda x: x.line_bps / x.links if x.line_bps > 0 else np.inf)
            row = classes.row[classes.incidences(place)]
            phase, load = channel.phase[row], channel.load_bps[row]
            flows = np.bincount(phase, minlength=phases)[phase]
            total = np.bincount(phase, load, phases)[phase]
            others = (total - load) / np.maximum(flows - 1, 1)
            self.links[place], self.lines[place] = one.links, one.line_bps
            self._parts[place] = (row, (flows - 1).astype(np.float64), others)
        self._load = channel.load_bps
        self.healthy = self.alternatives({})

    def alternatives(self, lines: Mapping[int, float], only: Bools | None = None) -> Alternatives:
        """Return what rows may lose; `lines` replaces what trunks (by class) carry in total.

        only: the rows that are wanted.
        """
        touched = np.zeros(self._rows, np.bool_)
        shares: list[tuple[Ints, Floats, Floats]] = []
        for place, (row, others, load) in self._parts.items():
            line = lines.get(place, self.lines[place]) / self.links[place]
            with np.errstate(invalid="ignore"):
                risk = self._load[row] + others * load > 1.003 * line
            if only is not None:
                risk &= only[row]
            if not risk.any():
                continue
            row, others, load = row[risk], others[risk], load[risk]
            number = np.arange(int(min(others.max(), MOST_OTHERS)) + 1)
            distinct, which = np.unique(others, return_inverse=True)
            weight = _binomial(number, distinct, 1 / self.links[place])[which]
            offered = self._load[row][:, None] + number * load[:, None]
            share = np.maximum(0.0, 1 - line / np.maximum(offered, 1.0))
            weight /= weight.sum(axis=1, keepdims=True)
            touched[row] = True
            shares.append((row, weight, share))
        of = np.full(self._rows, -1, np.int64)
        count = int(touched.sum())
        of[touched] = np.arange(count)
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


def _binomial(number: Ints, count: Floats, chance: float) -> Floats:
    """Return the binomial probabilities of `number` out of each count: counts by numbers."""
    failures = count[:, None] - number
    log = gammaln(count[:, None] + 1) - gammaln(number + 1) - gammaln(np.maximum(failures, 0) + 1)
    log += number * np.log(chance) + failures * np.log(1 - chance)
    return np.where(failures >= 0, np.exp(np.minimum(log, 0.0)), 0.0)


def log_likelihood(
    channel: Channel, hashed: Alternatives, at: Ints, p: Floats, spread: Floats | float
) -> Floats:
    """Return the log-likelihood of rows where faults take p, and shared links what they may."""
    found = channel.log_likelihood(at, p, spread)
    number = hashed.of[at]
    some = np.flatnonzero(number >= 0)
    if not len(some):
        return found
    number, row = number[some], at[some]
    wide = np.broadcast_to(spread, p.shape)[some]
    total = hashed.log_weight[number, 0] + found[some]
    for bin_number in range(1, BINS):
        use = np.flatnonzero(hashed.log_weight[number, bin_number] > -12)
        if not len(use):
            continue
        share = hashed.share[number[use], bin_number]
        both = 1 - (1 - p[some][use]) * (1 - share)
        likely = channel.log_likelihood(row[use], both, np.maximum(wide[use], 0.3))
        total[use] = np.logaddexp(total[use], hashed.log_weight[number[use], bin_number] + likely)
    found[some] = total
    return found


def explained(channel: Channel, hashed: Alternatives, p: Floats) -> Floats:
    """Return by row the share that shared links most likely took, given what it lost."""
    found = np.zeros(len(p))
    some = np.flatnonzero(hashed.of >= 0)
    if not len(some):
        return found
    number = hashed.of[some]
    values = np.full((len(some), BINS), -np.inf)
    for bin_number in range(BINS):
        share = hashed.share[number, bin_number]
        both = 1 - (1 - p[some]) * (1 - share)
        likely = channel.log_likelihood(some, both, 0.3)
        values[:, bin_number] = hashed.log_weight[number, bin_number] + likely
    weight = np.exp(values - values.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    found[some] = (weight * hashed.share[number]).sum(axis=1)
    return found
