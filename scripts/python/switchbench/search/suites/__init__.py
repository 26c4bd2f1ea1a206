# SPDX-License-Identifier: BSD-3-Clause
"""Standard test suites by name, read from YAML declarations, and the measures of suites.

A declaration is a YAML file in this folder; it may use the anchors of shared.yaml.
Declarations refer to functions by name: flows (declaration.py), choices of trials (methods.py),
rows of results (formulas.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

import yaml

from ...base.measures import LESS, MORE, NEITHER, Measure
from . import declaration, formulas, methods
from .declaration import Statement, Subtest, Suite, SuiteParameters, Value

_FOLDER = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FUNCTIONS = {**vars(declaration), **vars(formulas), **vars(methods)}
_NAMED = (
    "variants", "method", "rows", "goals", "no_result", "bad", "range", "near", "burst_percent",
    "burst_frames",
)  # fmt: skip
_BETTER = {"more": MORE, "less": LESS, "neither": NEITHER}


def _function(said: Any) -> Any:
    """Return the function that YAML names, such as `EXTRA.search`, or the result of its call."""
    if isinstance(said, dict):
        [(name, arguments)] = said.items()
        made = _FUNCTIONS[name]
        return made(**arguments) if isinstance(arguments, dict) else made(*arguments)
    first, *rest = said.split(".")
    return reduce(getattr, rest, _FUNCTIONS[first])


def _values(entries: Iterable[Any], templates: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the table columns of a declaration; nested lists and templates are expanded."""
    for entry in entries:
        if isinstance(entry, list):
            yield from _values(entry, templates)
        elif "columns" in entry:
            template = templates[entry["columns"]]
            given = template["usual"] | entry
            for column in template["columns"]:
                filled = {key: str(value).format_map(given) for key, value in column.items()}
                yield from _values([filled], templates)
        else:
            yield Value(**entry | {"better": _BETTER[entry.get("better", "more")]})


def _subtest(entry: dict[str, Any], templates: Mapping[str, Any]) -> Subtest:
    """Return a subtest from its YAML entry, whose `prefix` begins the keys of table columns."""
    entry = {"section": "", "variants": None, **entry}
    prefix, values = entry.pop("prefix", ""), tuple(_values(entry["values"], templates))
    named = {key: _function(entry[key]) for key in _NAMED if entry.get(key) is not None}
    if prefix:
        values = tuple(v if v.of_setting else replace(v, key=f"{prefix}{v.key}") for v in values)
        rows = named["rows"]
        named["rows"] = lambda measured: (
            (row := rows(measured)) | {f"{prefix}{key}": value for key, value in row.items()}
        )
    return Subtest(**entry | named | {"values": values, "needs": tuple(entry.get("needs", ()))})


def _suite(name: str) -> Suite:
    texts = ((_FOLDER / f"{file}.yaml").read_text("utf-8") for file in ("shared", name))
    data: dict[str, Any] = yaml.load("".join(texts), Loader=_LOADER)
    templates = data.pop("shared")["templates"]
    for key in ("forwarding", "extra_frames"):  # entries that exist only for their YAML anchors
        data.pop(key, None)
    for key in ("sizes", "lab_sizes", "uses", "deviations"):
        data[key] = tuple(data.get(key, ()))
    for key in ("parameters", "lab"):
        data[key] = SuiteParameters(**data[key])
    data["subtests"] = tuple(_subtest(each, templates) for each in data["subtests"])
    data["statements"] = tuple(Statement(*one) for one in data["statements"])
    return Suite(**data)


SUITES = {name: _suite(name) for name in ("ndr-pdr", "rfc2544", "rfc9004", "rfc2889", "rfc8239")}


@cache
def suite_measures() -> Mapping[str, Measure]:
    """Return the measures of all suites that clauses can use, such as `rfc2544.throughput`."""
    found = {}
    for suite in SUITES.values():
        for subtest in suite.subtests:
            about = f"{suite.document} {subtest.section}, {subtest.title.lower()}"
            for value in (value for value in subtest.values if not value.of_setting):
                key = f"{suite.name}.{value.key}"
                found[key] = Measure(
                    key, value.title, value.unit, f"{about}: {value.definition}", value.better,
                    value.format, "min", overs=("run",),
                )  # fmt: skip
    return found
