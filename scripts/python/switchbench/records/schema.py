# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a results directory: each column with its name, kind, unit, meaning and null rule.

`switchbench run` writes them, all other commands read them. The page on results, the code book and
the checks of what is read are made of this module. Null is what could not be observed, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

FORM: Final = "switchbench-results/1"  # in each file's metadata

MOST: Final = (1 << 63) - 1
GREATEST: Final = 1e15  # of figures: products of a few of them stay finite
LONGEST_TEXT: Final = 1 << 16

_NEVER = "never"
_UNOBSERVED = "not observed"
_NO_FRAMES = "tcp and verbs, which see no frames; or no report of this end"
_NO_REPORT = "no report of this end"


@dataclass(frozen=True)
class ResultColumn:
    """One column of a table."""

    name: str
    kind: str  # count, whole, number, text, flag, counts (a list of them)
    unit: str
    meaning: str
    null: str = _UNOBSERVED  # when it is null
    key: str = ""  # as the node's record has it, where that is another name

    @property
    def is_number(self) -> bool:
        """Return whether rows have it as a float, NaN where it is null."""
        return self.kind in ("count", "whole", "number")


def _phase_keys(network: bool = True) -> list[ResultColumn]:
    keys = [
        ResultColumn("trial", "count", "", "Number of the trial, as in plan.json", _NEVER),
        ResultColumn("repeat", "count", "", "Repeat of its test, from 0", _NEVER),
        ResultColumn("network", "text", "", "Network that the ranks are in", _NEVER),
        ResultColumn(
            "phase", "whole", "", "Phase of the trial, from 0; -1: connectivity check", _NEVER
        ),
    ]
    return [key for key in keys if network or key.name != "network"]


def _ends() -> list[ResultColumn]:
    return [
        ResultColumn("src", "text", "", "Port that sends", _NEVER),
        ResultColumn("dst", "text", "", "Port that receives", _NEVER),
    ]


_BOTH_ENDS = (  # {}: sent, or received
    ("frames", "count", "frames", "Frames {}, whole trial", _NO_FRAMES),
    ("frame_bytes", "count", "B", "Bytes of these frames, FCS included", _NO_FRAMES),
    ("payload_bytes", "count", "B", "Payload {}, whole trial", _NO_REPORT),
    ("messages", "count", "messages", "Messages {}, whole trial", "frames are sent"),
    ("window_frames", "count", "frames", "Frames {} in this end's window", _NO_FRAMES),
    ("window_frame_bytes", "count", "B", "Bytes of these frames, FCS included", _NO_FRAMES),
    ("window_payload_bytes", "count", "B", "Payload {} in this end's window", _NO_REPORT),
    ("window_messages", "count", "messages", "Messages {} in this end's window",
     "frames are sent"),
    ("window_ns", "count", "ns", "Length of this end's window", _NO_REPORT),
    ("first_run_ns", "whole", "ns", "Run time of the first frame or message", "there was none"),
    ("last_run_ns", "whole", "ns", "Run time of the last frame or message", "there was none"),
    ("mss_bytes", "number", "B", "Payload of a full segment (TCP_INFO)", "not tcp"),
    ("segment_overhead_bytes", "number", "B", "Layer-1 bytes beside it in a segment", "not tcp"),
    ("path_mtu_bytes", "number", "B", "Payload of a full packet", "not verbs"),
    ("queue_pair_bytes", "number", "B", "Memory of each queue pair", "not verbs"),
    ("slots", "number", "", "Receive buffers of the queue pair", "not verbs"),
    ("streams", "number", "", "Connections of the flow", "not tcp"),
)  # fmt: skip
_SOURCE = (
    ("intended", "count", "frames or B", "By load and time", "a schedule, or no report"),
    ("retransmitted_segments", "number", "segments", "Retransmitted (TCP_INFO)", "not tcp"),
    ("depth", "number", "work requests", "Depth of the queue pair", "not verbs"),
    ("signal_every", "number", "work requests", "From one completion to the next", "not verbs"),
    ("inline_bytes", "number", "B", "Sent inline at most", "not verbs"),
    ("gid_index", "number", "", "Index of the GID in use", "not verbs"),
    ("queue_pairs", "number", "", "Queue pairs of the flow", "not verbs"),
    ("reused_queue_pairs", "number", "", "Of them from an earlier phase", "not verbs"),
    ("setup_us", "number", "us", "To set the slowest of them up", "not verbs"),
    ("credit_waits", "number", "", "How often a sender waited for credit", "not verbs"),
    ("retry", "number", "", "Retries after a timeout", "not verbs"),
    ("rnr_retry", "number", "", "Retries of a receiver that is not ready", "not verbs"),
    ("timeout_us", "number", "us", "Until a packet is retransmitted", "not verbs"),
    ("rtt_us", "number", "us", "Smoothed round trip (TCP_INFO)", "not tcp"),
    ("min_rtt_us", "number", "us", "Minimum round trip (TCP_INFO)", "not tcp"),
    ("segments_sent", "number", "segments", "Sent (TCP_INFO)", "not tcp"),
    ("delivery_rate_bps", "number", "bit/s", "As the kernel estimates it (TCP_INFO)", "not tcp"),
    ("send_buffer_bytes", "number", "B", "Send buffer of the connections", "not tcp"),
    ("late_frames", "number", "frames", "Sent later than paced, by all flows of the port",
     _UNOBSERVED),
)  # fmt: skip
_DESTINATION = (
    ("duplicated", "count", "frames or messages", "Came once more", "not numbered"),
    ("reordered", "count", "frames or messages", "Came behind a later one (RFC 4737)",
     "not numbered"),
    ("late", "count", "frames", "Too far behind to be judged; counted as lost", "not numbered"),
    ("forged", "count", "frames", "Bad signature", _NO_FRAMES),
    ("corrupted", "count", "frames, tcp: B", "Bad checksum or content", _NO_REPORT),
    ("out_of_order_segments", "number", "segments", "As the kernel counts them", "not tcp"),
    ("receive_buffer_bytes", "number", "B", "Receive buffer of the connections", "not tcp"),
    ("segments_received", "number", "segments", "Received (TCP_INFO)", "not tcp"),
    ("missed_messages", "number", "messages", "Numbers that never came", "not verbs"),
    ("numbers", "number", "frames", "Highest sequence number that came, plus 1", _UNOBSERVED),
    ("gap_ns", "number", "ns", "Longest gap between arrivals that lost frames fell into",
     _UNOBSERVED),
    ("learning_late", "number", "frames", "Learning frames sent later than paced", _UNOBSERVED),
    ("extent_sum", "count", "frames", "Sum of the reordering extents (RFC 4737)", "in order"),
    ("extent_max", "count", "frames", "Maximum reordering extent (RFC 4737)", "in order"),
    ("three_reordered", "count", "frames", "3-reordered (RFC 4737)", "in order"),
)  # fmt: skip


def _flow_columns() -> list[ResultColumn]:
    both = [
        ResultColumn(f"{verb}_{name}", kind, unit, meaning.format(verb), null, name)
        for verb in ("sent", "received")
        for name, kind, unit, meaning, null in _BOTH_ENDS
    ]
    return [
        *_phase_keys(),
        *_ends(),
        ResultColumn("source_reported", "flag", "", "The source's node told of it", _NEVER),
        ResultColumn("destination_reported", "flag", "", "The destination's node did", _NEVER),
        ResultColumn("role", "text", "", "generate; forward; copy of another flow", _NO_REPORT),
        *both,
        *(ResultColumn(*one) for one in (*_SOURCE, *_DESTINATION)),
    ]  # fmt: skip


_PORT = (
    ("sent_frames", "count", "frames", "Sent, of all its flows"),
    ("received_frames", "count", "frames", "Received, of all its flows, good or not"),
    ("hardware_sent", "count", "frames", "Sent by the device's counter"),
    ("hardware_received", "count", "frames", "Received by the device's counter"),
    ("misdelivered", "count", "frames", "Of this run, for other ports"),
    ("unexpected", "count", "frames", "Of other senders"),
    ("arp_nd_sent", "count", "frames", "ARP and neighbour discovery, sent"),
    ("arp_nd_received", "count", "frames", "ARP and neighbour discovery, received"),
    ("send_refused", "count", "frames", "That the device did not take"),
    ("probes_sent", "count", "frames", "Latency probes and answers sent"),
    ("probes_received", "count", "frames", "Latency probes and answers received"),
    ("dropped_receive", "count", "frames", "Dropped in this host, receiving"),
    ("dropped_send", "count", "frames", "Dropped in this host, sending"),
    ("no_carrier", "count", "frames", "Of hardware_sent dropped: the cable had no carrier"),
    ("errors", "count", "frames", "Received with an error"),
    ("pause", "count", "frames", "PAUSE frames received"),
    ("tag", "whole", "", "Of the load's frames: a capture tells phases apart by it"),
    ("variant", "text", "", "Hot paths chosen; tcp: the congestion control"),
    ("start_run_ns", "whole", "ns", "Run time at which it began"),
    ("stop_run_ns", "whole", "ns", "Run time at which it ended"),
    ("retransmitted", "count", "packets", "RDMA device: retransmitted"),
    ("out_of_sequence", "count", "packets", "RDMA device: out of sequence"),
    ("not_ready", "count", "", "RDMA device: receiver-not-ready acknowledgements"),
    ("cnp_sent", "count", "packets", "RDMA device: congestion notifications sent"),
    ("cnp_handled", "count", "packets", "RDMA device: congestion notifications handled"),
    ("ecn_marked", "count", "packets", "RDMA device: marked by ECN"),
)  # fmt: skip
_NODE = (
    ("name", "text", "", "What the pattern calls the phase"),
    ("state", "text", "", "complete, stopped, flooded or unreachable"),
    ("drained", "flag", "", "false: the drain's limit came before silence"),
    ("start_run_ns", "whole", "ns", "Agreed start, run time"),
    ("window_ns", "count", "ns", "Agreed window"),
    ("elapsed_ns", "whole", "ns", "Start to the slowest receiver's last byte"),
    ("start_skew_us", "number", "us", "Between the first and the last start of all ranks"),
    ("stop_skew_us", "number", "us", "Between the first and the last stop of all ranks"),
    ("skew_bound_us", "number", "us", "Uncertainty of both; null: no common clock"),
    ("cpu_span_s", "number", "s", "How long CPU time was counted"),
    ("cpu_s", "number", "s", "CPU time of the node's process"),
    ("cpu_idle_s", "number", "s", "Idle time of all CPUs of the machine"),
    ("cpus", "count", "", "CPUs of the machine"),
    ("cycles_per_frame", "number", "cycles", "CPU time of the process by frame"),
)  # fmt: skip
_CLOCK = (
    ("clock_offset_ns", "whole", "ns", "Run time - local clock in the middle of the window",
     "not known", "offset_ns"),
    ("clock_shift_ns", "whole", "ns", "By how much that is more than what the phase ran with",
     "not known", "shift_ns"),
    ("clock_bound_ns", "count", "ns", "Uncertainty of clock_offset_ns", "not known", "bound_ns"),
    ("maxerror_ns", "count", "ns", "ptp: maximum error as the kernel says", "not ptp"),
    ("esterror_ns", "count", "ns", "ptp: estimated error as the kernel says", "not ptp"),
)  # fmt: skip
_TIMES = (
    ("kind", "text", "", "one_way, ipdv, round_trip, pingpong; execution: repetitions of a rank, "
     "which is src and dst", _NEVER),
    ("count", "count", "", "Times counted; execution: batches of repetitions", _NEVER),
    ("sum_ns", "count", "ns", "Their sum; execution: of all repetitions", _NEVER),
    ("min_ns", "count", "ns", "Minimum", "there is none"),
    ("max_ns", "count", "ns", "Maximum", "there is none"),
    ("overflow", "count", "", "Times of 2^40 ns and more", _UNOBSERVED),
    ("lost", "count", "", "Sent and never back", "nothing was to come back"),
    ("bound_ns", "count", "ns", "one_way: what the two ends' clocks may differ by", "not known"),
    ("repetitions", "count", "", "execution: repetitions measured", "another kind"),
    ("verified", "count", "", "execution: repetitions whose result was right", "not computed"),
    ("bucket", "counts", "", "Numbers of buckets, ascending (doc/reference/latency.md)", _NEVER),
    ("bucket_count", "counts", "", "Times in each of these buckets", _NEVER),
)  # fmt: skip
_EVENT = (
    ("type", "text", "", "Of the record, as doc/reference/node-protocol.md has it", _NEVER),
    ("node", "text", "", "Node that told of it", "it is the command's own"),
    ("trial", "count", "", "Trial", "of the run as a whole"),
    ("repeat", "count", "", "Repeat", "of the run as a whole"),
    ("network", "text", "", "Network", "of no network"),
    ("phase", "whole", "", "Phase; -1: the connectivity check", "of no phase"),
    ("port", "text", "", "Port", "of no port"),
    ("text", "text", "", "In words", "the type says all"),
    ("details", "text", "", "All else of the record, as JSON", "there is nothing else"),
)  # fmt: skip
_SAMPLE = (
    ("src", "count", "", "Rank that sent", _NEVER),
    ("dst", "count", "", "Rank that sent back", _NEVER),
    ("size", "count", "B", "Of the message", _NEVER),
    ("begun_us", "count", "us", "Since the phase's start", _NEVER),
    ("time_ns", "count", "ns", "Round trip", _NEVER),
)  # fmt: skip


def _columns(rows: Iterable[tuple[str, ...]]) -> list[ResultColumn]:
    return [ResultColumn(*row) for row in rows]


TABLES: dict[str, tuple[ResultColumn, ...]] = {
    "flows": tuple(_flow_columns()),
    "ports": (
        *_phase_keys(),
        ResultColumn("port", "text", "", "Port", _NEVER),
        *_columns(_PORT),
    ),
    "phases": (
        *_phase_keys(network=False),
        ResultColumn("node", "text", "", "Node that told of the phase", _NEVER),
        *_columns(_NODE),
        *_columns(_CLOCK),
    ),
    "histograms": (*_phase_keys(), *_ends(), *_columns(_TIMES)),
    "intervals": (
        *_phase_keys(),
        *_ends(),
        ResultColumn(
            "from_ms", "number", "ms", "Begin of the span, since the window's opening", _NEVER
        ),
        ResultColumn("to_ms", "number", "ms", "End of the span", _NEVER),
        ResultColumn("payload_bytes", "count", "B", "Payload verified in it", _NEVER),
    ),
    "events": tuple(_columns(_EVENT)),
    "samples": (*_phase_keys(), *_columns(_SAMPLE)),
}
TITLES: dict[str, str] = {
    "flows": "One row for each flow of each phase, both ends together",
    "ports": "One row for each port of each phase: counters of port and host",
    "phases": "One row for each phase and node",
    "histograms": "One row for each distribution of times: of a flow, or of a rank's repetitions",
    "intervals": "One row for each span of a flow's interval results",
    "events": "One row for each thing that a node told once: hello, port, link, error",
    "samples": "One row for each single round trip, where `samples` keeps them",
}
BY_PHASE = ("flows", "ports", "phases", "histograms", "intervals")
MOMENT = ("trial", "repeat", "phase")


@cache
def flow_side(side: str) -> dict[str, str]:
    """Return the columns of one end of a flow, `source` or `destination`, by their keys."""
    prefix, own = {
        "source": ("sent_", ("role", *(row[0] for row in _SOURCE))),
        "destination": ("received_", tuple(row[0] for row in _DESTINATION)),
    }[side]
    return {
        column.key or column.name: column.name
        for column in TABLES["flows"]
        if column.name.startswith(prefix) or column.name in own
    }


@cache
def columns_of(table: str) -> dict[str, ResultColumn]:
    """Return the columns of a table by name."""
    return {column.name: column for column in TABLES[table]}


@cache
def arrow_schema(table: str) -> Any:
    """Return the table's Arrow schema; its fields carry unit, meaning and null rule."""
    import pyarrow as pa

    kinds = {
        "count": pa.int64(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "text": pa.string(),
        "flag": pa.bool_(),
        "counts": pa.list_(pa.int64()),
    }
    fields = [
        pa.field(
            column.name,
            kinds[column.kind],
            nullable=column.null != _NEVER,
            metadata={"unit": column.unit, "meaning": column.meaning, "null": column.null},
        )
        for column in TABLES[table]
    ]
    return pa.schema(fields, metadata={"form": FORM, "table": table})
