# SPDX-License-Identifier: BSD-3-Clause
"""Of a site of hosts: how they are reached (`ssh`, `slurm`), and which of them are left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolverConfig, GroupResolverError

from ..base.model import Site
from ..base.node_names import TooManyError, padded, refuse_many
from ..base.words import listed, meant, shown
from .order import SitePlace
from .schema import HostSite, Slurm, Ssh
from .sets import written_order

TIMEOUT_NS = 10_000_000_000

# What the nodes' streams depend on, and how their ends are told apart: a site can't change it.
OURS = (
    "BatchMode", "RequestTTY", "RemoteCommand", "SessionType", "ForkAfterAuthentication",
    "StdinNull", "PermitLocalCommand", "LocalCommand", "ControlMaster", "ForwardAgent",
    "ForwardX11", "ClearAllForwardings", "EscapeChar", "ServerAliveInterval",
    "ServerAliveCountMax", "LogLevel",
)  # fmt: skip


class _Groups(GroupResolverConfig):  # type: ignore[misc]
    """ClusterShell's groups; ValueError where a group is too large to be meant."""

    def _list_nodes(self, *question: Any) -> list[str]:
        return _few(super()._list_nodes(*question))

    def _list_groups(self, *question: Any) -> list[str]:
        return _few(super()._list_groups(*question))


def _few(texts: list[str]) -> list[str]:
    refuse_many(",".join(texts))
    return texts


def group_members(model: HostSite, names: str, place: SitePlace) -> list[str]:
    """The hosts of a text with groups of ClusterShell's own files; ValueError says why not.

    What this machine calls a group is looked up only where the site names the file.
    """
    if model.groups_conf is None:
        raise ValueError(
            f"{shown(names)} names a group: `groups_conf: FILE` says where groups are, such as "
            "/etc/clustershell/groups.conf"
        )
    path = place.file(("groups_conf",), model.groups_conf)
    refuse_many(names)
    try:
        found = [str(name) for name in NodeSet(padded(names), resolver=_Groups(filenames=[path]))]
    except TooManyError as error:
        raise ValueError(f"{shown(names)} is too large in {path.name}: {error}") from None
    except (GroupResolverError, NodeSetException) as error:
        raise ValueError(f"{shown(names)} is no node set: {error}") from None
    if not found:
        raise ValueError(f"{shown(names)} names no node")
    return found


def reached(model: HostSite, place: SitePlace) -> dict[str, object]:
    """`ssh` and `slurm` with every default filled in: the one by which hosts are reached."""
    for key, keys in (("ssh", model.ssh), ("slurm", model.slurm)):
        if keys is not None and model.launch != key:
            raise place.problem((key,), f"has no effect with launch: {model.launch}")
    return {
        "ssh": _ssh(model.ssh or Ssh(), place) if model.launch == "ssh" else None,
        "slurm": _slurm(model.slurm or Slurm(), place) if model.launch == "slurm" else None,
    }


def _slurm(keys: Slurm, place: SitePlace) -> Slurm:
    for option in keys.options or ():
        if option == "-Q" or (option.startswith("--qu") and "--quiet".startswith(option)):
            where = ("slurm", "options")
            raise place.problem(where, f"{option} hides the allocation's number, which is needed")
    return keys


def _ssh(keys: Ssh, place: SitePlace) -> Ssh:
    ours = {name.casefold() for name in OURS}  # other names ssh itself checks
    for name in keys.options or ():
        if name.casefold() in ours:
            where = ("ssh", "options", name)
            raise place.problem(where, "is not for the site to say: nodes need it as it is")
    files = {
        key: str(place.file(("ssh", key), name))
        for key, name in (("config", keys.config), ("topology", keys.topology))
        if name is not None
    }
    return keys.model_copy(update={"timeout": keys.timeout or TIMEOUT_NS} | files)


def named_without(model: HostSite, hosts: Collection[str], place: SitePlace) -> list[str]:
    """The hosts that the site leaves out."""
    try:
        named = [host for text in model.without or () for host in written_order(text)]
    except ValueError as error:
        raise place.problem(("without",), str(error)) from None
    for host in named:
        if host not in hosts:
            raise place.problem(("without",), f"there is no host {shown(host)}{meant(host, hosts)}")
    left = [host for host in hosts if host not in named]
    if not left:
        raise place.problem(("without",), f"leaves nobody of {listed(hosts)}")
    return named


def leave_out(site: Site, hosts: Collection[str]) -> Site:
    """The site without these hosts. Those that stay keep their addresses; ranks close up."""
    if not hosts:
        return site
    before = [host for host in site.effective.get("without", []) if host not in hosts]
    gone = {port.name for port in site.ports if port.host in hosts}
    networks = {
        name: tuple(port for port in ports if port.name not in gone)
        for name, ports in site.networks.items()
    }
    groups = {
        name: tuple(port for port in ports if port not in gone)
        for name, ports in site.groups.items()
    }
    return replace(
        site,
        processes=tuple(process for process in site.processes if process.name not in hosts),
        networks={name: ports for name, ports in networks.items() if ports},
        groups={name: ports for name, ports in groups.items() if ports},
        effective=site.effective | {"without": [*before, *hosts]},
    )
