# SPDX-License-Identifier: BSD-3-Clause
"""Files, numbers and JSON of others, read in bounded memory and time."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .errors import ConfigurationError

_NUMBER_LONGEST = 40  # characters; a double has 17 digits and an exponent
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    OSError where it can't be read; ConfigurationError for a FIFO or a device, which may have no
    end, and for a larger file.
    """
    # A FIFO does not wait for its writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        refuse_irregular(path, os.fstat(file.fileno()))
        content = file.read(most + 1)
    if len(content) > most:
        raise ConfigurationError(f"{path} is too large: more than {most >> 20:,} MiB")
    return content


def refuse_irregular(path: Path, status: os.stat_result) -> None:
    """Refuse what has this status unless it is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"{path} is no regular file: FIFOs and devices are not read")


def number(word: str) -> float | None:
    """Return the finite number that a word is, or None."""
    try:
        value = float(word) if len(word) <= _NUMBER_LONGEST else math.inf
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def count(word: str) -> int | None:
    """Return the whole number from 0 that a word is, or None."""
    return int(word) if _COUNT.fullmatch(word) else None


Pairs = Sequence[tuple[str, Any]]


def unique(pairs: Pairs) -> dict[str, Any]:
    """Return the object of these keys and values.

    ValueError for a duplicate key or a lone surrogate, which no file can hold.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate key {key[:60]!r}")
        for text in (key, *(value if isinstance(value, list) else (value,))):
            if isinstance(text, str) and not text.isascii():
                text.encode()
        found[key] = value
    return found


def json_decoder(pairs: Callable[[Pairs], dict[str, Any]] = unique) -> json.JSONDecoder:
    """Return a decoder that raises ValueError for numbers that are not finite or absurdly long.

    RecursionError for what is nested too deeply. `pairs` makes each object.
    """
    return json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=_number, parse_float=_number, parse_int=_integer
    )


def _number(word: str) -> float:
    value = number(word)
    if value is None:
        raise ValueError(f"{word[:40]} is no figure")
    return value


def _integer(word: str) -> int:
    if count(word.removeprefix("-")) is None:
        raise ValueError(f"a number of {len(word)} digits is no figure")
    return int(word)
