# SPDX-License-Identifier: BSD-3-Clause
"""Codes of error messages: `[SB-KEY]` after a message, `switchbench explain SB-KEY`.

codes.toml has each code's title, cause and cure, and the messages that it covers.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

from .errors import ConfigurationError, SwitchbenchError

_PACKAGE = __name__.partition(".")[0]


@cache
def codes() -> dict[str, dict[str, Any]]:
    """Return the entries of codes.toml by code, in the file's order."""
    return tomllib.loads(Path(__file__).with_name("codes.toml").read_text("utf-8"))


def _pattern(words: str) -> str:
    """Return a regular expression for a code's words, in which … matches anything."""
    begin = r"(?<![A-Za-z.])" if words[0].isalpha() else ""
    return begin + ".+".join(map(re.escape, words.split("…")))


def code_by_words(message: str) -> str | None:
    """Return the code with the longest words that a message contains; None where no words match."""
    found = [
        (len(words), code)
        for code, entry in codes().items()
        for words in entry["words"]
        if re.search(_pattern(words), message)
    ]
    return max(found)[1] if found else None


def code_by_module(module: str) -> str | None:
    """Return the code of errors that a module raises, such as `switchbench.run.live.metrics`."""
    name = module.removeprefix(f"{_PACKAGE}.")
    raised = {name: code for code, entry in codes().items() for name in entry.get("raised", ())}
    while name not in raised and "." in name:
        name = name.rpartition(".")[0]
    return raised.get(name)


def with_code(error: SwitchbenchError) -> str:
    """Return an error's message with its code appended; several mistakes give several codes.

    Parameters
    ----------
    error
        As it was raised: its traceback says which module raised it.
    """
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    of_module = next(filter(None, map(code_by_module, reversed(modules))), None)
    lines = str(error).splitlines() or [""]
    found = dict.fromkeys(code_by_words(line) or of_module for line in lines)
    return f"{error} [{', '.join(code for code in found if code)}]"


def explained(code_or_message: str) -> str:
    """Return title, cause and cure of a code, or of the code for a message."""
    given = [part for part in re.split(r"[\[\], ]+", code_or_message.upper()) if part]
    if not given or not codes().keys() >= set(given):
        given = [code for code in [code_by_words(code_or_message)] if code]
    if not given:
        raise ConfigurationError(
            f"{code_or_message!r} is neither a code nor part of a known message: "
            f"'switchbench explain' lists the codes"
        )
    parts = []
    for code in given:
        entry = codes()[code]
        parts += [f"{code}: {entry['title']}", f"Cause: {entry['cause']}", f"Cure: {entry['cure']}"]
    return "\n\n".join(textwrap.fill(part, 100) for part in parts)


def listed() -> str:
    """Return a line per code with its title."""
    return "\n".join(f"{code:<15} {entry['title']}" for code, entry in codes().items())
