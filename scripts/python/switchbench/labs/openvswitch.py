# SPDX-License-Identifier: BSD-3-Clause
"""The switch of a lab of `kind: ovs`: Open vSwitch with its userspace datapath, a bridge a module.

It needs no kernel module. Database, sockets and logs are in a folder beside the lab's state, and
the machine's own Open vSwitch, if there is one, is neither used nor seen.

    eth0 ==== p1 [TBF, IFB: as in a lab of bridges] -- wire w-p1 -- tap o-p1 -- Open vSwitch

A wire is a bridge of two ports that learns nothing. Open vSwitch takes away the queueing
disciplines of its own ports, so the shapers can't be on these; and were p1 itself one, all ports
would share one packet socket, whose buffer holds 90 frames: they would drop each other's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

from switchbench.labs import namespaces, state
from switchbench.labs.state import LabError, LabFailedError
from switchbench.topology import lab_addresses
from switchbench.topology.file_form import Topology

TUN = Path("/dev/net/tun")
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not in everybody's PATH
_START_S = 30.0
_WIRE_INDEX = 400_000  # beyond those of build.py

# linux/if_tun.h
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000  # IFF_TAP, IFF_NO_PI


@dataclass(frozen=True)
class _Folder:
    """What Open vSwitch has beside the lab's state."""

    lab: str

    @property
    def path(self) -> Path:
        return state.RUN_DIR / f"{self.lab}.ovs"

    @property
    def database(self) -> Path:
        return self.path / "conf.db"

    @property
    def socket(self) -> Path:
        return self.path / "db.sock"

    def log(self, program: str) -> Path:
        return self.path / f"{program}.log"

    def daemon_options(self, program: str) -> list[str]:
        """Return everything that a daemon would else put into the machine's folders."""
        own = [f"--unixctl={self.path / program}.ctl", f"--log-file={self.log(program)}"]
        return [*own, "-vconsole:off", "-vsyslog:off"]


def lacking() -> str | None:
    """Return the first of its programs that is not installed; None: all are."""
    return next((name for name in PROGRAMS if _found(name) is None), None)


def missing() -> str | None:
    """Return the sentence that says what is not installed; None: such a lab can be made."""
    program = lacking()
    if program is None:
        return None
    return (
        f"a lab of kind ovs needs Open vSwitch, and {program} is not installed: "
        "`apt-get install openvswitch-switch`, or take kind bridges"
    )


def _found(program: str) -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    return shutil.which(program, path=path)


def _program(name: str) -> str:
    return _found(name) or name


# --- ports ---


def add_wires(netlink: IPRoute, topology: Topology) -> dict[str, int]:
    """Return a tap and a wire for each interface of the switch; to which wire each belongs."""
    ports = [
        port for module in topology.modules for port in lab_addresses.module_ports(topology, module)
    ]
    masters = {}
    for number, port in enumerate(ports):
        index = _WIRE_INDEX + number
        # Nothing is learnt: what comes in at one end leaves by the other.
        netlink.link(
            "add", index=index, ifname=f"w-{port}", kind="bridge", ifalias=port, state="up",
            br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0, br_ageing_time=0,
        )  # fmt: skip
        tap = _add_tap(_tap(port))
        netlink.link("set", index=tap, mtu=topology.mtu, ifalias=port, master=index, state="up")
        masters[port] = index
    return masters


def _tap(port: str) -> str:
    return f"o-{port}"


def _add_tap(name: str) -> int:
    with TUN.open("rb+", buffering=0) as tun:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_HEADER))
        fcntl.ioctl(tun, _TUNSETPERSIST, 1)
    return socket.if_nametoindex(name)


# --- processes ---


def start(lab: str, topology: Topology) -> None:
    """Start Open vSwitch and wait until it has all taps; `LabError` in its own words."""
    lack = missing()
    if lack is not None:
        raise LabError(lack)
    folder = _Folder(lab)
    folder.path.mkdir(mode=0o700)
    deadline = time.monotonic() + _START_S
    _do([_program("ovsdb-tool"), "create", str(folder.database)], folder)
    remote = f"--remote=punix:{folder.socket}"
    server = _daemon(folder, "ovsdb-server", [str(folder.database), remote])
    while not folder.socket.exists():
        _check(folder, "ovsdb-server", server, deadline)
        time.sleep(0.005)
    _daemon(folder, "ovs-vswitchd", [f"unix:{folder.socket}"])
    _configure(folder, topology)


def release(lab: str) -> None:
    """Remove what the switch of a lab, whose processes have ended, had beside its state."""
    shutil.rmtree(_Folder(lab).path, ignore_errors=True)


def _environment(folder: _Folder) -> dict[str, str]:
    own = dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"), str(folder.path))
    return {**os.environ, **own}


def _daemon(folder: _Folder, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    with folder.log(f"{name}.said").open("wb") as said:
        process: subprocess.Popen[bytes] = namespaces.popen(
            lab_addresses.NAMESPACES / lab_addresses.switch_name(folder.lab),
            [_program(name), *arguments, *folder.daemon_options(name)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=_environment(folder),
            start_new_session=True,
        )
    return process


def _configure(folder: _Folder, topology: Topology) -> None:
    """Add all bridges and ports in one transaction, and wait until the switch has taken it over."""
    words = [_program("ovs-vsctl"), f"--db=unix:{folder.socket}", f"--timeout={_START_S:.0f}"]
    words += ["set", "Open_vSwitch", "."]
    # The machine's cores are the nodes'.
    words += [f"other_config:n-{kind}-threads=1" for kind in ("handler", "revalidator")]
    for number, module in enumerate(topology.modules):
        bridge = f"b{number}"
        words += ["--", "add-br", bridge, "--", "set", "Bridge", bridge]
        words += ["datapath_type=netdev", "fail_mode=standalone", f"external_ids:name={module}"]
        for port in map(_tap, lab_addresses.module_ports(topology, module)):
            words += ["--", "add-port", bridge, port, "--", "set", "Interface", port, "type=tap"]
    _do(words, folder)


def _do(words: Sequence[str], folder: _Folder) -> None:
    """Run one of its tools. A port that can't be had is a word on standard error and no more."""
    done = subprocess.run(
        words, capture_output=True, text=True, env=_environment(folder), check=False
    )
    if done.returncode != 0 or done.stderr.strip():
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise LabFailedError(f"Open vSwitch can't be set up: {said[0]}")


def _check(folder: _Folder, name: str, process: subprocess.Popen[bytes], deadline: float) -> None:
    if process.poll() is not None:
        said = folder.log(f"{name}.said").read_text(errors="replace").strip().splitlines()
        raise LabFailedError(said[-1] if said else f"{name} ended with status {process.returncode}")
    if time.monotonic() > deadline:
        raise LabFailedError(f"{name} is not ready after {_START_S:.0f} s")
