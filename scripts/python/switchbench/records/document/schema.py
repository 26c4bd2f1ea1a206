# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schema of summary.json, made of its types.

    python -m switchbench.records.document.schema

writes it, for other programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NotRequired, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_type_hints, is_typeddict

from ...base.errors import ConfigurationError
from .summary import SummaryDocument

TITLE = "Switchbench summary"


class _Form(GenerateJsonSchema):
    """Without titles, which are the keys once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def adapter() -> TypeAdapter[SummaryDocument]:
    """Check a value to be a summary."""
    return TypeAdapter(SummaryDocument)


# Parts that a summary may lack, as they are then.
_LACKING: Mapping[str, object] = {
    "steps": {"functions": [], "kernels": [], "rankings": []}, "superseded": [], "searches": [],
    "suite": {}, "verdict": None, "imported": [],
}  # fmt: skip


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
def summary_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the summary."""
    return schema_of(adapter(), SummaryDocument, TITLE)


def schema_of(made: TypeAdapter[Any], document: Any, title: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document's types.

    What a key means is the text that its `Annotated` type has.
    """
    form = made.json_schema(schema_generator=_Form)
    for kind, words in _words(document, {}).items():
        part = form if kind is document else form["$defs"][kind.__name__]
        for key, text in words.items():
            part["properties"][key]["description"] = text
    return {"$schema": _Form.schema_dialect, **form, "title": title}


def _words(hint: Any, found: dict[Any, dict[str, str]]) -> dict[Any, dict[str, str]]:
    """Return what keys mean, of each type that one is made of."""
    if not is_typeddict(hint):
        for part in get_args(hint):
            _words(part, found)
    elif hint not in found:
        found[hint] = {}
        for key, inner in get_type_hints(hint, include_extras=True).items():
            origin: Any = get_origin(inner)
            value = get_args(inner)[0] if origin is NotRequired else inner
            for text in getattr(value, "__metadata__", ()):
                if isinstance(text, str):
                    found[hint][key] = text
            _words(value, found)
    return found


def main() -> None:
    """Print the schema."""
    print(json.dumps(summary_schema(), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
