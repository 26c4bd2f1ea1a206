# SPDX-License-Identifier: BSD-3-Clause
"""Which hosts of a site a person means by `--nodes`: ClusterShell's syntax, the site's groups."""

from __future__ import annotations

from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from ...base.node_names import padded, refuse_many
from ...base.words import meant, shown


def chosen(site: Site, text: str | None) -> list[Process]:
    """The processes on the hosts meant, in the site's order; all of them without a text.

    `@rack1` is a group of the site, `@*` every host, and `@rack1!node3` leaves node3 out.
    """
    if text is None:
        return list(site.processes)
    try:
        refuse_many(text)
        meant_hosts = NodeSet(padded(text), resolver=_resolver(site))
    except (ValueError, NodeSetException, GroupResolverError) as error:
        raise ConfigurationError(f"--nodes {text}: {error}") from None
    known = {process.name for process in site.processes}
    for host in meant_hosts:
        if host not in known:
            raise ConfigurationError(f"--nodes: there is no host {host}{meant(host, known)}")
    if not meant_hosts:
        groups = sorted(site.groups)
        where = f"; groups are {', '.join(groups)}" if "@" in text and groups else ""
        raise ConfigurationError(f"--nodes {shown(text)} names no host{where}")
    return [process for process in site.processes if process.name in meant_hosts]


def folded(hosts: Iterable[str]) -> str:
    """Hosts in ClusterShell's short form: `node[1-4]`."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))


def _resolver(site: Site) -> GroupResolver:
    host_of = {port.name: port.host for port in site.ports}
    groups = {
        name: folded(dict.fromkeys(host_of[port] for port in ports))
        for name, ports in site.groups.items()
    }
    everyone = folded(process.name for process in site.processes)
    return GroupResolver(GroupSource("site", groups, everyone))
