# SPDX-License-Identifier: BSD-3-Clause
"""What is read of a configuration: who wins, what it means, how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import LAB, read_text
from switchbench.base.errors import MISTAKES_MOST, ConfigurationError
from switchbench.config.tests import points

TWO = "switchbench: 1\nsite: {lab: two-modules}\n"
HALL = "switchbench: 1\nsite: sites/hall2.yaml\n"


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


def test_a_test_on_several_networks_has_one_default_load(tmp_path: Path) -> None:
    tests = read_text(tmp_path, HALL + "pattern: chain\n").tests
    assert {test.transport for test in tests} == {"dpdk", "verbs"}
    assert {next(points(test)).load.percent for test in tests} == {99.98}


def test_without_tests_all_patterns_run_on_each_network(tmp_path: Path) -> None:
    """`--site S --profile quick` needs no file; a network gets a transport that it has."""
    reading = read_text(tmp_path, HALL, profile="quick")
    assert [(test.pattern, test.network, test.transport) for test in reading.tests] == [
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
    sizes = reading.tests[0].imix
    assert sizes is not None
    assert [sizes.count(size) for size in (64, 594, 1518)] == [7, 4, 1]
