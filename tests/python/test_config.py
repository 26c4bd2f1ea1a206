# SPDX-License-Identifier: BSD-3-Clause
"""What is read of a configuration: who wins, what it means, how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import LAB, read_text
from switchbench.base.errors import MISTAKES_MOST, ConfigurationError

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


def test_without_tests_all_patterns_run_on_each_network(tmp_path: Path) -> None:
    """`--site S --profile quick` needs no file; a network gets a transport that it has."""
    reading = read_text(tmp_path, HALL, profile="quick")
    assert [(test.pattern, test.network, test.transport) for test in reading.tests] == [
        (pattern, network, transport)
        for pattern in ("chain", "pairs", "aapc", "ring")
        for network, transport in (("rail0", "dpdk"), ("rail1", "dpdk"), ("ib", "verbs"))
    ]
