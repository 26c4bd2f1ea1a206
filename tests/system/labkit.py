# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on labs share: names of their own, frames, counters over time, what is left."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
import yaml
from pyroute2 import IPRoute

from switchbench import labs
from switchbench.labs import Lab, LabError, LabNode, devices, namespaces, switches
from switchbench.topology import lab_addresses
from switchbench.topology.topology import PROJECT_LABS

PREFIX = f"test{os.getpid()}"
"""Of every lab's name in this run, so that two runs of the tests don't meet."""
NODES = ("node1", "node2", "node3", "node4")
"""Of the fixture `topology`."""
DATA = Path(__file__).parent / "data"
SO_SNDBUFFORCE = 32  # asm-generic/socket.h
ETHERTYPE = 0x88B5  # IEEE 802 local experimental: no kernel answers it.

_FOLDER = TemporaryDirectory(prefix="sb-tests-")  # gone with this process
T = TypeVar("T")


def own(name: str) -> str:
    """Return one of the project's labs under a name of this run; what else is named stays."""
    topology = PROJECT_LABS / f"{name}.yaml"
    if not topology.is_file():
        return name
    copy = Path(_FOLDER.name) / f"{PREFIX}-{name}.yaml"
    copy.write_bytes(topology.read_bytes())
    return str(copy)


def write_topology(directory: Path, *nodes: str, rate: str = "20M", **more: object) -> Path:
    """Write a small switch with a name of this run: slow, so that cores don't matter."""
    path = directory / f"{PREFIX}-{directory.name[:20]}.yaml"
    topology = {"topology": 1, "rate": rate, "modules": ["switch"]}
    path.write_text(yaml.safe_dump(topology | {"nodes": {name: {} for name in nodes}} | more))
    return path


@contextmanager
def kept(topology: Path | str) -> Iterator[Lab]:
    """Keep a lab up around a run, so that it can be watched and hurt."""
    lab = labs.up(labs.load(own(str(topology))))
    try:
        yield lab
    finally:
        labs.down(lab.name)


def _why_no_lab() -> str:
    if not namespaces.is_privileged():
        return "needs root (the tests of labs without root run all the same)"
    return "; ".join(map(": ".join, devices.missing().items()))


def _why_no_switch() -> str:
    try:
        switches.find_binary()
    except LabError as error:
        return str(error)
    return ""


needs_lab = pytest.mark.skipif(bool(_why_no_lab()), reason=_why_no_lab() or "-")
needs_ovs = pytest.mark.skipif(bool(switches.ovs_lacking()), reason="needs Open vSwitch")
needs_switch = pytest.mark.skipif(bool(_why_no_switch()), reason=_why_no_switch() or "-")


def leftovers() -> list[str]:
    """Return all that labs of this run of the tests have left on the machine."""
    folders = [Path("/run/netns"), Path("/run/switchbench"), Path("/sys/class/net")]
    found = [
        str(path)
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.name.startswith((f"sb-{PREFIX}", PREFIX))
    ]
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if PREFIX.encode() in words:
                found.append(words.decode(errors="replace"))
    return found


# --- the lab's kernel -----------------------------------------------------------------------------


def in_node(lab: Lab, name: str, work: Callable[[], T]) -> T:
    """Do something in a node's namespace; `switch`: in the switch's."""
    place = lab_addresses.NAMESPACES / lab_addresses.namespace_name(lab.name, name)
    return namespaces.inside(place, work)


def over_netlink(lab: Lab, name: str, change: Callable[[IPRoute], T]) -> T:
    """Do something to the network of a node, or of the switch."""

    def work() -> T:
        with IPRoute() as netlink:
            return change(netlink)

    return in_node(lab, name, work)


def set_port(lab: Lab, node: str, **state: object) -> None:
    """Change the switch's port towards a node: `state`, `master`."""
    port = lab_addresses.switch_port(lab.topology.node(node))
    over_netlink(lab, "switch", lambda link: link.link("set", index=index_of(link, port), **state))


def index_of(netlink: IPRoute, interface: str) -> int:
    """Return an interface's number."""
    return int(netlink.link_lookup(ifname=interface)[0])


def node_pid(lab_name: str, node: str) -> int:
    """Return the only process in a node's namespace."""
    (pid,) = namespaces.processes([lab_addresses.namespace_name(lab_name, node)])
    return pid


@dataclass(frozen=True)
class PortCounters:
    """Frames at the switch port of one node, as the switch's kernel counts them.

    frames_from_node -> [queue: dropped_from_node] -> bridge -> [queue: dropped_to_node]
        -> frames_to_node

    What a queue still holds is in neither of its ends: read after the drain. `host_dropped` were
    lost because this machine was too slow, both ways: no switch would have done that.
    """

    frames_from_node: int
    dropped_from_node: int
    frames_to_node: int
    dropped_to_node: int
    host_dropped: int

    def __sub__(self, earlier: PortCounters) -> PortCounters:
        pairs = zip(astuple(self), astuple(earlier), strict=True)
        return PortCounters(*(now - before for now, before in pairs))


def counters(lab: Lab) -> dict[str, PortCounters]:
    """Return the counters of every node's port now, read in the switch's namespace only."""

    def read(netlink: IPRoute) -> dict[str, PortCounters]:
        links = {link.get("ifname"): (link["index"], link.get("stats64")) for link in
                 netlink.get_links()}  # fmt: skip
        drops: dict[int, int] = {}
        for qdisc in netlink.get_qdiscs():
            if qdisc.get("kind") == "tbf":
                queue = qdisc.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")
                drops[qdisc["index"]] = int(queue["drops"])
        found = {}
        for node in lab.topology.nodes:
            index, port = links[lab_addresses.switch_port(node)]
            inbound, behind = links.get(lab_addresses.inbound_shaper(node), (0, None))
            devices = [port, behind] if behind else [port]
            found[node.name] = PortCounters(
                frames_from_node=port["rx_packets"],
                dropped_from_node=drops.get(inbound, 0),
                frames_to_node=port["tx_packets"],
                dropped_to_node=drops.get(index, 0),
                host_dropped=sum(one["rx_dropped"] + one["tx_dropped"] for one in devices),
            )
        return found

    return over_netlink(lab, "switch", read)


def subtracted(
    now: Mapping[str, PortCounters], earlier: Mapping[str, PortCounters]
) -> dict[str, PortCounters]:
    """Return what every port counted in between."""
    return {name: port - earlier[name] for name, port in now.items()}


def frames_from_nodes(lab: Lab) -> int:
    """Return all frames that the switch's ports got from the nodes so far."""
    return sum(port.frames_from_node for port in counters(lab).values())


class Trace:
    """What the nodes send into the switch, by its own counters, before and after a fault."""

    def __init__(self, lab: Lab, fault: Callable[[], object], for_s: float = 1.0) -> None:
        """Sample for a moment, do what `fault` does, and sample for `for_s` seconds."""
        earlier = frames_from_nodes(lab)
        time.sleep(0.1)
        assert frames_from_nodes(lab) > earlier, "nothing is sent before the fault"
        fault()
        fault_s = time.monotonic()
        self._samples: list[tuple[float, int]] = []
        while not self._samples or self._samples[-1][0] < for_s:
            self._samples.append((time.monotonic() - fault_s, frames_from_nodes(lab)))
            time.sleep(0.01)
        last = self._samples[-1][1]
        stopped_s = next(at_s for at_s, frames in self._samples if frames == last)
        print(f"silent {1000 * stopped_s:.0f} ms after the fault")

    def frames_after(self, after_s: float) -> int:
        """Return the frames that were sent later than this."""
        return self._samples[-1][1] - next(n for at_s, n in self._samples if at_s >= after_s)


# --- frames of our own ----------------------------------------------------------------------------


def packet_socket(node: LabNode) -> socket.socket:
    """Return a packet socket for every frame on the node's interface under test."""

    def make() -> socket.socket:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind((node.iface, 3))
        # Frames in the switch's queues still count against their sender's socket.
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
        return sock

    return namespaces.inside(node.namespace, make)


def frame(source: LabNode, destination_mac: str, size: int) -> bytes:
    """Return a frame of `size` bytes as Linux counts them (without FCS)."""
    addresses = b"".join(
        bytes.fromhex(mac.replace(":", "")) for mac in (destination_mac, source.mac)
    )
    return (addresses + struct.pack("!H", ETHERTYPE)).ljust(size, b"\0")


def learn(nodes: list[LabNode]) -> None:
    """Let every module learn where the nodes are, so that nothing is flooded."""
    for node in nodes:
        with packet_socket(node) as sock:
            sock.send(frame(node, "ff:ff:ff:ff:ff:ff", 60))
    time.sleep(0.1)


def send_at_once(source: LabNode, destination: LabNode, size: int, count: int) -> None:
    """Put frames into the source's queue as quickly as the machine can."""
    content = frame(source, destination.mac, size)
    with packet_socket(source) as sock:
        for _ in range(count):
            sock.send(content)


def heard(lab: Lab, a: str, b: str, attribute: str) -> bool:
    """Return whether a datagram gets from node to node between their addresses of that kind."""
    family = socket.AF_INET6 if attribute == "ipv6" else socket.AF_INET

    def bound(name: str) -> socket.socket:
        node = lab.node(name)

        def make() -> socket.socket:
            sock = socket.socket(family, socket.SOCK_DGRAM)
            sock.bind((getattr(node, attribute), 7600))
            sock.settimeout(3)
            return sock

        return namespaces.inside(node.namespace, make)

    with bound(a) as source, bound(b) as destination:
        source.sendto(b"ping", (getattr(lab.node(b), attribute), 7600))
        return destination.recv(64) == b"ping"


# --- another process ------------------------------------------------------------------------------


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs `code` in an interpreter like this one."""
    return [sys.executable, "-c", code, *arguments]


HOLD = """
import sys
from switchbench.labs import load, session
with session(load(sys.argv[1], {"kind": sys.argv[3]}), sys.argv[2]):
    print("up", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(topology: str, name: str, kind: str = "bridges") -> Iterator[subprocess.Popen[bytes]]:
    """Let another process hold a lab of a topology under a name until its input ends."""
    words = python(HOLD, topology, name, kind)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        yield holder
