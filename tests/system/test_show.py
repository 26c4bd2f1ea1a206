# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark against a switch with known counters: what a user relies on, end to end.

Each lab is shaped by the kernel and counted by it; the benchmark must find this shape, flow by
flow, and agree with the kernel's port counters to the frame. Rates are compared with what was
offered where a shared machine may keep a sender from its schedule, and with the line where the
network decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import labkit
import runs
from switchbench import labs

pytestmark = labkit.needs_lab

TCP_PAYLOAD_OF_LINE = 1448 / 1538  # MTU 1500, IPv4, timestamps
START_SKEW_LIMIT_US = 5000

CONF = yaml.safe_load((labkit.DATA / "show.yaml").read_text())


@pytest.fixture
def kept_lab(request: pytest.FixtureRequest) -> Iterator[labs.Lab]:
    """Yield a lab that stays up around a run, so that its counters can be read before and after."""
    with labkit.kept(request.param) as lab:
        yield lab


def _port_frames(result: runs.Result) -> tuple[Counter[str], Counter[str]]:
    """Return frames that each port sent and received by its records, the guest's own among them."""
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for port in result.records("port"):
        sent[port["port"]] += port["sent_frames"] + port["arp_nd_sent"] + port["probes_sent"]
        received[port["port"]] += (
            port["received_frames"]
            + port["arp_nd_received"]
            + port["probes_received"]
            + port["misdelivered"]
            + port["unexpected"]
        )
    return sent, received


@pytest.mark.parametrize("kept_lab", ["one-switch"], indirect=True)
def test_every_pattern_of_frames_arrives_whole_and_the_kernel_agrees(
    kept_lab: labs.Lab, tmp_path: Path
) -> None:
    before = labkit.counters(kept_lab)
    result = runs.run(tmp_path, CONF["every pattern of frames"])
    truth = labkit.subtracted(labkit.counters(kept_lab), before)
    assert result.status == 0, result.errors
    for trial in result.summary["trials"]:
        assert trial["offered_frames"] > 0
        assert trial["delivered_frames"] == trial["offered_frames"], trial
        assert trial["lost_frames"] == trial["duplicated_frames"] == 0
        assert trial["corrupted_frames"] == trial["misdelivered_frames"] == 0
        assert trial["start_skew_us"] <= START_SKEW_LIMIT_US
        trip, one_way = trial["latency"]["round_trip"], trial["latency"]["one_way"]
        assert trip["lost"] == 0
        assert trip["count"] > 0
        assert one_way["bound"] == 0  # one machine, one clock
        assert 0 < one_way["min"] <= one_way["p50"] <= one_way["max"]
        flows = result.flows(trial)
        for flow in flows:
            offered = flows[0] if trial["parameters"].get("forward") else flow
            ratio = flow.delivered_l1_bps / offered.offered_l1_bps
            assert ratio == pytest.approx(1, abs=0.01), flow.name
    sent, received = _port_frames(result)
    for name, port in truth.items():
        assert port.dropped_from_node == port.dropped_to_node == port.host_dropped == 0
        assert sent[f"{name}:e0"] == port.frames_from_node, name
        assert received[f"{name}:e0"] == port.frames_to_node, name


def test_tcp_gets_what_the_line_can_carry(tmp_path: Path) -> None:
    result = runs.run(tmp_path, CONF["tcp"]).complete
    carried_bps = 100e6 * TCP_PAYLOAD_OF_LINE
    natural = [*result.trials(pattern="pairs"), *result.trials(phase_name="natural")]
    for trial in natural:
        for flow in result.flows(trial):
            assert flow.delivered_payload_bps >= 0.93 * carried_bps, flow.name
            assert flow.delivered_payload_bps <= carried_bps * 1.0002, flow.name
            assert flow.destination["corrupted"] == 0


def test_pairs_across_the_trunk_share_its_eight_links(tmp_path: Path) -> None:
    result = runs.run(tmp_path, CONF["a trunk"])
    across = [t for t in result.summary["trials"] if t["parameters"]["partners"] == "across"]
    assert len(across) == 4
    for trial in across:
        pairs = trial["parameters"]["count"]
        share = min(1, 8 / pairs)
        assert trial["flows"] == 2 * pairs
        assert trial["throughput"]["percent_of_line"] / 100 == pytest.approx(share, rel=0.03)
        lost = trial["lost_frames"] / trial["offered_frames"]
        assert lost == pytest.approx(1 - share, abs=0.03), pairs
    (inside,) = [t for t in result.summary["trials"] if t["parameters"]["partners"] == "inside"]
    assert inside["throughput"]["percent_of_line"] == pytest.approx(100, rel=0.03)


def test_a_chain_is_as_fast_as_its_slowest_link(tmp_path: Path) -> None:
    result = runs.run(tmp_path, CONF["a chain"])
    (trial,) = result.trials(pattern="chain")
    flows = {flow.source["dst"]: flow for flow in result.flows(trial)}
    share = flows["node8:e0"].delivered_payload_bps / (100e6 * TCP_PAYLOAD_OF_LINE)
    assert 0.44 <= share <= 0.5 * 1.005  # losses before the slow link cost some of its time


def test_64_ranks_in_four_processes_lose_nothing(tmp_path: Path) -> None:
    result = runs.run(tmp_path, CONF["64 ranks"], timeout_s=900).complete
    trials = result.trials(pattern="aapc")
    assert len(trials) == 63
    assert sum(trial["offered_frames"] for trial in trials) > 0
    assert sum(trial["lost_frames"] for trial in trials) == 0
    assert all(trial["cpu_s"] is not None for trial in trials)
