# SPDX-License-Identifier: BSD-3-Clause
"""Of a site of hosts: how they are reached (`ssh`, `slurm`), and which of them are left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from ..base import transports
from ..base.model import Device, Port, Process, Site, launcher_of
from ..base.node_names import refuse_strange
from ..base.source import read_text
from ..base.words import listed, meant, shown
from ..topology import topology
from ..topology.device import check_places, default_port, device_of
from ..topology.fabric import wired
from ..topology.form import TopologyError
from .fields import csv_rows, first_double, written_order
from .names import Names, SitePlace, make_groups, make_networks, milliseconds
from .schema import HostSite, PortKeys, SiteControl, Slurm, Ssh

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


def reached(model: HostSite, place: SitePlace) -> dict[str, object]:
    """Return the launcher's mapping with every default filled in; None for other launchers'."""
    for key in ("ssh", "slurm", "command"):
        if getattr(model, key) is not None and model.launch != key:
            raise place.problem((key,), f"has no effect with launch: {model.launch}")
    found: dict[str, object] = dict.fromkeys(("ssh", "slurm", "command"))
    if model.launch == "ssh":
        found["ssh"] = _ssh(model.ssh or Ssh(), place)
    elif model.launch == "slurm":
        found["slurm"] = _slurm(model.slurm or Slurm(), place)
    elif model.launch == "command":
        found["command"] = keys = model.command
        if keys is None:
            example = 'command: {start: [mpirun, --host, "{host}", -np, "1"]}'
            raise place.problem(("command",), f"is missing: such as `{example}`")
        if not any("{host}" in word for word in keys.start[1:]):
            raise place.problem(("command", "start"), "names no {host}: it is run once per host")
    return found


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
    if keys.config is None:
        return keys
    path = place.file(("ssh", "config"), keys.config)
    _refuse_executing(path, place)
    return keys.model_copy(update={"config": str(path)})


def _refuse_executing(path: Path, place: SitePlace) -> None:
    """Refuse a file for ssh -F that runs programs: it comes with the configuration."""
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
    """Return the hosts that the site leaves out."""
    texts = model.without or ()
    named = [host for text in texts for host in place.hosts(text, hosts, "without")]
    left = [host for host in hosts if host not in named]
    if not left:
        raise place.problem(("without",), f"leaves nobody of {listed(hosts)}")
    return named


def leave_out(site: Site, hosts: Collection[str]) -> Site:
    """Return the site without these hosts. Those that stay keep their addresses; ranks close up."""
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


# --- hosts ----------------------------------------------------------------------------------------
# A site of real hosts: ports and processes from a site file.


HEARTBEAT_TIMEOUT_NS = 500_000_000
HEARTBEAT_TIMEOUT_SHARED_NS = 5_000_000_000  # a shared port carries the heartbeats' competitors too

# Frames of our own need addresses that no kernel answers for: RFC 2544 and RFC 5180.
_GUEST_IPV4 = IPv4Address("198.19.0.0")
_GUEST_IPV6 = IPv6Address("2001:2:0:2::")
_ADDRESSES = 65_534

_DEVICES = ("iface", "pci", "rdma", "vdev")
_ENGINE_KEYS = (
    "iface", "pci", "vdev", "rdma", "driver", "tcp_address", "queue_frames", "queues", "shared",
)  # fmt: skip
_FRAME_OVERHEAD = 18


def build(model: HostSite, place: SitePlace, seed: int) -> Site:
    """Return the site file as a site."""
    if launcher_of(model.launch).in_lab:
        raise place.problem(("launch",), "lab is started by `site: {lab: NAME}`, without hosts")
    hosts = _hosts(model, place)
    keys = _port_keys(model, hosts, place)
    wires = _wiring(model, {f"{host}:{name}" for host, name in keys}, place)
    if len(keys) > _ADDRESSES:
        raise place.problem(("hosts",), f"makes {len(keys)} ports; {_ADDRESSES} is the most")
    ports = tuple(
        _port(host, name, i, port, wires)
        for i, ((host, name), port) in enumerate(keys.items(), start=1)
    )
    device = None
    if model.device is not None:
        with place.at("device"):
            device = device_of(model.device, "DUT")
            ports = _plugged_in(device, ports)
    shared = any(port.shared for port in keys.values())
    patience_ns = HEARTBEAT_TIMEOUT_SHARED_NS if shared else HEARTBEAT_TIMEOUT_NS
    control = (model.control or SiteControl()).with_defaults(heartbeat_timeout=patience_ns)
    lookup = Names(ports)
    site = Site(
        launch=model.launch,
        processes=_processes(model, hosts, ports, control, place),
        networks=make_networks(model, ports, lookup, place, seed),
        groups=make_groups(model, lookup, place),
        heartbeat_timeout_ms=milliseconds(control.heartbeat_timeout),
        barrier_timeout_ms=milliseconds(control.barrier_timeout),
        effective=_effective(model, hosts, control, wires, place),
        device=device,
    )
    if model.fabric is not None:  # the network between its switches
        path = place.file(("fabric",), model.fabric)
        try:
            site = wired(site, topology.load(path))
        except TopologyError as error:
            raise place.problem(("fabric",), error.messages[0]) from None
    return leave_out(site, named_without(model, hosts, place))


def _hosts(model: HostSite, place: SitePlace) -> list[str]:
    with place.at("hosts"):
        hosts = [host for text in model.hosts for host in written_order(text)]
        refuse_strange(hosts)
        twice = first_double(hosts)
        if twice is not None:
            raise ValueError(f"duplicate host {twice}")
    return hosts


def _plugged_in(device: Device, ports: tuple[Port, ...]) -> tuple[Port, ...]:
    """Return the ports with the device's ports that they are in; ValueError where none can be."""
    if len({port.network for port in ports}) > 1:
        raise ValueError("a device has one network, and the site's ports are in several")
    strange = [port for port in ports if port.switch not in (None, device.name)]
    if strange:
        raise ValueError(
            f"{strange[0].name} is wired to {strange[0].switch}, and the device is {device.name}"
        )
    found = tuple(
        replace(port, switch=device.name, switch_port=port.switch_port or default_port(device, i))
        for i, port in enumerate(ports)
    )
    check_places(device, {port.name: str(port.switch_port) for port in found})
    return found


Keys = dict[tuple[str, str], PortKeys]


def _port_keys(model: HostSite, hosts: list[str], place: SitePlace) -> Keys:
    """Return the keys of every port, by host and name, with the overrides in."""
    if not model.ports:
        raise place.problem(("ports",), "names no port")
    place_of = {host: i for i, host in enumerate(hosts)}
    keys = {(host, name): port for host in hosts for name, port in model.ports.items()}
    for text, ports in (model.overrides or {}).items():
        for host in place.hosts(text, hosts, "overrides", text):
            for name, own in ports.items():
                before = keys.get((host, name), PortKeys())
                keys[host, name] = before.model_copy(update=own.given())
    for (host, name), port in keys.items():
        where = ("ports", name) if name in model.ports else ("overrides", host, name)
        _check(port, where, place)
    return dict(sorted(keys.items(), key=lambda item: place_of[item[0][0]]))


def _check(port: PortKeys, where: tuple[str, ...], place: SitePlace) -> None:
    if port.network is None:
        raise place.problem(where, "has no `network`: the ports that can reach each other")
    if not any(getattr(port, device) for device in _DEVICES):
        raise place.problem(where, "has no device: one of iface, pci, rdma or vdev is needed")
    if port.address == "keep" and port.mac:
        raise place.problem((*where, "mac"), "has no effect with address: keep")
    if port.driver and not port.iface:
        raise place.problem((*where, "driver"), "has no effect without `iface`")
    if port.queues and not any(map(_is_raw, port.transports or _possible(port))):
        raise place.problem((*where, "queues"), "has no effect without transport dpdk")
    for transport in port.transports or ():
        if _is_raw(transport) and _never_raw(port):
            raise place.problem(
                (*where, "transports"),
                "has dpdk, which takes all frames of a kernel interface, so `shared: true` is out "
                "of question: give the `pci` address of a device whose driver can stay (mlx5), or "
                "leave dpdk out",
            )
        if transport not in _possible(port):
            raise place.problem((*where, "transports"), f"this kind of port has no {transport}")


def _never_raw(port: PortKeys) -> bool:
    """Others use it, and no driver of a kernel interface leaves them their frames."""
    return bool(port.shared and port.iface and not (port.pci or port.vdev))


def _possible(port: PortKeys) -> tuple[str, ...]:
    """Return what its devices can carry, as far as one can tell before the node looks at them."""
    return tuple(
        each.name
        for each in map(transports.of, transports.NAMES)
        if any(getattr(port, device) for device in each.devices)
        and not (each.raw and _never_raw(port))
    )


def _is_raw(transport: str) -> bool:
    return transports.of(transport).raw


def _port(host: str, name: str, index: int, port: PortKeys, wires: Wires) -> Port:
    possible = tuple(port.transports or _possible(port))
    switch, switch_port = wires.get(f"{host}:{name}", (None, None))
    return Port(
        name=f"{host}:{name}",
        host=host,
        network=port.network or "",
        transports=possible,
        engine=_engine_keys(index, port, any(map(_is_raw, possible))),
        line_rate_bps=port.line_rate or 0,
        frame_max=port.mtu + _FRAME_OVERHEAD if port.mtu else 0,
        switch=switch,
        switch_port=switch_port,
    )


def _engine_keys(index: int, port: PortKeys, raw: bool) -> dict[str, Any]:
    engine = {key: getattr(port, key) for key in _ENGINE_KEYS if getattr(port, key) is not None}
    if raw:
        own_mac = f"02:53:42:00:{index >> 8:02x}:{index & 0xFF:02x}"
        if port.shared and port.address != "own":
            own_mac = "keep"  # not promiscuous: only some devices take a second address
        engine["mac"] = "keep" if port.address == "keep" else (port.mac or own_mac)
        engine["ipv4"] = port.ipv4 or f"{_GUEST_IPV4 + index}/16"
        engine["ipv6"] = port.ipv6 or f"{_GUEST_IPV6 + index}/64"
        if port.gateway:
            engine["gateway"] = port.gateway
    if port.line_rate:
        engine["line_rate_bps"] = port.line_rate
    return engine


def _processes(
    model: HostSite, hosts: list[str], ports: Sequence[Port], control: SiteControl, place: SitePlace
) -> tuple[Process, ...]:
    """Return one process a host, with the cores that the site names."""
    own = control.addresses or {}
    for host in own:
        if host not in hosts:
            raise place.problem(
                ("control", "addresses", host), f"there is no such host{meant(host, hosts)}"
            )
    rule = control.address
    if "{host}" not in rule and len(hosts) > len(own):
        raise place.problem(
            ("control", "address"), f"{shown(rule)} is the same for all hosts: it needs {{host}}"
        )
    by_host: dict[str, list[Port]] = {host: [] for host in hosts}
    for port in ports:
        by_host[port.host].append(port)
    cores: dict[str, tuple[int, ...]] = dict.fromkeys(hosts, model.cores or ())
    for text, named in (model.host_cores or {}).items():
        cores |= dict.fromkeys(place.hosts(text, hosts, "host_cores", text), named)
    processes = []
    for host, members in by_host.items():
        address = own.get(host, rule).replace("{host}", host)
        if address.count(":") != 1 and "]:" not in address:  # it brings no port of its own
            bare = f"[{address}]" if ":" in address and not address.startswith("[") else address
            address = f"{bare}:{control.udp_port}"
        processes.append(Process(host, tuple(members), {"address": address}, cores[host]))
    return tuple(processes)


Wires = Mapping[str, tuple[str, str]]
"""By port, the switch and its port that it is plugged into."""


def _wiring(model: HostSite, ports: set[str], place: SitePlace) -> Wires:
    if model.wiring is None:
        return {}
    if isinstance(model.wiring, dict):
        for name in model.wiring:
            if name not in ports:
                raise place.problem(("wiring", name), f"there is no such port{meant(name, ports)}")
        return model.wiring
    path = place.file(("wiring",), model.wiring)
    wires: dict[str, tuple[str, str]] = {}
    with place.at("wiring"):
        for line, fields in csv_rows(path, ("host:port", "switch", "switch_port")):
            name, text = fields[0], ""
            if len(fields) != 3:
                text = "needs host:port,switch,switch_port"
            elif name not in ports:
                text = f"there is no port {shown(name)}{meant(name, ports)}"
            elif name in wires:
                text = f"duplicate port {name}"
            if text:
                raise ValueError(f"{path}:{line}: {text}")
            wires[name] = (fields[1], fields[2])
    return wires


def _effective(
    model: HostSite, hosts: list[str], control: SiteControl, wires: Wires,
    place: SitePlace,
) -> dict[str, Any]:  # fmt: skip
    """Return what groups and files say is in it, so that it stays true when they change."""
    named = {name: list(ends) for name, ends in wires.items()} or None
    changes: dict[str, object] = {"hosts": hosts, "control": control, "wiring": named}
    if model.fabric is not None:
        changes["fabric"] = str(place.file(("fabric",), model.fabric))
    changes |= {"without": None} | reached(model, place)
    return model.model_copy(update=changes).written()
