# SPDX-License-Identifier: BSD-3-Clause
"""What the CPUs paid for a gigabyte: TCP against bypass, and computing beside messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured
from ....base import format
from ...tables.messages import effect, slowest_node
from ...tables.sections import CPU
from ..chart import ChartAxis, ChartSpec, Panel, Trace, between
from ..figure import LOGARITHMIC, Figure, Plotly, gaps, titled
from .series import Entry

Floats = NDArray[np.float64]

COST_IS = (
    "CPU seconds by 10^9 bytes of payload that receivers verified, over all machines, phases and "
    "repeats. Own processes: what the nodes' processes used, system calls included. The line from "
    "there to all: interrupts, softirq, kernel threads, and what else the machines did. Workers "
    "that poll burn a core each, whatever comes (said on hover)."
)
COMPUTING_IS = (
    "Floating-point operations of one thread in a second while it computed, the mean over all "
    "nodes: alone, and concurrent with messages. Less then is what messages cost computing, unless "
    "the line at the bar's end, by how much the nodes differ among themselves (95 %), reaches over "
    "the difference. On hover: what that comes to, and the node that was slowed down the most. "
    "(Salmon, Stein and Sterling 1998, Figure 7)"
)
WIDE_IS = " The axis is logarithmic."
_WIDE = 20.0  # times the least: then on an axis from 0 it would not be seen


def figures(measured: Measured) -> Iterator[Figure]:
    """One for all matrices that several transports carried."""
    sides = [
        (entry, one)
        for entry in measured.summary["comparisons"]
        for one in entry["transports"]
        if one["cpu_s_per_gb"] is not None
    ]
    if len({one["transport"] for _, one in sides}) > 1:
        yield _COST.draw(_panel(sides))
    computing = [
        entry
        for entry in measured.summary["messages"].get("concurrent_computation", [])
        if entry["compute_only_mflops"] is not None and entry["concurrent_mflops"] is not None
    ]
    if computing:
        yield _COMPUTING.draw(_computing(computing))


_COST = ChartSpec(
    "cpu", "CPU time by transport, for each gigabyte delivered", COST_IS, CPU, "points",
    ChartAxis("CPU s/GB", "cost"), ChartAxis(column="of", kind="nested"),
    "{label}: {cost} s/GB<br>{said}<extra></extra>", values="middle right", legend=True,
)  # fmt: skip


def _panel(sides: Sequence[tuple[Entry, Entry]]) -> Panel:
    whole = gaps([one["cpu_s_per_gb"] for _, one in sides])
    own = gaps([one["cpu_process_s_per_gb"] for _, one in sides])
    naming = _naming([entry for entry, _ in sides])
    places = [[naming(entry) for entry, _ in sides], [_name(one) for _, one in sides]]
    shared = {  # names on two lines, of which the first is the one that tells most
        "of": [[name.replace(", ", ",<br>", 1) for name in names] for names in places],
        "said": [_said(one) for _, one in sides],
    }
    # The line between both is what the kernel and all else took.
    kernel = between(whole - np.maximum(0.0, whole - own), whole, whole) | {
        "width": 0, "thickness": 3, "color": "rgba(127,127,127,0.6)"
    }  # fmt: skip
    every = {"error_x": kernel, "textposition": _beside(whole, own, "right")}
    traces = [
        Trace("all", shared | {"cost": whole}, style=1, more=every),
        Trace("own processes", shared | {"cost": own}, style=0,
              more={"textposition": _beside(own, whole, "left")}),
    ]  # fmt: skip
    positive = np.concatenate([whole, own])
    positive = positive[positive > 0]
    wide = len(positive) > 0 and positive.max() > _WIDE * positive.min()
    scale: Plotly = LOGARITHMIC if wide else {"rangemode": "tozero"}
    layout = {
        "xaxis": scale | titled(_COST.x.title, range=_range(positive, wide, 0.15)),
        "meta": {
            "narrow": {
                "xaxis": {"range": _range(positive, wide, 0.5)},
                "yaxis": {"tickfont": {"size": 10}},
            }
        },
    }
    words = WIDE_IS if wide else ""
    return Panel("", traces, words=words, height=150 + 38 * len(sides), layout=layout)


def _beside(values: Floats, others: Floats, otherwise: str) -> list[str]:
    """On which side of its point a value is written: not between the two. All is more than its
    part but where clocks are as coarse as those of emulated guests."""
    sides = np.where(values > others, "right", np.where(values < others, "left", otherwise))
    return [f"middle {side}" for side in sides]


def _range(positive: Floats, wide: bool, room: float) -> list[float] | None:
    """With room for the values beside the outermost points: so much of what lies between them."""
    if not len(positive):
        return None
    if not wide:
        most = float(positive.max())
        return [-room * most, (1 + room) * most]
    least, most = float(np.log10(positive.min())), float(np.log10(positive.max()))
    return [least - room * (most - least), most + room * (most - least)]


def _naming(entries: Sequence[Entry]) -> Callable[[Entry], str]:
    """A matrix's name. Each transport has its own size of messages or frames; the size at which
    they were compared is told where a matrix was compared at several."""

    def matrix(entry: Entry) -> str:
        network = f", network {entry['network']}" if several else ""
        return f"{format.pattern(entry)}, {format.of(entry['ranks'], 'node')}{network}"

    several = len({entry["network"] for entry in entries}) > 1
    sizes: dict[str, set[int]] = {}
    for entry in entries:
        sizes.setdefault(matrix(entry), set()).add(entry["message_bytes"])

    def name(entry: Entry) -> str:
        found = matrix(entry)
        return (
            found if len(sizes[found]) < 2 else f"{found}, {format.binary(entry['message_bytes'])}"
        )

    return name


def _name(one: Entry) -> str:
    options = [f"{key.partition('.')[2]} {value}" for key, value in one["options"].items()]
    return ", ".join([" ".join([one["transport"], *options]), format.size(one)])


def _said(one: Entry) -> str:
    ratio = one["ratio"]["cpu_s_per_gb"]
    parts = [] if ratio is None else [f"{ratio:.2f} times the baseline's"]
    parts += ["workers poll"] if one["polling"] else []
    return ", ".join(parts)


# --- computing beside messages -----------------------------------------------------------------


def _computing(entries: Sequence[Entry]) -> Panel:
    bars: list[Trace] = []
    for name, key in (("alone", "compute_only_mflops"), ("with messages", "concurrent_mflops")):
        columns = {
            "of": [_scatter_words(entry) for entry in entries],
            "rate": [entry[key] for entry in entries],
            "effect": [effect(entry) for entry in entries],
            "worst": [slowest_node(entry) for entry in entries],
        }
        if bars:
            columns["half"] = [_half_width(entry) for entry in entries]
        bars.append(Trace(name, columns))
    return Panel("", bars, height=150 + 48 * len(entries))


_COMPUTING = ChartSpec(
    "computing", "computing alone and concurrent with messages", COMPUTING_IS, CPU, "bars",
    ChartAxis("Mflop/s of one thread", "rate"), ChartAxis(column="of", kind="names"),
    "{label}: {rate} Mflop/s<br>with messages {effect}; most, {worst}<extra></extra>",
    half=("x", "half"), layout={"barmode": "group"},
)  # fmt: skip


def _half_width(entry: Entry) -> float | None:
    """Of what messages cost, as a length on the axis; None where nothing says it."""
    share, beside = entry.get("slowdown_ci_half_width_percent"), entry["concurrent_mflops"]
    return None if share is None or beside is None else share / 100 * beside


def _scatter_words(entry: Entry) -> str:
    asked = entry["parameters"].get("scatter")
    partners = f"{asked['partners']} partners" if isinstance(asked, dict) else "messages"
    return f"{entry['transport']}, {partners}, trial {entry['trial']}"
