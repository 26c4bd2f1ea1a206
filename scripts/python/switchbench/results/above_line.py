# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidths of steps that no line between their ranks carries: what is wrong with them.

A window's rates are watched where they are made (summary.py); steps have none, but what HPCC and
IMB call bandwidth is a message by its time. A lab's shapers have a bucket (`burst`) that is full
after silence, and a message that waits for another is often sent after silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import Site
from .measures import LINE_ALARM_SHARE

Entry = dict[str, Any]

_HPCC = (
    "MaxPingPongBandwidth_GBytes",
    "NaturallyOrderedRingBandwidth_GBytes",
    "RandomlyOrderedRingBandwidth_GBytes",
)
# What IMB's MB/s of a function counts by what leaves (and enters) a port: both of the latter two.
_IMB_WAYS = {"pingpong": 1, "pingping": 1, "sendrecv": 2, "exchange": 2}


def above_line(steps: Entry, site: Site) -> Iterator[str]:
    """A sentence for each figure of a summary's `steps` above the fastest line of its network."""
    lines = {name: _fastest_bps(site, name) for name in site.networks}
    for what, network, bps in _bandwidths(steps):
        line_bps = lines.get(network)
        if line_bps and bps > line_bps * (1 + LINE_ALARM_SHARE):
            yield (
                f"{what}: {bps / 8e9:.4g} GB/s is above the line rate of network {network}, "
                f"{line_bps / 8e9:.4g} GB/s: {_why(site)}"
            )


def _fastest_bps(site: Site, network: str) -> int | None:
    """None where a port's line is not known."""
    rates = [port.line_rate_bps for port in site.networks[network]]
    return max(rates) if all(rates) else None


def _why(site: Site) -> str:
    if site.lab and not site.guests:
        return (
            "a shaped port lets `burst` pass at once after silence; a smaller `site.burst` holds "
            "messages to the line (doc/hpcc-imb.md)"
        )
    return "no line carries that; the line rate is wrong or the count is"


def _bandwidths(steps: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """What it is, its network, and bit/s that left a port."""
    for suite in steps["hpcc"]:
        for name in _HPCC:
            if suite["outputs"][name]:
                yield name, suite["network"], suite["outputs"][name] * 8e9
    for function in steps["functions"]:
        ways = _IMB_WAYS.get(function["pattern"])
        for point in function["points"] if ways else ():
            rate = point["imb"]["mbytes_s"]
            if ways and rate:
                yield (
                    f"{function['pattern']} of {point['size']} bytes over {function['transport']}",
                    function["network"],
                    rate / ways * 8e6,
                )
