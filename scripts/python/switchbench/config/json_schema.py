# SPDX-License-Identifier: BSD-3-Clause
"""JSON schemas of configurations, site files and topology files, made from their models.

`python -m switchbench.config.json_schema conf` writes the schemas into a folder, for editors
(doc/reference/configuration.md).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from ..topology.form import File
from .rules import NESTED, SWEEP_REFUSALS
from .schema import Configuration, HostSite, LabSite, Settings

Schema = dict[str, Any]


class _Form(GenerateJsonSchema):
    """Generator of schemas without titles, which repeat the keys, and without `default: null`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Schema:
        made = super().default_schema(schema)
        if made.get("default", 0) is None:
            del made["default"]
        elif write := schema["schema"].get("serialization", {}).get("function"):
            made["default"] = write(schema["default"])  # in the form that users write
        return made


SCHEMAS: dict[str, tuple[type[BaseModel], ...]] = {
    "configuration": (Configuration,),
    "site": (LabSite, HostSite),  # hosts, or a lab with changes to its topology
    "topology": (File,),
}
"""Models of each kind of file."""


def schema_of(name: str) -> Schema:
    """Return the schema of a kind of file."""
    models = SCHEMAS[name]
    _, made = models_json_schema(
        [(model, "validation") for model in models], schema_generator=_Form
    )
    for model in {"Configuration", "Settings"} & made["$defs"].keys():
        forms = made["$defs"][model]["properties"]["sweep"]["anyOf"]
        (swept,) = (form for form in forms if form["type"] == "object")
        swept["propertyNames"] = {"enum": sorted(_swept_keys())}
    references = [{"$ref": f"#/$defs/{model.__name__}"} for model in models]
    whole = references[0] if len(references) == 1 else {"anyOf": references}
    return {"$schema": _Form.schema_dialect, "title": f"Switchbench {name}", **whole, **made}


def _swept_keys() -> Iterable[str]:
    """Return the keys that are allowed under `sweep`."""
    for key in Settings.model_fields:
        if key in NESTED:
            yield from (f"{key}.{name}" for name in NESTED[key].model_fields)
        elif key not in SWEEP_REFUSALS:
            yield key


def main(folder: str) -> None:
    """Write all schemas into a folder."""
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=1, ensure_ascii=False)
        (Path(folder) / f"{name}.schema.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
