# SPDX-License-Identifier: BSD-3-Clause
"""A network drawn as SVG: hosts in a row below, switches above them by level, links by rate.

Hosts without any switch stand on a circle.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

import networkx

from .graph import Fabric

_STEP = 26  # between two hosts, in units of the drawing
_RISE = 120  # between two levels
_EDGE = 60
_LABELLED = 48  # so many hosts at the most have room for their names

_STYLE = """
text { font: 11px sans-serif; fill: #222; text-anchor: middle }
.link { stroke: #56606b; fill: none }
.across { stroke-dasharray: 5 4 }
.host { fill: #0072b2 }
.switch { fill: #e69f00; stroke: #222 }
text.name { fill: #111 }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } text.name { fill: #111 } .link { stroke: #9aa5b1 }
}
"""


@dataclass(frozen=True)
class _Place:
    x: float
    y: float


def draw(fabric: Fabric) -> str:
    """The whole picture as one SVG document, of any number of hosts."""
    level = _levels(fabric)
    places = _places(fabric, level)
    sides = [_width(name) / 2 for name in fabric.switches]
    width = max(place.x for place in places.values()) + max(_EDGE, *sides, 0)
    height = max(place.y for place in places.values()) + _EDGE + _depth(fabric, level, places)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img"><title>{escape(fabric.name)}</title><style>{_STYLE}</style>'
    ]
    parts += _links(fabric, level, places)
    parts += [_switch(name, places[name]) for name in fabric.switches]
    named = len(fabric.hosts) <= _LABELLED
    parts += [_host(name, places[name], named) for name in fabric.hosts]
    return "\n".join([*parts, "</svg>", ""])


def _levels(fabric: Fabric) -> dict[str, int]:
    """0 for hosts, and for a switch its links to the nearest host."""
    found = networkx.multi_source_dijkstra_path_length(fabric.graph, set(fabric.hosts), weight=None)
    return {name: int(away) for name, away in found.items()}


def _places(fabric: Fabric, level: Mapping[str, int]) -> dict[str, _Place]:
    """Hosts side by side by their switch; a switch above the middle of what hangs on it."""
    if not fabric.switches:
        return _circle(fabric.hosts)
    top = max(level.values())
    order = {name: i for i, name in enumerate(fabric.switches)}

    def below(host: str) -> int:
        return min((order[n] for n in fabric.graph.neighbors(host) if n in order), default=0)

    bottom = _EDGE + top * _RISE
    hosts = sorted(fabric.hosts, key=below)
    places = {host: _Place(_EDGE + i * _STEP, bottom) for i, host in enumerate(hosts)}
    by_level = defaultdict(list)
    for switch in fabric.switches:
        by_level[level[switch]].append(switch)
    for height in sorted(by_level):
        middles = {switch: _middle(fabric, switch, places) for switch in by_level[height]}
        ordered = sorted(middles, key=lambda switch: middles[switch])
        places |= _spread(ordered, middles, bottom - height * _RISE, len(hosts) * _STEP)
    return places


def _circle(hosts: tuple[str, ...]) -> dict[str, _Place]:
    """Hosts that are joined by nothing but cables."""
    radius = max(60.0, len(hosts) * _STEP / math.tau)
    turns = (math.tau * i / len(hosts) for i in range(len(hosts)))
    middle = _EDGE + radius
    return {
        host: _Place(middle + radius * math.sin(turn), middle - radius * math.cos(turn))
        for host, turn in zip(hosts, turns, strict=True)
    }


def _middle(fabric: Fabric, switch: str, places: Mapping[str, _Place]) -> float:
    below = [places[n].x for n in fabric.graph.neighbors(switch) if n in places]
    return sum(below) / len(below) if below else 0.0


def _spread(
    names: list[str], middles: Mapping[str, float], y: float, width: float
) -> dict[str, _Place]:
    """One level's switches: where they belong, but side by side where these fall together."""
    least = max(64.0, *(_width(name) + 8.0 for name in names))
    fits = all(middles[b] - middles[a] >= least for a, b in pairwise(names))
    if fits:
        return {name: _Place(middles[name], y) for name in names}
    step = max(least, width / len(names))
    return {name: _Place(_EDGE + (i + 0.5) * step, y) for i, name in enumerate(names)}


def _links(fabric: Fabric, level: Mapping[str, int], places: Mapping[str, _Place]) -> list[str]:
    """Lines as wide as their rate is large, by its logarithm; those within a level bent, dashed."""
    least = min(link.rate_bps for link in fabric.links)
    drawn = []
    for link in fabric.links:
        a, b = places[link.a], places[link.b]
        width = 1 + 1.5 * math.log2(link.rate_bps / least)
        label = f"{link.a} to {link.b}: {link.rate_bps / 1e6:,.0f} Mbit/s each way"
        across = bool(fabric.switches) and level[link.a] == level[link.b]
        dip = _dip(a, b) if across else 0
        path = f"M{a.x:.0f} {a.y:.0f}Q{(a.x + b.x) / 2:.0f} {(a.y + b.y) / 2 + dip:.0f}"
        drawn.append(
            f'<path class="link{" across" if across else ""}" stroke-width="{width:.1f}" '
            f'd="{path} {b.x:.0f} {b.y:.0f}"><title>{escape(label)}</title></path>'
        )
    return drawn


def _dip(a: _Place, b: _Place) -> float:
    """How far below its ends a bent line's control point is; the line goes half as far."""
    return abs(a.x - b.x) / 4 + 12


def _depth(fabric: Fabric, level: Mapping[str, int], places: Mapping[str, _Place]) -> float:
    """The room that lines between hosts need below them."""
    if not fabric.switches:
        return 0.0
    ends = [(link.a, link.b) for link in fabric.links if not level[link.a] and not level[link.b]]
    return max((_dip(places[a], places[b]) / 2 for a, b in ends), default=0.0)


def _width(name: str) -> int:
    """Of a switch's box."""
    return 16 + 7 * len(name)


def _switch(name: str, place: _Place) -> str:
    width = _width(name)
    return (
        f'<rect class="switch" x="{place.x - width / 2:.0f}" y="{place.y - 11:.0f}" rx="3" '
        f'width="{width}" height="22"/><text class="name" x="{place.x:.0f}" '
        f'y="{place.y + 4:.0f}">{escape(name)}</text>'
    )


def _host(name: str, place: _Place, named: bool) -> str:
    x, y = f"{place.x:.0f}", place.y + 12
    label = (
        f'<text x="{x}" y="{y:.0f}" style="text-anchor:start" transform="rotate(60 {x} {y:.0f})">'
        f"{escape(name)}</text>"
        if named
        else ""
    )
    dot = f'<circle class="host" cx="{x}" cy="{place.y:.0f}" r="5">'
    return f"{dot}<title>{escape(name)}</title></circle>{label}"
