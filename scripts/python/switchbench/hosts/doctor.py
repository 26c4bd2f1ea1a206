# SPDX-License-Identifier: BSD-3-Clause
"""Checks of this machine's and this user's abilities, with a remedy for each that fails.

Nothing is changed and nothing is sent. Trials in a namespace end with the namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import socket
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.programs import find_engine
from ..base.transports import TRANSPORTS
from ..config.rules import ETHERNET_HEADER_FCS, PATH_MTUS, largest_path_mtu
from ..labs import LabError, namespaces, state, switches
from ..labs.devices import missing
from ..topology import lab_addresses
from .push import driver_folders, is_collected
from .push import libraries as linked_libraries

OK = "ok"
LACK = "lack"  # an ability is missing; `remedy` has the way to it
NOTE = "note"  # worth reading, but nothing is missing


@dataclass(frozen=True)
class HostCheck:
    """Result of one check of the doctor."""

    part: str  # engine | tcp | dpdk | verbs | lab | machine
    what: str
    state: str  # ok | lack | note
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Item:
    """Entry of the check list; {} in its words is replaced by the checked thing's name."""

    part: str
    what: str
    remedy: str = ""


CHECK_LIST = {
    key: Item(**item)
    for key, item in tomllib.loads(
        Path(__file__).with_name("checks.toml").read_text("utf-8")
    ).items()
}


def _check(key: str, state: str, detail: str, named: str = "", of: str = "") -> HostCheck:
    """Return the result for an entry of the check list; `of` is the device or port checked."""
    item = CHECK_LIST[key]
    what = item.what.format(named)
    remedy = "" if state == OK else item.remedy.replace("{}", named)
    return HostCheck(item.part, f"{of} {what}" if of else what, state, detail, remedy)


def examine() -> list[HostCheck]:
    """Return all checks, in the order in which users need them."""
    return [check for examiner in _EXAMINERS for check in examiner()]


def can_run(checks: list[HostCheck]) -> bool:
    """Return true where the engine works; nothing runs without it."""
    return not any(check.part == "engine" and check.state == LACK for check in checks)


def _text(path: Path) -> str:
    """Return the only line of a file; "" where it cannot be read (an unused GID gives EINVAL)."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


# --- rdma -----------------------------------------------------------------------------------------


SYS, DEV = Path("/sys"), Path("/dev")  # tests replace these folders
# Memory of a port's queues and buffers at the default depth and message size, with some reserve.
MEMLOCK_BYTES = 64 << 20

_DCB_TIMEOUT_S = 5
_ACTIVE, _IWARP, _ROCE_2 = "4: ACTIVE", "4: RNIC", "RoCE v2"
_NO_GID = re.compile(r"[0:]*")


def open_devices() -> dict[str, dict[int, int] | str] | None:
    """Return the path MTUs of each RDMA device's ports, or the reason why it cannot be opened.

    Devices without a provider library are missing; the result is None without libibverbs.
    """
    try:
        verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError:
        return None
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_open_device.restype = ctypes.c_void_p
    found: dict[str, dict[int, int] | str] = {}
    devices = verbs.ibv_get_device_list(None)
    for device in devices or ():
        if device is None:
            verbs.ibv_free_device_list(devices)
            break
        pointer = ctypes.c_void_p(device)
        name = verbs.ibv_get_device_name(pointer).decode()
        context = ctypes.c_void_p(verbs.ibv_open_device(pointer))
        if not context:
            found[name] = os.strerror(ctypes.get_errno())
            continue
        mtus = found[name] = dict[int, int]()
        # struct ibv_port_attr begins with state, max_mtu, active_mtu; the buffer has room for the
        # rest.
        port = (ctypes.c_int * 64)()
        while verbs.ibv_query_port(context, ctypes.c_uint8(len(mtus) + 1), port) == 0:
            mtus[len(mtus) + 1] = 128 << port[2]  # enum ibv_mtu: 1 is 256
        verbs.ibv_close_device(context)
    return found


def lossless_priorities(iface: str) -> list[int] | None:
    """Return the priorities with PFC, from `dcb`; None where it cannot tell."""
    words = ["dcb", "pfc", "show", "dev", iface]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_DCB_TIMEOUT_S, check=True
        )
        shown = re.search(r"prio-pfc((?: \d:\w+)+)", done.stdout)
        return [int(number) for number in re.findall(r"(\d):on", shown[1])] if shown else None
    return None


def memlock_bytes() -> int | None:
    """Return the memory limit for locking by this user in bytes; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if limit == resource.RLIM_INFINITY else limit


def examine_rdma() -> Iterator[HostCheck]:
    """Yield the RDMA checks: once for this host, then for each device and port."""
    devices = sorted((SYS / "class/infiniband").glob("*"))
    if not devices:
        yield _check("device", NOTE, "none")
        return
    drivers = ((one.name, one / "device/driver") for one in devices)
    kinds = (f"{n} ({d.resolve().name if d.exists() else 'software'})" for n, d in drivers)
    yield _check("device", OK, ", ".join(kinds))
    nodes = sorted((DEV / "infiniband").glob("uverbs*"))
    closed = [node.name for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    names = ", ".join(closed or (node.name for node in nodes))
    lack = (
        f"not permitted to this user: {names}" if nodes else f"there is no {DEV}/infiniband/uverbs*"
    )
    yield _check("access", LACK, lack) if closed or not nodes else _check("access", OK, names)
    opened = open_devices()
    if opened is None:
        yield _check("provider", LACK, "no libibverbs.so.1")
    for name in [device.name for device in devices if opened is not None]:
        found = (opened or {}).get(name)
        why = "opens the device" if found is not None else "libibverbs does not know this device"
        why = f"can't be opened: {found}" if isinstance(found, str) else why
        yield _check("provider", OK if isinstance(found, dict) else LACK, why, of=name)
    limit = memlock_bytes()
    if limit is None or os.geteuid() == 0:
        yield _check("memlock", OK, "unlimited" if limit is None else "unlimited for root")
    else:
        detail = f"{limit >> 10} KiB (`ulimit -l`)"
        yield _check("memlock", OK if limit >= MEMLOCK_BYTES else LACK, detail)
    for device in devices:
        known = (opened or {}).get(device.name, {})
        mtus = known if isinstance(known, dict) else {}
        ports = _numbered(device / "ports")
        some_active = any(_text(port / "state") == _ACTIVE for port in ports)
        for port in ports:
            for key, how, detail in _of_port(port, mtus.get(int(port.name)), some_active):
                yield _check(key, how, detail, of=f"{device.name}/{port.name}")
        if _text(device / "node_type") == _IWARP:
            yield _check("iwarp", LACK, "verbs is not implemented over iWARP", of=device.name)


def _numbered(folder: Path) -> list[Path]:
    """Return the entries of a folder whose names are numbers, in numeric order."""
    return sorted(folder.glob("*"), key=lambda entry: int(entry.name))


def _of_port(port: Path, mtu: int | None, some_active: bool) -> Iterator[tuple[str, str, str]]:
    """Yield (check, state, detail) for one port of an RDMA device."""
    active, layer = _text(port / "state") == _ACTIVE, _text(port / "link_layer")
    words = (_text(port / "state").partition(": ")[2], layer, _text(port / "rate"))
    yield "port", OK if active else NOTE if some_active else LACK, ", ".join(filter(None, words))
    if not active or _text(port.parent.parent / "node_type") == _IWARP:
        return
    iface = ""
    if layer == "Ethernet":
        entries = _numbered(port / "gid_attrs/ndevs")
        # interface of the first GID that has one
        iface = next(filter(None, map(_text, entries)), "")
        yield "gid", *_gids(port)
    net = SYS / "class/net" / iface
    limit = _text(net / "mtu") if iface else ""
    if mtu is None:
        yield "mtu", NOTE, "can't be read without opening the device"
    else:
        detail = f"{mtu}, on an interface of MTU {limit}" if limit else f"{mtu}"
        possible = largest_path_mtu(int(limit) + ETHERNET_HEADER_FCS) if limit else mtu
        if mtu < possible:
            detail += f", which could carry {possible}: the port was made before the MTU was set"
        yield "mtu", OK if mtu == PATH_MTUS[-1] else NOTE, detail
    if not iface:
        return
    lossless = lossless_priorities(iface)
    if lossless:
        yield "pfc", OK, f"priorities {', '.join(map(str, lossless))} of {iface}"
    else:
        unknown = f"{iface} does not say (`dcb pfc show dev {iface}`)"
        yield "pfc", NOTE, unknown if lossless is None else f"no priority of {iface} is lossless"
    both = [
        path.name
        for path in sorted((net / "ecn/roce_np/enable").glob("*"))
        if _text(path) == _text(net / "ecn/roce_rp/enable" / path.name) == "1"
    ]
    counts = (port / "hw_counters/np_ecn_marked_roce_packets").exists()
    silent = f"{iface} does not say{'; the device counts marked packets' * counts}"
    none = f"off on {iface}" if (net / "ecn").is_dir() else silent
    yield "ecn", OK if both else NOTE, f"priorities {', '.join(both)} of {iface}" if both else none


def _gids(port: Path) -> tuple[str, str]:
    """Return the state and the detail of a RoCE port's GIDs."""
    found = []
    for entry in _numbered(port / "gids"):
        gid, kind = _text(entry), _text(port / "gid_attrs/types" / entry.name)
        if gid and not _NO_GID.fullmatch(gid):
            found.append((entry.name, gid, kind))
    detail = "; ".join(f"{index}: {gid} {kind}" for index, gid, kind in found) or "none"
    second = [gid for _, gid, kind in found if kind == _ROCE_2]
    if not second:
        return LACK, f"none of RoCE version 2 ({detail})"
    if all(gid.startswith("fe80:") for gid in second):
        return NOTE, f"only link-local ones, which no router passes ({detail})"
    return OK, detail


# --- engine --------------------------------------------------------------------------------------

_AF_XDP = 44  # linux/socket.h; Python lacks this constant
_ENGINE_TIMEOUT_S = 20

_VIRTUAL_PMDS = ("af_packet", "af_xdp", "memif", "null", "ring", "tap", "pcap", "vhost", "virtio")
_LAB_PMDS = ("af_packet", "af_xdp")

_FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")

# linux/capability.h
_CAPABILITIES = {
    "cap_net_admin": 12,
    "cap_net_raw": 13,
    "cap_ipc_lock": 14,
    "cap_sys_admin": 21,
    "cap_bpf": 39,
}


def _engine() -> Iterator[HostCheck]:
    try:
        engine = find_engine()
    except ConfigurationError as error:
        yield HostCheck("engine", "switchbench-node", LACK, "not found", str(error))
        return
    try:
        done = subprocess.run(
            [str(engine), "--version"],
            capture_output=True, text=True, timeout=_ENGINE_TIMEOUT_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        # The loader's message names the missing library.
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        remedy = CHECK_LIST["programs"].remedy
        yield HostCheck("engine", str(engine), LACK, reason, remedy)
        return
    yield _check("programs", OK, f"{done.stdout.strip()}, {engine}")
    if is_collected(engine):
        libraries = " ".join(path.name for path in (engine.resolve().parent / "lib").iterdir())
    else:
        libraries = " ".join(linked_libraries([engine]))
    # Optional parts of a build.
    optional = [one for one in TRANSPORTS if one.library and one.package]
    absent = [one for one in optional if str(one.library) not in libraries]
    names = ["tcp", *(one.name for one in optional if one not in absent)]
    detail = f"all found; built with the transports {', '.join(names)}"
    if absent:
        detail += f", without {', '.join(one.name for one in absent)}"
    packages = ", ".join(str(one.package) for one in absent)
    yield _check("libraries", NOTE if absent else OK, detail, packages)


def _tcp() -> Iterator[HostCheck]:
    words = _text(Path("/proc/sys/net/ipv4/tcp_available_congestion_control")).split()
    known = f"; congestion control: {', '.join(words)}" if words else ""
    yield _check("tcp", OK, f"needs no privilege{known}")


# --- dpdk ----------------------------------------------------------------------------------------


def _drivers() -> Iterator[HostCheck]:
    folders = driver_folders()
    with suppress(ConfigurationError):  # drivers in the engine's own folder (hosts/push.py)
        own = find_engine().resolve().parent / "lib" / "dpdk"
        folders = [own] if own.is_dir() else folders
    files = (path for folder in folders for path in folder.glob("librte_net_*.so*"))
    found = {path.name.removeprefix("librte_net_").partition(".so")[0] for path in files}
    if not found:
        yield _check("drivers", LACK, "no poll mode drivers found")
        return
    virtual = [name for name in _VIRTUAL_PMDS if name in found]
    hardware = len(found) - len(virtual)
    yield _check("drivers", OK, f"{', '.join(virtual)} and {hardware} for hardware")
    for name in _LAB_PMDS:
        if name not in found:
            yield _check("driver", LACK, "missing", name)


def _packet_sockets() -> Iterator[HostCheck]:
    raw = "cap_net_raw,cap_net_admin"
    yield _try_socket("AF_PACKET", int(socket.AF_PACKET), raw, "CONFIG_PACKET")
    more = f"{raw},cap_bpf,cap_ipc_lock,cap_sys_admin"
    yield _try_socket("AF_XDP", _AF_XDP, more, "CONFIG_XDP_SOCKETS")


def _try_socket(name: str, family: int, capabilities: str, option: str) -> HostCheck:
    """Return the check of a raw socket of a family, and of the capabilities for a port on it."""
    try:
        _open_raw(family)
        if all(namespaces.has_capability(_CAPABILITIES[name]) for name in capabilities.split(",")):
            return HostCheck("dpdk", name, OK)
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
            return HostCheck("dpdk", name, LACK, "this kernel has none", f"a kernel with {option}")
    engine = "switchbench-node"
    with suppress(ConfigurationError):
        engine = str(find_engine().resolve())  # setcap does not follow symbolic links
    remedy = f"run as root, or `sudo setcap {capabilities}+ep {engine}`"
    if name == "AF_PACKET":
        remedy += "; in a lab it works without"
    return HostCheck("dpdk", name, LACK, "not permitted to this user", remedy)


def _open_raw(family: int) -> None:
    socket.socket(family, socket.SOCK_RAW, 0).close()


def _hugepages_and_vfio() -> Iterator[HostCheck]:
    text = Path("/proc/meminfo").read_text()
    counts = {name: int(count) for name, count in re.findall(r"^(Huge\w+):\s*(\d+)", text, re.M)}
    free, total = counts.get("HugePages_Free", 0), counts.get("HugePages_Total", 0)
    detail = f"{free} of {total} free, {counts.get('Hugepagesize', 0)} KiB each"
    none = "none free: ordinary memory is used"
    yield _check("hugepages", OK if free else NOTE, detail if free else none)
    groups = list(Path("/sys/kernel/iommu_groups").glob("*"))
    if Path("/dev/vfio/vfio").exists() and groups:
        yield _check("vfio", OK, f"{len(groups)} IOMMU groups")
    else:
        yield _check("vfio", NOTE, "no /dev/vfio/vfio" if groups else "no IOMMU")


# --- lab -----------------------------------------------------------------------------------------


def _lab() -> Iterator[HostCheck]:
    lacks = missing()
    if not lacks:
        parts = "veth, bridge, IFB, TBF, u32 and mirred"
        how = "as root" if namespaces.is_privileged() else "without root, in a user namespace"
        yield _check("lab", OK, f"{parts}; {how}")
    for what, remedy in lacks.items():
        yield HostCheck("lab", what, LACK, "", remedy)
    program = switches.ovs_lacking()
    if program is not None:
        detail = f"{program} is not installed"
        yield _check("ovs", NOTE, detail, "`apt-get install openvswitch-switch`")
    elif not switches.TUN.exists():
        yield _check("ovs", NOTE, f"there is no {switches.TUN}", "`modprobe tun` as root")
    else:
        yield _check("ovs", OK, "for labs of kind ovs")
    try:
        namespaces.try_in_namespace(lambda: None)
        yield _check("userns", OK, "a lab needs no root")
    except OSError as error:
        yield _check("userns", NOTE, error.strerror or str(error))
    # Labs whose run was killed before it could remove them.
    for name in state.labs():
        if state.holder(name) is not None:
            continue
        try:
            known = state.read(name)
        except LabError as error:
            yield _check("unreadable", NOTE, str(error), name)
            continue
        if known is not None and not known.kept:
            count = len(lab_addresses.namespace_names(name, known.topology))
            left = f"{count} namespaces of a run whose command was killed"
            yield _check("abandoned", NOTE, left, name)


# --- machine -------------------------------------------------------------------------------------


def _machine() -> Iterator[HostCheck]:
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    yield _check("cores", OK if usable >= 2 else NOTE, f"{usable} of {present}")
    # The choice of `worker: auto` on this machine (engine/platform/cpu_placement.h).
    most = usable - 2
    if most > 0:
        detail = f"auto polls up to {most} queues, each on a core of its own; with more, one sleeps"
        yield _check("workers", OK, detail)
    else:
        yield _check("workers", NOTE, "too few cores to poll: sends will be less precise")
    source = _text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    if not source:
        yield HostCheck("machine", "clock", NOTE, "its source can't be read")
    elif source in _FAST_CLOCKS:
        yield _check("clock", OK, source)
    else:
        yield _check("clock", NOTE, f"{source} is slow to read")


_EXAMINERS: tuple[Callable[[], Iterator[HostCheck]], ...] = (
    _engine,
    _tcp,
    _drivers,
    _packet_sockets,
    _hugepages_and_vfio,
    examine_rdma,
    _lab,
    _machine,
)
