# SPDX-License-Identifier: BSD-3-Clause
"""Checks a document against a model: every mistake by position, each in one sentence.

pydantic gives each error a location: a path of keys, which the document's marks turn into a line.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..base.errors import MISTAKES_MOST, ConfigurationError
from ..base.source import Document, KeyPath
from ..base.words import invalid, shown, unknown_key
from .fields import SINGULAR

Model = TypeVar("Model", bound=BaseModel)
Details = Mapping[str, Any]


def validate(model: type[Model], document: Document, path: KeyPath = ()) -> Model:
    """Return the model of what stands at `path`; InvalidDocument for all mistakes in it."""
    value: Any = document.data
    for key in path:
        value = value[key]
    return validate_value(model, value, document, lambda below: (*path, *below))


def validate_value(
    model: type[Model], value: Any, document: Document, place: Callable[[KeyPath], KeyPath]
) -> Model:
    """As `validate` for a value that `place` maps to where it stands in the document."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = {place(item["loc"]): item for item in reversed(error.errors(include_url=False))}
    paths = sorted(found, key=lambda path: document.mark(path).line)
    first = paths[:MISTAKES_MOST]  # to look up what was meant takes its time
    lines = [str(document.problem(path, _sentence(model, found[path]))) for path in first]
    if len(paths) > len(first):
        lines.append(f"and {len(paths) - len(first)} more mistakes")
    raise InvalidDocument("\n".join(lines), paths)


class InvalidDocument(ConfigurationError):
    """What is wrong with values of a document, a line each, and where they stand."""

    def __init__(self, text: str, paths: Sequence[KeyPath]) -> None:
        """Take the paths of the values."""
        super().__init__(text)
        self.paths = paths


def _sentence(model: type[BaseModel], error: Any) -> str:
    found, context = error["input"], error.get("ctx", {})
    kind = error["type"]
    if kind == "extra_forbidden":
        keys = list(_model_at(model, error["loc"][:-1]).model_fields)
        return unknown_key(error["loc"][-1], keys, said=True)
    if isinstance(found, list) and kind in _WANTED | {"literal_error": ""}:
        return SINGULAR
    if kind == "literal_error":
        words = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return invalid(found, words)
    if kind in _WANTED:
        return f"found {shown(found)}, but {_WANTED[kind]} is needed"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return f"{shown(found)} has not the form of one ({context['pattern']})"
    if kind == "missing":
        example = _EXAMPLES.get(str(error["loc"][-1]))
        return f"is missing: such as `{example}`" if example else "is missing"
    return f"found {shown(found)}: {error['msg'].lower()}"


_EXAMPLES = {
    "ports": "ports: {e0: {network: net, iface: enp3s0}}",
    "hosts": "hosts: node[1-8]",
    "launch": "launch: ssh",
    "measure": "measure: loss_percent",
}

_WANTED = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
}


def _model_at(model: type[BaseModel], location: KeyPath) -> type[BaseModel]:
    """Return the model of the mapping at a location.

    Through optional fields, lists and mappings.
    """
    annotation: Any = model
    for key in location:
        annotation = _inner(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            annotation = annotation.model_fields[str(key)].annotation
        else:
            annotation = get_args(annotation)[-1]
    found: type[BaseModel] = _inner(annotation)
    return found


def _inner(annotation: Any) -> Any:
    """Return an annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = next(item for item in get_args(annotation) if item is not type(None))
    return annotation
