# SPDX-License-Identifier: BSD-3-Clause
"""Simulated networks with planted faults, for the location of faults.

Frames are simulated element by element: loads add up, capacities cut, queues absorb some frames,
binomial losses, hosts with noise, pairs that hash to a trunk's links, closed loads with max-min
fair rates. Nothing here uses the formulas of the inference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, permutations, product
from math import nan

import networkx
import numpy as np

from switchbench.analysis.location.facts import (
    Element,
    Location,
    Misdelivered,
    Observations,
    Paths,
    PhaseFacts,
    Suspect,
)
from switchbench.records.rows import PhaseKey

LINE = 1e9
NEEDED = 12.0  # log-likelihood ratio that shows a fault
MOST_OF_ROW = 4.0  # of it, that one row gives: no single flow shows an element at fault
LOST = {"loss", "capacity", "size", "dead", "intermittent", "burst"}


@dataclass
class Network:
    """Elements, and the elements that each pair passes."""

    elements: list[Element]
    ports: list[str]
    route: dict[tuple[int, int], list[int]]
    trunks: list[int]  # element numbers

    def paths(self, source: str = "topology file") -> Paths:
        """Return the network as the inference sees it."""

        def route(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            ends = zip(src.tolist(), dst.tolist(), strict=True)
            found = [(i, x) for i, pair in enumerate(ends) for x in self.route.get(pair, [])]
            pairs, members = np.array(found, np.int64).reshape(-1, 2).T
            return pairs, members

        return Paths(self.elements, self.ports, route, source)


def network(
    modules: Sequence[int], trunks: Sequence[tuple[int, int, int]] = (), cables: bool = False
) -> Network:
    """Return a network of modules in a tree.

    modules: number of hosts of each. trunks: (module, module, links); None of them closes a circle.
    """
    elements: list[Element] = []
    number: dict[object, int] = {}

    def add(key: object, element: Element) -> int:
        number[key] = len(elements)
        elements.append(element)
        return number[key]

    ports: list[str] = []
    home: list[int] = []
    for module, hosts in enumerate(modules):
        add(("module", module), Element(f"sw{module + 1}", "module"))
        for slot in range(hosts):
            port, name = len(ports), f"node{len(ports) + 1}"
            ports.append(name)
            home.append(module)
            add(("send", port), Element(name, "host", "send", line_bps=LINE))
            add(("receive", port), Element(name, "host", "receive", line_bps=LINE))
            plug = f"sw{module + 1}:p{slot + 1}"
            add(("in", port), Element(plug, "port", "in", name, LINE))
            add(("out", port), Element(plug, "port", "out", name, LINE))
            if cables:
                way = (f"from {name} to {plug}", f"from {plug} to {name}")
                add(("up", port), Element(f"{name} - {plug}", "cable", way[0], line_bps=LINE))
                add(("down", port), Element(f"{name} - {plug}", "cable", way[1], line_bps=LINE))
    trunk_numbers = []
    for one, other, links in trunks:
        name = f"sw{one + 1} - sw{other + 1}"
        for a, b in ((one, other), (other, one)):
            direction = f"from sw{a + 1} to sw{b + 1}"
            element = Element(name, "trunk", direction, "", links * LINE, links)
            trunk_numbers.append(add(("trunk", a, b), element))
    tree = networkx.Graph([(one, other) for one, other, _ in trunks])
    tree.add_nodes_from(home)
    ways = dict(networkx.all_pairs_shortest_path(tree))
    route = {}
    for src, dst in permutations(range(len(ports)), 2):
        way = ways[home[src]][home[dst]]
        keys: list[object] = [("send", src), ("up", src), ("in", src), ("module", way[0])]
        for a, b in pairwise(way):
            keys += [("trunk", a, b), ("module", b)]
        keys += [("out", dst), ("down", dst), ("receive", dst)]
        route[src, dst] = [number[key] for key in keys if key in number]
    return Network(elements, ports, route, trunk_numbers)


@dataclass(frozen=True)
class Planted:
    """A fault of the simulation: an element (number), kind and size."""

    element: int
    kind: str
    value: float
    link: int | None = None
    phase: int | None = None  # the phase of an intermittent fault


@dataclass
class Case:
    """One simulated run: observations, what is at fault, and whether it can be told apart."""

    net: Network
    paths: Paths
    observations: Observations
    faults: list[Planted]
    tellable: list[bool]


@dataclass
class Phase:
    """Flows of one phase: pairs and rates."""

    facts: PhaseFacts
    pairs: list[tuple[int, int]]
    rates: np.ndarray
    limited: np.ndarray


@dataclass
class Noise:
    """Host noise of a run."""

    rows: float = 0.02  # share of rows with a few lost frames
    frames: float = 3.0  # their mean
    stalls: float = 0.05  # share of phases in which a host loses up to 2e-4 of its frames
    spread: float = 0.1  # of the share that a fault takes, from row to row
    queue: float = 200.0  # frames that a queue absorbs before it loses
    closed: float = 0.03  # relative spread of closed rates


@dataclass
class Simulator:
    """Runs phases over a network with faults and keeps what each fault cost each row."""

    rng: np.random.Generator
    net: Network
    faults: list[Planted]
    noise: Noise = field(default_factory=Noise)
    rows: list[dict[str, float]] = field(default_factory=list)
    strays: list[tuple[int, int, float]] = field(default_factory=list)  # row, port, frames
    cost: list[list[float]] = field(default_factory=list)  # by row and fault: share that it takes

    def link_of(self, pair: tuple[int, int], element: int) -> int:
        """Return the link of a trunk to which a pair hashes."""
        links = self.net.elements[element].links
        mixed = (pair[0] * 2654435761 + pair[1] * 40503 + element * 97) & 0xFFFFFFFF
        mixed ^= mixed >> 13
        return (mixed * 2246822519 >> 7) % links

    def hits(self, fault: Planted, pair: tuple[int, int], element: int) -> bool:
        """Return whether a pair's frames meet a fault at an element of its path."""
        return fault.element == element and (
            fault.link is None or self.link_of(pair, element) == fault.link
        )

    def capacity(self, element: int, link: int) -> float:
        """Return what one link of an element carries."""
        one = self.net.elements[element]
        line = one.line_bps / one.links
        for fault in self.faults:
            if fault.kind == "capacity" and fault.element == element and fault.link in (None, link):
                line = min(line, fault.value * LINE) if line == line else fault.value * LINE
        return line

    def open_phase(self, number: int, phase: Phase) -> None:
        """Simulate frames that may be lost."""
        rng, facts = self.rng, phase.facts
        hops = [[(e, self.link_of(p, e)) for e in self.net.route[p]] for p in phase.pairs]
        bits = 8 * (facts.frame_bytes + 20)
        duration = facts.window_s
        sent = np.maximum(1, np.round(phase.rates * duration / bits))
        many = Counter(hop for way in hops for hop in way)

        def chance(fault: Planted, hop: tuple[int, int], pair: tuple[int, int]) -> float:
            if not self.hits(fault, pair, hop[0]):
                return 0.0
            suffers = {
                "loss": True, "dead": True, "size": facts.frame_bytes > fault.value,
                "intermittent": number == fault.phase, "burst": facts.bursts or many[hop] > 1,
            }  # fmt: skip
            whole = fault.kind in ("dead", "size")
            return (1.0 if whole else fault.value) if suffers.get(fault.kind) else 0.0

        passes: dict[tuple[int, int], float] = {}
        for _ in range(8):
            load: dict[tuple[int, int], float] = {}
            for pair, way, rate in zip(phase.pairs, hops, phase.rates, strict=True):
                for hop in way:
                    load[hop] = load.get(hop, 0.0) + rate
                    rate *= passes.get(hop, 1.0)
                    for fault in self.faults:
                        rate *= 1 - chance(fault, hop, pair)
            for hop, arriving in load.items():
                line = self.capacity(*hop)
                passes[hop] = min(1.0, line / arriving) if arriving > 0 and line == line else 1.0
        stalled = rng.integers(len(self.net.ports)) if rng.random() < self.noise.stalls else -1
        for index, (pair, way) in enumerate(zip(phase.pairs, hops, strict=True)):
            left, cost = sent[index], [0.0] * len(self.faults)
            odd = dict.fromkeys(("duplication", "reordering", "corruption", "flooding"), 0)
            for hop in way:
                before = left
                share = (1 - passes[hop]) * max(0.0, rng.normal(1, self.noise.spread))
                gone = rng.binomial(int(left), min(1.0, share))
                if gone:
                    absorbed = self.noise.queue * phase.rates[index] / load[hop]
                    gone = max(0.0, gone - absorbed)
                left -= gone
                through = left / max(before, 1)  # what was marked before is lost like the others
                odd = {kind: round(through * count) for kind, count in odd.items()}
                for which, fault in enumerate(self.faults):
                    if not self.hits(fault, pair, hop[0]):
                        continue
                    if fault.kind == "capacity" and passes[hop] < 1:
                        one = self.net.elements[hop[0]]
                        usual = min(1.0, one.line_bps / one.links / load[hop])
                        more = (usual - passes[hop]) / (1 - passes[hop])
                        cost[which] += more * gone / sent[index]
                    p = chance(fault, hop, pair)
                    if p:
                        wide = 1.0 if p == 1 else max(0.0, rng.normal(1, self.noise.spread))
                        here = rng.binomial(int(left), min(1.0, p * wide))
                        cost[which] += here / sent[index]
                        left -= here
                    if fault.kind not in odd:
                        continue
                    some = int(rng.binomial(int(left), fault.value))
                    cost[which] += some / sent[index]
                    odd[fault.kind] += some
                    left -= some * (fault.kind == "corruption")
                    if fault.kind == "flooding" and some:
                        others = [p for p in range(len(self.net.ports)) if p not in pair]
                        for port in rng.choice(others, max(1, len(others) // 2), replace=False):
                            seen = float(rng.binomial(some, 0.9))
                            self.strays.append((len(self.rows), int(port), seen))
            if rng.random() < self.noise.rows:
                left -= min(left, float(rng.geometric(1 / self.noise.frames)))
            if pair[1] == stalled:
                left -= rng.binomial(int(left), 2e-4 * rng.random())
            self.row(
                number, pair, phase, index, sent=sent[index], delivered=left,
                lost=sent[index] - left - odd["corruption"], duplicated=odd["duplication"],
                reordered=odd["reordering"], corrupted=odd["corruption"],
                delivered_bps=left * bits / duration,
            )  # fmt: skip
            self.cost.append(cost)

    def closed_phase(self, number: int, phase: Phase) -> None:
        """Simulate flows that share capacities max-min fairly and send lost segments again."""
        rng = self.rng
        hops = [[(e, self.link_of(p, e)) for e in self.net.route[p]] for p in phase.pairs]
        limit = phase.rates.copy()
        risk = np.zeros((len(hops), len(self.faults)))
        for index, (pair, way) in enumerate(zip(phase.pairs, hops, strict=True)):
            for which, fault in enumerate(self.faults):
                if any(self.hits(fault, pair, hop[0]) for hop in way):
                    whole = fault.kind == "dead" or (fault.kind == "size" and fault.value < 1514)
                    risk[index, which] = fault.value if fault.kind == "loss" else whole
            lost = 1 - np.prod(1 - risk[index])
            if lost > 0:
                limit[index] = min(limit[index], LINE * 0.02 / np.sqrt(lost))
                limit[index] *= lost < 1
        healthy = max_min(
            hops,
            phase.rates,
            lambda e, k: self.net.elements[e].line_bps / self.net.elements[e].links,
        )
        rates = max_min(hops, limit, self.capacity)
        for index, pair in enumerate(phase.pairs):
            rate = rates[index] * 0.96 * np.exp(-abs(rng.normal(0, self.noise.closed)))
            segments = rate * phase.facts.window_s / (8 * 1538)
            again = rng.binomial(int(segments), min(0.9, risk[index].sum()))
            if rates[index] < 0.99 * phase.rates[index] or phase.rates[index] > 0.97 * LINE:
                again += rng.poisson(segments * 1e-3 * rng.random())
            self.row(
                number, pair, phase, index, delivered_bps=rate, retransmitted=float(again),
                offered_bps=rate,
            )  # fmt: skip
            shortfall = 1 - rates[index] / max(healthy[index], 1.0)
            cost = [0.0] * len(self.faults)
            for which, fault in enumerate(self.faults):
                met = any(self.hits(fault, pair, hop[0]) for hop in hops[index])
                if met and fault.kind == "capacity":
                    cost[which] = max(0.0, shortfall)
                elif met and risk[index, which]:
                    cost[which] = float(max(shortfall, 20 * risk[index, which]))
            self.cost.append(cost)

    def row(
        self, number: int, pair: tuple[int, int], phase: Phase, index: int, **of: float
    ) -> None:
        """Keep one row of the observations."""
        intended = phase.rates[index] / (0.7 if phase.limited[index] else 1.0)
        self.rows.append(
            {
                "phase": number, "src": pair[0], "dst": pair[1], "sent": nan, "delivered": nan,
                "lost": nan, "intended_bps": intended, "offered_bps": phase.rates[index],
                "duplicated": nan, "reordered": nan, "corrupted": nan, "retransmitted": nan,
                "limited": bool(phase.limited[index]), **of,
            }
        )  # fmt: skip

    def observations(self, phases: list[Phase]) -> Observations:
        """Return all rows as the inference takes them."""
        whole = {"phase": np.int64, "src": np.int64, "dst": np.int64, "limited": np.bool_}
        columns = {
            name: np.array([row[name] for row in self.rows], whole.get(name, np.float64))
            for name in self.rows[0]
        }
        row, at_port, frames = np.array(self.strays).reshape(-1, 3).T
        strays = Misdelivered(row.astype(np.int64), at_port.astype(np.int64), frames)
        return Observations([p.facts for p in phases], misdelivered=strays, **columns)  # type: ignore[arg-type]


def max_min(hops, wanted, capacity) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return max-min fair rates by filling all flows at one pace."""
    rates, open_flows = np.zeros(len(hops)), set(range(len(hops)))
    flows_of: dict[tuple[int, int], set[int]] = {}
    for index, way in enumerate(hops):
        for hop in way:
            flows_of.setdefault(hop, set()).add(index)
    room = {hop: line for hop in flows_of if (line := capacity(*hop)) == line}
    while open_flows:
        active = {hop: len(flows_of[hop] & open_flows) for hop in room}
        steps = [room[hop] / count for hop, count in active.items() if count]
        step = min(*steps, *(wanted[i] - rates[i] for i in open_flows), np.inf)
        rates[list(open_flows)] += step
        room = {hop: left - step * active[hop] for hop, left in room.items()}
        full = {i for hop, left in room.items() if left <= 1e-3 for i in flows_of[hop]}
        open_flows -= full | {i for i in open_flows if rates[i] >= wanted[i] - 1e-3}
    return rates


# --- matrices ----------------------------------------------------------------------------------


def matrix(name: str, ports: int, rng: np.random.Generator) -> list[list[tuple[int, int]]]:
    """Return the phases of a pattern."""
    if name == "pairs":
        order = rng.permutation(ports).tolist()
        both = list(zip(order[::2], order[1::2], strict=False))
        return [[*both, *((b, a) for a, b in both)]]
    if name == "chain":
        return [[(i, i + 1) for i in range(ports - 1)]]
    if name == "random":
        made = []
        for _ in range(int(rng.integers(3, 8))):
            order = rng.permutation(ports).tolist()
            made.append(list(zip(order, order[1:] + order[:1], strict=True)))
        return made
    if name == "double":  # two flows meet at each port
        made = []
        for _ in range(int(rng.integers(2, 6))):
            orders = [rng.permutation(ports).tolist() for _ in range(2)]
            made.append(sorted({p for o in orders for p in zip(o, o[1:] + o[:1], strict=True)}))
        return made
    return [[(i, (i + k) % ports) for i in range(ports)] for k in range(1, ports)]


def make_phases(
    patterns: Sequence[str], loads: Sequence[float], transports: Sequence[str],
    sizes: Sequence[int], ports: int, rng: np.random.Generator, limited: float = 0.0,
    window_s: float = 1.0,
) -> list[Phase]:  # fmt: skip
    """Return the phases of a run: each pattern at each load, size and transport."""
    made: list[Phase] = []
    kinds = [(one, size) for one in transports for size in (sizes if one == "dpdk" else sizes[-1:])]
    runs = enumerate(product(kinds, loads, patterns))
    for trial, ((transport, size), load, pattern) in runs:
        for index, pairs in enumerate(matrix(pattern, ports, rng)):
            key, is_open = PhaseKey(trial, 0, "net", index), transport == "dpdk"
            label = f"{pattern} phase {index + 1} at {100 * load:.0f} %"
            facts = PhaseFacts(key, label, transport, is_open, float(size), window_s, load)
            out = np.bincount([a for a, _ in pairs], minlength=ports)
            rates = np.array([load * LINE / out[a] for a, _ in pairs])
            slow = np.zeros(len(pairs), np.bool_)
            if rng.random() < limited:
                host = int(rng.integers(ports))
                slow = np.array([a == host for a, _ in pairs])
                facts = replace(facts, tester_limited=frozenset({f"node{host + 1}"}))
            made.append(Phase(facts, pairs, np.where(slow, 0.7 * rates, rates), slow))
    return made


# --- random cases ------------------------------------------------------------------------------


def random_network(rng: np.random.Generator) -> Network:
    """Return one switch, a line, a tree or two tiers of 8 to 64 ports."""
    shape = rng.choice(["switch", "line", "tree", "tiers"])
    cables = bool(rng.random() < 0.3)
    links = int(rng.choice([1, 2, 4]))
    if shape == "switch":
        return network([int(rng.integers(8, 33))], cables=cables)
    if shape == "line":
        count = int(rng.integers(2, 5))
        hosts = [int(rng.integers(3, 9)) for _ in range(count)]
        hosts[0] = max(hosts[0], 8 - sum(hosts[1:]))
        return network(hosts, [(i, i + 1, links) for i in range(count - 1)], cables)
    if shape == "tree":
        hosts = [0, 0, 0] + [int(rng.integers(2, 9)) for _ in range(4)]
        upper = [(0, 1, 2 * links), (0, 2, 2 * links)]
        return network(hosts, [*upper, *((1 + i // 2, 3 + i, links) for i in range(4))], cables)
    leaves, each = int(rng.integers(2, 9)), int(rng.choice([4, 8]))
    width = max(1, each // int(rng.choice([1, 2, 4])))
    return network([0] + [each] * leaves, [(0, i + 1, width) for i in range(leaves)], cables)


def random_faults(rng: np.random.Generator, net: Network, count: int, phases: int) -> list[Planted]:
    """Return faults of different elements, and of different cables."""
    made: list[Planted] = []
    places = [i for i, e in enumerate(net.elements) if e.kind in ("port", "host", "cable", "trunk")]
    while len(made) < count:
        trunk = bool(net.trunks) and rng.random() < 0.3
        element = int(rng.choice(net.trunks if trunk else places))
        one = net.elements[element]
        if any(net.elements[f.element].name == one.name for f in made):
            continue
        kind = str(
            rng.choice(
                ["loss", "capacity", "size", "dead", "intermittent", "burst", "duplication",
                 "reordering", "corruption", "flooding"],
                p=[0.36, 0.32, 0.05, 0.03, 0.05, 0.05, 0.035, 0.035, 0.035, 0.035],
            )
        )  # fmt: skip
        link = int(rng.integers(one.links)) if one.links > 1 and rng.random() < 0.5 else None
        if kind == "flooding" and not (one.kind == "port" and one.direction == "out"):
            continue
        value = float(10 ** rng.uniform(-3, np.log10(0.05)))
        limits = {"capacity": (0.3, 0.9), "intermittent": (0.02, 0.5), "flooding": (0.2, 1.0)}
        if kind in limits:
            value = float(rng.uniform(*limits[kind]))
        value = 1000.0 if kind == "size" else value
        phase = int(rng.integers(phases)) if kind == "intermittent" else None
        made.append(Planted(element, kind, value, link, phase))
    return made


def random_case(seed: int, count: int | None = None) -> Case:
    """Return the case of a seed, with 0 to 3 faults."""
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    ports = len(net.ports)
    patterns = ["aapc"] if ports <= 24 or rng.random() < 0.4 else ["random"]
    if rng.random() < 0.5:
        patterns = [str(rng.choice(["random", "pairs", "chain", "double"])), *patterns]
    if rng.random() < 0.15:
        patterns = ["random", "chain"]
    loads = sorted(
        rng.choice([0.25, 0.5, 0.75, 0.9, 0.95], int(rng.integers(1, 4)), False).tolist()
    )
    transports = [["dpdk"], ["dpdk"], ["dpdk"], ["tcp"], ["dpdk", "tcp"]][int(rng.integers(5))]
    sizes = [64, 512, 1518] if rng.random() < 0.2 else [1518]
    phases = make_phases(
        patterns, loads, transports, sizes, ports, rng, 0.1, float(rng.uniform(0.5, 2))
    )
    if len(phases) > 150:
        phases = [phases[i] for i in sorted(rng.choice(len(phases), 150, False).tolist())]
    count = int(rng.integers(4)) if count is None else count
    faults = random_faults(rng, net, count, len(phases))
    noise = Noise(
        rows=float(rng.uniform(0, 0.05)), stalls=float(rng.uniform(0, 0.1)),
        spread=float(rng.uniform(0, 0.15)), queue=float(rng.uniform(20, 500)),
        closed=float(rng.uniform(0.01, 0.05)),
    )  # fmt: skip
    return simulate(net, phases, faults, rng, noise)


def simulate(
    net: Network, phases: list[Phase], faults: list[Planted], rng: np.random.Generator,
    noise: Noise | None = None,
) -> Case:  # fmt: skip
    """Run phases over a network with faults."""
    simulator = Simulator(rng, net, faults, noise or Noise())
    for number, phase in enumerate(phases):
        run = simulator.open_phase if phase.facts.open_loop else simulator.closed_phase
        run(number, phase)
    found = simulator.observations(phases)
    tellable = [is_tellable(simulator, found, which) for which in range(len(faults))]
    return Case(net, net.paths(), found, faults, tellable)


def is_tellable(simulator: Simulator, found: Observations, which: int) -> bool:
    """Return whether the observations show a fault, and no other element explains them as well.

    It follows from the truth alone: the share that this fault took of each row, what everything
    else took, and which link each pair uses. No row is judged by what the inference finds in it.
    A row speaks for the fault by a log-likelihood ratio of (share / deviation)² / 2, at most
    MOST_OF_ROW. The deviation is what hosts lose by themselves (5 frames and 2e-4 of all), 6 % of
    a closed rate, and a quarter of what other causes took (up to 15 % of it varies by row).
    The best alternative is that nothing is at fault, or another element that has other flows. It
    fails to explain the fault's rows that do not pass it, and rows that pass it alone, which it
    would have let suffer in the same way. A fault counts where the truth is better than each
    alternative by NEEDED: what one more fault costs, among some hundred elements. Where its flows
    all pass another element and no others do, naming either is right.
    """
    net, fault = simulator.net, simulator.faults[which]
    cost = np.array([row[which] for row in simulator.cost])
    closed = ~np.isfinite(found.sent)
    sent = np.where(closed, 1e4, found.sent)
    other = np.zeros(len(cost))
    if fault.kind in LOST:  # what other causes take hides a fault
        other = np.clip(np.nan_to_num(found.lost / sent) - cost, 0, 1)
    deviation = np.hypot(np.where(closed, 0.06, 5 / sent + 2e-4), 0.25 * other)
    if fault.kind == "capacity":  # a limited row has no valid rate
        cost = np.where(found.limited, 0.0, cost)
    speaks = np.minimum((cost / deviation) ** 2 / 2, MOST_OF_ROW)
    if speaks.sum() < NEEDED:
        return False
    pairs = list(zip(found.src.tolist(), found.dst.tolist(), strict=True))
    through = np.array(
        [any(simulator.hits(fault, pair, e) for e in net.route[pair]) for pair in pairs]
    )
    usual = float(np.median(cost[speaks > 1])) if (speaks > 1).any() else 0.0
    denies = np.minimum((usual / deviation) ** 2 / 2, MOST_OF_ROW)
    if fault.kind in ("capacity", "burst", "intermittent", "size"):  # others need not suffer
        denies *= np.isin(found.phase, found.phase[speaks > 1])
        denies *= ~found.limited
    passes = np.zeros((len(net.elements), len(pairs)), np.bool_)
    for row, pair in enumerate(pairs):
        passes[net.route[pair], row] = True
    against = ~passes @ speaks + (passes & ~through) @ denies
    same = (passes == passes[fault.element]).all(axis=1) if fault.link is None else False
    return bool((against[~same & (np.arange(len(against)) != fault.element)] > NEEDED).all())


# --- scoring -----------------------------------------------------------------------------------


@dataclass
class Score:
    """Suspects of a case against what was planted."""

    right: list[Suspect] = field(default_factory=list)
    wrong: list[Suspect] = field(default_factory=list)
    found: list[Planted] = field(default_factory=list)
    missed: list[Planted] = field(default_factory=list)
    kind_right: int = 0


def matches(suspect: Suspect, fault: Planted, net: Network) -> bool:
    """Return whether a suspect is the planted fault: the element, and what it does to frames."""
    one = net.elements[fault.element]
    here = any((x.name, x.direction) == (one.name, one.direction) for x in suspect.alike)
    family = suspect.kind in LOST if fault.kind in LOST else suspect.kind == fault.kind
    return here and family


def score(case: Case, location: Location) -> Score:
    """Return which suspects are right and which faults that can be told apart were missed."""
    result = Score()
    open_faults = list(range(len(case.faults)))
    for suspect in location.suspects:
        hit = [i for i in open_faults if matches(suspect, case.faults[i], case.net)]
        hit.sort(key=lambda i: (not case.tellable[i], case.faults[i].kind != suspect.kind))
        if hit:
            result.right.append(suspect)
            result.found.append(case.faults[hit[0]])
            result.kind_right += suspect.kind == case.faults[hit[0]].kind
            open_faults.remove(hit[0])
        else:
            result.wrong.append(suspect)
    result.missed = [case.faults[i] for i in open_faults if case.tellable[i]]
    return result
