# SPDX-License-Identifier: BSD-3-Clause
"""What this machine and this user can do: each thing tried, with the remedy where it fails.

Nothing is changed and nothing is sent. What is tried in a namespace vanishes with it.
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
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.programs import find_engine
from ..base.transports import TRANSPORTS
from ..config.rules import ETHERNET_HEADER_FCS, PATH_MTUS, largest_path_mtu
from ..labs import LabError, namespaces, state, switches
from ..labs.devices import missing
from ..topology import lab_addresses
from .push import is_collected
from .push import libraries as linked_libraries

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


_CHECKS = Path(__file__).with_name("rdma.toml")


@dataclass(frozen=True)
class Item:
    """One line of the check list."""

    what: str
    why: str
    remedy: str


CHECK_LIST = {key: Item(**item) for key, item in tomllib.loads(_CHECKS.read_text("utf-8")).items()}


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


def examine_rdma(host: Host | None = None) -> Iterator[HostCheck]:
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


# --- doctor ---------------------------------------------------------------------------------------
# What this machine and this user can do: each thing tried, with the remedy where it fails.


__all__ = ["LACK", "NOTE", "OK", "HostCheck", "can_run", "examine"]

_AF_XDP = 44  # linux/socket.h; Python has no name for it
_ENGINE_TIMEOUT_S = 20

_PMD_FOLDERS = ("/usr/lib/*/dpdk/pmds-*", "/usr/local/lib/*/dpdk/pmds-*", "/usr/lib64/dpdk-pmds")
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


def examine() -> list[HostCheck]:
    """Return all checks, in the order in which people need them."""
    return [check for examiner in _EXAMINERS for check in examiner()]


def can_run(checks: list[HostCheck]) -> bool:
    """Return whether anything at all can be run: without the engine nothing can."""
    return not any(check.part == "engine" and check.state == LACK for check in checks)


# --- engine --------------------------------------------------------------------------------------


def _engine() -> Iterator[HostCheck]:
    try:
        engine = find_engine()
    except ConfigurationError as error:
        yield HostCheck("engine", "switchbench-node", LACK, "not found", str(error))
        return
    try:
        version = _output([str(engine), "--version"])
    except (OSError, subprocess.SubprocessError) as error:
        # The loader's sentence names the library that is missing.
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        remedy = "`scripts/setup` installs what is missing and builds it again"
        yield HostCheck("engine", str(engine), LACK, reason, remedy)
        return
    yield HostCheck("engine", "switchbench-node", OK, f"{version}, {engine}")
    yield _built_with(engine)


# What a build may have or not: the transport, its library, the package to build it with.
_OPTIONAL = tuple(
    (transport.name, transport.library, transport.package)
    for transport in TRANSPORTS
    if transport.library and transport.package
)


def _built_with(engine: Path) -> HostCheck:
    if is_collected(engine):
        libraries = " ".join(path.name for path in (engine.resolve().parent / "lib").iterdir())
    else:
        libraries = " ".join(linked_libraries([engine]))
    names = [name for name, library, _ in _OPTIONAL if library in libraries]
    absent = [(name, package) for name, library, package in _OPTIONAL if library not in libraries]
    detail = f"all found; built with the transports {', '.join(['tcp', *names])}"
    if not absent:
        return HostCheck("engine", "libraries", OK, detail)
    lacks = ", ".join(name for name, _ in absent)
    packages = ", ".join(package for _, package in absent)
    remedy = f"install {packages} and build again (`scripts/setup`)"
    return HostCheck("engine", "libraries", NOTE, f"{detail}, without {lacks}", remedy)


def _output(command: list[str]) -> str:
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=_ENGINE_TIMEOUT_S, check=True
    )
    return result.stdout.strip()


# --- tcp -----------------------------------------------------------------------------------------


def _tcp() -> Iterator[HostCheck]:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    try:
        words = available.read_text().split()
        detail = f"needs no privilege; congestion control: {', '.join(words)}"
    except OSError:
        detail = "needs no privilege"
    yield HostCheck("tcp", "kernel sockets", OK, detail)


# --- dpdk ----------------------------------------------------------------------------------------


def _drivers() -> Iterator[HostCheck]:
    found = sorted(
        {path.name.removeprefix("librte_net_").partition(".so")[0] for path in _driver_files()}
    )
    if not found:
        remedy = "`apt install libdpdk-dev`, or any DPDK from 22.11 on"
        yield HostCheck("dpdk", "drivers", LACK, "no poll mode drivers found", remedy)
        return
    virtual = [name for name in _VIRTUAL_PMDS if name in found]
    hardware = len(found) - len(virtual)
    yield HostCheck("dpdk", "drivers", OK, f"{', '.join(virtual)} and {hardware} for hardware")
    for name in _LAB_PMDS:
        if name not in found:
            yield HostCheck(
                "dpdk", f"driver {name}", LACK, "missing", f"a DPDK built with net_{name}"
            )


def _driver_files() -> Iterator[Path]:
    own = _own_drivers()
    if own is not None:
        yield from own.glob("librte_net_*.so*")
        return
    for pattern in _PMD_FOLDERS:
        yield from Path("/").glob(f"{pattern[1:]}/librte_net_*.so*")


def _own_drivers() -> Path | None:
    """Return those that came with the engine (hosts/push.py)."""
    with suppress(ConfigurationError):
        folder = find_engine().resolve().parent / "lib" / "dpdk"
        return folder if folder.is_dir() else None
    return None


def _packet_sockets() -> Iterator[HostCheck]:
    yield _try_socket(
        "AF_PACKET", int(socket.AF_PACKET), "cap_net_raw,cap_net_admin", "CONFIG_PACKET"
    )
    yield _try_socket(
        "AF_XDP",
        _AF_XDP,
        "cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock,cap_sys_admin",
        "CONFIG_XDP_SOCKETS",
    )


def _try_socket(name: str, family: int, capabilities: str, option: str) -> HostCheck:
    """Open one and ask for the capabilities that a port on it needs besides."""
    try:
        _open_raw(family)
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
            return HostCheck("dpdk", name, LACK, "this kernel has none", f"a kernel with {option}")
        return _no_capability(name, capabilities)
    lacking = [word for word in capabilities.split(",") if not _capable(word)]
    return _no_capability(name, capabilities) if lacking else HostCheck("dpdk", name, OK)


def _open_raw(family: int) -> None:
    socket.socket(family, socket.SOCK_RAW, 0).close()


def _no_capability(name: str, capabilities: str) -> HostCheck:
    try:
        engine = str(find_engine().resolve())  # setcap follows no links
    except ConfigurationError:
        engine = "switchbench-node"
    remedy = f"run as root, or `sudo setcap {capabilities}+ep {engine}`"
    if name == "AF_PACKET":
        remedy += "; in a lab it works without"
    return HostCheck("dpdk", name, LACK, "not permitted to this user", remedy)


def _capable(name: str) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAPABILITIES[name] & 1)
    return False


def _hugepages() -> Iterator[HostCheck]:
    counts = dict(
        line.replace(":", "").split()[:2]
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith(("HugePages_", "Hugepagesize"))
    )
    free, total = int(counts.get("HugePages_Free", 0)), int(counts.get("HugePages_Total", 0))
    size_kb = int(counts.get("Hugepagesize", 0))
    if free:
        detail = f"{free} of {total} free, {size_kb} KiB each"
        yield HostCheck("dpdk", "hugepages", OK, detail)
    else:
        remedy = "for NICs at high rates: `sysctl vm.nr_hugepages=512` as root"
        yield HostCheck("dpdk", "hugepages", NOTE, "none free: ordinary memory is used", remedy)


def _vfio() -> Iterator[HostCheck]:
    groups = list(Path("/sys/kernel/iommu_groups").glob("*"))
    if Path("/dev/vfio/vfio").exists() and groups:
        yield HostCheck("dpdk", "vfio", OK, f"{len(groups)} IOMMU groups")
    else:
        lack = "no /dev/vfio/vfio" if groups else "no IOMMU"
        remedy = "for NICs taken over by DPDK: IOMMU on in the firmware, `modprobe vfio-pci`"
        yield HostCheck("dpdk", "vfio", NOTE, lack, remedy)


# --- lab -----------------------------------------------------------------------------------------


def _lab() -> Iterator[HostCheck]:
    lacks = missing()
    if not lacks:
        parts = "veth, bridge, IFB, TBF, u32 and mirred"
        how = "as root" if namespaces.is_privileged() else "without root, in a user namespace"
        yield HostCheck("lab", "namespaces and kernel parts", OK, f"{parts}; {how}")
    for lack in lacks:
        yield HostCheck("lab", lack.what, LACK, "", lack.remedy)
    yield _open_vswitch()
    yield _user_namespaces()
    yield from _abandoned_labs()


def _abandoned_labs() -> Iterator[HostCheck]:
    """Labs of runs whose command was killed: nothing could remove them."""
    for name in state.labs():
        if state.holder(name) is not None:
            continue
        try:
            known = state.read(name)
        except LabError as error:
            yield HostCheck("lab", name, NOTE, str(error), "remove the file as root")
            continue
        if known is not None and not known.kept:
            count = len(lab_addresses.namespace_names(name, known.topology))
            remedy = f"`switchbench lab down {name}` removes it; the next run in a lab does, too"
            left = f"{count} namespaces of a run whose command was killed"
            yield HostCheck("lab", name, NOTE, left, remedy)


def _open_vswitch() -> HostCheck:
    program = switches.ovs_lacking()
    if program is not None:
        remedy = "only needed for a lab of kind ovs: `apt-get install openvswitch-switch`"
        return HostCheck("lab", "Open vSwitch", NOTE, f"{program} is not installed", remedy)
    if not switches.TUN.exists():
        remedy = "only needed for a lab of kind ovs: `modprobe tun` as root"
        return HostCheck("lab", "Open vSwitch", NOTE, f"there is no {switches.TUN}", remedy)
    return HostCheck("lab", "Open vSwitch", OK, "for labs of kind ovs")


def _user_namespaces() -> HostCheck:
    what = "user namespaces"
    try:
        namespaces.try_in_namespace(lambda: [])
    except OSError as error:
        remedy = "only needed for a lab without root: sysctl user.max_user_namespaces and the like"
        return HostCheck("lab", what, NOTE, error.strerror or str(error), remedy)
    return HostCheck("lab", what, OK, "a lab needs no root")


# --- machine -------------------------------------------------------------------------------------


def _cores() -> Iterator[HostCheck]:
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    if usable >= 2:
        yield HostCheck("machine", "cores", OK, f"{usable} of {present}")
    else:
        remedy = "a second core: the lab's switch and its nodes share this one"
        yield HostCheck("machine", "cores", NOTE, f"{usable} of {present}", remedy)


def _workers() -> Iterator[HostCheck]:
    """Yield what `worker: auto` chooses here (engine/platform/cpu_placement.h)."""
    most = len(os.sched_getaffinity(0)) - 2
    if most > 0:
        detail = f"auto polls up to {most} queues, each on a core of its own; with more, one sleeps"
        yield HostCheck("machine", "workers", OK, detail)
    else:
        remedy = "busy polling needs at least 3 cores"
        detail = "too few cores to poll: sends will be less precise"
        yield HostCheck("machine", "workers", NOTE, detail, remedy)


def _clock() -> Iterator[HostCheck]:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        source = path.read_text().strip()
    except OSError:
        yield HostCheck("machine", "clock", NOTE, "its source can't be read")
        return
    if source in _FAST_CLOCKS:
        yield HostCheck("machine", "clock", OK, source)
    else:
        remedy = "a clock read without a system call: `clocksource=tsc` where the CPU allows it"
        yield HostCheck("machine", "clock", NOTE, f"{source} is slow to read", remedy)


_EXAMINERS: tuple[Callable[[], Iterator[HostCheck]], ...] = (
    _engine,
    _tcp,
    _drivers,
    _packet_sockets,
    _hugepages,
    _vfio,
    examine_rdma,
    _lab,
    _cores,
    _workers,
    _clock,
)
