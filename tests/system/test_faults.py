# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong in a run, done to the real engine on a lab: each fault ends in one clear
sentence, with the right exit status, with all that was measured, and on a machine as it was found.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyroute2 import IPRoute

import counters
import labkit
import runs
import unauthenticated
import underway
from switchbench import labs
from switchbench.labs import namespaces
from switchbench.topology import lab_addresses

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

TRANSPORTS = ["dpdk", "tcp"]
BARRIER_TIMEOUT_S = 1.5
HEARTBEAT_TIMEOUT_S = 0.5
FLOOD_LIMIT = 100
QUICK: dict[str, Any] = {"warmup": "100ms", "window": "800ms", "load": "80%"}
ALL_TO_ALL = {"pattern": "aapc", "order": "shift"}

# A node stops within 100 ms; the rest is for a machine that is busy with other things.
STOP_LIMIT_S = 0.25
FIRST_PROBES = 20  # of the 3 of each of 12 flows: the plan is being probed
LAST_SEGMENTS = 30  # connections are closed, or their partner's kernel resets them


def quick_by(transport: str) -> list[Any]:
    """Both; in the quick tier that one: nodes miss each other alike whatever they send by."""
    return [
        pytest.param(other, marks=[] if other == transport else pytest.mark.slow)
        for other in TRANSPORTS
    ]


def configuration(topology: Path, transport: str, **more: Any) -> runs.Record:
    control = {
        "barrier_timeout": f"{BARRIER_TIMEOUT_S * 1000:.0f}ms",
        "heartbeat_timeout": f"{HEARTBEAT_TIMEOUT_S * 1000:.0f}ms",
    }
    site = {"lab": str(topology), "control": control}
    return {"site": site, "transport": transport, **QUICK, "tests": [ALL_TO_ALL], **more}


def complete_phases(summary: runs.Record) -> list[int]:
    """Which phases were measured whole, with nothing unknown or lost in them."""
    return [
        trial["phase"]
        for trial in summary["trials"]
        if trial["state"] == "complete" and 0 < trial["delivered_bytes"] == trial["offered_bytes"]
    ]


def assert_later_runs_work(directory: Path, topology: Path, transport: str) -> None:
    later = directory / "later"
    later.mkdir()
    result = runs.run(
        later,
        configuration(topology, transport, tests=[{"pattern": "pairs"}], window="300ms"),
    )
    assert result.status == 0, result.errors
    assert complete_phases(result.summary) == [0]


# --- a node ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", quick_by("tcp"))
def test_a_node_that_is_killed_is_named_and_earlier_phases_are_kept(
    transport: str, topology: Path, tmp_path: Path
) -> None:
    with underway.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=2)
        os.kill(underway.node_pid(topology.stem, "node3"), signal.SIGKILL)
        result = run.end()
    assert result.status == 3
    said = underway.sentence(result.errors)
    assert said == "node3 (switch p3) was ended by signal 9 (Killed)"
    assert result.summary["errors"] == [said]
    assert result.summary["status"] == "partial"
    assert complete_phases(result.summary) == [0, 1]
    assert [trial["state"] for trial in result.trials(phase=2)] == ["stopped"]
    assert_later_runs_work(tmp_path, topology, transport)


@pytest.mark.parametrize("transport", quick_by("dpdk"))
def test_a_node_that_falls_silent_is_named(transport: str, topology: Path, tmp_path: Path) -> None:
    with underway.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=1)
        os.kill(underway.node_pid(topology.stem, "node2"), signal.SIGSTOP)
        stopped_s = time.monotonic()

        def named() -> list[runs.Record]:
            return [record for record in run.records() if record["type"] == "missing"]

        # What is left of the phase, and tcp's drain: its silent partner never says that it is done.
        phase_s = 1.0 + (3.0 if transport == "tcp" else 0.5)
        underway.wait_until(named, "node2 is missed", phase_s + BARRIER_TIMEOUT_S + 1.5)
        print(f"named after {time.monotonic() - stopped_s:.1f} s")
        result = run.end(limit_s=15)
    assert {record["missing_node"] for record in named()} == {"node2"}
    assert result.status == 3
    said = underway.sentence(result.errors)
    assert said.startswith("node2 (switch p2) did not reach barrier ")
    assert f"within {BARRIER_TIMEOUT_S * 1000:.0f} ms" in said
    assert result.summary["errors"] == [said]
    assert result.summary["status"] == "partial"
    assert complete_phases(result.summary) == [0]


def test_the_others_stop_when_a_node_is_killed(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    with underway.started(tmp_path / "run", configuration(topology, "dpdk", window="3s")) as run:
        run.wait_for_load()
        pid = underway.node_pid(topology.stem, "node3")
        trace = underway.Trace(kept_lab, lambda: os.kill(pid, signal.SIGKILL), for_s=1.0)
        result = run.end()
    assert trace.frames_before > 0
    print(f"silent {1000 * trace.stopped_after_s:.0f} ms after the kill")
    assert trace.frames_after(STOP_LIMIT_S) == 0
    assert result.status == 3
    assert underway.sentence(result.errors) == ("node3 (switch p3) was ended by signal 9 (Killed)")


# --- the controller -------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", quick_by("tcp"))
def test_traffic_stops_when_the_controller_is_killed(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    with underway.started(tmp_path / "run", configuration(topology, transport)) as run:
        run.wait_for_load(phase=1)
        pids = run.node_pids()
        trace = underway.Trace(kept_lab, run.process.kill, for_s=1.0)
        assert trace.frames_before > 0
        print(f"{transport}: silent {1000 * trace.stopped_after_s:.0f} ms after the kill")
        assert trace.frames_after(STOP_LIMIT_S) <= (LAST_SEGMENTS if transport == "tcp" else 0)
        underway.wait_until(
            lambda: not any(map(underway.is_alive, pids)), "the nodes are gone", 1.0
        )
        result = run.end()
    assert result.status == -signal.SIGKILL
    assert list(result.records("phase"))
    again = underway.command("table", str(result.directory), "--again")
    assert again.returncode == 3
    assert "the run's command was killed" in again.stdout
    assert 0 in complete_phases(result.summary)
    for word in ("down", "up"):
        what = str(topology) if word == "up" else kept_lab.name
        done = underway.command("lab", word, what)
        assert done.returncode == 0, done.stderr


def test_a_silent_controller_stops_traffic(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    with underway.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        run.wait_for_load(phase=1)
        trace = underway.Trace(
            kept_lab,
            lambda: run.process.send_signal(signal.SIGSTOP),
            for_s=HEARTBEAT_TIMEOUT_S + 1.0,
        )
        assert trace.frames_before > 0
        print(f"silent {1000 * trace.stopped_after_s:.0f} ms after the controller hung")
        assert trace.frames_after(HEARTBEAT_TIMEOUT_S + STOP_LIMIT_S) == 0
        run.process.send_signal(signal.SIGCONT)
        result = run.end()
    assert result.status == 3
    said = underway.sentence(result.errors)
    assert said.count(f"no heartbeat for {HEARTBEAT_TIMEOUT_S * 1000:.0f} ms: stopping") == 1
    assert result.summary["errors"] == [said]
    assert result.summary["status"] == "partial"
    assert 0 in complete_phases(result.summary)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_in_order(
    number: signal.Signals, topology: Path, tmp_path: Path
) -> None:
    with underway.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        run.wait_for_load(phase=1)
        run.process.send_signal(number)
        result = run.end(limit_s=10)
    assert result.status == 3
    assert underway.sentence(result.errors) == f"interrupted ({number.name})"
    assert result.summary["errors"] == [f"interrupted ({number.name})"]
    assert result.summary["status"] == "partial"
    assert complete_phases(result.summary) == [0]
    (stopped,) = result.trials(phase=1)
    assert stopped["state"] == "stopped"
    assert stopped["delivered_frames"] > 0
    assert {record["reason"] for record in result.records("bye")} == {"end-of-input"}
    assert_later_runs_work(tmp_path, topology, "dpdk")


def test_a_second_run_on_a_lab_is_refused(topology: Path, tmp_path: Path) -> None:
    long = configuration(topology, "dpdk", window="4s")  # two commands start meanwhile
    with underway.started(tmp_path / "first", long) as first:
        first.wait_for_load()
        (tmp_path / "second").mkdir()
        second = runs.run(tmp_path / "second", configuration(topology, "tcp"))
        down = underway.command("lab", "down", topology.stem)
        result = first.end()
    assert second.status == 2
    holder = f"lab {topology.stem} is in use by process {first.process.pid} "
    assert underway.sentence(second.errors).startswith(holder)
    assert not second.directory.exists()
    assert down.returncode == 2
    assert underway.sentence(down.stderr).startswith(holder)
    assert result.status == 0, result.errors
    assert complete_phases(result.summary) == [0, 1, 2]


# --- without the key ------------------------------------------------------------------------------


def rejected_at(result: runs.Result, port: str) -> int:
    """How many connections without the key came to a port, as the alarms say."""
    said = f"{port}: unauthenticated: connections that did not show this run's key: "
    counts = [alarm.removeprefix(said) for alarm in result.summary["warnings"]]
    return max((int(text.split(";")[0]) for text in counts if text[0].isdigit()), default=0)


def test_a_key_of_zeros_opens_no_connection(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    metrics = unauthenticated.free_port()
    words = ["--metrics", f"127.0.0.1:{metrics}"]
    with underway.started(tmp_path / "run", configuration(topology, "tcp"), *words) as run:
        place = unauthenticated.listener(kept_lab, "node1")
        (intruder,) = unauthenticated.call(kept_lab, "node3", place, 1)
        intruder.settimeout(10)
        challenge = intruder.recv(unauthenticated.CHALLENGE_BYTES, socket.MSG_WAITALL)
        key = unauthenticated.key_of_zeros(unauthenticated.run_id(metrics))
        intruder.sendall(unauthenticated.claim(challenge, key))
        intruder.settimeout(3)
        assert intruder.recv(1) == b""
        intruder.close()
        result = run.end()
    assert result.status == 0, result.errors
    assert complete_phases(result.summary) == [0, 1, 2]
    assert rejected_at(result, "node1:e0") == 1
    assert "it does not hold this run's key" in str(result.summary["warnings"])


@pytest.mark.parametrize("count", [200, 3000])
def test_idle_connections_keep_nobody_busy(
    count: int, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    given = configuration(topology, "tcp", tests=[ALL_TO_ALL, {"pattern": "pairs"}])
    calls: list[socket.socket] = []
    pids: dict[str, int] = {}
    with underway.started(tmp_path / "run", given) as run:
        for node in ("node1", "node2"):
            place = unauthenticated.listener(kept_lab, node)
            calls += unauthenticated.call(kept_lab, "node3", place, count)
            pids[node] = underway.node_pid(kept_lab.name, node)
        busy_s = dict.fromkeys(pids, 0.0)
        while run.process.poll() is None:
            for node, pid in pids.items():
                busy_s[node] = max(busy_s[node], underway.main_thread_s(pid))
            time.sleep(underway.SAMPLE_S)
        result = run.end()
    for call in calls:
        call.close()
    print(f"{count}: main threads took {busy_s}, {rejected_at(result, 'node1:e0')} named")
    assert result.status == 0, result.errors
    assert complete_phases(result.summary) == [0, 1, 2, 0]
    assert max(busy_s.values()) < 1.5
    for node in pids:
        assert 0.9 * count < rejected_at(result, f"{node}:e0") <= count


def test_who_idles_in_a_phase_answers_partners_of_the_next(tmp_path: Path) -> None:
    """Of five ranks in pairs one idles in each phase, while others connect for the phase behind it:
    its connections are the run's, however long the phase takes."""
    topology = underway.write_topology(tmp_path, *(f"node{n}" for n in range(1, 6)))
    pairwise = {"pattern": "aapc", "order": "pairwise"}
    given = configuration(topology, "tcp", tests=[pairwise]) | {"window": "2500ms"}
    result = runs.run(tmp_path, given)
    assert result.status == 0, result.errors
    assert len(complete_phases(result.summary)) == 5
    assert result.summary["warnings"] == []


# --- the disk -------------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system, not yet full."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"can't mount a small file system: {made.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def fill(path: Path) -> None:
    """Leaves no room beside this file."""
    with path.open("wb", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))


def test_a_full_disk_ends_a_run_with_whole_lines(
    tiny_disk: Path, topology: Path, tmp_path: Path
) -> None:
    ballast = tiny_disk / "ballast"
    with underway.started(tiny_disk / "run", configuration(topology, "dpdk")) as run:
        run.wait_for_load(phase=1)
        fill(ballast)
        result = run.end(limit_s=10)
    assert result.status == 3
    full = underway.sentences(result.errors)
    assert all("No space left on device" in line for line in full)
    assert list(result.records("phase"))
    assert result.summary["errors"] == full[:-1]
    ballast.unlink()
    again = underway.command("table", str(result.directory), "--again")
    assert again.returncode == 3
    summary = runs.Result(3, "", "", result.directory).summary
    assert 0 in complete_phases(summary)
    assert summary["errors"] == full[:-1]  # and not that its command was killed
    assert_later_runs_work(tmp_path, topology, "dpdk")


# --- the switch -----------------------------------------------------------------------------------


def in_switch(lab: labs.Lab, change: Any) -> Any:
    """What `change` returns, given a netlink socket in the switch's namespace."""

    def work() -> Any:
        with IPRoute() as netlink:
            return change(netlink)

    return namespaces.inside(lab_addresses.NAMESPACES / lab_addresses.switch_name(lab.name), work)


def port_index(netlink: IPRoute, lab: labs.Lab, node: str) -> int:
    port = lab_addresses.switch_port(lab.topology.node(node))
    return int(netlink.link_lookup(ifname=port)[0])


def probes_only(sent: int) -> bool:
    """Whether so many frames are probes, connections and learning at most: no load of a phase."""
    one_phase = len(underway.NODES) * 0.8 * 20e6 / 8 / 1538  # a second of it
    return sent < 0.1 * one_phase


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_pairs_without_a_way_are_named_before_load(
    transport: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    in_switch(
        kept_lab, lambda link: link.link("set", index=port_index(link, kept_lab, "node3"), master=0)
    )
    before = underway.frames_from_nodes(kept_lab)
    result = runs.run(tmp_path, configuration(topology, transport))
    assert probes_only(underway.frames_from_nodes(kept_lab) - before)
    assert result.status == 3
    assert underway.sentence(result.errors) == (
        "no load in trial 0: no probe got through node1:e0 -> node3:e0, node2:e0 -> node3:e0, "
        "node3:e0 -> node1:e0, node3:e0 -> node2:e0, node3:e0 -> node4:e0, node4:e0 -> node3:e0"
    )
    assert result.summary["status"] == "failed"
    named = [text for text in result.summary["not_measured"] if "can't be reached from" in text]
    assert len(named) == 6


def test_a_pair_that_missed_its_probes_is_asked_again(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """node3 is away from the switch while the first probes are sent, and comes back."""

    def join(link: IPRoute, master: int) -> int:
        """Which bridge it was at before."""
        index = port_index(link, kept_lab, "node3")
        old: int = link.get_links(index)[0].get_attr("IFLA_MASTER")
        link.link("set", index=index, master=master)
        return old

    switch = in_switch(kept_lab, lambda link: join(link, 0))
    before = underway.frames_from_nodes(kept_lab)
    with underway.started(tmp_path / "run", configuration(topology, "dpdk")) as run:
        while underway.frames_from_nodes(kept_lab) - before < FIRST_PROBES:
            time.sleep(0.01)
        time.sleep(0.2)
        in_switch(kept_lab, lambda link: join(link, switch))
        result = run.end()
    assert result.status == 0, result.errors
    assert len(complete_phases(result.summary)) == len(underway.NODES) - 1


def test_a_dead_link_is_named_before_load(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    in_switch(
        kept_lab,
        lambda link: link.link("set", index=port_index(link, kept_lab, "node2"), state="down"),
    )
    before = underway.frames_from_nodes(kept_lab)
    result = runs.run(tmp_path, configuration(topology, "dpdk"))
    assert probes_only(underway.frames_from_nodes(kept_lab) - before)
    assert result.status == 3
    said = underway.sentence(result.errors)
    assert said.startswith("node2 (switch p2)")
    assert "port node2:e0 has had no link for 10 s" in said
    assert result.summary["status"] == "failed"


@pytest.mark.parametrize("end", ["switch", "node"])
def test_a_link_that_goes_down_under_load_is_reported(
    end: str, kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    def set_down() -> None:
        node = kept_lab.node("node2")
        with IPRoute() as netlink:
            index = netlink.link_lookup(ifname=node.iface)[0]
            netlink.link("set", index=index, state="down")

    given = configuration(topology, "dpdk", flood_limit=FLOOD_LIMIT)
    with underway.started(tmp_path / "run", given) as run:
        run.wait_for_load(phase=1)
        if end == "node":
            namespaces.inside(kept_lab.node("node2").namespace, set_down)
        else:
            in_switch(
                kept_lab,
                lambda link: link.link(
                    "set", index=port_index(link, kept_lab, "node2"), state="down"
                ),
            )
        result = run.end(limit_s=10)
    # The switch forgets where node2 was and floods what is meant for it.
    assert result.status == 3
    said = underway.sentence(result.errors)
    assert "the switch floods" in said
    assert "most for node2:e0 (has it lost its link?)" in said
    assert result.summary["warnings"] == ["node2:e0: link-down"]
    assert complete_phases(result.summary) == [0]


def test_a_cable_that_is_cut_for_a_while_fails_the_run_whatever_is_measured_again(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    """The phase is not forgotten: its frames are counted, its port is named, the clause fails."""
    clause = {"clause": "no frame is lost", "measure": "lost_frames", "require": "== 0"}
    conf = configuration(topology, "dpdk", window="3s", load="50%", remeasure=3, expect=[clause])
    conf["tests"] = [{"pattern": "pairs"}]

    def set_link(state: str) -> None:
        in_switch(
            kept_lab,
            lambda link: link.link("set", index=port_index(link, kept_lab, "node2"), state=state),
        )

    with underway.started(tmp_path / "run", conf) as run:
        run.wait_for_load()
        set_link("down")
        time.sleep(0.8)
        set_link("up")
        result = run.end()
    summary = result.summary
    assert (result.status, summary["status"]) == (1, "complete"), result.errors
    (phase,) = summary["trials"]
    assert phase["lost_frames"] > 100
    (judged,) = summary["expectations"]
    assert (judged["verdict"], judged["value"]) == ("FAIL", phase["lost_frames"])
    named = [suspect["sentence"] for suspect in summary["location"]["suspects"]]
    assert any("node2:e0" in sentence for sentence in named), named
    verified = underway.command("verify", str(result.directory))
    assert verified.returncode == 0, verified.stderr


@pytest.mark.parametrize("tests", [[ALL_TO_ALL], [{"pattern": "pairs"}]], ids=["aapc", "pairs"])
def test_a_flooding_switch_stops_the_run(
    tests: list[Any], kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    def forget_node2(netlink: IPRoute) -> None:
        netlink.brport("set", index=port_index(netlink, kept_lab, "node2"), learning=0)

    in_switch(kept_lab, forget_node2)
    before = counters.read(kept_lab)
    result = runs.run(
        tmp_path,
        configuration(topology, "dpdk", tests=tests, window="3s", flood_limit=FLOOD_LIMIT),
    )
    truth = counters.read(kept_lab) - before
    assert result.status == 3
    said = underway.sentence(result.errors)
    (count,) = re.findall(r"the switch floods: port node[134]:e0 got (\d+) frames", said)
    assert said.endswith(f"and flood_limit is {FLOOD_LIMIT}")
    assert FLOOD_LIMIT < int(count) < 4 * FLOOD_LIMIT
    assert result.summary["status"] == "partial"
    (flooded,) = result.trials(state="flooded")
    assert flooded["phase"] == 0
    assert flooded["misdelivered_frames"] > FLOOD_LIMIT
    assert flooded["lost_frames"] is None  # nobody waited for what was under way
    # Those whose frames are flooded stop too, long before the phase's end.
    assert probes_only(max(node.frames_from_node for node in truth.nodes.values()) // 2)


# --- the configuration ----------------------------------------------------------------------------


def test_an_interface_with_the_default_route_is_refused(
    kept_lab: labs.Lab, topology: Path, tmp_path: Path
) -> None:
    node = kept_lab.node("node2")

    def add_route() -> None:
        with IPRoute() as netlink:
            eth0 = netlink.link_lookup(ifname=node.iface)[0]
            gateway = kept_lab.node("node1").ipv4
            netlink.route("add", dst="default", gateway=gateway, oif=eth0)

    namespaces.inside(node.namespace, add_route)
    before = underway.frames_from_nodes(kept_lab)
    result = runs.run(tmp_path, configuration(topology, "dpdk"))
    assert underway.frames_from_nodes(kept_lab) == before
    assert result.status == 2
    said = underway.sentence(result.errors)
    assert said.startswith("node2 (switch p2): ")
    assert "default route" in said
    assert result.summary["exit_status"] == 2


def test_nodes_of_a_hand_are_not_started(tmp_path: Path) -> None:
    ports = {"e0": {"network": "lan", "line_rate": "1Gbit", "iface": "eth1"}}
    site = {"launch": "hand", "hosts": "node[1-2]", "ports": ports}
    result = runs.run(tmp_path, {"site": site, "tests": [{"pattern": "pairs"}]})
    assert result.status == 2
    said = "launch: hand: nobody can start these nodes from here"
    assert underway.sentence(result.errors).startswith(said)
    assert not result.directory.exists()
