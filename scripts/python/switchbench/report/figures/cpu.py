# SPDX-License-Identifier: BSD-3-Clause
"""What the CPUs paid for a gigabyte: TCP against bypass, and computing beside messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...results import figures as words
from ...results.messages import changed, effect
from ..data import Measured
from ..figure import CPU, LEGEND, PALETTE, Figure, gaps, named_rows, packed
from .series import Entry, sentence

COST_IS = (
    "CPU seconds by 10^9 bytes of payload that receivers verified, over all machines, phases and "
    "repeats. Own processes: what the nodes' processes used, system calls included. The rest: "
    "interrupts, softirq, kernel threads, and what else the machines did. Workers that poll burn a "
    "core each, whatever comes (said on hover)."
)
COMPUTING_IS = (
    "Floating-point operations of one thread in a second while it computed, the mean over all "
    "nodes: alone, and beside messages. Less beside them is what messages cost computing, unless "
    "the line at the bar's end, by how much the nodes differ among themselves (95 %), reaches over "
    "the difference. On hover: what that comes to, and the node that was slowed down the most. "
    "(Salmon, Stein and Sterling 1998, Figure 7)"
)
_PARTS = (("own processes", ""), ("the rest: kernel and all else", "/"))


def figures(measured: Measured) -> Iterator[Figure]:
    """One for all matrices that several transports carried."""
    sides = [
        (entry, one)
        for entry in measured.summary["comparisons"]
        for one in entry["transports"]
        if one["cpu_s_per_gb"] is not None
    ]
    if len({one["transport"] for _, one in sides}) > 1:
        yield _figure(sides)
    computing = [
        entry
        for entry in measured.summary["messages"].get("computing", [])
        if entry["alone_mflops"] is not None and entry["beside_mflops"] is not None
    ]
    if computing:
        yield _computing(computing)


def _figure(sides: Sequence[tuple[Entry, Entry]]) -> Figure:
    whole = gaps([one["cpu_s_per_gb"] for _, one in sides])
    own = gaps([one["cpu_process_s_per_gb"] for _, one in sides])
    places = [[_matrix(entry) for entry, _ in sides], [_name(one) for _, one in sides]]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": places,
            "x": packed(values),
            "marker": {"color": PALETTE[number], "pattern": {"shape": hatch}},
            "customdata": [
                [total, *_said(one)] for total, (_, one) in zip(whole, sides, strict=True)
            ],
            "hovertemplate": (
                f"{name}: %{{x:,.4~r}} s/GB of %{{customdata[0]:,.4~r}} s/GB<br>%{{customdata[1]}}"
                "<extra></extra>"
            ),
        }
        for number, ((name, hatch), values) in enumerate(
            zip(_PARTS, (own, np.maximum(0.0, whole - own)), strict=True)
        )
    ]
    return Figure(
        name="cpu",
        title=sentence("CPU time by transport, for each gigabyte delivered"),
        definition=COST_IS,
        data=data,
        layout={
            "barmode": "stack",
            "legend": LEGEND,
            "xaxis": {"title": {"text": "CPU s/GB"}, "rangemode": "tozero"},
            "yaxis": {"autorange": "reversed", "automargin": True},
        },
        section=CPU,
        height=150 + 34 * len(sides),
    )


def _matrix(entry: Entry) -> str:
    ranks = words.of(entry["ranks"], "node")
    return f"{words.pattern(entry)}, {ranks}, {words.binary(entry['message_bytes'])}"


def _name(one: Entry) -> str:
    options = [f"{key.partition('.')[2]} {value}" for key, value in one["options"].items()]
    return " ".join([one["transport"], *options])


def _said(one: Entry) -> list[Any]:
    ratio = one["ratio"]["cpu_s_per_gb"]
    parts = [] if ratio is None else [f"{ratio:.2f} times the baseline's"]
    parts += ["workers poll"] if one["polling"] else []
    return [", ".join(parts)]


# --- computing beside messages -----------------------------------------------------------------


def _computing(entries: Sequence[Entry]) -> Figure:
    labels = [_scatter_words(entry) for entry in entries]
    said = [
        [
            effect(entry["slower_percent"], entry.get("slower_half_width_percent")),
            f"{entry['slowest_node']}: {changed(entry['slowest_percent'])}"
            if entry["slowest_percent"] is not None
            else "no node is known",
        ]
        for entry in entries
    ]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": labels,
            "x": packed(gaps([entry[key] for entry in entries])),
            "marker": {"color": PALETTE[number], "pattern": {"shape": hatch}},
            "customdata": said,
            "hovertemplate": (
                f"{name}: %{{x:,.4~r}} Mflop/s<br>beside messages %{{customdata[0]}}; "
                "most, %{customdata[1]}<extra></extra>"
            ),
        }
        for number, (key, name, hatch) in enumerate(
            (("alone_mflops", "alone", ""), ("beside_mflops", "beside messages", "/"))
        )
    ]
    data[1]["error_x"] = {"type": "data", "array": [_half_width(entry) for entry in entries]}
    return Figure(
        name="computing",
        title=sentence("computing alone and beside messages"),
        definition=COMPUTING_IS,
        data=data,
        layout={
            "barmode": "group",
            "legend": LEGEND,
            "xaxis": {"title": {"text": "Mflop/s of one thread"}, "rangemode": "tozero"},
            "yaxis": named_rows(labels),
        },
        section=CPU,
        height=150 + 48 * len(labels),
    )


def _half_width(entry: Entry) -> float | None:
    """Of what messages cost, as a length on the axis; None where nothing says it."""
    share, beside = entry.get("slower_half_width_percent"), entry["beside_mflops"]
    return None if share is None or beside is None else share / 100 * beside


def _scatter_words(entry: Entry) -> str:
    asked = entry["parameters"].get("scatter")
    partners = f"{asked['partners']} partners" if isinstance(asked, dict) else "messages"
    return f"{entry['transport']}, {partners}, trial {entry['trial']}"
