# SPDX-License-Identifier: BSD-3-Clause
"""Result of the location of faults: suspects, expected losses, untested elements, the next test."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base import format
from ...records.rows import PhaseKey
from .facts import Element

# Kind of fault -> what the element does; {value}, {low}, {high} are filled in with units.
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
_RATES = {"loss", "duplication", "reordering", "corruption", "flooding", "wrong-port", "burst"}


def percent(share: float) -> str:
    """Return a share as per cent with at most three digits that count."""
    return f"{100 * share:.3g} %"


def _quantity(kind: str, value: float) -> str:
    if kind in _RATES:
        return percent(value)
    return f"{value:,.0f} B" if kind == "size" else format.bit_rate(value)


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
    """A fault that the observations show, and where it is.

    element: the one named. alike: all elements that cannot be told apart from it (they have the
        same flows), `element` included.
    kind: a key of WORDS.
    value, low, high: size with its 95 % interval: a share of frames (0..1), a capacity in bit/s of
        layer 1, a frame size in bytes; NaN for "dead" and "intermittent".
    confidence: probability that a fault of this kind is in one of `alike`, calibrated.
    gain: log-likelihood ratio over the next explanation; over none where none comes within
        `faults.HOPELESS` of it.
    suffering, through, beside: pairs through the element that suffer, all pairs through it, pairs
        beside it that do not suffer.
    frames: lost (or duplicated, ...) frames that this suspect explains; 0 for closed-loop
        transports.
    phases, transports: where it was observed. when: (from, to) in seconds since the window's start.
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
    when: tuple[float, float] | None = None

    def summary(self) -> str:
        """Return element and fault in a few words: "leaf1:p5 out (towards node5) loses 1.2 %"."""
        sizes = {
            name: _quantity(self.kind, value)
            for name, value in (("value", self.value), ("low", self.low), ("high", self.high))
        }
        when = f", from {self.when[0]:.1f} to {self.when[1]:.1f} s" if self.when else ""
        return f"{element_words(self.element)}: {WORDS[self.kind].format(**sizes)}{when}"

    def brief(self) -> str:
        """Return the same without the interval."""
        words = WORDS[self.kind].replace(" ({low} to {high})", "")
        return (
            f"{element_words(self.element)} {words.format(value=_quantity(self.kind, self.value))}"
        )

    def evidence(self) -> str:
        """Return how many flows suffer through the element and beside it."""
        beside = self.beside + self.beside_suffering
        return (
            f"{self.suffering} of {format.of(self.through, 'flow')} through it suffer, "
            f"{self.beside_suffering} of {beside} beside it"
        )

    def others(self) -> str:
        """Return what cannot be told apart from the element, and what to do; "" where nothing."""
        others = [element_words(x) for x in self.alike if x != self.element]
        if not others:
            return ""
        shown = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
        swap = any(x.kind in ("host", "cable", "port") for x in self.alike)
        advice = ": swap the cable and run again" if swap else ""
        return f"cannot be told apart from {shown}{advice}"

    def sentence(self) -> str:
        """Return the suspect in one plain sentence."""
        return "; ".join(x for x in (self.summary(), self.evidence(), self.others()) if x)


@dataclass(frozen=True)
class Oversubscription:
    """Loss that no network can avoid: an element was asked for more than its line."""

    element: Element
    phase: PhaseKey
    offered_bps: float
    frames: int

    def sentence(self) -> str:
        """Return the oversubscription in one plain sentence."""
        return (
            f"{element_words(self.element)}: {format.bit_rate(self.offered_bps)} offered to a line "
            f"of {format.bit_rate(self.element.line_bps)}: {format.of(self.frames, 'lost frame')} "
            "expected"
        )


@dataclass(frozen=True)
class NextTest:
    """The smallest matrix that would tell suspects apart, or load an untested element.

    flows: pairs of port names, all at once; () where no traffic can decide.
    load: share of the line, 0..1.
    why: a plain sentence: what the test decides, or which cable to swap.
    """

    flows: tuple[tuple[str, str], ...]
    load: float
    transport: str
    why: str

    def entry(self) -> dict[str, Any]:
        """Return the test as an entry of a configuration's `tests`."""
        return {
            "pattern": "flows",
            "flows": [list(pair) for pair in self.flows],
            "transport": self.transport,
            "load": f"{100 * self.load:g}%",
        }

    def command(self, configuration: str) -> str:
        """Return the command that runs the test with a configuration's site; "" without flows."""
        if not self.flows:
            return ""
        tests = shlex.quote(f"tests={json.dumps([self.entry()])}")
        return f"switchbench run {shlex.quote(configuration)} --set {tests}"


@dataclass(frozen=True)
class Location:
    """Where a network breaks.

    suspects: ranked by confidence and frames; () where nothing is wrong.
    expected: losses by oversubscription, no suspects.
    unexplained: lost frames that neither suspects nor oversubscription explain.
    untested: elements never loaded, or only in phases where the tester was the limit.
    next_test: None where nothing is left to decide.
    problems: sentences: counts that contradict each other and were left out, missing paths.
    """

    suspects: tuple[Suspect, ...] = ()
    expected: tuple[Oversubscription, ...] = ()
    unexplained: float = 0.0
    untested: tuple[Element, ...] = ()
    next_test: NextTest | None = None
    problems: tuple[str, ...] = ()
