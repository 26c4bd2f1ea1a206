# SPDX-License-Identifier: BSD-3-Clause
"""Labs with hidden faults: a generator of cases, their planting, and the score of what was named.

A case is a network, a transport and one or two faults, drawn from a seed. The network is shown to
the benchmark without its faults: in a lab of bridges the kernel plants them after the lab is up,
and the modelled switch gets them by a topology file whose name and modules say nothing.

    .venv/bin/python tests/system/hidden.py --out FOLDER [SEED...]     run cases, print the table
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
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
CASES = 21

Topology = dict[str, Any]
Recipe = Callable[[int, random.Random, str], "Case"]


@dataclass(frozen=True)
class Fault:
    """One planted fault: what it is, where, and in which direction."""

    kind: str  # as the suspects' kinds are called
    node: str = ""  # of a cable: its host
    direction: str = ""  # of a cable: "in" from the host into the switch, "out" to the host
    trunk: tuple[str, str] | None = None  # from, to
    value: float = 0.0  # a share of frames, of the rate, or a size in bytes
    link: int | None = None  # of a trunk's parallel links; None: all of them
    mtu: bool = False  # a size: by the MTU of the switch port

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


def case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(seed)
    recipe, transport = _RECIPES[seed % len(_RECIPES)]
    return recipe(seed, chance, transport)


def healthy(seed: int, transport: str) -> Case:
    """Return a case without a fault, on two modules."""
    return Case(seed, _two(4), transport, ())


def _node(chance: random.Random, nodes: int = 8) -> str:
    return f"node{chance.randint(1, nodes)}"


def _ways(chance: random.Random) -> str:
    return chance.choice(["in", "out"])


def _loss(chance: random.Random, transport: str) -> float:
    return round(
        chance.uniform(0.02, 0.05) if transport == "tcp" else chance.uniform(0.01, 0.05), 4
    )


def _port_loss(seed: int, chance: random.Random, transport: str) -> Case:
    fault = Fault("loss", _node(chance), _ways(chance), value=_loss(chance, transport))
    return Case(seed, chance.choice([_one(8), _two(4)]), transport, (fault,))


def _port_capacity(seed: int, chance: random.Random, transport: str) -> Case:
    share = round(chance.uniform(0.3, 0.7), 2)
    fault = Fault("capacity", _node(chance), _ways(chance), value=share)
    return Case(seed, chance.choice([_one(8), _two(4)]), transport, (fault,))


def _trunk(chance: random.Random, topology: Topology) -> tuple[str, str]:
    one, other = chance.choice(topology["trunks"])["between"]
    return (one, other) if chance.random() < 0.5 else (other, one)


def _trunk_loss(seed: int, chance: random.Random, transport: str) -> Case:
    topology = chance.choice([_two(4), _three(3)])
    fault = Fault("loss", trunk=_trunk(chance, topology), value=_loss(chance, transport))
    return Case(seed, topology, transport, (fault,))


def _trunk_capacity(seed: int, chance: random.Random, transport: str) -> Case:
    topology = chance.choice([_two(4), _three(3)])
    share = round(chance.uniform(0.3, 0.6), 2)
    return Case(
        seed, topology, transport, (Fault("capacity", trunk=_trunk(chance, topology), value=share),)
    )


def _one_link(seed: int, chance: random.Random, transport: str) -> Case:
    topology = _two(2)
    fault = Fault(
        "loss", trunk=_trunk(chance, topology), value=round(chance.uniform(0.05, 0.2), 3),
        link=chance.randint(0, 1),
    )  # fmt: skip
    return Case(seed, topology, transport, (fault,))


def _size(seed: int, chance: random.Random, transport: str) -> Case:
    fault = Fault("size", _node(chance), _ways(chance), value=1000)
    return Case(seed, _two(4), transport, (fault,), sizes=(512, 1518))


def _mtu(seed: int, chance: random.Random, transport: str) -> Case:
    """Return a case of a switch port with a small MTU, which drops large frames both ways."""
    node = _node(chance)
    ways = tuple(Fault("size", node, way, value=1400, mtu=True) for way in ("in", "out"))
    return Case(seed, _two(4), transport, ways, sizes=(512, 1518))


def _deaf(seed: int, chance: random.Random, transport: str) -> Case:
    return Case(seed, _one(6), transport, (Fault("flooding", _node(chance, 6)),))


def _two_faults(seed: int, chance: random.Random, transport: str) -> Case:
    one, other = chance.sample(range(1, 9), 2)
    faults = (
        Fault("loss", f"node{one}", _ways(chance), value=_loss(chance, transport)),
        Fault("capacity", f"node{other}", _ways(chance), value=round(chance.uniform(0.3, 0.7), 2)),
    )
    return Case(seed, _two(4), transport, faults)


def _modelled(kind: str) -> Recipe:
    def recipe(seed: int, chance: random.Random, transport: str) -> Case:
        way = "" if kind == "capacity" else _ways(chance)
        value = round(chance.uniform(0.3, 0.7), 2) if kind == "capacity" else 0.02
        fault = Fault(kind, _node(chance), way, value=value)
        return Case(seed, _one(8) | {"kind": "model"}, transport, (fault,))

    return recipe


_RECIPES: list[tuple[Recipe, str]] = [
    (_port_loss, "dpdk"),
    (_trunk_loss, "udp"),
    (_port_capacity, "tcp"),
    (_modelled("reordering"), "dpdk"),
    (_trunk_capacity, "dpdk"),
    (_port_loss, "tcp"),
    (_one_link, "dpdk"),
    (_port_capacity, "udp"),
    (_deaf, "dpdk"),
    (_trunk_capacity, "tcp"),
    (_size, "dpdk"),
    (_two_faults, "dpdk"),
    (_trunk_loss, "tcp"),
    (_modelled("duplication"), "dpdk"),
    (_port_loss, "udp"),
    (_port_capacity, "dpdk"),
    (_two_faults, "udp"),
    (_modelled("corruption"), "dpdk"),
    (_trunk_capacity, "udp"),
    (_modelled("loss"), "dpdk"),
    (_mtu, "dpdk"),
]


# What the modelled switch calls the kinds that are planted into it.
_MODEL_KINDS = {
    "loss": "drop",
    "duplication": "duplicate",
    "reordering": "reorder",
    "corruption": "corrupt",
}


def _document(case: Case) -> Topology:
    """The topology's file; a modelled switch reads its faults there."""
    document = {"topology": 1, "rate": RATE, "queue": "64KiB", **case.topology}
    if case.topology.get("kind") == "model":
        faults = [
            {
                "kind": _MODEL_KINDS[fault.kind],
                fault.direction: fault.node,
                "one_in": round(1 / fault.value),
                "measured": True,
                **({"displacement": 3} if fault.kind == "reordering" else {}),
            }
            for fault in case.faults
        ]
        document["model"] = {"seed": case.seed, "faults": faults}
    return document


def plant(lab: labs.Lab, fault: Fault) -> None:
    """Make the kernel break a lab of bridges."""
    if fault.trunk:
        interface, rate_bps = _trunk_end(lab, fault.trunk)
    else:
        node = lab.topology.node(fault.node)
        rate_bps = node.rate_bps
        out = lab_addresses.switch_port(node)
        inbound = fault.direction == "in" and not fault.mtu
        interface = lab_addresses.inbound_shaper(node) if inbound else out
    if fault.kind == "loss" and fault.trunk and fault.link is not None:
        links = next(t.links for t in lab.topology.trunks if {t.a, t.b} == set(fault.trunk))
        kernel_faults.drop(lab, interface, kernel_faults.of_link(fault.link, links, fault.value))
    elif fault.kind == "loss":
        kernel_faults.drop(lab, interface, kernel_faults.by_chance(fault.value))
    elif fault.mtu:
        kernel_faults.small_mtu(lab, interface, int(fault.value))
    elif fault.kind == "size":
        kernel_faults.drop(lab, interface, kernel_faults.above(int(fault.value)))
    elif fault.kind == "capacity":
        kernel_faults.limit(lab, interface, round(fault.value * rate_bps))
    elif fault.kind == "flooding":
        kernel_faults.stop_learning(lab, interface)
    else:
        raise ValueError(f"no kernel plants {fault}")


def _trunk_end(lab: labs.Lab, way: tuple[str, str]) -> tuple[str, int]:
    """The interface by which frames leave over a trunk, and the trunk's rate."""
    for position, trunk in enumerate(lab.topology.trunks):
        if {trunk.a, trunk.b} == set(way):
            a, b = lab_addresses.trunk_ends(position)
            return (a if trunk.a == way[0] else b), trunk.rate_bps
    raise ValueError(f"no trunk {way}")


def run(case: Case, folder: Path) -> runs.Result:
    """Make the lab, plant its faults, run all-to-all at two loads, and remove the lab."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{labkit.PREFIX}-h{case.seed}"
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(_document(case)))
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
        if case.topology.get("kind") != "model":
            for fault in case.faults:
                plant(lab, fault)
        return runs.run(folder, configuration)
    finally:
        labs.down(name)


# A bridge port that learns nothing makes the switch flood: to all other ports, or to some.
_CALLED = {"flooding": ("flooding", "wrong-port")}


def _is_at(fault: Fault, element: dict[str, str]) -> bool:
    """Whether an element of the summary is where the fault was planted."""
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
    """Whether a suspect names a planted fault: its kind, its element and its direction.

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
        """The planted faults that some suspect names."""
        return [
            fault for fault in self.case.faults if any(names(one, fault) for one in self.suspects)
        ]

    @property
    def wrong(self) -> list[dict[str, Any]]:
        """The suspects that name nothing planted."""
        return [
            one for one in self.suspects if not any(names(one, fault) for fault in self.case.faults)
        ]

    def row(self) -> str:
        """A line of the table: truth beside what was named."""
        case = self.case
        mark = "right" if len(self.found) == len(case.faults) and not self.wrong else "WRONG"
        named = "; ".join(one["brief"] for one in self.suspects) or "nothing"
        planted = "; ".join(map(str, case.faults)) or "nothing"
        return f"| {case.seed} | {case.transport} | {planted} | {named} | {mark} |"


def score(case: Case, directory: Path) -> Score:
    """Compare the summary of a run with what was planted."""
    summary = json.loads((directory / "summary.json").read_text())
    return Score(case, summary["location"]["suspects"])


def main(words: Sequence[str]) -> int:
    """Run cases and print what was planted beside what was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="results are there: score them again")
    parser.add_argument("seeds", type=int, nargs="*", default=list(range(CASES)))
    options = parser.parse_args(words)
    scores = []
    for seed in options.seeds:
        folder = options.out / f"{seed:02}"
        if not options.again:
            run(case(seed), folder)
        scores.append(score(case(seed), folder / "results"))
        print(scores[-1].row(), flush=True)
    planted = sum(len(one.case.faults) for one in scores)
    found = sum(len(one.found) for one in scores)
    named = sum(len(one.suspects) for one in scores)
    wrong = sum(len(one.wrong) for one in scores)
    print(f"recall {found} of {planted}, precision {named - wrong} of {named}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
