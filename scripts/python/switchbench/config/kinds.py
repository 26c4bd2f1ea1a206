# SPDX-License-Identifier: BSD-3-Clause
"""What a kind of value is: how it is read, and its form as a JSON schema for editors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import core_schema

from ..base import quantities
from ..base.words import shown


class Strict(BaseModel):
    """A mapping whose keys are all known and whose values are not converted.

    A key that has a default here has it always; one that is None is not given, or has no effect.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        """`key: null` is a key that is not given."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: item for k, item in value.items() if item is not None or k not in optional}

    def given(self) -> dict[str, object]:
        """The keys that the user wrote, in the models' order."""
        wrote = self.model_fields_set
        return {name: value for name, value in self.in_effect().items() if name in wrote}

    def in_effect(self) -> dict[str, object]:
        """The keys that have a value, the user's or a default."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def written(self) -> dict[str, Any]:
        """The keys that have a value, each as a user writes it."""
        return self.model_dump(exclude_none=True, warnings=False)


SINGULAR = (
    "found a list, but a singular key takes one value (an axis has a plural key, anything else is "
    "swept under `sweep`)"
)


@dataclass(frozen=True, eq=False)
class ValueKind:
    """How the value of a key is read and written, and its form as a JSON schema."""

    parse: Callable[[object], Any]
    form: Mapping[str, Any]
    lists: bool = False  # whether a list is a value of this kind
    write: Callable[[Any], object] | None = None  # as a user writes it; None: as it is

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """As pydantic asks for it."""
        write = self.write and core_schema.plain_serializer_function_ser_schema(self.write)
        return core_schema.no_info_plain_validator_function(self._checked, serialization=write)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """The same."""
        return dict(self.form)

    def _checked(self, value: object) -> Any:
        if isinstance(value, list) and not self.lists:
            raise ValueError(SINGULAR)
        return self.parse(value)


def whole(least: int, most: int, what: str) -> ValueKind:
    """A whole number within bounds; `10k` and `10M` are numbers too."""

    def check(value: object) -> int:
        number = quantities.count(value)
        if not least <= number <= most:
            raise ValueError(f"{number} is invalid: {what} is {least} to {most}")
        return number

    return ValueKind(check, _whole_form(least, most))


def random_seed() -> ValueKind:
    """A number in one writing only: what `010` or `1.0` means differs among readers of YAML."""
    most = 2**63 - 1

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise ValueError(f"found {shown(value)}, but a seed is a whole number, 0 to {most}")
        return value

    return ValueKind(check, {"type": "integer", "minimum": 0, "maximum": most})


def retries(what: str) -> ValueKind:
    """A limit of three bits, of which 7 is none: rxe and others then try for ever."""

    def check(value: object) -> int:
        number = quantities.count(value)
        if number == 7:
            raise ValueError(
                f"7 is invalid: {what} is 0 to 6, because 7 means for ever on some devices, "
                "and a dead partner would never be noticed"
            )
        if not 0 <= number <= 6:
            raise ValueError(f"{number} is invalid: {what} is 0 to 6")
        return number

    return ValueKind(check, _whole_form(0, 6))


def text_like(pattern: str) -> dict[str, Any]:
    """The JSON schema of text that matches an expression."""
    return {"type": "string", "pattern": pattern}


def either(*forms: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of what has one of the forms."""
    return {"anyOf": list(forms)}


def mapping_of(**forms: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a mapping with these keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": forms}


def list_of(form: Mapping[str, Any], least: int = 1, most: int | None = None) -> dict[str, Any]:
    """The JSON schema of a list."""
    items = {"type": "array", "items": form, "minItems": least}
    return items if most is None else items | {"maxItems": most}


def _whole_form(least: int, most: int) -> dict[str, Any]:
    number = {"type": "integer", "minimum": least, "maximum": most}
    return either(number, text_like(quantities.COUNT.pattern()))
