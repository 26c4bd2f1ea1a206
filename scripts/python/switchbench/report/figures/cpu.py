# SPDX-License-Identifier: BSD-3-Clause
"""What the CPUs paid for a gigabyte: TCP against bypass, and computing beside messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...results import figures as words
from ..data import Measured
from ..figure import CPU, LEGEND, PALETTE, Figure, gaps, packed
from .series import Entry, sentence

COST_IS = (
    "CPU seconds by 10^9 bytes of payload that receivers verified, over all machines, phases and "
    "repeats. Own processes: what the nodes' processes used, system calls included. The rest: "
    "interrupts, softirq, kernel threads, and what else the machines did. Workers that poll burn a "
    "core each, whatever comes (said on hover)."
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
                f"{name}: %{{x:.4g}} s/GB of %{{customdata[0]:.4g}} s/GB<br>%{{customdata[1]}}"
                "<extra></extra>"
            ),
        }
        for number, ((name, hatch), values) in enumerate(
            zip(_PARTS, (own, whole - own), strict=True)
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
