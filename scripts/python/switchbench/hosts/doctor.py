# SPDX-License-Identifier: BSD-3-Clause
"""What this machine and this user can do: each thing tried, with the remedy where it fails.

Nothing is changed and nothing is sent. What is tried in a namespace vanishes with it.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.programs import find_engine
from ..base.transports import TRANSPORTS
from ..labs import LabError, openvswitch, rootless, state
from ..labs.missing import missing
from ..topology import lab_addresses
from . import rdma
from .collect import is_collected
from .collect import libraries as linked_libraries
from .rdma import LACK, NOTE, OK, HostCheck

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
    """Return those that came with the engine (hosts/collect.py)."""
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
        how = "as root" if rootless.is_privileged() else "without root, in a user namespace"
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
    program = openvswitch.lacking()
    if program is not None:
        remedy = "only needed for a lab of kind ovs: `apt-get install openvswitch-switch`"
        return HostCheck("lab", "Open vSwitch", NOTE, f"{program} is not installed", remedy)
    if not openvswitch.TUN.exists():
        remedy = "only needed for a lab of kind ovs: `modprobe tun` as root"
        return HostCheck("lab", "Open vSwitch", NOTE, f"there is no {openvswitch.TUN}", remedy)
    return HostCheck("lab", "Open vSwitch", OK, "for labs of kind ovs")


def _user_namespaces() -> HostCheck:
    what = "user namespaces"
    try:
        rootless.try_in_namespace(lambda: [])
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
        remedy = "three cores to poll one queue: one for it, one for the rest, one to spare"
        detail = "auto lets one worker a process sleep between frames"
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
    rdma.examine,
    _lab,
    _cores,
    _workers,
    _clock,
)
