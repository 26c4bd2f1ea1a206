# SPDX-License-Identifier: BSD-3-Clause
"""Faults planted into a lab of bridges by the kernel: lost frames, slow directions, deaf tables.

Each function works on one direction of one cable of a lab that is up, from outside of the product:
a BPF program at an egress hook drops frames (by chance, above a size, or of one of several parallel
links), `tc` changes a shaper, `bridge` switches learning off.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess

from pyroute2 import IPRoute

from switchbench.labs import Lab, namespaces
from switchbench.topology import lab_addresses

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _SCHED_CLS = 5, 3
_CLSACT_EGRESS = 0xFFFFFFF3
_DROP, _GO_ON = 2, -1  # TC_ACT_SHOT, TC_ACT_UNSPEC

Instruction = tuple[int, int, int, int, int]  # code, destination, source, offset, immediate

_EXITS: list[Instruction] = [
    (0xB7, 0, 0, 0, _DROP),
    (0x95, 0, 0, 0, 0),
    (0xB7, 0, 0, 0, _GO_ON),
    (0x95, 0, 0, 0, 0),
]


def by_chance(share: float) -> list[Instruction]:
    """Drop each frame with this probability."""
    threshold = min(round(share * 2**32), 2**32 - 1)
    return [(0x85, 0, 0, 0, 7), (0x36, 0, 0, 2, threshold), *_EXITS]


def above(size: int) -> list[Instruction]:
    """Drop the frames that are longer than `size` bytes, without FCS."""
    return [(0x61, 0, 1, 0, 0), (0xB6, 0, 0, 2, size), *_EXITS]


def of_link(link: int, links: int, share: float) -> list[Instruction]:
    """Drop by chance the frames of those flows that a hash of addresses puts on one link."""
    threshold = min(round(share * 2**32), 2**32 - 1)
    return [
        (0xBF, 6, 1, 0, 0),  # r6: the frame, for the two loads below
        (0x30, 0, 0, 0, 5),  # the last byte of the destination
        (0xBF, 7, 0, 0, 0),
        (0x27, 7, 0, 0, 5),
        (0x30, 0, 0, 0, 11),  # ... of the source
        (0x0F, 7, 0, 0, 0),
        (0x97, 7, 0, 0, links),
        (0x55, 7, 0, 4, link),  # another link: on to the last exit
        (0x85, 0, 0, 0, 7),
        (0x36, 0, 0, 2, threshold),
        *_EXITS,
    ]


def _load(program: list[Instruction]) -> int:
    code = b"".join(
        struct.pack("<BBhI", op, src << 4 | dst, offset, value & 0xFFFFFFFF)
        for op, dst, src, offset, value in program
    )
    text, log = ctypes.create_string_buffer(code), ctypes.create_string_buffer(1 << 16)
    licence = ctypes.create_string_buffer(b"Dual BSD/GPL")
    attributes = struct.pack(
        "<IIQQIIQII",
        _SCHED_CLS,
        len(program),
        ctypes.addressof(text),
        ctypes.addressof(licence),
        1,
        len(log),
        ctypes.addressof(log),
        0,
        0,
    )
    buffer = ctypes.create_string_buffer(attributes)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(_SYS_BPF[platform.machine()], _PROG_LOAD, buffer, len(attributes))
    if fd < 0:
        code_ = ctypes.get_errno()
        raise OSError(code_, f"{os.strerror(code_)}: {log.value.decode()[-400:]}")
    return int(fd)


def drop(lab: Lab, interface: str, program: list[Instruction]) -> None:
    """Let a program decide about every frame that leaves by an interface of the switch."""

    def attach() -> None:
        fd = _load(program)
        try:
            with IPRoute() as netlink:
                (index,) = netlink.link_lookup(ifname=interface)
                kinds = [qdisc.get_attr("TCA_KIND") for qdisc in netlink.get_qdiscs(index)]
                if "clsact" not in kinds:
                    netlink.tc("add", "clsact", index)
                netlink.tc(
                    "add-filter", "bpf", index, ":1", fd=fd, name="fault", parent=_CLSACT_EGRESS,
                    classid=1, direct_action=True,
                )  # fmt: skip
        finally:
            os.close(fd)

    namespaces.inside(lab_addresses.NAMESPACES / lab_addresses.switch_name(lab.name), attach)


def _in_switch(lab: Lab, *words: str) -> None:
    subprocess.run(
        ["ip", "netns", "exec", lab_addresses.switch_name(lab.name), *words],
        check=True,
        capture_output=True,
    )


def limit(lab: Lab, interface: str, rate_bps: int, burst_bytes: int = 8192) -> None:
    """Lower the rate of an interface's shaper (layer 1)."""
    _in_switch(
        lab, "tc", "qdisc", "change", "dev", interface, "root", "handle", "1:", "tbf",
        "rate", f"{rate_bps}bit", "burst", str(burst_bytes), "limit", "65536",
    )  # fmt: skip


def stop_learning(lab: Lab, interface: str) -> None:
    """Let a bridge port forget the addresses behind it: frames for them are flooded."""
    _in_switch(lab, "bridge", "link", "set", "dev", interface, "learning", "off")
    _in_switch(lab, "ip", "link", "set", "dev", interface, "type", "bridge_slave", "fdb_flush")
