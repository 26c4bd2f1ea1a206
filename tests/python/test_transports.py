# SPDX-License-Identifier: BSD-3-Clause
"""Transports side by side: what is compared with what, the ratios, the table, verbs' records."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rich.console import Console

from recorded import fed
from schemas import validate_summary
from switchbench.analysis import measures
from switchbench.base.model import Load, Trial
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
from test_summary import check

SITE = make_site(2)
CASES = yaml.safe_load((Path(__file__).parent / "data" / "comparisons.yaml").read_text())
ENDS = ("node1:e0", "node2:e0")
MEGABYTE = 10**6
CPU = {"cpu_span_s": 2.0, "cpus": 2, "cpu_s": 0.25}  # each machine: span x cpus - idle


def trial_of(number: int, transport: str, **changes: Any) -> Trial:
    """A trial of one flow: of frames, or of messages of 64 KiB as fast as it goes."""
    if "load" in changes:
        changes["load"] = Load(percent=changes["load"])
    messages = {"sizes": (65536,), "size_unit": "message", "load": Load(percent=100.0)}
    given = {"flows": 1} | (messages if transport != "dpdk" else {}) | changes
    if "sizes" in given:
        given["sizes"] = tuple(given["sizes"])
    return make_trial(SITE, number, transport=transport, **given)


def measured(trial: Trial, mbps: float | None) -> list[dict[str, Any]]:
    """The records of a trial of one flow at such a rate over one second; None: no receiver's."""
    place = {"trial": trial.id, "repeat": trial.repeat}
    frames = trial.transport == "dpdk"
    sent = round((80.0 if mbps is None else mbps) * MEGABYTE / 8 / (1500 if frames else 1))
    made = frame_side if frames else tcp_side
    ends = ("source", "destination") if mbps is not None else ("source",)
    cpu = CPU | {"cpu_idle_s": 3.0}
    return [
        *(made(side, *ENDS, sent, sent, **place) for side in ends),
        port_record(ENDS[0], **place),
        *(phase_record(node, **place, **cpu) for node in ("node1", "node2")),
        *(trial_record(node, **place) for node in ("node1", "node2")),
    ]


def summarise(*trials: Any, worker: str = "sleep", **more: Any) -> dict[str, Any]:
    """The summary of trials (transport, rate, changes), right by its schema."""
    records = [hello("node1", worker=worker), hello("node2", worker=worker)]
    made = []
    for number, (transport, mbps, *changes) in enumerate(trials):
        made.append(trial_of(number, transport, **(changes[0] if changes else {})))
        records += measured(made[-1], mbps)
    result = fed(make_run(SITE, *made, **more), records).finish(about(), [])
    validate_summary(result)
    return dict(result)


def printed(summary: dict[str, Any], width: int = 140) -> str:
    """The table as text."""
    stream = io.StringIO()
    SummaryPrinter(summary, Console(file=stream, width=width)).print("results/x")
    return stream.getvalue()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_side_by_side(case: dict[str, Any]) -> None:
    more = {"not_alternated": case.get("not_alternated")}
    summary = summarise(*case["trials"], worker=case.get("worker", "sleep"), **more)
    for found, wanted in zip(summary["comparisons"], case["expect"], strict=True):
        by_name = {one["transport"]: one for one in reversed(found["transports"])}
        check({**found, **by_name}, wanted)
    text = printed(summary, 200)
    assert ("side by side" in text) == bool(case["expect"])
    assert all(words in text for words in case.get("printed", ()))


def test_other_ports_are_another_thing() -> None:
    site = make_site(2)
    other = replace(make_trial(site).parts[0], ranks=site.ports[::-1])
    assert summarise(["tcp", 80.0], ["verbs", 80.0, {"parts": (other,)}])["comparisons"] == []


@pytest.mark.parametrize("width", [80, 100])
def test_narrow_terminals_lose_cpu_first(width: int) -> None:
    summary = summarise(["tcp", 80.0], ["dpdk", 96.0], ["verbs", 88.0])
    narrow = printed(summary, width).split("Transports side by side")[1]
    rows = [line for line in narrow.splitlines() if line.startswith("pairs neighbours")]
    assert ["1.200" in rows[1], "1.100" in rows[2]] == [True, True]
    assert max(map(len, rows)) <= width


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
