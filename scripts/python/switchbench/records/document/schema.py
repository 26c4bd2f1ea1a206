# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schema of summary.json, made of its types, and what each key of the summary means.

    python -m switchbench.records.document.schema

writes it, for other programs. The formulas are those of doc/reference/measures.md, which is not
installed with the package: definitions.json has its words. It is made by tests/python/pages.py,
and a test compares the two, so that there is one source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NotRequired, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases, get_type_hints, is_typeddict

from ...base.errors import ConfigurationError
from ...base.measures import MEASURES
from .summary import SummaryDocument
from .trials import Free, PhaseEntry, PlanEntry

WORDS = "definitions.json"

# Parts that a summary may lack, as they are then.
_LACKING: Mapping[str, object] = {
    "steps": {"functions": [], "kernels": [], "rankings": []}, "superseded": [], "searches": [],
    "suite": {}, "verdict": None, "imported": [],
}  # fmt: skip
# Parts of the summary whose keys are known without those before them.
_UNPREFIXED = (
    *("PhaseEntry", "PlanEntry", "ImportedEntry", "FindingEntry", "Throughput", "FlowEnds"),
    *("PortEntry", "ClauseEntry", "ValueLocationEntry"),
    *("QueuePairs", "ComparisonEntry", "ComparedEntry", "StatisticEntry", "Lowest"),
    "TimesEntry",
)
_KEY = re.compile(r"^(\w+): (.*(?:\n {4}.*)*)$", re.MULTILINE)

Words = dict[Any, dict[str, str]]  # by type: what its keys mean


class _Form(GenerateJsonSchema):
    """Without titles, which are the keys once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def adapter() -> TypeAdapter[SummaryDocument]:
    """Check a value to be a summary."""
    return TypeAdapter(SummaryDocument)


def checked(summary: Mapping[str, Any], file: Path) -> SummaryDocument:
    """Return a summary with all its parts; ConfigurationError where it is of another form."""
    try:
        adapter().validate_python(summary)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{file} is damaged: at `{place}`: {first['msg']}") from None
    return cast("SummaryDocument", {**_LACKING, **summary})


@cache
def summary_schema() -> Free:
    """Return the JSON Schema (draft 2020-12) of the summary."""
    form = adapter().json_schema(schema_generator=_Form)
    for kind, words in _words_of(SummaryDocument).items():
        part = form if kind is SummaryDocument else form["$defs"][kind.__name__]
        if kind.__doc__:
            part["description"] = kind.__doc__.partition("\n")[0]
        for key, text in words.items():
            part["properties"][key]["description"] = text
    return {"$schema": _Form.schema_dialect, **form, "title": "Switchbench summary"}


def _words_of(document: Any) -> Words:
    """Return what keys mean, of each type that a document is made of."""
    found: Words = {}
    measures = {measure.entry: measure.definition for measure in MEASURES.values()}
    for path, kind, key, _ in (*_keys(PhaseEntry, ""), *_keys(PlanEntry, "")):
        if path in measures and key not in _said(kind):
            found.setdefault(kind, {})[key] = measures[path]
    for _, kind, key, value in _keys(document, ""):
        said = [text for text in getattr(value, "__metadata__", ()) if isinstance(text, str)]
        words = found.setdefault(kind, {})
        if said or key in _said(kind):
            words[key] = said[0] if said else _said(kind)[key]
    return found


@cache
def _said(kind: Any) -> dict[str, str]:
    """Return what a type and its bases say of keys in their docstrings."""
    found: dict[str, str] = {}
    for base in get_original_bases(kind):
        found |= _said(base) if is_typeddict(base) else {}
    return found | {key: " ".join(text.split()) for key, text in _KEY.findall(_document(kind))}


def _document(kind: Any) -> str:
    return re.sub(r"^ {4}", "", kind.__doc__ or "", flags=re.MULTILINE)


def _keys(hint: Any, before: str) -> Iterator[tuple[str, Any, str, Any]]:
    """Yield path, type, key and annotation of all keys of a type, and of those within."""
    if not is_typeddict(hint):
        for part in get_args(hint):
            yield from _keys(part, before)
        return
    for key, inner in get_type_hints(hint, include_extras=True).items():
        origin: Any = get_origin(inner)
        value = get_args(inner)[0] if origin is NotRequired else inner
        yield before + key, hint, key, value
        yield from _keys(value, f"{before}{key}.")


# --- what a key means ----------------------------------------------------------------------------


def definition(key: str) -> str:
    """Return what a key of the summary means, such as `throughput.min`.

    Nothing where nobody says.
    """
    short, formula = _from_schema().get(key), _words().get(key)
    if short and formula:
        return f"{short}. Formula: {formula}"
    words = short or formula
    if words is None:
        outer, dot, inner = key.partition(".")
        return definition(inner) if dot and outer else ""
    return words


def at(entry: Any, key: str) -> Any:
    """Return the value below a path of keys; None where there is none: older results have fewer."""
    for name in key.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


@cache
def _words() -> dict[str, str]:
    loaded: dict[str, str] = json.loads(files(__package__).joinpath(WORDS).read_text("utf-8"))
    return loaded


@cache
def _from_schema() -> dict[str, str]:
    """Descriptions of the summary's schema by key: `lost_frames`, `throughput.min`."""
    found: dict[str, str] = {}
    whole = summary_schema()
    parts = whole["$defs"]
    # Phases and plans first: of keys that others have as well, theirs is the meaning.
    for part in (*(parts[name] for name in _UNPREFIXED), whole):
        for key, words in _described(part, whole, ""):
            found.setdefault(key, words)
    return found


def _described(part: Free, whole: Free, before: str) -> Iterator[tuple[str, str]]:
    for name, value in part.get("properties", {}).items():
        key = before + name
        if value.get("description"):
            yield key, value["description"]
        inner = [value, *value.get("anyOf", []), value.get("items", {})]
        for one in inner:
            reference = one.get("$ref", "").rpartition("/")[2]
            yield from _described(whole["$defs"].get(reference, one), whole, f"{key}.")


if __name__ == "__main__":
    print(json.dumps(summary_schema(), indent=2, ensure_ascii=False))
