# SPDX-License-Identifier: BSD-3-Clause
"""The first screen of a result: at most nine lines for the terminal and the report.

Result, rate, faults, loss, round trip, tester and findings, all made from the summary.

Phases in which the tester was the limit say nothing about the network and are left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from ..analysis import measures as m
from ..analysis.judge import counts_words
from ..base import format, transports
from ..plan.chosen import port_of_interface
from ..records.summary_form import SEVERITIES, Entry, PhaseEntry, SummaryDocument, by
from ..search.suites import SUITES
from ..search.suites.declaration import Suite

NOTHING_JUDGED = 4  # exit status of a run without anything to judge

# a port below this percent of line waited for other ranks, as in collective operations
_TRAFFIC_PERCENT = 0.1
MOST_FAULTS = 3
SURE = 0.995  # confidence from which on a suspect is stated without "probably"
ALIKE = 0.03  # max relative difference from the median port at which a port counts as alike
# max relative difference of the lowest and highest rates at which all ports count as alike
SPREAD = 0.05
_GOOD, _DOUBT, _BAD = "green", "yellow", "bold red"
_OF_RESULT = {"PASS": _GOOD, "FAIL": _BAD, "INCONCLUSIVE": _DOUBT}
# Drivers that go through the kernel: DPDK on kernel devices, and RDMA that the kernel emulates.
KERNEL_DRIVERS = ("af_packet", "af_xdp", "pcap", "tap", "rdma_rxe")


@dataclass(frozen=True)
class Line:
    """Line of the first screen: label, value, explanation, and a style of rich or None.

    The report shows each line as a tile: `value` in large letters, `said` below.
    """

    label: str
    value: str
    said: str
    style: str | None = None
    between: str | None = ", "  # text between `value` and `said`; None if `said` alone is the line

    @property
    def text(self) -> str:
        """Return value and explanation as one text."""
        if self.between is None:
            return self.said
        return f"{self.value}{self.between if self.said else ''}{self.said}"


def lines(summary: SummaryDocument) -> list[Line]:
    """Return the lines of the first screen; a quantity that was not measured has no line."""
    trials, status = format.of(len(summary["plans"]), "trial"), summary["status"]
    ran = (
        f"{trials} on {format.of(port_count(summary), 'port')}, {status} in "
        f"{format.seconds(summary['run'].get('elapsed_s'))}"
    )
    if verdict := summary.get("verdict"):
        word = verdict["verdict"]
        said = counts_words(verdict["failed"], verdict["inconclusive"], verdict["passed"])
        shown = [Line("Result", word, f"{said}; {ran}", _OF_RESULT[word], ": ")]
    elif summary["exit_status"] == NOTHING_JUDGED:
        said = f"nothing could be judged; {ran}"
        shown = [Line("Result", "INCONCLUSIVE", said, _DOUBT, ": ")]
    else:
        style = None if status == "complete" else _BAD
        shown = [Line("Result", "no clause required", ran, style, "; ")]
    fair = [entry for entry in summary["trials"] if not entry["tester_limited"]]
    rates = [(total, e) for e in fair if (total := e["throughput"]["total"]) is not None]
    if rates:
        total, best = max(rates, key=lambda rate: rate[0])
        frames = frames_per_s(best)
        said = f"{frames:,.0f} frames/s " if frames else ""
        what = f"{said}({format.pattern(best)}, {best['transport']})"
        between = ", " if said else " "
        shown.append(Line("Max rate", format.bit_rate(1e6 * total), what, None, between))
    shown += _located(summary)
    shown += filter(None, (_lost(summary), _round_trips(fair, _passes(summary)), _tester(summary)))
    found = findings(summary)
    severities = {one.severity for one in found}
    style = _BAD if ERROR in severities else _DOUBT if severities - {INFO} else None
    return [*shown, Line("Findings", counts(found) or "none", "", style)]


def named(summary: SummaryDocument) -> SummaryDocument:
    """Return the summary with transports named with their drivers, such as `dpdk (af_packet)`.

    The driver tells readers whether the transport bypasses the kernel.
    """
    drivers: dict[str, set[str]] = {}
    for port in summary["ports"]:
        driver = (port["driver"] or port["transport"]).removeprefix("net_")
        # a transport in parentheses is already named
        if driver != port["transport"] and "(" not in port["transport"]:
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

    shown: SummaryDocument = renamed(summary) if names else dict(summary)
    return shown


def bypasses(transport: str) -> bool:
    """Return whether a transport, named with its driver, bypasses the kernel."""
    name, _, drivers = transport.rstrip(")").partition(" (")
    carrier = transports.of(name)
    return (carrier.raw or carrier.rdma) and not any(
        driver in KERNEL_DRIVERS for driver in drivers.split(", ")
    )


def port_count(summary: SummaryDocument) -> int:
    """Return the number of ports; in a campaign each port of the device counts once."""
    every = summary["ports"]
    return len({port["switch_port"] if port.get("rounds") else port["port"] for port in every})


def _passes(summary: SummaryDocument) -> int:
    """Return the number of times that the device forwards each frame; 1 if phases differ."""
    found = {row["passes"] for row in summary.get("chain") or ()}
    return int(found.pop()) if len(found) == 1 else 1


def frames_per_s(entry: Entry) -> float | None:
    """Return the frames per second of all flows, from payload rate and payload per frame."""
    total = entry["throughput"].get("total")
    if not entry.get("delivered_frames") or not entry.get("delivered_bytes") or total is None:
        return None
    return float(1e6 * total / 8 / (entry["delivered_bytes"] / entry["delivered_frames"]))


def _located(summary: SummaryDocument) -> list[Line]:
    """Return the lines of the most certain suspects.

    Without suspects, one line has the ports' rates, or says why they are not judged.
    """
    suspects = summary["location"]["suspects"]
    left = len(suspects) - MOST_FAULTS
    shown = []
    for number, one in enumerate(suspects[:MOST_FAULTS], start=1):
        more = [f"{left} more (switchbench locate)"] if number == MOST_FAULTS and left > 0 else []
        unsure = [] if one["confidence"] >= SURE else [f"{100 * one['confidence']:.0f} % sure"]
        flows = format.of(one["through"], "flow")
        beside = one["beside"] + one["beside_suffering"]
        others = [f"{one['beside_suffering']:,} of {beside:,} beside"] if beside else []
        said = "; ".join([f"{one['suffering']:,} of {flows}", *others, *unsure, *more])
        shown.append(Line("Fault", one["brief"], said, _BAD, "; "))
    found = summary["location"]
    if suspects:
        return shown
    if found["phases"] and found["limited_phases"] == found["phases"]:
        phases = format.of(found["phases"], "phase")
        said = f"the tester was the limit in {found['limited_phases']} of {phases}"
        return [Line("Ports", "not judged", said, _DOUBT, ": ")]
    if summary.get("suite"):  # Trials of a suite have arbitrary loads.
        return []
    shares: dict[str, list[float]] = {}
    alike = True
    for port in summary["ports"]:
        end = port["as_destination"]
        share, relative = end["median_percent_of_line"], end["relative_to_median"]
        if share is not None and share >= _TRAFFIC_PERCENT:
            shares.setdefault(port["transport"], []).append(share)
            alike &= relative is None or abs(relative - 1.0) <= ALIKE
    if not shares:
        return []
    alike &= all(min(some) >= (1.0 - SPREAD) * max(some) for some in shares.values())
    several = len(shares) > 1
    said = "; ".join(
        f"{min(some):.1f} to {max(some):.1f} % of line{f' over {name}' if several else ''}"
        for name, some in shares.items()
    )
    word, between = ("alike", ": ") if alike else ("no fault located", "; ")
    return [Line("Ports", word, said, None, between)]


def _lost(summary: SummaryDocument) -> Line | None:
    """Return the line of lost frames, with the losses that oversubscription explains.

    The line also has retransmissions of TCP and RDMA, and ping-pong messages without a reply.
    """
    trials = summary["trials"]
    expected = sum(one["frames"] for one in summary["location"]["expected"])
    counted = [(lost, e) for e in trials if (lost := e["lost_frames"]) is not None]
    again = (
        (sum(entry["retransmitted_segments"] or 0 for entry in trials), "segment"),
        (sum(entry["retransmitted_packets"] or 0 for entry in trials), "packet"),
    )
    repaired = [f"{format.of(count, noun)} retransmitted" for count, noun in again if count]
    trips = [trip for entry in trials if (trip := entry["latency"]["pingpong"])]
    unanswered = sum(trip["lost"] or 0 for trip in trips)
    if unanswered:
        repaired.append(f"{format.of(unanswered, 'message')} of ping-pongs did not come back")
    if not counted:
        style = _DOUBT if unanswered else None
        return Line("Lost", repaired[0], "; ".join(repaired[1:]), style) if repaired else None
    lost = sum(lost for lost, _ in counted)
    offered = sum(entry["offered_frames"] or 0 for _, entry in counted)
    hosts = sum(entry["host_dropped_frames"] or 0 for _, entry in counted)
    share = f", {ppm(lost, offered)}" if offered else ""
    if (passes := _passes(summary)) > 1 and offered:
        each = 1 - (1 - min(lost, offered) / offered) ** (1 / passes)
        share += f" ({ppm(each, 1)} per pass of {passes})"
    more = [f"{expected:,} expected (oversubscribed)"] if expected else []
    said = "; ".join([f"of {offered:,} frames{share}", *more, f"{hosts:,} in hosts", *repaired])
    # Searches of a suite lose frames on purpose.
    doubtful = (lost > expected or unanswered > 0) and not summary.get("suite")
    return Line("Lost", f"{lost:,}", said, _DOUBT if doubtful else None, " ")


def _round_trips(fair: Sequence[PhaseEntry], passes: int) -> Line | None:
    """Return the line of round trips: for each transport the median of medians and the longest p99.

    If a transport has too few times for p99, the longest time is shown, which p99 cannot exceed. A
    frame through a chain passes the device `passes` times each way.
    """
    trips: dict[str, list[Entry]] = {}
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
    each = format.digits(min(middle) / (2 * passes))
    chained = f" ({each} µs per pass)" if passes > 1 else ""
    return Line("RTT p50/p99", fastest, f"{'; '.join(said)} µs{chained}", between=None)


def _tester(summary: SummaryDocument) -> Line:
    """Return the line that says in how many phases the tester was the limit."""
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


# --- findings, with those of one kind joined ------------------------------------------------------


ERROR: str = "error"
WARNING: str = "warning"
INFO: str = "info"


@dataclass(frozen=True)
class Said:
    """Finding to print; `parts` are the sentences that the finding sums up, the worst first."""

    severity: str
    text: str
    parts: tuple[str, ...] = ()


def findings(summary: SummaryDocument) -> list[Said]:
    """Return all findings of a summary, errors first."""
    found = [Said(ERROR, sentence) for sentence in summary["errors"]]
    found += [Said(one["severity"], one["sentence"]) for one in summary["findings"]]
    found += [Said(WARNING, sentence) for sentence in summary["location"]["problems"]]
    found += [Said(WARNING, sentence) for sentence in summary["warnings"]]
    found += [Said(WARNING, f"not measured: {sentence}") for sentence in summary["not_measured"]]
    trials = summary["trials"]
    limits = by((limit for entry in trials for limit in entry["tester_limited"]), "port")
    if limits:
        phases = sum(bool(entry["tester_limited"]) for entry in trials)
        every = [limit for some in limits.values() for limit in some]
        text = f"{phases} of {format.of(len(trials), 'phase')}: {_limit_words(every)}"
        parts = [
            f"{port}: {_limit_words(some)}, in {format.of(len(some), 'phase')}"
            for port, some in sorted(limits.items())
        ]
        found.append(Said(INFO, f"tester-limited: {text}", tuple(parts)))
    # Sentences on one port that differ in numbers alone are joined into one.
    alike: dict[tuple[str, str, str], list[Said]] = {}
    for one in found:
        name, _, rest = one.text.partition(": ")
        # "1 frame" and "2 frames" become alike
        words = re.sub(r"\d[\d.,]*(?: ([a-z]+?)s?\b)?", r"0 \1", rest)
        alike.setdefault((one.severity, name, words), []).append(one)
    joined = [
        one if not others
        else Said(one.severity, f"{one.text} (and {len(others):,} more of this kind)",
                  (one.text, *(other.text for other in others)))
        for one, *others in alike.values()
    ]  # fmt: skip
    return sorted(joined, key=lambda one: SEVERITIES.index(one.severity))


def counts(found: Sequence[Said]) -> str:
    """Return the number of findings by severity, such as `1 error, 2 warnings`."""
    words = []
    for severity in SEVERITIES:
        number = sum(one.severity == severity for one in found)
        if number:
            words.append(f"{number} info" if severity == INFO else format.of(number, severity))
    return ", ".join(words)


def ppm(count: float, of: float) -> str:
    """Return a share as text, in ppm (`12 ppm`); from a thousandth on in percent (`0.34 %`)."""
    share = 1e6 * count / of
    return f"{share:.3g} ppm" if share < 999.5 else f"{share / 10_000:.3g} %"


def _limit_words(limits: Sequence[Entry]) -> str:
    """Return the limits of hosts as text, such as "start up to 3.0 ms late"."""
    words = []
    if short := m.greatest(limit["shortfall_percent"] for limit in limits):
        words.append(f"offered load up to {short:.1f} % below intended")
    if drops := sum(limit["dropped_frames"] or 0 for limit in limits):
        words.append(f"{format.of(drops, 'frame')} dropped in the host")
    if late := m.greatest(limit.get("start_delay_ms") for limit in limits):
        words.append(f"start up to {late:.1f} ms late")
    if off := m.greatest(limit.get("window_error_percent") for limit in limits):
        words.append(f"window up to {off:.1f} % longer or shorter than agreed")
    if (idle := m.least(limit.get("cpu_idle_percent") for limit in limits)) is not None:
        words.append(f"the lab's CPUs idle {idle:.1f} % of the time")
    return ", ".join(words)


# --- statements that a suite's document requires beside its tables --------------------------------


SENTENCES = ("Set-up", "Performance", "Parameters", "Deviations")
"""Keywords that a suite's statements begin with; a statement of another kind has its own list."""

_SHOWN = 2  # searches whose loads fit into a headline

Note = tuple[str, list[str], str]  # title, sentences, style


def suite_notes(summary: SummaryDocument) -> Iterator[Note]:
    """Yield the notes on a run's standard test suite: statements, exclusions and gaps."""
    suite = suite_of(summary)
    if suite is None:
        return
    yield "Statements", list(statements(summary, suite)), ""
    excluded = list(_outcomes(summary, lambda entry: entry["complete"] and not has_values(entry)))
    if excluded:
        yield "Excluded", excluded, ""
    gaps = list(_outcomes(summary, lambda entry: not entry["complete"]))
    if gaps:
        yield "Not measured as the document requires", gaps, "yellow"


def headline(summary: SummaryDocument) -> str | None:
    """Return the outcome of a suite or of searches in a few words; None without results."""
    suite = suite_of(summary)
    if suite is None or suite.is_free:
        searches = summary.get("searches") or []
        found = [entry for entry in searches if entry["regular"]]
        if len(found) < len(searches) or len(found) > _SHOWN:
            return f"{len(found)} of {format.of(len(searches), 'goal')} reached"
        return (
            ", ".join(
                f"{entry['goal'].upper()} {format.digits(entry['relevant_lower_bound'])} "
                f"{entry['load_unit']}"
                for entry in found
            )
            or None
        )
    complete: dict[str, bool] = {}
    for entry in summary["suite"]["subtests"]:
        complete[entry["subtest"]] = complete.get(entry["subtest"], True) and entry["complete"]
    return (
        f"{suite.document}: {sum(complete.values())} of {format.of(len(complete), 'test')} complete"
    )


def has_values(entry: Entry) -> bool:
    """Return whether any row of a subtest's entry has a value."""
    return any(value is not None for row in entry["rows"] for value in row.values())


def suite_of(summary: SummaryDocument) -> Suite | None:
    """Return the test suite that a run executed; None if the run had no suite."""
    return SUITES.get((summary.get("suite") or {}).get("name", ""))


def statements(summary: SummaryDocument, suite: Suite) -> Iterator[str]:
    """Yield the statements that the reporting section of a suite's document requires."""
    found = summary["suite"]
    ports = {port_of_interface(port["port"], port["network"]) for port in summary["ports"]}
    # Ports that only listen have no flow, and so no entry.
    count = max([len(ports), *(plan["ranks"] for plan in summary.get("plans", ()))])
    carriers = ", ".join(sorted({entry["transport"] for entry in found["subtests"]}))
    known = any(port.get("switch_port") for port in summary["ports"])
    places = "in section Ports" if known else "not known: the site has no wiring"
    yield (
        f"Set-up: {format.of(count, 'port')}, {found['media']} over {carriers}, "
        f"{' and '.join(found['traffic_classes']) or 'no DSCP or CoS'}, at a constant interval. "
        f"Where ports are on the device is {places}."
    )
    if said := performance(summary):
        yield said
    if left_out := not_run(summary, suite):
        yield f"Not run: {', '.join(left_out)}."
    asked = summary["suite"]["parameters"]
    yield (
        "Parameters: "
        + ", ".join(f"{key} {asked[key]:g}" for key in suite.uses if key in asked)
        + "."
    )


def not_run(summary: SummaryDocument, suite: Suite) -> list[str]:
    """Return the names of a suite's subtests that the run left out."""
    ran = {entry["subtest"] for entry in summary["suite"]["subtests"]}
    return [subtest.name for subtest in suite.subtests if subtest.name not in ran]


def performance(summary: SummaryDocument) -> str:
    """Return the sentence on throughput at the smallest frame size, as RFC 2544, 26.1, requires.

    Empty if no throughput was found.
    """
    rates = [
        (entry["size"], entry["transport"], row)
        for entry in (summary.get("suite") or {}).get("subtests", [])
        if entry["subtest"] == "throughput"
        for row in entry["rows"]
        if row.get("throughput") is not None
    ]
    if not rates:
        return ""
    size, carrier, row = min(rates, key=lambda rate: rate[0])
    return (
        f"Performance: {format.count(round(row['throughput']))} frames/s per port with frames "
        f"of {size} bytes, of {format.count(round(row['theoretical_max']))} that the medium "
        f"carries ({row['throughput_percent']:.2f} %), Ethernet over {carrier}."
    )


def _outcomes(summary: SummaryDocument, is_meant: Callable[[Entry], bool]) -> Iterator[str]:
    """Yield the outcomes of the subtests that `is_meant` selects, with equal outcomes joined."""
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in summary["suite"]["subtests"]:
        if is_meant(entry):
            what = " ".join(filter(None, (entry["subtest"], entry["variant"])))
            sizes = alike.setdefault((what, entry["outcome"]), [])
            sizes.append(format.size(entry))
    for (what, outcome), sizes in alike.items():
        yield f"{what}, {', '.join(dict.fromkeys(sizes))}: {outcome}"


# --- the first page of a report, made for a supplier ----------------------------------------------
# The page is readable without JavaScript, and printed on A4: verdict, each clause in its own words,
# the device's ports as on its front, suspects with their evidence, advice, and the command that
# repeats the measurement.

MOST_CLAUSES = 12  # clauses and suspects on one page; the tables below list all
MOST_SUSPECTS = 3
_VERDICTS = ("FAIL", "INCONCLUSIVE", "PASS")
_GOOD_PORT = 0.9  # share of the best port's rate below which a port is not shown as good


class FacePort(NamedTuple):
    """Port on the front of a device; `mood` is good, bad, or "" if nothing was observed."""

    label: str
    share: str  # percent of line that the port received, the least of its transports
    mood: str
    about: str


def about_what(summary: SummaryDocument) -> str:
    """Return the subject of the report: the devices, else the lab or the hosts."""
    run = summary["run"]
    named = []
    for switch in (run.get("about") or {}).get("switches", []):
        name = " ".join(str(switch[key]) for key in ("vendor", "model") if switch.get(key))
        more = [f"{key} {switch[key]}" for key in ("serial", "firmware") if switch.get(key)]
        named.append(", ".join([name or str(switch.get("name") or "A switch"), *more]))
    if named:
        return "; ".join(named)
    ports = format.of(port_count(summary), "port")
    return f"Lab {run['lab']}, {ports}" if run.get("lab") else f"A network of {ports}"


def first_page(summary: SummaryDocument) -> Entry:
    """Return the values that page.html shows below the verdict.

    Clauses and suspects are entries of the summary; `further` is a sentence on the entries that
    did not fit. `faces` has name and ports of each switch, `again` the command that repeats the
    measurement, `signed` is true if there is a verdict to sign.
    """
    clauses: list[Entry] = list(summary.get("expectations") or ())
    suspects = summary["location"]["suspects"]
    left = (len(clauses) - MOST_CLAUSES, "clause"), (len(suspects) - MOST_SUSPECTS, "suspect")
    further = " and ".join(format.of(count, noun) for count, noun in left if count > 0)
    run = summary["run"]
    about = run.get("about") or {}
    named = ("contract", "customer", "supplier", "tester", "place", "cables")
    facts = [(key, str(about[key])) for key in named if about.get(key)]
    facts.append(("measured", str(run.get("started") or format.UNKNOWN)))
    facts.append(("run", str(run.get("id") or format.UNKNOWN)))
    return {
        "facts": facts,
        "clauses": sorted(clauses, key=lambda one: _VERDICTS.index(one["verdict"]))[:MOST_CLAUSES],
        "further": f"{further} more below." if further else "",
        "faces": _faces(summary),
        "suspects": suspects[:MOST_SUSPECTS],
        "again": shlex.join(run.get("command") or []),
        "signed": bool(summary.get("verdict")),
    }


def _faces(summary: SummaryDocument) -> list[tuple[str, list[FacePort]]]:
    """Return the ports of each switch in the order of its front; ports without a label by name."""
    every: dict[str, dict[str, list[Entry]]] = {}
    for port in summary["ports"]:
        label = port["switch_port"] or port["port"]
        every.setdefault(port["switch"] or "", {}).setdefault(label, []).append(port)
    device = summary["run"].get("device")
    said: dict[str, str] = {}  # text by port of a chain, from its suspects and loaded parts
    for label in device["ports"] if device else ():  # a port without a host keeps its place
        every.setdefault(device["name"], {}).setdefault(label, [])
    if device and device["chain"]:
        names: list[str] = device["ports"]
        said = dict.fromkeys(names, "not loaded")
        for row in summary.get("chain") or []:
            loaded = names[names.index(row["entry"]) : names.index(row["exit"]) + 1]
            said |= dict.fromkeys(loaded, "nothing suspected")
        for one in summary["location"]["suspects"]:
            ends = {end for element in one["alike"] for end in element["name"].split(" - ")}
            said |= {name: one["brief"] for name in names if f"{device['name']}:{name}" in ends}
    best = max((share for port in summary["ports"] for share in _shares([port])), default=0.0)

    def face(label: str, entries: list[Entry]) -> FacePort:
        if words := said.get(label):
            mood = {"not loaded": "", "nothing suspected": "good"}.get(words, "bad")
            return FacePort(label, "", mood, f"{label}: {words}")
        suspect = next((one["suspect"] for one in entries if one["suspect"]), None)
        known = _shares(entries)
        least = min(known, default=0.0)
        mood = "bad" if suspect else "good" if known and least >= _GOOD_PORT * best > 0 else ""
        named = ", ".join(one["port"] for one in entries)
        about = f"{named}: {suspect or 'nothing suspected'}" if entries else f"{label}: not loaded"
        return FacePort(label, f"{least:.0f} %" if known else "", mood, about)

    return [
        (switch, [face(label, ports[label]) for label in sorted(ports, key=format.natural)])
        for switch, ports in sorted(every.items(), key=lambda one: format.natural(one[0]))
    ]


def _shares(entries: list[Entry]) -> list[float]:
    shares = [one["as_destination"]["median_percent_of_line"] for one in entries]
    return [share for share in shares if share is not None]
