# SPDX-License-Identifier: BSD-3-Clause
"""What a configuration refuses, in one sentence with file, line and key; and who wins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from configs import LAB, compile_text, needs_engine, read_text
from switchbench.base.errors import MISTAKES_MOST, ConfigurationError
from switchbench.base.model import Repeats
from switchbench.config import validate
from switchbench.config.point import points
from switchbench.config.schema import ResolvedSettings

TWO = "switchbench: 1\nsite: {lab: two-modules}\n"
HALL = "switchbench: 1\nsite: sites/hall2.yaml\n"


def one_test(text: str, top: str = LAB) -> str:
    """A configuration with one test, at line 4."""
    return f"{top}tests:\n- {text}\n"


def clause_of(text: str) -> str:
    """A configuration with one clause, at line 5."""
    return f"{LAB}tests: [{{pattern: aapc}}]\nexpect:\n- {text}\n"


REFUSED = {
    "unknown key": (
        one_test("{pattrn: chain}"),
        '4: tests.0.pattrn: unknown key; did you mean "pattern"?',
    ),
    "unknown key at the top": (
        LAB + "loadd: 95%\n",
        '3: loadd: unknown key; did you mean "load"?',
    ),
    "unknown key of an option": (
        one_test("{pattern: chain, dpdk: {vlans: 3}}"),
        '4: tests.0.dpdk.vlans: unknown key; did you mean "vlan"?',
    ),
    "unknown key of the site": (
        "switchbench: 1\nsite: {lab: one-switch, packs: 2}\n",
        '2: site.packs: unknown key; did you mean "pack"?',
    ),
    "unknown word": (
        one_test("{pattern: chian}"),
        '4: tests.0.pattern: found "chian"; did you mean "chain"?',
    ),
    "unknown transport": (
        one_test("{pattern: chain, transport: sctp}"),
        '4: tests.0.transport: found "sctp"; valid values are dpdk, tcp, udp or verbs',
    ),
    "wrong type": (
        one_test("{pattern: chain, forward: yes}"),
        '4: tests.0.forward: found "yes", but true or false is needed',
    ),
    "a test that is no mapping": (
        one_test("chain"),
        '4: tests.0: found "chain", but a mapping of keys is needed',
    ),
    "a key twice": (
        one_test("{pattern: chain, window: 2s, window: 3s}"),
        "4: tests.0.window: duplicate key (first at line 4)",
    ),
    "a list at a singular key": (
        one_test("{pattern: chain, load: [95%]}"),
        "4: tests.0.load: found a list, but a singular key takes one value (an axis has a plural "
        "key, anything else is swept under `sweep`)",
    ),
    "one value at a plural key": (
        one_test("{pattern: chain, loads: 95%}"),
        "4: tests.0.loads: is an axis and takes a list: write [95%]",
    ),
    "a value twice on an axis": (
        one_test("{pattern: chain, ranks: [4, 4]}"),
        "4: tests.0.ranks: duplicate value 4",
    ),
    "both forms of a setting": (
        one_test("{pattern: chain, load: 95%, loads: [95%]}"),
        "4: tests.0.loads: stands beside load: give one of them",
    ),
    "no pattern": (
        one_test("{load: 95%}"),
        "4: tests.0.pattern: is missing: what is to be sent?",
    ),
    "no unit": (
        one_test("{pattern: chain, window: 2}"),
        "4: tests.0.window: 2 has no unit: a time is written as 2s or 500ms "
        "(units: ns, us, ms, s, min, h)",
    ),
    "a wrong unit": (
        one_test("{pattern: chain, window: 2KiB}"),
        '4: tests.0.window: "2KiB": KiB is no unit of a time; units are ns, us, ms, s, min or h',
    ),
    "a load above 100 %": (
        one_test("{pattern: chain, load: 101%}"),
        '4: tests.0.load: "101%" is above line rate: at most 100%',
    ),
    "a rate above the link": (
        one_test("{pattern: chain, load: 101Mbit}"),
        "4: tests.0.load: 101 Mbit/s at layer 1 is above the line rate of node1:e0, 100 Mbit/s",
    ),
    "frames/s above the link": (
        one_test("{pattern: chain, load: 10kfps}"),
        "4: tests.0.load: 123.04 Mbit/s at layer 1 is above the line rate of node1:e0, 100 Mbit/s",
    ),
    "a frame of 63 bytes": (
        one_test("{pattern: chain, frame_sizes: [63]}"),
        "4: tests.0.frame_sizes.0: a frame of 63 bytes: frames have 64 to 9216 bytes, FCS included",
    ),
    "a frame too small for its header": (
        one_test("{pattern: chain, frame_size: 64, dpdk: {header: ipv6-udp, vlan: 5}}"),
        "4: tests.0.frame_size: a frame of 64 bytes holds no ipv6-udp header with a VLAN tag and "
        "signature: at least 88",
    ),
    "a frame beyond the MTU": (
        one_test("{pattern: chain, frame_size: 1519}"),
        "4: tests.0.frame_size: a frame of 1519 bytes does not fit the ports' MTU: at most 1518 "
        "(FCS included)",
    ),
    "an IMIX letter": (
        one_test("{pattern: chain, imix: {genome: aaz}}"),
        '4: tests.0.imix: genome: "z" has no size: letters are abcdefghi (RFC 6985), further ones '
        "stand under `custom`",
    ),
    "a key of an IMIX": (
        one_test("{pattern: chain, imix: {genome: aab, letters: 3}}"),
        "4: tests.0.imix: unknown key letters; valid keys are genome or custom",
    ),
    "1 rank": (
        one_test("{pattern: chain, ranks: [1]}"),
        "4: tests.0.ranks.0: 1 is invalid: the number of ranks is 2 to 65536",
    ),
    "a lab of 1 node": (
        one_test("{pattern: chain}", "switchbench: 1\nsite: {lab: one-switch, nodes: 1}\n"),
        "4: tests.0: network lab has 1 port, node1:e0: a pattern needs 2 ranks",
    ),
    "more ranks than ports": (
        one_test("{pattern: chain, ranks: [9]}"),
        "4: tests.0.ranks: 9 ranks are more than the 8 ports of network lab",
    ),
    "a transport that a port has not": (
        one_test("{pattern: chain, transport: verbs}"),
        "4: tests.0.transport: node1:e0 in network lab has no verbs (it has dpdk, tcp or udp)",
    ),
    "dpdk on InfiniBand": (
        one_test("{pattern: chain, network: ib, transports: [dpdk]}", HALL),
        "4: tests.0.transports: node01:ib in network ib has no dpdk (it has verbs)",
    ),
    "an unknown network": (
        one_test("{pattern: chain, network: rail2}", HALL),
        '4: tests.0.network: there is no network "rail2"; networks are rail0, rail1 or ib; '
        'did you mean "rail1"?',
    ),
    "a pair across two networks": (
        one_test("{pattern: pairs, network: rail0, partners: [['node01:e0', 'node02:e1']]}", HALL),
        "4: tests.0.partners: node02:e1 is in network rail1, not in rail0: "
        "no flow crosses networks",
    ),
    "two networks at a singular key": (
        one_test("{pattern: pairs, network: [rail0, rail1]}", HALL),
        "4: tests.0.network: found a list, but a singular key takes one value (an axis has a "
        "plural key, anything else is swept under `sweep`)",
    ),
    "together with itself": (
        one_test("{pattern: pairs, concurrent_networks: [rail0, rail0]}", HALL),
        "4: tests.0.concurrent_networks: needs two or more different networks",
    ),
    "percent of an unknown line rate": (
        one_test("{pattern: chain}", "switchbench: 1\nsite: {lab: open}\n"),
        "4: tests.0: 95% of an unknown line rate: node1:e0 is not shaped, so give the load in "
        "bit/s (100Mbit) or frames/s (10kfps), or the site a `line_rate`",
    ),
    "33 dpdk ports in one process": (
        one_test("{pattern: chain}", "switchbench: 1\nsite: {lab: sixty-four, pack: 33}\n"),
        "2: site.pack: node[1-33] would hold 33 ports in one process: Debian's DPDK holds at "
        "most 32",
    ),
    "a pair with an unknown host": (
        one_test("{pattern: pairs, partners: [[node1, node99]]}"),
        '4: tests.0.partners: there is no group, host or port "node99" (hosts are node[1-8], '
        "groups switch)",
    ),
    "a pair with an unknown port": (
        one_test("{pattern: pairs, partners: [['node1:e0', 'node2:e7']]}"),
        '4: tests.0.partners: there is no group, host or port "node2:e7" (hosts are node[1-8], '
        "groups switch)",
    ),
    "a pair with itself": (
        one_test("{pattern: pairs, partners: [[node1, 'node1:e0']]}"),
        "4: tests.0.partners: duplicate rank node1:e0",
    ),
    "a flow that is listed twice": (
        one_test("{pattern: flows, flows: [[node1, node2], [0, 'node2:e0']]}"),
        "4: tests.0.flows.1: duplicate flow node1:e0 to node2:e0",
    ),
    "a flow to itself": (
        one_test("{pattern: flows, flows: [[node1, node1]]}"),
        "4: tests.0.flows.0: node1:e0 to node1:e0 is no flow",
    ),
    "flows, but none": (
        one_test("{pattern: flows}"),
        "4: tests.0: flows is missing: a list, [[source, destination], ...], or a file of them",
    ),
    "a flow of a rank that is not there": (
        one_test("{pattern: flows, flows: [[0, 1], [8, 1]]}"),
        "4: tests.0.flows.1: there is no rank 8: ranks are 0 to 7",
    ),
    "a flow with a share of nothing": (
        one_test("{pattern: flows, flows: [[0, 1, 0%]]}"),
        '4: tests.0.flows: found "0%", but a share is more than 0% and at most 100%, as 12.5%, '
        "with 7 decimals at most",
    ),
    "shares of more than a port has": (
        one_test("{pattern: flows, flows: [[0, 1, 60%], [0, 2, 50%]]}"),
        "4: tests.0.flows: shares: those of rank 0 come to 110 %: 100 % at most",
    ),
    "too many receivers": (
        one_test("{pattern: incast, receivers: 8}"),
        "4: tests.0.pattern: receivers 8 of 8 ranks: 1 to 7, so that one is left",
    ),
    "a load of receivers above their senders' lines": (
        one_test("{pattern: incast, receivers: 7, load_of: receivers, load: 101%}"),
        '4: tests.0.load: "101%" is above line rate for each of its senders: 707% of node1:e0: '
        "at most 100%",
    ),
    "receivers of a fanout": (
        one_test("{pattern: fanout, receivers: 2}"),
        "4: tests.0.receivers: has no effect: fanout takes no receivers (incast or head_of_line "
        "does)",
    ),
    "one group of a partial mesh": (
        one_test("{pattern: partial_mesh, groups: [node1]}"),
        "4: tests.0.pattern: partial_mesh goes from one group to another: 2 groups, not 1",
    ),
    "flows under a sweep": (
        one_test("{pattern: flows, sweep: {flows: [[[0, 1]]]}}"),
        "4: tests.0.sweep.flows: is not swept here: it can't be swept",
    ),
    "a pair of three": (
        one_test("{pattern: pairs, partners: [[node1, node2, node3]]}"),
        "4: tests.0.partners: found a list, but a pair of two ports or hosts is needed",
    ),
    "a pair outside of the ranks": (
        one_test("{pattern: pairs, ranks: [4], partners: [[node1, node5]]}"),
        "4: tests.0.partners: node5:e0 is not among the 4 ranks of this trial "
        "(node1:e0 to node4:e0)",
    ),
    "British partners": (
        one_test("{pattern: pairs, partners: neighbors}"),
        '4: tests.0.partners: found "neighbors"; valid values are neighbours, halves, shift, '
        'inside, across or random, or a list of pairs; did you mean "neighbours"?',
    ),
    "an unknown group": (
        one_test("{pattern: pairs, partners: across, groups: [lef, right]}", TWO),
        '4: tests.0.groups: there is no group, host or port "lef" (hosts are node[1-24], groups '
        'left or right); did you mean "left"?',
    ),
    "a group without ranks": (
        one_test("{pattern: pairs, partners: inside, ranks: [12]}", TWO),
        "4: tests.0: group right has none of the 12 ranks of this trial",
    ),
    "a parameter of another pattern": (
        one_test("{pattern: chain, order: shift}"),
        "4: tests.0.order: has no effect: chain takes no order (aapc does)",
    ),
    "a parameter of other partners": (
        one_test("{pattern: pairs, shift: 2}"),
        "4: tests.0.shift: has no effect with partners: neighbours (with shift)",
    ),
    "a default that no test takes": (
        LAB + "order: shift\ntests:\n- {pattern: chain}\n- {pattern: ring}\n",
        "3: order: has no effect: chain takes no order (aapc does)",
    ),
    "frame sizes without frames": (
        one_test("{pattern: chain, transport: tcp, frame_sizes: [64]}"),
        "4: tests.0.frame_sizes: has no effect with tcp: it belongs to dpdk or udp",
    ),
    "options of another transport": (
        one_test("{pattern: chain, transport: dpdk, tcp: {streams_per_flow: 2}}"),
        "4: tests.0.tcp.streams_per_flow: has no effect with dpdk: it belongs to tcp",
    ),
    "an IP field without IP": (
        one_test("{pattern: chain, dpdk: {ttl: 3}}"),
        "4: tests.0.dpdk.ttl: has no effect with header l2 (with ipv4-udp or ipv6-udp)",
    ),
    "a priority without a tag": (
        one_test("{pattern: chain, dpdk: {pcp: 3}}"),
        "4: tests.0.dpdk.pcp: has no effect without `vlan`, whose tag carries it",
    ),
    "a transfer's size without transfer": (
        one_test("{pattern: chain, transfer_size: 1MiB}"),
        "4: tests.0.transfer_size: has no effect with traffic: stream",
    ),
    "a window of a transfer": (
        one_test("{pattern: chain, traffic: transfer, window: 1s}"),
        "4: tests.0.window: has no effect with traffic: transfer",
    ),
    "a transfer by the clock": (
        one_test("{pattern: aapc, traffic: transfer, sync: none}"),
        "4: tests.0.sync: none needs phases of a known length, and a transfer has none",
    ),
    "a burst without bursts": (
        one_test("{pattern: chain, burst: {frames: 5}}"),
        "4: tests.0.burst.frames: has no effect with traffic: stream",
    ),
    "a window of a counted burst": (
        one_test("{pattern: chain, traffic: burst, window: 1s}"),
        "4: tests.0.window: has no effect with traffic: burst",
    ),
    "a dither of a burst": (
        one_test("{pattern: chain, traffic: burst, dpdk: {dither: 1}}"),
        "4: tests.0.dpdk.dither: has no effect with traffic: burst",
    ),
    "a burst of a transport of messages": (
        one_test("{pattern: chain, transport: tcp, traffic: burst}"),
        "4: tests.0.traffic: tcp sends no bursts of a counted length: take dpdk",
    ),
    "a counted burst by the clock": (
        one_test("{pattern: aapc, traffic: burst, sync: none}"),
        "4: tests.0.sync: none needs phases of a known length, and a burst has none",
    ),
    "a rate of learning without addresses": (
        one_test("{pattern: chain, dpdk: {learning_rate: 10}}"),
        "4: tests.0.dpdk.learning_rate: has no effect without `addresses`, of which each port has "
        "several",
    ),
    "a broadcast with IP headers": (
        one_test("{pattern: chain, dpdk: {header: ipv4-udp, destination: broadcast}}"),
        "4: tests.0.dpdk.destination: frames to all ports have header l2",
    ),
    "a broadcast to several addresses": (
        one_test("{pattern: chain, dpdk: {addresses: 2, destination: multicast}}"),
        "4: tests.0.dpdk.addresses: of frames to all ports, each port has one address",
    ),
    "a swept axis": (
        one_test("{pattern: chain, sweep: {load: [50%, 60%]}}"),
        "4: tests.0.sweep.load: is not swept here: its axis is `loads`",
    ),
    "a swept value of the wrong kind": (
        one_test("{pattern: chain, sweep: {window: [1s, 2x]}}"),
        '4: tests.0.sweep.window.1: "2x": x is no unit of a time; units are ns, us, ms, s, min '
        "or h",
    ),
    "an unknown swept key": (
        one_test("{pattern: chain, sweep: {wndow: [1s]}}"),
        '4: tests.0.sweep.wndow: unknown key; did you mean "window"?',
    ),
    "a key swept and plain": (
        one_test("{pattern: pairs, count: 2, sweep: {count: [1, 2]}}"),
        "4: tests.0.sweep.count: stands beside count: give one of them",
    ),
    "a shift that does not divide": (
        one_test("{pattern: pairs, partners: shift, shift: 3}"),
        "4: tests.0.pattern: shift 3 can't be made of 8 ranks: twice the shift must divide their "
        "number (the next lower that does is 2)",
    ),
    "more pairs than there are": (
        one_test("{pattern: pairs, partners: across, count: 13}", TWO),
        "4: tests.0.pattern: count 13 is more than the 12 pairs that partners across makes here",
    ),
    "no tests": (LAB + "tests: []\n", "3: tests: is an empty list: without it, all patterns run"),
    "another format": (
        "switchbench: 2\nsite: {lab: one-switch}\n",
        "1: switchbench: format 2 is not known: this version reads 1",
    ),
    "no format": (
        "site: {lab: one-switch}\n",
        "1: has no `switchbench: 1`, the format's version, as first key",
    ),
    "no site": (
        "switchbench: 1\n",
        "1: has no `site`: say what exists, such as `site: {lab: one-switch}`, or give --site",
    ),
    "a site that is not there": (
        "switchbench: 1\nsite: nowhere.yaml\n",
        '2: site: there is no file "nowhere.yaml", and labs are hidden-fault, model-e7, '
        "model-e7-constant, "
        "model-figure1-collapse, model-figure1-good, model-figure1-saturated, model-good, "
        "one-switch, open, rauch-e7, rauch-er16, rauch-maintenance, rauch-myrinet, salmon-36, "
        "salmon-cajun, salmon-paths, sixty-four, tree, two-modules or two-racks",
    ),
    "a lab of virtual machines": (
        "switchbench: 1\nsite: {lab: one-switch, guests: 2}\n",
        "2: site.guests: unknown key; use a site file (launch: ssh) with the virtual machines as "
        "its hosts: labs have none",
    ),
    "a topology's value": (
        "switchbench: 1\nsite:\n  lab: one-switch\n  rate: fast\n",
        '4: site.rate: found "fast", but a rate is needed, as 10M, 2.5Gbit or unlimited',
    ),
    "an unknown measure": (
        clause_of("{measure: lost_frame, over: flow, require: '== 0'}"),
        '5: expect.0.measure: there is no measure "lost_frame" '
        '(doc/reference/measures.md lists them); did you mean "lost_frames"?',
    ),
    "an unknown scope": (
        clause_of("{measure: lost_frames, over: link, require: '== 0'}"),
        "5: expect.0.over: lost_frames is judged over flow, port, phase, plan, run, not 'link'",
    ),
    "no comparison": (
        clause_of("{measure: lost_frames, over: flow, require: none}"),
        "5: expect.0.require: 'none' is not a comparison (==, !=, <=, >=, <, >) with a number, "
        "such as '== 0'",
    ),
    "an unknown pattern in a clause": (
        clause_of("{measure: lost_frames, over: flow, require: '== 0', where: {pattern: aacp}}"),
        '5: expect.0.where.pattern: found "aacp"; did you mean "aapc"?',
    ),
    "more trials than anybody waits for": (
        f"{LAB}loads: [{', '.join(f'{i / 100}%' for i in range(1, 3001))}]\nrepeat: 1000\n"
        f"frame_sizes: [64, 128, 256, 512, 1024, 1280, 1518]\ntests:\n"
        + "- {pattern: chain, transport: dpdk}\n"
        * 50,
        "6: tests: loads, sizes, ranks, sweeps and repeats multiply to 21000000 trials and more; "
        "at most 20000 are allowed",
    ),
    "a sweep of more trials than that": (
        one_test(f"{{pattern: chain, sweep: {{seed: {[*range(20_001)]}}}}}"),
        "3: tests: loads, sizes, ranks, sweeps and repeats multiply to 20001 trials and more; "
        "at most 20000 are allowed",
    ),
    "a number without end": (
        one_test(f"{{pattern: chain, window: {'7' * 5001}s}}"),
        f'4: tests.0.window: "{"7" * 56}..." is a number of 5001 digits',
    ),
}


@needs_engine
@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    """Each mistake is one sentence: where, which key, what was found, what is possible."""
    text, sentence = REFUSED[case]
    with pytest.raises(ConfigurationError) as error:
        compile_text(tmp_path, text)
    assert str(error.value) == f"{tmp_path / 'conf.yaml'}:{sentence}"
    assert error.value.status == 2


def test_sentences_are_made_for_the_first_mistakes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 unknown keys took half a minute, each looked up for what it may have meant."""
    made: list[str] = []
    sentence = validate._sentence
    monkeypatch.setattr(
        validate, "_sentence", lambda *known: made.append("one") or sentence(*known)
    )
    with pytest.raises(ConfigurationError, match="3: key0: unknown key"):
        read_text(tmp_path, LAB + "".join(f"key{number}: 1\n" for number in range(100)))
    assert len(made) == MISTAKES_MOST


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"key{number}: 1\n" for number in range(20_000)),
        f"tests: [{', '.join(['{pattern: chain, network: x}'] * 20_000)}]\n",
        f"expect: [{', '.join(['{measure: x, min: 1}'] * 20_000)}]\n",
    ],
)
def test_many_mistakes_are_told_in_few_lines(tmp_path: Path, text: str) -> None:
    """None of them is looked for without end: each document is answered in seconds."""
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, LAB + text)
    assert len(str(error.value).splitlines()) <= MISTAKES_MOST + 1


def test_first_mistake_by_position(tmp_path: Path) -> None:
    """Of several mistakes the first in the file is named."""
    text = LAB + "tests:\n- {pattern: chain, window: 2}\n- {pattrn: chain}\nlog: loud\n"
    with pytest.raises(ConfigurationError, match=r":4: tests\.0\.window"):
        read_text(tmp_path, text)


SET_REFUSED = {
    "windw=1s": '--set windw=1s: windw: unknown key; did you mean "window"?',
    "window=x": '--set window=x: window: found "x", but a time is needed, as 2s or 500ms',
    "tests.1.window=1s": "--set tests.1.window=1s: there is no tests.1",
    "window.x=1s": '--set window.x=1s: window is "3s", not a mapping with keys below it',
    "window": "--set window: is not key=value, such as window=1s",
}


@pytest.mark.parametrize("argument", SET_REFUSED)
def test_set_refused(argument: str, tmp_path: Path) -> None:
    """A mistake in `--set` names the argument."""
    with pytest.raises(ConfigurationError, match=re.escape(SET_REFUSED[argument])):
        read_text(tmp_path, LAB + "window: 3s\ntests: [{pattern: chain}]\n", argument)


@pytest.mark.parametrize(
    ("text", "assignments", "key", "values"),
    [
        ("window: 3s\ntests: [{pattern: chain}]", [], "window", 3 * 10**9),
        ("window: 3s\ntests: [{pattern: chain, window: 1s}]", [], "window", 10**9),
        ("tests: [{pattern: chain, window: 1s}]", ["window=4s"], "window", 4 * 10**9),
        ("tests: [{pattern: chain, window: 1s}]", ["tests.0.window=4s"], "window", 4 * 10**9),
        (
            "tests: [{pattern: chain, window: 1s}]",
            ["tests.0.window=4s", "window=5s"],
            "window",
            5 * 10**9,
        ),
        ("tests: [{pattern: chain}]", ["tests.0.pattern=ring"], "pattern", "ring"),
    ],
)
def test_layers(
    text: str, assignments: list[str], key: str, values: object, tmp_path: Path
) -> None:
    """Top level, then the test's own keys, then `--set` in the order given."""
    reading = read_text(tmp_path, f"{LAB}{text}\n", *assignments)
    assert [getattr(test.values, key) for test in reading.tests] == [values]


def test_forms_hide_each_other(tmp_path: Path) -> None:
    """A test's `load` hides `loads` at the top; `--set loads` hides both, and a sweep."""
    text = LAB + "loads: [10%, 20%]\ntests: [{pattern: pairs, load: 30%, sweep: {count: [1, 2]}}]\n"

    def loads(*assignments: str) -> list[tuple[float | None, int | None]]:
        (test,) = read_text(tmp_path, text, *assignments).tests
        return [(point.load.percent, point.values.count) for point in points(test)]

    assert loads() == [(30.0, 1), (30.0, 2)]
    assert loads("loads=[40%, 50%]", "count=3") == [(40.0, 3), (50.0, 3)]
    assert loads("tests.0.load=60%", "sweep.count=[4]") == [(60.0, 4)]


@needs_engine
def test_what_was_understood_lists_the_same_flows(tmp_path: Path) -> None:
    text = LAB + "tests: [{pattern: flows, flows: [[0, 1, 60%], [node1, node3]]}]\n"
    run = compile_text(tmp_path, text)
    (test,) = run.effective["tests"]
    again = compile_text(tmp_path, yaml.safe_dump(run.effective))
    assert test["flows"] == again.effective["tests"][0]["flows"]
    assert again.trials[0].pattern == run.trials[0].pattern
    assert again.trials[0].pattern["list"] == [0, 1, 0, 2]


def test_options_merge_by_key(tmp_path: Path) -> None:
    """A test's `tcp` adds to the top level's."""
    text = (
        LAB + "transport: tcp\ntcp: {streams_per_flow: 4, nodelay: false}\n"
        "tests: [{pattern: chain, tcp: {nodelay: true}}]\n"
    )
    (test,) = read_text(tmp_path, text, "tcp.congestion=reno").tests
    assert test.values.tcp is not None
    assert test.values.tcp.in_effect() == {
        "streams_per_flow": 4, "nodelay": True, "zero_copy": False, "congestion": "reno",
    }  # fmt: skip


def test_order_of_points(tmp_path: Path) -> None:
    """Ranks, sizes, loads, then the sweep with its last key fastest."""
    text = LAB + (
        "tests:\n- {pattern: pairs, ranks: [4, 8], frame_sizes: [64, 128], loads: [50%, 60%],\n"
        "   sweep: {count: [1, 2], warmup: [1s, 2s]}}\n"
    )
    (test,) = read_text(tmp_path, text).tests
    found = [
        (p.ranks, p.sizes[0], p.load.percent, p.values.count, (p.values.warmup or 0) // 10**9)
        for p in points(test)
    ]
    assert found == [
        (ranks, size, load, count, warmup)
        for ranks in (4, 8)
        for size in (64, 128)
        for load in (50.0, 60.0)
        for count in (1, 2)
        for warmup in (1, 2)
    ]


def test_sweep_leaves_out_what_changes_nothing(tmp_path: Path) -> None:
    """Groups mean nothing to neighbours: each different trial stands once."""
    text = TWO + (
        "tests:\n- {pattern: pairs, sweep: {partners: [neighbours, across], "
        "groups: [[left, right], [right, left]]}}\n"
    )
    (test,) = read_text(tmp_path, text).tests
    assert [(p.values.partners, p.values.groups) for p in points(test)] == [
        ("neighbours", None),
        ("across", (("left",), ("right",))),
        ("across", (("right",), ("left",))),
    ]


def test_profiles(tmp_path: Path) -> None:
    """Windows, repeats and frame sizes of a profile, by transport and pattern."""

    def first(text: str, **request: str) -> ResolvedSettings:
        (test,) = read_text(tmp_path, text, **request).tests
        return next(iter(points(test))).values

    lab = first(LAB + "pattern: chain\n")
    assert (lab.warmup, lab.window, lab.repeat) == (5 * 10**8, 2 * 10**9, Repeats(1, 1))
    assert lab.seed == 1
    tcp = first(LAB + "pattern: chain\ntransport: tcp\n", profile="standard")
    assert (tcp.warmup, tcp.window, tcp.repeat) == (
        3 * 10**9,
        5 * 10**9,
        Repeats(3, 10, 0.02),
    )
    about = "about: {cables: c, switches: [{model: m, serial: s, firmware: f}]}\n"
    aapc = first(LAB + about + "pattern: aapc\nprofile: acceptance\n")
    assert (aapc.warmup, aapc.window) == (2 * 10**9, 30 * 10**9)
    assert aapc.frame_sizes == [64, 128, 256, 512, 1024, 1280, 1518]
    jumbo = "switchbench: 1\nsite: {lab: one-switch, mtu: 9000}\npattern: ring\n" + about
    assert (first(jumbo, profile="acceptance").frame_sizes or [])[-1] == 9018
    # DPDK's memif carries no jumbo frame: the node would refuse it after the start.
    modelled = jumbo.replace("one-switch", "model-good")
    assert (first(modelled, profile="acceptance").frame_sizes or [])[-1] == 1518
    kernel = first(modelled + "transport: udp\n", profile="acceptance")
    assert (kernel.frame_sizes or [])[-1] == 9018
    ipv6 = first(LAB + "pattern: chain\nprofile: standard\ndpdk: {header: ipv6-udp}\n")
    assert ipv6.frame_sizes == [84, 1518]


def test_default_loads(tmp_path: Path) -> None:
    """95 % in a lab, 99.98 % on a site, as fast as it goes for tcp."""

    def load(text: str) -> float | None:
        return next(points(read_text(tmp_path, text).tests[0])).load.percent

    assert load(LAB + "pattern: chain\n") == 95.0
    assert load(LAB + "pattern: chain\ntransport: tcp\n") == 100.0
    assert load(HALL + "pattern: chain\nnetwork: rail0\n") == 99.98


@pytest.mark.parametrize("order", ["tcp, dpdk", "dpdk, tcp", "udp, tcp", "tcp, dpdk, udp"])
def test_a_tests_transports_have_one_default_load(order: str, tmp_path: Path) -> None:
    """Frames' load, also for a transport that would send as fast as it goes alone."""
    tests = read_text(tmp_path, LAB + f"pattern: pairs\ntransports: [{order}]\n").tests
    assert [next(points(test)).load.percent for test in tests] == [95.0] * len(tests)


def test_a_test_on_several_networks_has_one_default_load(tmp_path: Path) -> None:
    tests = read_text(tmp_path, HALL + "pattern: chain\n").tests
    assert {test.transport for test in tests} == {"dpdk", "verbs"}
    assert {next(points(test)).load.percent for test in tests} == {99.98}


def test_without_tests_all_patterns_run_on_each_network(tmp_path: Path) -> None:
    """`--site S --profile quick` needs no file; a network gets a transport that it has."""
    reading = read_text(tmp_path, HALL, profile="quick")
    assert [(test.pattern, test.networks[0], test.transport) for test in reading.tests] == [
        (pattern, network, transport)
        for pattern in ("chain", "pairs", "aapc", "ring")
        for network, transport in (("rail0", "dpdk"), ("rail1", "dpdk"), ("ib", "verbs"))
    ]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """It took up to six edits, each with one sentence, to write a first configuration."""
    text = """\
switchbench: 1
site: {hosts: "a,b", ifac: eth0}
windw: 5s
load: fast
tests:
- {pattern: pairs, frame_sise: 64}
- {pattern: all-to-all}
- {pattern: aapc, transport: verbss}
expect:
- {measure: throughput, min: 90%}
- {measure: loss, max: 0}
- {measure: latency_p99, max: 5 us}
- {measure: bisection, min: 5}
"""
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, text)
    lines = [line.partition("conf.yaml:")[2] for line in str(error.value).splitlines()]
    expected = [
        '3: windw: unknown key; did you mean "window"?',
        "4: load: found",
        '6: tests.0.frame_sise: unknown key; did you mean "frame_size"?',
        '7: tests.1.pattern: found "all-to-all"; use full_mesh',
        '8: tests.2.transport: found "verbss"',
        '10: expect.0.min: "90%": % is no unit of a rate',
        "11: expect.1.measure: there is no measure",
        "12: expect.2.measure: there is no measure",
        "13: expect.3.measure: there is no measure",
        "2: site.ifac: unknown key",
        "2: site.ports: is missing: such as `ports: {e0: {network: net, iface: enp3s0}}`",
        "2: site.launch: is missing: such as `launch: ssh`",
    ]
    assert [line[: len(want)] for line, want in zip(lines, expected, strict=True)] == expected
    assert "use lost_frames or loss_percent" in lines[6]
    assert "use one_way_p99_us, round_trip_p99_us or pingpong_p99_us" in lines[7]
    assert "use throughput_total of pattern pairs" in lines[8]


def test_each_test_and_clause_is_checked_by_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_text(
            tmp_path,
            f"{LAB}tests:\n- {{pattern: pairs, network: x}}\n- {{pattern: chain}}\n"
            "- {pattern: aapc, transport: verbs}\n"
            "expect:\n- {measure: lost_frames}\n",
        )
    said = str(error.value).splitlines()
    assert [line.partition("conf.yaml:")[2].partition(": ")[2][:17] for line in said] == [
        "expect.0: has no ",
        "tests.0.network: ",
        "tests.2.transport",
    ]


def test_short_forms(tmp_path: Path) -> None:
    text = "switchbench: 1\nsite: {hosts: 'a,b', iface: eth7}\nimix: simple\n"
    reading = read_text(
        tmp_path, f"{text}tests: [{{pattern: pairs, transport: dpdk, load: 1Mbit}}]\n"
    )
    assert [port.name for port in reading.site.ports] == ["a:e0", "b:e0"]
    assert {port.engine["iface"] for port in reading.site.ports} == {"eth7"}
    assert reading.site.launch == "ssh"
    sizes = reading.tests[0].values.imix
    assert sizes is not None
    assert [sizes.count(size) for size in (64, 594, 1518)] == [7, 4, 1]


def test_a_suite_takes_times_with_units(tmp_path: Path) -> None:
    text = f"{LAB}suite: rfc2544\nsuite_parameters: {{trial_s: VALUE}}\n"
    assert read_text(tmp_path, text.replace("VALUE", "10s")).suite_parameters.trial_s == 10
    with pytest.raises(ConfigurationError, match=r"suite_parameters\.trial_s: .*10x"):
        read_text(tmp_path, text.replace("VALUE", "10x"))


def test_a_tab_is_called_a_tab(tmp_path: Path) -> None:
    """It was "mapping values are not allowed in this context"."""
    with pytest.raises(ConfigurationError, match=r":4: is not YAML: line 4 is indented by a tab"):
        read_text(tmp_path, f"{LAB}tests:\n\t- {{pattern: chain}}\n")


def test_an_unknown_key_does_not_list_seventy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_text(tmp_path, f"{LAB}zzzz: 1\n")
    assert len(str(error.value)) < 300
    assert "doc/reference/configuration.md lists the" in str(error.value)
