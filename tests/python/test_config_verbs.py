# SPDX-License-Identifier: BSD-3-Clause
"""Verbs in a configuration: options and their checks, ports, documents, order and time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from configs import PROJECT, again, compile_text, needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.config.schema import VerbsOptions
from switchbench.plan.compile import BOUND_LAST

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


COMMON = {
    "service": "rc",
    "depth": 128,
    "queue_pairs": 1,
    "service_level": 0,
    "traffic_class": 0,
    "pkey_index": 0,
    "completion": "auto",
    "reuse": 64,
}
ACKNOWLEDGED = {"retry": 6, "rnr_retry": 6, "timeout": 14}


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


def order(run: Run) -> list[tuple[str, int, int]]:
    """Transport, ranks and repeat of each trial in the order in which they run."""
    return [(trial.transport, len(trial.parts[0].ranks), trial.repeat) for trial in run.trials]


THREE = "tests: [{pattern: pairs, transports: [tcp, dpdk, verbs], repeat: 2, load: 100Mbit}]\n"


def test_transports_alternate_repeat_by_repeat(tmp_path: Path) -> None:
    """No transport has its repeats in another hour than the others."""
    run = compile_text(tmp_path, SITE + THREE)
    assert order(run) == [(name, 2, i) for i in (0, 1) for name in ("tcp", "dpdk", "verbs")]
    assert [trial.id for trial in run.trials] == list(range(6))
    assert [trial.test for trial in run.trials] == [0, 1, 2, 0, 1, 2]
    assert run.not_alternated is None
    assert order(again(run)) == order(run)


def test_they_alternate_matrix_by_matrix(tmp_path: Path) -> None:
    """A transport with more sizes has all of them in its turn; other matrices come after."""
    text = SITE.replace("[a, b]", "[a, b, c, d]").replace("{a: 192.0.2.1, b: 192.0.2.2}", "{}")
    run = compile_text(
        tmp_path,
        text + "tests: [{pattern: chain, transports: [tcp, verbs], ranks: [2, 4], repeat: 2, "
        "sweep: {verbs.depth: [1, 8]}}]\n",
    )
    turn = ["tcp", "verbs", "verbs"]
    assert order(run) == [(name, ranks, i) for ranks in (2, 4) for i in (0, 1) for name in turn]


def test_kernel_transports_run_before_bound_ports(tmp_path: Path) -> None:
    """dpdk takes the device away: it comes last in the whole run, and the run says so."""
    text = SITE.replace("iface: eth9, ", 'iface: eth9, pci: "0000:3b:00.0", ').replace(
        "  ports:", "  bind: {driver: vfio-pci}\n  ports:"
    )
    run = compile_text(tmp_path, text + THREE)
    assert [name for name, _, _ in order(run)] == ["tcp", "verbs"] * 2 + ["dpdk"] * 2
    assert run.not_alternated == BOUND_LAST
    alone = compile_text(tmp_path, text + "tests: [{pattern: pairs, transport: dpdk}]\n")
    assert alone.not_alternated is None


def test_time_for_queue_pairs_and_drains(tmp_path: Path) -> None:
    """Connections take time by their number; what acknowledges nothing drains in silence."""
    one, many = verbs(tmp_path, "sweep: {verbs.queue_pairs: [1, 64]}").trials
    assert many.expected_s - one.expected_s == pytest.approx(63 * 2 * 0.005)
    reliable, datagrams = verbs(tmp_path, "sweep: {verbs.service: [rc, ud]}").trials
    assert datagrams.expected_s - reliable.expected_s == pytest.approx(0.3)
