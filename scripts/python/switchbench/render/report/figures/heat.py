# SPDX-License-Identifier: BSD-3-Clause
"""Source against destination: which pairs of ports are slow, or lose, and in which modules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured, plan_key
from ....base.format import unit_for
from ....base.model import WAITING
from ....records.document.trials import PlanEntry
from ...tables.sections import WHOM
from ..chart import sentence
from ..figure import Figure, heat_map, titled
from .series import group

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]

RATE_IS = (
    "Payload that the destination verified in the window, one way, of the flow from the row's port "
    "to the column's, the mean over its phases and repeats. Empty: no such flow was measured. "
)
LOSS_IS = (
    "Frames of the flow from the row's port to the column's that were offered and did not arrive, "
    "in percent of those offered, over the whole trial and all phases and repeats. "
)
BY_MODULE = "Rows and columns are ordered by module or switch; lines part them. "
BY_SITE = "Rows and columns are in order: no modules or groups that would part them are known. "

_CELLS = 6_500_000  # of all heat maps of a report: some 20 MB of it
_MAPS = 24  # settings shown: the most uneven
_MANY = 1.0  # a plan with more than so many pairs a rank has something to show
_PIXELS = 640


@dataclass(frozen=True)
class Cells:
    """One heat map's numbers before they are drawn."""

    rate: Matrix  # Mbit/s; rows are sources
    loss: Matrix  # percent

    @property
    def evenness(self) -> float:
        """The slowest pair's rate by that of all."""
        return float(np.nanmin(self.rate) / max(float(np.nanmean(self.rate)), 1e-9))

    @property
    def lossy(self) -> bool:
        """Whether anything was lost."""
        return bool(np.nanmax(self.loss, initial=0.0) > 0)


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield one for each setting whose flows are more than one a rank.

    And one of its loss if any.
    """
    streams = [plan for plan in measured.summary["plans"] if plan["traffic"] not in WAITING]
    found = [(one.entries, _cells(measured, one.entries)) for one in group(streams).series]
    every = [(plans, cells) for plans, cells in found if cells is not None]
    most = sorted(cells.evenness for _, cells in every)[:_MAPS]
    shown = [pair for pair in every if pair[1].evenness in most]
    left = len(every) - len(shown)
    count = sum(cells.rate.size * (2 if cells.lossy else 1) for _, cells in shown)
    block = _block(count)
    for number, (plans, cells) in enumerate(shown, start=1):
        axis = _Axis.of(measured, plans, block, left)
        name, rate = f"heat-map-{number}", axis.folded(cells.rate, np.fmin)
        unit = unit_for([float(np.nanmax(rate))])
        yield _figure(
            name, "throughput", RATE_IS, plans, axis, rate * unit.scale, "Payload", unit.name
        )
        if cells.lossy:
            loss = axis.folded(cells.loss, np.fmax)
            yield _figure(
                f"{name}-loss", "loss", LOSS_IS, plans, axis, loss, "Lost frames", "%",
                reversescale=True,
            )  # fmt: skip


def _cells(measured: Measured, plans: Sequence[PlanEntry]) -> Cells | None:
    """None where the setting has no more than a flow a rank, or nothing was observed."""
    some = [(plan, measured.records.flows(plan_key(plan))) for plan in plans]
    known = [flows for plan, flows in some if flows is not None]
    if not known:
        return None
    size = len(measured.ports)
    code = np.concatenate([flows.src.astype(np.int64) * size + flows.dst for flows in known])
    if np.count_nonzero(np.bincount(code)) <= _MANY * plans[0]["ranks"]:
        return None

    def column(name: str) -> Matrix:
        values: Matrix = np.concatenate([getattr(flows, name) for flows in known])
        return values

    with np.errstate(invalid="ignore", divide="ignore"):
        ones = np.ones(len(code))
        rate = _sums(code, column("mbps"), size) / _sums(code, ones, size, column("mbps"))
        lost, offered = column("lost"), column("offered")
        loss = 100 * _sums(code, lost, size) / _sums(code, offered, size, lost)
    return None if np.isnan(rate).all() else Cells(rate, loss)


def _sums(code: Codes, values: Matrix, size: int, where: Matrix | None = None) -> Matrix:
    """Return sums by pair of ports, of values that were observed; NaN where none was.

    `where`: in which of them something else was observed, too.
    """
    known = ~np.isnan(values if where is None else where)
    sums: Matrix = np.zeros(size * size)
    sums += np.bincount(code[known], weights=values[known], minlength=size * size)
    sums[np.bincount(code[known], minlength=size * size) == 0] = np.nan
    return sums.reshape(size, size)


def _block(cells: int) -> int:
    """Return how many ports share a row, so that all maps together stay small."""
    return max(1, math.ceil(math.sqrt(cells / _CELLS)))


@dataclass(frozen=True)
class _Axis:
    """Rows and columns: the ports of a plan's network, some of which may share one."""

    places: NDArray[np.int64]  # of the reader's list of ports
    names: list[str]
    bounds: list[tuple[str, float, float]]  # modules: name, where it begins and ends
    block: int
    left: int = 0  # settings without a map

    @classmethod
    def of(cls, measured: Measured, plans: Sequence[PlanEntry], block: int, left: int) -> _Axis:
        used = np.zeros(len(measured.ports), dtype=bool)
        for plan in plans:
            flows = measured.records.flows(plan_key(plan))
            if flows is not None:
                used[flows.src] = used[flows.dst] = True
        places = np.flatnonzero(used)
        ports = [measured.ports[place] for place in places]
        names = [measured.names[place] for place in places]
        firsts = names[::block]
        lasts = [names[min(i + block, len(names)) - 1] for i in range(0, len(names), block)]
        labels = (
            firsts if block == 1 else [f"{a} to {b}" for a, b in zip(firsts, lasts, strict=True)]
        )
        return cls(places, labels, _bounds(measured, ports, block), block, left)

    def folded(self, cells: Matrix, worst: Any) -> Matrix:
        """Return the cells of these ports; of those that share a place the worst."""
        chosen = cells[np.ix_(self.places, self.places)]
        starts = np.arange(0, len(self.places), self.block)
        if self.block == 1:
            return chosen
        folded: Matrix = worst.reduceat(worst.reduceat(chosen, starts, axis=0), starts, axis=1)
        return folded

    @property
    def words(self) -> str:
        """What the definition says of rows and columns."""
        text = BY_SITE if len(self.bounds) < 2 else BY_MODULE
        if self.block > 1:
            text += f"Each cell is {self.block} x {self.block} ports, and shows the worst of them. "
        if self.left:
            text += f"{self.left} settings whose pairs are more alike have no map. "
        return text.rstrip()


def _bounds(measured: Measured, ports: Sequence[str], block: int) -> list[tuple[str, float, float]]:
    bounds: list[tuple[str, float, float]] = []
    for place, port in enumerate(ports):
        module = measured.modules.get(port, "")
        at = place / block - 0.5
        if bounds and bounds[-1][0] == module:
            bounds[-1] = (module, bounds[-1][1], at + 1 / block)
        else:
            bounds.append((module, at, at + 1 / block))
    return bounds if measured.modules else []


# --- drawing -----------------------------------------------------------------------------------


def _figure(
    name: str, title: str, definition: str, plans: Sequence[PlanEntry], axis: _Axis, cells: Matrix,
    measure: str, unit: str, **more: Any,
) -> Figure:  # fmt: skip
    hover = f"%{{y}} to %{{x}}: %{{z:,.4~r}} {unit}" + (" lost" if unit == "%" else "")
    trace, said = heat_map(cells, axis.names, axis.names, measure, unit, hover, **more)
    side = {"type": "category", "constrain": "domain", "automargin": True, "showgrid": False}
    inner = [begin for _, begin, _ in axis.bounds[1:]]
    line = {"type": "line", "line": {"width": 2, "color": "#D55E00"}, "layer": "above"}
    end = len(axis.names) - 0.5
    layout = {
        "xaxis": side
        | {"title": {"text": "Destination", "standoff": 8}, "constraintoward": "right"},
        "yaxis": side | titled("Source", autorange="reversed", scaleanchor="x"),
        "shapes": [
            *(line | {"x0": at, "x1": at, "y0": -0.5, "y1": end} for at in inner),
            *(line | {"y0": at, "y1": at, "x0": -0.5, "x1": end} for at in inner),
        ],
        "annotations": [
            {
                "text": name or "no module",
                "x": (begin + end) / 2,
                "y": 1.0,
                "xref": "x",
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
            }
            for name, begin, end in axis.bounds
            if inner
        ],
    }
    return Figure(
        name=name,
        title=sentence(f"{title} by source and destination", group(plans).common),
        definition=definition + said + axis.words,
        data=[trace],
        layout=layout,
        section=WHOM,
        height=_PIXELS,
        scale=said.strip(),
    )
