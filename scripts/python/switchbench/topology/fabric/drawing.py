# SPDX-License-Identifier: BSD-3-Clause
"""A network drawn as SVG: hosts in a row below, switches above them by level, links by rate.

Hosts without any switch stand on a circle.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
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


Places = Mapping[str, tuple[float, float]]


def draw(fabric: Fabric) -> str:
    """Return the whole picture as one SVG document, of any number of hosts."""
    found = networkx.multi_source_dijkstra_path_length(fabric.graph, set(fabric.hosts), weight=None)
    level = {name: int(away) for name, away in found.items()}
    places = _rows(fabric, level) if fabric.switches else _circle(fabric.hosts)
    across = [link for link in fabric.links if fabric.switches and level[link.a] == level[link.b]]
    bends = {
        (link.a, link.b): abs(places[link.a][0] - places[link.b][0]) / 4 + 12 for link in across
    }
    width = max(x + max(_EDGE, _width(name) / 2) for name, (x, _) in places.items())
    height = max(y for _, y in places.values()) + _EDGE + max(bends.values(), default=0.0) / 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img"><title>{escape(fabric.name)}</title><style>{_STYLE}</style>',
        *_links(fabric, places, bends),
        *(_switch(name, *places[name]) for name in fabric.switches),
        *(_host(name, *places[name], len(fabric.hosts) <= _LABELLED) for name in fabric.hosts),
        "</svg>",
        "",
    ])  # fmt: skip


def _rows(fabric: Fabric, level: Mapping[str, int]) -> Places:
    """Return hosts side by side by their switch, and above them each level's switches.

    In the order of the middles of what hangs on them.
    """
    order = {name: i for i, name in enumerate(fabric.switches)}

    def below(host: str) -> int:
        return min((order[n] for n in fabric.graph.neighbors(host) if n in order), default=0)

    bottom = _EDGE + max(level.values()) * _RISE
    hosts = sorted(fabric.hosts, key=below)
    places = {host: (float(_EDGE + i * _STEP), float(bottom)) for i, host in enumerate(hosts)}
    by_level = defaultdict(list)
    for switch in fabric.switches:
        by_level[level[switch]].append(switch)
    for height, switches in sorted(by_level.items()):
        middles = {}
        for switch in switches:
            xs = [places[n][0] for n in fabric.graph.neighbors(switch) if n in places]
            middles[switch] = sum(xs) / len(xs) if xs else 0.0
        step = max(
            64.0, *(_width(name) + 8.0 for name in switches), len(hosts) * _STEP / len(switches)
        )
        for i, switch in enumerate(sorted(switches, key=middles.__getitem__)):
            places[switch] = (_EDGE + (i + 0.5) * step, float(bottom - height * _RISE))
    return places


def _circle(hosts: tuple[str, ...]) -> Places:
    """Return places of hosts that are joined by nothing but cables."""
    radius = max(60.0, len(hosts) * _STEP / math.tau)
    turns = (math.tau * i / len(hosts) for i in range(len(hosts)))
    middle = _EDGE + radius
    return {
        host: (middle + radius * math.sin(turn), middle - radius * math.cos(turn))
        for host, turn in zip(hosts, turns, strict=True)
    }


def _links(fabric: Fabric, places: Places, bends: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Yield lines as wide as their rate is large, by its logarithm.

    Those within a level are bent and dashed.
    """
    least = min(link.rate_bps for link in fabric.links)
    for link in fabric.links:
        (ax, ay), (bx, by) = places[link.a], places[link.b]
        bend = bends.get((link.a, link.b))
        label = f"{link.a} to {link.b}: {link.rate_bps / 1e6:,.0f} Mbit/s each way"
        yield (
            f'<path class="link{"" if bend is None else " across"}" '
            f'stroke-width="{1 + 1.5 * math.log2(link.rate_bps / least):.1f}" '
            f'd="M{ax:.0f} {ay:.0f}Q{(ax + bx) / 2:.0f} {(ay + by) / 2 + (bend or 0):.0f} '
            f'{bx:.0f} {by:.0f}"><title>{escape(label)}</title></path>'
        )


def _width(name: str) -> int:
    """Return the width of a switch's box."""
    return 16 + 7 * len(name)


def _switch(name: str, x: float, y: float) -> str:
    width = _width(name)
    return (
        f'<rect class="switch" x="{x - width / 2:.0f}" y="{y - 11:.0f}" rx="3" '
        f'width="{width}" height="22"/><text class="name" x="{x:.0f}" '
        f'y="{y + 4:.0f}">{escape(name)}</text>'
    )


def _host(name: str, x: float, y: float, named: bool) -> str:
    label = (
        f'<text x="{x:.0f}" y="{y + 12:.0f}" style="text-anchor:start" '
        f'transform="rotate(60 {x:.0f} {y + 12:.0f})">{escape(name)}</text>'
    )
    dot = f'<circle class="host" cx="{x:.0f}" cy="{y:.0f}" r="5">'
    return f"{dot}<title>{escape(name)}</title></circle>{label if named else ''}"
