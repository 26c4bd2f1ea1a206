# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says: one check a line."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..config.profiles import ETHERNET_HEADER_FCS, PATH_MTUS, largest_path_mtu

OK = "ok"
LACK = "lack"  # something can't be done; `remedy` says how it could
NOTE = "note"  # worth knowing; nothing is lost


@dataclass(frozen=True)
class HostCheck:
    """One line of the doctor's."""

    part: str  # engine | tcp | dpdk | verbs | lab | machine
    what: str
    state: str  # ok | lack | note
    detail: str = ""
    remedy: str = ""


# --- rdma -----------------------------------------------------------------------------------------
# The check list of RDMA: what has to be right on a host before `verbs` gives good figures.


# Queues and buffers of a port at the default depth and message size, with some room.
MEMLOCK_BYTES = 64 << 20

_DCB_TIMEOUT_S = 5
_ACTIVE = "4: ACTIVE"
_IWARP = "4: RNIC"
_ROCE_2 = "RoCE v2"
_LINK_LOCAL = "fe80:"
_NO_GID = re.compile(r"[0:]*")


@dataclass(frozen=True)
class Item:
    """One line of the check list."""

    what: str
    why: str
    remedy: str


CHECK_LIST = {
    "device": Item(
        "RDMA device",
        "without one there is no verbs",
        "the device's kernel driver (`rdma link` lists devices); any Ethernet interface does it in "
        "software: `modprobe rdma_rxe`, `rdma link add rxe0 type rxe netdev IFACE`",
    ),
    "access": Item(
        "access to uverbs",
        "queue pairs are made through /dev/infiniband/uverbs*",
        "`modprobe ib_uverbs`; rdma-core's udev rules give every user access, else run as root",
    ),
    "provider": Item(
        "provider library",
        "libibverbs speaks to each kind of device through a library of its own",
        "`apt install ibverbs-providers` (or the vendor's), of the same release as libibverbs1",
    ),
    "memlock": Item(
        "locked memory",
        "registered memory stays in RAM, and a user may lock only so much",
        "`* - memlock unlimited` in /etc/security/limits.d/rdma.conf and a new login (systemd: "
        "LimitMEMLOCK=infinity; Slurm: PropagateResourceLimitsExcept=MEMLOCK)",
    ),
    "port": Item(
        "port state",
        "only an active port sends",
        "RoCE: `ip link set IFACE up`; InfiniBand: the cable, and a subnet manager "
        "(opensm, or the switch's) that has given the port its LID",
    ),
    "gid": Item(
        "GID",
        "a RoCE packet carries GIDs as IP addresses; version 2 is UDP and can be routed, version 1 "
        "can't",
        "an IP address on the interface (`ip addr add`); the kernel makes the GIDs of it. Both "
        "ends need the same version and family: `verbs: {gid_index: N}` where automatic is wrong",
    ),
    "mtu": Item(
        "path MTU",
        "small packets cost the device and the line: 1024 of RoCE has 7.4 % headers, 4096 has 2 %",
        "`ip link set IFACE mtu 9000` on all hosts, and as much on all switch ports; InfiniBand: "
        "the subnet manager's partition has the MTU",
    ),
    "pfc": Item(
        "priority flow control",
        "RoCE expects a network that loses next to nothing; a lost packet stops a queue pair for a "
        "timeout, or repeats all that came after it",
        "one priority lossless on hosts and switches (`dcb pfc set dev IFACE prio-pfc all:off "
        "3:on`, or the vendor's mlnx_qos), and `verbs: {traffic_class: N}` with its DSCP",
    ),
    "ecn": Item(
        "congestion notification",
        "without ECN and DCQCN congestion spreads by pause frames to flows that do not cause it",
        "ECN marking on the switches' lossless queue, DCQCN on the devices "
        "(/sys/class/net/IFACE/ecn); `verbs: {traffic_class: N}` with the lowest bits 10 where the "
        "device does not set them itself",
    ),
    "iwarp": Item(
        "iWARP",
        "its connections are TCP's, which only rdma_cm can make: verbs is not implemented over it",
        "`transport: tcp`",
    ),
}


# --- what is looked at ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """What libibverbs says of a device: path MTUs by port number, or why it can't open it."""

    mtus: dict[int, int] = field(default_factory=dict)
    refusal: str | None = None


def open_devices() -> dict[str, Opened] | None:
    """Open every device that has a provider library; None without libibverbs."""
    try:
        verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError:
        return None
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_open_device.restype = ctypes.c_void_p
    devices = verbs.ibv_get_device_list(None)
    if not devices:
        return {}
    found: dict[str, Opened] = {}
    for device in devices:
        if device is None:
            break
        pointer = ctypes.c_void_p(device)
        found[verbs.ibv_get_device_name(pointer).decode()] = _open(verbs, pointer)
    verbs.ibv_free_device_list(devices)
    return found


def _open(verbs: ctypes.CDLL, device: ctypes.c_void_p) -> Opened:
    context = verbs.ibv_open_device(device)
    if not context:
        return Opened(refusal=os.strerror(ctypes.get_errno()))
    # struct ibv_port_attr: state, max_mtu, active_mtu come first, then more than is asked here.
    attributes = (ctypes.c_int * 64)()
    mtus = {}
    number = 1
    while verbs.ibv_query_port(ctypes.c_void_p(context), ctypes.c_uint8(number), attributes) == 0:
        mtus[number] = 128 << attributes[2]  # enum ibv_mtu: 1 is 256
        number += 1
    verbs.ibv_close_device(ctypes.c_void_p(context))
    return Opened(mtus)


def lossless_priorities(iface: str) -> list[int] | None:
    """Return the priorities with PFC as `dcb` says; None where it can't."""
    command = ["dcb", "pfc", "show", "dev", iface]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_DCB_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    shown = re.search(r"prio-pfc((?: \d:\w+)+)", done.stdout)
    return [int(number) for number in re.findall(r"(\d):on", shown[1])] if shown else None


def memlock_bytes() -> int | None:
    """Return how much memory this user may lock; None: any amount."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if limit == resource.RLIM_INFINITY else limit


@dataclass(frozen=True)
class Host:
    """Where all that is read; tests have one of their own."""

    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    opened: Callable[[], dict[str, Opened] | None] = open_devices
    pfc: Callable[[str], list[int] | None] = lossless_priorities
    memlock: Callable[[], int | None] = memlock_bytes
    locks_freely: Callable[[], bool] = lambda: os.geteuid() == 0


def _text(path: Path) -> str:
    """Return a file's only line; empty where it can't be read (an unused GID says EINVAL)."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


# --- the checks ----------------------------------------------------------------------------------


def _check(key: str, state: str, detail: str, of: str = "") -> HostCheck:
    item = CHECK_LIST[key]
    what = f"{of} {item.what}" if of else item.what
    return HostCheck("verbs", what, state, detail, "" if state == OK else item.remedy)


def examine(host: Host | None = None) -> Iterator[HostCheck]:
    """Yield the check list, gone through for this host: once for it, then by device and port."""
    host = host or Host()
    devices = sorted((host.sys / "class" / "infiniband").glob("*"))
    if not devices:
        yield _check("device", NOTE, "none")
        return
    yield _check("device", OK, ", ".join(map(_described, devices)))
    yield _access(host)
    opened = host.opened()
    yield from _providers(opened, devices)
    yield _memlock(host)
    for device in devices:
        mtus = (opened or {}).get(device.name, Opened()).mtus
        yield from _ports(host, device, mtus)
        yield from _iwarp(device)


def _described(device: Path) -> str:
    driver = device / "device" / "driver"
    kind = driver.resolve().name if driver.exists() else "software"
    return f"{device.name} ({kind})"


def _access(host: Host) -> HostCheck:
    nodes = sorted((host.dev / "infiniband").glob("uverbs*"))
    if not nodes:
        return _check("access", LACK, f"there is no {host.dev}/infiniband/uverbs*")
    closed = [node.name for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        return _check("access", LACK, f"not permitted to this user: {', '.join(closed)}")
    return _check("access", OK, ", ".join(node.name for node in nodes))


def _providers(opened: dict[str, Opened] | None, devices: list[Path]) -> Iterator[HostCheck]:
    if opened is None:
        yield _check("provider", LACK, "no libibverbs.so.1")
        return
    for device in devices:
        found = opened.get(device.name)
        if found is None:
            yield _check("provider", LACK, "libibverbs does not know this device", device.name)
        elif found.refusal:
            yield _check("provider", LACK, f"can't be opened: {found.refusal}", device.name)
        else:
            yield _check("provider", OK, "opens the device", device.name)


def _memlock(host: Host) -> HostCheck:
    limit = host.memlock()
    if limit is None or host.locks_freely():
        return _check("memlock", OK, "unlimited" if limit is None else "unlimited for root")
    detail = f"{limit >> 10} KiB (`ulimit -l`)"
    return _check("memlock", OK if limit >= MEMLOCK_BYTES else LACK, detail)


def _ports(host: Host, device: Path, mtus: dict[int, int]) -> Iterator[HostCheck]:
    ports = sorted((device / "ports").glob("*"), key=lambda port: int(port.name))
    some_active = any(_text(port / "state") == _ACTIVE for port in ports)
    for port in ports:
        of = f"{device.name}/{port.name}"
        active = _text(port / "state") == _ACTIVE
        words = (_text(port / "state").partition(": ")[2], _text(port / "link_layer"))
        detail = ", ".join(filter(None, (*words, _text(port / "rate"))))
        yield _check("port", OK if active else (NOTE if some_active else LACK), detail, of)
        if active:
            yield from _active_port(host, port, mtus.get(int(port.name)))


def _active_port(host: Host, port: Path, mtu: int | None) -> Iterator[HostCheck]:
    of = f"{port.parent.parent.name}/{port.name}"
    if _text(port.parent.parent / "node_type") == _IWARP:
        return
    ethernet = _text(port / "link_layer") == "Ethernet"
    iface = _netdev(port) if ethernet else ""
    if ethernet:
        yield _gids(port, of)
    yield _mtu(mtu, _text(host.sys / "class" / "net" / iface / "mtu") if iface else "", of)
    if ethernet and iface:
        yield _pfc(host, iface, of)
        yield _ecn(host, port, iface, of)


def _netdev(port: Path) -> str:
    """Return the Ethernet interface below a port: of its first GID that has one."""
    entries = sorted((port / "gid_attrs" / "ndevs").glob("*"), key=lambda entry: int(entry.name))
    return next(filter(None, map(_text, entries)), "")


def _gids(port: Path, of: str) -> HostCheck:
    found = []
    for entry in sorted((port / "gids").glob("*"), key=lambda entry: int(entry.name)):
        gid, kind = _text(entry), _text(port / "gid_attrs" / "types" / entry.name)
        if gid and not _NO_GID.fullmatch(gid):
            found.append((entry.name, gid, kind))
    detail = "; ".join(f"{index}: {gid} {kind}" for index, gid, kind in found) or "none"
    second = [gid for _, gid, kind in found if kind == _ROCE_2]
    if not second:
        return _check("gid", LACK, f"none of RoCE version 2 ({detail})", of)
    if all(gid.startswith(_LINK_LOCAL) for gid in second):
        return _check("gid", NOTE, f"only link-local ones, which no router passes ({detail})", of)
    return _check("gid", OK, detail, of)


def _mtu(mtu: int | None, interface_mtu: str, of: str) -> HostCheck:
    if mtu is None:
        return _check("mtu", NOTE, "can't be read without opening the device", of)
    if not interface_mtu:
        return _check("mtu", OK if mtu == PATH_MTUS[-1] else NOTE, f"{mtu}", of)
    possible = largest_path_mtu(int(interface_mtu) + ETHERNET_HEADER_FCS)
    detail = f"{mtu}, on an interface of MTU {interface_mtu}"
    if mtu < possible:
        detail += f", which could carry {possible}: the port was made before the MTU was set"
    return _check("mtu", OK if mtu == PATH_MTUS[-1] else NOTE, detail, of)


def _pfc(host: Host, iface: str, of: str) -> HostCheck:
    lossless = host.pfc(iface)
    if lossless is None:
        return _check("pfc", NOTE, f"{iface} does not say (`dcb pfc show dev {iface}`)", of)
    if not lossless:
        return _check("pfc", NOTE, f"no priority of {iface} is lossless", of)
    return _check("pfc", OK, f"priorities {', '.join(map(str, lossless))} of {iface}", of)


def _ecn(host: Host, port: Path, iface: str, of: str) -> HostCheck:
    folder = host.sys / "class" / "net" / iface / "ecn"
    enabled = {
        side: sorted(
            path.name for path in (folder / side / "enable").glob("*") if _text(path) == "1"
        )
        for side in ("roce_np", "roce_rp")
    }
    if not folder.is_dir():
        counts = (port / "hw_counters" / "np_ecn_marked_roce_packets").exists()
        detail = f"{iface} does not say"
        detail += "; the device counts marked packets" if counts else ""
        return _check("ecn", NOTE, detail, of)
    both = [number for number in enabled["roce_np"] if number in enabled["roce_rp"]]
    if not both:
        return _check("ecn", NOTE, f"off on {iface}", of)
    return _check("ecn", OK, f"priorities {', '.join(both)} of {iface}", of)


def _iwarp(device: Path) -> Iterator[HostCheck]:
    if _text(device / "node_type") == _IWARP:
        yield _check("iwarp", LACK, "verbs is not implemented over iWARP", device.name)
