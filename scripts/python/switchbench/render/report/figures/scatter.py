# SPDX-License-Identifier: BSD-3-Clause
"""Every single time against message size (Salmon, Stein and Sterling 1998, Figures 3 to 6).

A run may keep millions of times. Drawn are a few of each small field of the figure, so that a lone
one is drawn, too: what people look for in these figures are the branches and the outliers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....analysis.data import Measured
from ....base import format
from ....records.document.series import ScatterEntry
from ....records.store import TableFile
from ...tables.sections import MESSAGES
from ..chart import ChartAxis, ChartSpec, Panel, Trace, sentence
from ..figure import LEGEND, Figure, marker
from .series import by

Floats = NDArray[np.float64]

POINTS_ARE = (
    "Each point is one message: half its round trip, in microseconds, against its "
    "size. Both axes are logarithmic. (Salmon, Stein and Sterling 1998, Figures 3 to 6) "
)

_POINTS = 6000  # drawn in a figure
_FIELDS = (160, 120)  # of the figure, by size and time


@dataclass(frozen=True)
class _Cloud:
    """The times of one scatter."""

    entry: ScatterEntry  # the summary's `scatter`
    size: Floats
    time_us: Floats


def figures(measured: Measured) -> Iterator[Figure]:
    """Yield one for each kind of partners: transports, and computing beside it, are overlaid."""
    entries = measured.summary["messages"]["scatter"]
    if not entries:
        return
    columns = ("trial", "repeat", "network", "size", "time_ns")
    table = TableFile(measured.directory, "samples", columns).whole()
    if not table.num_rows:
        return
    kinds = by(entries, _matrix)
    for number, some in enumerate(kinds.values(), start=1):
        clouds = [_cloud(table, entry) for entry in some]
        yield _SCATTER.draw(_panel(number, clouds))


def _matrix(entry: ScatterEntry) -> str:
    asked = entry["parameters"]["scatter"]
    partners = asked.get("partners") if isinstance(asked, dict) else asked
    return repr((partners, entry["pattern"], entry["ranks"], entry["network"]))


def _cloud(table: Any, entry: ScatterEntry) -> _Cloud:
    import pyarrow.compute as pc

    mine = pc.and_(
        pc.and_(
            pc.equal(table["trial"], entry["trial"]), pc.equal(table["repeat"], entry["repeat"])
        ),
        pc.equal(table["network"], entry["network"]),
    )
    rows = table.filter(mine)
    return _Cloud(
        entry, rows["size"].to_numpy().astype(np.float64), rows["time_ns"].to_numpy() / 2000.0
    )


_SCATTER = ChartSpec(
    "scatter", "time by message size", POINTS_ARE, MESSAGES, "points",
    ChartAxis("Message size", "size", "sizes"),
    ChartAxis("Half the round trip, µs", "time", "log"), "{size:,} B: {time} µs",
    height=520, legend=True,
    layout={"legend": LEGEND | {"itemsizing": "constant"}, "hovermode": "closest"},
)  # fmt: skip


def _panel(number: int, clouds: Sequence[_Cloud]) -> Panel:
    traces: list[Trace] = []
    drawn = total = 0
    for place, cloud in enumerate(clouds):
        chosen = thinned(cloud.size, cloud.time_us, _POINTS // len(clouds))
        drawn, total = drawn + len(chosen), total + len(cloud.size)
        traces.append(_points(place, cloud, chosen))
    first = clouds[0].entry
    partners = first["parameters"]["scatter"]
    kind = partners.get("partners", "") if isinstance(partners, dict) else ""
    said = f"All {total:,} times are drawn."
    if drawn < total:
        said = (
            f"Drawn are {drawn:,} of {total:,} times: of each of {_FIELDS[0]} x {_FIELDS[1]} "
            "fields about equally many."
        )
    common = sentence(f"{kind} partners" if kind else "", format.of(first["ranks"], "node"))
    return Panel(common[:1].lower() + common[1:], traces, f"-{number}", words=said)


def thinned(size: Floats, time_us: Floats, most: int) -> NDArray[np.int64]:
    """Return which points to draw.

    Of each field of the figure the first, then the second, and so on, as many as may be drawn.
    """
    field = _field(size, 0) * _FIELDS[1] + _field(time_us, 1)
    order = np.argsort(field, kind="stable")
    ordered = field[order]
    turn = np.arange(len(field)) - np.searchsorted(ordered, ordered)  # within its field, from 0
    last = np.bincount(turn).cumsum().searchsorted(most)
    whole = order[turn < last]
    rest = order[turn == last]
    left = min(most - len(whole), len(rest))
    chosen = rest[np.linspace(0, len(rest), left, endpoint=False).astype(int)]
    return np.sort(np.concatenate([whole, chosen]))


def _field(values: Floats, axis: int) -> NDArray[np.int64]:
    """Return which part of a logarithmic axis each value is in."""
    logs = np.log(np.maximum(values, 1e-3))
    span = max(float(logs.max() - logs.min()), 1e-9)
    parts = ((logs - logs.min()) / span * _FIELDS[axis]).astype(np.int64)
    found: NDArray[np.int64] = np.minimum(parts, _FIELDS[axis] - 1)
    return found


def _label(entry: ScatterEntry) -> str:
    share = entry["parameters"]["scatter"]
    compute = share.get("compute") if isinstance(share, dict) else None
    again = f", repeat {entry['repeat'] + 1}" if entry["repeat"] else ""
    return f"{entry['transport']}{', computing' if compute else ''}{again}"


def _points(number: int, cloud: _Cloud, chosen: NDArray[np.int64]) -> Trace:
    """Symbols that can be told apart without their colour, and below each other."""
    style = marker(number, 6)
    columns = {
        "size": cloud.size[chosen].astype(np.uint32),
        "time": cloud.time_us[chosen].astype(np.float32),
    }
    mark = style | {"symbol": f"{style['symbol']}-open", "opacity": 0.7}
    more = {"marker": mark, "legendgroup": str(number)}
    return Trace(_label(cloud.entry), columns, more=more, style=number)
