# SPDX-License-Identifier: BSD-3-Clause
"""A lab whose switch is Open vSwitch: the same topologies, made and removed as those of bridges."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import counters
from labkit import (
    PREFIX,
    heard,
    held,
    learn,
    needs_lab,
    needs_ovs,
    packet_socket,
    send_at_once,
)
from switchbench.labs import LabError, load, namespaces, session

pytestmark = [needs_lab, needs_ovs, pytest.mark.usefixtures("nothing_left")]


def test_what_a_killed_run_left_is_cleaned_by_the_next() -> None:
    name = f"{PREFIX}-killed"
    with held("one-switch", name, "ovs") as holder:
        holder.kill()
    left = namespaces.processes([f"sb-{name}-switch"])
    assert len(left) == 2
    with session(load("one-switch", {"nodes": 4}), name) as lab:  # of bridges
        assert heard(lab, "node1", "node4", "ipv4")
        assert not {pid for pid in left if Path(f"/proc/{pid}/exe").exists()}
        assert not Path(f"/run/switchbench/{name}.ovs").exists()


def test_frames_of_all_sizes_pass_and_are_counted() -> None:
    with session(load("one-switch", {"kind": "ovs"}), f"{PREFIX}-count") as lab:
        learn(list(lab.nodes))
        before = counters.read(lab)
        source, destination = lab.nodes[0], lab.nodes[7]
        with packet_socket(destination) as receiver:
            receiver.settimeout(3)
            for size in (60, 1514):
                send_at_once(source, destination, size, 20)
                assert {len(receiver.recv(2000)) for _ in range(20)} == {size}
        change = counters.read(lab) - before
        assert change.nodes[source.name].frames_from_node == 40
        assert change.nodes[destination.name].frames_to_node == 40
        others = [node.name for node in lab.nodes[1:7]]
        assert {change.nodes[name].frames_to_node for name in others} == {0}


def test_a_queue_drops_from_its_tail_as_with_bridges() -> None:
    changes = {"kind": "ovs", "rate": "1M", "queue": "8KiB"}
    with session(load("one-switch", changes), f"{PREFIX}-tail") as lab:
        learn(list(lab.nodes))
        before = counters.read(lab)
        send_at_once(lab.nodes[0], lab.nodes[1], 1514, 50)
        truth = (counters.read(lab) - before).nodes["node1"]
        assert truth.frames_from_node == 50
        assert truth.dropped_from_node > 25


def test_without_open_vswitch_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(
        shutil,
        "which",
        lambda name, path=None: None if name == "ovs-vswitchd" else real(name, path=path),
    )
    with (
        pytest.raises(LabError, match="ovs-vswitchd is not installed: `apt-get install openvs"),
        session(load("one-switch", {"kind": "ovs"}), f"{PREFIX}-none"),
    ):
        pytest.fail("there is no switch")
