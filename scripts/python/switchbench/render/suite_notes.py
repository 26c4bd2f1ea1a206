# SPDX-License-Identifier: BSD-3-Clause
"""What a document asks to be said beside its tables: performance, set-up, deviations, gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..base import format
from ..plan.chosen import port_of_interface
from ..search.suites import SUITES
from ..search.suites.declaration import Suite

Summary = Mapping[str, Any]
SENTENCES = ("Set-up", "Performance", "Parameters", "Deviations")
"""What the sentences begin with, or are listed below."""

_SHOWN = 2  # searches whose loads fit a headline

Note = tuple[str, list[str], str]  # title, sentences, style


def suite_notes(summary: Summary) -> Iterator[Note]:
    """Yield lists of sentences for terminal and report; none where no document's suite was run."""
    suite = suite_of(summary)
    if suite is None:
        return
    yield "Statements", list(statements(summary, suite)), ""
    excluded = list(_outcomes(summary, lambda entry: entry["complete"] and not has_values(entry)))
    if excluded:
        yield "Excluded", excluded, ""
    gaps = list(_outcomes(summary, lambda entry: not entry["complete"]))
    if gaps:
        yield "Not measured as the document asks", gaps, "yellow"


def headline(summary: Summary) -> str | None:
    """Return what a suite came to, in a few words; None where none was run."""
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


def has_values(entry: Mapping[str, Any]) -> bool:
    """Return whether any row of a subtest's entry has a value."""
    return any(value is not None for row in entry["rows"] for value in row.values())


def suite_of(summary: Summary) -> Suite | None:
    """Return the document's suite of a run."""
    return SUITES.get((summary.get("suite") or {}).get("name", ""))


def statements(summary: Summary, suite: Suite) -> Iterator[str]:
    """Yield what a reporting section asks for in words."""
    found = summary["suite"]
    ports = {port_of_interface(port["port"], port["network"]) for port in summary["ports"]}
    # Ports that listen have no flow, and so no entry.
    count = max([len(ports), *(plan["ranks"] for plan in summary.get("plans", ()))])
    carriers = ", ".join(sorted({entry["transport"] for entry in found["subtests"]}))
    known = any(port.get("switch_port") for port in summary["ports"])
    places = "in section Ports" if known else "not known, as no wiring is given"
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


def not_run(summary: Summary, suite: Suite) -> list[str]:
    """Return the subtests that this run left out."""
    ran = {entry["subtest"] for entry in summary["suite"]["subtests"]}
    return [subtest.name for subtest in suite.subtests if subtest.name not in ran]


def performance(summary: Summary) -> str:
    """Return the throughput at the lowest size, as RFC 2544, 26.1, wants it.

    Empty: none was found.
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


def _outcomes(summary: Summary, is_meant: Callable[[Mapping[str, Any]], bool]) -> Iterator[str]:
    """Yield how these ended: a sentence for all sizes that ended alike."""
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in summary["suite"]["subtests"]:
        if is_meant(entry):
            what = " ".join(filter(None, (entry["subtest"], entry["variant"])))
            sizes = alike.setdefault((what, entry["outcome"]), [])
            sizes.append(format.size(entry))
    for (what, outcome), sizes in alike.items():
        yield f"{what}, {', '.join(dict.fromkeys(sizes))}: {outcome}"
