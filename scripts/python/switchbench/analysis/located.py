# SPDX-License-Identifier: BSD-3-Clause
"""Location of faults in the network, and all other findings of a run.

Tables, screens, report and clauses take their texts from this one list (doc/reference/measures.md,
"Location" and "Findings").

One inference over all flows and their paths finds the suspects (`location`). Beside the suspects
are losses of hosts and of other traffic, losses above line rate, and counts that no element
explains.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..base import format, transports
from ..base.measures import MEASURES
from ..base.model import SCHEDULE, Run, Site, Trial
from ..records.record_forms import Record
from ..records.summary_form import (
    SEVERITIES,
    ClauseEntry,
    Entry,
    FindingEntry,
    LocationEntry,
    PhaseEntry,
    filled,
)
from . import measures as m
from .location.facts import Element, Oversubscription, Paths, Suspect
from .location.inference import locate
from .location.observed import ObservationTable
from .location.wired import paths_of

MOST_FLOWS = 100  # findings of one kind
MOST_UNTESTED = 100
NOISE = 0.01  # share of lost frames that suspects may leave unexplained by chance
UNITS = {"capacity": ("Mbit/s", 1e-6), "size": ("bytes", 1.0)}
NO_SIZE = ("dead", "intermittent")
TIMES = ("s", "us", "s/GB")  # units of measures that no suspect explains
WARNINGS = ("duplication", "reordering")  # kinds of suspects that are only warnings
CAUSES = {
    "sender_host": "{count} of its flows never left its host",
    "receiver_host": "{count} for it were dropped in its host",
    "other_traffic": "{count} for it were lost while frames of other senders took its line",
    "late_sender": "{count} for it may have found a full queue, as senders fell behind and sent at "
    "once what was due",
}
ODD_FLOWS = {  # unit of the count, and sentence, by kind
    "unfinished": ("byte", "{count} of its transfer had not come when nothing moved any more"),
    "forged": ("frame", "{count} with numbers that their sender can't have reached: not counted"),
}


@dataclass(frozen=True)
class _Odd:
    """Count of one kind for a flow in one phase, or for a port."""

    kind: str
    ends: tuple[str, ...]
    count: int
    entry: PhaseEntry

    def finding(self, count: int, said: str) -> FindingEntry:
        """Return the finding of this count, or of several like it added up."""
        entry, ends = self.entry, ("src", "dst") if len(self.ends) == 2 else ("port",)
        return _finding(
            self.kind, "error", count,
            f"{' -> '.join(self.ends)}: {said}, in {m.phase_label(entry)}",
            **{name: entry[name] for name in ("transport", "trial", "phase")},
            **dict(zip(ends, self.ends, strict=True)),
        )  # fmt: skip


class Locator:
    """Collector of the summary's `location` and `findings`, phase by phase."""

    def __init__(self, run: Run) -> None:
        """Set up the collector for a run that has no results yet."""
        self._site = run.site
        lab = run.site.lab is not None
        self.observed = ObservationTable([port.name for port in run.site.ports], lab)
        self._odd: list[_Odd] = []
        self._made: tuple[LocationEntry, list[FindingEntry]] | None = None

    def add(self, result: m.PhaseResult, trial: Trial) -> None:
        """Add one measured phase.

        Losses that a suite's search provokes (bursts, addresses beyond a table) are no faults.
        """
        self._made = None
        self._odd += _odd_flows(result)
        searched = trial.search is not None and (
            trial.traffic != "stream" or "addresses" in trial.options
        )
        if trial.traffic != SCHEDULE and not searched:
            self._odd += (
                _Odd("misdelivered", (port,), frames, result.entry)
                for port, frames in self.observed.add(result, trial).items()
            )

    def forget_clean(self) -> None:
        """Drop the data that a continuing run can do without."""
        self.observed.forget_clean()

    def unreachable(self, record: Record, trial: Trial) -> None:
        """Record a pair whose probes did not all arrive."""
        self._made = None
        self.observed.unreachable(record, trial)

    def location(self) -> LocationEntry:
        """Return the summary's `location`."""
        return self._make()[0]

    def findings(self) -> list[FindingEntry]:
        """Return the findings, errors first."""
        return self._make()[1]

    def suspects_by_port(self) -> dict[str, str]:
        """Return the fault that each port is suspected of, the most certain of several."""
        suspects = reversed(self.location()["suspects"])
        return {port: one["brief"] for one in suspects for port in one["ports"]}

    def explain(self, clauses: Sequence[ClauseEntry]) -> None:
        """Set the reason of each failed clause on the network to a suspect.

        The suspect is at a port of the clause's worst value, or else the most certain one.
        """
        suspects = self.location()["suspects"]
        for clause in clauses:
            measure = MEASURES.get(clause["measure"])
            if clause["verdict"] != "FAIL" or clause["reason"] or not suspects:
                continue
            if measure is not None and measure.unit not in TIMES:
                at = clause.get("at")
                ends = {at["src"], at["dst"], at["port"]} if at else set()
                one = next((one for one in suspects if ends & {*one["ports"]}), suspects[0])
                clause["reason"] = f"suspect: {one['brief']}"

    def paths(self) -> Paths:
        """Return the paths of the site's ports."""
        return paths_of(self._site, self.observed.lines)

    def _make(self) -> tuple[LocationEntry, list[FindingEntry]]:
        if self._made is None:
            with np.errstate(all="ignore"):
                self._made = self._locate()
        return self._made

    def _locate(self) -> tuple[LocationEntry, list[FindingEntry]]:
        observations, paths = self.observed.observations(), self.paths()
        found = locate(observations, paths)
        test = found.next_test
        lost = float(np.nansum(observations.lost))
        explained = sum(one.frames for one in found.suspects)
        explained += sum(one.frames for one in found.expected)
        left = lost  # all losses, however small
        if explained:
            left = min(found.unexplained, lost - explained)
            left = left if left > NOISE * lost else 0.0
        location: LocationEntry = {
            "paths": paths.source,
            "phases": len(observations.phases),
            "limited_phases": sum(bool(facts.tester_limited) for facts in observations.phases),
            "suspects": [_suspect(one, self._site) for one in found.suspects],
            "hosts": [
                {"port": port, "cause": cause, "frames": count,
                 "phases": self.observed.host_phases[port, cause]}
                for (port, cause), count in self.observed.host_frames.most_common()
            ],
            "expected": list(_expected(found.expected, self._site)),
            "unexplained_frames": round(max(left, 0.0)),
            "untested": [filled("ElementEntry", one) for one in found.untested[:MOST_UNTESTED]],
            "next_test": test and filled(
                "NextTestEntry", test, flows=[[*pair] for pair in test.flows], load=100 * test.load
            ),
            "problems": list(dict.fromkeys([*paths.problems, *found.problems])),
        }  # fmt: skip
        said = [
            *map(_of_suspect, location["suspects"]),
            *_of_flows(self._odd),
            *_of_ports(self._odd),
            *_of_unexplained(location),
            *map(_of_host, location["hosts"]),
            *map(_of_expected, location["expected"]),
        ]
        said.sort(key=lambda one: SEVERITIES.index(one["severity"]))
        return location, said


# --- the summary's `location` --------------------------------------------------------------------


def _ports_at(element: Element, site: Site) -> list[str]:
    """Return the ports at which an element is; [] for an element between switches.

    A campaign has one port for each place of a host port, so an element may have several.
    """
    if element.kind == "pair":
        return element.name.split(" -> ")
    at = element.peer or element.name
    names = {"host": element.name, "port": at, "cable": element.name.split(" - ")[0]}
    name = names.get(element.kind)
    return [
        port.name
        for port in site.ports
        if name and name in (port.name, port.tester, f"{port.switch}:{port.switch_port}")
    ]


def _suspect(one: Suspect, site: Site) -> Entry:
    unit, scale = UNITS.get(one.kind, ("%", 100.0))
    sizes = [
        None if one.kind in NO_SIZE or math.isnan(size) else size * scale
        for size in (one.value, one.low, one.high)
    ]
    first = min(one.phases, default=None)
    return filled(
        "SuspectEntry",
        one,
        element=filled("ElementEntry", one.element),
        alike=[filled("ElementEntry", other) for other in one.alike],
        ports=_ports_at(one.element, site),
        **dict(zip(("value", "low", "high"), sizes, strict=True)),
        unit="" if sizes[0] is None else unit,
        phases=len(one.phases),
        trial=first and first.trial,
        phase=None if first is None or first.phase < 0 else first.phase,
        transports=list(one.transports),
        **dict(zip(("from_s", "to_s"), one.when or (None, None), strict=True)),
        brief=one.brief(),
        evidence=one.evidence(),
        sentence=one.sentence(),
    )


def _expected(found: Sequence[Oversubscription], site: Site) -> Iterator[Entry]:
    """Yield each element that was offered more than its line rate, over all phases."""
    together: defaultdict[tuple[Element, str], list[Oversubscription]] = defaultdict(list)
    for one in found:
        if one.frames:
            together[one.element, one.transport].append(one)
    for (element, transport), some in together.items():
        yield {
            "element": filled("ElementEntry", element),
            "ports": _ports_at(element, site),
            "transport": transport,
            "offered_mbps": max(one.offered_bps for one in some) / m.MEGA,
            "line_mbps": element.line_bps / m.MEGA,
            "frames": sum(one.frames for one in some),
            "phases": len(some),
        }


# --- the summary's `findings` --------------------------------------------------------------------


def _finding(kind: str, severity: str, count: int, sentence: str, **more: object) -> FindingEntry:
    at = {"kind": kind, "severity": severity, "count": count, "sentence": sentence}
    return filled("FindingEntry", more, at, {"transport": ""})


def _of_suspect(one: Entry) -> FindingEntry:
    severity: str = "warning" if one["kind"] in WARNINGS else "error"
    names = ("src", "dst") if one["element"]["kind"] == "pair" else ("port",)
    ports = dict(zip(names, one["ports"], strict=False))
    return _finding(
        one["kind"], severity, one["frames"], one["sentence"], trial=one["trial"],
        transport=next(iter(one["transports"]), ""), phase=one["phase"], **ports,
        element=one["element"]["name"],
    )  # fmt: skip


def _of_flows(odd: Sequence[_Odd]) -> Iterator[FindingEntry]:
    """Yield a finding for each flow, the greatest counts first; the flows left share one."""
    ranked = sorted(odd, key=lambda one: -one.count)
    for kind, (noun, words) in ODD_FLOWS.items():
        some = [one for one in ranked if one.kind == kind]
        for one in some[:MOST_FLOWS]:
            yield one.finding(one.count, words.format(count=format.of(one.count, noun)))
        rest = sum(one.count for one in some[MOST_FLOWS:])
        if rest:
            said = words.format(count=format.of(rest, noun))
            yield _finding(kind, "error", rest, f"{len(some) - MOST_FLOWS} more flows: {said}")


def _of_ports(odd: Sequence[_Odd]) -> Iterator[FindingEntry]:
    """Yield a finding for each port that received another port's frames of unknown flows."""
    first: dict[str, _Odd] = {}
    frames = Counter[str]()
    for one in odd:
        if one.kind == "misdelivered":
            first.setdefault(one.ends[0], one)
            frames[one.ends[0]] += one.count
    for port, count in frames.most_common():
        words = f"{format.of(count, 'frame')} arrived that are another port's"
        yield first[port].finding(count, words)


def _of_unexplained(location: LocationEntry) -> Iterator[FindingEntry]:
    count = location["unexplained_frames"]
    if count:
        beside = " beside the suspects" if location["suspects"] else ""
        lost = f"{format.of(count, 'frame')} lost{beside}"
        yield _finding("unexplained", "warning", count, f"{lost}: no element explains them")


def _of_host(one: Entry) -> FindingEntry:
    said = CAUSES[one["cause"]].format(count=format.of(one["frames"], "lost frame"))
    where = f"in {format.of(one['phases'], 'phase')}"
    sentence = f"{one['port']}: {said}, {where}: no fault of the network"
    return _finding("host", "warning", one["frames"], sentence, port=one["port"])


def _of_expected(one: Entry) -> FindingEntry:
    name = " ".join((one["element"]["name"], one["element"]["direction"])).rstrip()
    rates = [format.bit_rate(m.MEGA * one[key]) for key in ("offered_mbps", "line_mbps")]
    sentence = (
        f"{name}: up to {rates[0]} offered to a line of {rates[1]}, "
        f"{format.of(one['frames'], 'frame')} lost as expected"
    )
    port = one["ports"][0] if len(one["ports"]) == 1 else None
    return _finding(
        "oversubscribed", "info", one["frames"], sentence, transport=one["transport"], port=port,
        element=one["element"]["name"],
    )  # fmt: skip


# --- counts of flows that need no location -------------------------------------------------------


def _odd_flows(result: m.PhaseResult) -> Iterator[_Odd]:
    """Yield flows with impossible sequence numbers, and transfers that were cut off."""
    flows, entry = result.flows, result.entry
    if transports.of(entry["transport"]).frames:
        kind, counts = "forged", m.or_zero(flows["forged"])
    # an undrained transfer; the window is not its time
    elif entry["traffic"] == "transfer" and entry["drained"] is False:
        sent, came = (m.or_zero(flows[f"{end}_payload_bytes"]) for end in ("sent", "received"))
        kind, counts = "unfinished", np.where(flows.whole, sent - came, 0.0)
    else:
        return
    for flow in np.flatnonzero(counts > 0).tolist():
        yield _Odd(kind, flows.pairs[flow], int(counts[flow]), entry)
