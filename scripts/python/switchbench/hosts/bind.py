# SPDX-License-Identifier: BSD-3-Clause
"""Binding a site's PCI ports to DPDK and restoring them, without a run (doc/how-to/bind.md).

port_binding.py does the work on each host; this module assigns the ports to hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import ConfigurationError
from ..base.model import Site
from ..base.programs import PORT_BINDING
from ..run.launch.far import Answer, chosen
from ..run.launch.ssh import NOT_ASKED, OpenSsh, refusal

_TIMEOUT_S = 120.0  # of one host, with time for drivers and links


Orders = Mapping[str, Sequence[str]]
"""By host: the arguments of port_binding.py."""


def bind_orders(site: Site, hosts: str | None) -> Orders:
    """Return the orders to bind the PCI ports of hosts to the site's driver."""
    wanted = site.effective.get("bind")
    if wanted is None:
        raise ConfigurationError(
            "bind: the site has no driver: add `bind: {driver: vfio-pci}` to the site"
        )
    orders = {}
    for process in chosen(site, hosts):
        devices = [port.engine["pci"] for port in process.ports if "pci" in port.engine]
        if devices:
            orders[process.name] = ["bind", *dict.fromkeys(devices), "--driver", wanted["driver"]]
    if not orders:
        raise ConfigurationError("bind: none of these hosts has a port with `pci`")
    return orders


def restore_orders(site: Site, hosts: str | None) -> Orders:
    """Return the orders to restore all ports in the journals of hosts."""
    return {process.name: ["restore"] for process in chosen(site, hosts)}


def carry_out(site: Site, orders: Orders, limit_s: float = _TIMEOUT_S) -> dict[str, Answer]:
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
