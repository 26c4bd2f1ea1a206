# SPDX-License-Identifier: BSD-3-Clause
"""What a document asks to be said beside its tables: performance, set-up, deviations, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base import format
from ..search.suites import SUITES
from ..search.suites.declaration import Suite

Summary = Mapping[str, Any]
SENTENCES = ("Set-up", "Performance", "Parameters", "Deviations")
"""What the sentences begin with, or are listed below."""

Note = tuple[str, list[str], str]  # title, sentences, style


def suite_notes(summary: Summary) -> Iterator[Note]:
    """Lists of sentences for terminal and report; empty where no document's suite was run."""
    suite = suite_of(summary)
    if suite is None:
        return
    yield "Statements", list(statements(summary, suite)), ""
    gaps = list(dict.fromkeys(_gaps(summary)))
    if gaps:
        yield "Not measured as the document asks", gaps, "yellow"


def suite_of(summary: Summary) -> Suite | None:
    """The document's suite of a run."""
    found = SUITES.get((summary.get("suite") or {}).get("name", ""))
    return found if found is not None and any(each.values for each in found.subtests) else None


def statements(summary: Summary, suite: Suite) -> Iterator[str]:
    """What a reporting section asks for in words."""
    entries = summary["suite"]["subtests"]
    ports = {port["port"] for port in summary["ports"]}
    carriers = ", ".join(sorted({entry["transport"] for entry in entries}))
    yield (
        f"Set-up: {format.of(len(ports), 'port')}, Ethernet frames over {carriers}, at a constant "
        "interval; section Ports has line rates and links."
    )
    rates = [
        (entry["size"], row)
        for entry in entries
        if entry["subtest"] == "throughput"
        for row in entry["rows"]
        if row.get("throughput") is not None
    ]
    if rates:
        size, row = min(rates, key=lambda rate: rate[0])
        yield (
            f"Performance: {format.count(round(row['throughput']))} frames/s per port with frames "
            f"of {size} bytes, of {format.count(round(row['theoretical_max']))} that the medium "
            f"carries ({row['throughput_percent']:.2f} %), Ethernet over {carriers}."
        )
    asked = summary["suite"]["parameters"]
    yield (
        "Parameters: "
        + ", ".join(f"{key} {asked[key]:g}" for key in suite.uses if key in asked)
        + "."
    )


def _gaps(summary: Summary) -> Iterator[str]:
    for entry in summary["suite"]["subtests"]:
        if not entry["complete"]:
            variant = f" {entry['variant']}" if entry["variant"] else ""
            yield f"{entry['subtest']}{variant}, {format.size(entry)}: {entry['outcome']}"
