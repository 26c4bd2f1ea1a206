# SPDX-License-Identifier: BSD-3-Clause
"""The first page of a report, made for a supplier: readable without JavaScript, printed on A4.

Verdict, each clause in its own words, the device's ports as on its front, suspects with their
evidence, advice, and the command that repeats the measurement.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...base import format
from ...records.summary_form import SummaryDocument
from ..first_screen import port_count

MOST_CLAUSES = 12  # clauses and suspects on one page; the tables below list all
MOST_SUSPECTS = 3
_ORDER = ("FAIL", "INCONCLUSIVE", "PASS")
_ALIKE = 0.9  # share of the best port's rate below which a port is not shown as good


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


def first_page(summary: SummaryDocument) -> dict[str, Any]:
    """Return what page.html shows below the verdict.

    Clauses and suspects are entries of the summary; `further` is a sentence on those that did not
    fit. `faces` has name and ports of each switch, `again` the command that repeats the
    measurement, `signed` is true where there is a verdict to sign.
    """
    clauses: list[Mapping[str, Any]] = list(summary.get("expectations") or ())
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
        "clauses": sorted(clauses, key=lambda one: _ORDER.index(one["verdict"]))[:MOST_CLAUSES],
        "further": f"{further} more below." if further else "",
        "faces": _faces(summary),
        "suspects": suspects[:MOST_SUSPECTS],
        "again": shlex.join(run.get("command") or []),
        "signed": bool(summary.get("verdict")),
    }


def _faces(summary: SummaryDocument) -> list[tuple[str, list[FacePort]]]:
    """Return the ports of each switch in the order of its front; ports without a label by name."""
    every: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for port in summary["ports"]:
        label = port["switch_port"] or port["port"]
        every.setdefault(port["switch"] or "", {}).setdefault(label, []).append(port)
    device = summary["run"].get("device")
    for label in device["ports"] if device else ():  # a port without a host keeps its place
        every.setdefault(device["name"], {}).setdefault(label, [])
    chained = _chained(summary, device) if device and device["chain"] else {}
    best = max((share for port in summary["ports"] for share in _shares([port])), default=0.0)
    return [
        (
            switch,
            [
                chained.get(label) or _face(label, ports[label], best)
                for label in sorted(ports, key=format.natural)
            ],
        )
        for switch, ports in sorted(every.items(), key=lambda one: format.natural(one[0]))
    ]


def _chained(summary: SummaryDocument, device: Mapping[str, Any]) -> dict[str, FacePort]:
    """Return the ports of a chained device by label: suspects, loaded ports and others."""
    names: list[str] = device["ports"]
    said = dict.fromkeys(names, "not loaded")
    for row in summary.get("chain") or []:
        loaded = names[names.index(row["entry"]) : names.index(row["exit"]) + 1]
        said |= dict.fromkeys(loaded, "nothing suspected")
    moods = {"not loaded": "", "nothing suspected": "good"}
    for one in summary["location"]["suspects"]:
        ends = {end for element in one["alike"] for end in element["name"].split(" - ")}
        said |= {name: one["brief"] for name in names if f"{device['name']}:{name}" in ends}
    return {
        name: FacePort(name, "", moods.get(words, "bad"), f"{name}: {words}")
        for name, words in said.items()
    }


def _shares(entries: list[Mapping[str, Any]]) -> list[float]:
    shares = [one["as_destination"]["median_percent_of_line"] for one in entries]
    return [share for share in shares if share is not None]


def _face(label: str, entries: list[Mapping[str, Any]], best: float) -> FacePort:
    suspect = next((one["suspect"] for one in entries if one["suspect"]), None)
    known = _shares(entries)
    least = min(known, default=0.0)
    mood = "bad" if suspect else "good" if known and least >= _ALIKE * best > 0 else ""
    named = ", ".join(one["port"] for one in entries)
    about = f"{named}: {suspect or 'nothing suspected'}" if entries else f"{label}: not loaded"
    return FacePort(label, f"{least:.0f} %" if known else "", mood, about)
