# SPDX-License-Identifier: BSD-3-Clause
"""What the profile `acceptance` asks for beside its times: who is tested, and each clause's words.

A verdict that nobody can tie to a switch, its firmware and its cables settles nothing; neither
does a number that no contract asked for (doc/reference/acceptance.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base import quantities, transports
from ..base.model import Site
from ..base.source import Document, KeyPath
from . import profiles
from .schema import About, Configuration, Profile, ResolvedSettings

PROFILE: Profile = "acceptance"

_OF_SWITCH = ("model", "serial", "firmware")


def refuse_incomplete(
    document: Document, model: Configuration, tests: Iterable[ResolvedSettings]
) -> None:
    """A run for acceptance without what it needs is refused by the first key that is missing."""
    accepting = next((test for test in tests if test.profile == PROFILE), None)
    if accepting is None:
        return
    about = model.about or About()
    needed: list[tuple[KeyPath, object]] = [(("about", "switches"), about.switches)]
    for i, switch in enumerate(about.switches or ()):
        needed += [(("about", "switches", i, key), getattr(switch, key)) for key in _OF_SWITCH]
    needed.append((("about", "cables"), about.cables))
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


def reservations(site: Site, tests: Iterable[ResolvedSettings]) -> Iterator[str]:
    """In what tests for acceptance are less than the profile asks, a sentence for each test."""
    for number, test in enumerate(tests):
        if test.profile != PROFILE:
            continue
        usual = profiles.defaults(site, test.pattern, test.transport, PROFILE)
        less = list(_less(test, usual))
        if less:
            which = f"test {number} ({test.pattern}, {test.transport})"
            yield f"{which} was less than profile {PROFILE} asks: {', '.join(less)}"


def _less(test: ResolvedSettings, usual: ResolvedSettings) -> Iterator[str]:
    values = test
    if values.traffic == "stream":
        times = {
            "warmup": (values.warmup, usual.warmup),
            "window": (values.window, usual.window),
        }
        for key, (found_ns, usual_ns) in times.items():
            if found_ns is not None and usual_ns is not None and found_ns < usual_ns:
                texts = (quantities.DURATION.text(ns) for ns in (found_ns, usual_ns))
                yield f"{key} {' and not '.join(texts)}"
    if values.repeat.least < usual.repeat.least:
        yield f"at least {values.repeat.least} and not {usual.repeat.least} repeats"
    if transports.of(test.transport).frames and values.frame_sizes is not None:
        header = values.dpdk or profiles.UDP_HEADER
        whole = profiles.frame_sizes(PROFILE, header, test.frame_max)
        left_out = [size for size in whole if size not in values.frame_sizes]
        if left_out:
            yield f"without frames of {', '.join(map(str, left_out))} bytes"
