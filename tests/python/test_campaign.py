# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns: their rounds and moves, the search through a chain, what hosts say of cables."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import hostkit
from conftest import Command
from switchbench.analysis.campaign import merged
from switchbench.analysis.phases import chain_entries
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Device, Part
from switchbench.cli import campaign, main
from switchbench.labs import load, switches
from switchbench.plan.campaign import (
    MOST_ROUNDS,
    ChainResult,
    chain_parts,
    chain_places,
    moves,
    next_passes,
    probabilities,
    rotation,
)
from switchbench.topology.form import TopologyError
from synthetic import make_site, make_trial


def device(ports: int, groups: tuple[int, ...] = (), chain: bool = False) -> Device:
    """Return a device of so many ports, the first of them in groups of these sizes."""
    names = [f"p{number}" for number in range(1, ports + 1)]
    ends = [sum(groups[:place]) for place in range(len(groups) + 1)]
    parts = {f"g{i}": tuple(names[a:b]) for i, (a, b) in enumerate(pairwise(ends))}
    return Device("dut", tuple(names), parts, chain)


def hosts(number: int, first: int = 1) -> dict[str, str]:
    """Return this number of host ports, in consecutive ports."""
    return {f"n{i}:e0": f"p{first + i}" for i in range(number)}


# --- rotation ---


@pytest.mark.parametrize("count", [2, 3, 5, 8, 24, 47])
@pytest.mark.parametrize("groups", [(), (24, 24), (12, 12, 12, 12), (5, 30, 13)])
@pytest.mark.parametrize("first", [1, 2])
def test_rounds_load_each_port_and_mix_all_groups(
    count: int, groups: tuple[int, ...], first: int
) -> None:
    """The fewest rounds load each port and move one cable for each that nothing is in yet; the
    further ones mix each pair of groups, evenly, and move no cable that could stay."""
    dut = device(48, groups)
    rounds = rotation(dut, hosts(count, min(first, 49 - count)))
    cover = math.ceil(48 / count)
    assert {port for one in rounds[:cover] for port in one.values()} == set(dut.ports)
    assert all(len(set(one.values())) == count for one in rounds)
    changed = [sum(a[t] != b[t] for t in a) for a, b in pairwise(rounds)]
    assert sum(changed[: cover - 1]) == 48 - count
    members = [
        {name: len(set(ports) & set(one.values())) for name, ports in dut.groups.items()}
        for one in rounds[cover:]
    ]
    for before, here, now in zip(rounds[cover - 1 :], rounds[cover:], members, strict=False):
        had = {name: len(set(ports) & set(before.values())) for name, ports in dut.groups.items()}
        kept = sum(min(had[name], now[name]) for name in now)
        assert sum(before[t] == here[t] for t in before) == kept
        used = [size for size in now.values() if size]
        full = [name for name, size in now.items() if size == len(dut.groups[name])]
        assert max(used) - min(used) <= 1 or full
    mixed = [{name for name, size in now.items() if size} for now in members]
    assert all(any({a, b} <= one for one in mixed) for a, b in combinations(dut.groups, 2))
    if groups and count >= len(groups):
        assert len(members) == 1
    if count == 2:
        assert len(members) == math.comb(len(groups), 2)


def test_moves_say_cables_and_loops() -> None:
    dut = device(8, chain=True)
    whole, half = ({"a": "p1", "b": end} for end in ("p8", "p4"))
    out, back = moves(dut, whole, half), moves(dut, half, whole)
    assert out == ["pull the loop cable p4 - p5", "move b from p8 to p4"]
    assert back == ["move b from p4 to p8", "plug the loop cable p4 - p5 in again"]
    assert moves(device(8), hosts(2), hosts(2)) == []


# --- chain ---


def test_loss_and_delay_of_a_chain_are_shared_by_its_passes() -> None:
    site = make_site(2)
    a, b = site.ports
    ends = (replace(a, switch_port="p8"), replace(b, switch_port="p3"))
    trial = make_trial(site, parts=(Part("lab", ends),))
    phase = {"trial": 0, "repeat": 0, "lost_frames": 271, "offered_frames": 1000,
             "latency": {"round_trip": {"p50": 60.0}}}  # fmt: skip
    (found,) = chain_entries(device(8, chain=True), {(0, 0): trial}, [phase])
    assert (found["entry"], found["exit"], found["passes"]) == ("p3", "p8", 3)
    assert found["lost_ppm_per_pass"] == pytest.approx(100_000)  # 0.9 * 0.9 * 0.9 is 0.729
    assert (found["round_trip_us"], found["us_per_pass"]) == (60.0, 10.0)


def searched(dut: Device, part: int, rate: float, seed: int) -> tuple[int | None, int]:
    """Return the part that the search names, and its rounds, where `part` loses frames."""
    chance, seen = np.random.default_rng([part, seed]), list[ChainResult]()
    passes, frames = len(dut.ports) // 2, 100_000
    while (span := next_passes(passes, seen)) is not None:
        places = chain_places(dut, ["a", "b"], span)
        ends = [dut.ports.index(port) for port in places.values()]
        assert ends[0] % 2 == 0
        assert ends[1] % 2 == 1
        within = 2 * span[0] <= part <= 2 * span[1]
        seen.append(ChainResult(*span, frames, int(chance.binomial(frames, rate)) if within else 0))
    if not seen[0].lost:
        return None, len(seen)
    likely = probabilities(passes, seen)
    return max(range(len(likely)), key=likely.__getitem__), len(seen)


@pytest.mark.parametrize("ports", [4, 10, 48])
@pytest.mark.parametrize("rate", [1.0, 0.02, 1e-3, 1e-4, 3e-5])
def test_the_search_names_each_part_of_a_chain(ports: int, rate: float) -> None:
    """Wherever the fault is and however rare: wrong at most as often as it says (1 %), and in as
    few rounds as halves need where a round is enough to see it."""
    dut = device(ports, chain=True)
    parts = range(len(chain_parts(dut)))
    tries = [(part, seed) for part in parts for seed in range(1 if rate == 1.0 else 6)]
    found = [(part, *searched(dut, part, rate, seed)) for part, seed in tries]
    wrong = sum(name not in (part, None) for part, name, _ in found)
    unseen = sum(name is None for _, name, _ in found)
    assert wrong <= math.ceil(0.02 * len(found))
    assert unseen <= 0.1 * len(found)  # of 3 expected none is lost in 5 % of whole chains
    assert max(rounds for *_, rounds in found) <= MOST_ROUNDS
    if rate >= 1e-3:
        least = math.ceil(math.log2(len(parts)))
        assert max(rounds for *_, rounds in found) <= least + 3


def test_a_chain_without_loss_is_one_round() -> None:
    assert next_passes(24, []) == (0, 23)
    assert next_passes(24, [ChainResult(0, 23, 1e6, 0)]) is None


# --- the modelled device ---


def described(**keys: Any) -> dict[str, Any]:
    """Return the document that the switch of a lab reads."""
    (found,) = switches.descriptions("x", load("model-48", keys))
    return found


def test_a_device_has_all_its_ports() -> None:
    found = described(overrides={"node3": {"port": "p40"}})
    ports = {port["name"]: port for port in found["ports"]}
    assert list(ports) == [f"p{number}" for number in range(1, 49)]
    assert [name for name, port in ports.items() if "vdev" in port] == [
        "p1", "p2", "p4", "p5", "p6", "p7", "p8", "p40",
    ]  # fmt: skip
    faults = {"faults": [{"kind": "drop", "in": "node3"}, {"kind": "dead", "port": "p9"}]}
    found = described(overrides={"node3": {"port": "p40"}}, model=faults)
    assert [fault.get("in") or fault["port"] for fault in found["faults"]] == ["p40", "p9"]


def test_a_chain_has_vlans_and_loop_cables() -> None:
    keys = {"nodes": 2, "device": {"ports": "p[1-8]", "chain": True}, "model": {"faults": []}}
    whole = described(**keys)["ports"]
    assert [port["vlan"] for port in whole] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [port.get("cable") for port in whole] == [
        None, "p3", "p2", "p5", "p4", "p7", "p6", None,
    ]  # fmt: skip
    assert ["vdev" in port for port in whole] == [True, *[False] * 6, True]
    half = described(**keys, overrides={"node2": {"port": "p4"}})["ports"]
    assert [port.get("cable") for port in half] == [None, "p3", "p2", None, None, "p7", "p6", None]


CHAIN = {"nodes": 2, "model": {"faults": []}}


@pytest.mark.rows
def test_a_device_is_refused(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(TopologyError) as error:
        load("model-48", keys)
    assert says in str(error.value)


# --- hosts: what they say of cables ---

SITE = {
    "launch": "ssh", "hosts": "node[1-2]",
    "ports": {"e0": {"network": "n", "iface": "eth7", "line_rate": "1Gbit"}},
    "device": {"name": "sw1", "ports": "p[1-6]"},
}  # fmt: skip


def link(changes: int, port: str = "", carrier: int = 1) -> str:
    """Return the answer of a host: its carrier, the number of its changes, and by LLDP its port."""
    name = "/sys/class/net/eth7/carrier"
    lldp = ""
    if port:
        ends = {"chassis": {"sw1": {}}, "port": {"id": {"type": "ifname", "value": port}}}
        lldp = json.dumps({"lldp": {"interface": {"eth7": ends}}})
    return (
        f"==> {name} <==\n{carrier}\n\n==> {name}_changes <==\n{changes}\n\n==> lldp <==\n{lldp}\n"
    )


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose files hold the answers of hosts; rounds are done without a run."""
    folder = tmp_path / "answers"
    folder.mkdir()
    ssh = hostkit.in_path(tmp_path / "bin", monkeypatch) / "ssh"
    hostkit.program(ssh, hostkit.ssh_script(f"cat {folder}/$host; exit 0"))

    def measured(one: campaign.Campaign) -> None:
        one.progress.done, one.progress.carriers = one.progress.done + 1, None
        one.write()

    monkeypatch.setattr(campaign, "_measure", measured)
    monkeypatch.setattr(campaign, "_judge", lambda _: {"exit_status": 0})
    monkeypatch.setattr(campaign.SummaryPrinter, "print", lambda *_: None)
    monkeypatch.setattr(campaign, "SummaryPrinter", lambda *_: type("", (), {"print": print})())
    return folder


def say(answers: Path, *links: str) -> None:
    """Set the answers of node1, node2 ..."""
    for number, text in enumerate(links, start=1):
        (answers / f"node{number}").write_text(text)


def begin(tmp_path: Path, **site: Any) -> tuple[Path, Path]:
    """Return a configuration and the directory of its campaign, not begun."""
    conf = tmp_path / "conf.yaml"
    tests = [{"pattern": "pairs", "transport": "tcp", "repeat": 1}]
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": SITE | site, "tests": tests}))
    return conf, tmp_path / "out"


def test_cables_are_asked_for_and_recognised(tmp_path: Path, answers: Path, cli: Command) -> None:
    """By link events: of the moved ports alone, and of no other. The state outlives the command."""
    conf, out = begin(tmp_path)
    say(answers, link(4), link(7))
    said = cli.prints("campaign", conf, "--out", out, status=3)
    assert "  move node1:e0 from p1 to p3\n  move node2:e0 from p2 to p4\n" in said
    assert f"then: switchbench campaign {out}" in said
    for links, words in (
        ((link(4), link(7)), "node1:e0 kept its link: it was not moved to sw1 p3"),
        ((link(6), link(7)), "node2:e0 kept its link: it was not moved to sw1 p4"),
        ((link(6), link(8, carrier=0)), "node2:e0 has no link: is it plugged into sw1 p4?"),
        ((link(6, "p3"), link(9, "p5")), "node2:e0 is at sw1 p5, the site says sw1 p4"),
    ):
        say(answers, *links)
        error = cli.refuses("campaign", out)
        where = "the cables do not match the campaign's next round"
        assert error == f"switchbench: {where}: {words} [SB-CABLES]\n"
    say(answers, link(6, "p3"), link(9))
    assert "move node1:e0 from p3 to p5" in cli.prints("campaign", out, status=3)
    say(answers, link(8), link(11))
    cli.prints("campaign", out)


def test_a_cable_that_was_to_stay(tmp_path: Path, answers: Path, cli: Command) -> None:
    conf, out = begin(tmp_path, device={"name": "sw1", "ports": "p[1-3]"})
    say(answers, link(1), link(1))
    assert "move node1:e0 from p1 to p3" in cli.prints("campaign", conf, "--out", out, status=3)
    say(answers, link(3), link(3))
    words = "node2:e0 lost its link, but should have stayed in sw1 p2"
    assert words in cli.refuses("campaign", out)
    say(answers, link(3), link(1))
    cli.prints("campaign", out)


@pytest.mark.rows
def test_a_campaign_is_refused(
    tmp_path: Path, site: dict[str, Any], says: str, cli: Command
) -> None:
    conf, out = begin(tmp_path, **site)
    error = cli.refuses("campaign", conf, "--out", out)
    assert says in error
    assert "[SB-" in error
    assert not out.exists()


def test_a_directory_that_is_no_campaign(tmp_path: Path, cli: Command) -> None:
    said = cli.refuses("campaign", tmp_path)
    assert "is not a campaign's directory: it has no campaign.json that can be read" in said
    for state, says in (
        ('{"schema": "switchbench-campaign/9"}', "has a newer format"),
        ('{"schema": "switchbench-campaign/1", "rounds": 3}', "is not a campaign's directory"),
    ):
        (tmp_path / "campaign.json").write_text(state)
        assert says in cli.refuses("campaign", tmp_path)


def test_a_state_of_other_ports(tmp_path: Path, answers: Path, cli: Command) -> None:
    conf, out = begin(tmp_path)
    say(answers, link(4), link(7))
    cli.prints("campaign", conf, "--out", out, status=3)
    state = json.loads((out / "campaign.json").read_text())
    for key, value in (("done", 9), ("rounds", [{"node9:e0": "p1"}]), ("rounds", [])):
        (out / "campaign.json").write_text(json.dumps(state | {key: value}))
        said = cli.refuses("campaign", out)
        assert "campaign.json does not match configuration.yaml" in said


def test_a_terminal_is_waited_at(
    tmp_path: Path,
    answers: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Command,
) -> None:
    """A misplaced cable is named and asked for again; Ctrl-C keeps the progress."""
    conf, out = begin(tmp_path)
    say(answers, link(4), link(7))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    turns = iter([(link(4), link(7)), (link(6), link(9)), None])

    def moved(_prompt: str) -> str:
        links = next(turns)
        if links is None:
            raise KeyboardInterrupt
        say(answers, *links)
        return ""

    monkeypatch.setattr("builtins.input", moved)
    shown = cli("campaign", conf, "--out", out)
    assert shown.status == main.INTERRUPTED
    assert shown.out.count("move node1:e0 from p1 to p3") == 2
    assert shown.out.count("move node1:e0 from p3 to p5") == 1
    assert "node1:e0 kept its link" in shown.err
    assert json.loads((out / "campaign.json").read_text())["done"] == 2


def test_rounds_become_one_run(tmp_path: Path) -> None:
    """A host port counts once for each device port to which it was plugged in."""
    lab = {"lab": "model-48", "nodes": 2, "device": {"ports": "p[1-4]"}}
    tests = [{"pattern": "pairs", "transport": "dpdk", "repeat": 1}]
    runs = {
        number: hostkit.plan(tmp_path, tests=tests, **lab, model={"faults": []}, overrides=places)
        for number, places in enumerate(
            ({}, {"node1": {"port": "p3"}, "node2": {"port": "p2"}}), start=1
        )
    }
    run, names = merged(runs[1], runs)
    assert names[2] == {"node1:e0": "p3@node1:e0", "node2:e0": "p2@node2:e0"}
    ports = {port.name: port for port in run.site.ports}
    assert list(ports) == ["p1@node1:e0", "p3@node1:e0", "p2@node2:e0"]
    assert ports["p2@node2:e0"].rounds == (1, 2)
    assert ports["p3@node1:e0"].tester == "node1:e0"
    assert [len(process.ports) for process in run.site.processes] == [2, 1]
    assert [trial.id // 1000 for trial in run.trials] == [1, 2]
    with pytest.raises(ConfigurationError, match="no cable has to be moved"):
        rotation(device(2), hosts(2))
