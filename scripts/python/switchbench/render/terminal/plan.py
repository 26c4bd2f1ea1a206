# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a run on a terminal: tests with their time, then each plan's phases by names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from ...base import format, quantities
from ..tables.table import Column, count, make, text
from .grid import heading, say, show

PORTS_SHOWN = 24

Entry = Mapping[str, Any]

_TESTS = (
    count("test", "test"),
    text("pattern", "pattern", value=lambda test: _pattern(test["pattern"], test["parameters"])),
    text("transport", "transport"),
    text("network", "networks", value=lambda test: " + ".join(test["networks"])),
    text("ranks", "ranks", value=lambda test: _few(test["ranks"])),
    text("size", "sizes", value=lambda test: _few(_sizes(test))),
    text("load", "loads", value=lambda test: _few(test["loads"]) or format.UNKNOWN),
    text("repeat", "repeat", value=lambda test: " to ".join(
        map(str, sorted({test["repeat"], test["repeat_most"]})))),
    count("trials", "trials"),
    count("phases", "phases"),
    text("expected", "expected_s", value=lambda test: format.human(test["expected_s"])),
)  # fmt: skip
_CLAUSES = (
    text("clause", "id", value=lambda clause: " ".join(
        clause[key] for key in ("id", "clause") if key in clause) or format.UNKNOWN),
    text("what it requires", "require", value=lambda clause: " ".join((
        clause["measure"], "of", "the run" if clause["over"] == "run" else f"each {clause['over']}",
        clause["require"]))),
    count("trials", "trials", value=lambda clause: len(clause["trials"])),
)  # fmt: skip
_PORTS = (
    text("network", "network"),
    count("rank", "rank"),
    text("port", "port"),
    text("switch", "switch", value=lambda port: port["switch"] or ""),
    text("switch port", "switch_port", value=lambda port: port["switch_port"] or ""),
    text("line rate", "line_rate_bps", value=lambda port: quantities.RATE.text(
        port["line_rate_bps"]) if port["line_rate_bps"] else "unknown"),
)  # fmt: skip
_PHASES = (
    count("phase", "phase"),
    text("name", "name"),
    text("network", "network"),
    text("flows", "flows"),
)


def show_plan(plan: Entry, console: Console, everything: bool, chosen: bool) -> None:
    """Print what plan/listing.py says. `chosen`: only some phases were asked for."""
    say(console, plan["site"])
    _table(console, _TESTS, plan["tests"])
    expected_s, longest_s = plan["expected_s"], plan["longest_s"]
    longest = f" to {format.human(longest_s)}" if longest_s > expected_s else ""
    say(
        console,
        f"\nexpected time {format.human(expected_s)}{longest}, of it "
        f"{format.human(plan['start_s'])} to start",
    )
    for word, key in (("load", "offered"), ("note", "notes")):
        for line in plan[key]:
            say(console, f"{word}: {line}", hang=2)
    _table(console, _CLAUSES, plan["clauses"])
    if plan["clauses"]:
        say(console, f"clauses: SHA-256 {plan['clauses_sha256']}")
    ports = plan["ports"]
    if any(port["switch"] for port in ports):
        most = len(ports) if everything else PORTS_SHOWN
        more = f"… {len(ports) - most} more (--all)" if len(ports) > most else ""
        _table(console, _PORTS, ports[:most], more)
    for one in plan["plans"]:
        heading(console, _title(one, [t for t in plan["trials"] if t["plan"] == one["plan"]]))
        rows = [{**phase, **network} for phase in one["phases"] for network in phase["networks"]]
        left = one["total_phases"] - len(one["phases"])
        more = f"… {left} more phases (--all, or --phases RANGES)" if left and not chosen else ""
        columns = [c for c in _PHASES if c.key != "network" or len(one["networks"]) > 1]
        show(make("plan", "", "", columns, rows, "none"), console, notes=(more,))


def _table(
    console: Console, columns: Sequence[Column], rows: Sequence[Entry], more: str = ""
) -> None:
    if rows:
        say(console, "")
        show(make("plan", "", "", columns, rows, "none"), console, notes=(more,))


def _pattern(name: str, parameters: Mapping[str, list[Any]]) -> str:
    return " ".join([name, *_words(parameters)])


def _words(parameters: Mapping[str, list[Any]]) -> Iterator[str]:
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
        found = list(dict.fromkeys(value[key] for value in values))
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


def _sizes(test: Entry) -> list[str]:
    """In words; an application kernel's are its class's, or its matrix's."""
    parameters = test["parameters"]
    if "scatter" in parameters:
        spans = (value["sizes"] for value in parameters["scatter"])
        return list(dict.fromkeys(" to ".join(map(quantities.SIZE.text, span)) for span in spans))
    if test["sizes"]:
        return [_size(sizes, test["size_unit"]) for sizes in test["sizes"]]
    kinds = {"problem_class": "class", "matrix": "matrix"}
    return [f"{word} {value}" for key, word in kinds.items() for value in parameters.get(key, ())]


def _size(sizes: Sequence[int], unit: str) -> str:
    if len(sizes) == 1:
        return str(sizes[0]) if unit == "frame" else quantities.SIZE.text(sizes[0])
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    return "IMIX " + " ".join(f"{times}x{size}" for size, times in runs)


def _title(plan: Entry, trials: Sequence[Entry]) -> str:
    tests = list(dict.fromkeys(trial["test"] for trial in trials))
    ranks = " + ".join(f"{len(names)} ranks of {name}" for name, names in plan["ranks"].items())
    parameters = {key: [value] for key, value in trials[0]["parameters"].items()}
    return (
        f"plan {plan['plan']}: {_pattern(plan['pattern']['name'], parameters)}, {ranks}, "
        f"{format.of(plan['total_phases'], 'phase')}{_steps_words(trials[0], plan)} "
        f"(test{'s' * (len(tests) > 1)} {', '.join(map(str, tests))})"
    )


def _steps_words(trial: Entry, plan: Entry) -> str:
    """Return what one repetition is of what goes by steps."""
    steps = trial["steps"]
    if steps is None:
        return ""
    told = [format.of(steps["steps"], "step"), format.of(steps["messages"], "message")]
    together = ""
    if trial["size"] is None:
        together = f", {format.decimal_size(steps['payload_bytes'])} together"
    in_all = steps["iterations"]
    in_all = f"; {format.of(in_all, 'iteration')} in total" if in_all else ""
    where = " in all phases" if plan["total_phases"] > 1 else ""
    return f", {' and '.join(told)} of all ranks{where}{together}{in_all}"
