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

Transport = Annotated[str, Field(description="dpdk, tcp, udp or verbs")]
Network = Annotated[str, Field(description="The ports that can reach each other")]
Ranks = Annotated[int, Field(description="Endpoints of traffic in this network")]
Pattern = Annotated[str, Field(description="Its name")]
Parameters = Annotated[Free, Field(description="The pattern's, as the configuration gives them")]
Source = Annotated[str, Field(description="The port that sends")]
Destination = Annotated[str, Field(description="The port that receives")]
TrialNumber = Annotated[int, Field(description="Number of the trial in the run")]
RepeatNumber = Annotated[int, Field(description="Which repetition, from 0")]


class CurveSetting(TypedDict):
    """What tells a curve over sizes from others."""

    transport: Transport
    network: Network
    ranks: Ranks
    pattern: Pattern
    parameters: Parameters


def measured(key: str) -> Any:
    """The words of a measure, for its key in the summary."""
    return Field(description=MEASURES[key].definition)
