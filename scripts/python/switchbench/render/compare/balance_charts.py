# SPDX-License-Identifier: BSD-3-Clause
"""Figures 1 to 4 of Saini et al. 2005: communication and memory against computing, a line for each
system and a point for each number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...compare.subjects import Subject
from ...compare.systems import Compute, system_name
from ..report.figure import LEGEND, Figure, line_style

_GIGA = 1e9


@dataclass(frozen=True)
class _Kind:
    """One figure: which field of a system, or its share of HPL, in which unit."""

    name: str
    title: str
    definition: str
    field: str
    unit: str
    scale: float
    by_hpl: bool

    def of(self, one: Compute) -> float:
        """Its value, of a system that has one."""
        value = one.ratio(self.field) if self.by_hpl else getattr(one, self.field)
        return self.scale * float(value or 0.0)


_RING = (
    "HPCC's randomly ordered ring bandwidth of a process times the number of processes, against HPL"
)
_STREAM = "HPCC's EP STREAM Copy of a process times the number of processes, against HPL"
_RATIO = ", as a share of it: the less it falls, the better the network grows with the system."
_KINDS = (
    _Kind("balance-ring", "Accumulated random ring bandwidth", f"{_RING} (Figure 1).",
          "ring", "GB/s", 1 / _GIGA, False),
    _Kind("balance-ring-ratio", "Random ring bandwidth by HPL", f"{_RING}{_RATIO} (Figure 2).",
          "ring", "B/kFlop", 1e3, True),
    _Kind("balance-stream", "Accumulated STREAM Copy", f"{_STREAM} (Figure 3).",
          "stream", "GB/s", 1 / _GIGA, False),
    _Kind("balance-stream-ratio", "STREAM Copy by HPL", f"{_STREAM}, as a share of it (Figure 4).",
          "stream", "B/Flop", 1.0, True),
)  # fmt: skip


def charts(
    subjects: Sequence[Subject], systems: Sequence[Sequence[Compute]], section: str
) -> Iterator[Figure]:
    """Those that any system has values of."""
    for kind in _KINDS:
        lines: dict[str, list[Compute]] = {}
        for subject, every in zip(subjects, systems, strict=True):
            for one in every:
                if one.hpl and getattr(one, kind.field):
                    lines.setdefault(system_name(subject.name, one, every), []).append(one)
        traces = [_line(i, name, kind, lines[name]) for i, name in enumerate(lines)]
        if traces:
            yield _figure(kind, traces, section)


def _line(number: int, name: str, kind: _Kind, known: Sequence[Compute]) -> dict[str, Any]:
    values = [kind.of(one) for one in known]
    return line_style(number) | {
        "type": "scatter",
        "name": escape(name, quote=False),
        "x": [(one.hpl or 0.0) / _GIGA for one in known],
        "y": values,
        "customdata": [[one.ranks] for one in known],
        "hovertemplate": (
            f"%{{customdata[0]}} processes, %{{x:.4g}} GFlop/s<br>%{{y:.4g}} {kind.unit}"
        ),
    }


def _figure(kind: _Kind, traces: list[dict[str, Any]], section: str) -> Figure:
    written = {"type": "log", "exponentformat": "none", "separatethousands": True}
    return Figure(
        name=kind.name,
        title=kind.title,
        definition=f"{kind.definition} Saini et al. (2005).",
        data=traces,
        layout={
            "xaxis": {"title": {"text": "HPL, GFlop/s"}, **written},
            "yaxis": {"title": {"text": kind.unit}, **written, "automargin": True},
            "legend": LEGEND,
        },
        section=section,
    )
