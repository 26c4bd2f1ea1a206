# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench topology`: what a network can be expected to do, before anything is sent."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console

from ..base import source
from ..base.errors import ConfigurationError
from ..base.format import bit_rate
from ..render.printer import make, make_console, show, text
from ..topology import topology
from ..topology.arithmetic import Arithmetic, Cost, Level, Prices, arithmetic, cost, draw
from ..topology.fabric import from_topology
from ..topology.form import TopologyError
from . import topology_import
from .common import print_json


class _PriceFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    nic: Annotated[float, Field(ge=0)] = 0.0
    cable: Annotated[float, Field(ge=0)] = 0.0
    switches: dict[Annotated[int, Field(ge=1)], Annotated[float, Field(ge=0)]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "topology", metavar="FILE",
        help="a topology file, or a lab's name; or `import`: make a file of what devices say",
    )  # fmt: skip
    parser.add_argument("--prices", metavar="FILE", type=Path, help="what parts cost")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="draw it into this file")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    topology_import.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Print the arithmetic, and draw when asked; or import."""
    if args.topology == topology_import.WORD:
        return topology_import.main(args)
    topology_import.refuse(args)
    prices = _prices(args.prices) if args.prices else None
    try:
        read = topology.load(args.topology)
    except TopologyError as error:
        raise ConfigurationError(str(error)) from None
    fabric = from_topology(read)
    figures = arithmetic(fabric)
    price = cost(fabric, prices) if prices else None
    if args.svg:
        topology_import.write(args.svg, draw(fabric))
    if args.json:
        print_json(_document(figures, price))
    else:
        _show(fabric.name, figures, price, make_console())
    return 0


def _prices(path: Path) -> Prices:
    """Return the price table; ConfigurationError with what is wrong in it."""
    try:
        keys = source.load(path)
        if not isinstance(keys, dict):
            raise ConfigurationError(
                f"{path}: is no price table: it has keys, as `switches: {{8: 90, 24: 300}}`"
            )
        file = _PriceFile.model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise ConfigurationError(f"{path}: {key}: {first['msg'].lower()}") from None
    return Prices(file.nic, file.cable, file.switches)


def _document(figures: Arithmetic, price: Cost | None) -> dict[str, object]:
    cut, half = figures.bisection, figures.hosts // 2
    each = {"min_bps_per_host": cut.min_bps / half, "max_bps_per_host": cut.max_bps / half}
    return (
        asdict(figures)
        | {"bisection": asdict(cut) | each, "full_bisection_bps": figures.full_bps}
        | ({"cost": asdict(price) | {"total": price.total}} if price is not None else {})
    )


def _show(name: str, figures: Arithmetic, price: Cost | None, console: Console) -> None:
    rows: list[tuple[str, str]] = []
    counts = f"{figures.hosts}, {figures.switches}, {figures.cables}"
    rows.append(("hosts, switches, cables", counts))
    rows.append(("diameter", f"{figures.diameter} links (mean {figures.mean_distance:.2f})"))
    rows.append(("a host's access", bit_rate(figures.access_bps)))
    rows.append(("bisection, one way", _bisection(figures)))
    for level in figures.levels:
        rows.append((f"level {level.level}, switches: {level.switches}", _level(level)))
    if price is not None:
        bought = ", ".join(f"{n} of {ports} ports" for ports, n in sorted(price.bought.items()))
        nics, cables, switches = map(_money, (price.nics, price.cables, price.switches))
        parts = f"NICs {nics}, cables {cables}, switches {switches}"
        rows.append(("cost", f"{_money(price.total)}: {parts} ({bought})"))
        rows.append(("cost per host", _money(price.total / figures.hosts)))
    lines = [{"figure": title, "value": words} for title, words in rows]
    show(
        make("topology", "", "", (text("", "figure"), text(name, "value")), lines, "none"), console
    )


def _money(amount: float) -> str:
    """Up to two decimals, never in powers of ten."""
    return f"{amount:,.2f}".removesuffix(".00")


def _level(level: Level) -> str:
    """Return where its frames can go, and how much wider it is below."""
    ways = {"up": level.up_bps, "across": level.across_bps}
    rates = [f"{bit_rate(bps)} {way}" for way, bps in ways.items() if bps]
    worst = [f"oversubscribed {level.worst:.4g} to 1"] if level.worst is not None else []
    return ", ".join([f"{bit_rate(level.down_bps)} down", *rates, *worst])


def _bisection(figures: Arithmetic) -> str:
    cut = figures.bisection
    half = figures.hosts // 2
    shares = [bps / figures.full_bps for bps in (cut.min_bps, cut.max_bps)]
    if cut.exact:
        each = bit_rate(cut.min_bps / half)
        return f"{bit_rate(cut.min_bps)}, {each} per host of one half, {shares[0]:.1%} of full"
    each = " to ".join(bit_rate(bps / half) for bps in (cut.min_bps, cut.max_bps))
    return (
        f"{bit_rate(cut.min_bps)} to {bit_rate(cut.max_bps)}, {each} per host of one half, "
        f"{shares[0]:.1%} to {shares[1]:.1%} of full ({cut.method})"
    )
