# SPDX-License-Identifier: BSD-3-Clause
"""Lending a site's PCI devices to DPDK and giving them back, without a run (doc/bind.md).

The node does it, on its own host; here it is only said which host has what to do, and started where
a launcher can.
"""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .config.fields import written_order
from .errors import ConfigurationError, RunError
from .launch.engine import BINARY, find_engine
from .model import Process, Site


@dataclass(frozen=True)
class Order:
    """What one host has to do."""

    host: str
    words: tuple[str, ...]  # of the node's command line, without the program

    @property
    def line(self) -> str:
        """As a person types it on that host."""
        return shlex.join([BINARY, *self.words])


def bind_orders(site: Site, hosts: str | None, driver: str | None) -> list[Order]:
    """For each host with PCI ports: bind them to the driver that the site names, or another."""
    wanted = site.effective.get("bind", {})
    driver = driver or wanted.get("driver")
    if driver is None:
        raise ConfigurationError(
            "bind: the site names no driver: give it `bind: {driver: vfio-pci}`, or --driver"
        )
    pages = wanted.get("hugepages")
    more = ["--hugepages", str(pages)] if pages else []
    orders = []
    for process in _chosen(site, hosts):
        devices = [port.engine["pci"] for port in process.ports if "pci" in port.engine]
        if devices:
            words = ("--bind", *dict.fromkeys(devices), "--driver", driver, *more)
            orders.append(Order(process.name, words))
    if not orders:
        raise ConfigurationError("bind: none of these hosts has a port with `pci`")
    return orders


def restore_orders(site: Site, hosts: str | None) -> list[Order]:
    """For each host: give back all that its journal has."""
    return [Order(process.name, ("--restore",)) for process in _chosen(site, hosts)]


def here(words: Sequence[str]) -> int:
    """Does it on this machine; the node's own exit status."""
    return subprocess.run([str(find_engine()), *words], check=False).returncode


def carry_out(site: Site, orders: Iterable[Order]) -> int:
    """Starts what can be started from here, says what people have to start; an exit status."""
    _refuse_launch(site, next(iter(orders)))
    worst = 0
    for order in orders:
        if order.host in (platform.node(), platform.node().partition(".")[0]):
            worst = max(worst, here(order.words))
        else:
            print(f"on {order.host}, as root: {order.line}")
    return worst


def _refuse_launch(site: Site, order: Order) -> None:
    if site.guests:
        raise RunError(
            "guests live for one run, which binds their devices and gives them back by itself"
        )
    if site.launch == "lab":
        raise ConfigurationError("a lab of namespaces has no PCI devices")
    if site.launch != "hand":
        raise ConfigurationError(
            f"launch: {site.launch} is not built yet: run on each host what belongs to it, as "
            f"`{order.line}` on {order.host}"
        )


def _chosen(site: Site, hosts: str | None) -> list[Process]:
    if hosts is None:
        return list(site.processes)
    by_name = {process.name: process for process in site.processes}
    try:
        names = written_order(hosts)
    except ValueError as error:
        raise ConfigurationError(f"--nodes {hosts}: {error}") from None
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ConfigurationError(f"--nodes: there is no host {unknown[0]}")
    return [by_name[name] for name in names]
