# SPDX-License-Identifier: BSD-3-Clause
"""Location of faults: each measure's observations are explained by faults, ranked as suspects.

The observations of one measure are a channel. Channels are judged one after the other: misdelivered
frames, lost frames, rates and retransmissions of closed loads (TCP, RDMA), duplicates, order,
corruption. A fault that shows in several channels is one suspect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from .channel import Channel, channel_of, classify, numbered
from .facts import (
    Bools,
    Element,
    Floats,
    Ints,
    Location,
    NextTest,
    Observations,
    Oversubscription,
    Paths,
    Suspect,
    element_words,
)
from .faults import (
    EXCESS,
    HOPELESS,
    Model,
    PlacedFault,
    grow,
    hypotheses,
    interval,
    refit,
    select,
    without,
)

ABOVE_LINE = 1.003  # rate per line rate that may be measured, since clocks differ
TEMPERATURE = 2.0  # rows of one phase are not independent: log-likelihoods count half
LEAST_CONFIDENCE = 0.5
LEAST_SENT_AGAIN = 8e-4  # a smaller retransmitted share is due to congestion
FULL_LOAD = 0.96  # load per line rate of TCP, which fills lines until a queue drops frames
CONGESTION = 3.0  # multiple of the median retransmitted share still due to congestion
NEARLY_LINE = 0.88  # a healthy line carries at least this share with closed loads
# min log-likelihood gain of a fault that chance may imitate: of one pair, of some pairs of a trunk,
# of some phases
LEAST_GAIN = 16.0
MILDER = 0.75  # acknowledgements explain up to this share of the other direction's missing capacity
MOST_PAIRS = 2  # max number of suspect pairs; more affected pairs have a common cause
SUFFERS = 0.5  # min log-likelihood gain of an affected pair
SEGMENT_BITS = 8 * 1538.0
PAIRS_TRIED = 20_000  # pairs tried for the next test
FLOWS_NAMED = 16  # flows named in the next test
MANY_ROWS = 32_768  # with more rows, faults are first sought in some phases
WIDEST = 32_768  # faults of elements with more rows are sought in some phases only
MOST_ALONE = 4096  # rows whose own pair may be at fault, if there are more than MANY_ROWS
LATE_FAULTS = 4  # faults sought in all rows, after those found in some phases
# Kinds of elements, in the order in which a person can check them: of equally likely elements the
# first kind is named.
NAMED_FIRST = ("trunk", "link", "port", "module", "cable", "host", "group", "pair", "network")
LOST = frozenset({"loss", "capacity", "size", "dead", "intermittent", "burst"})


def locate(observations: Observations, paths: Paths) -> Location:
    """Infer the faulty elements from the observations; return them ranked, with their evidence.

    The result depends on values alone, not on the order of rows or on names.
    """
    problems = list(paths.problems)
    with np.errstate(invalid="ignore"):  # rows whose counts contradict each other
        wrong = (observations.delivered > observations.sent) | (observations.sent < 0)
        wrong |= (observations.lost < 0) | (observations.lost > observations.sent)
    if wrong.any():
        labels = Counter(observations.phases[p].label for p in observations.phase[wrong].tolist())
        label, count = labels.most_common(1)[0]
        more = f" and in {len(labels) - 1} more phases" if len(labels) > 1 else ""
        problems.append(
            f"{count} flows of {label}{more} have counts that contradict each other (more "
            "delivered or lost than sent): their counts are omitted"
        )
    located: list[Suspect] = []
    expected: list[Oversubscription] = []
    unexplained = 0.0
    crowded = np.zeros(len(observations), np.bool_)
    for channel in _channels(observations, ~wrong, crowded):
        model = _explained_channel(channel, paths, observations)
        sought = range(model.lines, len(model.faults))
        located += [_suspect(model, index, observations) for index in sought]
        if channel.measure == "rate":
            crowded[channel.rows[model.p > 0.03]] = True
        if channel.measure == "loss":
            expected += _oversubscribed(model, observations)
            mean = channel.n * model.p
            left = channel.k - mean
            unexplained = float(np.maximum(left, 0)[left > 3 * np.sqrt(mean + 1)].sum())
    # Suspects of several channels that stand for the same fault become one.
    merged: list[Suspect] = []
    for one in filter(_worth, located):
        for index, other in enumerate(merged):
            kinds = {other.kind, one.kind}
            places = [{(x.name, x.direction) for x in y.alike} for y in (other, one)]
            if (kinds <= LOST or len(kinds) == 1) and places[0] & places[1]:
                merged[index] = _joined(other, one)
                break
        else:
            merged.append(one)
    located = [
        x
        for x in merged
        if not _rides_on_another(x, merged, paths) and not _waits_for_reverse(x, merged)
    ]
    located.sort(key=lambda x: (-x.confidence, -x.gain))
    # Elements that no flow loaded, or only flows that the tester limited.
    offered = observations.offered_bps
    sent = np.nan_to_num(np.where(np.isfinite(offered), offered, observations.sent))
    used, ports = ~observations.limited & (sent > 0), len(paths.ports)
    keys, _ = numbered(observations.src[used] * ports + observations.dst[used], ports * ports)
    tested = set(np.unique(paths.of_pairs(keys // ports, keys % ports)[1]).tolist())
    untested = tuple(x for number, x in enumerate(paths.elements) if number not in tested)
    return Location(
        tuple(located), tuple(expected), unexplained, untested,
        next_test(observations, paths, located, untested), tuple(problems),
    )  # fmt: skip


# --- channels ----------------------------------------------------------------------------------


def _channels(found: Observations, usable: Bools, crowded: Bools) -> Iterator[Channel]:
    """Yield one channel for each measure, such as loss or duplication, with its usable rows.

    crowded: rows that faults of rates explain; the caller sets it after the channel of rates.
        Retransmissions of these rows are no evidence.
    """
    open_loop = np.array([facts.open_loop for facts in found.phases], np.bool_)[found.phase]
    load = np.where(np.isfinite(found.offered_bps), found.offered_bps, found.intended_bps)
    load = np.nan_to_num(load)
    strays = found.misdelivered
    strayed = np.zeros(len(found))  # max number of a flow's frames at one wrong port
    np.maximum.at(strayed, strays.row, strays.frames)
    ports = int(max(x.max(initial=0) for x in (found.dst, strays.at_port))) + 1
    at_port = found.phase[strays.row] * ports + strays.at_port
    came = np.bincount(at_port, strays.frames, len(found.phases) * ports)
    with np.errstate(invalid="ignore"):
        counted = usable & open_loop & (found.sent > 0)
        lost = np.where(np.isfinite(found.lost), found.lost, nan)
        is_copy = strayed > 2 * np.nan_to_num(lost)
    wrong_port = np.where(is_copy, 0.0, np.minimum(strayed, np.nan_to_num(lost)))
    lost = lost - wrong_port
    # Misdelivered frames of other flows may have displaced all of the lost frames.
    lost[(lost > 0) & (came[found.phase * ports + found.dst] >= lost)] = nan
    for measure, k in (
        ("flooding", np.where(is_copy, np.minimum(strayed, found.sent), 0.0)),
        ("wrong-port", wrong_port),
        ("loss", lost),
        ("duplication", found.duplicated),
        ("reordering", found.reordered),
        ("corruption", found.corrupted),
    ):
        rows = np.flatnonzero(counted & np.isfinite(k) & (k >= 0))
        if len(rows) and (measure == "loss" or k[rows].any()):
            n = found.sent[rows]
            if measure in ("duplication", "reordering", "corruption"):  # per arriving frame
                n = np.maximum(n - np.nan_to_num(lost[rows]), 1.0)
            yield channel_of(measure, found, rows, n, np.minimum(k[rows], n), load[rows])
    # Closed loads (TCP, RDMA) show faults by rates and retransmissions, not by lost frames.
    with np.errstate(invalid="ignore", divide="ignore"):
        share = found.delivered_bps / found.intended_bps
        valid = ~open_loop & (found.intended_bps > 0) & np.isfinite(share) & (share < 1.5)
    valid &= ~found.limited
    rows = np.flatnonzero(valid)
    if len(rows):
        reached = np.minimum(share[rows], 1.0)
        # Share that healthy flows with the row's transport and load reach.
        usual = np.clip(_by_load(found, rows, reached, 0.8), 0.7, 1.0)
        k = np.maximum(1 - reached / usual, -0.2)
        load = found.intended_bps[rows] * usual
        yield channel_of("rate", found, rows, np.ones(len(rows)), k, load)
    again = found.retransmitted
    window = np.array([facts.window_s for facts in found.phases])[found.phase]
    with np.errstate(invalid="ignore"):
        segments = found.delivered_bps * window / SEGMENT_BITS
        valid &= np.isfinite(again) & (again >= 0) & (segments >= 1)
    rows = np.flatnonzero(valid)
    if again[rows].any():
        k = np.minimum(again[rows] / segments[rows], 1.0)
        # Retransmitted share of a healthy flow that fills a line.
        full = np.array([not facts.load < FULL_LOAD for facts in found.phases])[found.phase[rows]]
        congestion = np.where(full, CONGESTION * _by_load(found, rows, k, 0.5), 0.0)
        k = segments[rows] * np.maximum(k - congestion, 0.0)
        own = ~crowded[rows]
        rows, k = rows[own], k[own]
        if len(rows):
            yield channel_of(
                "retransmission", found, rows, segments[rows], k, found.intended_bps[rows]
            )


def _by_load(found: Observations, rows: Ints, values: Floats, share: float) -> Floats:
    """Return for each row a quantile of the values of all rows with its transport and load."""
    keys = [
        (facts.transport, facts.load if facts.load == facts.load else -1.0)
        for facts in found.phases
    ]
    kinds, kind = np.unique(np.array(keys)[found.phase[rows]], axis=0, return_inverse=True)
    usual = [np.quantile(values[kind == index], share) for index in range(len(kinds))]
    return np.asarray(np.array(usual)[kind])


# --- models ------------------------------------------------------------------------------------


def _suffering_alone(channel: Channel) -> Ints:
    """Return the rows that have more impaired frames than chance explains."""
    share = np.clip(channel.share(), 0, 1 - 1e-9)
    some = np.flatnonzero(share > 0)
    alone = channel.log_likelihood(some, np.zeros(len(some)), 0.12)
    saturated = channel.log_likelihood(some, share[some], 0.12)
    return np.asarray(some[saturated - alone > EXCESS])


def _model(channel: Channel, paths: Paths, phases: int, suffering: Ints) -> Model:
    """Return the model of a healthy network, in which overloaded lines lose only the excess load.

    suffering: rows whose own pair may be at fault.
    """
    classify(channel, paths, suffering)
    classes = channel.classes
    faults = []
    for place, numbers in enumerate(classes.members if channel.measure in ("loss", "rate") else ()):
        members = [classes.elements[m] for m in numbers]
        line = min((x.line_bps for x in members if x.line_bps == x.line_bps), default=np.inf)
        row = classes.row[classes.incidences(place)]
        load = np.bincount(channel.phase[row], channel.load_bps[row])
        single = all(x.links == 1 or x.pooled for x in members)
        if single and (load > ABOVE_LINE * line).any():
            faults.append(PlacedFault(place, "expected", "capacity", line))
    return Model(channel, phases, faults)


def _explained_channel(channel: Channel, paths: Paths, found: Observations) -> Model:
    """Find the faults that explain one measure's observations; return the model with the faults.

    If there are many rows, faults are first sought in randomly chosen phases: every n-th
    phase could coincide with a period of the pattern or of the network. These faults then apply to
    all rows. Last, faults that the chosen phases cannot show (of a pair, of a short time) are
    sought in all rows.
    """
    phases = len(found.phases)
    if len(channel.rows) <= MANY_ROWS:
        model = _model(channel, paths, phases, _suffering_alone(channel))
        select(model)
        return model
    present = np.unique(channel.phase)
    count = max(1, len(present) * MANY_ROWS // len(channel.rows))
    drawn = np.random.default_rng(1).choice(present, count, replace=False)
    use = np.isin(channel.phase, drawn)
    n, k, load_bps = (column[use] for column in (channel.n, channel.k, channel.load_bps))
    some = channel_of(channel.measure, found, channel.rows[use], n, k, load_bps)
    part = _model(some, paths, phases, _suffering_alone(some))
    select(part)
    model = _model(channel, paths, phases, np.zeros(0, np.int64))
    model.use(model.faults + _carried_over(part, model))
    for index in range(model.lines, len(model.faults)):
        if len(model.faults[index].where(channel, model.fan_in)) <= MANY_ROWS:
            refit(model, index)
    excess = model.excess()
    left = np.argsort(-excess, kind="stable")[:MOST_ALONE]
    left, faults, lines = left[excess[left] > EXCESS], model.faults, model.lines
    del model, excess, channel.classes  # free memory: a million rows are kept once
    classify(channel, paths, left)  # the other elements keep their numbers
    model = Model(channel, phases, faults, WIDEST, lines)
    grow(model, LATE_FAULTS)
    return model


def _carried_over(part: Model, whole: Model) -> list[PlacedFault]:
    """Return the faults that a model of some phases found, as faults of the model of all phases.

    Classes and pairs are renumbered. Left out are faults of one pair, which has few rows, and
    faults of elements that only all phases together can tell apart.
    """
    classes, channel = whole.channel.classes, whole.channel
    place_of = {one: place for place, group in enumerate(classes.members) for one in group}
    seen = part.channel
    ports = int(max(channel.src.max(initial=0), channel.dst.max(initial=0))) + 1
    pair_of = np.searchsorted(channel.src * ports + channel.dst, seen.src * ports + seen.dst)
    made = []
    for fault in part.faults[part.lines :]:
        members = seen.classes.members[fault.place]  # the model of all phases has no pairs
        places = {place_of[one] for one in members if one in place_of}
        if len(places) == 1:
            pairs = fault.pairs and frozenset(pair_of[list(fault.pairs)].tolist())
            made.append(replace(fault, place=places.pop(), pairs=pairs))
    return made


def _oversubscribed(model: Model, found: Observations) -> list[Oversubscription]:
    """Return for each overloaded element and transport the highest load and the lost frames."""
    channel, classes = model.channel, model.channel.classes
    transports = np.array([facts.transport for facts in found.phases])
    made = []
    for fault in model.faults[: model.lines]:
        at, share = model.shares(fault)
        row, share = classes.row[at[share > 0]], share[share > 0]
        phase = channel.phase[row]
        load = np.bincount(phase, channel.load_bps[row], model.phases)
        room = share / np.maximum(model.p[row], 1e-12) * channel.k[row]
        frames = np.bincount(phase, np.minimum(room, channel.k[row]), model.phases)
        # Whole frames: a sum that rounding errors lowered to .999999999 counts as the next number.
        frames = np.floor(frames + 1e-6).astype(np.int64)
        members = [classes.elements[m] for m in classes.members[fault.place]]
        element = _named([x for x in members if x.line_bps == fault.value])
        for transport in dict.fromkeys(transports[frames > 0].tolist()):
            mine = (frames > 0) & (transports == transport)
            offered_bps, lost = float(load[mine].max()), int(frames[mine].sum())
            made.append(Oversubscription(element, transport, offered_bps, lost, int(mine.sum())))
    return made


# --- suspects ----------------------------------------------------------------------------------


def _named(elements: Sequence[Element]) -> Element:
    """Return the element that is easiest to check, of elements that no traffic tells apart."""
    return min(elements, key=lambda x: NAMED_FIRST.index(x.kind))


def _suspect(model: Model, index: int, found: Observations) -> Suspect:
    """Return a fault of a model as a suspect, with its evidence."""
    fault, channel = model.faults[index], model.channel
    classes = channel.classes
    members = classes.members[fault.place]
    alike = tuple(classes.elements[m] for m in members)
    if fault.pairs is not None:
        alike = tuple(replace(x, kind="link") if x.links > 1 else x for x in alike)
    rest = without(model, index)
    # The probability of the fault against all alternatives, and its rivals.
    own = model.total() - rest.total() - fault.penalty
    others = hypotheses(rest, max(own, 0.0) - HOPELESS)
    every = [h for h in others if (h.place, h.kind) != (fault.place, fault.kind)]
    every.append(replace(fault, score=own))
    values = np.array([*(h.score for h in every), 0.0])
    weight = np.exp((values - values.max()) / TEMPERATURE)
    here = np.array([*(h.place == fault.place for h in every), False])
    confidence = min(float(weight[here].sum() / weight.sum()), 0.999)
    every.sort(key=lambda h: h.score)
    scores = {h.place: h.score for h in every if h.place != fault.place}
    gain = float(own - max([0.0, *scores.values()]))
    near = sorted((x for x in scores if scores[x] > own - 8.0), key=lambda x: -scores[x])
    rivals = tuple(tuple(classes.elements[m] for m in classes.members[x]) for x in near[:3])
    at, share = model.shares(fault)
    row = classes.row[at]
    frames = 0  # frames that only this fault explains
    if channel.measure != "rate":
        more = (model.p - rest.p) / np.maximum(model.p, 1e-12)
        frames = round(float((channel.k * more)[model.p > rest.p].sum()))
    kind, value, low, high, when = _quantified(model, rest, fault, found)
    through = int(classes.pairs_through[fault.place])
    mine = np.zeros(len(channel.src), np.bool_)
    mine[channel.pair[classes.row[classes.incidences(fault.place)]]] = True
    least = 0.25 * float(np.median(share[share > 0])) if (share > 0).any() else 0.0
    inside = int((mine & _suffering(rest, least)).sum())
    outside = int((_suffering(model, least) & ~mine).sum())
    phases = np.flatnonzero(np.bincount(channel.phase[row[share > 0]])).tolist()
    return Suspect(
        _named(alike), alike, kind, value, low, high, confidence, gain, inside, through,
        len(channel.src) - through - outside, outside, frames,
        tuple(found.phases[p].key for p in phases),
        tuple(sorted({found.phases[p].transport for p in phases})), when, rivals, channel.measure,
    )  # fmt: skip


def _suffering(model: Model, least: float) -> Bools:
    """Return for each pair of ports whether it is impaired more than the model's faults explain."""
    left = model.channel.share() - model.p
    found = np.zeros(len(model.channel.src), np.bool_)
    found[model.channel.pair[(model.excess() > SUFFERS) & (left > least)]] = True
    return found


def _quantified(
    model: Model, rest: Model, fault: PlacedFault, found: Observations
) -> tuple[str, float, float, float, tuple[float, float] | None]:
    """Return a fault's kind, its size with the 95 % interval, and the time when it occurred."""
    channel, classes = model.channel, model.channel.classes
    at, share = model.shares(fault)
    row, value = classes.row[at], fault.value
    kind = fault.kind if channel.measure in ("loss", "rate", "retransmission") else channel.measure
    dead = "dead", nan, nan, nan, None
    if fault.form == "capacity":
        if (share > 0).any() and float(np.median(share[share > 0])) > 0.98:
            return dead
        low, high = interval(rest, fault)
        if channel.measure == "loss":
            # The rate in the window per rate over the whole phase: a queue delivers its last frames
            # after the load has ended. In a short window these are up to a tenth of all frames.
            here = np.unique(row[share > 0])
            by_counts = channel.load_bps[here] * (1 - channel.share()[here])
            in_window = found.delivered_bps[channel.rows[here]]
            value *= min(1.0, float(in_window.sum() / by_counts.sum()))
        return kind, value, min(low, 0.99 * value), max(high, 1.01 * value), None
    if channel.measure == "rate":  # closed loads lose no frames, so that the rate is a capacity
        if value > 0.95:
            return dead
        left = 1 - (1 - np.clip(channel.share()[row], 0, 1)) / np.maximum(1 - rest.p[row], 1e-9)
        by_phase = np.bincount(channel.phase[row], channel.load_bps[row] * (1 - left), model.phases)
        some = by_phase[np.unique(channel.phase[row])]
        return "capacity", float(np.median(some)), float(some.min()), float(some.max()), None
    if fault.size_above is not None:
        sizes = channel.size[classes.row[classes.incidences(fault.place)]]
        above = float(sizes[sizes > fault.size_above].min())
        return "size", fault.size_above, fault.size_above, above, None
    when = _when(found, channel.rows[row])
    if kind == "intermittent" or (when is not None and kind in ("loss", "burst")):
        return "intermittent", nan, nan, nan, when
    if kind == "loss" and value > 0.98:
        return dead
    return kind, value, *interval(rest, fault), None


def _when(found: Observations, rows: Ints) -> tuple[float, float] | None:
    """Return the time span with the losses of the rows; None if losses occur all the time."""
    spans = found.intervals
    keep = np.isin(spans.row, rows)
    if keep.sum() < 4:
        return None
    begin, end, share = spans.from_s[keep], spans.to_s[keep], spans.share[keep]
    starts = np.unique(begin)
    mean = np.array([share[begin == s].mean() for s in starts])
    usual = float(np.quantile(mean, 0.8))
    bad = mean < 0.9 * usual
    lost = np.maximum(usual - mean, 0)
    if not bad.any() or bad.mean() > 0.6 or lost[bad].sum() < 0.8 * lost.sum():
        return None
    return float(starts[bad].min()), float(end[np.isin(begin, starts[bad])].max())


# --- several channels --------------------------------------------------------------------------


def _worth(one: Suspect) -> bool:
    """Return whether a suspect is certain enough, and is not mere congestion by TCP or RDMA."""
    if one.confidence < LEAST_CONFIDENCE or not one.suffering:
        return False
    kind = one.element.kind
    by_chance = kind in ("link", "pair") or one.kind == "intermittent"
    hashed = (kind, one.kind) == ("trunk", "capacity") and one.element.links > 1
    least = LEAST_GAIN * (2 if one.measure == "rate" else 1)  # rates at all loads correlate
    least *= 0.5 if hashed else 1.0
    if (by_chance or hashed) and one.when is None and one.gain < least:
        return False
    if one.measure == "retransmission":
        return one.value >= LEAST_SENT_AGAIN * (4 if kind == "link" else 1)
    if one.measure == "rate" and one.kind == "capacity":
        few = one.suffering < 2 < one.through
        return not few and not one.value > NEARLY_LINE * one.element.line_bps
    return True


def _rides_on_another(one: Suspect, every: Sequence[Suspect], paths: Paths) -> bool:
    """Return whether a suspect is a pair of ports whose losses have another or a common cause."""
    if one.element.kind != "pair":
        return False
    same = [x for x in every if (x.element.kind, x.measure) == ("pair", one.measure)]
    ends = (list(paths.ports).index(port) for port in one.element.name.split(" -> "))
    _, members = paths.of_pairs(*(np.array([end]) for end in ends))
    on_way = {paths.elements[m].name for m in members.tolist()}
    others = {x.name for other in every if other is not one for x in other.alike}
    return len(same) > MOST_PAIRS or not on_way.isdisjoint(others)


def _waits_for_reverse(one: Suspect, every: Sequence[Suspect]) -> bool:
    """Return whether TCP or RDMA is slow only because the other direction is slower still.

    Acknowledgements cross the other direction of the element, and wait there.
    """
    same = [x for x in every if (x.kind, x.measure) == ("capacity", "rate")]
    lacking = one.element.line_bps - one.value
    return one in same and any(
        other.element.name == one.element.name
        and other.element.direction != one.element.direction
        and lacking < MILDER * (other.element.line_bps - other.value)
        for other in same
    )


def _joined(one: Suspect, other: Suspect) -> Suspect:
    """Merge two suspects that are the same fault; keep the description of the first."""
    a, b = one, other
    if a.measure == b.measure and b.frames > a.frames:
        a, b = b, a
    sent_again = (one.measure, other.measure) == ("rate", "retransmission")
    if sent_again and a.kind != "dead" and b.kind == "loss":
        a, b = b, a
    common = {(x.name, x.direction) for x in b.alike}
    alike = tuple(x for x in a.alike if (x.name, x.direction) in common)
    return replace(
        a,
        element=_named(alike),
        alike=alike,
        confidence=1 - (1 - a.confidence) * (1 - b.confidence),
        gain=a.gain + b.gain,
        frames=a.frames + b.frames,
        phases=tuple(dict.fromkeys([*a.phases, *b.phases])),
        transports=tuple(sorted({*a.transports, *b.transports})),
        rivals=one.rivals + other.rivals,
        measure=one.measure,
    )


# --- the smallest test that tells suspects apart, or loads what was never loaded -----------------


def next_test(
    found: Observations, paths: Paths, suspects: Sequence[Suspect], untested: Sequence[Element]
) -> NextTest | None:
    """Return the smallest test that tells suspects apart or loads untested elements, or None.

    None: no test is needed, or none would help.
    """
    if not len(found) or not paths.elements:
        return None
    # Prefer a transport that can lose frames, and the highest load.
    facts = max(found.phases, key=lambda x: (x.open_loop, np.nan_to_num(x.load)))
    transport, load = facts.transport, float(facts.load) if facts.load == facts.load else 0.95
    # Ordered pairs of ports within a network: all, or a part if there are many.
    ports = len(paths.ports)
    step = max(1, ports * ports // PAIRS_TRIED)
    if step > 1:
        step += 1 - step % 2  # an odd step, so that both sources and destinations vary
    src, dst = np.divmod(np.arange(0, ports * ports, step), ports)
    keep = src != dst
    if paths.networks:
        networks = np.unique(np.array(paths.networks), return_inverse=True)[1]
        keep &= networks[src] == networks[dst]
    src, dst = src[keep], dst[keep]
    pair, members = paths.of_pairs(src, dst)
    number = {element: index for index, element in enumerate(paths.elements)}

    def named(chosen: Sequence[int]) -> tuple[tuple[str, str], ...]:
        ends = ((paths.ports[int(src[x])], paths.ports[int(dst[x])]) for x in chosen)
        return tuple(dict.fromkeys(ends))

    swap = ""
    for suspect in suspects:
        groups = [(x,) for x in suspect.alike] + [*suspect.rivals]
        known = [[number[x] for x in group if x in number] for group in groups]
        known = [group for group in known if group]
        uses = np.zeros((len(known), len(src)), np.bool_)
        for index, group in enumerate(known):
            uses[index, pair[np.isin(members, group)]] = True
        if chosen := _splitting(uses):
            why = f"decides whether {_listed([group[0] for group in groups])} is at fault"
            return NextTest(named(chosen), load, transport, why)
        if not swap and len(suspect.alike) > 1 and len(known) > 1:
            swap = (
                f"no traffic tells {_listed(suspect.alike)} apart: swap the cable of "
                f"{suspect.element.name} and run again"
            )
    if swap:
        return NextTest((), load, transport, swap)
    # A few pairs that together pass all untested elements.
    chosen, left = [], {number[x] for x in untested if x in number}
    while left and len(chosen) < FLOWS_NAMED:
        count = np.bincount(pair[np.isin(members, list(left))], minlength=len(src))
        best = int(np.argmax(count))
        if not count[best]:
            break
        left -= set(members[pair == best].tolist())
        chosen.append(best)
    why = f"loads {_listed(untested)}"
    return NextTest(named(chosen), load, transport, why) if chosen else None


def _listed(elements: Sequence[Element]) -> str:
    names = [element_words(x) for x in elements]
    if len(names) > 4:
        names[4:] = [f"{len(names) - 4} more"]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _splitting(uses: Bools) -> list[int]:
    """Return a few pairs of ports that tell alternatives apart: each passes only some of them.

    The list is empty if no pair tells alternatives apart.

    uses: true where a pair (column) passes an alternative (row).
    """
    chosen: list[int] = []
    open_groups = [np.arange(len(uses))]
    while open_groups and len(chosen) < FLOWS_NAMED:
        group = open_groups.pop()
        inside = uses[group].sum(axis=0)
        balance = np.minimum(inside, len(group) - inside)
        best = int(np.argmax(balance))
        if balance[best] == 0:
            continue
        chosen.append(best)
        parts = (group[uses[group, best]], group[~uses[group, best]])
        open_groups += [part for part in parts if len(part) > 1]
    return chosen
