# SPDX-License-Identifier: BSD-3-Clause
"""A lab from up to down: made whole, removed whole, one user at a time, and after a crash."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit import (
    PREFIX,
    PortCounters,
    counters,
    heard,
    held,
    learn,
    leftovers,
    needs_lab,
    needs_ovs,
    packet_socket,
    python,
    send_at_once,
)
from switchbench.labs import Lab, LabError, down, find, load, namespaces, session, state, up
from switchbench.labs.lab import bring_up, run_command, status, take_down
from switchbench.topology import lab_addresses

pytestmark = needs_lab

TOPOLOGIES = [
    *((name, "bridges") for name in ("one-switch", "two-modules", "tree", "open", "sixty-four")),
    *(pytest.param(name, "ovs", marks=needs_ovs) for name in ("one-switch", "tree", "open")),
]
DAEMONS = {"bridges": [], "ovs": ["ovs-vswitchd", "ovsdb-server"]}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    yield
    assert leftovers() == []
    assert {path.name for path in Path("/sys/class/net").iterdir()} <= links


@pytest.mark.parametrize(("name", "kind"), TOPOLOGIES)
def test_up_connects_everything_and_down_leaves_nothing(name: str, kind: str) -> None:
    start = time.monotonic()
    lab = up(load(name, {"kind": kind}), f"{PREFIX}-{name}")
    try:
        quick = (name, kind) == ("one-switch", "bridges")
        assert time.monotonic() - start < (1.5 if quick else 10)
        first, last = lab.nodes[0].name, lab.nodes[-1].name
        for attribute in ("ipv4", "ipv6", "control_ipv4"):
            assert heard(lab, first, last, attribute)
        assert (lab_addresses.NAMESPACES / f"sb-{lab.name}-switch").exists()
        pids = namespaces.processes([f"sb-{lab.name}-switch"])
        names = sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids)
        assert names == DAEMONS[kind]
    finally:
        down(lab.name)
    assert leftovers() == []


def test_down_ends_processes_and_namespaces() -> None:
    lab = up(load("one-switch"), f"{PREFIX}-busy")
    process = lab.popen("node3", ["sleep", "1000"])
    stubborn = lab.popen(
        "node4", python("import signal, time\nsignal.signal(15, 1)\ntime.sleep(99)")
    )
    time.sleep(0.3)
    down(lab.name)
    assert process.wait(timeout=1) == -signal.SIGTERM
    assert stubborn.wait(timeout=1) == -signal.SIGKILL


def test_a_second_run_is_refused_and_the_holder_named() -> None:
    name = f"{PREFIX}-held"
    with held("one-switch", name) as holder:
        for attempt in (
            lambda: up(load("one-switch"), name),
            lambda: down(name),
            lambda: session(load("one-switch"), name).__enter__(),
        ):
            with pytest.raises(LabError, match=f"in use by process {holder.pid} "):
                attempt()
        assert state.holder(name) == holder.pid
        holder.communicate()
    assert holder.returncode == 0


@pytest.mark.parametrize("kind", ["bridges", pytest.param("ovs", marks=needs_ovs)])
def test_what_a_killed_run_left_is_cleaned(kind: str) -> None:
    """By the next run of its name, by any other, and by `down`."""
    name = f"{PREFIX}-killed"

    def crash() -> list[int]:
        with held("one-switch", name, kind) as holder:
            with session(load("open"), f"{PREFIX}-other"):
                assert (lab_addresses.NAMESPACES / f"sb-{name}-node8").exists()  # it is in use
            holder.kill()
        assert any(line.startswith(f"{name}: left by a crash") for line in status())
        return namespaces.processes([f"sb-{name}-switch"])

    left = crash()
    assert len(left) == len(DAEMONS[kind])
    # Another topology under the same name: the crashed one's nodes 5 to 8 have to go as well.
    with session(load("one-switch", {"nodes": 4}), name) as lab:
        assert heard(lab, "node1", "node4", "ipv4")
        assert not (lab_addresses.NAMESPACES / f"sb-{name}-node8").exists()
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in left)
        assert not Path(f"/run/switchbench/{name}.ovs").exists()
    crash()
    with session(load("open"), f"{PREFIX}-other"):
        assert not (lab_addresses.NAMESPACES / f"sb-{name}-node8").exists()
        assert name not in state.labs()
    crash()
    down(name)


@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.3])
def test_killed_while_making_a_lab(after_s: float) -> None:
    name = f"{PREFIX}-half"
    code = (
        "import sys\nfrom switchbench.labs import load, up\ntopology = load('sixty-four')\n"
        "print('now', flush=True)\nup(topology, sys.argv[1])\n"
    )
    with subprocess.Popen(python(code, name), stdout=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == b"now\n"
        time.sleep(after_s)
        maker.kill()
    known = state.read(name)
    if known is not None and known.kept:
        down(name)  # It was quicker.
    with session(load("sixty-four"), name) as lab:
        assert heard(lab, "node1", "node64", "ipv4")


def test_a_session_uses_a_lab_that_is_up_and_leaves_it() -> None:
    name = f"{PREFIX}-kept"
    up(load("one-switch"), name)
    try:
        with session(load("one-switch"), name) as lab:
            assert heard(lab, "node1", "node2", "ipv4")
        assert find(name) == lab
        with (
            pytest.raises(LabError, match="is up with a topology that differs"),
            session(load("tree"), name),
        ):
            pass
        with pytest.raises(LabError, match="is up already"):
            up(load("one-switch"), name)
    finally:
        down(name)


def test_names_that_would_mix_two_labs_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("topology: 1\nrate: 1M\nmodules: [m]\nnodes: {b-a1: {}, b-a2: {}}\n")
    with session(load(file), PREFIX):
        file.write_text("topology: 1\nrate: 1M\nmodules: [m]\nnodes: {a1: {}, a3: {}}\n")
        with pytest.raises(LabError, match=f"lab {PREFIX} already has the namespace"):
            up(load(file), f"{PREFIX}-b")


def test_unknown_lab_and_bad_name() -> None:
    with pytest.raises(LabError, match="is not up"):
        down(f"{PREFIX}-none")
    with pytest.raises(LabError, match="can't be a lab's name"):
        up(load("one-switch"), "../etc")
    with pytest.raises(LabError, match="1023"):
        up(load("one-switch", {"nodes": 1100}))


def test_a_full_frame_with_a_vlan_tag_passes(lab: Lab) -> None:
    source, destination = lab.nodes
    with packet_socket(source) as sender, packet_socket(destination) as receiver:
        addresses = b"\xff" * 6 + bytes.fromhex(source.mac.replace(":", ""))
        sender.send((addresses + bytes.fromhex("8100002a88b5")).ljust(1518, b"\0"))
        receiver.settimeout(3)
        # Linux has moved the tag from the frame to its ancillary data by now.
        assert len(receiver.recv(2000)) == 1514


def test_status_and_exec(capfd: pytest.CaptureFixture[str]) -> None:
    name = f"{PREFIX}-cli"
    said = [bring_up("two-modules", name)]
    try:
        said += status()
        assert run_command(f"{name}/node7", ["cat", "/proc/net/dev"]) == 0
        assert "ctl0" in capfd.readouterr().out
        assert run_command("switch", python("raise SystemExit(3)"), name) == 3
        assert run_command("node1", ["sh", "-c", "kill -9 $$"], name) == 128 + 9
        with pytest.raises(LabError, match="no-such-command can't be run"):
            run_command("node1", ["no-such-command"], name)
    finally:
        said += take_down(name)
    assert f"{name}: up: 24 nodes, 2 modules, 1 trunk" in said
    assert f"lab {name} is down" in said


# --- shapers --------------------------------------------------------------------------------------

WINDOW_S = 2.0

# rate, frame as Linux counts it, MTU
LINKS = [
    ("100M", 1514, 1500),
    ("100M", 9014, 9000),
    ("10M", 60, 1500),
    ("1M", 1514, 1500),
]


def timed(lab: Lab) -> tuple[float, PortCounters]:
    """Return the counters of the second node, and the time at which they were read.

    Of several readings the quickest: this machine may do something else in between, and a shift of
    10 ms is half a percent of a window.
    """
    readings = []
    for _ in range(5):
        start_s = time.monotonic()
        truth = counters(lab)[lab.nodes[1].name]
        end_s = time.monotonic()
        readings.append((end_s - start_s, (start_s + end_s) / 2, truth))
    return min(readings, key=lambda reading: reading[0])[1:]


@pytest.mark.parametrize(("rate", "size", "mtu"), LINKS)
def test_a_link_carries_its_rate(rate: str, size: int, mtu: int) -> None:
    """Its queue is filled with enough for the whole test, so that no sender can be late."""
    changes = {"nodes": 2, "rate": rate, "mtu": mtu, "queue": "128MiB"}
    frame_bits = max(size + 24, 84) * 8  # at layer 1
    with session(load("one-switch", changes), f"{PREFIX}-rate") as lab:
        source, destination = lab.nodes
        learn(list(lab.nodes))
        before = counters(lab)[source.name]
        line_bps = source.line_rate_bps
        count = int((WINDOW_S + 2.5) * line_bps / frame_bits)
        start_s = time.monotonic()
        send_at_once(source, destination, size, count)
        time.sleep(0.3)
        begun_s, first = timed(lab)
        time.sleep(WINDOW_S)
        ended_s, last = timed(lab)
        in_time = time.monotonic() - start_s < WINDOW_S + 2.4
        change = counters(lab)[source.name] - before
    assert in_time, "this machine was too busy to fill the queue in time"
    rate_bps = (last - first).frames_to_node * frame_bits / (ended_s - begun_s)
    assert rate_bps == pytest.approx(line_bps, rel=0.005, abs=frame_bits / WINDOW_S)
    assert (change.frames_from_node, change.dropped_from_node) == (count, 0)
