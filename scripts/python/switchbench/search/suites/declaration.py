# SPDX-License-Identifier: BSD-3-Clause
"""What a suite is: a table of subtests, each with its flows, its trials, its formulas, its columns.

A declaration holds no I/O and no order of its own: analysis/suite.py measures every subtest of
every suite in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from ...base.measures import MORE, NUMBER
from ..loads import LoadRange, ProposedTrial, SearchGoal, SearchMethod

PREAMBLE_BYTES = 8  # preamble 7, start delimiter 1 (IEEE 802.3)
OVERHEAD_BYTES = PREAMBLE_BYTES + 12  # and the gap

LINE_RATE_PERCENT = 99.98  # RFC 8239, 1.3
MORE_OFFERED = 1.01  # than a port received: windows of senders and receivers differ by less
# Lost frames of streams per late one: what holds up senders holds up a lab's switch, too (1.33 were
# seen).
LATE_MARGIN = 1.5
EXACT_FRAMES = 1  # by which the sender of a burst may be late: results are exact to one frame

Row = dict[str, Any]
Rows = list[Row]
Flow = tuple[int, int]  # source and destination, numbers of ports


def _parameter(
    default: float,
    about: str,
    least: float = 0.001,  # seconds: 1 ms, as of each window, to 30 days
    most: float = 2_592_000.0,
    whole: bool = False,
) -> Any:
    """Return a parameter with its limits, and what it is in doc/reference/standards.md."""
    limits = {"min": least, "max": most, "whole": whole}
    return field(default=default, metadata={"about": about, **limits})


@dataclass(frozen=True)
class SuiteParameters:
    """What the documents set, and a lab's profile shortens. Times in seconds.

    A configuration changes them by name below `suite_parameters`.
    """

    trial_s: float = _parameter(60.0, "a trial")  # RFC 2544, 24; RFC 2889: 30
    initial_s: float = _parameter(1.0, "a search's first trials")
    duration_sum_s: float = _parameter(21.0, "trials of a load together")  # FD.io CSIT
    ndr_loss_percent: float = _parameter(0.0, "loss that NDR allows a trial", 0, 50)
    pdr_loss_percent: float = _parameter(0.5, "loss that PDR allows a trial", 0, 50)
    exceed_percent: float = _parameter(50.0, "of duration_sum_s, trials that may lose more", 0, 99)
    width: float = _parameter(0.005, "(upper - lower) / upper that ends a search", 1e-6, 0.5)
    latency_s: float = _parameter(120.0, "a trial of latency")  # RFC 2544, 26.2
    latency_repeats: float = _parameter(20, "trials of latency", 1, 10_000, True)
    loss_step_percent: float = _parameter(10.0, "from load to load", 0.01, 10.0)  # RFC 2544, 26.3
    burst_s: float = _parameter(2.0, "the longest burst tried")  # RFC 9004: 30
    microburst_s: float = _parameter(2.0, "the same of microbursts")  # RFC 8239, 4
    oversubscription_percent: float = _parameter(
        1.0, "what an extra port sends", 0.1, 100.0
    )  # RFC 8239, 3.2
    burst_repeats: float = _parameter(50, "searches of a burst", 1, 10_000, True)  # RFC 2544, 26.4
    incast_s: float = _parameter(0.005, "the burst by UDP")  # RFC 8239, 6
    drain_s: float = _parameter(2.0, "the drain of a trial")  # RFC 2544, 23; RFC 9004, 6.2
    repeats: float = _parameter(3, "trials or iterations of other subtests", 1, 10_000, True)
    recovery_s: float = _parameter(60.0, "at half of the overload")  # RFC 2544, 26.5
    reset_s: float = _parameter(60.0, "a trial in which the device is reset")
    addresses_max: float = _parameter(65536, "the largest table tried", 2, 1 << 24, True)
    learning_fps: float = _parameter(1000.0, "learning frames/s", 1, 1e9, True)
    learning_addresses: float = _parameter(300, "addresses of a trial of the learning rate")
    learning_fps_max: float = _parameter(100_000.0, "the highest learning rate tried")
    learning_width: float = _parameter(0.02, "`width` of that search")
    ageing_s: float = _parameter(300.0, "after which the device forgets an address")


@dataclass(frozen=True)
class SuitePoint:
    """A point of a subtest, with what its formulas need besides the trials."""

    size: int  # of a frame with FCS, bytes
    line_bps: float  # of the slowest port, layer 1; 0: unknown
    loads: LoadRange  # up to the highest load
    frame_max: int = 1518  # of the smallest port, bytes
    flows: tuple[Flow, ...] = ()
    ports: tuple[str, ...] = ()  # their names, by number
    parameters: SuiteParameters = field(default_factory=SuiteParameters)

    @property
    def max_fps(self) -> float | None:
        """The theoretical max of a port, frames/s; None where its line rate is unknown."""
        return self.line_bps / (8 * (self.size + OVERHEAD_BYTES)) if self.line_bps else None

    @property
    def sources(self) -> int:
        """How many ports send."""
        return len({source for source, _ in self.flows})

    def receivers(self, *, congested: bool) -> list[str]:
        """Of groups of four: the ports that a source sends its whole load to, or all others."""
        flows_of = Counter(source for source, _ in self.flows)
        full = {destination for source, destination in self.flows if flows_of[source] == 1}
        every = {destination for _, destination in self.flows}
        return [self.ports[port] for port in sorted(full if congested else every - full)]

    def fps(self, percent: float | None) -> float | None:
        """Frames/s of a port at a load in percent of line rate."""
        if percent is None or self.max_fps is None:
            return None
        return percent / 100 * self.max_fps


@dataclass(frozen=True)
class PortFacts:
    """What came for one port in a trial."""

    offered: int  # frames for it, that their sources sent
    lost: int
    delivered_fps: float | None  # in the window
    offered_fps: float | None = None  # by its sources in theirs

    @property
    def loss_percent(self) -> float:
        """Lost of 100 offered frames; 0 where none was offered."""
        return 100.0 * self.lost / self.offered if self.offered else 0.0


@dataclass(frozen=True)
class TrialFacts:
    """What a trial's senders and receivers said, all ports together; None: not observed."""

    offered: int = 0
    lost: int = 0
    flooded: int = 0
    tester_limited: bool = True
    offered_part: float = 1.0  # of what was intended, of the port that offered the least of it
    offered_fps: float | None = None  # in the window
    delivered_fps: float | None = None
    goodput: float | None = None  # of streams of bytes, Mbit/s of payload
    latency_us: Mapping[str, float | None] = field(default_factory=dict)  # one way: min, mean, ...
    rtt_us: Mapping[str, float | None] = field(default_factory=dict)  # of probes, the same
    ports: Mapping[str, PortFacts] = field(default_factory=dict)
    late_frames: int = 0  # sent at once, too late: of the sender that was late by the most
    late_total: int = 0  # the same of all senders together
    learned_late: bool = False  # addresses were announced at a lower rate than asked for
    last_gap_s: float | None = None  # of a load that falls: when the frame behind it was sent
    # How much earlier than the last frame was sent the last one came, of the worst flow.
    silent_s: float | None = None
    duration_s: float = 0.0

    @property
    def loss_percent(self) -> float | None:
        """RFC 2544, 26.3: (in - out) x 100 / in."""
        return 100.0 * self.lost / self.offered if self.offered else None


Earlier = Mapping[str, Row]  # subtest -> its row at the same size
MethodOf = Callable[[SuitePoint, Earlier], SearchMethod | str]


@dataclass(frozen=True)
class SubtestTrials:
    """A subtest's trials at one point, and what its search says of them."""

    point: SuitePoint
    earlier: Earlier
    result: Any  # the method's
    trials: Sequence[tuple[ProposedTrial, TrialFacts]]  # without those that the tester limited

    @property
    def facts(self) -> list[TrialFacts]:
        """What each trial's ports said, in order."""
        return [facts for _, facts in self.trials]


@dataclass(frozen=True)
class Value:
    """A column of a subtest's table; `suite.key` is its name in a clause."""

    key: str
    title: str
    unit: str
    definition: str
    format: str = NUMBER
    better: int = MORE
    of_setting: bool = False  # an input: nothing to judge


@dataclass(frozen=True)
class Variant:
    """The flows of a subtest on so many ports, where it has several matrices."""

    name: str
    flows: tuple[Flow, ...]
    extra: int = 0  # how many of them, the last ones, oversubscribe the others at a low load
    stateful: tuple[int, ...] = ()  # ports that send by TCP at the max rate, to the one receiver


class Excluded(str):
    """Why a document leaves a point out: nothing is missing there."""


@dataclass(frozen=True)
class Subtest:
    """One test of a document."""

    name: str
    section: str
    title: str
    about: str
    variants: Callable[[int], Iterator[Variant]] | None  # of so many ports; None: any pattern
    method: MethodOf  # or why nothing can be measured
    rows: Callable[[SubtestTrials], Row | Rows]  # of its values, None where there is none
    values: tuple[Value, ...]
    quantity: str = "load"  # what its trials vary: load, overload, burst, addresses, rate, size
    goals: Callable[[SuiteParameters], Mapping[str, SearchGoal]] | None = (
        None  # of a search of loads
    )
    resets: bool = False  # whether its trials reset the device
    by_name: bool = False  # whether it is left out where a user names no subtests
    ports_min: int = 2
    ports_step: int = 1  # so many ports more at a time
    bad: Callable[[TrialFacts], int] = lambda facts: facts.lost  # frames that fail a trial
    burst_percent: Callable[[SuitePoint], float] = lambda point: 100.0  # load of bursts
    # Of a port that has the whole load, by the value.
    burst_frames: Callable[[SuitePoint, float], int] = lambda point, value: round(value)
    # Why its trials do not give a result, one sentence; empty: they do.
    no_result: Callable[[SubtestTrials], str] = lambda measured: ""
    range: Callable[[SuitePoint], LoadRange] = lambda setting: setting.loads  # of those values
    # A row as if so much was found, where a search begins at what those before it found.
    near: Callable[[SuitePoint, float], Row] | None = None
    needs: tuple[str, ...] = ()  # subtests whose results it starts from
    keys: Mapping[str, Any] = field(default_factory=dict)  # of the configuration, that it sets
    frame_options: Mapping[str, Any] = field(default_factory=dict)  # of a transport of raw frames

    def is_unclear(self, point: SuitePoint, facts: TrialFacts, most: Mapping[str, float]) -> bool:
        """Return whether a late sender may be why a trial held, or failed: then it decides nothing.

        What is late leaves at line rate behind that. A burst at line rate can't catch up: buffers
        drain meanwhile, and may have held more than they can, so that no loss says nothing. All
        other senders catch up in clumps, and up to all of these may be what was lost, but where a
        port was offered more than it ever received. `most`: of each port that in frames/s.
        """
        if self.quantity == "rate" and facts.learned_late:
            return True
        if self.quantity != "burst":
            overloaded = any(
                port.lost and (port.offered_fps or 0.0) > MORE_OFFERED * most.get(name, 0.0)
                for name, port in facts.ports.items()
            )
            return 0 < facts.lost <= LATE_MARGIN * facts.late_total and not overloaded
        if facts.late_frames <= EXACT_FRAMES:
            return False
        at_line_rate = self.burst_percent(point) >= LINE_RATE_PERCENT
        return facts.lost == 0 if at_line_rate else facts.lost <= facts.late_total

    @property
    def two_transports(self) -> bool:
        """Whether some ports send by TCP while others send frames."""
        return self.variants is not None and any(
            variant.stateful for variant in self.variants(self.ports_min)
        )

    @property
    def needs_raw(self) -> bool:
        """Whether only a transport of raw frames can send what it needs."""
        return bool(self.frame_options) or self.quantity in ("overload", "size")


@dataclass(frozen=True)
class Statement:
    """What a document's reporting section asks for, and where this report has it."""

    section: str
    word: str  # MUST or SHOULD
    asks: str
    where: str


@dataclass(frozen=True)
class Suite:
    """A standard test suite: its tests in the order in which they run."""

    name: str
    document: str
    title: str
    subtests: tuple[Subtest, ...]
    sizes: tuple[int, ...]
    parameters: SuiteParameters  # as the document has them
    lab: SuiteParameters  # short ones
    uses: tuple[str, ...]  # names of the parameters that change something
    statements: tuple[Statement, ...]
    deviations: tuple[str, ...]
    # Subtest -> why no ordinary port, or nothing here, can do it.
    refused: Mapping[str, str] = field(default_factory=dict)
    lab_sizes: tuple[int, ...] = ()  # fewer, for a lab; none: all
    load_percent: float | None = 100.0  # None: the profile's

    @property
    def is_free(self) -> bool:
        """Whether its user chooses the traffic."""
        return all(each.variants is None for each in self.subtests)

    def subtest(self, name: str | None) -> Subtest:
        """Return the subtest of that name, None: the only one; KeyError where there is none."""
        by_name = {each.name: each for each in self.subtests}
        return by_name[name or self.subtests[0].name]


# --- flows ----------------------------------------------------------------------------------------
# The flows of the documents' tests, by numbers of ports: one phase each, all at the same time.


Variants = Callable[[int], Iterator[Variant]]


def both_ways(ports: int) -> Iterator[Variant]:
    """Pairs of neighbours, both directions (RFC 2544, 14)."""
    yield Variant("pairs", tuple((port, port ^ 1) for port in range(ports - ports % 2)))


def one_way_pairs(ports: int) -> Iterator[Variant]:
    """Yield the first port of each pair of neighbours to the second (RFC 2889, 5.6.3.1)."""
    yield Variant("one-way pairs", tuple((port, port + 1) for port in range(0, ports - 1, 2)))


def pairs_and_mesh(ports: int) -> Iterator[Variant]:
    """RFC 8239, 2.2: port pairs, and a full mesh."""
    yield from both_ways(ports)
    yield from full_mesh(ports)


def many_to_one(ports: int) -> Iterator[Variant]:
    """Yield all ports to the first."""
    yield Variant("many to one", tuple((port, 0) for port in range(1, ports)))


def one_to_one(_ports: int) -> Iterator[Variant]:
    """Yield the test port to the learning port; all others listen (RFC 2889, 5.7)."""
    yield Variant("one to one", ((0, 1),))


def one_to_all(ports: int) -> Iterator[Variant]:
    """Yield one port, whose frames are for all others (RFC 2889, 5.10)."""
    yield Variant("one to all", tuple((0, port) for port in range(1, ports)))


def full_mesh(ports: int) -> Iterator[Variant]:
    """Yield all to all others, in the order of RFC 2889, 5.1.3."""
    flows = ((port, (port + step) % ports) for port in range(ports) for step in range(1, ports))
    yield Variant("full mesh", tuple(flows))


def one_to_many(ports: int) -> Iterator[Variant]:
    """RFC 2889, 5.2: to one, from one, and both."""
    to_one = tuple((port, 0) for port in range(1, ports))
    from_one = tuple((0, port) for port in range(1, ports))
    yield Variant("many to one", to_one)
    yield Variant("one to many", from_one)
    yield Variant("both directions", to_one + from_one)


def halves(ports: int) -> Iterator[Variant]:
    """Half of the ports to the other half, one direction and both (RFC 2889, 5.4)."""
    half = ports // 2
    forward = tuple(_across(range(half), range(half, 2 * half)))
    yield Variant("one direction", forward)
    yield Variant("both directions", forward + tuple(_across(range(half, 2 * half), range(half))))


def across_uplink(ports: int) -> Iterator[Variant]:
    """Yield one device's ports to the other's, without local traffic (RFC 2889, 5.3)."""
    _, both = halves(ports)
    yield Variant("uplink", both.flows)


def groups_of_four(ports: int) -> Iterator[Variant]:
    """RFC 2889, 5.5.3: the first source to both receivers, the second to the congested one."""
    groups = range(0, ports - ports % 4, 4)
    yield Variant(
        "groups of four", tuple(flow for first in groups for flow in _group(first, ports))
    )


def shifted_groups(ports: int) -> Iterator[Variant]:
    """RFC 8239, 5.2: two groups of four, then all, each shifted port by port.

    In all groups the traffic of a first port is split across four egress ports: the text does not
    name them; here they are those of its own group and of the next.
    """
    for shift in range(ports):
        groups = (_group((shift + first) % ports, ports) for first in (0, 4))
        yield Variant(f"two groups, port {shift + 1} first", tuple(chain(*groups)))
    for shift in range(ports):
        every = [_group((shift + 4 * each) % ports, ports) for each in range(ports // 4)]
        following = every[1:] + every[:1]
        split = (
            (own[0][0], destination)
            for own, other in zip(every, following, strict=True)
            for _, destination in other[:2]
        )
        yield Variant(f"all groups, port {shift + 1} first", (*chain(*every), *split))


def to_fewer(ports: int) -> Iterator[Variant]:
    """RFC 8239, 4.2: N - 1 ports to one, N - 2 to two, ... two to N - 2."""
    for receivers in range(1, ports - 1):
        senders = ports - receivers
        flows = _across(range(senders), range(senders, ports))
        yield Variant(f"{senders} to {receivers}", tuple(flows))


def to_each(ports: int) -> Iterator[Variant]:
    """RFC 8239, 3.2: all others to one port, each port in turn."""
    for port in range(ports):
        flows = tuple((other, port) for other in range(ports) if other != port)
        yield Variant(f"to port {port + 1}", flows)


def incast(ports: int) -> Iterator[Variant]:
    """RFC 8239, 6.2: 1 to N - 2 stateful ports and a stateless one, then the reverse, to one."""
    more = [(stateful, 1) for stateful in range(1, ports - 1)]
    for stateful, stateless in more + [(1, stateless) for stateless in range(2, ports - 1)]:
        senders = stateful + stateless
        yield Variant(
            f"{_numbers(0, stateful)} TCP, {_numbers(stateful, senders)} UDP, to port {ports}",
            tuple((port, ports - 1) for port in range(senders)),
            stateful=tuple(range(stateful)),
        )


def _numbers(first: int, end: int) -> str:
    """Return the ports from the one to before the other, for people."""
    return f"port {end}" if end == first + 1 else f"ports {first + 1} to {end}"


def first_ports(_ports: int) -> Iterator[Variant]:
    """Procedure 1: port 1 at line rate and port 3 at 1 % to port 2."""
    yield _oversubscribed([(0, 1)], [(2, 1)])


def each_port(ports: int) -> Iterator[Variant]:
    """Procedure 2: port 2 as in procedure 1, then port 3 with its neighbours, and so on."""
    for first in range(ports - 2):
        yield _oversubscribed([(first, first + 1)], [(first + 2, first + 1)])


def port_pairs(ports: int) -> Iterator[Variant]:
    """Procedure 3: pairs at line rate; the last two ports oversubscribe those of two pairs."""
    [pairs] = one_way_pairs(ports - 2)
    for (_, one), (_, two) in pairwise(pairs.flows):
        yield _oversubscribed(pairs.flows, [(ports - 2, one), (ports - 1, two)])


def _oversubscribed(full: Sequence[Flow], extra: Sequence[Flow]) -> Variant:
    egress = " and ".join(str(destination + 1) for _, destination in extra)
    return Variant(f"to port {egress}", (*full, *extra), extra=len(extra))


def extra_share(parameters: SuiteParameters) -> float:
    """Return what a port that oversubscribes sends of one at line rate (0 to 1)."""
    return parameters.oversubscription_percent / LINE_RATE_PERCENT


def _across(sources: range, destinations: range) -> Iterator[Flow]:
    """Yield every source to every destination, each beginning with another one."""
    for number, source in enumerate(sources):
        for step in range(len(destinations)):
            yield source, destinations[(number + step) % len(destinations)]


def _group(first: int, ports: int) -> tuple[Flow, ...]:
    one, two, uncongested, congested = ((first + place) % ports for place in range(4))
    return (one, uncongested), (one, congested), (two, congested)
