# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from typing_extensions import TypedDict

from .forms import Count
from .location import FaultKind

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
OtherKind = Literal["unexplained", "host", "oversubscribed", "unfinished", "misdelivered", "forged"]
Kind = FaultKind | OtherKind
KINDS = (*get_args(FaultKind), *get_args(OtherKind))


class FindingEntry(TypedDict):
    """What went wrong, and where."""

    kind: Annotated[Kind, "Of a suspect its kind; else see measures.md, Findings"]
    severity: Annotated[Severity, "error, warning or info"]
    transport: Annotated[str, "Over which; of several the first"]
    trial: Annotated[int | None, "Where it was seen first; null: over the whole run"]
    phase: Annotated[int | None, "From 0; null: see trial"]
    src: Annotated[str | None, "With dst: whose; null: no single flow's"]
    dst: Annotated[str | None, "See src"]
    port: Annotated[str | None, "At which port; null: at several, at none, or a flow's"]
    element: Annotated[str | None, "Name of the suspect's element; null: it has none"]
    count: Annotated[Count, "Frames, or bytes of a transfer"]
    sentence: Annotated[str, "What was found, for a person"]
