# SPDX-License-Identifier: BSD-3-Clause
"""What stands first, in at most nine lines.

Result, rate, faults, loss, round trip, tester and findings. Made of the summary, for the terminal
and for the page.

Phases that the tester limited say nothing of the network, and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from ..analysis.judge import counts_words
from ..base import format, transports
from ..base.model import WAITING
from ..base.transports import Way
from ..records.document.summary import SummaryDocument
from ..records.document.trials import PhaseEntry, TimesEntry
from .findings import ERROR, INFO, counts, findings, ppm

NOTHING_JUDGED = 4  # the exit status

_TRAFFIC_PERCENT = 0.1  # of line: below it a port waited for others, as ranks of collectives do
_AT_LOAD = 0.97
MOST_FAULTS = 3
SURE = 0.995  # confidence that needs no word
ALIKE = 0.03  # ports that differ by less from the median port of their phases are alike,
SPREAD = 0.05  # where all loads were
_GOOD, _DOUBT, _BAD = "green", "yellow", "bold red"
_OF_RESULT = {"PASS": _GOOD, "FAIL": _BAD, "INCONCLUSIVE": _DOUBT}
# Drivers of DPDK over the kernel's devices, and RDMA devices of the kernel's own making.
KERNEL_DRIVERS = ("af_packet", "af_xdp", "pcap", "tap", "rdma_rxe")


@dataclass(frozen=True)
class Line:
    """A label, what is said of it, and how it is to be taken: a style of rich, or none.

    The report has a tile of each: `value` in large letters, and `said` below.
    """

    label: str
    value: str
    said: str
    style: str | None = None
    between: str | None = ", "  # None: `said` alone is the line

    @property
    def text(self) -> str:
        """Both on one line."""
        if self.between is None:
            return self.said
        return f"{self.value}{self.between if self.said else ''}{self.said}"

    def fitted(self, width: int) -> str:
        """Return the text in so many columns: its last parts go first, for an ellipsis."""
        if len(self.text) <= width:
            return self.text
        kept = self.text.split("; ")
        while len(kept) > 1 and len("; ".join(kept)) > width - 3:
            kept.pop()
        shown = "; ".join(kept)
        return f"{shown}; …" if len(shown) <= width - 3 else f"{shown[: width - 1]}…"


def lines(summary: SummaryDocument) -> list[Line]:
    """Return the first screen; what was not measured has no line."""
    fair = [entry for entry in summary["trials"] if not entry["tester_limited"]]
    found: tuple[Line | None, ...] = (
        _result(summary),
        _rate(fair),
        *_faults(summary),
        _ports(summary),
        _lost(summary),
        _round_trips(fair),
        _tester(summary),
        _findings(summary),
    )
    return [line for line in found if line is not None]


def named(summary: Mapping[str, Any]) -> SummaryDocument:
    """Return the summary with transports as people are shown them, `dpdk (af_packet)`.

    A driver of the kernel's bypasses nothing.
    """
    drivers: dict[str, set[str]] = {}
    for port in summary["ports"]:
        driver = (port["driver"] or port["transport"]).removeprefix("net_")
        if driver != port["transport"] and "(" not in port["transport"]:  # which has it already
            drivers.setdefault(port["transport"], set()).add(driver)
    names = {name: f"{name} ({', '.join(sorted(some))})" for name, some in drivers.items()}

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(one) for one in value]
        if not isinstance(value, dict):
            return value
        made = {key: renamed(one) if isinstance(one, dict | list) else one
                for key, one in value.items()}  # fmt: skip
        for key in ("transport", "baseline"):
            if isinstance(made.get(key), str):
                made[key] = names.get(made[key], made[key])
        return made

    return cast("SummaryDocument", renamed(summary) if names else summary)


def bypasses(transport: str) -> bool:
    """Return whether a transport, named with its driver, goes past the kernel."""
    name, _, drivers = transport.rstrip(")").partition(" (")
    if transports.of(name).way in (Way.KERNEL, Way.PACKET):
        return False
    return not any(driver in KERNEL_DRIVERS for driver in drivers.split(", "))


def frames_per_s(entry: Mapping[str, Any]) -> float | None:
    """Frames of all flows in the window: its payload, by what one frame carries."""
    total = entry["throughput"].get("total")
    if not entry.get("delivered_frames") or not entry.get("delivered_bytes") or total is None:
        return None
    return float(1e6 * total / 8 / (entry["delivered_bytes"] / entry["delivered_frames"]))


def _result(summary: SummaryDocument) -> Line:
    trials, ports = len(summary["plans"]), len({port["port"] for port in summary["ports"]})
    ran = (
        f"{format.of(trials, 'trial')} on {format.of(ports, 'port')}, {summary['status']} in "
        f"{format.seconds(summary['run'].get('elapsed_s'))}"
    )
    verdict = summary.get("verdict")
    if not verdict:
        if summary["exit_status"] == NOTHING_JUDGED:
            return Line("Result", "INCONCLUSIVE", f"nothing could be judged; {ran}", _DOUBT, ": ")
        style = None if summary["status"] == "complete" else _BAD
        return Line("Result", "no clause required", ran, style, "; ")
    word = verdict["verdict"]
    said = counts_words(verdict["failed"], verdict["inconclusive"], verdict["passed"])
    return Line("Result", word, f"{said}; {ran}", _OF_RESULT[word], ": ")


def _rate(fair: Sequence[PhaseEntry]) -> Line | None:
    """Return the highest aggregate of one phase; frames where they are counted."""
    rates = [(total, e) for e in fair if (total := e["throughput"]["total"]) is not None]
    if not rates:
        return None
    total, best = max(rates, key=lambda rate: rate[0])
    what = f"{format.pattern(best)}, {best['transport']}"
    frames = frames_per_s(best)
    said = f"{frames:,.0f} frames/s " if frames else ""
    return Line("Max rate", format.bit_rate(1e6 * total), f"{said}({what})", None,
                ", " if said else " ")  # fmt: skip


def _faults(summary: SummaryDocument) -> list[Line]:
    """Return the most certain suspects."""
    suspects = summary["location"]["suspects"]
    left = len(suspects) - MOST_FAULTS
    found = []
    for number, one in enumerate(suspects[:MOST_FAULTS], start=1):
        more = [f"{left} more (switchbench locate)"] if number == MOST_FAULTS and left > 0 else []
        unsure = [] if one["confidence"] >= SURE else [f"{100 * one['confidence']:.0f} % sure"]
        flows = format.of(one["through"], "flow")
        beside = one["beside"] + one["beside_suffering"]
        others = [f"{one['beside_suffering']:,} of {beside:,} beside"] if beside else []
        said = "; ".join([f"{one['suffering']:,} of {flows}", *others, *unsure, *more])
        found.append(Line("Fault", one["brief"], said, _BAD, "; "))
    return found


def _ports(summary: SummaryDocument) -> Line | None:
    """Return how alike ports are where no fault is located; whether anything could be judged."""
    found = summary["location"]
    if found["suspects"]:
        return None
    if found["phases"] and found["limited_phases"] == found["phases"]:
        phases = format.of(found["phases"], "phase")
        said = f"the tester was the limit in {found['limited_phases']} of {phases}"
        return Line("Ports", "not judged", said, _DOUBT, ": ")
    if summary.get("suite"):  # whose trials have any load
        return None
    shares: dict[str, list[float]] = {}
    alike = True
    for port in summary["ports"]:
        end = port["as_destination"]
        share, relative = end["median_percent_of_line"], end["relative_to_median"]
        if share is not None and share >= _TRAFFIC_PERCENT:
            shares.setdefault(port["transport"], []).append(share)
            alike &= relative is None or abs(relative - 1.0) <= ALIKE
    if not shares:
        return None
    alike &= all(min(some) >= (1.0 - SPREAD) * max(some) for some in shares.values())
    several = len(shares) > 1
    said = "; ".join(
        f"{min(some):.1f} to {max(some):.1f} % of line{f' over {name}' if several else ''}"
        for name, some in shares.items()
    )
    return Line("Ports", "alike" if alike else "no fault located", said, None,
                ": " if alike else "; ")  # fmt: skip


def _lost(summary: SummaryDocument) -> Line | None:
    """Return the line `Lost`: lost frames, and those of them that no line had room for.

    Beside it what TCP and RDMA retransmitted, and ping-pong messages that did not come back.
    """
    trials = summary["trials"]
    expected = sum(one["frames"] for one in summary["location"]["expected"])
    counted = [(lost, e) for e in trials if (lost := e["lost_frames"]) is not None]
    again = (
        (sum(entry["retransmitted_segments"] or 0 for entry in trials), "segment"),
        (sum(entry["retransmitted_packets"] or 0 for entry in trials), "packet"),
    )
    repaired = [f"{format.of(count, noun)} retransmitted" for count, noun in again if count]
    trips = [entry["latency"]["round_trip"] for entry in trials if entry["traffic"] == "pingpong"]
    unanswered = sum(trip["lost"] or 0 for trip in trips if trip)
    if unanswered:
        repaired.append(f"{format.of(unanswered, 'message')} of ping-pongs did not come back")
    if not counted:
        style = _DOUBT if unanswered else None
        return Line("Lost", repaired[0], "; ".join(repaired[1:]), style) if repaired else None
    lost = sum(lost for lost, _ in counted)
    offered = sum(entry["offered_frames"] or 0 for _, entry in counted)
    hosts = sum(entry["host_dropped_frames"] or 0 for _, entry in counted)
    share = f", {ppm(lost, offered)}" if offered else ""
    more = [f"{expected:,} expected (oversubscribed)"] if expected else []
    said = "; ".join([f"of {offered:,} frames{share}", *more, f"{hosts:,} in hosts", *repaired])
    # A suite loses frames on purpose.
    doubtful = (lost > expected or unanswered > 0) and not summary.get("suite")
    return Line("Lost", f"{lost:,}", said, _DOUBT if doubtful else None, " ")


def _round_trips(fair: Sequence[PhaseEntry]) -> Line | None:
    """Return by transport the middle one of the phases' medians, and the longest p99.

    Where too few were measured for one, the longest time, which p99 does not exceed.
    """
    trips: dict[str, list[TimesEntry]] = {}
    for entry in fair:
        trip = entry["latency"]["round_trip"]
        if trip and trip["p50"] is not None:
            trips.setdefault(entry["transport"], []).append(trip)
    said, middle = [], []
    for transport, some in trips.items():
        typical = median(trip["p50"] or 0.0 for trip in some)
        sign, most = "", max(trip["p99"] or 0.0 for trip in some)
        if not most:
            sign, most = "≤", max(trip["max"] or 0.0 for trip in some)
        said.append(f"{transport} {format.digits(typical)}/{sign}{format.digits(most)}")
        middle.append(typical)
    if not said:
        return None
    fastest = f"{format.digits(min(middle))} µs"
    return Line("RTT p50/p99", fastest, f"{'; '.join(said)} µs", between=None)


def _tester(summary: SummaryDocument) -> Line:
    """Return how far the tester itself was the limit."""
    trials = summary["trials"]
    limited = [entry for entry in trials if entry["tester_limited"]]
    again = summary["run"].get("remeasured_phases", 0)
    also = [f"{format.of(again, 'phase')} measured again"] if again else []
    if not limited:
        return Line("Tester", "not the limit", "; ".join(["in any phase", *also]), between=" ")
    short = [
        percent
        for entry in limited
        for limit in entry["tester_limited"]
        if (percent := limit["shortfall_percent"])
    ]
    many = f"{len(limited)} of {format.of(len(trials), 'phase')}"
    said = "tester-limited (T)"
    said += f", load up to {max(short):.1f} % below intended" if short else ""
    return Line("Tester", many, "; ".join([said, *also]), _DOUBT, " ")


def _findings(summary: SummaryDocument) -> Line:
    found = findings(summary)
    if not found:
        return Line("Findings", "none", "")
    severities = {one.severity for one in found}
    style = _BAD if ERROR in severities else None if severities == {INFO} else _DOUBT
    return Line("Findings", counts(found), "", style)


@dataclass(frozen=True)
class AtLoad:
    """Ports that receive what they are to.

    Within 3 % of the load asked, which is all of the line where nothing else is asked.
    """

    every: int  # in every phase, over each transport
    median: int  # in the median phase
    ports: int


def ports_at_load(summary: SummaryDocument) -> AtLoad | None:
    """None where ports wait for each other, as those of ranks in dependent steps do."""
    asked: dict[str, list[float]] = {}
    for plan in summary["plans"]:
        if plan["traffic"] not in WAITING and plan["throughput"]["percent_of_line"] is not None:
            asked.setdefault(plan["transport"], []).append(plan["intended_load"] or 100.0)
    shares: dict[str, list[tuple[bool, bool]]] = {}
    for port in summary["ports"]:
        end = port["as_destination"]
        low, middle = end["min_percent_of_line"], end["median_percent_of_line"]
        if low is not None and middle is not None and port["transport"] in asked:
            load = _AT_LOAD * median(asked[port["transport"]])
            shares.setdefault(port["port"], []).append((low >= load, middle >= load))
    if not shares:
        return None
    every, typical = (sum(all(one[i] for one in some) for some in shares.values()) for i in (0, 1))
    return AtLoad(every, typical, len(shares))
