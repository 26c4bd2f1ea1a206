# SPDX-License-Identifier: BSD-3-Clause
"""What stands first, in at most eight lines: result, rate, worst port, loss, round trip, tester,
findings. Made of the summary, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..base import format
from ..base.model import WAITING

Summary = Mapping[str, Any]
Entry = Mapping[str, Any]

_TRAFFIC_PERCENT = 0.1  # of line: below it a port waited for others, as ranks of collectives do
_AT_LOAD = 0.97
_WORDS = {"accepted": "PASS", "refused": "FAIL", "inconclusive": "INCONCLUSIVE"}
_GOOD, _DOUBT, _BAD = "green", "yellow", "bold red"
_OF_RESULT = {"PASS": _GOOD, "FAIL": _BAD, "INCONCLUSIVE": _DOUBT}


@dataclass(frozen=True)
class Line:
    """A label, what is said of it, and how it is to be taken: a style of rich, or none.

    The report has a tile of each: `value` in large letters, and `said` below.
    """

    label: str
    text: str
    style: str | None = None
    value: str = ""
    said: str = ""


def lines(summary: Summary) -> list[Line]:
    """The first screen; what was not measured has no line."""
    found = (
        _result(summary),
        _rate(summary),
        _worst_port(summary),
        _lost(summary),
        *_round_trips(summary),
        _tester(summary),
        _findings(summary),
    )
    return [line for line in found if line is not None]


def transport_name(summary: Summary, transport: str) -> str:
    """`dpdk (af_packet)`: a driver of the kernel's is no kernel bypass."""
    ports = (port for port in summary.get("ports") or [] if port["transport"] == transport)
    drivers = {str(port["driver"]).removeprefix("net_") for port in ports if port.get("driver")}
    drivers.discard(transport)
    return f"{transport} ({', '.join(sorted(drivers))})" if drivers else transport


def frames_per_s(entry: Entry) -> float | None:
    """Frames of all flows in the window: its payload, by what one frame carries."""
    total = entry["throughput"].get("total")
    if not entry.get("delivered_frames") or not entry.get("delivered_bytes") or total is None:
        return None
    return float(1e6 * total / 8 / (entry["delivered_bytes"] / entry["delivered_frames"]))


def _result(summary: Summary) -> Line:
    trials, ports = len(summary["plans"]), len({port["port"] for port in summary["ports"]})
    ran = (
        f"{format.of(trials, 'trial')} on {format.of(ports, 'port')}, {summary['status']} in "
        f"{format.seconds(summary['run']['elapsed_s'])}"
    )
    verdict = summary.get("verdict")
    if not verdict:
        style = None if summary["status"] == "complete" else _BAD
        return Line("Result", f"nothing is required (no clauses); {ran}", style, "", ran)
    word = _WORDS[verdict["verdict"]]
    clauses = summary["expectations"]
    held = sum(clause["verdict"] == "accepted" for clause in clauses)
    return Line(
        "Result", f"{word}: {held} of {format.of(len(clauses), 'clause')} met; {ran}",
        _OF_RESULT[word], word, ran,
    )  # fmt: skip


def _rate(summary: Summary) -> Line | None:
    """The highest aggregate of one phase; frames where they are counted."""
    entries = [e for e in summary["trials"] if e["throughput"].get("total") is not None]
    if not entries:
        return None
    best = max(entries, key=lambda entry: float(entry["throughput"]["total"]))
    rate = format.bit_rate(1e6 * best["throughput"]["total"])
    said = f"of payload in total at most ({_what(summary, best)})"
    frames = [fps for entry in entries if (fps := frames_per_s(entry)) is not None]
    if frames:
        said += f"; {max(frames):,.0f} frames/s at most"
    return Line("Rate", f"{rate} {said}", None, rate, said)


def _worst_port(summary: Summary) -> Line | None:
    ends = [
        (end["min_percent_of_line"], port, word)
        for port in summary["ports"]
        for end, word in ((port["as_source"], "sent"), (port["as_destination"], "received"))
        if (end["min_percent_of_line"] or 0.0) >= _TRAFFIC_PERCENT
    ]
    if not ends:
        return None
    share, port, word = min(ends, key=lambda end: float(end[0]))
    at = f" ({port['switch']} {port['switch_port']})" if port["switch_port"] else ""
    bad = sum(bool(port["below_median"]) for port in summary["ports"])
    behind = f"{bad} more than 3 % below the median port" if bad else "none is behind the others"
    transport = transport_name(summary, port["transport"])
    name, share_words = f"{port['port']}{at}", f"{word} {share:.1f} % of line over {transport}"
    return Line(
        "Worst port", f"{name} {share_words}; {behind}", _DOUBT if bad else None, name,
        f"{share_words}; {behind}",
    )  # fmt: skip


def _lost(summary: Summary) -> Line | None:
    counted = [entry for entry in summary["trials"] if entry.get("lost_frames") is not None]
    if not counted:
        return None
    lost = sum(entry["lost_frames"] for entry in counted)
    offered = sum(entry["offered_frames"] or 0 for entry in counted)
    hosts = sum(entry.get("host_dropped_frames") or 0 for entry in counted)
    ppm = 1e6 * lost / offered if offered else 0.0
    share = f" ({ppm:.3g} ppm)" if ppm < 10_000 else f" ({ppm / 10_000:.3g} %)"
    said = f"of {offered:,} frames in the network{share if lost else ''}, {hosts:,} in hosts"
    return Line("Lost", f"{lost:,} {said}", _DOUBT if lost else None, f"{lost:,} frames", said)


def _round_trips(summary: Summary) -> Iterator[Line]:
    """By transport: the middle one of the phases' medians, and the longest p99 or time."""
    said, middle = [], []
    for transport in dict.fromkeys(entry["transport"] for entry in summary["trials"]):
        trips = [
            entry["latency"]["round_trip"]
            for entry in summary["trials"]
            if entry["transport"] == transport and (entry.get("latency") or {}).get("round_trip")
        ]
        middles = [trip["p50"] for trip in trips if trip["p50"] is not None]
        if not middles:
            continue
        name, key = ("p99", "p99") if any(trip["p99"] for trip in trips) else ("longest", "max")
        most = max(trip[key] for trip in trips if trip[key] is not None)
        words = f"p50 {format.digits(median(middles))} µs, {name} {format.digits(most)} µs"
        middle.append(median(middles))
        said.append(f"{transport_name(summary, transport)} {words}")
    if said:
        value = f"{format.digits(min(middle))} µs"
        yield Line("Round trip", "; ".join(said), None, value, "; ".join(said))


def _tester(summary: Summary) -> Line:
    """How far the tester itself was the limit."""
    phases = [entry for entry in summary["trials"] if entry["tester_limited"]]
    again = summary["run"].get("remeasured_phases", 0)
    repeated = f"; {format.of(again, 'phase')} measured again" if again else ""
    if not phases:
        said = f"was not the limit in any phase{repeated}"
        return Line("Tester", said, None, "not the limit", f"in any phase{repeated}")
    short = [
        limit["shortfall_percent"]
        for entry in phases
        for limit in entry["tester_limited"]
        if limit["shortfall_percent"]
    ]
    how = f": offered up to {max(short):.1f} % less than intended" if short else ""
    many = f"{len(phases)} of {format.of(len(summary['trials']), 'phase')}"
    return Line(
        "Tester",
        f"limited {many} (T){how}{repeated}",
        _DOUBT,
        many,
        f"limited by the tester{how}{repeated}",
    )


def _findings(summary: Summary) -> Line:
    kinds = (
        ("fault", summary["errors"]),
        ("warning", summary["warnings"]),
        ("finding", summary.get("findings") or []),
        ("gap", summary["not_measured"]),
    )
    counts = [format.of(len(found), noun) for noun, found in kinds if found]
    if not counts:
        return Line("Findings", "none", None, "none", "no fault, warning, finding or gap")
    total = sum(len(found) for _, found in kinds)
    words = ", ".join(counts)
    style = _BAD if summary["errors"] else _DOUBT
    return Line("Findings", f"{words}: below", style, f"{total:,}", words)


@dataclass(frozen=True)
class AtLoad:
    """How many ports receive what they are to: within 3 % of the load asked, which is all of the
    line where nothing else is asked."""

    every: int  # in every phase, over each transport
    median: int  # in the median phase
    ports: int


def ports_at_load(summary: Summary) -> AtLoad | None:
    """None where ports wait for each other, as those of ranks in dependent steps do."""
    asked: dict[str, list[float]] = {}
    for plan in summary["plans"]:
        if plan["traffic"] not in WAITING and plan["throughput"]["percent_of_line"] is not None:
            asked.setdefault(plan["transport"], []).append(plan["intended_load"] or 100.0)
    shares: dict[str, list[tuple[bool, bool]]] = {}
    for port in summary["ports"]:
        end = port["as_destination"]
        both = end["min_percent_of_line"], end["median_percent_of_line"]
        if None not in both and port["transport"] in asked:
            load = _AT_LOAD * median(asked[port["transport"]])
            shares.setdefault(port["port"], []).append((both[0] >= load, both[1] >= load))
    if not shares:
        return None
    every, middle = (sum(all(one[i] for one in some) for some in shares.values()) for i in (0, 1))
    return AtLoad(every, middle, len(shares))


def _what(summary: Summary, entry: Entry) -> str:
    ranks = format.of(entry["ranks"], "rank")
    return f"{format.pattern(entry)}, {transport_name(summary, entry['transport'])}, {ranks}"
