# SPDX-License-Identifier: BSD-3-Clause
"""Switch processes of a lab, modelled switches or Open vSwitch, in the switch's namespace.

A lab of `kind: model` has one switch process per module. Each switch process reads commands from a
named pipe and writes its records to a file; both are beside the lab's state. A switch ends when its
pipe is closed. In a lab that `lab up` keeps, the switch itself holds the pipe open. Otherwise this
process holds it open, so that the switch always ends with this process.

    node's process -- memif -------------------.
                                                switchbench-switch -- memif -- the next module's
    node's eth0 ==== p1 in its namespace ------'

A lab of `kind: ovs` has Open vSwitch with its userspace datapath, which needs no kernel module, and
one bridge per module. Database, sockets and logs are in a folder beside the lab's state. The
machine's own Open vSwitch, if there is one, is not used.

    eth0 ==== p1 [TBF, IFB: as in a lab of bridges] -- wire w-p1 -- tap o-p1 -- Open vSwitch

A wire is a Linux bridge with two ports and without address learning. Open vSwitch removes the
queueing disciplines of its own ports, so the shapers cannot be on these. If p1 itself were a port
of Open vSwitch, all ports would share one packet socket. Its buffer holds 90 frames, so traffic of
one port would cause drops at others.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.programs import SWITCH
from ..topology import lab_addresses
from ..topology.form import (
    UNSHAPED,
    AttachedHost,
    Behaviour,
    Cable,
    Topology,
    TopologyKeys,
    loop_cables,
)
from . import namespaces, state
from .state import LabError, LabFailedError

if TYPE_CHECKING:
    from pyroute2 import IPRoute

TRUTH = "switch.ndjson"  # file in a run's results directory with the records of the lab's switches

_SILENCE_S = 30.0  # maximum time to a switch's next record
_TRUNK_NUMBER = 70_000  # first device number of trunks, above all device numbers of nodes
_PIPE_BYTES = 1 << 20  # capacity of the command pipe, larger than any switch document

# By lab: command pipes of the modules' switches, held open by this process to keep these running.
_held: dict[str, list[int]] = {}

Record = dict[str, Any]  # record that a switch writes


def _file(lab: str, module: int, suffix: str) -> Path:
    """Return the path of a module's file with a suffix: in, ndjson, log or sock.

    The files are beside the lab's state file: command pipe, records, log and socket.
    """
    return state.RUN_DIR / f"{lab}.m{module}.{suffix}"


def _memif(number: int, role: str, socket: Path) -> str:
    common = "socket-abstract=no,rsize=10"
    return f"net_memif{number},role={role},id={number},socket={socket},{common}"


def node_device(lab: str, topology: Topology, node: AttachedHost) -> str:
    """Return the DPDK device (memif) that connects a node's process to its switch port."""
    module = topology.modules.index(node.module)
    return _memif(node.index, "client", _file(lab, module, "sock"))


def find_binary() -> Path:
    """Return the path of the switch's program; `LabError` where it is missing."""
    return SWITCH.find(LabError)


# --- descriptions ---


def descriptions(lab: str, topology: Topology) -> Iterator[dict[str, object]]:
    """Yield the switch document of each module (doc/developer/switch.md), in the modules' order."""
    model = topology.model or Behaviour()
    # Busy polling needs a core for every node's worker and every switch.
    polls = len(os.sched_getaffinity(0)) > len(topology.nodes) + len(topology.modules) + 1
    for number, module in enumerate(topology.modules):
        # A fault that names ports is in the module of these ports. A fault without ports is in the
        # module that it names, else in the first one.
        faults = []
        for fault in model.faults:
            place = fault.module or topology.modules[0]
            if topology.device is None and fault.places:
                place = topology.node(fault.places[0]).module
            faults += [fault] if place == module else []
        at = {node.name: node.port for node in topology.nodes} if topology.device else {}
        yield {
            **_written(model, "trunk_capacity", "faults"),
            "faults": [
                {key: at.get(str(value), value) for key, value in _written(fault, "module").items()}
                for fault in faults
            ],
            "name": f"{lab}-{module}",
            "mtu": topology.mtu,
            "poll": polls,
            "ports": [*_ports(lab, topology, number)],
        }


def _written(keys: TopologyKeys, *without: str) -> dict[str, object]:
    return keys.model_dump(by_alias=True, exclude_none=True, exclude=set(without))


def _ports(lab: str, topology: Topology, number: int) -> Iterator[dict[str, object]]:
    """Yield the ports of a module's switch document: ports of nodes, then ports of trunks.

    All ports of a device have their own names; a port without a node has no link. In a chain, each
    pair of ports has its own VLAN, and loop cables connect the VLANs.
    """
    if topology.device is not None:
        nodes = {node.port: node for node in topology.nodes}
        cables = loop_cables(topology.device, nodes)
        for place, name in enumerate(topology.device.ports):
            node = nodes.get(name)
            port = _port(node or topology.nodes[0]) | {"name": name}
            port |= {"vlan": place // 2 + 1} if topology.device.chain else {}
            if name in cables:
                port["cable"] = cables[name]
            if node is not None:
                port["vdev"] = _memif(node.index, "server", _file(lab, 0, "sock"))
                port["iface"] = lab_addresses.switch_port(node)
            yield port
        return
    module = topology.modules[number]
    capacity = topology.model.trunk_capacity if topology.model else None
    for node in (node for node in topology.nodes if node.module == module):
        vdev = _memif(node.index, "server", _file(lab, number, "sock"))
        yield _port(node) | {"vdev": vdev, "iface": lab_addresses.switch_port(node)}
    for i, trunk in enumerate(topology.trunks):
        if module not in (trunk.a, trunk.b):
            continue
        first = min(topology.modules.index(end) for end in (trunk.a, trunk.b))
        role = "server" if number == first else "client"
        vdev = _memif(_TRUNK_NUMBER + i, role, state.RUN_DIR / f"{lab}.t{i}.sock")
        port = _port(trunk) | {"vdev": vdev, "trunk": True}
        if capacity is not None:
            port["rate_bps"] = capacity
        yield port


def _port(cable: Cable) -> dict[str, object]:
    rate = {"rate_bps": cable.rate_bps} if cable.rate_bps != UNSHAPED else {}
    return {"name": cable.name, "buffer": cable.queue_bytes, **rate}


# --- processes ---


def start(lab: str, topology: Topology, kept: bool) -> None:
    """Start the modelled switches of a lab, and wait until they are ready.

    Raise `LabError` with the message of a switch that fails.
    """
    binary = find_binary()
    for number, description in enumerate(descriptions(lab, topology)):
        # One after the other: a trunk's second end can only be opened after its first end.
        text = (json.dumps({"switch": description}) + "\n").encode()
        commands = _file(lab, number, "in")
        os.mkfifo(commands, 0o600)
        with contextlib.ExitStack() as stack:
            # Opened for reading and writing at first: the other end may not be open yet.
            both = os.open(commands, os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, both)
            fcntl.fcntl(both, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            os.write(both, text)
            reader = os.open(commands, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, reader)
            if not kept:
                writer = os.open(commands, os.O_WRONLY | os.O_CLOEXEC)
                _held.setdefault(lab, []).append(writer)
            process = namespaces.popen(
                lab_addresses.NAMESPACES / lab_addresses.switch_name(lab),
                [str(binary)],
                stdin=both if kept else reader,
                stdout=stack.enter_context(_file(lab, number, "ndjson").open("wb")),
                stderr=stack.enter_context(_file(lab, number, "log").open("wb")),
                start_new_session=True,
            )
        _await_record("ready", lab, number, 0, process)


def _last_words(log: Path) -> str:
    """Return the last line of a log, or ""."""
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return said[-1] if said else ""


def _await_record(
    kind: str, lab: str, number: int, offset: int, process: subprocess.Popen[bytes] | None = None
) -> list[Record]:
    """Wait for a record of type `kind` of a switch; return its records from file offset `offset`.

    Lines are read while the switch writes them, because a large report takes time. Raise
    LabFailedError where no line comes for some time, or where the switch's `process` has ended.
    """
    records: list[Record] = []
    last_s, is_whole = time.monotonic(), False
    while time.monotonic() < last_s + _SILENCE_S:
        with _file(lab, number, "ndjson").open("rb") as file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                records.append(json.loads(line))
                last_s = time.monotonic()
                is_whole |= records[-1]["type"] == kind
        if is_whole:
            return records
        if process is not None and process.poll() is not None:
            ended = f"{SWITCH.name} ended with status {process.returncode}"
            raise LabFailedError(_last_words(_file(lab, number, "log")) or ended)
        time.sleep(0.005)
    raise LabFailedError(
        f"the modelled switch ({SWITCH.name}) has written no record `{kind}` for {_SILENCE_S:.0f} s"
    )


def release(lab: str, topology: Topology) -> None:
    """Close the pipes of a lab's ended switches, and remove all files of switches."""
    for writer in _held.pop(lab, []):
        os.close(writer)
    for number in range(len(topology.modules)):
        for suffix in ("in", "ndjson", "log", "sock"):
            _file(lab, number, suffix).unlink(missing_ok=True)
    for number in range(len(topology.trunks)):
        (state.RUN_DIR / f"{lab}.t{number}.sock").unlink(missing_ok=True)
    shutil.rmtree(_ovs_folder(lab), ignore_errors=True)


# --- counters of modelled switches ---


def check(lab: str, topology: Topology) -> None:
    """Raise LabFailedError if one of a lab's modelled switches has ended."""
    _say(lab, topology, "")


def clear(lab: str, topology: Topology) -> None:
    """Reset the counters of a lab's switches, and restart their faults from the seed."""
    _say(lab, topology, "clear")


def report(lab: str, topology: Topology) -> list[Record]:
    """Return records with the present counters of a lab's switches, one module after the other."""
    paths = [_file(lab, number, "ndjson") for number in range(len(topology.modules))]
    before = [path.stat().st_size if path.exists() else 0 for path in paths]
    _say(lab, topology, "report")
    return [
        record
        for number, offset in enumerate(before)
        for record in _await_record("total", lab, number, offset)
    ]


def _say(lab: str, topology: Topology, word: str) -> None:
    """Write a command to each switch; an empty command only checks that the switch runs."""
    for number, module in enumerate(topology.modules):
        try:
            commands = _file(lab, number, "in")
            pipe = os.open(commands, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # no process reads commands
            said = _last_words(_file(lab, number, "log"))
            words = f"; its last output: {said}" if said else ""
            raise LabFailedError(
                f"module {module} of lab {lab}, a modelled switch, has ended{words}"
            ) from None
        with os.fdopen(pipe, "w") as file:
            file.write(f"{word}\n" if word else "")


TUN = Path("/dev/net/tun")
OVS_PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not in every user's PATH
_START_S = 30.0
_WIRE_INDEX = 400_000  # interface numbers of wires, above all numbers in devices.py

# linux/if_tun.h
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000  # IFF_TAP, IFF_NO_PI


def _ovs_folder(lab: str) -> Path:
    """Return the folder of Open vSwitch's files beside the lab's state."""
    return state.RUN_DIR / f"{lab}.ovs"


def ovs_lacking() -> str | None:
    """Return the first program of Open vSwitch that is not installed; None where all are."""
    return next((name for name in OVS_PROGRAMS if _found(name) is None), None)


def _found(program: str) -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    return shutil.which(program, path=path)


def _program(name: str) -> str:
    return _found(name) or name


# --- ports ---


def add_wires(netlink: IPRoute, topology: Topology) -> dict[str, int]:
    """Add a tap interface and a wire (a bridge of two ports) for each interface of the switch.

    Return the interface number of the wire by the switch's interface.
    """
    ports = [
        port for module in topology.modules for port in lab_addresses.module_ports(topology, module)
    ]
    masters = {}
    for number, port in enumerate(ports):
        index = _WIRE_INDEX + number
        # No learning: a frame that enters at one end leaves by the other.
        netlink.link(
            "add", index=index, ifname=f"w-{port}", kind="bridge", ifalias=port, state="up",
            br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0, br_ageing_time=0,
        )  # fmt: skip
        with TUN.open("rb+", buffering=0) as tun:
            name = _tap(port).encode()
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", name, _TAP_WITHOUT_HEADER))
            fcntl.ioctl(tun, _TUNSETPERSIST, 1)
        tap = socket.if_nametoindex(_tap(port))
        netlink.link("set", index=tap, mtu=topology.mtu, ifalias=port, master=index, state="up")
        masters[port] = index
    return masters


def _tap(port: str) -> str:
    return f"o-{port}"


# --- processes ---


def start_ovs(lab: str, topology: Topology) -> None:
    """Start Open vSwitch for a lab, and wait until it has opened all tap interfaces.

    Raise `LabError` with the message of Open vSwitch where this fails.
    """
    program = ovs_lacking()
    if program is not None:
        raise LabError(
            f"a lab of kind ovs needs Open vSwitch, and {program} is not installed: "
            "`apt-get install openvswitch-switch`, or use a lab of kind bridges"
        )
    folder = _ovs_folder(lab)
    folder.mkdir(mode=0o700)
    database, socket = folder / "conf.db", folder / "db.sock"
    deadline = time.monotonic() + _START_S
    _do([_program("ovsdb-tool"), "create", str(database)], folder)
    server = _daemon(lab, "ovsdb-server", [str(database), f"--remote=punix:{socket}"])
    while not socket.exists():
        if server.poll() is not None:
            ended = f"ovsdb-server ended with status {server.returncode}"
            raise LabFailedError(_last_words(folder / "ovsdb-server.said") or ended)
        if time.monotonic() > deadline:
            raise LabFailedError(f"ovsdb-server is not ready after {_START_S:.0f} s")
        time.sleep(0.005)
    _daemon(lab, "ovs-vswitchd", [f"unix:{socket}"])
    words = [_program("ovs-vsctl"), f"--db=unix:{socket}", f"--timeout={_START_S:.0f}"]
    words += ["set", "Open_vSwitch", "."]
    # One thread each, because the machine's cores belong to the nodes.
    words += [f"other_config:n-{kind}-threads=1" for kind in ("handler", "revalidator")]
    for number, module in enumerate(topology.modules):
        bridge = f"b{number}"
        words += ["--", "add-br", bridge, "--", "set", "Bridge", bridge]
        words += ["datapath_type=netdev", "fail_mode=standalone", f"external_ids:name={module}"]
        for port in map(_tap, lab_addresses.module_ports(topology, module)):
            words += ["--", "add-port", bridge, port, "--", "set", "Interface", port, "type=tap"]
    _do(words, folder)  # waits for the switch


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"), str(folder))


def _daemon(lab: str, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a daemon of Open vSwitch in the lab, with its files in the lab's folder."""
    folder = _ovs_folder(lab)
    own = [f"--unixctl={folder / name}.ctl", f"--log-file={folder / name}.log"]
    with (folder / f"{name}.said").open("wb") as said:
        return namespaces.popen(
            lab_addresses.NAMESPACES / lab_addresses.switch_name(lab),
            [_program(name), *arguments, *own, "-vconsole:off", "-vsyslog:off"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=_environment(folder),
            start_new_session=True,
        )


def _do(words: Sequence[str], folder: Path) -> None:
    """Run a tool of Open vSwitch; `LabFailedError` for a failure or any line on standard error."""
    done = subprocess.run(
        words, capture_output=True, text=True, env=_environment(folder), check=False
    )
    if done.returncode != 0 or done.stderr.strip():
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise LabFailedError(f"Open vSwitch can't be set up: {said[0]}")
