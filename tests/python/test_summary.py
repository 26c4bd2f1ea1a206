# SPDX-License-Identifier: BSD-3-Clause
"""The summary of records made by hand, against figures worked out by hand."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from recorded import Feed, fed
from schemas import validate_summary
from switchbench.analysis.transports import series
from switchbench.base.model import Load, Part, Run, Schedule, Site
from switchbench.records.record_forms import DamagedRecord
from synthetic import (
    about,
    frame_side,
    frames_count,
    hello,
    make_run,
    make_site,
    make_trial,
    pair_records,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)

SITE = make_site()


def summarise(records: list[dict[str, Any]], run: Run | None = None, *faults: str) -> Any:
    """The summary, validated against the schema."""
    summary = fed(run or make_run(SITE, make_trial(SITE)), records)
    result = summary.finish(about(), faults)
    validate_summary(result)
    return result


def test_pairs_by_hand() -> None:
    result = summarise(pair_records())
    (entry,) = result["trials"]
    assert result["status"] == "complete"
    assert result["exit_status"] == 0
    # 7,720 and 7,710 frames of 1,500 bytes payload, 1,538 on the line, in one second at 100M.
    assert entry["throughput"] == {
        "layer": "payload",
        "unit": "Mbit/s",
        "min": 92.52,
        "mean": 92.58,
        "max": 92.64,
        "total": 185.16,
        "percent_of_line": pytest.approx((94.98688 + 94.86384) / 2, abs=1e-6),
        "min_percent_of_line": pytest.approx(94.86384, abs=1e-6),
    }
    assert entry["offered_load"] == pytest.approx(94.98688, abs=1e-6)
    assert entry["intended_load"] == 95.0
    assert entry["offered_frames"] == 16000
    assert entry["delivered_frames"] == 15990
    assert entry["lost_frames"] == 10
    assert entry["loss_percent"] == 0.0625
    assert entry["worst_loss_percent"] == 0.125
    assert entry["offered_bytes"] == 24_000_000
    assert entry["delivered_bytes"] == 23_985_000
    assert (entry["duplicated_frames"], entry["reordered_frames"]) == (2, 3)
    assert entry["host_dropped_frames"] == 0
    assert entry["offered_messages"] is None
    assert entry["retransmitted_segments"] is None
    assert entry["slowest"] == {"src": "node2:e0", "dst": "node1:e0"}
    assert (entry["start_skew_us"], entry["stop_skew_us"]) == (120.5, 80.25)
    # 1.5 s of 2 CPUs less 2.5 s idle: once, since both nodes are on one host; 0.023985 GB.
    assert entry["cpu_s"] == 0.5
    assert entry["cpu_s_per_gb"] == pytest.approx(0.5 / 0.023985, rel=1e-6)


def test_pairs_plan_and_ports() -> None:
    result = summarise(pair_records())
    (plan,) = result["plans"]
    assert plan["elapsed_s"] == 1.8
    assert plan["throughput"]["min"] == 92.52
    assert plan["lost_frames"] == 10
    first, second = result["ports"]
    assert first["port"] == "node1:e0"
    assert first["as_destination"]["lost_frames"] == 10
    assert first["as_source"]["lost_frames"] == 0
    assert second["as_source"]["median_percent_of_line"] == pytest.approx(94.86384)
    assert first["slowest_phases"] == [{"trial": 0, "phase": 0}]
    assert first["suspect"] is None


def test_cpu_of_different_machines_adds_up() -> None:
    records = pair_records()
    records[1] = hello("node2", boot="0f1e2d3c4b5a6978")
    assert summarise(records)["trials"][0]["cpu_s"] == 1.0


def test_a_machine_is_known_by_its_boot_not_its_name() -> None:
    records = pair_records()
    records[1] = hello("node2", host="container-2")
    assert summarise(records)["trials"][0]["cpu_s"] == 0.5


def test_without_a_boot_a_machine_is_known_by_its_name() -> None:
    records = pair_records()
    records[0] = hello("node1", boot=None)
    records[1] = hello("node2", boot=None)
    assert summarise(records)["trials"][0]["cpu_s"] == 0.5
    records[1] = hello("node2", boot=None, host="there")
    assert summarise(records)["trials"][0]["cpu_s"] == 1.0


def test_missing_destination_is_unknown_not_zero() -> None:
    records = [
        record
        for record in pair_records()
        if not (record.get("side") == "destination" and record["src"] == "node2:e0")
    ]
    result = summarise(records)
    (entry,) = result["trials"]
    assert entry["offered_frames"] == 16000
    assert entry["delivered_frames"] is None
    assert entry["lost_frames"] is None
    assert entry["duplicated_frames"] is None
    assert entry["throughput"]["total"] is None
    assert entry["throughput"]["min"] == 92.64  # of what was observed
    assert (entry["flows"], entry["flows_observed"]) == (2, 1)
    assert entry["state"] == "partial"
    assert result["status"] == "partial"
    assert result["exit_status"] == 3
    assert result["not_measured"] == ["1 flow has the record of one side only"]


def test_repeats_end_one_by_one() -> None:
    """A record that comes after all nodes have ended its trial is damaged, of that repeat only."""
    trials = [make_trial(SITE), make_trial(SITE, repeat=1)]
    feed = Feed(make_run(SITE, *trials))
    for repeat in (0, 1):
        for record in pair_records():
            if record["type"] != "hello" or repeat == 0:
                feed.take(record | {"repeat": repeat})
    with pytest.raises(DamagedRecord, match="after all nodes have ended trial 0"):
        feed.take(pair_records()[2] | {"repeat": 1})
    result = feed.summary.finish(about(), [])
    assert [(entry["repeat"], entry["lost_frames"]) for entry in result["trials"]] == [
        (0, 10),
        (1, 10),
    ]


def test_corrupted_is_not_lost() -> None:
    records = pair_records()
    records[5] |= {"corrupted": 4}
    (entry,) = summarise(records)["trials"]
    assert entry["corrupted_frames"] == 4
    assert entry["lost_frames"] == 6


def test_nothing_measured_is_failed() -> None:
    result = summarise([hello("node1")], None, "node2 did not answer")
    assert result["status"] == "failed"
    assert result["exit_status"] == 3
    assert result["trials"] == []
    assert result["not_measured"] == ["trial 0 (pairs, dpdk, lab, 2 ranks): nothing measured"]


def test_a_fault_makes_it_partial() -> None:
    result = summarise(pair_records(), None, "interrupted")
    assert (result["status"], result["errors"]) == ("partial", ["interrupted"])


def test_unobserved_host_drops_are_null_and_known_ones_count() -> None:
    records = pair_records()
    records[6] |= {"dropped_receive": None}
    assert summarise(records)["trials"][0]["host_dropped_frames"] is None
    records[7] |= {"dropped_send": 3}
    (entry,) = summarise(records)["trials"]
    assert entry["host_dropped_frames"] == 3
    (limit,) = entry["tester_limited"]
    assert limit == {
        "port": "node2:e0",
        "shortfall_percent": None,
        "dropped_frames": 3,
        "start_delay_ms": None,
        "window_error_percent": None,
        "reason": "3 frames dropped in the host",
    }


def test_offered_below_intended_names_the_host() -> None:
    records = pair_records()
    records[2] |= {"intended": 8200}  # 2.4 %: allowed in the lab, where cores are few
    assert summarise(records)["trials"][0]["tester_limited"] == []
    site = make_site(launch="ssh")
    (entry,) = summarise(records, make_run(site, make_trial(site)))["trials"]
    (limit,) = entry["tester_limited"]
    assert limit["port"] == "node1:e0"
    assert limit["shortfall_percent"] == pytest.approx(100 * 200 / 8200)
    assert limit["reason"] == "offered 2.4 % less than intended"


@pytest.mark.parametrize(
    ("intended", "pauses", "reason"),
    [
        (8200, 1, None),  # the network held it back
        (
            8000 + 2 * 2727,
            2,
            None,
        ),  # each for 65,535 x 512 bit times: 2,727.1 frames of 1,538 bytes
        (8000 + 2 * 2728, 2, "offered 40.5 % less than intended, PAUSE frames received: 2"),
        (80_000, 1, "offered 90.0 % less than intended, PAUSE frames received: 1"),
    ],
)
def test_pause_frames_excuse_what_they_can_explain(
    intended: int, pauses: int, reason: str | None
) -> None:
    records, site = pair_records(), make_site(launch="ssh")
    records[2] |= {"intended": intended}
    records[6] |= {"pause": pauses}
    (entry,) = summarise(records, make_run(site, make_trial(site)))["trials"]
    assert [limit["reason"] for limit in entry["tester_limited"]] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("refused", "came", "more_flows", "limited"),
    [
        (90_000, 5000, 0, []),  # slow both ways
        (90_000, 5500, 0, []),
        (90_000, 7900, 0, ["node2:e0"]),  # it takes all that comes
        (1000, 5000, 0, ["node2:e0"]),  # the host was not ready to send
        (90_000, 5000, 1, ["node2:e0"]),  # two send to it: more than its line
    ],
)
def test_a_link_that_is_slow_both_ways_is_not_the_hosts(
    refused: int, came: int, more_flows: int, limited: list[str]
) -> None:
    """node2's link has five eighths of its rate: it refuses frames, and loses those for it."""
    site = make_site(3)
    to, back, third = ("node1:e0", "node2:e0"), ("node2:e0", "node1:e0"), ("node3:e0", "node2:e0")
    records = [
        frame_side("source", *to, 8000, 8000),
        frame_side("destination", *to, came, came),
        frame_side("source", *back, 5000, 5000, intended=8000),
        frame_side("destination", *back, 5000, 5000),
        port_record("node1:e0"),
        port_record("node2:e0", send_refused=refused),
        port_record("node3:e0"),
    ]
    for _ in range(more_flows):
        records.append(frame_side("source", *third, 8000, 8000))
        records.append(frame_side("destination", *third, came, came))
    (entry,) = summarise(records, make_run(site, make_trial(site)))["trials"]
    assert [limit["port"] for limit in entry["tester_limited"]] == limited


@pytest.mark.parametrize(
    ("idle_s", "percent", "launch", "limited"),
    [
        (0.02, 60, "lab", True),  # of 1.5 s and two CPUs
        (0.02, 93, "lab", False),  # of 95: it has what it needs
        (0.3, 60, "lab", False),  # there were CPUs: it is the network's
        (0.02, 60, "ssh", False),  # of hosts with many CPUs it says little
        (None, 60, "lab", False),
    ],
)
def test_tcp_without_cpus_is_the_labs(
    idle_s: float | None, percent: int, launch: str, limited: bool
) -> None:
    site = make_site(launch=launch)
    ends = ("node1:e0", "node2:e0")
    payload = round(percent / 100 * 100e6 / 8 * 1448 / 1538)
    records = [
        tcp_side("source", *ends, payload, payload),
        tcp_side("destination", *ends, payload, payload),
        *(phase_record(f"node{number}", cpu_idle_s=idle_s) for number in (1, 2)),
    ]
    trial = make_trial(site, transport="tcp", size_unit="message", flows=1)
    (entry,) = summarise(records, make_run(site, trial))["trials"]
    found = [limit for limit in entry["tester_limited"] if limit["port"] == "node1:e0"]
    assert bool(found) == limited
    for limit in found:
        assert limit["cpu_idle_percent"] == pytest.approx(100 * 0.02 / 3)
        assert limit["reason"] == "below its load while the lab's CPUs were idle 0.7 % of the time"


@pytest.mark.parametrize(("second", "limited"), [(40, []), (20, ["node1:e0", "node3:e0"])])
def test_tcp_into_a_full_line_is_not_the_labs(second: int, limited: list[str]) -> None:
    """Two ports send to one, without an idle CPU: 60 % and `second` % of its line."""
    records = []
    for number, percent in ((1, 60), (3, second)):
        payload = round(percent / 100 * 100e6 / 8 * 1448 / 1538)
        ends = (f"node{number}:e0", "node2:e0")
        records.append(tcp_side("source", *ends, payload, payload))
        records.append(tcp_side("destination", *ends, payload, payload))
    records += [phase_record(f"node{number}", cpu_idle_s=0.0) for number in (1, 2, 3)]
    site = make_site(3)
    trial = make_trial(site, transport="tcp", size_unit="message", flows=2)
    (entry,) = summarise(records, make_run(site, trial))["trials"]
    assert [limit["port"] for limit in entry["tester_limited"]] == limited


@pytest.mark.parametrize(
    ("second", "limited"), [(93, []), (60, ["node1:e0", "node3:e0", "node5:e0"])]
)
def test_a_few_slow_flows_are_not_the_labs(second: int, limited: list[str]) -> None:
    """Without an idle CPU one flow of three falls short, which may be the network; or all do."""
    records = []
    for number, percent in ((1, 60), (3, second), (5, second)):
        payload = round(percent / 100 * 100e6 / 8 * 1448 / 1538)
        ends = (f"node{number}:e0", f"node{number + 1}:e0")
        records.append(tcp_side("source", *ends, payload, payload))
        records.append(tcp_side("destination", *ends, payload, payload))
    records += [phase_record(f"node{number}", cpu_idle_s=0.0) for number in range(1, 7)]
    site = make_site(6)
    trial = make_trial(site, transport="tcp", size_unit="message", flows=3)
    (entry,) = summarise(records, make_run(site, trial))["trials"]
    assert [limit["port"] for limit in entry["tester_limited"]] == limited


def test_a_late_start_names_the_host() -> None:
    records = pair_records()
    for record in records:
        if record["type"] == "phase":
            record |= {"start_run_ns": 5_000_000_000, "start_skew_us": 14_000.0}
        if record["type"] == "port":
            start_delay_ms = 14 if record["port"] == "node2:e0" else 1
            record |= {"start_run_ns": 5_000_000_000 + start_delay_ms * 1_000_000}
    (entry,) = summarise(records)["trials"]
    (limit,) = entry["tester_limited"]
    assert (limit["port"], limit["start_delay_ms"]) == ("node2:e0", 14.0)
    assert limit["reason"] == "started 14.0 ms late"


@pytest.mark.parametrize(("skew_us", "limited"), [(4_000.0, False), (14_000.0, True)])
def test_a_skew_limits_the_phase_though_no_port_is_known(skew_us: float, limited: bool) -> None:
    records = pair_records()
    for record in records:
        if record["type"] == "phase":
            record |= {"start_skew_us": skew_us}
    (entry,) = summarise(records)["trials"]
    assert bool(entry["tester_limited"]) == limited


def test_a_window_off_its_length_leaves_the_means() -> None:
    """node2's worker was away when the window opened: its flow is in the total alone."""
    records = pair_records()
    (usual,) = summarise(pair_records())["trials"]
    records[3] |= {"window_ns": 985_000_000}
    summary = summarise(records)
    (entry,) = summary["trials"]
    (limit,) = entry["tester_limited"]
    assert limit["port"] == "node2:e0"
    assert limit["window_error_percent"] == pytest.approx(1.5)
    assert limit["reason"] == "its window was 1.5 % off its length"
    left, gone = (8 * record["window_payload_bytes"] / 1e6 for record in (records[5], records[3]))
    rates = entry["throughput"]
    assert rates["min"] == rates["mean"] == rates["max"] == pytest.approx(left)
    assert rates["total"] == pytest.approx(left + gone / 0.985)
    assert entry["slowest"] == {"src": records[5]["src"], "dst": records[5]["dst"]}
    assert entry["offered_load"] == pytest.approx(usual["offered_load"])
    records[3] |= {"window_ns": 995_000_000}
    assert summarise(records)["trials"][0]["tester_limited"] == []


def test_forwarders_are_not_asked_for_a_load() -> None:
    records = pair_records()
    records[4] |= {"role": "forward", "intended": 9000}
    (entry,) = summarise(records)["trials"]
    assert entry["tester_limited"] == []
    assert entry["offered_load"] == pytest.approx(94.98688, abs=1e-6)


def test_tcp_counts_bytes_and_messages() -> None:
    trial = make_trial(
        SITE, transport="tcp", sizes=(65536,), size_unit="message", load=Load(percent=100.0)
    )
    first, second = ("node1:e0", "node2:e0"), ("node2:e0", "node1:e0")
    # 11,768,530 bytes/s is 1,448 of every 1,538 bytes of 100M.
    records = [
        tcp_side("source", *first, 13_107_200, 11_768_530, measures={"retransmitted_segments": 2}),
        tcp_side("destination", *first, 13_107_200, 11_768_530),
        tcp_side("source", *second, 13_107_200, 11_768_530, measures={"retransmitted_segments": 3}),
        tcp_side("destination", *second, 13_107_200, 5_884_265),
        phase_record("node1", cpu_idle_s=None),
        phase_record("node2"),
    ]
    (entry,) = summarise(records, make_run(SITE, trial))["trials"]
    assert entry["throughput"]["max"] == pytest.approx(94.14824)
    assert entry["throughput"]["min_percent_of_line"] == pytest.approx(50, abs=1e-4)
    assert entry["throughput"]["percent_of_line"] == pytest.approx(75, abs=1e-4)
    assert entry["offered_messages"] == 400
    assert entry["offered_bytes"] == 26_214_400
    assert entry["retransmitted_segments"] == 5
    assert entry["frame_bytes"] is None
    for name in ("offered_frames", "lost_frames", "duplicated_frames", "misdelivered_frames"):
        assert entry[name] is None, name
    assert entry["host_dropped_frames"] is None  # no `port` record: nothing was observed
    assert entry["cpu_s"] is None
    assert entry["size"] == 65536


def test_tcp_percent_knows_the_segments() -> None:
    """At MTU 9000, 8,948 of each 9,038 bytes on the line are payload."""
    trial = make_trial(SITE, transport="tcp", sizes=(65536,), size_unit="message", flows=1)
    ends = ("node1:e0", "node2:e0")
    rate = 12_500_000 * 8948 // 9038
    records = [
        tcp_side("source", *ends, rate, rate, measures={"mss_bytes": 8948}),
        tcp_side("destination", *ends, rate, rate, measures={"mss_bytes": 536}),
    ]
    (entry,) = summarise(records, make_run(SITE, trial))["trials"]
    assert entry["throughput"]["percent_of_line"] == pytest.approx(100, abs=1e-4)


@pytest.mark.parametrize(("mss", "overhead"), [(1428, 110), (1460, 78), (1440, 98), (1448, 90)])
def test_tcp_percent_knows_the_headers(mss: int, overhead: int) -> None:
    """IPv6 has 20 bytes more than IPv4, time stamps have 12: a full line reads 100 %."""
    trial = make_trial(SITE, transport="tcp", sizes=(65536,), size_unit="message", flows=1)
    ends = ("node1:e0", "node2:e0")
    rate = 12_500_000 * mss // (mss + overhead)
    said = {"mss_bytes": mss, "segment_overhead_bytes": overhead}
    records = [
        tcp_side("source", *ends, rate, rate, measures=said),
        tcp_side("destination", *ends, rate, rate, measures=said),
    ]
    (entry,) = summarise(records, make_run(SITE, trial))["trials"]
    assert entry["throughput"]["percent_of_line"] == pytest.approx(100, abs=1e-4)


def test_the_slowest_of_a_transfer_is_the_last_to_end() -> None:
    records = pair_records()
    for line, last_ns in ((3, 900), (5, 700)):
        counts = {key: records[3][key] for key in ("window_frames", "window_payload_bytes")}
        records[line] |= counts | {"last_run_ns": last_ns}
    (entry,) = summarise(records)["trials"]
    assert entry["slowest"] == {"src": "node1:e0", "dst": "node2:e0"}


def test_the_probe_is_no_phase() -> None:
    records = [phase_record("node1", phase=-1), phase_record("node2", phase=-1), *pair_records()]
    (entry,) = summarise(records)["trials"]
    assert entry["phase"] == 0


def test_line_rate_that_the_node_resolved_wins() -> None:
    opened = {"type": "port-open", "transport": "dpdk", "line_rate_bps": 200_000_000}
    lines = [opened | {"node": f"node{i}", "port": f"node{i}:e0"} for i in (1, 2)]
    (entry,) = summarise(lines + pair_records())["trials"]
    assert entry["throughput"]["min_percent_of_line"] == pytest.approx(47.43192)


def test_unknown_line_rate_gives_no_percent() -> None:
    site = make_site(line_bps=0)
    (entry,) = summarise(pair_records(), make_run(site, make_trial(site)))["trials"]
    assert entry["throughput"]["percent_of_line"] is None
    assert entry["offered_load"] is None
    assert entry["throughput"]["min"] == 92.52


def test_asked_load_in_frames_becomes_percent() -> None:
    trial = make_trial(SITE, load=Load(fps=4063.5))  # x 1,538 x 8 bit = 49.997 Mbit/s
    (entry,) = summarise(pair_records(), make_run(SITE, trial))["trials"]
    assert entry["intended_load"] == pytest.approx(49.997304)
    assert entry["load"] == {"fps": 4063.5}


def above_line(frames: int, window_s: float, site: Site, **more: Any) -> list[str]:
    """The alarms of a phase in which node2 got so many frames of 1,518 bytes; `more`: what else its
    flow's source says."""
    records = pair_records()
    window = {"window_ns": round(window_s * 1e9)}
    for record in records:
        if record["type"] in ("flow", "phase"):
            record |= window
    for record in records[2:4]:
        record |= {"window_frames": frames, "window_frame_bytes": frames * 1518}
    for record in records[4:6]:
        record |= frames_count("window_", round(7000 * window_s))
    records[2] |= more
    result = summarise(records, make_run(site, make_trial(site, window_s=window_s)))
    alarms: list[str] = result["warnings"]
    return [alarm for alarm in alarms if "line rate" in alarm]


@pytest.mark.parametrize(
    ("window_s", "frames", "alarmed"),
    # 100M carries 8,127.4 frames/s; 0.02 % and one frame more are allowed.
    [
        (1.0, 8130, False),
        (1.0, 8131, True),
        (0.1, 813, False),
        (0.1, 815, True),
        (20.0, 162_582, False),
        (20.0, 162_584, True),
    ],
)
def test_alarm_above_line_rate(window_s: float, frames: int, alarmed: bool) -> None:
    """In a window of any length, and whatever the switch's queue held when it opened."""
    site = make_site(queue_bytes=65536, launch="ssh")
    alarms = above_line(frames, window_s, site)
    assert [alarm.partition(":")[0] for alarm in alarms if "to it" in alarm] == ["node2"] * alarmed


def test_an_alarm_names_the_burst_and_the_host_behind_it() -> None:
    """2 s at 100.52 %: no line does that, a shaper whose bucket had filled does."""
    site = make_site(queue_bytes=200_000, burst_bytes=200_000)
    (alarm,) = above_line(16_339, 2.0, site)
    assert alarm.startswith("node2:e0: 100.52 % of its line rate delivered to it")
    assert "the host of node1:e0 sent late what was due before the window" in alarm
    assert "`burst`" in alarm
    (alarm,) = above_line(16_339, 2.0, site, **frames_count("window_", 15_000))
    assert "the host of" not in alarm
    assert "`burst`" in alarm
    assert all("no line carries that" in alarm for alarm in above_line(16_700, 2.0, site))


@pytest.mark.parametrize(("sent", "known"), [(8100, True), (8170, False), (8200, False)])
def test_an_alarm_names_frames_of_before_the_window(sent: int, known: bool) -> None:
    """A switch or a receiver that was away counts later what came meanwhile: 8,200 frames in a
    second that has 8,127."""
    alarms = above_line(8200, 1.0, make_site(launch="ssh"), **frames_count("window_", sent))
    assert alarms
    for alarm in alarms:
        assert ("frames that were sent before the window opened" in alarm) == known
        assert ("no line carries that" in alarm) != known


def test_an_alarm_names_the_host_that_was_away() -> None:
    site = make_site(queue_bytes=200_000, burst_bytes=200_000)
    (alarm,) = above_line(16_339, 2.0, site, window_ns=1_900_000_000)
    assert "the host of node1:e0 may be why: its window was 5.0 % off its length" in alarm


def test_tcp_may_read_what_waited_behind_a_missing_segment() -> None:
    trial = make_trial(SITE, transport="tcp", sizes=(65536,), size_unit="message", flows=1)
    ends = ("node1:e0", "node2:e0")
    line = 12_500_000 * 1448 // 1538
    for late, segments, alarmed in (
        (60_000, 50, False),
        (200_000, 500, True),  # the buffer does not hold so much
        (60_000, 0, True),  # none was missing
    ):
        measures = {"receive_buffer_bytes": 131_072, "out_of_order_segments": segments}
        records = [
            tcp_side("source", *ends, line, line),
            tcp_side("destination", *ends, line, line + late),
        ]
        records[1] |= {"measures": measures}
        alarms = summarise(records, make_run(SITE, trial))["warnings"]
        assert bool(alarms) == alarmed


def test_alarm_for_more_delivered_than_offered() -> None:
    records = pair_records()
    records[3] |= {"frames": 8001}
    result = summarise(records)
    assert "1 frame more delivered than offered" in result["warnings"][0]
    assert result["trials"][0]["lost_frames"] == 10


def test_networks_together_are_apart() -> None:
    site = make_site(4)
    ports = [
        replace(port, network=network)
        for port, network in zip(site.ports, ("a", "a", "b", "b"), strict=True)
    ]
    parts = (Part("a", tuple(ports[:2])), Part("b", tuple(ports[2:])))
    trial = make_trial(site, parts=parts, flows=2)
    records = [
        frame_side("source", "node1:e0", "node2:e0", 100, 90, network="a"),
        frame_side("destination", "node1:e0", "node2:e0", 100, 90, network="a"),
        frame_side("source", "node3:e0", "node4:e0", 100, 45, network="b"),
        frame_side("destination", "node3:e0", "node4:e0", 99, 45, network="b"),
        *(phase_record(f"node{number}") for number in range(1, 5)),
        *(trial_record(f"node{number}") for number in range(1, 5)),
    ]
    result = summarise(records, make_run(site, trial))
    first, second = result["trials"]
    assert (first["network"], second["network"]) == ("a", "b")
    assert (first["lost_frames"], second["lost_frames"]) == (0, 1)
    assert first["concurrent_networks"] == ["a", "b"]
    assert [plan["network"] for plan in result["plans"]] == ["a", "b"]
    assert result["status"] == "complete"


def test_plan_over_phases_of_several_lengths() -> None:
    trial = make_trial(SITE, phases=2, flows=2)
    records = []
    for phase, (frames, window_ns) in enumerate([(1000, 1_000_000_000), (4000, 2_000_000_000)]):
        for side in ("source", "destination"):
            more = {"phase": phase, "window_ns": window_ns}
            records.append(frame_side(side, "node1:e0", "node2:e0", frames, frames) | more)
        records += [
            phase_record(f"node{number}", phase=phase, window_ns=window_ns) for number in (1, 2)
        ]
    result = summarise(records, make_run(SITE, trial))
    (plan,) = result["plans"]
    assert (plan["phases"], plan["phases_measured"], plan["worst_phase"]) == (2, 2, 0)
    assert plan["window_s"] == 3
    # 12 and 24 Mbit/s: their mean, and 5,000 frames x 12,000 bit in 3 s.
    assert plan["throughput"]["mean"] == 18
    assert plan["throughput"]["total"] == 20
    assert plan["elapsed_s"] is None  # no `trial` record


@pytest.mark.parametrize(
    ("limited", "mean", "worst"), [({1}, 12, 0), ({0}, 24, 1), ({0, 1}, None, None)]
)
def test_what_the_tester_limited_enters_no_mean_of_the_plan(
    limited: set[int], mean: float | None, worst: int | None
) -> None:
    """Nor of transports side by side; its frames still count."""
    trial = make_trial(SITE, phases=2, flows=2)
    records = []
    for phase, frames in enumerate([1000, 2000]):
        for side in ("source", "destination"):
            more = {"phase": phase, "intended": 2 * frames if phase in limited else frames}
            records.append(frame_side(side, "node1:e0", "node2:e0", frames, frames) | more)
        records += [phase_record(f"node{number}", phase=phase) for number in (1, 2)]
    result = summarise(records, make_run(SITE, trial))
    assert {e["phase"] for e in result["trials"] if e["tester_limited"]} == limited
    (plan,) = result["plans"]
    assert (plan["throughput"]["mean"], plan["worst_phase"]) == (mean, worst)
    assert {plan["throughput"][name] for name in ("min", "max", "total")} == {mean}
    assert plan["delivered_frames"] == 3000
    (one,) = series([plan])
    assert one.rate == mean


@pytest.mark.parametrize("traffic", ["stream", "schedule"])
def test_a_bad_port_is_beside_the_median_port_of_every_phase(traffic: str) -> None:
    """But not where ranks go by steps, whose ports have different things to do."""
    site = make_site(6)
    schedule = Schedule(1, 0, 1, False) if traffic == "schedule" else None
    trial = make_trial(site, phases=3, flows=18, traffic=traffic, schedule=schedule)
    records = []
    for phase in range(3):
        for source in range(6):
            got = 950 if (source + phase + 1) % 6 == 3 else 1000  # a bad cable at node4
            flow = (f"node{source + 1}:e0", f"node{(source + phase + 1) % 6 + 1}:e0")
            records.append(frame_side("source", *flow, 1000, 1000, phase=phase))
            records.append(frame_side("destination", *flow, got, got, phase=phase))
    result = summarise(records, make_run(site, trial))
    if traffic == "schedule":
        ends = [port["as_destination"] for port in result["ports"]]
        assert {end["relative_to_median"] for end in ends} == {None}
        return
    bad = result["ports"][3]
    assert bad["as_destination"]["relative_to_median"] == pytest.approx(0.95)
    assert bad["as_destination"]["lost_frames"] == 150
    assert len(bad["slowest_phases"]) == 3
    assert [port["port"] for port in result["ports"] if port["suspect"]] == ["node4:e0"]


@pytest.mark.parametrize("lab", [None, "one-switch"])
@pytest.mark.parametrize("late", ["", "node1:e0", "a rank"])
def test_what_the_tester_limited_blames_no_port(late: str, lab: str | None) -> None:
    """Nor the port at the other end of its flows; the others are judged, but in a lab, where all
    share one machine."""
    site = make_site(6, lab=lab)
    records: list[dict[str, Any]] = []
    for source in range(6):
        flow = (f"node{source + 1}:e0", f"node{(source + 1) % 6 + 1}:e0")
        records.append(frame_side("source", *flow, 1000, 1000))
        records.append(frame_side("destination", *flow, 900, 900))
    begun = {"start_run_ns": 1_000_000_000}
    if late == "node1:e0":
        records.append(port_record(late, start_run_ns=1_020_000_000))
    records += [phase_record(f"node{n + 1}", **begun) for n in range(6)]
    if late == "a rank":
        records[-1]["start_skew_us"] = 20_000.0
    result = summarise(records, make_run(site, make_trial(site, flows=6)))
    limits = [limit["port"] for limit in result["trials"][0]["tester_limited"]]
    assert limits == ([late] if late else [])
    known = [port["as_source"]["min_percent_of_line"] is not None for port in result["ports"]]
    alone = [False, False, True, True, True, False]
    of_late = {"": [True] * 6, "node1:e0": [False] * 6 if lab else alone, "a rank": [False] * 6}
    assert known == of_late[late]
    assert [port["as_source"]["phases"] for port in result["ports"]] == [1] * 6


def test_unreachable_and_events_are_told() -> None:
    place = {"node": "node1", "trial": 0, "src": "node1:e0", "dst": "node2:e0"}
    records = [
        *pair_records(),
        {"type": "unreachable", "received": 0, "sent": 3} | place,
        {"type": "event", "node": "node1", "kind": "link-down", "port": "node1:e0", "text": "lost"},
    ]
    result = summarise(records)
    assert result["warnings"] == ["node1:e0: link-down: lost"]
    assert "node2:e0 can't be reached from node1:e0: 0 of 3" in result["not_measured"][0]


def test_a_flood_of_events_is_counted_not_kept() -> None:
    """Warnings of 400,000 events took 60 MB."""
    event = {"type": "event", "node": "node1", "kind": "link-down", "port": "node1:e0"}
    alike = [event | {"text": "lost"}] * 3
    others = [event | {"text": f"lost {number}"} for number in range(3000)]
    told = summarise([*pair_records(), *alike, *others])["warnings"]
    assert told[0] == "node1:e0: link-down: lost (3 times)"
    assert told[1] == "node1:e0: link-down: lost 0"
    assert told[-1] == "node1: further events (2,745 times)"
    assert len(told) == 257


def test_refused_control_datagrams_are_told() -> None:
    byes = [
        {"type": "bye", "node": node, "status": 0, "dropped_datagrams": count}
        for node, count in (("node1", 0), ("node2", 12))
    ]
    (alarm,) = summarise([*pair_records(), *byes])["warnings"]
    assert alarm.startswith("node2: 12 control datagrams were dropped")


def test_imix_sizes_are_a_list() -> None:
    trial = make_trial(SITE, sizes=(64, 64, 1518))
    (entry,) = summarise(pair_records(), make_run(SITE, trial))["trials"]
    assert entry["size"] == entry["frame_bytes"] == [64, 64, 1518]


def test_a_stopped_phase_says_nothing_of_loss() -> None:
    records = pair_records()
    records[8] |= {"state": "stopped"}
    (entry,) = summarise(records)["trials"]
    assert entry["state"] == "stopped"
    assert entry["lost_frames"] is None
    assert entry["worst_loss_percent"] is None
    assert entry["delivered_frames"] == 15990


def test_aapc_of_64_ranks_is_a_matter_of_seconds() -> None:
    """63 phases of 64 flows, both sides of each: 8,064 flow records."""
    site = make_site(64)
    trial = make_trial(site, phases=63, flows=63 * 64)
    records: list[dict[str, Any]] = []
    names = [port.name for port in site.ports]
    for phase in range(63):
        for rank in range(64):
            flow = (names[rank], names[(rank + phase + 1) % 64])
            records.append(frame_side("source", *flow, 8000, 7720, phase=phase))
            records.append(frame_side("destination", *flow, 8000, 7720, phase=phase))
        records += [phase_record(process.name, phase=phase) for process in site.processes]
    records += [trial_record(process.name) for process in site.processes]
    begin_s = time.process_time()
    summary = fed(make_run(site, trial), records)
    result = summary.finish(about(), [])
    assert time.process_time() - begin_s < 10  # seen: 0.3 s
    assert result["status"] == "complete"
    assert len(result["trials"]) == 63
    assert result["plans"][0]["offered_frames"] == 63 * 64 * 8000


def test_flooding_is_counted_and_stops() -> None:
    records = pair_records()
    records[6] = port_record("node1:e0", misdelivered=1001)
    records[8] |= {"state": "flooded"}
    (entry,) = summarise(records)["trials"]
    assert entry["misdelivered_frames"] == 1001
    assert entry["state"] == "flooded"
