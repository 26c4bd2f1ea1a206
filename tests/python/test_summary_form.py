# SPDX-License-Identifier: BSD-3-Clause
"""The summary's schema, made of its types, against the one that was written by hand."""

from __future__ import annotations

from typing import Any

from switchbench.analysis.summary import schema
from switchbench.records.document.schema import summary_schema


def _plain(form: Any, whole: dict[str, Any]) -> Any:
    """A form that accepts the same: references followed, alternatives sorted, without words."""
    if "$ref" in form:
        return _plain(whole["$defs"][form["$ref"].rpartition("/")[2]], whole)
    if isinstance(form.get("type"), list):
        kinds = [
            dict(form, type=kind) if kind != "null" else {"type": kind} for kind in form["type"]
        ]
        return _plain({"anyOf": kinds}, whole)
    if None in form.get("enum", ()):
        values = [value for value in form["enum"] if value is not None]
        return _plain({"anyOf": [{"enum": values}, {"type": "null"}]}, whole)
    choices = [_plain(one, whole) for key in ("anyOf", "oneOf") for one in form.get(key, ())]
    if choices:
        flat = [deep for one in choices for deep in one.get("anyOf", [one])]
        return {"anyOf": sorted(flat, key=str)}
    kept = {"type", "enum", "const", "minimum", "minItems", "pattern", "format"}
    found = {key: form[key] for key in sorted(kept & form.keys())}
    if found.keys() & {"enum", "const"}:
        found.pop("type", None)
    for key in ("items", "additionalProperties"):
        if isinstance(form.get(key), dict):
            found[key] = _plain(form[key], whole)
    if form.get("additionalProperties") is False:
        found["additionalProperties"] = False
    if "properties" in form:
        found["required"] = sorted(form.get("required", ()))
        parts = form["properties"]
        found["properties"] = {name: _plain(parts[name], whole) for name in sorted(parts)}
    return found


def test_the_types_are_the_form_written_by_hand() -> None:
    made, written = summary_schema(), schema()
    assert _plain(made, made) == _plain(written, written)
