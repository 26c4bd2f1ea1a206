# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the printed result that have rows of their own.

Messages, steps, times, transports, other programs' figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from ...base import format
from ...base.model import PERCENTILES
from ...records.latency import needed
from ..tables import messages, results, steps, times
from .grid import heading, note_lines, say, show

Entry = Mapping[str, Any]

_MOST_SIZES = 3  # of one benchmark that are all shown


def path_words(entry: Entry) -> str:
    """`pairs, 2 ranks, tcp in lab`."""
    ranks = format.of(entry["ranks"], "rank")
    return f"{format.pattern(entry)}, {ranks}, {entry['transport']} in {entry['network']}"


# --- ping-pong messages ---------------------------------------------------------------------------


def show_messages(found: Entry, console: Console) -> None:
    """Print what there is of the summary's `messages`."""
    for curve in found["curves"]:
        points = list(messages.points_of(curve))
        title = f"{messages.curves.title}, {path_words(curve)}: half the round trip"
        show(messages.curves.on_terminal(points), console, title, notes=_lost(points))
    summary = {"messages": found}
    ends = ["a peak at the largest size may be higher beyond it"]
    notes = ends if any(curve["peak_at_end"] for curve in found["curves"]) else []
    for spec, said in (
        (messages.peaks, notes),
        (messages.paths, ["alike: within 5 %"]),
        (messages.times, []),
        (messages.computing, []),
    ):
        show(spec.on_terminal(spec.entries(summary)), console, spec.title, notes=said)


def _lost(points: Sequence[Entry]) -> list[str]:
    """Return which sizes' messages did not all come back."""
    short = [point for point in points if point["lost"]]
    if not short:
        return []
    lost = sum(point["lost"] for point in short)
    total = format.of(lost + sum(point["round_trips"] for point in short), "message")
    sizes = ", ".join(f"{p['lost']} of {format.size_words(p['size'])}" for p in short)
    return [f"{lost} of {total} of these sizes did not come back: {sizes}"]


# --- dependent steps ------------------------------------------------------------------------------


def show_steps(found: Entry, console: Console) -> None:
    """Print what there is of the summary's `steps`."""
    functions = found.get("functions", [])
    for entry in functions:
        points = steps.functions.on_terminal(steps.points_of(entry))
        show(points, console, path_words(entry))
    if functions:
        note_lines(console, steps.functions.about)
    for spec in (steps.kernels, steps.rankings):
        title = f"{spec.title}. {spec.about}".rstrip(".")
        show(spec.on_terminal(spec.entries({"steps": found})), console, title)


# --- times ----------------------------------------------------------------------------------------


def show_times(summary: Entry, phases: Sequence[tuple[str, Entry]], console: Console) -> None:
    """Print all times of these phases, each with its title, and why some are not known."""
    rows = [(title, row) for title, phase in phases for row in times.of_phase(phase)]
    heading(console, "Times in µs (doc/reference/latency.md)")
    if not rows:
        note_lines(console, "no times were measured")
        return
    entries = [row for _, row in rows]
    table = times.latencies.on_terminal(entries)
    show(table, console, groups=[title for title, _ in rows], notes=list(_reasons(entries)))


def _reasons(rows: Iterable[Entry]) -> Iterator[str]:
    """Yield what may be wrong, and why a figure is missing; too few times are said once for all."""
    notes: dict[str, None] = {}
    few = set()
    for row in rows:
        kind, found = row["kind"], row["times"]
        if found["bound"]:
            bound = format.digits(found["bound"])
            notes[f"{kind}: ± {bound} µs, which the clocks may differ by"] = None
        for name, reason in found["reasons"].items():
            if name in PERCENTILES and 0 < found["count"] < needed(PERCENTILES[name]):
                few.add(name)
            elif not (name == "pdv" and found["p99_9"] is None):
                notes[f"{kind}: {reason}"] = None
    yield from notes
    if few:
        words = (
            f"{name.replace('_', '.')} needs {needed(share):,}"
            for name, share in PERCENTILES.items()
            if name in few
        )
        yield f"-: too few times: {', '.join(words)}"


# --- transports side by side ----------------------------------------------------------------------


def show_transports(summary: Entry, console: Console) -> None:
    """Print a table for each baseline."""
    for base, group in groupby(summary["comparisons"], key=lambda entry: entry["baseline"]):
        some = list(group)
        shown = list(results.transports.entries({**summary, "comparisons": some}))
        table = results.transports.on_terminal(shown)
        divided = any(one["ratio"]["throughput"] is not None for one in shown)
        title = f"{results.transports.title}, payload, one way"
        notes = list(_about_transports(some, base, divided))
        show(table, console, f"{title}; ÷ is by {base}'s" if divided else title, notes=notes)


def _about_transports(group: Sequence[Entry], base: str, divided: bool) -> Iterator[str]:
    if divided:
        yield f"÷ baseline: payload above 1 is faster than {base}, CPU above 1 costs more"
    else:
        yield "no ratios: no transport here bypasses the kernel, or the tester was the limit"
    yield "CPU is that of the whole machines, kernel and softirq included"
    every = [one for entry in group for one in entry["transports"]]
    if any(one["polling"] for one in every):
        yield "polling: each worker takes a whole core, whatever comes"
    sizes = sorted({one["message_bytes"] for one in every if not one["equal_size"]} - {None})
    if sizes:
        payloads = ", ".join(str(size) for size in sizes)
        yield f"sizes differ: a frame carries {payloads} B of payload"
    if any(entry["alternated"] is None for entry in group):
        yield "one repetition of each, one after the other"
    yield from dict.fromkeys(str(e["reason"]) for e in group if e["alternated"] is False)
    in_turns = [entry for entry in group if entry["alternated"]] if divided else []
    for place, one in enumerate(in_turns[0]["transports"] if in_turns else []):
        ratios = [entry["transports"][place]["ratio"] for entry in in_turns]
        bounds = [ratio[end] for ratio in ratios for end in ("throughput_min", "throughput_max")]
        if one["transport"] != base and None not in bounds:
            yield (
                f"in turns: {results.transport_words(one)} ÷ {base} in a single turn "
                f"{min(bounds):.2f} to {max(bounds):.2f}"
            )


# --- other programs -------------------------------------------------------------------------------


def show_imported(summary: Entry, console: Console, everything: bool = False) -> None:
    """Print figures that stand beside others' by definition, of many sizes the largest.

    `everything`: all of them.
    """
    entries = list(results.imported.entries(summary))
    if not entries:
        return
    groups = groupby(entries, key=lambda e: (e["file"], e["benchmark"], e["ranks"]))
    shown = [
        entry
        for _, group in groups
        for entry in (list(group) if everything else _foremost(list(group)))
    ]
    show(results.imported.on_terminal(shown), console)
    joined = sum(1 for entry in entries if entry["comparable"])
    rest = "" if everything else "; --all shows all"
    say(
        console,
        f"{format.of(len(entries), 'figure')}, {joined} by a definition that others share{rest}",
    )


def _foremost(rows: list[Entry]) -> list[Entry]:
    rows = [row for row in rows if row["comparable"]]
    sizes = {row["size"] for row in rows}
    if len(sizes) <= _MOST_SIZES:
        return rows
    largest = max(size for size in sizes if size is not None)
    return [row for row in rows if row["size"] == largest]
