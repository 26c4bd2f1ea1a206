# SPDX-License-Identifier: BSD-3-Clause
"""What `switchbench plan` prints: tests with their time, then each plan's phases by names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base import format, quantities, timing
from ..base.model import SCHEDULE, Part, Port, Run, Trial
from ..config.clauses import clauses_sha256, selected
from .engine import Phase
from .hops import Hops
from .listing_json import (
    OF_CLASS,
    ListedPlan,
    ListedTest,
    ListingOptions,
    notes,
    offered,
    phases_shown,
    plans_of,
    tests_of,
    unique,
)

FLOWS_SHOWN = 16
PORTS_SHOWN = 24


def show(run: Run, choice: ListingOptions, console: Console) -> None:
    """Prints the plan of a run."""
    console.print(Text(_site_line(run)))
    console.print(_tests_table(run))
    longest = f" to {timing.human(run.longest_s)}" if run.longest_s > run.expected_s else ""
    console.print(
        f"expected time {timing.human(run.expected_s)}{longest}, of it "
        f"{timing.human(run.start_s)} to start"
    )
    for line in offered(run):
        console.print(Text(f"load: {line}"))
    for note in notes(run):
        console.print(Text(f"note: {note}"))
    if run.expectations:
        console.print(_clauses_table(run))
        console.print(Text(f"clauses: SHA-256 {clauses_sha256(run.expectations)}\n"))
    if any(port.switch for port in run.site.ports):
        console.print(_ports_table(run, choice))
    hops = Hops.of(run.site)
    if hops is not None:
        console.print(Text("(n): hops of a flow, over links or switches from node to node\n"))
    if any(trial.traffic == SCHEDULE for trial in run.trials):
        console.print(
            "Of schedules, flows are all pairs that send to each other: messages, and the barrier "
            "between batches.\n"
        )
    for plan in plans_of(run):
        _show_plan(plan, choice, hops, console)


def _site_line(run: Run) -> str:
    site = run.site
    what = f"lab {site.lab}" if site.lab else f"site of {len(site.processes)} hosts ({site.launch})"
    networks = ", ".join(f"{name}: {len(ports)} ports" for name, ports in site.networks.items())
    return f"{what}; {networks}; {len(site.processes)} node processes; seed {run.seed}"


def _tests_table(run: Run) -> Table:
    table = _table("test", "pattern", "transport", "network", "ranks", "size", "load")
    for column in ("repeat", "trials", "phases", "expected"):
        table.add_column(column, justify="right")
    for test in tests_of(run):
        cells = (
            str(test.test),
            " ".join([test.pattern, *_words(test.parameters)]),
            test.transport,
            " + ".join(test.networks),
            _few(test.ranks),
            _few(_sizes(test)),
            _few(test.loads) or format.UNKNOWN,
            _repeats(test),
            str(test.trials),
            str(test.phases),
            timing.human(test.expected_s),
        )
        # As plain text: rich would take [left right] for its own markup.
        table.add_row(*map(Text, cells))
    return table


def _clauses_table(run: Run) -> Table:
    """What will be judged, and in how many trials."""
    table = _table("clause", "what it requires")
    table.add_column("trials", justify="right")
    for clause in run.expectations:
        over = clause.get("over", "run")
        of = "the run" if over == "run" else f"each {over}"
        words = " ".join(clause[key] for key in ("id", "clause") if key in clause)
        required = f"{clause['measure']} of {of} {clause['require']}"
        trials = sum(1 for _ in selected(clause["where"], run.trials))
        table.add_row(*map(Text, (words or "-", required, str(trials))))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _words(parameters: dict[str, list[Any]]) -> Iterator[str]:
    """Parameters in few words: `forward`, `partners=across`, `count=7,8,9`."""
    for key, values in parameters.items():
        if key == "scatter":
            yield from _scatter_words(values)
            continue
        texts = [_word(value) for value in values]
        if texts == ["true"]:
            yield key
        elif texts != ["false"]:
            yield f"{key}={','.join(texts)}"


def _scatter_words(values: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Messages of drawn sizes, which have their own column: `scatter=random messages=250`."""
    for name, key in (("scatter", "partners"), ("messages", "count"), ("compute", "compute")):
        found = unique(value[key] for value in values)
        if found != [0.0]:
            yield f"{name}={','.join(str(value) for value in found)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + " ".join(_word(item) for item in value[:4]) + ("…" * (len(value) > 4)) + "]"
    return str(value)


def _few(values: Sequence[Any], most: int = 7) -> str:
    texts = [str(value) for value in values]
    return ", ".join(texts[:most]) + (f" … {texts[-1]}" if len(texts) > most else "")


def _sizes(test: ListedTest) -> list[str]:
    """In words; an application kernel's are its class's, or its matrix's."""
    parameters = test.parameters
    if "scatter" in parameters:
        spans = (value["sizes"] for value in parameters["scatter"])
        return unique(" to ".join(map(quantities.SIZE.text, span)) for span in spans)
    if test.sizes:
        return [_size(sizes, test.size_unit) for sizes in test.sizes]
    kinds = {"problem_class": "class", "matrix": "matrix"}
    return [f"{word} {value}" for key, word in kinds.items() for value in parameters.get(key, ())]


def _size(sizes: Sequence[int], unit: str) -> str:
    if len(sizes) == 1:
        return str(sizes[0]) if unit == "frame" else quantities.SIZE.text(sizes[0])
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    return "IMIX " + " ".join(f"{count}x{size}" for size, count in runs)


def _ports_table(run: Run, choice: ListingOptions) -> Table:
    table = _table("network", "rank", "port", "switch", "switch port", "line rate")
    ports = [
        (network, rank, port)
        for network, members in run.site.networks.items()
        for rank, port in enumerate(members)
    ]
    most = len(ports) if choice.everything else PORTS_SHOWN
    for network, rank, port in ports[:most]:
        rate = quantities.RATE.text(port.line_rate_bps) if port.line_rate_bps else "unknown"
        where = (port.switch or "", port.switch_port or "")
        table.add_row(*map(Text, (network, str(rank), port.name, *where, rate)))
    if len(ports) > most:
        table.add_row("", "", f"… {len(ports) - most} more (--all)", "", "", "")
    return table


def _show_plan(
    plan: ListedPlan, choice: ListingOptions, hops: Hops | None, console: Console
) -> None:
    console.print(Text(_title(plan), style="bold"))
    numbers = phases_shown(plan, choice)
    table = _table("phase", "name", "network") if len(plan.parts) > 1 else _table("phase", "name")
    table.add_column("flows", overflow="fold")
    for part, phases in zip(plan.parts, plan.listing(numbers), strict=True):
        for phase in phases:
            where = [Text(part.network)] if len(plan.parts) > 1 else []
            flows = _flows(phase, part, choice, hops)
            table.add_row(str(phase.number), phase.name, *where, flows)
    console.print(table)
    if len(numbers) < plan.phases and choice.phases is None:
        console.print(f"… {plan.phases - len(numbers)} more phases (--all, or --phases RANGES)\n")


def _title(plan: ListedPlan) -> str:
    tests = list(dict.fromkeys(trial.test for trial in plan.trials))
    ranks = " + ".join(f"{len(part.ranks)} ranks of {part.network}" for part in plan.parts)
    first = plan.trials[0]
    parameters = {key: [value] for key, value in first.parameters.items()}
    words = " ".join([plan.pattern["name"], *_words(parameters)])
    return (
        f"plan {plan.number}: {words}, {ranks}, {format.of(plan.phases, 'phase')}"
        f"{_steps_words(first)} "
        f"(test{'s' * (len(tests) > 1)} {', '.join(map(str, tests))})"
    )


def _steps_words(trial: Trial) -> str:
    """What one repetition is of what goes by steps."""
    steps = trial.steps
    if steps is None:
        return ""
    told = [format.of(steps.steps, "step"), format.of(steps.messages, "message")]
    together = ""
    if trial.pattern["name"] in OF_CLASS:
        together = f", {format.decimal_size(steps.payload_bytes)} together"
    in_all = f"; {format.of(steps.iterations, 'iteration')} in total" if steps.iterations else ""
    where = " in all phases" if trial.phases > 1 else ""
    return f", {' and '.join(told)} of all ranks{where}{together}{in_all}"


def _flows(phase: Phase, part: Part, choice: ListingOptions, hops: Hops | None) -> Text:
    """Flows by names: `a⇄b` both ways, `a→b`, `a⇒b` where a forwards; then who idles."""
    arrows = _arrows(phase)
    shown = islice(arrows, None if choice.everything else FLOWS_SHOWN)
    lines = ", ".join(_arrow_text(*arrow, part.ranks, hops) for arrow in shown)
    if more := sum(1 for _ in arrows):
        lines += f" … {more} more"
    if phase.idle:
        idle = [part.ranks[rank].name for rank in phase.idle]
        lines += f"; idle: {NodeSet.fromlist(idle, resolver=RESOLVER_NOGROUP)}"
    return Text(lines)


def _arrows(phase: Phase) -> Iterator[tuple[int, int, str]]:
    """Source, destination and the arrow between them; two flows that meet are one."""
    pairs = {src << 32 | dst for src, dst, _ in phase.flows}  # numbers: faster than tuples
    for src, dst, forwards in phase.flows:
        meets = dst << 32 | src in pairs
        if src < dst or not meets:
            yield src, dst, "⇄" if meets else "⇒" if forwards else "→"


def _arrow_text(src: int, dst: int, arrow: str, ranks: Sequence[Port], hops: Hops | None) -> str:
    """Without spaces, so that lines break between flows and not inside of one."""
    far = f"({hops.between(ranks[src].host, ranks[dst].host)})" if hops is not None else ""
    return f"{ranks[src].name}{arrow}{ranks[dst].name}{far}"


def _repeats(test: ListedTest) -> str:
    least, most = test.repeat, test.repeat_most
    return str(least) if least == most else f"{least} to {most}"
