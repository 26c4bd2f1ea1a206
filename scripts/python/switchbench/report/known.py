# SPDX-License-Identifier: BSD-3-Clause
"""What of a summary this version knows, by its schema: results of older and newer versions are
shown as far as they go.

A key that the schema has not is ignored. One that is lacking, which older versions had not thought
of, is not observed. A value of another form is not observed either; where it can't be, because the
rest means nothing without it, its entry is left out, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

Form = Mapping[str, Any]

_NONE = object()  # what nothing can stand for
_PARTS = ("run",)  # of which any part can be shown without the others
_NAMED = 6  # keys of a sentence


@dataclass
class Known:
    """Fits values to a schema, and remembers what they lost by it."""

    form: Form
    ignored: dict[str, None] = field(default_factory=dict)  # paths of keys that it has not
    left_out: Counter[str] = field(default_factory=Counter)  # paths of values of other forms
    _changed: bool = False
    _checks: dict[int, Draft202012Validator] = field(default_factory=dict)

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
        check = self._checks.setdefault(id(form), Draft202012Validator(form))
        return value if check.is_valid(value) else _NONE

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
        """Entries of a shape that fits are as they are: of 1,024 ranks there are thousands of
        phases, and to look at all parts of all of them takes longer than all else."""
        kept, right = [], set()
        outer = self._changed
        for value in values:
            shape = _shape(value)
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

    def _blank(self, form: Form, lacking: bool) -> Any:
        """What says "not observed" where the form allows it; a number that is `lacking` was not
        observed either."""
        form = self._resolved(form)
        kinds = form.get("type", ())
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        if "null" in kinds or None in [self._blank(one, lacking) for one in _choices(form)]:
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


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _shape(part)) for name, part in value.items())
    if isinstance(value, list):
        return (list, *dict.fromkeys(map(_shape, value)))
    return type(value)
