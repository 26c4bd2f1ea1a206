# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a phase: intervals, where frames were lost, reordering."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from .forms import measured


class Lowest(TypedDict):
    """The interval in which a flow was lowest."""

    src: Annotated[str, "Port"]
    dst: Annotated[str, "Port"]
    mbps: Annotated[float, "Payload in the flow's lowest span, Mbit/s"]
    percent_of_mean: Annotated[float, "Of the same flow's mean over all its spans"]
    from_s: Annotated[float, "Where the span begins, after the window's opening"]
    to_s: Annotated[float, "Where it ends"]


class IntervalsEntry(TypedDict):
    """How low flows fell from one interval result to the next."""

    count: Annotated[int, "Interval results of a flow; 0: none"]
    length_s: Annotated[float | None, "Their length, median"]
    min: Annotated[float | None, measured("throughput_min_interval")]
    slowest: Annotated[Lowest | None, "The flow and the time of that; null: no interval results"]
    lowest: Annotated[
        list[Lowest], "The flows that fell the furthest below their own mean, at most 5"
    ]


class LossLocationPort(TypedDict):
    """Losses at one port."""

    port: Annotated[str, "Its name"]
    sender_host: Annotated[int | None, "Frames sent and not left by the port"]
    receiver_host: Annotated[int | None, "Frames that reached the port and not us"]
    wire_errors: Annotated[int | None, "Frames that reached it damaged"]


class LossLocationEntry(TypedDict):
    """Where frames went missing, by ports' counters before and after the phase."""

    lost_frames: Annotated[int | None, "As the flows say; null: the transport sees no frames"]
    sender_host: Annotated[int | None, "Sent by our workers and never left by the ports"]
    network: Annotated[
        int | None,
        "Between the ports: lost less both hosts'; where lost is null, counted_in_network",
    ]
    other_traffic: Annotated[
        int | None,
        "Lost between the ports, on the way to one at which frames of other senders took the time "
        "of so many; not in `network`",
    ]
    receiver_host: Annotated[int | None, "Reached the ports and never our workers"]
    wire_errors: Annotated[
        int | None, "Of those in the network: seen by receiving ports as damaged"
    ]
    counted_in_network: Annotated[
        int | None, "All that left by the ports less all that reached them, other traffic included"
    ]
    other_frames: Annotated[int | None, "Frames that are no load: what counters may be off by"]
    consistent: Annotated[
        bool | None,
        "counted_in_network is what is missing on the way less what arrived besides, but for "
        "other frames; false: a contradiction",
    ]
    ports: Annotated[list[LossLocationPort], "Those that lost frames, at most 16"]


class MostDisordered(TypedDict):
    """The flow whose frames were most out of order."""

    src: Annotated[str, "Port"]
    dst: Annotated[str, "Port"]
    reordered_percent: Annotated[float, "Of 100 delivered"]
    extent_max: Annotated[int, "Its max extent"]


class ReorderingEntry(TypedDict):
    """How frames were out of order; nulls where they are not seen."""

    reordered_percent: Annotated[float | None, "RFC 4737's ratio: reordered of 100 delivered"]
    three_reordered_percent: Annotated[float | None, "3-reordered (RFC 4737) of 100 delivered"]
    extent_mean: Annotated[
        float | None, "RFC 4737's extent, mean of reordered frames; null: there are none"
    ]
    extent_max: Annotated[int | None, "The max extent"]
    worst: Annotated[MostDisordered | None, "The flow with the highest ratio; null: none"]
