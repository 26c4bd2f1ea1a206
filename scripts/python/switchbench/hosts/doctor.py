# SPDX-License-Identifier: BSD-3-Clause
"""Checks of this machine, and the comparison of a site's hosts, with a remedy for each deficiency.

Nothing is changed. Properties that should be equal on all hosts of a site are read over ssh.
"""

from __future__ import annotations

import errno
import os
import resource
import shlex
import socket
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import __version__
from ..base.errors import ConfigurationError, RunError
from ..base.model import Port, Process, Site
from ..base.programs import ENGINE, find_engine
from ..base.transports import TRANSPORTS
from ..labs import namespaces
from ..labs.devices import missing
from ..run.launch.far import Answer, folded
from ..run.launch.ssh import FAILED, OpenSsh, failure, lack
from ..topology import cabling
from .push import is_collected
from .push import libraries as linked_libraries

# --- properties of a host -------------------------------------------------------------------------


ABSENT = "-"
# Name under which the output of lldpctl is listed among a host's files.
_LLDP = "lldp"


@dataclass(frozen=True)
class Fact:
    """Property that should be equal on all hosts: its name, its files and a function.

    `read` returns the property's value from the files' contents, with None for a missing file. A
    host without any of the files lacks the property.
    """

    name: str
    paths: tuple[str, ...]
    read: Callable[..., str]


def _plain(text: str) -> str:
    return text or "none"


def _after(key: str) -> Callable[[str], str]:
    """Return a function that returns the value of `key` in a text of lines `key: value`.

    `=` may replace `:`. The first line with this key is used; "none" without such a line.
    """

    def read(text: str) -> str:
        for line in text.splitlines():
            name, _, value = line.replace("=", ":", 1).partition(":")
            if name.strip() == key:
                return value.strip()
        return "none"

    return read


# Names of processes that synchronize a clock; phc2sys copies a NIC's clock to the kernel's.
_KEEPERS = ("chronyd", "ntpd", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys", "timemaster")


def _gigabytes(text: str) -> str:
    """Return the memory size in a text of /proc/meminfo, rounded to GiB.

    Exact sizes differ on equal hosts, because kernels reserve different amounts.
    """
    kib = _after("MemTotal")(text).partition(" ")[0]
    return f"{round(int(kib) / 2**20)} GiB" if kib.isdigit() else "none"


def _different(text: str) -> str:
    """Return the distinct words of a text, sorted: `performance, powersave` if cores differ."""
    return ", ".join(sorted(set(text.split()))) or ABSENT


def _keepers(text: str) -> str:
    return ", ".join(name for name in _KEEPERS if name in text.split()) or "none"


_GIDS = 8  # number of RDMA GIDs compared: the kernel makes 0 to 3, addresses make further ones


def _gids(layer: str | None, *types: str | None) -> str:
    """Return the types of an RDMA port's GIDs (global identifiers) as text, by index.

    An index must have the same type on all hosts. Ethernet needs a GID of type RoCE v2.
    """
    kinds = ", ".join(f"{i}: {kind}" for i, kind in enumerate(types) if kind) or "none"
    is_usable = layer != "Ethernet" or "RoCE v2" in kinds
    return kinds if is_usable else f"none of RoCE version 2 ({kinds})"


def _fact(name: str, written: str) -> Fact:
    """Return the property that a line of facts.toml declares."""
    path, _, how = written.partition(": ")
    read = globals()[how[1:]] if how.startswith("=") else _after(how) if how else _plain
    return Fact(name, (path,), read)


def _declared(name: str) -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


_FACTS = {
    part: [_fact(name, written) for name, written in some.items()]
    for part, some in _declared("facts.toml").items()
}
_IB_PORT = "/sys/class/infiniband/{0}/ports/{1}"
_GID_FILES = [f"{_IB_PORT}/gid_attrs/types/{i}" for i in range(_GIDS)]
_FACTS["rdma"].append(Fact("rdma gids", (f"{_IB_PORT}/link_layer", *_GID_FILES), _gids))
_OF_PORT = ("iface", "pci", "rdma")  # keys that identify a port


def _facts_of(key: str, named: str) -> Iterator[Fact]:
    """Yield the facts of one port; `key` and `named` are for example `rdma` and `mlx5_0/1`."""
    device, _, number = named.partition("/")
    for fact in _FACTS[key]:
        yield replace(fact, paths=tuple(path.format(device, number or 1) for path in fact.paths))


def _of_ports(ports: Sequence[Port]) -> Iterator[Fact]:
    for port in ports:
        for key in (key for key in _OF_PORT if key in port.engine):
            for fact in _facts_of(key, str(port.engine[key])):
                yield replace(fact, name=f"{port.name.partition(':')[2]} {fact.name}")


# --- this machine ---------------------------------------------------------------------------------


OK = "ok"
LACK = "lack"  # something is missing; `remedy` says how to get it
NOTE = "note"  # a remark; nothing is missing

ROOT = Path("/")  # tests use another folder
# Locked memory for a port's queues and buffers, at the default depth and message size.
MEMLOCK_BYTES = 64 << 20
_ENGINE_TIMEOUT_S = 20
_AF_XDP = 44  # linux/socket.h; Python lacks this constant
_FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
_CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_CORES_TO_POLL = 3  # engine/platform/cpu_placement.h

# linux/capability.h
_CAPABILITIES = {
    "cap_net_admin": 12,
    "cap_net_raw": 13,
    "cap_ipc_lock": 14,
    "cap_sys_admin": 21,
    "cap_bpf": 39,
}


@dataclass(frozen=True)
class HostCheck:
    """Result of one check of this machine."""

    part: str  # engine | dpdk | verbs | lab | machine
    what: str
    state: str  # ok | lack | note
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Item:
    """Entry of the check list; {} in its remedy is replaced by the checked thing's name."""

    part: str
    what: str
    remedy: str = ""


CHECK_LIST = {key: Item(**item) for key, item in _declared("checks.toml").items()}


def _check(key: str, state: str, detail: str, named: str = "") -> HostCheck:
    """Return the result of the check that is entry `key` of the check list."""
    item = CHECK_LIST[key]
    remedy = "" if state == OK else item.remedy.replace("{}", named)
    return HostCheck(item.part, item.what, state, detail, remedy)


def examine() -> list[HostCheck]:
    """Run all checks of this machine; return their results, those of the engine first."""
    return [check for examiner in _EXAMINERS for check in examiner()]


def can_run(checks: list[HostCheck]) -> bool:
    """Return true where the checks show that the engine works; nothing runs without it."""
    return not any(check.part == "engine" and check.state == LACK for check in checks)


def _text(path: str) -> str | None:
    """Return the content of a file; None where it cannot be read (an unused GID gives EINVAL)."""
    try:
        return (ROOT / path.lstrip("/")).read_text().strip()
    except OSError:
        return None


def _engine() -> Iterator[HostCheck]:
    try:
        engine = find_engine()
    except ConfigurationError as error:
        yield HostCheck("engine", ENGINE, LACK, "not found", str(error))
        return
    try:
        done = subprocess.run(
            [str(engine), "--version"],
            capture_output=True, text=True, timeout=_ENGINE_TIMEOUT_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        # The loader's message names the missing library.
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        yield HostCheck("engine", str(engine), LACK, reason, CHECK_LIST["programs"].remedy)
        return
    yield _check("programs", OK, f"{done.stdout.strip()}, {engine}")
    if is_collected(engine):
        libraries = " ".join(path.name for path in (engine.resolve().parent / "lib").iterdir())
    else:
        libraries = " ".join(linked_libraries([engine]))
    # Transports that a build of the engine can omit.
    optional = [one for one in TRANSPORTS if one.library and one.package]
    absent = [one for one in optional if str(one.library) not in libraries]
    names = ["tcp", *(one.name for one in optional if one not in absent)]
    detail = f"all found; built with the transports {', '.join(names)}"
    if absent:
        detail += f", without {', '.join(one.name for one in absent)}"
    packages = ", ".join(str(one.package) for one in absent)
    yield _check("libraries", NOTE if absent else OK, detail, packages)


_RAW = ("cap_net_raw", "cap_net_admin")
# Raw socket types: name, address family, capabilities that a port needs, and kernel option.
_SOCKETS = (
    ("AF_PACKET", int(socket.AF_PACKET), _RAW, "CONFIG_PACKET"),
    ("AF_XDP", _AF_XDP, (*_RAW, "cap_bpf", "cap_ipc_lock", "cap_sys_admin"), "CONFIG_XDP_SOCKETS"),
)


def _packet_sockets() -> Iterator[HostCheck]:
    for name, family, capabilities, option in _SOCKETS:
        code = _open_raw(family)
        if code in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
            lack = "this kernel has no such socket"
            yield HostCheck("dpdk", name, LACK, lack, f"a kernel with {option}")
        elif code or not all(namespaces.has_capability(_CAPABILITIES[one]) for one in capabilities):
            remedy = f"run as root, by sudo for example (it needs {','.join(capabilities)})"
            remedy += "; labs work without this" if name == "AF_PACKET" else ""
            yield HostCheck("dpdk", name, LACK, "not permitted to this user", remedy)
        else:
            yield HostCheck("dpdk", name, OK)


def _open_raw(family: int) -> int:
    """Try to open a raw socket of an address family; return its errno, 0 for success."""
    try:
        socket.socket(family, socket.SOCK_RAW, 0).close()
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _hugepages() -> Iterator[HostCheck]:
    found = _after("HugePages_Free")(_text("/proc/meminfo") or "")
    yield _check("hugepages", NOTE if found in ("0", "none") else OK, f"{found} free")


def examine_rdma() -> Iterator[HostCheck]:
    """Yield the RDMA checks: once for this host, then the properties of each port."""
    ports = sorted(ROOT.glob("sys/class/infiniband/*/ports/*"))
    names = [f"{port.parts[-3]}/{port.name}" for port in ports]
    yield _check("device", OK if ports else NOTE, ", ".join(names) or "none")
    if not ports:
        return
    nodes = sorted(ROOT.glob("dev/infiniband/uverbs*"))
    closed = [node.name for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed or not nodes:
        lack = "no file uverbs* in /dev/infiniband"
        if closed:
            lack = f"not permitted to this user: {', '.join(closed)}"
        yield _check("access", LACK, lack)
    limit = memlock_bytes()
    if limit is not None and limit < MEMLOCK_BYTES and os.geteuid() != 0:
        yield _check("memlock", LACK, f"{limit >> 10} KiB (`ulimit -l`)")
    for name in names:
        for fact in _facts_of("rdma", name):
            value = fact.read(*map(_text, fact.paths))
            is_met, remedy = _NEEDS.get(fact.name, (bool, ""))
            state = OK if is_met(value) else NOTE
            what = f"{name} {fact.name.removeprefix('rdma ')}"
            yield HostCheck("verbs", what, state, value, "" if state == OK else remedy)


def memlock_bytes() -> int | None:
    """Return the number of bytes that this user may lock in memory; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if limit == resource.RLIM_INFINITY else limit


def _lab() -> Iterator[HostCheck]:
    lacks = missing()
    if not lacks:
        parts = "veth, bridge, IFB, TBF, u32 and mirred"
        how = "as root" if namespaces.is_privileged() else "without root, in a user namespace"
        yield _check("lab", OK, f"{parts}; {how}")
    for what, remedy in lacks.items():
        yield HostCheck("lab", what, LACK, "", remedy)


def _machine() -> Iterator[HostCheck]:
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    yield _check("cores", OK if usable >= _CORES_TO_POLL else NOTE, f"{usable} of {present}")
    source = _text(_CLOCK_SOURCE) or "unknown"
    yield _check("clock", OK if source in _FAST_CLOCKS else NOTE, source)


_EXAMINERS: tuple[Callable[[], Iterator[HostCheck]], ...] = (
    _engine,
    _packet_sockets,
    _hugepages,
    examine_rdma,
    _lab,
    _machine,
)


# --- hosts of a site ------------------------------------------------------------------------------


_SLACK_S = 20.0
_LINES = 200  # limit per file


@dataclass(frozen=True)
class HostComparison:
    """Property of all hosts: its usual or required value, and the hosts with another value."""

    name: str
    most: str
    differ: Mapping[str, str]


@dataclass(frozen=True)
class Survey:
    """Comparison of a site's hosts: properties, hosts without an answer, and deficiencies."""

    rows: list[HostComparison]
    silent: dict[str, str]  # reason per host that could not be queried
    doubts: list[str]  # deficiencies that may be common to all hosts

    @property
    def is_alike(self) -> bool:
        """Return true where all queried hosts have equal values and no deficiency."""
        return not self.doubts and not any(row.differ for row in self.rows)


def survey(site: Site, processes: Sequence[Process]) -> Survey:
    """Read all properties of the hosts over ssh, and compare the hosts' values."""
    way = OpenSsh.of(site)
    facts = {process.name: [*_FACTS["machine"], *_of_ports(process.ports)] for process in processes}
    paths = {
        host: [path for fact in own for path in fact.paths if path.startswith("/")]
        for host, own in facts.items()
    }
    answers = _host_files(way, paths, _LINES)
    silent = {
        host: failure(host, answer.errors) or "it did not answer"
        for host, answer in answers.items()
        if answer.status in (FAILED, None)
    }
    values: dict[str, dict[str, str]] = {"engine": {}}
    for process in processes:
        host = process.name
        if host in silent:
            continue
        texts = cabling.below_headers(answers[host].output)
        for fact in facts[host]:
            said = [texts.get(path) for path in fact.paths]
            is_there = any(text is not None for text in said)
            values.setdefault(fact.name, {})[host] = fact.read(*said) if is_there else ABSENT
        seen = cabling.lldp_neighbours(texts.get(_LLDP, ""))
        for port in process.ports:
            cable = cabling.compared_cable(port, seen)
            if cable is not None:
                values.setdefault(f"{port.name.partition(':')[2]} cable", {})[host] = cable
    asked = [process.name for process in processes if process.name not in silent]
    engines = way.run_on_hosts({host: way.node(host, ["--version"]) for host in asked}, _SLACK_S)
    values["engine"] = {
        host: lack(host, engines[host], way.engine) or __version__ for host in asked
    }
    rows = []
    for name, found in values.items():
        if found:
            # Compared with the one right value, else with the most frequent: of several the first.
            ((usual, _),) = Counter(found.values()).most_common(1)
            if name == "engine" or name.endswith(" cable"):
                usual = __version__ if name == "engine" else cabling.AS_SAID
            differ = {host: value for host, value in found.items() if value != usual}
            rows.append(HostComparison(name, usual, differ))
    return Survey(rows, silent, [*unfit(processes, values)])


# Requirements of a test that no host may meet, so that comparing hosts does not find them. The key
# is a row's name, or the end of it for rows of ports. Values: a check of the row's value, a remedy.
_NEEDS: dict[str, tuple[Callable[[str], bool], str]] = {
    "hugepages": (
        lambda value: value.isdigit() and int(value) > 0,
        "DPDK on a PCI device needs hugepages: `echo 1024 > /proc/sys/vm/nr_hugepages`",
    ),
    "link": (
        lambda value: value in ("up", "unknown"),
        "no link: check cable and switch port, and run `ip link set ... up`",
    ),
    "rdma state": (lambda value: value.endswith("ACTIVE"), CHECK_LIST["port"].remedy),
    "rdma gids": (lambda value: not value.startswith("none"), CHECK_LIST["gid"].remedy),
}


def unfit(processes: Sequence[Process], values: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a sentence for each requirement that hosts do not meet, with hosts and remedy."""
    by_pci = {one.name for one in processes if any("pci" in port.engine for port in one.ports)}
    for name, found in values.items():
        for need, (is_met, words) in _NEEDS.items():
            if name != need and not name.endswith(f" {need}"):
                continue
            asked = by_pci if need == "hugepages" else found.keys()
            bad = [host for host in found if host in asked and not is_met(found[host])]
            if bad:
                yield f"{name}: {folded(bad)}: {found[bad[0]]}: {words}"


# --- files of hosts -------------------------------------------------------------------------------


# Reading LLDP neighbours may need privilege; sudo is tried without a password.
_SCRIPT = (
    'PATH=$PATH:/usr/sbin:/sbin; head -v -n {lines} -- "$@"; '
    "echo; echo '==> lldp <=='; "
    "lldpctl -f json 2>/dev/null || sudo -n lldpctl -f json 2>/dev/null; "
    "echo; echo '==> daemons <=='; cat /proc/[0-9]*/comm 2>/dev/null; "
    "echo; echo '==> governors <=='; "
    "cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null; true"
)


def _host_files(way: OpenSsh, paths: Mapping[str, Iterable[str]], lines: int) -> dict[str, Answer]:
    """Read the files `paths` on each host, at most `lines` lines of each; return them by host.

    Each answer also has the host's LLDP neighbours, running processes and CPU governors.
    """
    ask = ["sh", "-c", _SCRIPT.format(lines=lines), "sh"]
    questions = {
        host: way.command(host, f"exec {shlex.join([*ask, *dict.fromkeys(own)])}")
        for host, own in paths.items()
    }
    return way.run_on_hosts(questions, _SLACK_S)


# --- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HostLink:
    """State of one port's link, as the port's host reports it."""

    is_up: bool | None  # None: not reported
    changes: int | None  # carrier changes since the host's start
    seen: cabling.Neighbour | None  # neighbour by LLDP


def read_links(site: Site) -> dict[str, HostLink]:
    """Return the links of all ports with an interface; RunError where a host does not answer."""
    way = OpenSsh.of(site)
    files = "/sys/class/net/{}/carrier", "/sys/class/net/{}/carrier_changes"
    ports = [port for port in site.ports if "iface" in port.engine]
    paths: dict[str, list[str]] = {process.name: [] for process in site.processes}
    for port in ports:
        paths[port.host] += [file.format(port.engine["iface"]) for file in files]
    links = {}
    for host, answer in _host_files(way, paths, lines=1).items():
        if answer.status in (FAILED, None):
            raise RunError(f"{host}: {failure(host, answer.errors) or 'it did not answer'}")
        texts = cabling.below_headers(answer.output)
        seen = cabling.lldp_neighbours(texts.get(_LLDP, ""))
        for port in (port for port in ports if port.host == host):
            iface = str(port.engine["iface"])
            carrier, changes = (texts.get(file.format(iface), "") for file in files)
            links[port.name] = HostLink(
                None if not changes else carrier == "1",
                int(changes) if changes.isdigit() else None,
                seen.get(iface),
            )
    return links


def refuse_unmoved(
    ports: Sequence[Port], moved: Collection[str], before: Mapping[str, int | None],
    now: Mapping[str, HostLink],
) -> None:  # fmt: skip
    """Raise ConfigurationError where a host port's cable is not in the device port it should be in.

    Parameters
    ----------
    ports
        The site's ports, each with the device port that its cable has to be in.
    moved
        Names of the ports whose cables had to be moved.
    before
        `HostLink.changes` of each port before the move; empty: not read.
    now
        Present state of each link. LLDP decides where it names a port; otherwise the carrier of
        the moved ports, and of no others, must have changed.
    """
    for port in ports:
        link = now.get(port.name)
        if link is None or link.is_up is None:
            continue  # no interface: only the run's connectivity check can find a mistake
        where = f"{port.switch} {port.switch_port}"
        words = ""
        if not link.is_up:
            words = f"{port.name} has no link: is it plugged into {where}?"
        elif link.seen is not None:
            cable = cabling.compared_cable(port, {str(port.engine["iface"]): link.seen})
            words = "" if cable == cabling.AS_SAID else f"{port.name} is {cable}"
        elif before.get(port.name) is not None:
            changed = link.changes != before[port.name]
            if changed and port.name not in moved:
                words = f"{port.name} lost its link, but should have stayed in {where}"
            elif port.name in moved and not changed:
                words = f"{port.name} kept its link: it was not moved to {where}"
        if words:
            raise ConfigurationError(f"the cables do not match the campaign's next round: {words}")
