# SPDX-License-Identifier: BSD-3-Clause
"""The verdict in the printed result: each clause's words, what was seen, where, how far off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...base import format

Entry = Mapping[str, Any]

_WRONG = {">": "too little", "<": "too much"}  # by how a requirement begins
_STYLES = {"accepted": "green", "refused": "bold red", "inconclusive": "yellow"}


def show(summary: Entry, console: Console) -> None:
    """Prints the clauses and the verdict of all of them."""
    grid = Table.grid(padding=(0, 2))
    for clause in summary["expectations"]:
        lines = "\n".join((_title(clause), *_lines(clause)))
        grid.add_row(Text(f"  {clause['verdict']}", _STYLES[clause["verdict"]]), Text(lines))
    console.print(grid)
    verdict = summary.get("verdict")  # older summaries have none
    if verdict is None:
        return
    console.print()
    console.print(Text(f"{verdict['sentence']}.", _STYLES[verdict["verdict"]]))
    for reservation in verdict["warnings"]:
        console.print(Text(f"Warning: {reservation}.", "yellow"))
    console.print(Text(verdict["scope"]))
    console.print(Text(f"clauses    SHA-256 {verdict['clauses_sha256']}"))


def _title(clause: Entry) -> str:
    """The clause as the contract has it."""
    words = " ".join(str(clause[key]) for key in ("id", "clause") if clause[key])
    source = clause.get("source")
    return (words or clause["measure"]) + (f" ({source})" if source else "")


def _lines(clause: Entry) -> Iterator[str]:
    over = clause["over"] or "run"
    of = "the run" if over == "run" else f"each {over}"
    unit = f" {clause['unit']}" if clause.get("unit") else ""
    required = f"{clause['measure']} of {of} {clause['require']}"
    if clause["value"] is None:
        yield f"{required}: nothing was seen"
    else:
        at = "" if clause["of"] == "the run" else f" at {clause['of']}"
        yield f"{required}: {_number(clause['value'])}{unit}{at}{_margin(clause, unit)}"
    if clause["failed"] and clause["judged"] > 1:
        yield f"it does not hold for {clause['failed']} of {clause['judged']}"
    if clause["reason"]:
        yield clause["reason"]


def _margin(clause: Entry, unit: str) -> str:
    """How far the worst value is from the limit."""
    margin = clause.get("margin")
    if not margin:
        return ""
    share = clause["margin_percent"]
    percent = "" if share is None or unit == " %" else f", {format.digits(abs(share))} %"
    side = "to spare" if margin > 0 else _WRONG.get(clause["require"].lstrip()[0], "off")
    return f", {_number(abs(margin))}{unit}{percent} {side}"


def _number(value: float) -> str:
    """Counts as they are, figures with four digits."""
    return format.count(int(value)) if value == int(value) else format.digits(value)
