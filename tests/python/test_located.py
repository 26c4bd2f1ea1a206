# SPDX-License-Identifier: BSD-3-Clause
"""Suspects and findings of records made by hand: what is named, how much, and what is left open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recorded import Feed, fed
from schemas import validate_summary
from switchbench.base.model import Site
from switchbench.records.document.summary import SummaryDocument
from switchbench.run.live.state import RunState
from synthetic import (
    FRAME,
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    tcp_side,
    trial_record,
)

SITE = make_site(4)
SENT = 8000

Came = Callable[[int, int, int], int]  # numbers of source and destination, frames sent


def all_to_all(
    came: Came,
    site: Site | None = None,
    loads: tuple[int, ...] = (4000, 8000),
    ports: dict[str, dict[str, Any]] | None = None,
    clauses: tuple[dict[str, Any], ...] = (),
    **sides: Any,
) -> SummaryDocument:
    """The summary of an all-to-all of a site at loads of so many frames, a trial each, of whose
    frames so many came."""
    site = site or make_site(6)
    count = len(site.ports)
    trials = [
        make_trial(site, number, phases=count - 1, flows=count * (count - 1))
        for number in range(len(loads))
    ]
    feed = Feed(make_run(site, *trials, expectations=clauses))
    for trial, sent in enumerate(loads):
        for phase in range(count - 1):
            place = {"trial": trial, "phase": phase}
            for src in range(1, count + 1):
                dst = (src + phase) % count + 1
                got = came(src, dst, sent)
                ends = (f"node{src}:e0", f"node{dst}:e0")
                feed.take(frame_side("source", *ends, sent, sent, **place))
                feed.take(frame_side("destination", *ends, got, got, **place, **sides))
            for number in range(1, count + 1):
                name = f"node{number}"
                feed.take(port_record(f"{name}:e0", **place, **(ports or {}).get(name, {})))
            for number in range(1, count + 1):
                feed.take(phase_record(f"node{number}", **place))
        for number in range(1, count + 1):
            feed.take(trial_record(f"node{number}", trial=trial))
    result = feed.all().finish(about(), ())
    validate_summary(result)
    return result


def named(result: SummaryDocument) -> list[tuple[str, str, str]]:
    """Element, direction and kind of the suspects."""
    return [
        (one["element"]["name"], one["element"]["direction"], one["kind"])
        for one in result["location"]["suspects"]
    ]


def test_where_nothing_is_lost_there_is_no_suspect_and_no_finding() -> None:
    result = all_to_all(lambda src, dst, sent: sent)
    assert named(result) == []
    assert result["findings"] == []
    assert {port["suspect"] for port in result["ports"]} == {None}


def test_a_single_lost_frame_is_said_and_blames_nothing() -> None:
    result = all_to_all(lambda src, dst, sent: sent - ((src, dst, sent) == (2, 5, 4000)))
    assert named(result) == []
    (one,) = result["findings"]
    assert (one["kind"], one["severity"], one["count"]) == ("unexplained", "warning", 1)


def test_what_leaves_one_port_and_is_lost_is_its_transmitters() -> None:
    """90 of 90 lost frames leave node5; each node lacks a few."""
    result = all_to_all(lambda src, dst, sent: sent - sent // 100 * (src == 5))
    assert named(result) == [("node5:e0", "send", "loss")]
    (one,) = result["location"]["suspects"]
    assert (one["suffering"], one["through"], one["beside_suffering"]) == (5, 5, 0)
    assert one["frames"] == 5 * (40 + 80)
    assert one["low"] <= 1.0 <= one["high"]
    (found,) = result["findings"]
    assert (found["kind"], found["severity"], found["port"]) == ("loss", "error", "node5:e0")
    assert [port["port"] for port in result["ports"] if port["suspect"]] == ["node5:e0"]


def test_a_clause_that_fails_says_what_is_suspected() -> None:
    clause = {"measure": "lost_frames", "over": "flow", "require": "== 0"}
    result = all_to_all(lambda src, dst, sent: sent - sent // 100 * (src == 5), clauses=(clause,))
    (entry,) = result["expectations"]
    assert entry["verdict"] == "FAIL"
    assert entry["reason"] == "suspect: node5:e0's transmitter loses 1 % of frames"


def test_what_is_lost_towards_one_port_is_its_receivers() -> None:
    result = all_to_all(lambda src, dst, sent: sent - sent // 50 * (dst == 3))
    assert named(result) == [("node3:e0", "receive", "loss")]


def test_a_port_that_passes_no_more_than_so_much_has_a_capacity() -> None:
    result = all_to_all(lambda src, dst, sent: min(sent, 5000) if dst == 2 else sent)
    assert named(result) == [("node2:e0", "receive", "capacity")]
    (one,) = result["location"]["suspects"]
    assert one["unit"] == "Mbit/s"
    assert one["value"] == pytest.approx(5000 * 8 * (FRAME + 20) / 1e6, rel=0.02)


def test_what_a_host_dropped_is_located_at_the_host() -> None:
    lost = {"node3": {"dropped_receive": 80}}
    result = all_to_all(lambda src, dst, sent: sent - 80 * (dst == 3), ports=lost)
    assert named(result) == []
    (host,) = result["location"]["hosts"]
    assert (host["port"], host["cause"], host["frames"]) == ("node3:e0", "receiver_host", 800)
    assert [(one["kind"], one["severity"]) for one in result["findings"]] == [("host", "warning")]


@pytest.mark.parametrize("dropped", [0, 1202])
def test_what_no_line_has_room_for_is_expected(dropped: int) -> None:
    """Three flows of 8,000 frames to one port whose line carries 8,127; what a socket buffer of its
    host drops beside that is the host's."""
    site = make_site(4)
    feed = Feed(make_run(site, make_trial(site, flows=3)))
    for number in range(1, 4):
        ends = (f"node{number}:e0", "node4:e0")
        came = 2709 - dropped // 3
        feed.take(frame_side("source", *ends, 8000, 8000))
        feed.take(frame_side("destination", *ends, came, came))
    feed.take(port_record("node4:e0", dropped_receive=dropped))
    found = feed.all().finish(about(), ())
    assert named(found) == []
    (one,) = found["location"]["expected"]
    assert one["ports"] == ["node4:e0"]
    assert one["frames"] == pytest.approx(15_873, rel=0.02)
    hosts = [(one["port"], one["frames"]) for one in found["location"]["hosts"]]
    assert hosts == [("node4:e0", dropped)][: bool(dropped)]
    kinds = [("host", "warning"), ("oversubscribed", "info")][not dropped :]
    assert [(f["kind"], f["severity"]) for f in found["findings"]] == kinds


def test_frames_of_no_known_flow_at_a_port_stay_open() -> None:
    lost = {"node4": {"misdelivered": 3}}
    result = all_to_all(lambda src, dst, sent: sent, ports=lost, loads=(8000,))
    (one,) = result["findings"]
    assert (one["kind"], one["port"], one["count"]) == ("misdelivered", "node4:e0", 15)


def test_forged_numbers_are_the_flows() -> None:
    result = all_to_all(lambda src, dst, sent: sent, loads=(8000,), forged=2)
    assert {one["kind"] for one in result["findings"]} == {"forged"}
    assert len(result["findings"]) == 30


def test_nothing_is_judged_where_the_tester_was_the_limit() -> None:
    late = {f"node{number}": {"dropped_receive": 5} for number in range(1, 7)}
    result = all_to_all(lambda src, dst, sent: sent, ports=late)
    location = result["location"]
    assert location["phases"] == location["limited_phases"] == 10
    assert location["suspects"] == []


@pytest.mark.parametrize(
    ("drained", "came"), [(False, 60_000), (False, 65_535), (False, 65_536), (True, 60_000)]
)
def test_a_transfer_that_was_cut_off_is_said(drained: bool, came: int) -> None:
    trial = make_trial(SITE, flows=1, transport="tcp", traffic="transfer", size_unit="message")
    ends = ("node1:e0", "node2:e0")
    records = [
        tcp_side("source", *ends, 65_536, 65_536),
        tcp_side("destination", *ends, came, came),
        phase_record("node1", drained=True),
        phase_record("node2", drained=drained),
        trial_record("node1"),
        trial_record("node2"),
    ]
    found = fed(make_run(SITE, trial), records).finish(about(), ())["findings"]
    if drained or came == 65_536:
        assert found == []
        return
    (only,) = found
    missing = "1 byte" if came == 65_535 else "5,536 bytes"
    assert (only["kind"], only["transport"], only["count"]) == ("unfinished", "tcp", 65_536 - came)
    assert only["sentence"].startswith(
        f"node1:e0 -> node2:e0: {missing} of its transfer had not come"
    )


def test_of_many_flows_that_were_cut_off_those_that_lack_the_most_are_named() -> None:
    """The hundred of them, of 102 that lack 1 to 102 bytes."""
    site = make_site(204)
    trial = make_trial(site, flows=102, transport="tcp", traffic="transfer", size_unit="message")
    feed = Feed(make_run(site, trial))
    for i in range(1, 103):
        ends = (f"node{2 * i - 1}:e0", f"node{2 * i}:e0")
        feed.take(tcp_side("source", *ends, 65_536, 65_536))
        feed.take(tcp_side("destination", *ends, 65_536 - i, 65_536 - i))
    for made in (phase_record, trial_record):
        for process in site.processes:
            more = {"drained": False} if made is phase_record else {}
            feed.take(made(process.name, **more))
    found = feed.all().finish(about(), ())["findings"]
    assert [one["count"] for one in found] == [*range(102, 2, -1), 3]


def test_findings_of_a_run_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the trials that all nodes have ended, every two seconds at most."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    site = make_site(2)
    run = make_run(site, *(make_trial(site, number, flows=1) for number in range(3)))
    feed = Feed(run, brief=True)
    state = RunState(run, feed.summary)

    def take(record: dict[str, Any]) -> None:
        feed.take(record)
        state.take(record)

    counts = []
    for number in range(3):
        place = {"trial": number}
        ends = ("node1:e0", "node2:e0")
        take(frame_side("source", *ends, SENT, 7000, **place))
        take(frame_side("destination", *ends, SENT - number - 1, 7000, **place))
        for process in site.processes:
            take(phase_record(process.name, **place))
        take(trial_record("node1", **place))
        state.turn()  # node2 has not ended it
        counts.append([one["count"] for one in state.findings])
        take(trial_record("node2", **place))
        now_s += 1.0
        state.turn()
        counts.append([one["count"] for one in state.findings])
        state.turn()
    assert counts == [[], [1], [1], [1], [1], [6]]
