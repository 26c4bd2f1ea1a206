# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schema of summary.json, made of its types.

    python -m switchbench.records.document.schema

writes it, for other programs.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from .summary import SummaryDocument

TITLE = "Switchbench summary"


class _Form(GenerateJsonSchema):
    """Without titles, which are the keys once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def adapter() -> TypeAdapter[SummaryDocument]:
    """Checks a value to be a summary."""
    return TypeAdapter(SummaryDocument)


@cache
def summary_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the summary."""
    return schema_of(adapter(), TITLE)


def schema_of(made: TypeAdapter[Any], title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document's types."""
    form = made.json_schema(schema_generator=_Form)
    return {"$schema": _Form.schema_dialect, **form, "title": title}


def main() -> None:
    """Prints the schema."""
    print(json.dumps(summary_schema(), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
