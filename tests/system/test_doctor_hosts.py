# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench doctor` over eight hosts, of which one has another MTU, and one is not heard by the
others."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

import labkit
import runs
import sshkit
from switchbench import __version__

pytestmark = [labkit.needs_lab, sshkit.needs_sshd]

PAIRS = {"pattern": "pairs"}


@contextmanager
def disturbed(hosts: sshkit.Hosts) -> Iterator[None]:
    """Give node3 another MTU; node6 sends nothing to the others (the controller is elsewhere)."""

    def put(mtu: int, verb: str) -> None:
        def link_of(link: IPRoute) -> None:
            link.link("set", index=labkit.index_of(link, "eth0"), mtu=mtu)

        labkit.over_netlink(hosts.lab, "node3", link_of)
        way = {"dst": "100.64.0.0/24", "type": "blackhole"}
        labkit.over_netlink(hosts.lab, "node6", lambda netlink: netlink.route(verb, **way))

    put(1400, "add")
    try:
        yield
    finally:
        put(1500, "del")


def doctor(hosts: sshkit.Hosts, folder: Path, site: dict[str, Any], status: int) -> Any:
    path = str(runs.write(folder, {"site": site, "tests": [PAIRS]}))
    shown = hosts.command("doctor", path)
    print(shown.stdout)
    assert shown.returncode == status, shown.stdout + shown.stderr
    done = hosts.command("doctor", path, "--json")
    assert done.returncode == status
    return json.loads(done.stdout)


def test_hosts_that_differ_are_in_the_table(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    path = str(runs.write(tmp_path, {"site": hosts.site(), "tests": [PAIRS]}))
    alike = hosts.command("doctor", path)
    # All hosts are this machine: nothing differs, and its clock may be kept by no one.
    unfit = int("clock: node[1-8]: not synchronized" in alike.stdout)
    assert alike.returncode == unfit, alike.stdout + alike.stderr
    with disturbed(hosts):
        found = doctor(hosts, tmp_path, hosts.site(), 1)
    rows = {row["name"]: row for row in found["rows"]}
    others = [f"node{number}" for number in (1, 2, 3, 4, 5, 7, 8)]
    deaf = dict.fromkeys(others, "no UDP answer from node6")
    assert {name: row["differ"] for name, row in rows.items() if row["differ"]} == {
        "e0 mtu": {"node3": "1400"},
        "control port": deaf | {"node6": f"no UDP answer from {', '.join(others)}"},
    }
    most = {name: rows[name]["most"] for name in ("e0 mtu", "engine", "control port", "time")}
    assert list(most.values()) == ["1500", __version__, "reached by all hosts", "within 0.1 s"]
    assert found["silent"] == {}
    config = hosts.rewrite(tmp_path, "Host node5\n  Port 22023")
    path = str(runs.write(tmp_path, {"site": hosts.site(config=str(config)), "tests": [PAIRS]}))
    done = hosts.command("doctor", path)
    assert done.returncode == 3
    assert "node5: it can't be reached (connect to host 100.64.0.5" in done.stdout
    assert hosts.command("doctor", path, "--nodes", "node[1-4]").returncode == unfit


def test_a_control_port_that_is_taken(hosts: sshkit.Hosts, tmp_path: Path) -> None:
    taken = labkit.in_node(
        hosts.lab, "node2", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    )
    address = hosts.lab.node("node2").control_ipv4
    with taken:
        taken.bind((address, 7600))
        found = doctor(hosts, tmp_path, hosts.site("node1", "node2", "node3"), 1)
    (row,) = [row for row in found["rows"] if row["differ"]]
    assert row["name"] == "control port"
    said = f"the control address {address}:7600 can't be used: Address already in use"
    assert row["differ"] == {"node2": said}
