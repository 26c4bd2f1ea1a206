# SPDX-License-Identifier: BSD-3-Clause
"""Transports side by side: what is compared with what, the ratios, the table, verbs' records."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from recorded import fed
from schemas import validate_summary
from switchbench.analysis import measures
from switchbench.base.model import Load, Run, Trial
from switchbench.records.rows import Packets
from switchbench.render.terminal import SummaryPrinter
from synthetic import (
    about,
    flows_of,
    frame_side,
    hello,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)

SITE = make_site(2)
ENDS = ("node1:e0", "node2:e0")
MEGABYTE = 10**6
CPU = {"cpu_span_s": 2.0, "cpus": 2, "cpu_s": 0.25}  # each machine: span x cpus - idle


def message_trial(number: int, transport: str, **changes: Any) -> Trial:
    """A trial of messages of 64 KiB as fast as it goes."""
    given = {"sizes": (65536,), "size_unit": "message", "load": Load(percent=100.0), "flows": 1}
    return make_trial(SITE, number, transport=transport, **(given | changes))


def frame_trial(number: int, **changes: Any) -> Trial:
    """A trial of frames, one flow."""
    return make_trial(SITE, number, **({"flows": 1} | changes))


def measured(trial: Trial, mbps: float, busy_s: float = 1.0) -> list[dict[str, Any]]:
    """The records of a trial of one flow at such a rate over one second."""
    place = {"trial": trial.id, "repeat": trial.repeat}
    if trial.transport == "dpdk":
        frames = round(mbps * MEGABYTE / 8 / 1500)
        sides = [frame_side(side, *ENDS, frames, frames, **place)
                 for side in ("source", "destination")]  # fmt: skip
    else:
        sent = round(mbps * MEGABYTE / 8)
        sides = [tcp_side(side, *ENDS, sent, sent, **place) for side in ("source", "destination")]
    cpu = CPU | {"cpu_idle_s": 4.0 - busy_s}
    return [
        *sides,
        port_record(ENDS[0], **place),
        *(phase_record(node, **place, **cpu) for node in ("node1", "node2")),
        *(trial_record(node, **place) for node in ("node1", "node2")),
    ]


def summarise(run: Run, rates: dict[int, float], worker: str = "sleep") -> dict[str, Any]:
    """The summary of trials at these rates, right by its schema."""
    records = [hello("node1", worker=worker), hello("node2", worker=worker)]
    for trial in run.trials:
        records += measured(trial, rates[trial.id])
    summary = fed(run, records)
    result = summary.finish(about(), [])
    validate_summary(result)
    return result


def printed(summary: dict[str, Any], width: int = 140) -> str:
    """The table as text."""
    stream = io.StringIO()
    SummaryPrinter(summary, Console(file=stream, width=width)).print("results/x")
    return stream.getvalue()


def by_name(comparison: dict[str, Any]) -> dict[str, Any]:
    return {one["transport"]: one for one in comparison["transports"]}


def test_three_transports_in_turns() -> None:
    """Payload by tcp's, means over the repeats, the bounds by single turns."""
    trials = []
    for repeat in (0, 1):
        for i, make in enumerate((message_trial, message_trial, frame_trial)):
            number = 3 * repeat + i
            name = {"transport": ("tcp", "verbs")[i]} if i < 2 else {}
            trials.append(make(number, **name, repeat=repeat))
    rates = {0: 80.0, 1: 90.0, 2: 96.0, 3: 100.0, 4: 95.0, 5: 96.0}
    summary = summarise(make_run(SITE, *trials), rates)
    (comparison,) = summary["comparisons"]
    assert (comparison["baseline"], comparison["message_bytes"]) == ("tcp", 65536)
    assert (comparison["alternated"], comparison["reason"]) == (True, None)
    tcp, verbs, dpdk = (by_name(comparison)[name] for name in ("tcp", "verbs", "dpdk"))
    assert tcp["throughput"]["mean"] == pytest.approx(90.0)
    assert (verbs["throughput"]["min"], verbs["throughput"]["max"]) == (90.0, 95.0)
    assert verbs["ratio"]["throughput"] == pytest.approx(92.5 / 90)
    assert verbs["ratio"]["throughput_min"] == pytest.approx(95 / 100)
    assert verbs["ratio"]["throughput_max"] == pytest.approx(90 / 80)
    assert tcp["ratio"]["throughput"] == 1.0
    assert (verbs["equal_size"], dpdk["equal_size"], dpdk["message_bytes"]) == (True, False, 1500)
    assert (verbs["trials"], verbs["repeats"]) == ([1, 4], 2)


def test_cpu_is_the_machines_and_says_what_the_processes_had() -> None:
    """Kernel and softirq are in: elapsed less idle; the nodes' own time stands beside it."""
    trials = (message_trial(0, "tcp"), message_trial(1, "verbs"))
    summary = summarise(make_run(SITE, *trials), {0: 80.0, 1: 40.0}, worker="poll")
    (comparison,) = summary["comparisons"]
    tcp, verbs = comparison["transports"]
    # Both nodes are on one machine, which was busy for 1 s: 80 Mbit are 0.01 GB.
    assert tcp["cpu_s_per_gb"] == pytest.approx(100.0)
    assert tcp["cpu_process_s_per_gb"] == pytest.approx(50.0)
    assert verbs["ratio"]["cpu_s_per_gb"] == pytest.approx(2.0)
    assert tcp["polling"] is True
    assert "polling: each worker takes a whole core" in printed(summary)
    row = next(line for line in printed(summary).splitlines() if " tcp " in line and "yes" in line)
    assert "100.0" in row


def test_equal_frames_win_over_larger_ones() -> None:
    """Frames whose payload is the message's are the ones to compare with."""
    sizes = {"sizes": (1500,), "flows": 1}
    trials = (
        message_trial(0, "tcp", **sizes),
        message_trial(1, "tcp"),
        frame_trial(2, load=Load(percent=50.0)),
        frame_trial(3),
    )
    summary = summarise(make_run(SITE, *trials), {0: 70.0, 1: 80.0, 2: 45.0, 3: 90.0})
    small, large = summary["comparisons"]
    assert [small["message_bytes"], large["message_bytes"]] == [1500, 65536]
    assert by_name(small)["dpdk"]["equal_size"] is True
    assert by_name(large)["dpdk"]["equal_size"] is False
    # tcp went as fast as it could: so it is compared with dpdk's greatest load.
    assert by_name(small)["dpdk"]["trials"] == [3]
    assert "sizes differ: a frame carries 1500 B of payload" in printed(summary)


def test_same_loads_are_compared() -> None:
    """A load that both had wins over the greatest."""
    half, most = Load(percent=50.0), Load(percent=95.0)
    trials = (
        message_trial(0, "tcp", load=half),
        message_trial(1, "tcp", load=most),
        frame_trial(2, load=half),
        frame_trial(3, load=most),
    )
    summary = summarise(make_run(SITE, *trials), {0: 45.0, 1: 85.0, 2: 46.0, 3: 90.0})
    found = [[one["trials"] for one in entry["transports"]] for entry in summary["comparisons"]]
    assert found == [[[0], [2]], [[1], [3]]]


def test_the_best_of_tcp_is_the_baseline() -> None:
    """Bypass has to beat the best that tcp did, not the first thing tried."""
    one = {"partners": "neighbours", "tcp.streams_per_flow": 1}
    four = {"partners": "neighbours", "tcp.streams_per_flow": 4}
    trials = (
        message_trial(0, "tcp", parameters=one),
        message_trial(1, "tcp", parameters=four),
        message_trial(2, "verbs"),
    )
    summary = summarise(make_run(SITE, *trials), {0: 50.0, 1: 80.0, 2: 100.0})
    (comparison,) = summary["comparisons"]
    assert comparison["parameters"] == {"partners": "neighbours"}
    first, _second, verbs = comparison["transports"]
    assert verbs["ratio"]["throughput"] == pytest.approx(1.25)
    assert first["options"] == {"tcp.streams_per_flow": 1}
    assert first["ratio"]["throughput"] == pytest.approx(0.625)
    assert "streams per" in printed(summary, 200)


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern": {"name": "pairs", "partners": "halves"}},
        {"parts": (replace(make_trial(SITE).parts[0], ranks=SITE.ports[::-1]),)},
        {"traffic": "transfer"},
        {"seed": 9},
        {"sizes": (4096,)},
    ],
)
def test_other_matrices_are_not_compared(changes: dict[str, Any]) -> None:
    """Another pattern, order of ports, kind of traffic, seed or message: another thing."""
    trials = (message_trial(0, "tcp"), message_trial(1, "verbs", **changes))
    assert summarise(make_run(SITE, *trials), {0: 80.0, 1: 80.0})["comparisons"] == []


def test_one_transport_is_no_comparison() -> None:
    summary = summarise(make_run(SITE, message_trial(0, "tcp")), {0: 80.0})
    assert summary["comparisons"] == []
    assert "side by side" not in printed(summary)


def test_not_in_turns_is_said() -> None:
    """By the order in which they really ran, with the run's reason."""
    trials = [message_trial(i, "tcp", repeat=i) for i in (0, 1)]
    trials += [frame_trial(2 + i, repeat=i) for i in (0, 1)]
    rates = dict.fromkeys(range(4), 80.0)
    for reason in (None, "dpdk took the ports"):
        run = make_run(SITE, *trials, not_alternated=reason)
        summary = summarise(run, rates)
        (comparison,) = summary["comparisons"]
        assert comparison["alternated"] is False
        assert comparison["reason"] == (
            reason or "the transports did not take turns repeat by repeat"
        )
        assert comparison["reason"] in printed(summary)


def test_table_by_hand() -> None:
    """The columns: payloads, ratios, CPU, ratios; narrow terminals lose CPU first."""
    trials = (message_trial(0, "tcp"), frame_trial(1), message_trial(2, "verbs"))
    summary = summarise(make_run(SITE, *trials), {0: 80.0, 1: 96.0, 2: 88.0})
    text = printed(summary)
    assert "Transports side by side, payload, one way; ÷ is by tcp's" in text
    table = text.split("Transports side by side")[1]
    rows = [line.split() for line in table.splitlines() if line.startswith("pairs neighbours")]
    assert [row[3] for row in rows] == ["tcp", "dpdk", "verbs"]
    # The mean over repeats, by tcp's, CPU, by tcp's.
    assert [row[-4:] for row in rows] == [  # one repeat has no min and max
        ["80.00", "1.000", "100.0", "1.000"],
        ["96.00", "1.200", "83.33", "0.833"],
        ["88.00", "1.100", "90.91", "0.909"],
    ]
    assert "one repetition of each, one after the other" in text
    for width in (80, 100):
        narrow = printed(summary, width).split("Transports side by side")[1]
        rows = [line for line in narrow.splitlines() if line.startswith("pairs neighbours")]
        assert ["1.200" in rows[1], "1.100" in rows[2]] == [True, True]
        assert max(map(len, rows)) <= width


def test_an_unknown_rate_has_no_ratio() -> None:
    """A transport that left no record of its receivers is there, with nothing said."""
    trials = (message_trial(0, "tcp"), message_trial(1, "verbs"))
    records = measured(trials[0], 80.0) + [
        record for record in measured(trials[1], 80.0) if record.get("side") != "destination"
    ]
    summary = fed(make_run(SITE, *trials), records)
    result = summary.finish(about(), [])
    validate_summary(result)
    verbs = result["comparisons"][0]["transports"][1]
    assert verbs["throughput"]["mean"] is None
    assert verbs["ratio"] == {
        "throughput": None,
        "throughput_min": None,
        "throughput_max": None,
        "cpu_s_per_gb": None,
    }


def test_frames_that_all_were_lost_are_not_compared() -> None:
    """Nothing says how much payload each of them would have had."""
    trials = (message_trial(0, "tcp"), message_trial(1, "verbs"), frame_trial(2))
    summary = summarise(make_run(SITE, *trials), {0: 80.0, 1: 90.0, 2: 0.0})
    (comparison,) = summary["comparisons"]
    assert list(by_name(comparison)) == ["tcp", "verbs"]


# --- the records of verbs ------------------------------------------------------------------------

OPENED = {
    "type": "port-open",
    "node": "node1",
    "network": "lab",
    "transport": "verbs",
    "driver": "mlx5_core",
    "line_rate_bps": 100_000_000,
    "rdma": "mlx5_0/1",
    "link_layer": "Ethernet",
    "gid": "::ffff:192.0.2.1",
    "gid_index": 3,
    "mtu": 1024,
}
QUEUES = {
    "depth": 128, "queue_pairs": 2, "signal_every": 32, "inline_bytes": 220, "path_mtu_bytes": 1024,
    "gid_index": 3, "reused_queue_pairs": 1, "setup_us": 900.0, "queue_pair_bytes": 4096,
    "credit_waits": 7,
}  # fmt: skip


def test_records_of_verbs() -> None:
    """Lost messages, the devices' counters, settings as they took effect, the opened device."""
    trial = message_trial(0, "verbs", options={"service": "ud"})
    counters = {"retransmitted": 3, "out_of_sequence": 0, "not_ready": 1, "cnp_sent": None}
    records = [
        *(OPENED | {"node": end[:5], "port": end} for end in ENDS),
        tcp_side("source", *ENDS, 65536 * 100, 65536 * 100, messages=100, measures=QUEUES),
        tcp_side(
            "destination",
            *ENDS,
            65536 * 98,
            65536 * 98,
            messages=98,
            reordered=2,
            measures={"queue_pair_bytes": 9000.0},
        ),
        *(port_record(end, **counters, variant="ud send, exchange, poll") for end in ENDS),
        *(phase_record(node) for node in ("node1", "node2")),
        *(trial_record(node) for node in ("node1", "node2")),
    ]
    summary = fed(make_run(SITE, trial), records)
    result = summary.finish(about(), [])
    validate_summary(result)
    (entry,) = result["trials"]
    assert (entry["lost_messages"], entry["reordered_messages"]) == (2, 2)
    assert (entry["retransmitted_packets"], entry["receiver_not_ready"]) == (6, 2)
    assert (entry["out_of_sequence_packets"], entry["cnp_sent"]) == (0, None)
    assert entry["lost_frames"] is None
    assert entry["retransmitted_segments"] is None
    assert entry["queue_pairs"] == {
        "depth": 128, "signal_every": 32, "inline_bytes": 220, "path_mtu_bytes": 1024,
        "gid_index": 3, "count": 2, "reused": 1, "bytes_each": 9000, "slowest_setup_us": 900.0,
        "credit_waits": 7,
    }  # fmt: skip
    port = result["ports"][0]
    assert port["rdma"] == {
        "rdma": "mlx5_0/1", "link_layer": "Ethernet", "gid": "::ffff:192.0.2.1", "gid_index": 3,
        "mtu": 1024,
    }  # fmt: skip
    assert port["variants"] == ["ud send, exchange, poll"]
    text = printed(result, 200)
    assert "lost" in text
    assert "retransmitted" in text


@pytest.mark.parametrize(("first", "second"), [(100, None), (None, 98), (None, None)])
def test_messages_that_one_end_did_not_count_are_not_lost(
    first: int | None, second: int | None
) -> None:
    records = [
        tcp_side("source", *ENDS, 10**6, 10**6, messages=first),
        tcp_side("destination", *ENDS, 10**6, 10**6, messages=second),
        *(phase_record(node) for node in ("node1", "node2")),
        *(trial_record(node) for node in ("node1", "node2")),
    ]
    summary = fed(make_run(SITE, message_trial(0, "verbs")), records)
    (entry,) = summary.finish(about(), [])["trials"]
    assert entry["lost_messages"] is None


def test_tcp_has_none_of_them() -> None:
    summary = summarise(make_run(SITE, message_trial(0, "tcp")), {0: 80.0})
    (entry,) = summary["trials"]
    names = ("lost_messages", "retransmitted_packets", "cnp_sent", "queue_pairs")
    assert [entry[name] for name in names] == [None] * 4
    assert summary["ports"][0]["rdma"] is None


@pytest.mark.parametrize(
    ("options", "opened", "packet", "message"),
    [
        ({"service": "rc", "operation": "send"}, {}, 82, 0),
        ({"service": "rc", "operation": "send"}, {"gid": "2001:db8::1"}, 102, 0),
        ({"service": "rc", "operation": "write"}, {}, 82, 20),
        ({"service": "uc", "operation": "write"}, {}, 82, 20),
        ({"service": "rc", "operation": "send"}, {"mtu": None, "gid": None}, 82, 0),
        ({"service": "ud", "operation": "send"}, {}, 90, 0),
        ({"service": "rc", "operation": "send"}, {"link_layer": "InfiniBand"}, 26, 0),
        ({"service": "ud", "operation": "send"}, {"link_layer": "InfiniBand"}, 34, 0),
    ],
)
def test_what_a_packet_takes_on_the_line(
    options: dict[str, Any], opened: dict[str, Any], packet: int, message: int
) -> None:
    """By service, operation, link layer and address family."""
    shape = measures.packet_shape(options, OPENED | opened, None)
    assert shape == (1024, packet, message)
    assert measures.packet_shape(options, OPENED | opened, 4096.0).path_mtu_bytes == 4096


def bits_of(payload: int, messages: int, **known: int) -> float:
    """Layer-1 bits of messages in packets of 1,024 bytes."""
    counts = {"window_payload_bytes": payload, "window_messages": messages} | known
    flows = flows_of(
        {"type": "flow", "side": "destination", "src": "a", "dst": "b"} | counts,
    )
    packets = Packets(*np.array([[1024.0], [82.0], [20.0]]))
    (bits,) = measures.line_bits(replace(flows, packets=packets), "received")
    return float(bits)


@pytest.mark.parametrize(("size", "packets"), [(1, 1), (1024, 1), (1025, 2), (65536, 64)])
def test_line_bits_of_messages(size: int, packets: int) -> None:
    """Each packet has its headers, the last one of a message may be short."""
    assert bits_of(10 * size, 10) == 8 * 10 * (size + packets * 82 + 20)
    assert bits_of(0, 0) == 0
    assert bits_of(10 * size, 10, window_frames=10) == bits_of(10 * size, 10)  # half known
    assert math.isclose(65536 / (65536 + 64 * 82), 0.926, abs_tol=0.001)


def test_line_bits_of_a_message_that_is_not_whole() -> None:
    """4,000 bytes of a message that has not ended are four packets."""
    assert bits_of(4000, 0) == 8 * (4000 + 4 * 82)
