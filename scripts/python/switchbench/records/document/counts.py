# SPDX-License-Identifier: BSD-3-Clause
"""What was counted in a phase."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from .forms import Count, measured


class QueuePairs(TypedDict):
    """verbs: the queue pairs of the phase's sources, settings as they took effect."""

    depth: Annotated[
        float | None,
        "Messages posted and not completed, by queue pair; null: not the same on all flows",
    ]
    signal_every: Annotated[float | None, "Every so many-th message is signalled"]
    inline_bytes: Annotated[float | None, "Messages up to so many bytes went inline"]
    path_mtu_bytes: Annotated[float | None, "Payload of a full packet"]
    gid_index: Annotated[float | None, "Entry in the port's GID table"]
    count: Annotated[float | None, "How many there were"]
    reused: Annotated[float | None, "Of these kept from an earlier phase"]
    bytes_each: Annotated[
        float | None,
        "Registered memory and queues of one end of one, where it is the most: a receiver has the "
        "ring",
    ]
    slowest_setup_us: Annotated[
        float | None, "Longest time until a flow's queue pairs were connected"
    ]
    credit_waits: Annotated[float | None, "How often a sender waited for the receiver's buffers"]


class PlanCounts(TypedDict):
    """What was sent and what arrived."""

    offered_frames: Annotated[Count | None, measured("offered_frames")]
    delivered_frames: Annotated[Count | None, measured("delivered_frames")]
    offered_bytes: Annotated[Count | None, "Payload bytes sent"]
    delivered_bytes: Annotated[Count | None, "Payload bytes verified"]
    lost_frames: Annotated[Count | None, measured("lost_frames")]
    host_dropped_frames: Annotated[Count | None, measured("host_dropped_frames")]


class Counts(PlanCounts):
    """What became of the frames or bytes of a phase."""

    offered_messages: Annotated[Count | None, "Whole messages sent; null for frames"]
    delivered_messages: Annotated[Count | None, "Whole messages verified; null for frames"]
    loss_percent: Annotated[float | None, measured("loss_percent")]
    worst_loss_percent: Annotated[float | None, "The same of the worst flow"]
    duplicated_frames: Annotated[Count | None, measured("duplicated_frames")]
    reordered_frames: Annotated[Count | None, measured("reordered_frames")]
    late_frames: Annotated[Count | None, measured("late_frames")]
    forged_frames: Annotated[
        Count | None, "Frames with a number that their sender can't have reached: not counted"
    ]
    corrupted_frames: Annotated[Count | None, measured("corrupted_frames")]
    corrupted_bytes: Annotated[Count | None, "Bytes other than expected; null for frames"]
    misdelivered_frames: Annotated[Count | None, measured("misdelivered_frames")]
    unexpected_frames: Annotated[Count | None, "Frames that are not this phase's at all"]
    arp_nd_frames: Annotated[
        Count | None,
        "Learning frames, ARP and neighbour discovery of our ports, not part of the load",
    ]
    pause_frames: Annotated[Count | None, measured("pause_frames")]
    retransmitted_segments: Annotated[Count | None, measured("retransmitted_segments")]


class RdmaCounts(TypedDict):
    """What only verbs has; null for other transports."""

    lost_messages: Annotated[Count | None, measured("lost_messages")]
    duplicated_messages: Annotated[
        Count | None, "verbs without acknowledgement: messages that came once more"
    ]
    reordered_messages: Annotated[
        Count | None, "verbs without acknowledgement: messages behind a later one"
    ]
    retransmitted_packets: Annotated[Count | None, measured("retransmitted_packets")]
    out_of_sequence_packets: Annotated[
        Count | None, "RDMA packets that came out of order, by the devices' counters"
    ]
    receiver_not_ready: Annotated[
        Count | None, "Receiver-not-ready answers, by the devices' counters"
    ]
    cnp_sent: Annotated[
        Count | None, "Congestion notification packets that the receivers' devices sent"
    ]
    cnp_handled: Annotated[
        Count | None, "Congestion notification packets on which senders' devices slowed down"
    ]
    ecn_marked_packets: Annotated[
        Count | None, "RoCE packets that a switch had marked (ECN: congestion experienced)"
    ]
    queue_pairs: Annotated[QueuePairs | None, "Of the phase's sources; null for other transports"]
