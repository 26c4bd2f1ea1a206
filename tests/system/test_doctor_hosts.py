# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench doctor` over eight hosts, of which one has another MTU, and one is not heard by the
others."""

from __future__ import annotations

import json
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
    """Give node3 another MTU."""

    def put(mtu: int) -> None:
        def link_of(link: IPRoute) -> None:
            link.link("set", index=labkit.index_of(link, "eth0"), mtu=mtu)

        labkit.over_netlink(hosts.lab, "node3", link_of)

    put(1400)
    try:
        yield
    finally:
        put(1500)


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
    assert alike.returncode == 0, alike.stdout + alike.stderr  # all hosts are this machine
    with disturbed(hosts):
        found = doctor(hosts, tmp_path, hosts.site(), 1)
    rows = {row["name"]: row for row in found["rows"]}
    assert {name: row["differ"] for name, row in rows.items() if row["differ"]} == {
        "e0 mtu": {"node3": "1400"},
    }
    assert [rows[name]["most"] for name in ("e0 mtu", "engine")] == ["1500", __version__]
    assert found["silent"] == {}
    config = hosts.rewrite(tmp_path, "Host node5\n  Port 22023")
    path = str(runs.write(tmp_path, {"site": hosts.site(config=str(config)), "tests": [PAIRS]}))
    done = hosts.command("doctor", path)
    assert done.returncode == 3
    assert "node5: it can't be reached (connect to host 100.64.0.5" in done.stdout
    assert hosts.command("doctor", path, "--nodes", "node[1-4]").returncode == 0
