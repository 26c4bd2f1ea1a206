# SPDX-License-Identifier: BSD-3-Clause
"""Input of the location of faults: flows per phase, and the elements that each pair of ports uses.

Values only: numpy arrays, no records, no files. Ports and elements are numbers; `Paths` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np
from numpy.typing import NDArray

from ...records.rows import PhaseKey

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
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
    line_bps: layer-1 capacity when healthy, of all links together; NaN unknown. A load above it is
        expected to lose (oversubscription) and is no fault.
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

    `locate` itself adds what needs no topology: each pair, and each network as a whole. Paths need
    not name them. Without any topology paths have hosts (send, receive) and the site's groups.

    ports: names by port number.
    networks: network by port number; () where all ports are in one. Pairs are within a network.
    source: where paths come from: "topology file X", "LLDP", "ibnetdiscover", "none".
    problems: sentences: what does not match, which pairs have no path.
    route: function (src numbers, dst numbers) -> (indptr, members): the slice of members from
        indptr[i] to indptr[i + 1] holds the numbers of the elements that pair i passes, in order;
        it is empty where no path is known.
        It is called for pairs without traffic, too (what would a test of this pair load?).
    """

    elements: Sequence[Element]
    ports: Sequence[str]
    route: RouteFunction
    source: str = "none"
    problems: Sequence[str] = ()
    networks: Sequence[str] = ()

    def of_pairs(self, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        """Return the elements of each given pair in compressed rows: (indptr, members)."""
        return self.route(src, dst)


def table_route(ports: int, src: Ints, dst: Ints, indptr: Ints, members: Ints) -> RouteFunction:
    """Return a route that looks pairs up in a table of compressed rows.

    Parameters
    ----------
    ports : number of ports
    src, dst : the table's pairs, in any order, each once
    indptr, members : members[indptr[i]:indptr[i + 1]] are the elements of the table's pair i
    """
    keys = src * ports + dst
    order = np.argsort(keys)
    known = keys[order]
    lengths = np.diff(indptr)

    def route(src: Ints, dst: Ints) -> tuple[Ints, Ints]:
        wanted = src * ports + dst
        if not len(known):
            return np.zeros(len(wanted) + 1, np.int64), np.zeros(0, np.int64)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        row = order[place]
        length = np.where(known[place] == wanted, lengths[row], 0)
        out = np.concatenate([[0], np.cumsum(length)])
        index = np.repeat(indptr[row] - out[:-1], length) + np.arange(out[-1])
        return out, members[index]

    return route


@dataclass(frozen=True)
class PhaseFacts:
    """One phase of one trial in one network.

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


def _floats() -> Floats:
    return np.zeros(0)


def _ints() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Misdelivered:
    """Frames that arrived at a port that is not their destination.

    One row for each flow, phase and port where frames arrived.

    phase, src, dst, at_port, frames: arrays of one length; numbers of phase and ports.
    """

    phase: Ints = field(default_factory=_ints)
    src: Ints = field(default_factory=_ints)
    dst: Ints = field(default_factory=_ints)
    at_port: Ints = field(default_factory=_ints)
    frames: Floats = field(default_factory=_floats)


@dataclass(frozen=True)
class IntervalRows:
    """Delivered rates by time: rows for some flows only (at least those that suffered).

    row: number of the flow's row in `Observations`.
    from_s, to_s: time since the start of the phase's window.
    share: delivered rate in this interval as a share of the flow's intended rate.
    """

    row: Ints = field(default_factory=_ints)
    from_s: Floats = field(default_factory=_floats)
    to_s: Floats = field(default_factory=_floats)
    share: Floats = field(default_factory=_floats)


@dataclass(frozen=True)
class Observations:
    """One row for each flow and phase: arrays of one length; NaN where nothing was observed.

    An array of length 0 (the default of optional ones) is not observed for any row.

    phase: number of the phase in `phases`.
    src, dst: port numbers (`Paths.ports`).
    sent, delivered, lost: frames over the whole trial; `lost` without what the two hosts or foreign
        traffic explain. NaN for closed-loop transports, which have rates and retransmissions only.
    intended_bps, offered_bps, delivered_bps: layer 1, in the window.
    limited: the tester limited this flow: its rate says nothing of a capacity, its loss by sequence
        number stays valid.
    duplicated, reordered, corrupted: frames. retransmitted: segments or packets.
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
    duplicated: Floats = field(default_factory=_floats)
    reordered: Floats = field(default_factory=_floats)
    corrupted: Floats = field(default_factory=_floats)
    retransmitted: Floats = field(default_factory=_floats)
    misdelivered: Misdelivered = field(default_factory=Misdelivered)
    intervals: IntervalRows = field(default_factory=IntervalRows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.phase)
