# SPDX-License-Identifier: BSD-3-Clause
"""What the profile `acceptance` asks for beside its times: who is tested, and each clause's words.

A verdict that nobody can tie to a switch, its firmware and its cables settles nothing; neither
does a number that no contract asked for (doc/reference/acceptance.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..base import quantities, transports
from ..base.model import Repeats, Site
from ..base.source import Document, KeyPath
from . import profiles
from .point import ResolvedTest
from .schema import Configuration

PROFILE = "acceptance"

_OF_SWITCH = ("model", "serial", "firmware")


def about_values(model: Configuration) -> dict[str, Any]:
    """`about` as plain values; empty when it is not given."""
    if model.about is None:
        return {}
    values = model.about.given()
    if "switches" in values:
        values["switches"] = [switch.given() for switch in values["switches"]]
    return values


def refuse_incomplete(
    document: Document, model: Configuration, tests: Iterable[ResolvedTest]
) -> None:
    """A run for acceptance without what it needs is refused by the first key that is missing."""
    accepting = next((test for test in tests if test.values["profile"] == PROFILE), None)
    if accepting is None:
        return
    about = about_values(model)
    needed: list[tuple[KeyPath, Any]] = [(("about", "switches"), about.get("switches"))]
    for i, switch in enumerate(about.get("switches", [])):
        needed += [(("about", "switches", i, key), switch.get(key)) for key in _OF_SWITCH]
    needed.append((("about", "cables"), about.get("cables")))
    for i, clause in enumerate(model.expect or []):
        needed.append((("expect", i, "clause"), clause.clause))
    for path, value in needed:
        if not value:
            raise document.problem(path, _missing(path))


def _missing(path: KeyPath) -> str:
    if path[0] == "expect":
        return "is missing: profile acceptance needs each clause's wording in contract or standard"
    return (
        "is missing: profile acceptance needs what is tested: about.switches (a list) with the "
        "model, serial and firmware of each, and about.cables"
    )


def reservations(site: Site, tests: Iterable[ResolvedTest]) -> Iterator[str]:
    """In what tests for acceptance are less than the profile asks, a sentence for each test."""
    for number, test in enumerate(tests):
        if test.values["profile"] != PROFILE:
            continue
        usual = profiles.defaults(site, test.pattern, test.transport, PROFILE)
        less = list(_less(test, usual))
        if less:
            which = f"test {number} ({test.pattern}, {test.transport})"
            yield f"{which} was less than profile {PROFILE} asks: {', '.join(less)}"


def _less(test: ResolvedTest, usual: dict[str, Any]) -> Iterator[str]:
    values = test.values
    if values["traffic"] == "stream":
        for key in ("warmup", "window"):
            found_ns = values.get(key)
            if found_ns is not None and found_ns < usual[key]:
                texts = (quantities.DURATION.text(ns) for ns in (found_ns, usual[key]))
                yield f"{key} {' and not '.join(texts)}"
    repeat, asked = values["repeat"], usual["repeat"]
    if isinstance(repeat, Repeats) and repeat.least < asked.least:
        yield f"at least {repeat.least} and not {asked.least} repeats"
    if transports.of(test.transport).frames and "frame_sizes" in values:
        header = values.get("dpdk", profiles.UDP_HEADER)
        whole = profiles.frame_sizes(PROFILE, header, test.frame_max)
        left_out = [size for size in whole if size not in values["frame_sizes"]]
        if left_out:
            yield f"without frames of {', '.join(map(str, left_out))} bytes"
