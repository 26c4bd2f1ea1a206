# SPDX-License-Identifier: BSD-3-Clause
"""Shapers that charge every frame what it costs on a wire: rates are at layer 1.

TBF behind a size table ("stab"): a frame of n bytes as Linux counts them (without FCS) is charged
max(n + 24, 84). Linux takes VLAN tags out of frames before it counts, so a tagged frame is charged
4 bytes too little. The netlink messages are laid out as in linux/pkt_sched.h; pyroute2's own TBF
knows neither stab nor an exact burst.
"""

from __future__ import annotations

import array

from pyroute2 import IPRoute, protocols
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, nla
from pyroute2.netlink.rtnl import RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from switchbench.topology.direction import ETHERNET_HEADER_AND_TAG, Shaper
from switchbench.topology.file_form import LAYER1_OVERHEAD

SHAPER_HANDLE = 0x10000

_LAYER1_LEAST_BYTES = 84  # A frame of 64 bytes with preamble, start delimiter and gap.
_LINKLAYER_ETHERNET = 1
_CLSACT_INGRESS = 0xFFFFFFF2


class _ShaperMessage(tcmsg):  # type: ignore[misc]
    nla_map = (
        ("TCA_UNSPEC", "none"),
        ("TCA_KIND", "asciiz"),
        ("TCA_OPTIONS", "tbf"),
        ("TCA_STATS", "stats"),
        ("TCA_XSTATS", "hex"),
        ("TCA_RATE", "hex"),
        ("TCA_FCNT", "hex"),
        ("TCA_STATS2", "hex"),
        ("TCA_STAB", "stab"),
    )

    class tbf(nla):  # type: ignore[misc]
        nla_map = (
            ("TCA_TBF_UNSPEC", "none"),
            ("TCA_TBF_PARMS", "rates"),
            ("TCA_TBF_RTAB", "hex"),
            ("TCA_TBF_PTAB", "hex"),
            ("TCA_TBF_RATE64", "uint64"),
            ("TCA_TBF_PRATE64", "uint64"),
            ("TCA_TBF_BURST", "uint32"),
        )

        class rates(nla):  # type: ignore[misc]
            fields = (
                ("cell_log", "B"),
                ("linklayer", "B"),
                ("overhead", "H"),
                ("cell_align", "h"),
                ("mpu", "H"),
                ("rate", "I"),
                ("peak", "12s"),
                ("limit", "I"),
                ("buffer", "I"),
                ("mtu", "I"),
            )

    class stab(nla):  # type: ignore[misc]
        nla_map = (
            ("TCA_STAB_UNSPEC", "none"),
            ("TCA_STAB_BASE", "base"),
            ("TCA_STAB_DATA", "cdata"),
        )

        class base(nla):  # type: ignore[misc]
            fields = (
                ("cell_log", "B"),
                ("size_log", "B"),
                ("cell_align", "h"),
                ("overhead", "i"),
                ("linklayer", "I"),
                ("mpu", "I"),
                ("mtu", "I"),
                ("tsize", "I"),
            )


def _size_table(mtu: int) -> dict[str, list[tuple[str, object]]]:
    """Return a table with an entry for each length: tc's own has one in 4 bytes and rounds up."""
    entries = mtu + ETHERNET_HEADER_AND_TAG + LAYER1_OVERHEAD + 1
    sizes = array.array("H", (max(length, _LAYER1_LEAST_BYTES) for length in range(entries)))
    base = {
        "overhead": LAYER1_OVERHEAD,
        "linklayer": _LINKLAYER_ETHERNET,
        "mpu": _LAYER1_LEAST_BYTES,
        "mtu": entries,
        "tsize": entries,
    }
    return {"attrs": [("TCA_STAB_BASE", base), ("TCA_STAB_DATA", sizes.tobytes())]}


def add(netlink: IPRoute, ifindex: int, shaper: Shaper) -> None:
    """Shape what leaves by the interface."""
    rate = shaper.rate_bps // 8
    rates = {
        "linklayer": _LINKLAYER_ETHERNET,
        "rate": min(rate, 0xFFFFFFFF),
        "peak": bytes(12),
        "limit": shaper.queue_bytes,
    }
    options = [
        ("TCA_TBF_PARMS", rates),
        ("TCA_TBF_RATE64", rate),
        ("TCA_TBF_BURST", shaper.burst_bytes),
    ]
    message = _ShaperMessage()
    message["index"] = ifindex
    message["handle"] = SHAPER_HANDLE
    message["parent"] = TC_H_ROOT
    message["attrs"] = [
        ("TCA_KIND", "tbf"),
        ("TCA_OPTIONS", {"attrs": options}),
        ("TCA_STAB", _size_table(shaper.mtu)),
    ]
    message["header"]["type"] = RTM_NEWQDISC
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    netlink.nlm_request_batch([message])


def redirect(netlink: IPRoute, ifindex: int, ifb_index: int) -> None:
    """Lead all that comes in by the interface through the IFB, and from there on as before."""
    netlink.tc("add", "clsact", ifindex)
    netlink.tc(
        "add-filter",
        "u32",
        ifindex,
        parent=_CLSACT_INGRESS,
        prio=1,
        protocol=protocols.ETH_P_ALL,
        target=0x10000,
        keys=["0x0/0x0+0"],
        action={
            "kind": "mirred",
            "direction": "egress",
            "action": "redirect",
            "ifindex": ifb_index,
        },
    )
