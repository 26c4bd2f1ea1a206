# SPDX-License-Identifier: BSD-3-Clause
"""Binding a site's PCI ports to DPDK and restoring them, without a run (doc/how-to/bind.md).

port_binding.py does the work on each host; this module assigns the ports to hosts.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import ConfigurationError
from ..base.model import Site
from ..base.programs import PORT_BINDING
from ..run.launch.far import chosen
from ..run.launch.ssh import errands, side_by_side

_TIMEOUT_S = 120.0  # of one host, with time for drivers and links


@dataclass(frozen=True)
class BindOrder:
    """Arguments of port_binding.py for one host."""

    host: str
    words: tuple[str, ...]  # arguments of the program

    @property
    def line(self) -> str:
        """Return the order as a command line that a user can type on the host."""
        return shlex.join(["python3", PORT_BINDING.name, *self.words])


def bind_orders(site: Site, hosts: str | None, driver: str | None) -> list[BindOrder]:
    """Return an order per host with PCI ports to bind them to `driver`, or to the site's driver."""
    wanted = site.effective.get("bind", {})
    driver = driver or wanted.get("driver")
    if driver is None:
        raise ConfigurationError(
            "bind: the site has no driver: add `bind: {driver: vfio-pci}` to the site, or give "
            "--driver"
        )
    pages = wanted.get("hugepages")
    more = ["--hugepages", str(pages)] if pages else []
    orders = []
    for process in chosen(site, hosts):
        devices = [port.engine["pci"] for port in process.ports if "pci" in port.engine]
        if devices:
            words = ("bind", *dict.fromkeys(devices), "--driver", driver, *more)
            orders.append(BindOrder(process.name, words))
    if not orders:
        raise ConfigurationError("bind: none of these hosts has a port with `pci`")
    return orders


def restore_orders(site: Site, hosts: str | None) -> list[BindOrder]:
    """Return an order per host to restore all ports in its journal."""
    return [BindOrder(process.name, ("restore",)) for process in chosen(site, hosts)]


def here(words: Sequence[str]) -> int:
    """Run port_binding.py on this machine; return its exit status."""
    return subprocess.run([sys.executable, str(PORT_BINDING), *words], check=False).returncode


def carry_out(site: Site, orders: Sequence[BindOrder]) -> int:
    """Carry out orders over ssh, or print them for the user; return the worst exit status."""
    if site.launcher.in_lab:
        raise ConfigurationError("a lab of namespaces has no PCI devices")
    if site.launcher.is_far and not site.launcher.logs_in:
        raise ConfigurationError(
            f"launch: {site.launch}: a run binds and restores by itself; without one, say `--set "
            "site.launch=ssh`, or give these hosts a site file with `launch: ssh`"
        )
    if site.launcher.logs_in:
        # On all hosts at once; a failing host does not stop the others.
        results = errands(site, {order.host: order.words for order in orders}, _TIMEOUT_S)
        for line in side_by_side(results):
            print(line)
        return max(result.status for result in results)
    worst, far = 0, False
    for order in orders:
        if order.host in (platform.node(), platform.node().partition(".")[0]):
            worst = max(worst, here(order.words))
        else:
            print(f"on {order.host}, as root: {order.line}")
            far = True
    if far:
        print(f"(copy it there: {PORT_BINDING})")
    return worst
