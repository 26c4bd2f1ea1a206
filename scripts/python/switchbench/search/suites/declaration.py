# SPDX-License-Identifier: BSD-3-Clause
"""Declaration of a standard test suite: a table of subtests with flows, trials, formulas, columns.

A declaration has no I/O and no control flow: analysis/suite.py measures every subtest of every
suite in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from ...base.measures import MORE, NUMBER
from ..loads import LoadRange, ProposedTrial, SearchGoal, SearchMethod, SearchResult

PREAMBLE_BYTES = 8  # preamble 7, start delimiter 1 (IEEE 802.3)
OVERHEAD_BYTES = PREAMBLE_BYTES + 12  # with the interframe gap

LINE_RATE_PERCENT = 99.98  # RFC 8239, 1.3
# ratio of offered to received rate above which a port is overloaded; windows differ by less
MORE_OFFERED = 1.01
# Max lost frames per late frame of a stream: if senders stall, a lab's switch stalls too, and up to
# 1.33 lost frames per late frame were measured.
LATE_MARGIN = 1.5
# A trial at no less than this part of a load shows the number of late frames that cause no loss at
# the load.
HARDLY_LOWER = 0.99
EXACT_FRAMES = 1  # permitted late frames of a burst's sender: results are exact to one frame

Row = dict[str, Any]
Rows = list[Row]
Flow = tuple[int, int]  # source and destination, as port numbers


def _parameter(
    default: float,
    about: str,
    least: float = 0.001,  # seconds; 1 ms is the min of each window, 30 days the max
    most: float = 2_592_000.0,
    whole: bool = False,
) -> Any:
    """Declare a suite's parameter: default, limits, and text for doc/reference/standards.md."""
    limits = {"min": least, "max": most, "whole": whole}
    return field(default=default, metadata={"about": about, **limits})


@dataclass(frozen=True)
class SuiteParameters:
    """Parameters of standard test suites, such as the length of a trial in seconds.

    Each suite has the values of its document, and shorter values for a lab. A configuration sets
    parameters by name below `suite_parameters`.
    """

    trial_s: float = _parameter(60.0, "length of a trial")  # RFC 2544, 24; RFC 2889: 30
    initial_s: float = _parameter(1.0, "length of the first trials of a search")
    duration_sum_s: float = _parameter(21.0, "total length of the trials at one load")  # FD.io CSIT
    ndr_loss_percent: float = _parameter(0.0, "loss in a trial that NDR allows", 0, 50)
    pdr_loss_percent: float = _parameter(0.5, "loss in a trial that PDR allows", 0, 50)
    exceed_percent: float = _parameter(50.0, "share of duration_sum_s that may lose more", 0, 99)
    width: float = _parameter(0.005, "(upper - lower) / upper that ends a search", 1e-6, 0.5)
    latency_s: float = _parameter(120.0, "length of a latency trial")  # RFC 2544, 26.2
    latency_repeats: float = _parameter(20, "latency trials", 1, 10_000, True)
    loss_step_percent: float = _parameter(10.0, "step between loads", 0.01, 10.0)  # RFC 2544, 26.3
    burst_s: float = _parameter(2.0, "length of the longest burst")  # RFC 9004: 30
    microburst_s: float = _parameter(2.0, "length of the longest microburst")  # RFC 8239, 4
    # RFC 8239, 3.2
    oversubscription_percent: float = _parameter(1.0, "load of an extra port", 0.1, 100.0)
    burst_repeats: float = _parameter(50, "searches for a burst", 1, 10_000, True)  # RFC 2544, 26.4
    incast_s: float = _parameter(0.005, "length of the UDP burst")  # RFC 8239, 6
    drain_s: float = _parameter(2.0, "drain time of a trial")  # RFC 2544, 23; RFC 9004, 6.2
    repeats: float = _parameter(3, "trials or iterations in other subtests", 1, 10_000, True)
    recovery_s: float = _parameter(60.0, "time at half of the overload")  # RFC 2544, 26.5
    reset_s: float = _parameter(60.0, "length of a trial in which the device is reset")
    addresses_max: float = _parameter(65536, "size of the largest address table", 2, 1 << 24, True)
    learning_fps: float = _parameter(1000.0, "rate of learning frames, frames/s", 1, 1e9, True)
    learning_addresses: float = _parameter(300, "addresses in a trial of the learning rate")
    learning_fps_max: float = _parameter(100_000.0, "highest learning rate, frames/s")
    learning_width: float = _parameter(0.02, "`width` of the search for the learning rate")
    ageing_s: float = _parameter(300.0, "ageing time of the device's addresses")


@dataclass(frozen=True)
class SuitePoint:
    """Setting on which a subtest's formulas depend: frame size, line rate, loads and ports."""

    size: int  # bytes of a frame, with FCS
    line_bps: float  # of the slowest port, layer 1; 0: unknown
    loads: LoadRange  # range up to the highest load
    frame_max: int = 1518  # largest frame that all ports support, bytes
    flows: tuple[Flow, ...] = ()
    ports: tuple[str, ...] = ()  # port names, by number
    parameters: SuiteParameters = field(default_factory=SuiteParameters)

    @property
    def max_fps(self) -> float | None:
        """Return the theoretical max rate of a port in frames/s.

        None if the port's line rate is unknown.
        """
        return self.line_bps / (8 * (self.size + OVERHEAD_BYTES)) if self.line_bps else None

    @property
    def sources(self) -> int:
        """Return the number of ports that send."""
        return len({source for source, _ in self.flows})

    def receivers(self, *, congested: bool) -> list[str]:
        """Return the congested or the uncongested receiving ports, in groups of four ports."""
        flows_of = Counter(source for source, _ in self.flows)
        full = {destination for source, destination in self.flows if flows_of[source] == 1}
        every = {destination for _, destination in self.flows}
        return [self.ports[port] for port in sorted(full if congested else every - full)]

    def fps(self, percent: float | None) -> float | None:
        """Return a port's frames/s at a load in percent of line rate; None where unknown."""
        if percent is None or self.max_fps is None:
            return None
        return percent / 100 * self.max_fps


@dataclass(frozen=True)
class PortFacts:
    """Frames for one port in a trial: offered, lost, and their rates."""

    offered: int  # frames sent to the port
    lost: int
    delivered_fps: float | None  # within the window
    offered_fps: float | None = None  # rate of its senders, within their windows

    @property
    def loss_percent(self) -> float:
        """Return the lost percentage of offered frames; 0 where none was offered."""
        return 100.0 * self.lost / self.offered if self.offered else 0.0


@dataclass(frozen=True)
class TrialFacts:
    """Counts and rates of a trial, over all ports; None where not measured."""

    offered: int = 0
    lost: int = 0
    flooded: int = 0
    tester_limited: bool = True
    # min over ports of offered load / intended load
    offered_part: float = 1.0
    offered_fps: float | None = None  # within the window
    delivered_fps: float | None = None
    goodput: float | None = None  # of byte streams, Mbit/s of payload
    latency_us: Mapping[str, float | None] = field(default_factory=dict)  # one way: min, mean, ...
    rtt_us: Mapping[str, float | None] = field(default_factory=dict)  # round trip of probes
    ports: Mapping[str, PortFacts] = field(default_factory=dict)
    late_frames: int = 0  # max over senders of frames that were sent too late
    late_total: int = 0  # late frames of all senders together
    learned_late: bool = False  # addresses were announced at a lower rate than intended
    last_gap_s: float | None = None  # for a falling load: send time of the frame after the last gap
    # Max over flows of the time from the last received to the last sent frame.
    silent_s: float | None = None
    duration_s: float = 0.0

    @property
    def loss_percent(self) -> float | None:
        """Return the loss in percent, (in - out) x 100 / in (RFC 2544, 26.3).

        None without frames.
        """
        return 100.0 * self.lost / self.offered if self.offered else None


Earlier = Mapping[str, Row]  # result of each earlier subtest at the same size
MethodOf = Callable[[SuitePoint, Earlier], SearchMethod | str]


@dataclass(frozen=True)
class SubtestTrials:
    """Trials of a subtest at one setting, and the results of the subtest's search."""

    point: SuitePoint
    earlier: Earlier
    results: Sequence[SearchResult]  # results of the search method
    trials: Sequence[tuple[ProposedTrial, TrialFacts]]  # not tester-limited

    @property
    def facts(self) -> list[TrialFacts]:
        """Return the counts and rates of each trial, in order."""
        return [facts for _, facts in self.trials]


@dataclass(frozen=True)
class Value:
    """Column of a subtest's table; `suite.key` is its name in a clause."""

    key: str
    title: str
    unit: str
    definition: str
    format: str = NUMBER
    better: int = MORE
    of_setting: bool = False  # true: an input of the test, not a result


@dataclass(frozen=True)
class Variant:
    """Traffic matrix of a subtest for a number of ports."""

    name: str
    flows: tuple[Flow, ...]
    extra: int = 0  # number of last flows, which at a low load oversubscribe a port
    stateful: tuple[int, ...] = ()  # ports that send by TCP at the max rate, to one receiver


class Excluded(str):
    """Reason why a standard excludes a setting, so that no result is expected there."""


@dataclass(frozen=True)
class Subtest:
    """Test of a standard document: flows, search method, formulas and table columns."""

    name: str
    section: str
    title: str
    about: str
    # function from a number of ports to traffic matrices; None: any pattern
    variants: Callable[[int], Iterator[Variant]] | None
    method: MethodOf  # function that returns a search method, or why there is none
    rows: Callable[[SubtestTrials], Row | Rows]  # values of columns; None: missing
    values: tuple[Value, ...]
    # quantity that the subtest's trials vary: load, overload, burst, addresses, rate, size
    quantity: str = "load"
    # goals of a search of loads, by name
    goals: Callable[[SuiteParameters], Mapping[str, SearchGoal]] | None = None
    resets: bool = False  # true if trials of the subtest reset the device
    by_name: bool = False  # true if the subtest runs only when the user names it
    ports_min: int = 2
    ports_step: int = 1  # the number of ports is a multiple of this
    bad: Callable[[TrialFacts], int] = lambda facts: facts.lost  # frames that make a trial fail
    burst_percent: Callable[[SuitePoint], float] = lambda point: 100.0  # load of bursts
    # Function from the searched value to a burst's frames, at a port with the whole load.
    burst_frames: Callable[[SuitePoint, float], int] = lambda point, value: round(value)
    # Function that returns a sentence if the trials give no result, else an empty text.
    no_result: Callable[[SubtestTrials], str] = lambda measured: ""
    range: Callable[[SuitePoint], LoadRange] = lambda setting: setting.loads  # of the varied values
    # Function that returns the row for an assumed result; a later search begins there.
    near: Callable[[SuitePoint, float], Row] | None = None
    needs: tuple[str, ...] = ()  # subtests that must be measured before
    keys: Mapping[str, Any] = field(default_factory=dict)  # configuration keys that it sets
    # options of raw-frame transports
    frame_options: Mapping[str, Any] = field(default_factory=dict)

    def is_unclear(
        self, point: SuitePoint, facts: TrialFacts, most: Mapping[str, float], harmless: int = -1
    ) -> bool:
        """Return whether a trial is void because late frames may have decided its result.

        Senders send late frames at line rate. A burst at line rate cannot catch up: buffers drain
        while its sender stalls, so that a trial without loss proves nothing. In all other trials,
        all late frames may be lost, because they are sent back to back. There are two exceptions:
        a port was offered more than it ever received, or as many late frames caused no loss at a
        slightly lower load. `most` has each port's max received rate in frames/s. `harmless` is the
        max number of late frames in a trial without loss at a slightly lower load.
        """
        if self.quantity == "rate" and facts.learned_late:
            return True
        if self.quantity == "load" and facts.late_total <= harmless:
            return False
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
        """Return true if some ports send by TCP while others send frames."""
        return self.variants is not None and any(
            variant.stateful for variant in self.variants(self.ports_min)
        )

    @property
    def needs_raw(self) -> bool:
        """Return whether only a transport of raw frames can send the traffic."""
        return bool(self.frame_options) or self.quantity in ("overload", "size")


@dataclass(frozen=True)
class Statement:
    """Requirement of a document's reporting section, and its place in the report."""

    section: str
    word: str  # MUST or SHOULD
    asks: str
    where: str


@dataclass(frozen=True)
class Suite:
    """Standard test suite: its tests in the order in which they run."""

    name: str
    document: str
    title: str
    subtests: tuple[Subtest, ...]
    sizes: tuple[int, ...]
    parameters: SuiteParameters  # values that the document sets
    lab: SuiteParameters  # shorter values for a lab
    uses: tuple[str, ...]  # names of the parameters that the suite uses
    statements: tuple[Statement, ...]
    deviations: tuple[str, ...]
    # Reason why a subtest cannot run here, by name of the subtest: a missing kind of port, ...
    refused: Mapping[str, str] = field(default_factory=dict)
    lab_sizes: tuple[int, ...] = ()  # fewer sizes for a lab; empty: all
    load_percent: float | None = 100.0  # None: the load of the profile

    @property
    def is_free(self) -> bool:
        """Return true if the user, not the suite, chooses the traffic."""
        return all(each.variants is None for each in self.subtests)

    def subtest(self, name: str | None) -> Subtest:
        """Return the subtest of the given name; for None, the suite's only subtest.

        KeyError for an unknown name.
        """
        by_name = {each.name: each for each in self.subtests}
        return by_name[name or self.subtests[0].name]


# --- flows ----------------------------------------------------------------------------------------
# Flows of the documents' tests, by port numbers; all flows of a variant send at the same time.


def both_ways(ports: int) -> Iterator[Variant]:
    """Yield pairs of neighbouring ports, in both directions (RFC 2544, 14)."""
    yield Variant("pairs", tuple((port, port ^ 1) for port in range(ports - ports % 2)))


def one_way_pairs(ports: int) -> Iterator[Variant]:
    """Yield one-way flows between neighbouring ports, lower to higher (RFC 2889, 5.6.3.1)."""
    yield Variant("one-way pairs", tuple((port, port + 1) for port in range(0, ports - 1, 2)))


def pairs_and_mesh(ports: int) -> Iterator[Variant]:
    """Yield port pairs, then a full mesh (RFC 8239, 2.2)."""
    yield from both_ways(ports)
    yield from full_mesh(ports)


def many_to_one(ports: int) -> Iterator[Variant]:
    """Yield flows from all other ports to the first port."""
    yield Variant("many to one", tuple((port, 0) for port in range(1, ports)))


def one_to_one(_ports: int) -> Iterator[Variant]:
    """Yield a flow from the test port to the learning port; other ports listen (RFC 2889, 5.7)."""
    yield Variant("one to one", ((0, 1),))


def one_to_all(ports: int) -> Iterator[Variant]:
    """Yield flows from the first port to all others (RFC 2889, 5.10)."""
    yield Variant("one to all", tuple((0, port) for port in range(1, ports)))


def full_mesh(ports: int) -> Iterator[Variant]:
    """Yield flows from every port to all others, in the order of RFC 2889, 5.1.3."""
    flows = ((port, (port + step) % ports) for port in range(ports) for step in range(1, ports))
    yield Variant("full mesh", tuple(flows))


def one_to_many(ports: int) -> Iterator[Variant]:
    """Yield flows to one port, from one port, and both together (RFC 2889, 5.2)."""
    to_one = tuple((port, 0) for port in range(1, ports))
    from_one = tuple((0, port) for port in range(1, ports))
    yield Variant("many to one", to_one)
    yield Variant("one to many", from_one)
    yield Variant("both directions", to_one + from_one)


def halves(ports: int) -> Iterator[Variant]:
    """Yield flows between the halves of the ports, one way and both ways (RFC 2889, 5.4)."""
    half = ports // 2
    forward = tuple(_across(range(half), range(half, 2 * half)))
    yield Variant("one direction", forward)
    yield Variant("both directions", forward + tuple(_across(range(half, 2 * half), range(half))))


def across_uplink(ports: int) -> Iterator[Variant]:
    """Yield flows between two devices' ports, without local traffic (RFC 2889, 5.3)."""
    _, both = halves(ports)
    yield Variant("uplink", both.flows)


def groups_of_four(ports: int) -> Iterator[Variant]:
    """Yield groups of four ports with one congested receiver (RFC 2889, 5.5.3).

    The first source sends to both receivers, the second to the congested one.
    """
    groups = range(0, ports - ports % 4, 4)
    yield Variant(
        "groups of four", tuple(flow for first in groups for flow in _group(first, ports))
    )


def shifted_groups(ports: int) -> Iterator[Variant]:
    """Yield two groups of four ports, then all groups, each shifted port by port (RFC 8239, 5.2).

    With all groups, a first port's traffic is split across four egress ports. The text does not
    name these; here they are the ports of its own group and of the next.
    """
    for shift in range(ports):
        groups = (_group((shift + first) % ports, ports) for first in (0, 4))
        yield Variant(f"two groups, port {shift + 1} first", tuple(chain(*groups)))
    for shift in range(ports):
        every = [_group((shift + 4 * each) % ports, ports) for each in range(ports // 4)]
        split = (
            (own[0][0], destination)
            for own, other in zip(every, every[1:] + every[:1], strict=True)
            for _, destination in other[:2]
        )
        yield Variant(f"all groups, port {shift + 1} first", (*chain(*every), *split))


def to_fewer(ports: int) -> Iterator[Variant]:
    """Yield flows from N - 1 ports to one, from N - 2 to two, ... (RFC 8239, 4.2)."""
    for receivers in range(1, ports - 1):
        senders = ports - receivers
        flows = _across(range(senders), range(senders, ports))
        yield Variant(f"{senders} to {receivers}", tuple(flows))


def to_each(ports: int) -> Iterator[Variant]:
    """Yield flows from all other ports to one port, for each port in turn (RFC 8239, 3.2)."""
    for port in range(ports):
        flows = tuple((other, port) for other in range(ports) if other != port)
        yield Variant(f"to port {port + 1}", flows)


def incast(ports: int) -> Iterator[Variant]:
    """Yield flows to the last port from several TCP ports and one UDP port (RFC 8239, 6.2).

    The number of TCP ports is 1 to N - 2. Variants with one TCP port and several UDP ports follow.
    """
    more = [(stateful, 1) for stateful in range(1, ports - 1)]
    for stateful, stateless in more + [(1, stateless) for stateless in range(2, ports - 1)]:
        senders = stateful + stateless
        yield Variant(
            f"{_numbers(0, stateful)} TCP, {_numbers(stateful, senders)} UDP, to port {ports}",
            tuple((port, ports - 1) for port in range(senders)),
            stateful=tuple(range(stateful)),
        )


def _numbers(first: int, end: int) -> str:
    """Return a range of port indices as text with numbers from 1: `ports 1 to 3` for 0, 3."""
    return f"port {end}" if end == first + 1 else f"ports {first + 1} to {end}"


def first_ports(_ports: int) -> Iterator[Variant]:
    """Yield flows to port 2: port 1 at line rate, port 3 at 1 % (RFC 8239, 3, procedure 1)."""
    yield _oversubscribed([(0, 1)], [(2, 1)])


def each_port(ports: int) -> Iterator[Variant]:
    """Yield flows from two ports to the port between them, for each three ports in a row.

    RFC 8239, 3, procedure 2.
    """
    for first in range(ports - 2):
        yield _oversubscribed([(first, first + 1)], [(first + 2, first + 1)])


def port_pairs(ports: int) -> Iterator[Variant]:
    """Yield port pairs at line rate, two of which the last two ports oversubscribe.

    RFC 8239, 3, procedure 3.
    """
    [pairs] = one_way_pairs(ports - 2)
    for (_, one), (_, two) in pairwise(pairs.flows):
        yield _oversubscribed(pairs.flows, [(ports - 2, one), (ports - 1, two)])


def _oversubscribed(full: Sequence[Flow], extra: Sequence[Flow]) -> Variant:
    egress = " and ".join(str(destination + 1) for _, destination in extra)
    return Variant(f"to port {egress}", (*full, *extra), extra=len(extra))


def extra_share(parameters: SuiteParameters) -> float:
    """Return the load of a port that oversubscribes another as a share of line rate (0 to 1)."""
    return parameters.oversubscription_percent / LINE_RATE_PERCENT


def _across(sources: range, destinations: range) -> Iterator[Flow]:
    """Yield flows from every source to every destination, in rotated order for each source."""
    for number, source in enumerate(sources):
        for step in range(len(destinations)):
            yield source, destinations[(number + step) % len(destinations)]


def _group(first: int, ports: int) -> tuple[Flow, ...]:
    one, two, uncongested, congested = ((first + place) % ports for place in range(4))
    return (one, uncongested), (one, congested), (two, congested)
