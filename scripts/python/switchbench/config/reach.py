# SPDX-License-Identifier: BSD-3-Clause
"""Of a site of hosts: how they are reached (`ssh`, `slurm`), and which of them are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolverConfig, GroupResolverError, UpcallGroupSource

from ..base.model import Site
from ..base.node_names import TooManyError, padded, refuse_many
from ..base.source import read_text
from ..base.words import listed, meant, shown
from .order import SitePlace
from .schema import HostSite, Slurm, Ssh, StartCommand
from .sets import written_order

TIMEOUT_NS = 10_000_000_000

# What the nodes' streams depend on, and how their ends are told apart: a site can't change it.
OURS = (
    "BatchMode", "RequestTTY", "RemoteCommand", "SessionType", "ForkAfterAuthentication",
    "StdinNull", "PermitLocalCommand", "LocalCommand", "ControlMaster", "ForwardAgent",
    "ForwardX11", "ClearAllForwardings", "EscapeChar", "ServerAliveInterval",
    "ServerAliveCountMax", "LogLevel",
)  # fmt: skip


# What makes ssh run a program, load a library or read one more file, in lower case.
EXECUTING = {
    "proxycommand", "knownhostscommand", "pkcs11provider", "smartcarddevice",
    "securitykeyprovider", "xauthlocation", "include", "match",
}  # fmt: skip
_KEYWORD = re.compile(r"[A-Za-z0-9]+")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")
_JUMPS = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.@:\[\],-]*")

# Options of Slurm that run a program or take away what a run needs, and why a site has none of
# them; any beginning of a name stands for it.
_NOT_SLURMS = {
    "--quiet": "hides the allocation's number, which is needed",
    "--nodelist": "is not for the site to say: the hosts are those of `hosts`",
    **dict.fromkeys(
        ("--prolog", "--epilog", "--task-prolog", "--task-epilog", "--get-user-env", "--bcast"),
        "runs a program, which a configuration may not",
    ),
}
_SHORT = {"-Q": "--quiet", "-w": "--nodelist"}


class _Groups(GroupResolverConfig):  # type: ignore[misc]
    """ClusterShell's groups; ValueError where a group is too large to be meant, or where shell
    commands would be run to find its hosts."""

    def _source(self, namespace: str | None) -> Any:
        source = super()._source(namespace)
        if isinstance(source, UpcallGroupSource):
            raise GroupResolverError(
                f"the group source {shown(source.name)} runs shell commands, which a configuration "
                "may not: use groups of a YAML file (`autodir`), or write the hosts that "
                "`nodeset -e` prints"
            )
        return source

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
    """Return the launcher's mapping with every default filled in; None for other launchers'."""
    launchers: dict[str, Callable[[], object]] = {
        "ssh": lambda: _ssh(model.ssh or Ssh(), place),
        "slurm": lambda: _slurm(model.slurm or Slurm(), place),
        "command": lambda: _command(model.command, place),
    }
    for key in launchers:
        if getattr(model, key) is not None and model.launch != key:
            raise place.problem((key,), f"has no effect with launch: {model.launch}")
    return {key: keys() if key == model.launch else None for key, keys in launchers.items()}


def _command(keys: StartCommand | None, place: SitePlace) -> StartCommand:
    if keys is None:
        example = 'command: {start: [mpirun, --host, "{host}", -np, "1"]}'
        raise place.problem(("command",), f"is missing: such as `{example}`")
    if not any("{host}" in word for word in keys.start[1:]):
        raise place.problem(("command", "start"), "names no {host}: it is run once per host")
    return keys


def _slurm(keys: Slurm, place: SitePlace) -> Slurm:
    for option in keys.options or ():
        name = option.partition("=")[0]
        name = _SHORT.get(name[:2], name) if name[1:2] != "-" else name
        for full, why in _NOT_SLURMS.items():
            if len(name) > 3 and full.startswith(name):
                raise place.problem(("slurm", "options"), f"{shown(option)[1:-1]} {why}")
    return keys


def _ssh(keys: Ssh, place: SitePlace) -> Ssh:
    ours = {name.casefold() for name in OURS}  # other names ssh itself checks
    for name, value in (keys.options or {}).items():
        where = ("ssh", "options", name)
        if name.casefold() in ours:
            raise place.problem(where, "is not for the site to say: nodes need it as it is")
        if name.casefold() in EXECUTING or not _KEYWORD.fullmatch(name):
            raise place.problem(
                where,
                "is no option that a configuration may set: it could run a program here; put it "
                "into your own ~/.ssh/config",
            )
        if not str(value).isprintable():
            raise place.problem(where, f"found {shown(value)}, which has control characters")
        if name.casefold() == "proxyjump" and not _JUMPS.fullmatch(str(value)):
            raise place.problem(where, f"found {shown(value)}, but hosts for ssh -J are needed")
    if keys.user is not None and not _USER.fullmatch(keys.user):
        raise place.problem(("ssh", "user"), f"found {shown(keys.user)}, but a user is needed")
    files = {
        key: str(place.file(("ssh", key), name))
        for key, name in (("config", keys.config), ("topology", keys.topology))
        if name is not None
    }
    if "config" in files:
        _refuse_executing(Path(files["config"]), place)
    return keys.model_copy(update={"timeout": keys.timeout or TIMEOUT_NS} | files)


def _refuse_executing(path: Path, place: SitePlace) -> None:
    """Refuses a file for ssh -F that runs programs: it comes with the configuration."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = line.strip().replace('"', "")
        if not text or text.startswith("#"):
            continue
        keyword = _KEYWORD.match(text)
        if keyword is None or keyword[0].casefold() in EXECUTING:
            raise place.problem(
                ("ssh", "config"),
                f"{path.name}:{number}: {shown(text.split()[0])} could run a program here, which a "
                "configuration may not: put it into your own ~/.ssh/config",
            )


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
