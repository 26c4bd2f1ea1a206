#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bind PCI network devices to a driver for DPDK, and restore them (doc/how-to/bind.md).

This file needs only Python 3.8: Switchbench also sends it to hosts, as the standard input of
`python3` there.

Before the first change, a journal on disk records all settings that are lost with the kernel
driver. Restoring uses only the journal, so it works after the program was killed. A reboot also
brings the devices back to their kernel drivers. A device that could not be restored, or whose
interface the host needs, is rejected before anything is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import ipaddress
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

ROOT = Path("/")  # tests use another folder
Record: TypeAlias = "dict[str, Any]"  # JSON object of ip(8), or of the journal
JOURNAL = "/var/lib/switchbench/bind.json"
VERSION = 1
BOOT_ID = "proc/sys/kernel/random/boot_id"
USER_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
# DPDK uses these devices through their kernel driver, which has to stay bound.
BIFURCATED = ("mlx4_core", "mlx5_core", "mana")
NETWORK = 0x02  # PCI base class
PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
TRY_S = 0.1  # interval between checks of slow kernel actions
APPEAR_TRIES = 100  # an interface appears some time after its driver is bound
RENAME_TRIES = 10  # udev renames an interface a moment after it appears
ROUNDS = 30  # maximum attempts to restore an interface's addresses or routes


class BindError(Exception):
    """Error with a sentence and an exit status: 2 blocked or invalid, 3 not completed."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


class ProgramError(BindError):
    """Error: a system program such as ip(8) failed."""


def block(when: object, sentence: str, status: int = 2) -> None:
    """Raise BindError with the given sentence and exit status if the condition `when` is true."""
    if when:
        raise BindError(sentence, status)


def say(sentence: str) -> None:
    """Print a sentence; ignore the error of a closed output."""
    with contextlib.suppress(OSError):
        print(sentence, flush=True)


# --- files of /sys and /proc ----------------------------------------------------------------------


def at(*names: str) -> Path:
    """Return the path below `ROOT` with the given parts."""
    return ROOT.joinpath(*names)


def device(pci: str, *names: str) -> Path:
    """Return a path in the sysfs folder of a PCI device."""
    return at("sys/bus/pci/devices", pci, *names)


def read(path: Path) -> str:
    """Return the first line of a file; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""


def number(path: Path, missing: int = -1) -> int:
    """Return the number in a file; return `missing` where the file has no number."""
    try:
        return int(read(path), 0)
    except ValueError:
        return missing


def target(path: Path) -> str:
    """Return the last part of a symbolic link's target; "" for other paths."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""


def write(path: Path, text: str) -> None:
    """Write a text to a kernel file in one write(2)."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def put(path: Path, text: str, problem: str) -> None:
    """Write a text to a kernel file; on failure, raise BindError with `problem` and the reason."""
    try:
        write(path, text)
    except OSError as error:
        raise BindError(f"{problem}: {error.strerror}.", 3) from error


def driver_of(pci: str) -> str:
    """Return the driver bound to a device; "" where none is."""
    return target(device(pci, "driver"))


def override_of(pci: str) -> str:
    """Return the driver override of a device; "" where any driver may bind."""
    return read(device(pci, "driver_override")).replace("(null)", "")


def interfaces_of(pci: str) -> dict[int, str]:
    """Return a device's interfaces in this namespace, by their port number on the device."""
    # The interfaces of a virtio device are below a bus of their own.
    paths = [*device(pci).glob("net/*"), *device(pci).glob("virtio*/net/*")]
    return {number(path / "dev_port", 0): path.name for path in sorted(paths)}


# --- ip(8) ----------------------------------------------------------------------------------------


def run(*words: str) -> str:
    """Return the output of a system program; ProgramError where it fails."""
    way = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": way}
        )
    except FileNotFoundError:
        raise BindError(f"There is no program `{words[0]}` here: install it.") from None
    if done.returncode:
        raise ProgramError(f"`{' '.join(words)}` failed: {done.stderr.strip().rstrip('.')}.", 3)
    return done.stdout


def objects(*words: str) -> list[Record]:
    """Return the objects (links, addresses or routes) that an ip(8) command lists, with details."""
    found: list[Record] = json.loads(run("ip", "-json", "-details", *words) or "[]")
    return [one for one in found if one]


# --- guard: interfaces that the host needs --------------------------------------------------------

ANY = "?"  # stands for an unknown interface
# Kinds of interfaces that send no packets, or send them by another interface that /sys shows. All
# other kinds are tunnels.
PLAIN = (
    "bond", "bridge", "dummy", "ifb", "ipoib", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap",
    "netkit", "team", "veth", "vlan", "vrf",
)  # fmt: skip
ASSIGNED = ipaddress.ip_network("2000::/3")  # all assigned unicast addresses of IPv6


def hops_of(route: Record) -> list[str]:
    """Return the outgoing interfaces of a route; [`ANY`] where a next-hop object hides them."""
    found = [hop["dev"] for hop in (route, *route.get("nexthops", [])) if "dev" in hop]
    return found or [ANY]


def way_to(address: str) -> list[str]:
    """Return the outgoing interfaces of the routes to an address.

    The list is empty for the host's own addresses, and where there is no route.
    """
    number, _, scope = address.partition("%")
    parsed_address = ipaddress.ip_address(number)
    if scope:
        return [scope]
    plain = str(getattr(parsed_address, "ipv4_mapped", None) or parsed_address)
    try:
        routes = objects("route", "get", "fibmatch", plain)
    except ProgramError as error:
        if "unreachable" in str(error) or "No route" in str(error):
            return []
        raise
    return [hop for route in routes if is_unicast(route) for hop in hops_of(route)]


def is_unicast(route: Record) -> bool:
    """Return true for a route that forwards packets."""
    return bool(route.get("type", "unicast") == "unicast")


def default_routes(version: int) -> list[tuple[str, str]]:
    """Return (interface, name) for each default route of an IP version.

    Routes that together cover half of all addresses count as a default route.
    """
    space = ipaddress.ip_network("0.0.0.0/0") if version == 4 else ASSIGNED
    uses, wide = [], []
    networks: list[Any] = []
    for route in objects(f"-{version}", "route", "show", "table", "all"):
        to = route["dst"].replace("default", "0.0.0.0/0" if version == 4 else "::/0")
        network = ipaddress.ip_network(to)
        if not is_unicast(route) or network.prefixlen > 16:
            continue
        name = f"the IPv{version} default route (table {route.get('table', 'main')})"
        if network.prefixlen <= (1 if version == 4 else 3):
            uses += [(hop, name) for hop in hops_of(route)]
        elif network.subnet_of(space):  # type: ignore[arg-type]
            networks.append(network)
            wide += [(hop, f"a part of {name}") for hop in hops_of(route)]
    covered: int = sum(one.num_addresses for one in ipaddress.collapse_addresses(networks))
    return uses + wide if 2 * covered >= space.num_addresses else uses


def critical_uses(connection: str) -> list[tuple[str, str]]:
    """Return (interface, name) for all interfaces that carry traffic which the host needs."""
    uses = default_routes(4) + default_routes(6)
    if connection:
        name = f"the controller's connection (from {connection})"
        uses += [(hop, name) for hop in way_to(connection)]
    links = {link["ifname"]: link for link in objects("link", "show")}
    followed = 0
    while followed < len(uses) < 1000:  # the limit ends the loop for a tunnel inside itself
        hop, name = uses[followed]
        followed += 1
        info = links.get(hop, {}).get("linkinfo", {})
        if info.get("info_kind", "bond") not in PLAIN:
            uses += [(under, f"{name} through tunnel {hop}") for under in way_of(links[hop])]
    return uses


def way_of(tunnel: Record) -> list[str]:
    """Return the outgoing interfaces of a tunnel's packets, from the tunnel's settings."""
    settings = tunnel["linkinfo"].get("info_data", {})
    if "link_netnsid" in tunnel:
        return [ANY]
    below = [settings["link"]] if settings.get("link") else []
    for key in ("remote", "remote6", "group", "group6"):
        if settings.get(key, "any") != "any":
            below += way_to(settings[key])
    return below or [ANY]


def check_guard(pci: str, connection: str) -> None:
    """Raise BindError for a device that carries traffic which the host needs."""
    names = list(interfaces_of(pci).values())
    if not names:
        return
    try:
        uses = critical_uses(connection)
    except (BindError, ValueError, LookupError) as error:
        raise BindError(
            f"Can't determine which traffic the host's interfaces carry: {error}"
        ) from error
    for hop, what in uses:
        block(
            hop == ANY or hop in names,
            f"Interface {names[0] if hop == ANY else hop} of PCI device {pci} "
            f"{'may carry' if hop == ANY else 'carries'} {what} and would disappear: give the port "
            "an interface that nothing else needs.",
        )


# --- may a device be bound? -----------------------------------------------------------------------


def check(args: argparse.Namespace) -> bool:
    """Check that devices can be bound; return true where an earlier call has bound all of them."""
    with opened_journal(args.journal) as journal:
        if journal is not None and not is_past(journal):
            noted = {entry["pci"] for entry in journal["devices"]}
            if all(pci in noted and driver_of(pci) == args.driver for pci in args.addresses):
                return True
            raise BindError(
                f"There is a journal already, {args.journal} of {journal['made']}: other devices "
                "are bound, or a run was killed; restore first (`switchbench restore`).",
                3,
            )
    check_folder(args.journal)
    loaded = at("sys/bus/pci/drivers", args.driver).exists()
    block(not loaded, f"The driver {args.driver} is not loaded: `modprobe {args.driver}`.")
    for pci in args.addresses:
        check_device(pci)
        for name in interfaces_of(pci).values():
            check_interface(pci, name)
        check_guard(pci, args.connection)
    return False


def check_device(pci: str) -> None:
    """Raise BindError if the address is no PCI network device, or the device must not be bound."""
    lspci = "`lspci -D -d ::02xx` lists the network devices."
    block(
        not PCI.fullmatch(pci),
        f"{pci:.40} is not a PCI address; write it as 0000:3b:00.0 (lspci -D shows them).",
    )
    block(not device(pci).exists(), f"There is no PCI device {pci}; {lspci}")
    code = number(device(pci, "class"), 0)
    block(
        code >> 16 != NETWORK,
        f"PCI device {pci} is not a network device (class 0x{code:06x}); {lspci}",
    )
    driver = driver_of(pci)
    block(
        driver in USER_DRIVERS,
        f"PCI device {pci} is bound to {driver} already, and no journal says by whom or what it "
        "was before: use it as it is (leave `bind` out), or give it back to its own driver first "
        f"(`driverctl unset-override {pci}`).",
    )
    block(
        driver in BIFURCATED,
        f"PCI device {pci} is driven by {driver}, through which DPDK works: it needs no binding, "
        "leave it out.",
    )
    block(
        driver and not interfaces_of(pci),
        f"PCI device {pci} is driven by {driver} and shows no interface in this network namespace, "
        "so that it is not known what it carries: move its interface here first (`ip -n NAME link "
        "set dev IFACE netns 1`), or unbind it.",
    )
    functions = device(pci, "sriov_numvfs")
    block(
        number(functions) > 0,
        f"PCI device {pci} has virtual functions, which would go away with its driver: "
        f"`echo 0 > {functions}` first.",
    )
    path = device(pci, "driver_override")
    block(
        not os.access(path, os.W_OK),
        f"The driver of PCI device {pci} can't be changed ({path}): be root, outside containers "
        "that see /sys read-only.",
    )


def check_interface(pci: str, name: str) -> None:
    """Raise BindError for an interface on which a bond, bridge, other interface or rxe depends."""
    for path in sorted(at("sys/class/net", name).glob("upper_*")):
        upper = path.name[len("upper_") :]
        raise BindError(
            f"{upper} sits on interface {name} of PCI device {pci} and would lose it: take it off "
            f"first (`ip link set dev {name} nomaster`, or delete {upper})."
        )
    for path in sorted(at("sys/class/infiniband").glob("*")):
        block(
            read(path / "parent") == name,  # software RDMA (rxe)
            f"RDMA device {path.name} sits on interface {name} and would go away with it: remove "
            f"it first (`rdma link delete {path.name}`).",
        )


# --- the journal ----------------------------------------------------------------------------------


def is_ours(status: os.stat_result) -> bool:
    """Return true for a file that only root and this user could have written."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def unusable(path: str, reason: str | None) -> BindError:
    """Return the error for a journal that cannot be written."""
    return BindError(
        f"The journal {path} can't be written ({reason}), and without it no device is touched: be "
        "root, or name another file with --journal."
    )


def check_folder(path: str) -> None:
    """Raise BindError for a journal folder that is read-only, or that others can write to."""
    folder = own = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.access(folder, os.W_OK):
        raise unusable(path, "no permission")
    if folder == own and not is_ours(os.stat(folder)):
        raise unusable(path, f"others can write to {folder}")


@contextlib.contextmanager
def synced_folder(path: str) -> Iterator[None]:
    """Hold the journal's folder locked, and sync it to disk at the end."""
    fd = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(OSError):  # file systems without fsync on folders need none
            os.fsync(fd)
    finally:
        os.close(fd)


def write_journal(path: str, journal: Record) -> None:
    """Write a new journal file atomically, and sync the file and its folder to disk."""
    temporary = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), 0o755, exist_ok=True)
        check_folder(path)
        with synced_folder(path):
            # A killed process with the same number may have left this file. The file is not another
            # user's, because other users cannot write to this folder.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            with os.fdopen(os.open(temporary, flags, 0o644), "w") as file:
                json.dump(journal, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            if os.path.lexists(path):
                os.unlink(temporary)
                raise BindError(f"Another process has just written {path}: restore first.", 3)
            os.rename(temporary, path)
    except OSError as error:
        raise unusable(path, error.strerror) from error


@contextlib.contextmanager
def opened_journal(path: str, lock: bool = False) -> Iterator[Record | None]:
    """Open the journal, optionally locked against other processes, and yield its content.

    Yield None without a journal; raise BindError for one that is unreadable, unsafe or locked.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise BindError(f"The journal {path} can't be read: {why}.") from error
    with os.fdopen(fd) as file:
        status = os.fstat(fd)
        folder = os.stat(os.path.dirname(os.path.abspath(path)))
        if not (stat.S_ISREG(status.st_mode) and is_ours(status) and is_ours(folder)):
            raise BindError(
                f"The journal {path} is not used: it has to be a regular file in a folder, both "
                "of root (or this user) and writable by nobody else."
            )
        if lock:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BindError(
                    f"Another process binds or restores the devices of journal {path}: wait for "
                    "its end.",
                    3,
                ) from None
            if os.fstat(fd).st_nlink == 0:  # another process has just restored and removed it
                yield None
                return
        yield parsed(path, file.read())


def parsed(path: str, text: str) -> Record:
    """Parse the text of a journal; raise BindError for a journal of another version."""
    try:
        journal: Record = json.loads(text)
        if journal["switchbench_bind"] != VERSION:
            raise ValueError("another version")
    except (ValueError, LookupError, TypeError) as error:
        raise BindError(
            f"{path} is not a journal that this version can read (wanted switchbench_bind: "
            f"{VERSION}): restore with the version that wrote it ({error})."
        ) from None
    return journal


def is_past(journal: Record) -> bool:
    """Return true for a journal that was written before the last boot."""
    return bool(journal["boot"]) and journal["boot"] != read(at(BOOT_ID))


# --- what is written down, and restored -----------------------------------------------------------

# Attributes of a route that the kernel prints but does not accept. Next-hop objects (nhid) are lost
# with the interface.
NOISE = re.compile(
    r"(?<=rto_min) lock| (nhid|expires|error) \S+"
    r"| (linkdown|dead|(rt_)?offload(_failed)?|(rt_)?trap|unresolved)\b"
)
# routes that the kernel makes: by redirects, by itself, by router advertisements
MADE_BY_KERNEL = re.compile(r" proto (1|2|9)\b")
FLAGS = ("noprefixroute", "nodad", "mngtmpaddr", "home", "optimistic")


def read_interface(name: str) -> Record:
    """Return name, MAC, MTU, state, addresses and routes of an interface.

    Addresses and routes are in ip(8)'s syntax, so that ip(8) can restore them.
    """
    [link] = objects("address", "show", "dev", name)
    routes = []
    for family in ("-4", "-6"):
        shown = run("ip", "-oneline", "-N", family, "route", "show", "table", "all")
        for line in shown.splitlines():
            words = " ".join(NOISE.sub("", line.replace("\\", " ")).split())
            if f" dev {name} " in f"{words} " and not MADE_BY_KERNEL.search(words):
                routes.append(f"{family} {words}")
    return {
        "name": name,
        "up": "UP" in link["flags"],
        "mtu": link["mtu"],
        # interfaces other than Ethernet have longer addresses, which they keep
        "mac": link["address"] if link["link_type"] == "ether" else "",
        # the kernel makes temporary addresses (RFC 8981) itself
        "addresses": [words_of(one) for one in link["addr_info"] if not one.get("temporary")],
        "routes": routes,
    }


def words_of(address: Record) -> str:
    """Return an address, listed by ip(8) in JSON, as arguments of `ip address replace`."""
    length = f"/{address['prefixlen']}"
    peer = address.get("address")
    words = [address["local"], "peer", peer + length] if peer else [address["local"] + length]
    for key in ("broadcast", "scope", "label", "metric"):
        if key in address:
            words += [key, str(address[key])]
    for key in ("valid", "preferred"):
        seconds = address.get(f"{key}_life_time", 2**32 - 1)
        words += [f"{key}_lft", "forever" if seconds == 2**32 - 1 else str(seconds)]
    return " ".join([*words, *(flag for flag in FLAGS if address.get(flag))])


def write_interface(name: str, state: Record) -> None:
    """Restore the name and settings that the journal has for the interface now called `name`."""
    now, new = read_interface(name), state["name"]
    for key, word in (("name", "name"), ("mac", "address"), ("mtu", "mtu")):
        if state[key] not in (now[key], ""):
            # most drivers require the interface to be down
            down = () if key == "mtu" else ("down",)
            run("ip", "link", "set", "dev", name, *down, word, str(state[key]))
        name = new
    run("ip", "link", "set", "dev", new, "up" if state["up"] else "down")
    add_all(new, [f"address replace {words} dev {new}" for words in state["addresses"]])
    add_all(new, [f"{words[:2]} route append {words[2:]}" for words in state["routes"]])


def add_all(name: str, commands: list[str]) -> None:
    """Run ip(8) commands in rounds until all have succeeded; BindError after `ROUNDS` rounds.

    A gateway needs its own route first, and a route may use an IPv6 address only after duplicate
    address detection (RFC 4862: a second or so). Routes are appended, because another interface may
    have one to the same destination.
    """
    problem = ""
    for _ in range(ROUNDS):
        left = []
        for command in commands:
            try:
                run("ip", *command.split())
            except ProgramError as error:
                if "File exists" not in str(error):
                    left.append(command)
                    problem = str(error)
        if not left:
            return
        if len(left) == len(commands):
            time.sleep(TRY_S)
        commands = left
    raise BindError(f"Interface {name} can't be restored: {problem}", 3)


# --- binding --------------------------------------------------------------------------------------


def change_driver(pci: str, driver: str) -> None:
    """Unbind a device from its driver and bind it to `driver`; "" leaves it without a driver."""
    now, drivers = driver_of(pci), at("sys/bus/pci/drivers")
    if now == driver:
        return
    if now:
        problem = f"PCI device {pci} can't be taken from its driver {now}"
        put(drivers / now / "unbind", pci, problem)
    if not driver:
        return
    block(
        not (drivers / driver).exists(),
        f"PCI device {pci} can't go back to its driver {driver}, which is not loaded: "
        f"`modprobe {driver}`, then restore again.",
        3,
    )
    problem = (
        f"The driver {driver} does not take PCI device {pci} (the kernel's log may say why; "
        "vfio-pci needs an IOMMU)"
    )
    try:
        put(drivers / driver / "bind", pci, problem)
    except BindError:
        if driver_of(pci) != driver:  # EBUSY: the driver has bound the device by itself meanwhile
            raise
    block(driver_of(pci) != driver, f"{problem}.", 3)


def set_override(pci: str, driver: str) -> None:
    """Set the driver override of a device, which is the only driver that may bind; "" clears it."""
    if override_of(pci) != driver:  # an empty line clears it
        problem = f"The driver override of PCI device {pci} can't be set"
        put(device(pci, "driver_override"), driver or "\n", problem)


def bind(args: argparse.Namespace) -> bool:
    """Bind all requested devices to the driver; on an error, undo every change.

    Return False where an earlier call has bound the devices.
    """
    if check(args):
        return False
    with opened_journal(args.journal, lock=True) as past:
        if past is not None and is_past(past):  # the reboot has restored its devices
            remove(args.journal)
    journal: Record = {
        "switchbench_bind": VERSION,
        "boot": read(at(BOOT_ID)),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "devices": [
            {
                "pci": pci,
                "driver": driver_of(pci),
                "driver_override": override_of(pci),
                "interfaces": [
                    {**read_interface(name), "dev_port": port}
                    for port, name in interfaces_of(pci).items()
                ],
            }
            for pci in args.addresses
        ],
    }
    write_journal(args.journal, journal)
    with opened_journal(args.journal, lock=True):
        try:
            for entry in journal["devices"]:
                pci = entry["pci"]
                set_override(pci, args.driver)
                change_driver(pci, args.driver)
                say(f"PCI device {pci}: from {entry['driver'] or 'no driver'} to {args.driver}.")
        except BindError:
            problem = restore_all(journal)
            if problem is None:  # the journal stays until every change is undone
                remove(args.journal)
            else:
                say(f"{problem} The journal stays: {args.journal}.")
            raise
    return True


# --- restoring ------------------------------------------------------------------------------------


def remove(path: str) -> None:
    """Remove a file and sync its folder to disk."""
    try:
        with synced_folder(path):
            os.unlink(path)
    except OSError as error:
        raise BindError(f"The journal {path} can't be removed: {error.strerror}.", 3) from error


def restore_device(entry: Record) -> None:
    """Restore one device's driver and interfaces from its journal entry."""
    pci = entry["pci"]
    block(
        not device(pci).exists(),
        f"PCI device {pci} is gone (unplugged?): `echo 1 > /sys/bus/pci/rescan`, restore again.",
        3,
    )
    set_override(pci, entry["driver_override"])
    change_driver(pci, entry["driver"])
    for state in entry["interfaces"]:
        name, named = "", 0  # the present name of the interface with this number
        for _ in range(APPEAR_TRIES):
            name = interfaces_of(pci).get(state["dev_port"], name)
            named += bool(name)
            if name == state["name"] or named == RENAME_TRIES:
                break
            time.sleep(TRY_S)
        block(
            not name,
            f"Interface {state['name']} of PCI device {pci} has not come back within "
            f"{APPEAR_TRIES * TRY_S:.0f} s: see the kernel's log, then restore again.",
            3,
        )
        write_interface(name, state)
    say(f"PCI device {pci}: back at {entry['driver'] or 'no driver'}.")


def restore_all(journal: Record) -> BindError | None:
    """Restore all devices, the last bound one first, despite errors; return the first error."""
    first = None
    for entry in reversed(journal["devices"]):
        try:
            restore_device(entry)
        except BindError as error:
            first = first or error
        except (OSError, LookupError, TypeError, ValueError) as error:
            first = first or BindError(
                f"The journal is damaged, so this device can't be restored: {error!r}.", 3
            )
    return first


def check_holders(journal: Record) -> None:
    """Raise BindError while a process has one of the devices open."""
    nodes = {}
    for entry in journal["devices"]:
        pci = entry["pci"]
        if driver_of(pci) == "vfio-pci":
            nodes[f"/dev/vfio/{target(device(pci, 'iommu_group'))}"] = pci
        for path in device(pci).glob("uio/uio*"):
            nodes[f"/dev/{path.name}"] = pci
    for path in at("proc").glob("[0-9]*/fd/*"):
        process = path.parts[-3]
        with contextlib.suppress(OSError):
            pci = nodes.get(os.readlink(path), "")
            if pci and int(process) != os.getpid():
                command = read(at("proc", process, "comm"))
                raise BindError(
                    f"Process {process} ({command}) uses PCI device {pci}: end it, then restore.", 3
                )


def restore(args: argparse.Namespace) -> None:
    """Restore all devices in the journal and remove it."""
    with opened_journal(args.journal, lock=True) as journal:
        if journal is None:
            say(f"There is nothing to restore: no journal {args.journal}.")
            return
        if is_past(journal):
            say(f"The boot since {journal['made']} has restored the devices of the journal.")
        else:
            check_holders(journal)
            problem = restore_all(journal)
            if problem is not None:
                raise problem
        remove(args.journal)


def main(words: list[str] | None = None) -> int:
    """Run the command line `words`; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="port_binding.py", description=(__doc__ or "").partition("\n")[0]
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in (
        ("bind", "bind devices until `restore`"),
        ("restore", "restore all devices of the journal"),
    ):
        own = verbs.add_parser(verb, help=text, description=text)
        own.add_argument("--journal", default=JOURNAL, help="its file (%(default)s)")
        own.add_argument("--connection", default=os.environ.get("SSH_CONNECTION", ""),
                         help="SSH_CONNECTION, where sudo has removed it")  # fmt: skip
        if verb != "restore":
            own.add_argument("addresses", nargs="+", metavar="ADDRESS", help="as 0000:3b:00.0")
            own.add_argument("--driver", choices=USER_DRIVERS, required=True)
    args = parser.parse_args(words)
    args.connection = args.connection.partition(" ")[0]
    # Signals are blocked until all changes are complete or undone.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        if args.verb == "restore":
            restore(args)
        elif not bind(args):
            say("All of them are bound already, by an earlier call; its journal is kept.")
    except BindError as error:
        print(error, file=sys.stderr)
        return error.status
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
