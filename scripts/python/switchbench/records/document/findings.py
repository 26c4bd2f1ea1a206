# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
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

    kind: Annotated[Kind, Field(description="What went wrong")]
    transport: Annotated[str, Field(description="Of the trial in which it was found")]
    trial: Annotated[
        int | None,
        Field(description="With repeat, network and phase: where; null: over the whole run"),
    ]
    repeat: Annotated[
        int | None, Field(description="Which time the trial was run, from 0; null: see trial")
    ]
    network: Annotated[str | None, Field(description="The trial's; null: see trial")]
    phase: Annotated[int | None, Field(description="From 0; null: see trial")]
    src: Annotated[
        str | None, Field(description="With dst: whose frames; null: a port's, or no flow is known")
    ]
    dst: Annotated[str | None, Field(description="See src")]
    port: Annotated[
        str | None,
        Field(
            description="At which port; with src and dst: where frames of theirs came to instead; "
            "null: a flow's, or the network's"
        ),
    ]
    groups: Annotated[
        list[str] | None,
        Field(
            description="The group that is the limit, or the two between which it is; null: neither"
        ),
    ]
    started: Annotated[
        str | None, Field(description="When its phase began, UTC; null: see trial, or not known")
    ]
    lowest_from_s: Annotated[float | None, Field(description="Of a loss: from here ...")]
    lowest_to_s: Annotated[
        float | None,
        Field(
            description="... to here in the phase's window the flow's interval results were "
            "lowest; null: there are none"
        ),
    ]
    count: Annotated[Count, Field(description="Frames")]
    sentence: Annotated[str, Field(description="What was found, for a person")]
