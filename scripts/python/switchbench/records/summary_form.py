# SPDX-License-Identifier: BSD-3-Clause
"""The form of summary.json: its parts, their keys, and what each key means.

    python -m switchbench.records.summary_form

writes its JSON Schema, for other programs. summary_form.toml declares the parts. The formulas are
in doc/reference/measures.md, which is not installed with the package: tests/python/pages.py copies
them to definitions.json, and a test compares the two.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from ..base.errors import ConfigurationError
from ..base.measures import MEASURES, REDUCED
from .schema import Row, typed

Entry = Row  # part of a summary
SummaryDocument: TypeAlias = Entry
PhaseEntry: TypeAlias = Entry
PlanEntry: TypeAlias = Entry
ClauseEntry: TypeAlias = Entry
FindingEntry: TypeAlias = Entry
LocationEntry: TypeAlias = Entry

SCHEMA: Final = "switchbench-summary/2"
SEVERITIES = ("error", "warning", "info")
FAULTS = ("loss", "capacity", "size", "dead", "intermittent", "duplication", "reordering",
          "corruption", "flooding", "wrong-port", "burst")  # fmt: skip
KINDS = (*FAULTS, "unexplained", "host", "oversubscribed", "unfinished", "misdelivered", "forged")
NOTHING_LOCATED: LocationEntry = {
    "paths": "none", "phases": 0, "limited_phases": 0, "suspects": [], "hosts": [], "expected": [],
    "unexplained_frames": 0, "untested": [], "next_test": None, "problems": [],
}  # fmt: skip

# Optional parts of a summary, with the default values of missing ones.
_LACKING: Mapping[str, object] = {
    "steps": {"functions": [], "kernels": []}, "searches": [],
    "suite": {}, "verdict": None, "imported": [], "chain": [],
}  # fmt: skip
# Parts whose keys have a meaning without the path of the enclosing parts.
_UNPREFIXED = (
    *("PhaseEntry", "PlanEntry", "ImportedEntry", "FindingEntry", "Throughput", "FlowEnds"),
    *("PortEntry", "ClauseEntry", "ValueLocationEntry"),
    *("ComparisonEntry", "ComparedEntry", "StatisticEntry", "Lowest"),
    *("TimesEntry", "SummaryDocument"),
)

WORDS = Path(__file__).with_name("definitions.json")
_NOTHING = object()
plan_key = itemgetter("trial", "repeat", "network")  # key of a plan: a trial in a network
_T = TypeVar("_T")


@cache
def _declared() -> Entry:
    """Return the declared parts of the summary by name, and the valid values of kinds."""
    found = tomllib.loads(WORDS.with_name("summary_form.toml").read_text("utf-8"))
    found["Reduced"]["keys"] = [[one.key, "float | None", one.definition] for one in REDUCED]
    return found


@cache
def _parts() -> Entry:
    """Return the declared parts of the summary by name."""
    return {name: part for name, part in _declared().items() if name != "values"}


@cache
def _rows(part: str) -> dict[str, tuple[str, str]]:
    """Return kind and meaning of each key of a part, with the keys of included parts first."""
    own = {key: (kind, "".join(words[:1])) for key, kind, *words in _parts()[part]["keys"]}
    others: dict[str, tuple[str, str]] = {}
    for other in _parts()[part].get("has", ()):
        others |= _rows(other)
    return others | own


def counts() -> list[tuple[str, str, str, str]]:
    """Return the declared counts of a phase: key, table, column, transports."""
    parts = ("PlanCounts", "Counts", "RdmaCounts")
    keys = [row for part in parts for row in _parts()[part]["keys"]]
    return [(row[0], row[3], row[4], "".join(row[5:])) for row in keys if len(row) > 3]


@cache
def _kinds() -> Entry:
    """Return the types of all kinds of keys by name; a part becomes a `TypedDict`."""
    known: Entry = {
        "Annotated": Annotated, "Any": Any, "Field": Field, "Literal": Literal,
        "NotRequired": NotRequired, "Severity": Literal[SEVERITIES], "FaultKind": Literal[FAULTS],
        "Kind": Literal[KINDS], "Count": Annotated[int, Field(ge=0)],
        "Moment": Annotated[str, Field(json_schema_extra={"format": "date-time"})],
        "Sha256": Annotated[str, Field(pattern="^[0-9a-f]{64}$")],
        "Size": Annotated[int, Field(ge=0)] | list[Annotated[int, Field(ge=1)]],
        **{name: Literal[tuple(some)] for name, some in _declared()["values"].items()},
    }  # fmt: skip
    for part in _parts():
        kinds = {key: kind for key, (kind, _) in _rows(part).items()}
        known[part] = typed(part, kinds, known)
        known[part].__doc__ = _parts()[part]["title"]
    known["SummaryDocument"].__pydantic_config__ = ConfigDict(extra="forbid")
    return known


def filled(part: str, *sources: object, **own: object) -> Entry:
    """Create a part of the summary; a value is from `own`, else from the first source with the key.

    A source is a mapping, or an object with attributes of the keys' names. A key that no source has
    is null.
    """
    found: Entry = {}
    for key, (kind, _) in _rows(part).items():
        for source in (own, *sources):
            if isinstance(source, Mapping):
                value = source.get(key, _NOTHING)
            else:
                value = getattr(source, key, _NOTHING)
            if value is not _NOTHING:
                found[key] = value
                break
        else:
            if not kind.startswith("NotRequired"):
                found[key] = None
    return found


def first_mistake(error: ValidationError) -> str:
    """Return a text with the place of the first invalid value, and the reason."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(at) for at in first["loc"])
    return f"it has no {place}" if first["type"] == "missing" else f"at `{place}`: {first['msg']}"


def refuse_other_keys(value: object, part: str, file: Path) -> None:
    """Raise ConfigurationError if a value lacks the declared form of a summary's part."""
    try:
        _adapter(part).validate_python(value, strict=True)
    except ValidationError as error:
        raise ConfigurationError(f"{file} is damaged: {first_mistake(error)}") from None


def checked(summary: Entry, file: Path) -> SummaryDocument:
    """Check a summary, and add its missing parts; raise ConfigurationError for an invalid value."""
    refuse_other_keys(summary, "SummaryDocument", file)
    return {**_LACKING, **summary}


@cache
def _adapter(part: str) -> TypeAdapter[Any]:
    return TypeAdapter(_kinds()[part])


class _Form(GenerateJsonSchema):
    """Generator of a JSON Schema without titles, since these only repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def summary_schema() -> Entry:
    """Return the JSON Schema (draft 2020-12) of the summary."""
    form = _adapter("SummaryDocument").json_schema(schema_generator=_Form)
    for name, part in (*form["$defs"].items(), ("SummaryDocument", form)):
        part["description"] = _parts()[name]["title"]
        for key, value in part["properties"].items():
            if words := _words().get((name, key)):
                value["description"] = words
    return {"$schema": _Form.schema_dialect, **form, "title": "Switchbench summary"}


# --- meaning of keys -----------------------------------------------------------------------------


def _keys(part: str, before: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, part and name of each key in a part of the summary and in its inner parts."""
    for key, (kind, _) in _rows(part).items():
        yield before + key, part, key
        for inner in re.findall(r"\w+", kind):
            if inner in _parts():
                yield from _keys(inner, f"{before}{key}.")


@cache
def _words() -> dict[tuple[str, str], str]:
    """Return the meaning of each key of each part; for a measure, its definition."""
    found = {
        (name, key): words for name in _parts() for key, (_, words) in _rows(name).items() if words
    }
    measures = {measure.entry: measure.definition for measure in MEASURES.values()}
    for path, part, key in (*_keys("PhaseEntry"), *_keys("PlanEntry")):
        if path in measures:
            found.setdefault((part, key), measures[path])
    return found


@cache
def _short() -> dict[str, str]:
    """Return the meanings of keys by path, such as `lost_frames` or `throughput.min`.

    If several parts have a key, the meaning is that of phases and plans.
    """
    found: dict[str, str] = {}
    for name in _UNPREFIXED:
        for path, part, key in _keys(name):
            if words := _words().get((part, key)):
                found.setdefault(path, words)
    return found


@cache
def _formulas() -> dict[str, str]:
    loaded: dict[str, str] = json.loads(WORDS.read_text("utf-8"))
    return loaded


def definition(key: str) -> str:
    """Return the meaning of a key of the summary, such as `throughput.min`; "" if unknown."""
    short, formula = _short().get(key), _formulas().get(key)
    if short and formula:
        return f"{short}. Formula: {formula}"
    outer, dot, inner = key.partition(".")
    return short or formula or (definition(inner) if dot and outer else "")


def at(entry: Any, key: str) -> Any:
    """Return the value at a path of keys, such as `throughput.min`; None if a key is missing."""
    for name in key.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


def by(entries: Iterable[_T], key: str | Callable[[_T], Any]) -> dict[Any, list[_T]]:
    """Group entries by one of their keys or by a function's value, in order of appearance."""
    found: dict[Any, list[_T]] = {}
    take: Any = key if callable(key) else itemgetter(key)
    for entry in entries:
        found.setdefault(take(entry), []).append(entry)
    return found


if __name__ == "__main__":
    print(json.dumps(summary_schema(), indent=2, ensure_ascii=False))
