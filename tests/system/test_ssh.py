# SPDX-License-Identifier: BSD-3-Clause
"""`launch: ssh` for real: eight hosts with an sshd each, reached by OpenSSH, and all that can be
wrong with one of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

import labkit
import runs
import sshkit
from sshkit import ALL_TO_ALL, PAIRS, configuration, long

pytestmark = [labkit.needs_lab, sshkit.needs_sshd]

HOSTS = 8
STOP_LIMIT_S = 1.0


def is_gone(pid: int) -> None:
    runs.wait_until(lambda: not runs.is_alive(pid), f"node {pid} is gone", STOP_LIMIT_S)


def test_four_matrices_on_eight_hosts(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    tests = [{"pattern": "chain"}, PAIRS, ALL_TO_ALL, {"pattern": "ring", "count": 1}]
    more = {"tests": tests, "transports": ["dpdk", "tcp"], "frame_size": 1518}
    asked = configuration(hosts.site(), **more)
    del asked["transport"]
    result = hosts.run(tmp_path, asked).complete
    assert result.summary["status"] == "complete"
    patterns = {(trial["pattern"], trial["transport"]) for trial in result.summary["trials"]}
    assert len(patterns) == 2 * len(tests)
    assert all(
        0 < trial["delivered_bytes"] == trial["offered_bytes"]
        for trial in result.trials(transport="tcp")
    )
    assert [node["node"] for node in result.summary["run"]["nodes"]] == hosts.names
    print(result.output)


# --- what dies, what is interrupted --------------------------------------------------------------


def killed(run: runs.Underway) -> int:
    node = run.node_pids("node3")[0]
    os.kill(node, signal.SIGKILL)
    return node


def disconnected(run: runs.Underway) -> int:
    """Its session's sshd is killed."""
    node = run.node_pids("node3")[0]
    session = int(Path(f"/proc/{node}/stat").read_text().rpartition(")")[2].split()[1])
    assert Path(f"/proc/{session}/comm").read_text().strip() == "sshd"
    os.kill(session, signal.SIGKILL)
    return node


@pytest.mark.parametrize(
    ("hurt", "sentence"),
    [
        (killed, "node3 was ended by a signal on its host"),
        (disconnected, "node3 is out of reach: the ssh connection ended ("),
    ],
    ids=["killed", "disconnected"],
)
def test_a_node_that_is_lost_is_named_and_ends(
    hurt: Any, sentence: str, hosts: sshkit.Hosts, tmp_path: Path
) -> None:
    with hosts.started(tmp_path, long(hosts.site())) as run:
        run.wait_for_load(phase=1)
        is_gone(hurt(run))
        result = run.end()
    assert result.status == 3
    assert result.sentence.startswith(sentence)
    assert result.summary["status"] == "partial"


def test_nodes_end_with_the_command(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    with hosts.started(tmp_path, long(hosts.site())) as run:
        run.wait_for_load(phase=1)
        nodes = run.node_pids()
        assert len(nodes) == HOSTS
        run.process.kill()
        for node in nodes:
            is_gone(node)
        run.process.communicate()


# --- who can't take part -------------------------------------------------------------------------


def test_the_run_goes_on_without_them(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    """Two are out of reach, and one has no engine that starts."""
    config = hosts.rewrite(tmp_path, "Host node5\n  Port 22023", "Host node8\n  Port 22023")
    at_node3 = 'case $SSH_CONNECTION in *" 100.64.0.3 "*) exit 7;; esac'
    broken = sshkit.engine(tmp_path, at_node3)
    site = hosts.site(config=str(config), engine=broken) | {
        "groups": {"left": "node[1-4]", "right": "node[5-8]"}
    }
    tests = [ALL_TO_ALL, {"pattern": "pairs", "partners": "across"}]
    asked = configuration(site, tests=tests, on_missing="exclude")
    result = hosts.run(tmp_path, asked).complete
    run = result.summary["run"]
    lost = {host["host"]: host["reason"] for host in run["excluded_hosts"]}
    assert set(lost) == {"node3", "node5", "node8"}
    assert lost["node3"] == f"{broken} --version ended with status 7 (no output)"
    assert lost["node5"].startswith("it can't be reached (connect to host 100.64.0.5 port")
    left = [name for name in hosts.names if name not in lost]
    assert [node["node"] for node in run["nodes"]] == left
    assert {record["node"] for record in result.records("hello")} == set(left)
    said = [text for text in result.summary["not_measured"] if "left out" in text]
    assert {text.partition(" ")[0] for text in said} == set(lost)
    assert "node5 was left out: it can't be reached" in result.output
    effective = yaml.safe_load((result.directory / "configuration.yaml").read_text())
    assert set(effective["site"]["without"]) == set(lost)
    again = hosts.command("table", str(result.directory), "--again")
    assert again.returncode == 0, again.stderr
    few = hosts.run(tmp_path / "few", configuration(
        hosts.site("node1", "node5", config=str(config)), on_missing="exclude",
    ))  # fmt: skip
    assert few.status == 2
    assert few.sentence.startswith("without the left-out hosts node5 the run can't be planned: ")


# --- gateways ------------------------------------------------------------------------------------


def test_hosts_behind_a_gateway(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    config = hosts.rewrite(tmp_path, "Host node2 node3 node4\n  ProxyJump node1")
    site = hosts.site("node2", "node3", "node4", config=str(config))
    before = hosts.log("node3")
    assert hosts.run(tmp_path, configuration(site, tests=[ALL_TO_ALL])).complete
    log = hosts.log("node3").removeprefix(before)
    assert "Accepted publickey for root from 100.64.0.1 " in log
    assert f"from {sshkit.CONTROLLER} " not in log


# sudo forgets SSH_CONNECTION, and the engine gets it by an option.
BY_SUDO = 'set -- "$@" --connection "$SSH_CONNECTION"; unset SSH_CONNECTION'


def test_the_controllers_port_is_guarded(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    site = hosts.site("node1", "node2", engine=sshkit.engine(tmp_path, BY_SUDO))
    site["ports"]["e0"]["iface"] = "ctl0"
    result = hosts.run(tmp_path, configuration(site))
    assert result.status == 2
    assert sshkit.CONTROLLER in result.sentence


def over_control(hosts: sshkit.Hosts, **more: Any) -> runs.Record:
    """Return a site with ports under test that carry the control connections, too."""
    site = hosts.site("node1", "node2")
    del site["control"]["heartbeat_timeout"]
    addresses = {node.name: node.control_ipv4 for node in hosts.lab.nodes}
    site["ports"]["e0"] |= {"iface": "ctl0", "shared": True, "line_rate": "50Mbit"} | more
    site["overrides"] = {
        name: {"e0": {"tcp_address": addresses[name]}} for name in ("node1", "node2")
    }
    return site


def test_control_over_the_port_under_test(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    asked = configuration(over_control(hosts), window="1s", interval="100ms")
    del asked["load"]
    result = hosts.run(tmp_path, asked).complete
    effective = yaml.safe_load((result.directory / "configuration.yaml").read_text())
    assert effective["site"]["control"]["heartbeat_timeout"] == "5s"
    (trial, *_) = result.summary["trials"]
    assert trial["load"] == {"percent": 95.0}
    flows = [record for record in result.records("flow") if record["side"] == "destination"]
    assert flows
    for record in flows:
        assert 0.5 * 50e6 < runs.payload_bps(record) < 0.96 * 50e6
    too_much = hosts.run(tmp_path / "more", asked | {"load": "96%"})
    assert too_much.status == 2
    assert "node1:e0 is shared, which allows 95% at most" in too_much.errors


# --- bind and restore ----------------------------------------------------------------------------


def test_bind_on_all_hosts_at_once(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    config = hosts.rewrite(tmp_path, "Host node5\n  Port 22023")
    site = hosts.site(config=str(config)) | {
        "ports": {"e0": {"network": "n", "pci": "0000:fb:1f.7"}},
        "overrides": {"node2": {"e0": {"pci": "0000:fb:1f.6"}}},
        "bind": {"driver": "uio_pci_generic"},
        "groups": {"rack1": "node[1-4]"},
    }
    path = str(runs.write(tmp_path, {"site": site, "tests": [PAIRS]}))
    done = hosts.command("bind", path)
    assert done.returncode == 3, done.stderr
    *lines, fifth = sorted(done.stdout.splitlines(), key=lambda line: "node5" in line)
    if not Path("/sys/bus/pci/drivers/uio_pci_generic").exists():
        [line] = lines
        assert line.startswith("node[1-4,6-8]: The driver uio_pci_generic is not loaded")
    else:
        assert [line.partition(";")[0] for line in lines] == [
            "node[1,3-4,6-8]: There is no PCI device 0000:fb:1f.7",
            "node2: There is no PCI device 0000:fb:1f.6",
        ]
    assert fifth.startswith("node5: it can't be reached (connect to host 100.64.0.5 port 22023")
    done = hosts.command("restore", path, "--nodes", "@rack1!node4")
    assert done.returncode == 0
    assert done.stdout.startswith("node[1-3]: There is nothing to restore: no journal ")
