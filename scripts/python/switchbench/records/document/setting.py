# SPDX-License-Identifier: BSD-3-Clause
"""What trials were asked to do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .forms import Count, Free, Size, SizeUnit, Traffic


class PlanSetting(TypedDict):
    """What a trial was asked to do in one network."""

    trial: Annotated[int, "Number of the trial in the run: `trial` of its records"]
    test: Annotated[int, "Which entry of the configuration's `tests` it comes from, from 0"]
    repeat: Annotated[int, "Which repetition, from 0"]
    pattern: Annotated[str, "chain, pairs, aapc or ring"]
    parameters: Annotated[Free, "The pattern's parameters as the configuration gives them"]
    transport: Annotated[str, "dpdk, packet, tcp, udp or verbs"]
    network: Annotated[str, "The ports that can reach each other"]
    ranks: Annotated[int, Field(ge=2), "Endpoints of traffic in this network"]
    traffic: Annotated[
        Traffic,
        "stream: a rate for a time; transfer: a number of bytes; pingpong: round trips; schedule: "
        "dependent steps",
    ]
    size: Annotated[Size, "Bytes of a frame or a message, or the sizes of a mix"]
    size_unit: Annotated[SizeUnit, "What `size` is of"]
    frame_bytes: Annotated[
        Size | None,
        "Frame size with FCS (RFC 2544); a list for IMIX; null where no frames are seen",
    ]
    load: Annotated[Free, "The load as asked: percent of line rate, bps at layer 1, or fps"]
    intended_load: Annotated[
        float | None, "The load as asked in percent of line rate, mean over the ports"
    ]
    load_unit: Annotated[Literal["percent_of_line"], "Unit of intended_load and offered_load"]
    concurrent_networks: Annotated[
        list[str] | None, "All networks of the trial, when several run at the same time"
    ]


class Setting(PlanSetting):
    """What one of its phases was asked to do."""

    phase: Annotated[Count, "Number of the phase in the plan, from 0"]
