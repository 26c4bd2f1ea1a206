# SPDX-License-Identifier: BSD-3-Clause
"""Paths of sites, and observations of a phase, for the location of faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recorded import fed
from switchbench.analysis.location.facts import Paths
from switchbench.analysis.location.wired import paths_of
from switchbench.analysis.summary import Summary
from switchbench.base.model import CableBundle, Port, Process, Site, Wiring
from switchbench.topology import fabric, topology
from synthetic import frame_side, make_run, make_site, make_trial, port_record, trial_record
from synthetic import phase_record as phase_end

G10 = 10_000_000_000


def site(switches: Sequence[str | None], cables: Sequence[CableBundle] | None, **more: Any) -> Site:
    """A site of one port for each named switch (None: unknown)."""
    ports = tuple(
        Port(f"n{i}:e0", f"n{i}", "net", ("dpdk",), {}, G10, 0, switch, f"p{i}" if switch else None)
        for i, switch in enumerate(switches)
    )
    wiring = None if cables is None else Wiring("topology file X", tuple(cables))
    processes = tuple(Process(port.host, (port,), {}) for port in ports)
    return Site("ssh", processes, {"net": ports}, wiring=wiring, **more)


def way(paths: Paths, src: int, dst: int) -> list[str]:
    """The elements of one pair in words."""
    indptr, members = paths.of_pairs(np.array([src]), np.array([dst]))
    assert indptr.tolist() == [0, len(members)]
    found = [paths.elements[number] for number in members]
    return [f"{e.kind} {e.name} {e.direction}".rstrip() for e in found]


def test_a_lab_has_hosts_cables_ports_modules_and_trunks_on_its_paths() -> None:
    lab = topology.parse(
        {
            "topology": 1,
            "modules": ["left", "right"],
            "rate": "100M",
            "nodes": {"node[1-2]": {"module": "left"}, "node[3-4]": {"module": "right"}},
            "trunks": [{"between": ["left", "right"], "links": 2}],
        },
        "two",
    )
    wiring = fabric.wiring(lab)
    assert wiring.source == "topology file two"
    paths = paths_of(site(["left", "left", "right", "right"], wiring.cables))
    assert way(paths, 0, 1) == [
        "host n0:e0 send",
        "cable n0:e0 - left:p0 from n0:e0 to left",
        "port left:p0 in",
        "module left",
        "port left:p1 out",
        "cable n1:e0 - left:p1 from left to n1:e0",
        "host n1:e0 receive",
    ]
    assert way(paths, 3, 0)[3:6] == [
        "module right",
        "trunk left - right from right to left",
        "module left",
    ]
    (trunk,) = (e for e in paths.elements if e.direction == "from left to right")
    assert (trunk.links, trunk.line_bps) == (2, 200e6)
    assert not any(element.kind == "group" for element in paths.elements)


def test_switches_that_a_switch_can_choose_from_count_as_one() -> None:
    cables = [CableBundle(f"leaf{i}", f"spine{j}", G10) for i in range(2) for j in range(4)]
    paths = paths_of(site(["leaf0", "leaf0", "leaf1", "leaf1"], cables))
    assert way(paths, 0, 3)[3:8] == [
        "module leaf0",
        "trunk leaf0 - spine[0-3] from leaf0 to spine[0-3]",
        "module spine[0-3]",
        "trunk leaf1 - spine[0-3] from spine[0-3] to leaf1",
        "module leaf1",
    ]
    (up,) = (e for e in paths.elements if e.direction == "from leaf0 to spine[0-3]")
    assert (up.links, up.line_bps) == (4, 4.0 * G10)


def test_without_a_topology_paths_have_hosts_and_groups() -> None:
    groups = {"a": ("n0:e0", "n1:e0"), "b": ("n2:e0",), "c": ("n3:e0",)}
    paths = paths_of(site([None] * 4, None, groups=groups))
    assert paths.source == "none"
    assert way(paths, 0, 1) == ["host n0:e0 send", "group a", "host n1:e0 receive"]
    assert way(paths, 0, 2) == [
        "host n0:e0 send",
        "group a to other groups",
        "group a - b from a to b",
        "group b from other groups",
        "host n2:e0 receive",
    ]


def test_pairs_without_a_way_are_located_by_their_groups() -> None:
    paths = paths_of(site(["x", "x", "y", "y"], []))
    assert way(paths, 0, 1)[3] == "module x"
    assert way(paths, 0, 2)[3:6] == ["module x", "group x - y from x to y", "module y"]


# --- observations --------------------------------------------------------------------------------

SITE = make_site(4)


def observed(*extra: dict[str, Any], ports: dict[str, dict[str, Any]] | None = None) -> Summary:
    """A phase of two flows from node1 and node2 to node3 and node4; 100 of node1's are lost."""
    trial = make_trial(SITE, flows=2)
    records = [
        frame_side("source", "node1:e0", "node3:e0", 8000, 7000),
        frame_side("destination", "node1:e0", "node3:e0", 7900, 6900),
        frame_side("source", "node2:e0", "node4:e0", 8000, 7000),
        frame_side("destination", "node2:e0", "node4:e0", 8000, 7000),
        *extra,
    ]
    for number in range(1, 5):
        node = f"node{number}"
        counters = (ports or {}).get(node, {})
        records += [port_record(f"{node}:e0", **counters), phase_end(node), trial_record(node)]
    summary = fed(make_run(SITE, trial), records)
    return summary


def test_a_row_of_each_flow_has_its_frames() -> None:
    found = observed().locator.observed.observations()
    assert found.sent.tolist() == [8000, 8000]
    assert found.lost.tolist() == [100, 0]
    assert (found.src.tolist(), found.dst.tolist()) == ([0, 1], [2, 3])
    assert found.phases[0].open_loop
    assert not len(found.duplicated)


def test_what_a_host_dropped_comes_off_and_is_kept_by_port() -> None:
    table = observed(ports={"node3": {"dropped_receive": 60}}).locator.observed
    found = table.observations()
    assert found.lost.tolist() == [40, 0]
    assert table.host_frames == {("node3:e0", "receiver_host"): 60}
    assert found.limited.tolist() == [True, False]


def test_misdelivered_frames_of_a_flow_are_rows_and_others_are_counted_at_their_port() -> None:
    place = {"trial": 0, "repeat": 0, "network": "lab", "phase": 0}
    stray = {"type": "misdelivered-flow", "node": "node4", **place, "port": "node4:e0"}
    ends = {"src": "node1:e0", "dst": "node3:e0", "frames": 70}
    locator = observed({**stray, **ends}, ports={"node4": {"misdelivered": 80}}).locator
    rows = locator.observed.observations().misdelivered
    assert [x.tolist() for x in (rows.src, rows.dst, rows.at_port)] == [[0], [2], [3]]
    assert rows.frames.tolist() == [70]
    found = [(one["port"], one["count"]) for one in locator.findings()]
    assert ("node4:e0", 10) in found


def test_lost_probes_are_a_phase_of_all_pairs_of_the_trial() -> None:
    summary = observed()
    trial = make_trial(SITE, flows=2)
    ends = {"src": "node1:e0", "dst": "node3:e0", "sent": 5, "received": 0}
    summary.locator.observed.unreachable({"type": "unreachable", "trial": 0, **ends}, trial)
    found = summary.locator.observed.observations()
    check = found.phase == 1
    assert found.phases[1].key.phase == -1
    assert found.sent[check].tolist() == [5, 5]
    assert found.lost[check].tolist() == [5, 0]


def test_no_phase_at_all_is_no_observation() -> None:
    summary = Summary(make_run(SITE, make_trial(SITE, flows=2)))
    assert len(summary.locator.observed.observations()) == 0
