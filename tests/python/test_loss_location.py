# SPDX-License-Identifier: BSD-3-Clause
"""Where frames went missing, how they were out of order, and what the switch says of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from configs import LAB, compile_text, needs_engine
from recorded import fed
from schemas import validate_summary
from switchbench.analysis.loss_location import contradicted, in_network
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import SwitchCountersCommand
from switchbench.records.switch_counters import (
    AFTER,
    BEFORE,
    compare_counters,
    parse_counters,
    read_counters,
)
from synthetic import (
    about,
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

Record = dict[str, Any]
ENDS = ("node1:e0", "node2:e0")


FULL_BPS = 11_200_000  # what 900 frames in a window of a second nearly fill


def summary_of(
    *records: Record, transport: str = "dpdk", state: str = "complete", line_bps: int = FULL_BPS
) -> Record:
    site = make_site(line_bps=line_bps)
    trial = make_trial(site, transport=transport, flows=1)
    heads = [hello("node1"), hello("node2")]
    tails = [phase_record("node1", state=state), phase_record("node2", state=state)]
    tails += [trial_record("node1"), trial_record("node2")]
    summary = fed(make_run(site, trial), [*heads, *records, *tails])
    result = summary.finish(about(), [])
    validate_summary(result)
    (entry,) = result["trials"]
    return dict(entry)


def frames(came: int, source: Record, destination: Record) -> list[Record]:
    """1,000 frames from node1 to node2, so many of which came; the ports' counters."""
    return [
        frame_side("source", *ENDS, 1000, 900),
        frame_side("destination", *ENDS, came, came),
        port_record("node1:e0", **source),
        port_record("node2:e0", **destination),
    ]


def sent(**changes: int | None) -> Record:
    return {
        "sent_frames": 1000,
        "received_frames": 0,
        "hardware_sent": 1000,
        "hardware_received": 0,
    } | changes


def received(count: int, **changes: int | None) -> Record:
    return {
        "sent_frames": 0,
        "received_frames": count,
        "hardware_sent": 0,
        "hardware_received": count,
    } | changes


@pytest.mark.parametrize(
    ("came", "source", "destination", "places"),
    [
        (1000, sent(), received(1000), (0, 0, 0)),
        (990, sent(), received(990), (0, 10, 0)),
        (990, sent(hardware_sent=990, dropped_send=10), received(990), (10, 0, 0)),
        (990, sent(hardware_sent=990), received(990), (10, 0, 0)),
        (990, sent(), received(990, dropped_receive=10), (0, 0, 10)),
        (990, sent(), received(990, hardware_received=1000), (0, 0, 10)),
        (
            970,
            sent(hardware_sent=995, dropped_send=5),
            received(970, dropped_receive=10),
            (5, 15, 10),
        ),
    ],
)
def test_each_place(
    came: int, source: Record, destination: Record, places: tuple[int, int, int]
) -> None:
    """Frames vanish in one place or in all three; the counters' view agrees."""
    found = summary_of(*frames(came, source, destination))["loss_location"]
    assert (found["sender_host"], found["network"], found["receiver_host"]) == places
    assert found["lost_frames"] == 1000 - came == sum(places)
    assert found["counted_in_network"] == places[1]
    assert found["consistent"] is True
    named = {port["port"] for port in found["ports"]}
    assert named == {
        name for name, count in zip(ENDS, (places[0], places[2]), strict=True) if count
    }


def test_the_worst_port_is_named_first() -> None:
    """By frames missing in its host and errors of its wire together."""
    found = summary_of(*frames(990, sent(dropped_send=4), received(990, errors=6)))["loss_location"]
    assert [port["port"] for port in found["ports"]] == ["node2:e0", "node1:e0"]
    assert found["wire_errors"] == 6
    found = summary_of(*frames(990, sent(dropped_send=7), received(990, errors=6)))["loss_location"]
    assert [port["port"] for port in found["ports"]] == ["node1:e0", "node2:e0"]


def test_guests_frames_are_allowed_for() -> None:
    """Two learning frames that only one side's counters saw say nothing about the load."""
    destination = received(990, hardware_received=992, arp_nd_received=2)
    found = summary_of(*frames(990, sent(arp_nd_sent=1), destination))["loss_location"]
    assert (found["network"], found["counted_in_network"]) == (10, 8)
    assert (found["other_frames"], found["consistent"]) == (3, True)
    found = summary_of(*frames(990, sent(), received(990, hardware_received=950)))["loss_location"]
    assert (found["network"], found["counted_in_network"], found["consistent"]) == (10, 50, False)


@pytest.mark.parametrize("transport", ["dpdk", "tcp"])
@pytest.mark.parametrize("state", ["stopped", "flooded"])
def test_what_was_under_way_at_a_stop_is_not_lost(state: str, transport: str) -> None:
    found = summary_of(*frames(900, sent(), received(900)), transport=transport, state=state)
    assert found["lost_frames"] is None
    assert found["loss_location"]["counted_in_network"] == 100
    assert found["loss_location"]["network"] is None


def test_what_other_traffic_displaced_is_not_the_networks() -> None:
    """A foreign frame takes the time of one of ours at the most."""
    busy = received(900, hardware_received=5900, unexpected=5000)
    found = summary_of(*frames(900, sent(), busy))["loss_location"]
    assert (found["other_traffic"], found["network"], found["receiver_host"]) == (100, 0, 0)
    little = received(900, hardware_received=930, unexpected=30)
    found = summary_of(*frames(900, sent(), little))["loss_location"]
    assert (found["other_traffic"], found["network"]) == (30, 70)
    assert found["consistent"] is True


def test_other_traffic_that_fits_beside_the_load_displaces_nothing() -> None:
    little = frames(900, sent(), received(900, hardware_received=930, unexpected=30))
    for record in little[:2]:  # of small frames, for which a foreign one is long
        record |= {"frame_bytes": 64_000, "window_frame_bytes": 57_600}
    found = summary_of(*little)["loss_location"]
    assert (found["other_traffic"], found["network"]) == (0, 100)


def test_a_loss_that_counters_do_not_see_is_a_contradiction() -> None:
    """As many frames came that nobody knew as are missing: all that was sent has arrived."""
    unknown = received(975, hardware_received=1000, unexpected=25)
    site = make_site(line_bps=FULL_BPS)
    tails = [made(node) for node in ("node1", "node2") for made in (phase_record, trial_record)]
    summary = fed(
        make_run(site, make_trial(site, flows=1)),
        [*frames(975, sent(arp_nd_sent=30), unknown), *tails],
    )
    result = summary.finish(about(), [])
    found = result["trials"][0]["loss_location"]
    assert (found["lost_frames"], found["counted_in_network"]) == (25, 0)
    assert found["consistent"] is False
    assert result["warnings"][0].startswith(
        "trial 0 pairs phase 0: 25 frames are lost by the flows' counts, 0 in the network by the "
        "ports' counters"
    )


@pytest.mark.parametrize(
    ("agree", "lost", "said"),
    [(False, 1, True), (False, 0, False), (False, None, False), (True, 9, False), (None, 9, False)],
)
def test_what_is_a_contradiction(agree: bool | None, lost: int | None, said: bool) -> None:
    assert contradicted({"consistent": agree, "lost_frames": lost}) is said


@pytest.mark.parametrize(
    ("network", "lost", "said"), [(4, None, 0), (5, None, 5), (4, 4, 4), (None, 4, None)]
)
def test_a_frame_per_rank_may_be_the_counters_own(
    network: int | None, lost: int | None, said: int | None
) -> None:
    location = {"network": network, "lost_frames": lost}
    assert in_network({"loss_location": location, "ranks": 4}) == said


@pytest.mark.parametrize(("count", "at"), [(3, "node2:e0"), (25, "node1:e0")])
def test_equal_numbers_may_be_so_by_chance(count: int, at: str) -> None:
    """A few neighbour solicitations, or as many frames as are missing at another port."""
    records = frames(1000 - count, sent(arp_nd_sent=count), received(1000 - count))
    for port in records[2:]:
        came = count if port["port"] == at else 0
        port |= {"unexpected": came, "hardware_received": (port["received_frames"] or 0) + came}
    assert summary_of(*records)["loss_location"]["consistent"] is True


def test_what_came_besides_is_no_contradiction() -> None:
    """Another program's frames lower the counters' view by as many as came."""
    busy = received(273, hardware_received=5536, unexpected=5263)
    found = summary_of(*frames(273, sent(), busy))["loss_location"]
    assert (found["counted_in_network"], found["consistent"]) == (-4536, True)
    busy = received(273, hardware_received=5536, unexpected=5262)
    assert summary_of(*frames(273, sent(), busy))["loss_location"]["consistent"] is True
    fewer = received(273, hardware_received=500, unexpected=5263)
    assert summary_of(*frames(273, sent(), fewer))["loss_location"]["consistent"] is True
    more = received(273, hardware_received=200, unexpected=5263)
    assert summary_of(*frames(273, sent(), more))["loss_location"]["consistent"] is False


def test_other_traffic_is_said_with_what_it_may_have_cost() -> None:
    site = make_site(line_bps=FULL_BPS)
    busy = received(900, hardware_received=5900, unexpected=5000)
    tails = [made(node) for node in ("node1", "node2") for made in (phase_record, trial_record)]
    summary = fed(
        make_run(site, make_trial(site, flows=1)), [*frames(900, sent(unexpected=99), busy), *tails]
    )
    assert summary.finish(about(), [])["warnings"] == [
        "node2:e0: 5,000 frames arrived that are none of this run's, in trial 0 pairs phase 0; 100 "
        "frames for it may be lost because of that, and not count as the network's"
    ]


def test_probes_that_a_host_drops_are_no_negative_loss_of_the_network() -> None:
    found = summary_of(*frames(990, sent(), received(990, dropped_receive=12)))["loss_location"]
    assert (found["lost_frames"], found["network"], found["receiver_host"]) == (10, 0, 12)


def test_what_no_counter_says_is_unknown() -> None:
    found = summary_of(*frames(990, sent(), received(990, dropped_receive=None)))["loss_location"]
    assert (found["lost_frames"], found["sender_host"]) == (10, 0)
    assert found["receiver_host"] is None
    assert found["network"] is None
    assert found["consistent"] is None


def test_what_a_forwarder_gives_up_is_no_flows_loss() -> None:
    """node1 forwards: what it could not pass on was never sent, and no flow lacks it."""
    records = frames(1000, sent(dropped_send=7), received(1000))
    records[0]["role"] = "forward"
    found = summary_of(*records)["loss_location"]
    assert (found["lost_frames"], found["sender_host"], found["network"]) == (0, 0, 0)


def test_damaged_frames_are_named() -> None:
    found = summary_of(*frames(990, sent(), received(990, errors=10)))["loss_location"]
    assert (found["network"], found["wire_errors"]) == (10, 10)
    assert found["ports"][0]["port"] == "node2:e0"


def test_tcp_has_the_counters_alone() -> None:
    """What the kernel repeats is lost on the way all the same."""
    unseen = {
        "sent_frames": None,
        "received_frames": None,
        "misdelivered": None,
        "unexpected": None,
    }
    found = summary_of(
        tcp_side("source", *ENDS, 10**6, 10**6),
        tcp_side("destination", *ENDS, 10**6, 10**6),
        port_record("node1:e0", **unseen, hardware_sent=700, hardware_received=330),
        port_record("node2:e0", **unseen, hardware_sent=340, hardware_received=693),
        transport="tcp",
    )["loss_location"]
    assert found["lost_frames"] is None
    assert found["network"] == found["counted_in_network"] == 17


# --- order -----------------------------------------------------------------------------------


def reorder(**changes: Any) -> Record:
    return {
        "type": "reorder",
        "node": "node2",
        "trial": 0,
        "repeat": 0,
        "network": "lab",
        "phase": 0,
        "src": ENDS[0],
        "dst": ENDS[1],
        "reordered": 4,
        "extent_sum": 10,
        "extent_max": 5,
        "three_reordered": 1,
    } | changes


def test_order_of_a_phase() -> None:
    found = summary_of(*frames(1000, sent(), received(1000)), reorder())["reordering"]
    assert found["reordered_percent"] == pytest.approx(0.4)
    assert found["three_reordered_percent"] == pytest.approx(0.1)
    assert (found["extent_mean"], found["extent_max"]) == (2.5, 5)
    assert found["worst"]["src"] == "node1:e0"
    assert found["worst"]["reordered_percent"] == pytest.approx(0.4)


def test_without_a_record_all_was_in_order() -> None:
    found = summary_of(*frames(1000, sent(), received(1000)))["reordering"]
    assert found == {
        "reordered_percent": 0,
        "three_reordered_percent": 0,
        "extent_mean": None,
        "extent_max": 0,
        "worst": None,
    }


# --- the switch's counters -------------------------------------------------------------------


def test_outputs_of_several_tools() -> None:
    text = """
NIC statistics:
     rx_packets: 1200
     tx_dropped: 0
IF-MIB::ifOutDiscards.1 = Counter32: 17
Eth1/1 input errors   3
uptime 3 days
temperature 41.5
-12
"""
    assert parse_counters(text) == {
        "rx_packets": 1200,
        "tx_dropped": 0,
        "IF-MIB::ifOutDiscards.1 = Counter32": 17,
        "Eth1/1 input errors": 3,
    }


def counters(code: str, timeout_s: float = 10.0) -> SwitchCountersCommand:
    return SwitchCountersCommand((sys.executable, "-c", code), timeout_s)


def test_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("5")
    asked = counters(f"n = open({str(path)!r}).read(); print('drops:', n); print('same: 1')")
    read_counters(asked, tmp_path / BEFORE)
    path.write_text("47")
    read_counters(asked, tmp_path / AFTER)
    assert (tmp_path / BEFORE).read_text() == "drops: 5\nsame: 1\n"
    found = compare_counters(asked, tmp_path)
    assert found is not None
    assert found["differences"] == {"drops": 42}
    assert found["compared"] == 2
    assert compare_counters(None, tmp_path) is None


def test_a_run_that_ended_early_has_no_differences(tmp_path: Path) -> None:
    asked = counters("print('a 1')")
    read_counters(asked, tmp_path / BEFORE)
    found = compare_counters(asked, tmp_path)
    assert found is not None
    assert (found["after"], found["differences"]) == (None, None)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (SwitchCountersCommand(("/no/such/command",), 1.0), "can't be run: No such file"),
        (counters("import sys; print('no login', file=sys.stderr); sys.exit(3)"), "3: no login"),
        (counters("import time; time.sleep(9)", 0.2), r"took more than 0\.2 s"),
    ],
)
def test_a_command_that_fails(asked: SwitchCountersCommand, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=sentence):
        read_counters(asked, tmp_path / BEFORE)


@needs_engine
def test_configured(tmp_path: Path) -> None:
    key = "switch_counters: {command: [./c, -v], timeout: 3s}\n"
    run = compile_text(tmp_path, f"{LAB}{key}pattern: chain\n")
    assert run.switch_counters == SwitchCountersCommand(("./c", "-v"), 3.0)
    assert run.effective["switch_counters"] == {"command": ["./c", "-v"], "timeout": "3s"}
    assert compile_text(tmp_path, f"{LAB}pattern: chain\n").switch_counters is None
    with pytest.raises(ConfigurationError, match="is an empty list"):
        compile_text(tmp_path, f"{LAB}switch_counters: {{command: []}}\npattern: chain\n")
