# SPDX-License-Identifier: BSD-3-Clause
"""Binding a site's PCI ports to DPDK and restoring them, without a run (doc/how-to/bind.md).

port_binding.py does the work on each host; this module assigns the ports to hosts.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..base.errors import ConfigurationError
from ..base.model import Site
from ..base.programs import PORT_BINDING
from ..run.launch.far import Answer, chosen
from ..run.launch.ssh import NOT_ASKED, OpenSsh, refusal, side_by_side

_TIMEOUT_S = 120.0  # of one host, with time for drivers and links


Orders = Mapping[str, Sequence[str]]
"""By host: the arguments of port_binding.py."""


def bind_orders(site: Site, hosts: str | None, driver: str | None) -> Orders:
    """Return the orders to bind the PCI ports of hosts to `driver`, or to the site's driver."""
    wanted = site.effective.get("bind", {})
    driver = driver or wanted.get("driver")
    if driver is None:
        raise ConfigurationError(
            "bind: the site has no driver: add `bind: {driver: vfio-pci}` to the site, or give "
            "--driver"
        )
    pages = wanted.get("hugepages")
    more = ["--hugepages", str(pages)] if pages else []
    orders = {}
    for process in chosen(site, hosts):
        devices = [port.engine["pci"] for port in process.ports if "pci" in port.engine]
        if devices:
            orders[process.name] = ["bind", *dict.fromkeys(devices), "--driver", driver, *more]
    if not orders:
        raise ConfigurationError("bind: none of these hosts has a port with `pci`")
    return orders


def restore_orders(site: Site, hosts: str | None) -> Orders:
    """Return the orders to restore all ports in the journals of hosts."""
    return {process.name: ["restore"] for process in chosen(site, hosts)}


def here(words: Sequence[str]) -> int:
    """Run port_binding.py on this machine; return its exit status."""
    return subprocess.run([sys.executable, str(PORT_BINDING), *words], check=False).returncode


def answers(site: Site, orders: Orders, limit_s: float = _TIMEOUT_S) -> dict[str, Answer]:
    """Carry out orders over ssh, on all hosts at once; return what each host's program printed."""
    way = OpenSsh.of(site)
    commands = {host: way.port_binding(host, words) for host, words in orders.items()}
    found = way.run_on_hosts(commands, limit_s, PORT_BINDING)
    for host, answer in found.items():
        reason = refusal(host, answer, "python3")
        if answer.status is None:
            reason = "it took too long: it is not known what it did; ask again"
        if reason is not None:
            found[host] = Answer(NOT_ASKED, [reason])
    return found


def carry_out(site: Site, orders: Orders) -> int:
    """Carry out orders over ssh, or print them for the user; return the worst exit status."""
    if site.launcher.in_lab:
        raise ConfigurationError("a lab of namespaces has no PCI devices")
    if site.launcher.is_far and not site.launcher.logs_in:
        raise ConfigurationError(
            f"launch: {site.launch}: a run binds and restores by itself; without one, say `--set "
            "site.launch=ssh`, or give these hosts a site file with `launch: ssh`"
        )
    if site.launcher.logs_in:
        found = answers(site, orders)  # a failing host does not stop the others
        for line in side_by_side(found):
            print(line)
        return max(answer.status or 0 for answer in found.values())
    worst, far = 0, False
    for host, words in orders.items():
        if host in (platform.node(), platform.node().partition(".")[0]):
            worst = max(worst, here(words))
        else:
            print(f"on {host}, as root: {shlex.join(['python3', PORT_BINDING.name, *words])}")
            far = True
    if far:
        print(f"(copy it there: {PORT_BINDING})")
    return worst
