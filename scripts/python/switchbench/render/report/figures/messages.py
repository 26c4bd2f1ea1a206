# SPDX-License-Identifier: BSD-3-Clause
"""Latency and bandwidth against message size (Sokolowski and Grosu 2004, Figures 9 and 10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....analysis.data import Measured
from ....base import format
from ....base.format import unit_for
from ...tables import sections
from ..chart import ChartAxis, ChartSpec, Panel, Trace
from ..figure import DASHES, MARKERS, PALETTE, Figure, gaps
from .series import Entry, by

LATENCY_IS = (
    "Half the time of a round trip of one message, in microseconds: the mean over all flows and "
    "repeats; the cursor shows median, 99 % and extremes. Both axes are logarithmic. "
    "(Sokolowski and Grosu 2004, Figure 10)"
)
BANDWIDTH_IS = (
    "Message size by half the mean round trip: payload, one way, one message at a time per flow. "
    "Both axes are logarithmic. (Sokolowski and Grosu 2004, Figure 9)"
)


def _panels(measured: Measured) -> Iterator[Panel]:
    """Each pattern whose messages had more than one size."""
    curves = [curve for curve in measured.summary["messages"]["curves"] if len(curve["points"]) > 1]
    kinds = by(curves, format.pattern)
    for number, (pattern, some) in enumerate(kinds.items(), start=1):
        unit = unit_for(curve["peak_mbps"] for curve in some)
        drawn = list(_styled(some, unit.scale))
        yield Panel(pattern, drawn, f"-{number}", unit.name)


def _styled(curves: Sequence[Entry], scale: float) -> Iterator[Trace]:
    """Yield curves: colour says the path, dash and marker how many nodes.

    Where one of them is the same in all, all three tell the other.
    """
    paths = list(dict.fromkeys(_path(curve) for curve in curves))
    counts = sorted({curve["ranks"] for curve in curves})
    networks = {curve["network"] for curve in curves}
    for curve in sorted(curves, key=lambda curve: (paths.index(_path(curve)), curve["ranks"])):
        path, ranks = paths.index(_path(curve)), counts.index(curve["ranks"])
        color = PALETTE[(path if len(paths) > 1 else ranks) % len(PALETTE)]
        dash = DASHES[(ranks if len(counts) > 1 else path) % len(DASHES)]
        symbol = MARKERS[(path * len(counts) + ranks) % len(MARKERS)]
        parts = [curve["transport"]] if len(paths) > 1 else []
        parts += [curve["network"]] if len(networks) > 1 else []
        parts += [format.of(curve["ranks"], "node")] if len(counts) > 1 or not parts else []
        points = curve["points"]
        shown = {
            "size": [point["size"] for point in points],
            "words": [format.size_words(point["size"]) for point in points],
            "bandwidth": gaps([point["bandwidth_mbps"] for point in points]) * scale,
        } | {
            name: gaps([point["latency_us"][name] for point in points])
            for name in ("mean", "p50", "p99", "min", "max")
        }
        style = {
            "mode": "lines+markers",
            "legendgroup": _path(curve),
            "line": {"color": color, "dash": dash},
            "marker": {"color": color, "symbol": symbol, "size": 8},
        }
        yield Trace(", ".join(parts), shown, more=style)


def _path(curve: Entry) -> str:
    return f"{curve['transport']} in {curve['network']}"


_SIZE = ChartAxis("Message size", "size", "sizes")
_BANDWIDTH = ChartSpec(
    "bandwidth", "bandwidth by message size", BANDWIDTH_IS, sections.MESSAGES, "line", _SIZE,
    ChartAxis("Payload, {unit}", "bandwidth", "log"), "{words}: {bandwidth} {unit}", _panels,
    legend=True,
)  # fmt: skip
_LATENCY = ChartSpec(
    "latency-by-size", "latency by message size", LATENCY_IS, sections.MESSAGES, "line", _SIZE,
    ChartAxis("Half the round trip, µs", "mean", "log"),
    "{words}: mean {mean} µs<br>median {p50}, 99 % {p99} µs<br>min {min}, max {max} µs", _panels,
    legend=True,
)  # fmt: skip


def figures(measured: Measured) -> Iterator[Figure]:
    """Bandwidth and latency of each pattern."""
    for panel in _panels(measured):
        yield _BANDWIDTH.draw(panel)
        yield _LATENCY.draw(panel)
