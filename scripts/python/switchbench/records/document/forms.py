# SPDX-License-Identifier: BSD-3-Clause
"""Forms that several parts of the summary share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ...base.measures import MEASURES

Count = Annotated[int, Field(ge=0)]
Free = dict[str, Any]  # by keys of the pattern, the transport or the clause
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Size = Count | list[Annotated[int, Field(ge=1)]]  # bytes, or the sizes of a mix
Traffic = Literal["stream", "transfer", "burst", "pingpong", "schedule"]
SizeUnit = Literal["frame", "message"]
Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]

Transport = Annotated[str, "dpdk, packet, tcp, udp or verbs"]
Network = Annotated[str, "The ports that can reach each other"]
Ranks = Annotated[int, "Endpoints of traffic in this network"]
Pattern = Annotated[str, "Its name"]
Parameters = Annotated[Free, "The pattern's, as the configuration gives them"]
Source = Annotated[str, "The port that sends"]
Destination = Annotated[str, "The port that receives"]
TrialNumber = Annotated[int, "Number of the trial in the run"]
RepeatNumber = Annotated[int, "Which repetition, from 0"]


class CurveSetting(TypedDict):
    """What tells a curve over sizes from others."""

    transport: Transport
    network: Network
    ranks: Ranks
    pattern: Pattern
    parameters: Parameters


def measured(key: str) -> str:
    """Return the words of a measure, for its key in the summary."""
    return MEASURES[key].definition
