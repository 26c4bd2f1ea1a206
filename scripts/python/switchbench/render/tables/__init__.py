# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run, each declared once in tables.toml, for terminal, report, CSV and JSON."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from ...records.summary_form import at
from ..printer import BOTH, PAGE, SHOWN, TERMINAL, Column, Spec, measured
from . import rows


class Heading(StrEnum):
    """Sections of a report, in the order of the papers (doc/developer/papers.md).

    A section without contents is left out.
    """

    GLANCE = "At a glance"
    VERDICT = "Verdict"
    SUITE = "Suite"
    FINDINGS = "Findings"
    RESULTS = "Results"
    NODES = "Throughput by number of nodes"
    PAIRS = "Pairs"
    ALL_TO_ALL = "All to all"
    WHOM = "Traffic matrix"
    COURSE = "Throughput over time"
    MESSAGES = "Ping-pong by message size"
    STEPS = "Dependent steps"
    LATENCY = "Latency"
    LOSS = "Loss"
    SKEW = "Start and stop"
    CPU = "CPU time"
    PREDICTED = "Predicted and measured"
    PORTS = "Ports"
    TRIALS = "Trials"
    SET_UP = "Set-up"
    NOT_MEASURED = "What was not measured"
    CONFIGURATION = "The configuration"
    MEANINGS = "What the numbers mean"


_DECLARED = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
_SHARED = _DECLARED.pop("shared")
_COLUMN = re.compile(r"(?:\*(\w+)|(.+?))(?: \(([^()]+)\))?(?:: (\S+))?((?: [\w.=]+)*)")


def _column(line: str) -> Column:
    """Return the column that a line of tables.toml declares."""
    written, _, about = line.partition("  ")
    found = _COLUMN.fullmatch(written)
    assert found is not None, line
    measure, title, unit, key, words = found.groups()
    options: dict[str, Any] = {"unit": unit} if unit else {}
    options |= {"about": about} if about else {}
    for word in words.split():
        name, _, value = word.partition("=")
        if name in SHOWN:
            options["kind"] = name
        elif name in (PAGE, TERMINAL, BOTH):
            options["output"] = name
        elif name == "x100":
            options["value"] = lambda entry: (
                None if (ratio := at(entry, key)) is None else 100.0 * ratio
            )
        elif name in ("value", "note"):
            options[name] = getattr(rows, value)
        else:  # the column is a mark
            options[name] = int(value) if name == "drop" else value or True
    return measured(measure, **options) if measure else Column(title, key, **options)


def columns(text: str) -> list[Column]:
    """Return the columns that a text declares, with shared columns in place of their names."""
    lines = re.sub(r"\n  +", " ", text.strip()).splitlines()
    found = (columns(_SHARED[one[1:]]) if one[0] == "@" else [_column(one)] for one in lines)
    return [column for some in found for column in some]


def _spec(name: str, table: dict[str, str]) -> Spec:
    source, about = table.get("rows", ""), table.get("about", "")
    made: Any = getattr(rows, source[1:]) if source.startswith("=") else source
    some = tuple(columns(table["columns"]))
    return Spec(name, table["title"], about, some, made, table.get("defined", ""))


TABLES = {name: _spec(name, table) for name, table in _DECLARED.items()}
"""Declared tables by name."""


@cache
def subtests() -> tuple[Spec, ...]:
    """Return the tables of all suites, made from declarations that most commands do not need."""
    parts = (columns(_SHARED[name]) for name in ("suite_matrix", "suite_bursts", "suite"))
    return tuple(rows.subtests(*parts))


def by_section() -> dict[str, tuple[Spec, ...]]:
    """Return the tables of each section of a report."""
    named: dict[str, tuple[Spec, ...]] = {
        heading: tuple(
            TABLES[name] for name, one in _DECLARED.items() if one.get("section") == heading.name
        )
        for heading in Heading
    }
    return named | {Heading.SUITE: subtests()}


def every() -> tuple[Spec, ...]:
    """Return all tables in the order of the report."""
    return tuple(spec for specs in by_section().values() for spec in specs)
