# SPDX-License-Identifier: BSD-3-Clause
"""Labs with hidden faults: cases, their planting, and the score of what was named.

A case is a network, a transport and one or two faults. The network is shown to
the benchmark without its faults: the kernel plants them after the lab is up.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

import kernel_faults
import labkit
import runs
from switchbench import labs
from switchbench.topology import lab_addresses

RATE = "20M"

Topology = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """One planted fault: what it is, where, and in which direction."""

    kind: str  # as the suspects' kinds are called
    node: str = ""  # of a cable: its host
    direction: str = ""  # of a cable: "in" from the host into the switch, "out" to the host
    trunk: tuple[str, str] | None = None  # from, to
    value: float = 0.0  # a share of frames, of the rate, or a size in bytes
    link: int | None = None  # of a trunk's parallel links; None: all of them

    def __str__(self) -> str:
        place = f"{self.trunk[0]} to {self.trunk[1]}" if self.trunk else self.node
        which = "" if self.link is None else f" link {self.link}"
        return f"{self.kind} {self.value:g} at {place}{which} {self.direction}".strip()


@dataclass(frozen=True)
class Case:
    """A network with hidden faults, and the traffic that has to find them."""

    seed: int
    topology: Topology
    transport: str
    faults: tuple[Fault, ...]
    sizes: tuple[int, ...] = ()


def _one(nodes: int) -> Topology:
    return {"modules": ["switch"], "nodes": {f"node[1-{nodes}]": {"module": "switch"}}}


def _two(links: int) -> Topology:
    return {
        "modules": ["left", "right"],
        "nodes": {"node[1-4]": {"module": "left"}, "node[5-8]": {"module": "right"}},
        "trunks": [{"between": ["left", "right"], "links": links}],
    }


def _three(links: int) -> Topology:
    return {
        "modules": ["a", "b", "c"],
        "nodes": {
            "node[1-3]": {"module": "a"},
            "node[4-5]": {"module": "b"},
            "node[6-8]": {"module": "c"},
        },
        "trunks": [
            {"between": ["a", "b"], "links": links},
            {"between": ["b", "c"], "links": links},
        ],
    }


_ONE, _SIX = _one(8), _one(6)
_TWO, _TWO_LINKS, _THREE = _two(4), _two(2), _three(3)

# What is planted, and by what it has to be found: drawn by chance once, each by its seed.
CASES = (
    Case(0, _TWO, "dpdk", (Fault("loss", "node5", "out", value=0.0403),)),
    Case(1, _TWO, "udp", (Fault("loss", trunk=("left", "right"), value=0.0328),)),
    Case(2, _ONE, "tcp", (Fault("capacity", "node3", "out", value=0.44),)),
    Case(4, _TWO, "dpdk", (Fault("capacity", trunk=("left", "right"), value=0.52),)),
    Case(5, _TWO, "tcp", (Fault("loss", "node1", "out", value=0.0423),)),
    Case(6, _TWO_LINKS, "dpdk", (Fault("loss", trunk=("right", "left"), value=0.098, link=0),)),
    Case(7, _TWO, "udp", (Fault("capacity", "node1", "in", value=0.46),)),
    Case(8, _SIX, "dpdk", (Fault("flooding", "node2"),)),
    Case(9, _THREE, "tcp", (Fault("capacity", trunk=("b", "c"), value=0.38),)),
    Case(10, _TWO, "dpdk", (Fault("size", "node4", "out", value=1000.0),), (512, 1518)),
    Case(
        *(11, _TWO, "dpdk"),
        (Fault("loss", "node8", "in", value=0.0446), Fault("capacity", "node4", "in", value=0.64)),
    ),
    Case(12, _THREE, "tcp", (Fault("loss", trunk=("b", "a"), value=0.0281),)),
    Case(14, _ONE, "udp", (Fault("loss", "node4", "out", value=0.0346),)),
    Case(15, _ONE, "dpdk", (Fault("capacity", "node3", "in", value=0.59),)),
)


def healthy(seed: int, transport: str) -> Case:
    """Return a case without a fault, on two modules."""
    return Case(seed, _two(4), transport, ())


def plant(lab: labs.Lab, fault: Fault) -> None:
    """Make the kernel break a lab of bridges."""
    if fault.trunk:
        interface, rate_bps = _trunk_end(lab, fault.trunk)
    else:
        node = lab.topology.node(fault.node)
        rate_bps = node.rate_bps
        out = lab_addresses.switch_port(node)
        interface = lab_addresses.inbound_shaper(node) if fault.direction == "in" else out
    if fault.kind == "loss" and fault.trunk and fault.link is not None:
        links = next(t.links for t in lab.topology.trunks if {t.a, t.b} == set(fault.trunk))
        kernel_faults.drop(lab, interface, kernel_faults.of_link(fault.link, links, fault.value))
    elif fault.kind == "loss":
        kernel_faults.drop(lab, interface, kernel_faults.by_chance(fault.value))
    elif fault.kind == "size":
        kernel_faults.drop(lab, interface, kernel_faults.above(int(fault.value)))
    elif fault.kind == "capacity":
        kernel_faults.limit(lab, interface, round(fault.value * rate_bps))
    elif fault.kind == "flooding":
        kernel_faults.stop_learning(lab, interface)
    else:
        raise ValueError(f"no kernel plants {fault}")


def _trunk_end(lab: labs.Lab, way: tuple[str, str]) -> tuple[str, int]:
    """Return the interface by which frames leave over a trunk, and the trunk's rate."""
    for position, trunk in enumerate(lab.topology.trunks):
        if {trunk.a, trunk.b} == set(way):
            a, b = lab_addresses.trunk_ends(position)
            return (a if trunk.a == way[0] else b), trunk.rate_bps
    raise ValueError(f"no trunk {way}")


def run(case: Case, folder: Path) -> runs.Result:
    """Make the lab, plant its faults, run all-to-all at two loads, and remove the lab."""
    folder.mkdir(exist_ok=True)
    name = f"{labkit.PREFIX}-h{case.seed}"
    file = folder / f"{name}.yaml"
    document = {"topology": 1, "rate": RATE, "queue": "64KiB", **case.topology}
    file.write_text(yaml.safe_dump(document))
    (folder / "truth.json").write_text(json.dumps(asdict(case), indent=1))
    configuration = {
        "site": {"lab": str(file)},
        "profile": "quick",
        "transport": case.transport,
        "loads": ["40%", "90%"],
        "warmup": "100ms",
        "window": "600ms",
        "remeasure": 3,  # what other work on the machine spoils
        "tests": [{"pattern": "aapc", "order": "shift"}],
    } | ({"frame_sizes": list(case.sizes)} if case.sizes else {})
    lab = labs.up(labs.load(str(file)), name)
    try:
        for fault in case.faults:
            plant(lab, fault)
        return runs.run(folder, configuration)
    finally:
        labs.down(name)


# A bridge port that learns nothing makes the switch flood: to all other ports, or to some.
_CALLED = {"flooding": ("flooding", "wrong-port")}


def _is_at(fault: Fault, element: dict[str, str]) -> bool:
    """Return whether an element of the summary is where the fault was planted."""
    name, direction = element["name"], element["direction"]
    if fault.trunk:
        return element["kind"] in ("trunk", "link") and direction == (
            f"from {fault.trunk[0]} to {fault.trunk[1]}"
        )
    if element["kind"] != "host" or name.partition(":")[0] != fault.node:
        return False
    way = {"in": "send", "out": "receive"}.get(fault.direction)
    return way is None or way == direction


def names(suspect: dict[str, Any], fault: Fault) -> bool:
    """Return whether a suspect names a planted fault: its kind, its element and its direction.

    Of a cable its host's end stands for all that no traffic can tell apart.
    """
    return suspect["kind"] in _CALLED.get(fault.kind, (fault.kind,)) and any(
        _is_at(fault, element) for element in suspect["alike"]
    )


@dataclass(frozen=True)
class Score:
    """What was named of a case, and what of that was planted."""

    case: Case
    suspects: list[dict[str, Any]]

    @property
    def found(self) -> list[Fault]:
        """Return the planted faults that some suspect names."""
        return [
            fault for fault in self.case.faults if any(names(one, fault) for one in self.suspects)
        ]

    @property
    def wrong(self) -> list[dict[str, Any]]:
        """Return the suspects that name nothing planted."""
        return [
            one for one in self.suspects if not any(names(one, fault) for fault in self.case.faults)
        ]

    def row(self) -> str:
        """Return a line of the table: truth beside what was named."""
        case = self.case
        mark = "right" if len(self.found) == len(case.faults) and not self.wrong else "WRONG"
        named = "; ".join(one["brief"] for one in self.suspects) or "nothing"
        planted = "; ".join(map(str, case.faults)) or "nothing"
        return f"| {case.seed} | {case.transport} | {planted} | {named} | {mark} |"
