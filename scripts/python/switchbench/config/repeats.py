# SPDX-License-Identifier: BSD-3-Clause
"""How often a point is measured, as `repeat` says it."""

from __future__ import annotations

from typing import Annotated

from ..base import quantities
from ..base.model import Repeats
from ..base.words import shown, unknown_key
from .kinds import ValueKind, either, mapping_of

REPEATS_MOST = 10000
_REPEATS_LEAST, _REPEATS_USUAL = 5, 30  # of a mapping that does not say
_WIDTH, _CONFIDENCE = 0.02, 0.95
_REPEAT_KEYS = ("min", "max", "width", "confidence")


def _repeats(value: object) -> Repeats:
    """A number: so often, whatever comes. A mapping: until the mean's interval is narrow."""
    if not isinstance(value, dict):
        number = _repeat_count("repeat", value)
        return Repeats(number, number)
    for key in value:
        if key not in _REPEAT_KEYS:
            raise ValueError(unknown_key(key, _REPEAT_KEYS))
    given = {key: _repeat_count(key, value[key]) for key in ("min", "max") if key in value}
    if given.get("max") == 1:
        raise ValueError(
            "max: 1 repeat has no confidence interval: at least 2 are needed, or write repeat: 1"
        )
    least = given.get("min", min(_REPEATS_LEAST, given.get("max", _REPEATS_LEAST)))
    most = given.get("max", max(_REPEATS_USUAL, least))
    if least < 2:
        raise ValueError("min: 1 repeat has no confidence interval: at least 2 are needed")
    if least > most:
        raise ValueError(f"min: {least} repeats are more than max, {most}")
    width = _percentage("width", value.get("width", "2%"), 0.0, 100.0)
    confidence = _percentage("confidence", value.get("confidence", "95%"), 50.0, 99.99)
    return Repeats(least, most, width, confidence)


def _repeat_count(key: str, value: object) -> int:
    number = quantities.count(value)
    if not 1 <= number <= REPEATS_MOST:
        raise ValueError(f"{key}: {number} is invalid: repeats are 1 to {REPEATS_MOST}")
    return number


def _percentage(key: str, value: object, least: float, most: float) -> float:
    """A percentage as a share of 1."""
    number = quantities.percentage(value)
    if number is None or not least <= number <= most or number == 0:
        raise ValueError(
            f"{key}: found {shown(value)}, but {least:g}% to {most:g}% is needed, as 2%"
        )
    return float(number / 100)


def _written(value: Repeats) -> int | dict[str, object]:
    if value.width is None:
        return value.most
    shares = {"width": value.width, "confidence": value.confidence}
    percents = {key: f"{100 * share:.10g}%" for key, share in shares.items()}
    return {"min": value.least, "max": value.most, **percents}


_COUNT, _SHARE = quantities.COUNT.form(), quantities.PERCENT.form()
RepeatField = Annotated[
    Repeats,
    ValueKind(
        _repeats,
        either(_COUNT, mapping_of(min=_COUNT, max=_COUNT, width=_SHARE, confidence=_SHARE)),
        write=_written,
    ),
]
