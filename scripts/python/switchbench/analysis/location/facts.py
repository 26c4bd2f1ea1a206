# SPDX-License-Identifier: BSD-3-Clause
"""Input and result of the location of faults: flows, the elements that they pass, suspects.

Pure values: numpy arrays without records or files. Ports and elements are numbers; `Paths` names
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import format
from ...records.rows import PhaseKey

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]  # int32 for elements of rows, about ten for each row
Bools = NDArray[np.bool_]
PAIRS_AT_ONCE = 1 << 16  # pairs routed at a time: there may be millions
RouteFunction = Callable[[Ints, Ints], tuple[Ints, Ints]]


@dataclass(frozen=True)
class Element:
    """A directed part of the network, or of a host, that can be at fault.

    name: in the site's own words: "node5:e0", "leaf1:p5", "leaf1", "leaf1 - spine2", "network".
    kind: "host", "cable", "port" (of a switch), "module" (a switch), "trunk" (parallel links
        between two modules), "link" (some of a trunk's links), "group" (of hosts, where paths are
        unknown), "pair" (of ports), "network".
    direction: of a host "send" or "receive"; of a switch port "in" or "out", as the switch sees it;
        of a cable, trunk or group "from A to B"; otherwise "".
    peer: port or module at the other end ("node5" for "leaf1:p5"), used in sentences; "" unknown.
    line_bps: layer-1 capacity when healthy, of all links together; NaN unknown. Losses above
        this load are expected (oversubscription) and are no fault.
    links: number of a trunk's parallel links.
    pooled: every frame takes whichever link is free, so that all links carry line_bps together;
        otherwise a flow keeps to one link, by a hash, and several flows may meet on one.
    """

    name: str
    kind: str
    direction: str = ""
    peer: str = ""
    line_bps: float = nan
    links: int = 1
    pooled: bool = False


@dataclass(frozen=True)
class Paths:
    """The elements that the frames of each pair of ports pass.

    `locate` itself adds the elements that need no topology: each pair, and each network as a whole.
    Paths need not name them. Without any topology paths have hosts (send, receive) and the site's
    groups.

    ports: names by port number.
    networks: network by port number; () where all ports are in one. Pairs are within a network.
    source: where paths come from: "topology file X", "LLDP", "ibnetdiscover", "none".
    problems: sentences: what does not match, which pairs have no path.
    route: function (src numbers, dst numbers) -> (pair, members): the elements that the pairs pass,
        ordered by pair and path; pair i is of src[i] and dst[i], and has none where no path is
        known. It is called for pairs without traffic, too (what would a test of this pair load?).
    """

    elements: Sequence[Element]
    ports: Sequence[str]
    route: RouteFunction
    source: str = "none"
    problems: Sequence[str] = ()
    networks: Sequence[str] = ()

    def of_pairs(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """Return the elements that any number of pairs of ports pass, in the form of `route`."""
        begins = range(0, max(len(src), 1), PAIRS_AT_ONCE)
        parts = [
            self.route(src[begin : begin + PAIRS_AT_ONCE], dst[begin : begin + PAIRS_AT_ONCE])
            for begin in begins
        ]
        pair = np.concatenate(
            [begin + pair for begin, (pair, _) in zip(begins, parts, strict=True)]
        )
        return pair, np.concatenate([members for _, members in parts])


@dataclass(frozen=True)
class PhaseFacts:
    """Facts of one phase of one trial in one network.

    label: name for people ("aapc phase 3 at 95 %").
    open_loop: frames may be lost (dpdk, udp); False for tcp and verbs, which retransmit.
    frame_bytes: of layer 2 with checksum; the mean of a mix; NaN for transports over streams.
    load: intended share of the line, 0..1; NaN where loads differ by flow.
    bursts: the load comes in bursts (traffic: burst); fan-in is seen from the flows.
    tester_limited: ports whose host limited this phase.
    """

    key: PhaseKey
    label: str
    transport: str
    open_loop: bool
    frame_bytes: float = nan
    window_s: float = nan
    load: float = nan
    bursts: bool = False
    tester_limited: frozenset[str] = frozenset()


class Misdelivered(NamedTuple):
    """Frames that arrived at a port that is not their destination: arrays of one length.

    One row for each flow, phase and port where frames arrived.

    row: number of the flow's row in `Observations`.
    at_port: number of the port.
    """

    row: Ints = np.zeros(0, np.int64)
    at_port: Ints = np.zeros(0, np.int64)
    frames: Floats = np.zeros(0)


class IntervalRows(NamedTuple):
    """Delivered rates in each interval of time, for flows that lost frames or slowed down.

    row: number of the flow's row in `Observations`.
    from_s, to_s: time since the start of the phase's window.
    share: delivered rate in this interval as a share of the flow's intended rate.
    """

    row: Ints = np.zeros(0, np.int64)
    from_s: Floats = np.zeros(0)
    to_s: Floats = np.zeros(0)
    share: Floats = np.zeros(0)


@dataclass(frozen=True)
class Observations:
    """Observed flows, a row for each flow and phase: arrays of one length, NaN where unknown.

    phase: number of the phase in `phases`.
    src, dst: port numbers (`Paths.ports`).
    sent, delivered, lost: frames over the whole trial; `lost` without the losses that the two
        hosts or foreign traffic explain. NaN for closed-loop transports, which have rates and
        retransmissions only.
    intended_bps, offered_bps, delivered_bps: layer 1, in the window.
    limited: the tester limited this flow: its rate shows no capacity, but its loss by sequence
        number stays valid.
    duplicated, reordered, corrupted: frames.
    retransmitted: segments or packets.
    """

    phases: Sequence[PhaseFacts]
    phase: Ints
    src: Ints
    dst: Ints
    sent: Floats
    delivered: Floats
    lost: Floats
    intended_bps: Floats
    offered_bps: Floats
    delivered_bps: Floats
    limited: Bools
    duplicated: Floats
    reordered: Floats
    corrupted: Floats
    retransmitted: Floats
    misdelivered: Misdelivered = field(default_factory=Misdelivered)
    intervals: IntervalRows = field(default_factory=IntervalRows)

    def __len__(self) -> int:
        """Return the number of rows, one for each flow and phase."""
        return len(self.phase)


# --- the result ----------------------------------------------------------------------------------

# Sentence on an element by kind of fault; {value}, {low}, {high} are replaced with units.
WORDS: Mapping[str, str] = {
    "loss": "loses {value} ({low} to {high}) of frames",
    "capacity": "carries at most {value} ({low} to {high})",
    "size": "loses frames above {value}",
    "dead": "loses all frames",
    "intermittent": "loses frames for a time",
    "duplication": "duplicates {value} ({low} to {high}) of frames",
    "reordering": "reorders {value} ({low} to {high}) of frames",
    "corruption": "corrupts {value} ({low} to {high}) of frames",
    "flooding": "floods {value} ({low} to {high}) of frames to other ports",
    "wrong-port": "sends {value} ({low} to {high}) of frames to a wrong port",
    "burst": "loses {value} ({low} to {high}) of frames in bursts, below its capacity",
}


def _quantity(kind: str, value: float) -> str:
    if kind == "capacity":
        return format.bit_rate(value)
    return f"{value:,.0f} B" if kind == "size" else f"{100 * value:.3g} %"


def element_words(element: Element) -> str:
    """Return an element with its direction: "leaf1:p5 out (towards node5)"."""
    if element.kind == "port":
        preposition = {"in": "from", "out": "towards"}.get(element.direction, "beside")
        peer = f" ({preposition} {element.peer})" if element.peer else ""
        return f"{element.name} {element.direction}{peer}".rstrip()
    if element.kind == "host":
        side = {"send": "transmitter", "receive": "receiver"}.get(element.direction, "")
        return f"{element.name}'s {side}" if side else element.name
    kind = "" if element.kind in ("network", "pair") else f"{element.kind} "
    towards = f" {element.direction}" if element.direction else ""
    return f"{kind}{element.name}{towards}"


@dataclass(frozen=True)
class Suspect:
    """Fault that the observations show, with its place.

    element: the suspected element.
    alike: all elements that cannot be told apart from `element` (they have the same flows),
        `element` included.
    kind: a key of WORDS.
    value, low, high: size with its 95 % interval: a share of frames (0..1), a capacity in bit/s of
        layer 1, a frame size in bytes; NaN for "dead" and "intermittent".
    confidence: probability that a fault of this kind is in one of `alike`, calibrated.
    gain: log-likelihood ratio over the next explanation, or over no fault if no explanation comes
        within `faults.HOPELESS`.
    suffering, through, beside: pairs through the element that suffer, all pairs through it, pairs
        beside it that do not suffer.
    frames: lost (or duplicated, ...) frames that the suspect explains; 0 for closed-loop
        transports.
    phases, transports: where the fault was observed.
    when: (from, to) in seconds since the window's start.
    rivals: elements of other explanations nearly as good.
    measure: measure of the channel.
    """

    element: Element
    alike: tuple[Element, ...]
    kind: str
    value: float
    low: float
    high: float
    confidence: float
    gain: float
    suffering: int
    through: int
    beside: int
    beside_suffering: int
    frames: int
    phases: tuple[PhaseKey, ...]
    transports: tuple[str, ...]
    when: tuple[float, float] | None
    rivals: tuple[tuple[Element, ...], ...]
    measure: str

    def brief(self) -> str:
        """Return element and fault in a few words: "leaf1:p5 out (towards node5) loses 1.2 %"."""
        words = WORDS[self.kind].replace(" ({low} to {high})", "")
        return (
            f"{element_words(self.element)} {words.format(value=_quantity(self.kind, self.value))}"
        )

    def evidence(self) -> str:
        """Return a text: how many flows through the element, and on other paths, are impaired."""
        beside = self.beside + self.beside_suffering
        return (
            f"{self.suffering} of {format.of(self.through, 'flow')} through it suffer, "
            f"{self.beside_suffering} of {beside} beside it"
        )

    def sentence(self) -> str:
        """Return the suspect in one sentence, with its interval and evidence."""
        sizes = {
            name: _quantity(self.kind, value)
            for name, value in (("value", self.value), ("low", self.low), ("high", self.high))
        }
        when = f", from {self.when[0]:.1f} to {self.when[1]:.1f} s" if self.when else ""
        fault = f"{element_words(self.element)}: {WORDS[self.kind].format(**sizes)}{when}"
        words = [fault, self.evidence()]
        others = [element_words(x) for x in self.alike if x != self.element]
        if others:
            more = f" and {len(others) - 4} more" if len(others) > 4 else ""
            swap = any(x.kind in ("host", "cable", "port") for x in self.alike)
            advice = ": swap the cable and run again" if swap else ""
            words.append(f"cannot be told apart from {', '.join(others[:4])}{more}{advice}")
        return "; ".join(words)


@dataclass(frozen=True)
class Oversubscription:
    """Loss that no network can avoid: an element was offered more than its line rate.

    offered_bps: greatest load of a phase.
    frames, phases: lost frames in total, and the number of phases that lost some.
    """

    element: Element
    transport: str
    offered_bps: float
    frames: int
    phases: int


@dataclass(frozen=True)
class NextTest:
    """Smallest traffic matrix that would tell suspects apart, or load an untested element.

    flows: pairs of port names, all at once; () if no traffic can decide.
    load: share of the line, 0..1.
    why: a sentence: what the test decides, or which cable to swap.
    """

    flows: tuple[tuple[str, str], ...]
    load: float
    transport: str
    why: str


@dataclass(frozen=True)
class Location:
    """Result of the location of faults.

    suspects: ranked by confidence and frames; () if there is no fault.
    expected: losses by oversubscription, which are no suspects.
    unexplained: lost frames that neither suspects nor oversubscription explain.
    untested: elements never loaded, or only in phases in which the tester was the limit.
    next_test: None if there is nothing left to decide.
    problems: sentences on counts that contradict each other and were left out, and on missing
        paths.
    """

    suspects: tuple[Suspect, ...] = ()
    expected: tuple[Oversubscription, ...] = ()
    unexplained: float = 0.0
    untested: tuple[Element, ...] = ()
    next_test: NextTest | None = None
    problems: tuple[str, ...] = ()
