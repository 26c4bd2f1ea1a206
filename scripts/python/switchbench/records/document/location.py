# SPDX-License-Identifier: BSD-3-Clause
"""Where the network breaks."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from .forms import Count

FaultKind = Literal[
    "loss",
    "capacity",
    "size",
    "dead",
    "intermittent",
    "duplication",
    "reordering",
    "corruption",
    "flooding",
    "wrong-port",
    "burst",
]
ElementKind = Literal[
    "host", "cable", "port", "module", "trunk", "link", "group", "pair", "network"
]
HostCause = Literal["sender_host", "receiver_host", "other_traffic", "late_sender"]


class ElementEntry(TypedDict):
    """A directed part of the network, or of a host."""

    name: Annotated[str, "In the site's words: node5:e0, leaf1:p5, leaf1, leaf1 - spine2"]
    kind: Annotated[
        ElementKind,
        "port: a switch's; module: a switch; link: some of a trunk's parallel links; group: of "
        "hosts, where paths are unknown; pair: of ports",
    ]
    direction: Annotated[
        str,
        "Of a host send or receive; of a switch port in or out, as the switch sees it; of a cable, "
        "trunk or group `from A to B`; empty: none",
    ]


class SuspectEntry(TypedDict):
    """A fault that the flows show, and where it is."""

    element: Annotated[ElementEntry, "The one named"]
    alike: Annotated[
        list[ElementEntry], "All that the same flows pass, element included: not told apart"
    ]
    ports: Annotated[list[str], "Ports that element is at; empty: it is between switches"]
    kind: Annotated[FaultKind, "What it does"]
    value: Annotated[
        float | None,
        "Its size: percent of frames, a capacity in Mbit/s of layer 1, or a frame size in bytes; "
        "null: it has none (dead, intermittent)",
    ]
    low: Annotated[float | None, "Lower end of the 95 % interval of value"]
    high: Annotated[float | None, "Upper end of it"]
    unit: Annotated[str, "Of value: %, Mbit/s or bytes; empty: it has none"]
    confidence: Annotated[float, "Probability that a fault of this kind is in one of alike"]
    gain: Annotated[float, "Log-likelihood ratio over the next explanation"]
    suffering: Annotated[Count, "Pairs of ports through it that suffer"]
    through: Annotated[Count, "Pairs through it"]
    beside: Annotated[Count, "Pairs beside it that do not suffer"]
    beside_suffering: Annotated[Count, "Pairs beside it that suffer"]
    frames: Annotated[Count, "Frames that it explains; 0: transports that see no frames"]
    phases: Annotated[Count, "Phases in which it was observed"]
    trial: Annotated[int | None, "Trial of the first of these; null: none is known"]
    phase: Annotated[int | None, "Its phase; null: a connectivity check, or none is known"]
    transports: Annotated[list[str], "Over which it was observed"]
    from_s: Annotated[float | None, "intermittent: since the window's opening, from here ..."]
    to_s: Annotated[float | None, "... to here; null: all the time, or no interval results"]
    brief: Annotated[str, "Element and fault in a few words"]
    evidence: Annotated[str, "Who suffers through it and beside it, in words"]
    sentence: Annotated[str, "Both, and what cannot be told apart"]


class HostLossEntry(TypedDict):
    """Lost frames that are no fault of the network."""

    port: Annotated[str, "At which port"]
    cause: Annotated[
        HostCause,
        "Not left by its host; not taken by its host; frames of other senders took their time; or "
        "senders that fell behind sent at once what was due",
    ]
    frames: Annotated[Count, "Lost frames that it explains"]
    phases: Annotated[Count, "Phases in which it did"]


class OversubscriptionEntry(TypedDict):
    """Loss that no network can avoid."""

    element: Annotated[ElementEntry, "What was offered more than its line carries"]
    ports: Annotated[list[str], "Ports that element is at; empty: it is between switches"]
    transport: Annotated[str, "Of these trials"]
    offered_mbps: Annotated[float, "The most that was offered, layer 1"]
    line_mbps: Annotated[float, "Its line, layer 1"]
    frames: Annotated[Count, "Lost as expected"]
    phases: Annotated[Count, "Phases in which it was"]


class NextTestEntry(TypedDict):
    """The smallest test that would decide."""

    flows: Annotated[list[list[str]], "Pairs of ports, all at once; empty: no traffic decides"]
    load: Annotated[float, "Percent of line"]
    transport: Annotated[str, "dpdk, packet, tcp, udp or verbs"]
    why: Annotated[str, "What it decides, or which cable to swap"]


class LocationEntry(TypedDict):
    """Where the network breaks, by all flows and their paths (measures.md, Location)."""

    paths: Annotated[str, "Where paths come from: a topology file; none: hosts and groups alone"]
    phases: Annotated[Count, "Phases that were judged or limited"]
    limited_phases: Annotated[Count, "Of these: tester-limited"]
    suspects: Annotated[list[SuspectEntry], "The most certain first; empty: nothing is wrong"]
    hosts: Annotated[list[HostLossEntry], "What hosts and foreign traffic cost"]
    expected: Annotated[list[OversubscriptionEntry], "What no line had room for"]
    unexplained_frames: Annotated[Count, "Lost frames that none of these explains"]
    untested: Annotated[list[ElementEntry], "Never loaded, or only where the tester was the limit"]
    next_test: Annotated[NextTestEntry | None, "null: nothing is left to decide"]
    problems: Annotated[list[str], "What could not be used, a sentence each"]


NOTHING_LOCATED: LocationEntry = {
    "paths": "none",
    "phases": 0,
    "limited_phases": 0,
    "suspects": [],
    "hosts": [],
    "expected": [],
    "unexplained_frames": 0,
    "untested": [],
    "next_test": None,
    "problems": [],
}
