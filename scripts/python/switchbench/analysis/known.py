# SPDX-License-Identifier: BSD-3-Clause
"""What of a summary this version knows, by its schema: results of older and newer versions are
shown as far as they go.

A key that the schema has not is ignored. One that is lacking, which older versions had not thought
of, is not observed. A value of another form is not observed either; where it can't be, because the
rest means nothing without it, its entry is left out, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from .summary import schema

Form = Mapping[str, Any]

_NONE = object()  # what nothing can stand for
_PARTS = ("run",)  # of which any part can be shown without the others
_NAMED = 6  # keys of a sentence
_FORM = "schema"  # the summary's key that names its form
_LIMITS = frozenset(("enum", "const", "minimum", "minItems"))  # which only the value itself meets


def fitted(
    summary: Mapping[str, Any], parts: Collection[str] | None = None
) -> tuple[dict[str, Any], Known]:
    """Only what is of the form that this version knows, the rest empty; and what that cost.

    `parts`: the keys that are wanted, and whose damage matters; None: all.
    """
    known = Known(schema())
    names = [name for name in known.form["properties"] if parts is None or name in parts]
    found = {name: known.empty(name) for name in known.form["properties"]}
    if parts is None:
        names += [name for name in summary if name not in found]
    for name in names:  # older ones lack what was thought of later
        if name in summary and name != _FORM:
            found[name] = known.part(name, summary[name])
    found[_FORM] = summary.get(_FORM)  # of another one it was said
    return found, known


@dataclass
class Known:
    """Fits values to a schema, and remembers what they lost by it."""

    form: Form
    ignored: dict[str, None] = field(default_factory=dict)  # paths of keys that it has not
    left_out: Counter[str] = field(default_factory=Counter)  # paths of values of other forms
    _changed: bool = False
    _checks: dict[int, Draft202012Validator] = field(default_factory=dict)
    _limited: dict[int, bool] = field(default_factory=dict)  # by form: whether it has limits

    def part(self, name: str, value: Any) -> Any:
        """One of the schema's top keys; what is empty of its type where nothing of it is known."""
        form = self.form["properties"].get(name)
        if form is None:
            self.ignored[name] = None
            return None
        found = self._fit(value, form, name)
        if found is _NONE:
            self.left_out[name] += 1
            return self.empty(name)
        return found

    def empty(self, name: str) -> Any:
        """A top key that is not there."""
        form = self.form["properties"][name]
        found = self._blank(form, lacking=True)
        return ({} if form.get("type") == "object" else None) if found is _NONE else found

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

    def _fit(self, value: Any, form: Form, path: str) -> Any:
        """The value as the form has it; _NONE where it can't be."""
        form = self._resolved(form)
        for choice in _choices(form):
            found = self._fit(value, choice, path)
            if found is not _NONE:
                return found
        if "properties" in form and isinstance(value, dict):
            return self._fit_object(value, form, path)
        if "items" in form and isinstance(value, list):
            return self._fit_list(value, form["items"], path)
        return value if self._check(form).is_valid(value) else _NONE

    def _check(self, form: Form) -> Draft202012Validator:
        """Of a part of the schema, which refers to the whole one's definitions."""
        if id(form) not in self._checks:
            whole = {**form, "$defs": self.form.get("$defs", {})}
            self._checks[id(form)] = Draft202012Validator(whole)
        return self._checks[id(form)]

    def _resolved(self, form: Form) -> Form:
        while "$ref" in form:
            form = self.form["$defs"][form["$ref"].rpartition("/")[2]]
        return form

    def _fit_object(self, value: dict[str, Any], form: Form, path: str) -> Any:
        """Without what it has too much, and with blanks for what it lacks."""
        before = self.left_out.copy()
        found = dict(value)
        for name, part in form["properties"].items():
            below, lacking = f"{path}.{name}", name not in value
            if lacking and name not in form.get("required", ()):
                continue
            if not lacking:
                found[name] = self._fit(value[name], part, below)
                if found[name] is not _NONE:
                    continue
                self.left_out[below] += 1
            self._changed = True
            found[name] = self._blank(part, lacking)
            if found[name] is _NONE and path in _PARTS:
                del found[name]
            elif found[name] is _NONE:
                self.left_out = before
                return _NONE
        if form.get("additionalProperties") is False:
            known = form["properties"]
            self.ignored |= {f"{path}.{name}": None for name in value if name not in known}
        return found

    def _fit_list(self, values: list[Any], form: Form, path: str) -> list[Any]:
        """Entries of a shape that fits, with values within the same limits, are as they are: of
        1,024 ranks there are thousands of phases, and to look at all parts of all of them takes
        longer than all else."""
        kept, right = [], set()
        outer = self._changed
        for value in values:
            shape = (_shape(value), self._within(value, form))
            if shape in right:
                kept.append(value)
                continue
            self._changed = False
            found = self._fit(value, form, path)
            if found is _NONE:
                self.left_out[path] += 1
            else:
                kept.append(found)
                if not self._changed:
                    right.add(shape)
            outer |= self._changed or found is _NONE
        self._changed = outer
        return kept

    def _within(self, value: Any, form: Form) -> Any:
        """Which of the form's limits the value and its parts keep."""
        form = self._resolved(form)
        if not self._has_limits(form):
            return True
        held: list[Any] = [_keeps(value, form)]
        held += [self._within(value, choice) for choice in _choices(form)]
        if isinstance(value, dict):
            parts = form.get("properties", {})
            held += [self._within(value[name], parts[name]) for name in parts if name in value]
        elif isinstance(value, list) and "items" in form:
            held += dict.fromkeys(self._within(inner, form["items"]) for inner in value)
        return tuple(held)

    def _has_limits(self, form: Form) -> bool:
        known = self._limited.get(id(form))
        if known is None:
            inner = [*_choices(form), *form.get("properties", {}).values()]
            inner += [form["items"]] if "items" in form else []
            below = (self._has_limits(self._resolved(one)) for one in inner)
            known = not _LIMITS.isdisjoint(form) or any(below)
            self._limited[id(form)] = known
        return known

    def _blank(self, form: Form, lacking: bool) -> Any:
        """What says "not observed" where the form allows it; a number that is `lacking` was not
        observed either."""
        form = self._resolved(form)
        kinds = form.get("type", ())
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        if (
            "null" in kinds
            or None in form.get("enum", ())
            or None in [self._blank(one, lacking) for one in _choices(form)]
        ):
            return None
        if "array" in kinds:
            return []
        if "object" not in kinds:
            return None if lacking and kinds & {"number", "integer"} else _NONE
        parts = form.get("properties", {})
        blanks = {name: self._blank(parts[name], lacking) for name in form.get("required", ())}
        return _NONE if _NONE in blanks.values() else blanks


def _choices(form: Form) -> tuple[Form, ...]:
    return (*form.get("oneOf", ()), *form.get("anyOf", ()))


def _keeps(value: Any, form: Form) -> bool:
    """Whether the value itself is within the form's limits."""
    if "minimum" in form and isinstance(value, int | float):
        return bool(value >= form["minimum"])
    if "minItems" in form and isinstance(value, list):
        return bool(len(value) >= form["minItems"])
    only = form.get("enum", [form["const"]] if "const" in form else None)
    return only is None or value in only


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _shape(part)) for name, part in value.items())
    if isinstance(value, list):
        return (list, *dict.fromkeys(map(_shape, value)))
    return type(value)
