# SPDX-License-Identifier: BSD-3-Clause
"""What of a summary this version knows, by its types: results of older and newer versions are
shown as far as they go.

A key that the types have not is ignored. One that is lacking, which older versions had not thought
of, is not observed. A value of another form is not observed either; where it can't be, because the
rest means nothing without it, its entry is left out, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from ..records.document.location import NOTHING_LOCATED
from ..records.document.schema import adapter, summary_schema
from ..records.document.summary import SummaryDocument

Form = Mapping[str, Any]

_NONE = object()  # what nothing can stand for
_PARTS = ("run",)  # of which any part can be shown without the others
_NAMED = 6  # keys of a sentence
_FORM = "schema"  # the summary's key that names its form


def fitted(
    summary: Mapping[str, Any], parts: Collection[str] | None = None
) -> tuple[SummaryDocument, Known]:
    """Only what is of the form that this version knows, the rest empty; and what that cost.

    `parts`: the keys that are wanted, and whose damage matters; None: all.
    """
    known = Known(summary_schema())
    names = known.form["properties"]
    found = {name: known.empty(name) for name in names}
    wanted = {
        name: value
        for name, value in summary.items()
        if name != _FORM and (parts is None or name in parts)
    }
    faults = _faults(found | wanted)
    for name in (*names, *(name for name in wanted if name not in names)):
        if name in wanted:  # older ones lack what was thought of later
            known.take(found, name, wanted[name], faults.inner.get(name, _Fault()))
    found[_FORM] = summary.get(_FORM)  # of another one it was said
    return cast("SummaryDocument", found), known


@dataclass
class _Fault:
    """What is wrong at a place of the summary, and at the places in it."""

    kind: str = ""  # pydantic's; empty: nothing is wrong but what is in it
    inner: dict[str | int, _Fault] = field(default_factory=dict)


def _faults(summary: Mapping[str, Any]) -> _Fault:
    found = _Fault()
    try:
        adapter().validate_python(summary)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            value = one["input"]
            if one["type"] == "int_type" and isinstance(value, float) and value.is_integer():
                continue  # as JSON has it, 4.0 is one
            place = found
            for step in one["loc"]:
                place = place.inner.setdefault(step, _Fault())
            place.kind = one["type"]
    return found


@dataclass
class Known:
    """Fits values to a schema, and remembers what they lost by it."""

    form: Form
    ignored: dict[str, None] = field(default_factory=dict)  # paths of keys that it has not
    left_out: Counter[str] = field(default_factory=Counter)  # paths of values of other forms

    def take(self, found: dict[str, Any], name: str, value: Any, fault: _Fault) -> None:
        """One of the summary's top keys, or what is empty of its type where it can't be mended."""
        form = self.form["properties"].get(name)
        if form is None:
            self.ignored[name] = None
            return
        found[name] = self._mended(value, form, fault, name)
        if found[name] is _NONE:
            self.left_out[name] += 1
            found[name] = self.empty(name)

    def empty(self, name: str) -> Any:
        """A top key that is not there."""
        if name == "location":
            return NOTHING_LOCATED
        form = self.form["properties"][name]
        found = self._blank(form, lacking=True)
        if found is _NONE:
            return {} if "properties" in self._choices(form)[0] else None
        return found

    def sentences(self) -> Iterator[str]:
        """What is not shown."""
        if self.ignored:
            names = [f"`{path}`" for path in self.ignored]
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            yield f"keys that this version does not know: {', '.join(names[:_NAMED])}{more}"
        yield from self.damage()

    def damage(self) -> Iterator[str]:
        """Of what is not shown that which is not of the form, and not of a newer version alone."""
        for path, count in self.left_out.items():
            of, has, is_ = ("", "has", "is") if count == 1 else (f"{count:,} of ", "have", "are")
            yield f"{of}`{path}` {has} a form that is not known, and {is_} left out"

    # --- values ------------------------------------------------------------------------------

    def _mended(self, value: Any, form: Form, fault: _Fault, path: str) -> Any:
        """The value as the form has it; _NONE where it can't be."""
        if not fault.inner:
            return _NONE if fault.kind else value
        (form, *others) = [one for one in self._choices(form) if one.get("type") != "null"]
        if others:
            return _NONE
        if isinstance(value, list):
            return self._mended_list(value, form["items"], fault, path)
        return self._mended_object(value, form, fault, path)

    def _mended_object(self, value: Any, form: Form, fault: _Fault, path: str) -> Any:
        """Without what it has too much, and with blanks for what it lacks."""
        before = self.left_out.copy()
        found = dict(value)
        parts = form.get("properties", {})
        for name, inner in fault.inner.items():
            below = f"{path}.{name}"
            if inner.kind == "extra_forbidden":
                self.ignored[below] = None
                continue
            part = parts[name] if name in parts else form["additionalProperties"]
            lacking = inner.kind == "missing"
            if not lacking:
                found[name] = self._mended(value[name], part, inner, below)
                if found[name] is not _NONE:
                    continue
                self.left_out[below] += 1
            found[name] = self._blank(part, lacking)
            if found[name] is _NONE and path in _PARTS:
                del found[name]
            elif found[name] is _NONE:
                self.left_out = before
                return _NONE
        return found

    def _mended_list(self, values: list[Any], form: Form, fault: _Fault, path: str) -> list[Any]:
        kept = []
        for place, value in enumerate(values):
            inner = fault.inner.get(place)
            found = self._mended(value, form, inner, path) if inner else value
            if found is _NONE:
                self.left_out[path] += 1
            else:
                kept.append(found)
        return kept

    def _choices(self, form: Form) -> list[Form]:
        """The forms that a value may have."""
        while "$ref" in form:
            form = self.form["$defs"][form["$ref"].rpartition("/")[2]]
        if "anyOf" not in form:
            return [form]
        return [deep for one in form["anyOf"] for deep in self._choices(one)]

    def _blank(self, form: Form, lacking: bool) -> Any:
        """What says "not observed" where the form allows it; a number that is `lacking` was not
        observed either."""
        (form, *others) = self._choices(form)
        kind = form.get("type")
        if others:
            return None if None in [self._blank(one, lacking) for one in (form, *others)] else _NONE
        if kind in ("null", "array"):
            return None if kind == "null" else []
        if kind != "object":
            return None if lacking and kind in ("number", "integer") else _NONE
        parts = form.get("properties", {})
        blanks = {name: self._blank(parts[name], lacking) for name in form.get("required", ())}
        return _NONE if _NONE in blanks.values() else blanks
