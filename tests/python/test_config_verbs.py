# SPDX-License-Identifier: BSD-3-Clause
"""Verbs in a configuration: options and their checks, ports, documents, order and time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from configs import PROJECT, compile_text, needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.config.schema import VerbsOptions

pytestmark = needs_engine

SITE = """\
switchbench: 1
site:
  launch: hand
  hosts: [a, b]
  control: {addresses: {a: 192.0.2.1, b: 192.0.2.2}}
  ports: {e0: {network: roce, iface: eth9, rdma: mlx5_0}}
profile: quick
"""


def verbs(folder: Path, options: str, *assignments: str) -> Run:
    """A run of pairs over verbs with these options."""
    pattern = "" if "pattern:" in options else "pattern: pairs, "
    text = f"{SITE}tests: [{{{pattern}transport: verbs, {options}}}]\n"
    return compile_text(folder, text, *assignments)


@pytest.mark.parametrize("assignment", ["verbs.mtu=2048", "message_size=2048"])
def test_the_ports_mtu_is_a_limit(assignment: str, tmp_path: Path) -> None:
    """Where the site says what its Ethernet carries, a run need not be started to be refused."""
    settings = ["site.ports.e0.mtu=1500", assignment]
    if assignment.startswith("message"):
        settings.append("verbs.service=ud")
    with pytest.raises(ConfigurationError, match=r"2048 bytes .*at most 1024"):
        verbs(tmp_path, "connectivity_check: true", *settings)


def test_names_are_the_nodes() -> None:
    """The keys of the node's `verbs` mapping (verbs/lane.c)."""
    source = (PROJECT / "verbs" / "lane.c").read_text()
    assert re.findall(r'MEMBER\(OPTION_\w+, "(\w+)"', source) == list(VerbsOptions.model_fields)


# --- order and time ------------------------------------------------------------------------------


def test_time_for_queue_pairs_and_drains(tmp_path: Path) -> None:
    """Connections take time by their number; what acknowledges nothing drains in silence."""
    one, many = verbs(tmp_path, "sweep: {verbs.queue_pairs: [1, 64]}").trials
    assert many.expected_s - one.expected_s == pytest.approx(63 * 2 * 0.005)
    reliable, datagrams = verbs(tmp_path, "sweep: {verbs.service: [rc, ud]}").trials
    assert datagrams.expected_s - reliable.expected_s == pytest.approx(0.3)
