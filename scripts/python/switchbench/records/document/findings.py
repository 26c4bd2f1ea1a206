# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from .forms import Count

Kind = Literal[
    "dead-port",
    "slow-port",
    "collapse",
    "trunk",
    "module-capacity",
    "saturation",
    "unfinished",
    "flood",
    "wrong-port",
    "misdelivered",
    "oversubscribed",
    "loss",
    "duplicate",
    "forged",
    "reorder",
    "corrupt",
]


class FindingEntry(TypedDict):
    """What went wrong, and where."""

    kind: Annotated[Kind, "What went wrong"]
    transport: Annotated[str, "Of the trial in which it was found"]
    trial: Annotated[int | None, "With repeat, network and phase: where; null: over the whole run"]
    repeat: Annotated[int | None, "Which time the trial was run, from 0; null: see trial"]
    network: Annotated[str | None, "The trial's; null: see trial"]
    phase: Annotated[int | None, "From 0; null: see trial"]
    src: Annotated[str | None, "With dst: whose frames; null: a port's, or no flow is known"]
    dst: Annotated[str | None, "See src"]
    port: Annotated[
        str | None,
        "At which port; with src and dst: where frames of theirs came to instead; null: a flow's, "
        "or the network's",
    ]
    groups: Annotated[
        list[str] | None,
        "The group that is the limit, or the two between which it is; null: neither",
    ]
    started: Annotated[str | None, "When its phase began, UTC; null: see trial, or not known"]
    lowest_from_s: Annotated[float | None, "Of a loss: from here ..."]
    lowest_to_s: Annotated[
        float | None,
        "... to here in the phase's window the flow's interval results were lowest; null: there "
        "are none",
    ]
    count: Annotated[Count, "Frames"]
    sentence: Annotated[str, "What was found, for a person"]
