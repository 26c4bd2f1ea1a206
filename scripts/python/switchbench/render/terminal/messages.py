# SPDX-License-Identifier: BSD-3-Clause
"""The tables of messages there and back: curves, which path to use, fits, computing beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...base import format
from ...base.format import Unit, unit_for

Entry = dict[str, Any]

_WORST = 5  # outliers shown of each fit
_SIZE_WIDTH = 11  # characters of a curve's first column
_CURVE_WIDTH = 31  # and of the three of one number of nodes


def show(messages: Entry, console: Console) -> None:
    """Prints what there is of the summary's `messages`."""
    _curves(messages["curves"], console)
    _peaks(messages["curves"], console)
    _paths(messages["crossovers"], console)
    _fits(messages["scatter"], console)
    _computing(messages["concurrent_computation"], console)


def size_words(size: float | None) -> str:
    """Bytes for people, in the powers of two that sweeps go by."""
    if size is None:
        return format.UNKNOWN
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{size / bytes_of:.4g} {unit}"
    return f"{size:.0f} B"


def _path(entry: Entry) -> str:
    return f"{entry['transport']} in {entry['network']}, {format.pattern(entry)}"


def _curves(curves: list[Entry], console: Console) -> None:
    """One table for each path and pattern: a row a size, two columns a number of nodes."""
    for path, group in groupby(sorted(curves, key=_path), key=_path):
        some = sorted(group, key=lambda curve: curve["ranks"])
        unit = unit_for(curve["peak_mbps"] for curve in some)
        _heading(
            f"Messages there and back, {path}: half the round trip, and {unit.name} of the mean",
            console,
        )
        fitting = max(1, (console.width - _SIZE_WIDTH) // _CURVE_WIDTH)
        for first in range(0, len(some), fitting):
            _print_curves(some[first : first + fitting], unit, console)
        for curve in some:
            _lost(curve, console)


def _lost(curve: Entry, console: Console) -> None:
    """Which sizes' messages did not all come back."""
    lost = {point["size"]: point["lost"] for point in curve["points"] if point["lost"]}
    if lost:
        total = sum(
            point["lost"] + point["round_trips"] for point in curve["points"] if point["lost"]
        )
        sizes = ", ".join(f"{count} of {size_words(size)}" for size, count in lost.items())
        _say(
            f"  {curve['ranks']} ranks: {sum(lost.values())} of {format.of(total, 'message')} of "
            f"these sizes did not come back: {sizes}",
            console,
        )


def _print_curves(curves: list[Entry], unit: Unit, console: Console) -> None:
    """As many numbers of nodes as fit beside each other."""
    table = _table("size")
    for curve in curves:
        for title in (f"{curve['ranks']} ranks\nmean µs", "p99\nµs", f"\n{unit.name}"):
            table.add_column(title, justify="right", no_wrap=True)
    for size in sorted({point["size"] for curve in curves for point in curve["points"]}):
        table.add_row(size_words(size), *_cells(curves, size, unit))
    console.print(table)


def _cells(curves: list[Entry], size: int, unit: Unit) -> Iterator[str]:
    for curve in curves:
        point = next((point for point in curve["points"] if point["size"] == size), None)
        if point is None:
            yield from [format.UNKNOWN] * 3
            continue
        yield format.digits(point["latency_us"]["mean"])
        yield format.digits(point["latency_us"]["p99"])
        yield unit.show(point["bandwidth_mbps"])


def _peaks(curves: list[Entry], console: Console) -> None:
    if not curves:
        return
    unit = unit_for(curve["peak_mbps"] for curve in curves)
    _heading("Peak bandwidth, and the message sizes that reach half and 90 % of it", console)
    table = _table("", "ranks", f"peak {unit.name}", "at", "half from", "90 % from")
    for curve in curves:
        table.add_row(
            escape(_path(curve)),
            str(curve["ranks"]),
            unit.show(curve["peak_mbps"]),
            size_words(curve["peak_size"]),
            size_words(curve["size_at_half_peak"]),
            size_words(curve["size_at_90_percent_peak"]),
        )
    console.print(table)
    if any(curve["peak_at_end"] for curve in curves):
        _say("  a peak at the largest size may be higher beyond it", console)


def _range_words(part: Entry) -> str:
    least, most = size_words(part["from"]), size_words(part["to"])
    return least if least == most else f"{least} to {most}"


def _paths(crossovers: list[Entry], console: Console) -> None:
    if not crossovers:
        return
    _heading("Which path to use, by message size (alike: within 5 %)", console)
    table = _table("", "ranks", "sizes", "use", "the curves cross at")
    for crossing in crossovers:
        for number, part in enumerate(crossing["ranges"]):
            table.add_row(
                escape(" or ".join(crossing["paths"])) if number == 0 else "",
                str(crossing["ranks"]) if number == 0 else "",
                _range_words(part),
                escape(part["use"] or "either: alike"),
                size_words(part["crossover_size"]) if part["crossover_size"] else "",
            )
    console.print(table)


def _fits(fits: list[Entry], console: Console) -> None:
    if not fits:
        return
    unit = unit_for(entry["bandwidth_mbps"] for entry in fits)
    _heading("Single times fitted by latency + size / bandwidth (half the round trip)", console)
    table = _table("", "ranks", "messages", "latency µs", f"{unit.name}", "scale %")
    for title in ("1 to 99 % of times are off by", "outliers", "lost"):
        table.add_column(title, justify="right")
    for entry in fits:
        table.add_row(
            escape(_path(entry)),
            str(entry["ranks"]),
            format.count(entry["messages"]),
            format.digits(entry["latency_us"]),
            unit.show(entry["bandwidth_mbps"]),
            format.digits(entry["residual_percent"]),
            f"{entry['residual_p1_percent']:+.0f} to {entry['residual_p99_percent']:+.0f} %",
            format.count(entry["outliers"]),
            format.UNKNOWN if entry["lost"] is None else format.count(entry["lost"]),
        )
    console.print(table)
    for entry in fits:
        for worst in entry["worst"][:_WORST]:
            _say(
                f"  trial {entry['trial']}: {worst['src']} {format.ARROW} {worst['dst']}, "
                f"{size_words(worst['size'])}: {format.digits(worst['time_us'])} µs, "
                f"{format.digits(worst['ratio_to_fit'])} times the fit, "
                f"{format.digits(worst['started_s'])} s after the start",
                console,
            )


def _computing(entries: list[Entry], console: Console) -> None:
    if not entries:
        return
    _heading("Computing beside the messages: Mflop/s of one thread", console)
    table = _table("", "share", "alone", "beside", "messages made it", "worst node")
    for title in ("piece p99 µs\nalone", "beside", "longest µs\nalone", "beside"):
        table.add_column(title, justify="right")
    for entry in entries:
        pieces = [entry["piece_us"][part] for part in ("compute_only", "concurrent")]
        table.add_row(
            f"trial {entry['trial']}, {entry['transport']}",
            f"{100 * entry['share']:.0f} %",
            format.digits(entry["compute_only_mflops"]),
            format.digits(entry["concurrent_mflops"]),
            effect(entry["slowdown_percent"], entry["slowdown_ci_half_width_percent"]),
            f"{entry['slowest_node']}: {changed(entry['max_slowdown_percent'])}",
            *(format.digits(piece["p99"]) for piece in pieces),
            *(format.digits(piece["max"]) for piece in pieces),
        )
    console.print(table)


def changed(slowdown_percent: float | None) -> str:
    """Slower or faster, and by how much."""
    if slowdown_percent is None:
        return format.UNKNOWN
    return f"{abs(slowdown_percent):.1f} % {'faster' if slowdown_percent < 0 else 'slower'}"


def effect(slowdown_percent: float | None, half_width: float | None) -> str:
    """The same, unless the nodes differ so much among themselves that it may be nothing."""
    said = changed(slowdown_percent)
    if slowdown_percent is None or half_width is None or abs(slowdown_percent) > half_width:
        return said
    return f"{said}, within noise (± {half_width:.1f} %)"


def _heading(text: str, console: Console) -> None:
    console.print(f"\n{escape(text)}", style="bold", highlight=False)


def _say(text: str, console: Console) -> None:
    console.print(escape(text), style="dim", highlight=False)


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number == 0 else "right")
    return table
