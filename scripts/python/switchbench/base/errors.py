# SPDX-License-Identifier: BSD-3-Clause
"""Error classes with their exit statuses, error codes, and helpers for the texts of messages.

Exit statuses of commands (doc/developer/architecture.md): 0 done and PASS, 1 FAIL, 2 invalid
configuration, 3 the run could not be completed, 4 INCONCLUSIVE.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any


def printable(value: Any, keep: str = "") -> Any:
    """Return a value in which escapes replace control characters and other unprintable ones.

    Nested values and keys are escaped too; characters in `keep` stay.
    """
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join(
            c if c.isprintable() or c in keep else c.encode("unicode_escape").decode()
            for c in value
        )
    if isinstance(value, dict):
        return {printable(key): printable(item, keep) for key, item in value.items()}
    if isinstance(value, list):
        return [printable(item, keep) for item in value]
    return value


# --- errors ---------------------------------------------------------------------------------------


class SwitchbenchError(Exception):
    """Base of all errors whose message, one sentence, is for the user.

    The sentence names the problem, its place and the remedy. The command prints it once.
    """

    status = 3

    def __str__(self) -> str:
        """Return the message with escapes for control characters in its quoted texts."""
        return str(printable(super().__str__(), keep="\n"))


class ConfigurationError(SwitchbenchError):
    """Error of an invalid configuration or option: nothing was started."""

    status = 2


class RunError(SwitchbenchError):
    """Error of a run that could not be completed; its measurements are kept."""


# --- words ----------------------------------------------------------------------------------------
# Parts of messages: lists of words, suggestions, values cut to a length.


def listed(words: Iterable[object]) -> str:
    """Return words as a list in text: `a, b or c`."""
    items = [str(word) for word in words]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} or {items[-1]}"


@cache
def _elsewhere() -> list[tuple[list[str], str, str]]:
    """Return elsewhere.toml as entries of (other programs' words, Switchbench's word, advice)."""
    known = tomllib.loads(Path(__file__).with_name("elsewhere.toml").read_text("utf-8"))["word"]
    return [(one["elsewhere"].split(), one["here"], one["answer"]) for one in known]


def meant(word: object, known: Iterable[str]) -> str:
    """Return a suggestion for a wrong word: `; did you mean "load"?`; "" if none is similar."""
    by_folded = {name.casefold().replace("-", "_"): name for name in known}
    folded = str(word).casefold().replace("-", "_")
    for words, here, answer in _elsewhere():
        if folded in words and here in by_folded:
            return f"; use {answer}"
    near = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[near[0]]}"?' if near else ""


_LISTED_MOST = 24


def unknown_key(key: object, known: Iterable[str], said: bool = False) -> str:
    """Return the error message for an unknown key, with the valid keys or the most similar one.

    With `said` true, the caller names the key before the message, so the message does not.
    """
    keys = list(known)
    which = "" if said else f" {key}"
    near = meant(key, keys)
    if near or len(keys) <= _LISTED_MOST:
        return f"unknown key{which}{near or f'; valid keys are {listed(keys)}'}"
    return f"unknown key{which}; doc/reference/configuration.md lists the {len(keys)} valid ones"


def invalid(value: object, valid: Iterable[str]) -> str:
    """Return the error message for an invalid value, with the valid values."""
    words = list(valid)
    near = meant(value, words)
    if near and len(words) > _LISTED_MOST:
        return f"found {shown(value)}{near}"
    return f"found {shown(value)}; valid values are {listed(words)}{near}"


def shown(value: object) -> str:
    """Return a value as short text for an error message; `a list` for a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    end = '"' if isinstance(value, str) else ""
    return text if len(text) <= 60 else f"{text[:57]}...{end}"


def clipped(sentence: str, most: int = 1000) -> str:
    """Return a sentence, cut to at most `most` characters."""
    return sentence if len(sentence) <= most else f"{sentence[: most - 3]}..."


def some(names: Iterable[str], most: int = 8) -> str:
    """Return the first `most` names, separated by commas, and the number of further names."""
    items = list(names)
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")


# --- codes ----------------------------------------------------------------------------------------
# Error codes: `[SB-KEY]` follows an error message, and `switchbench explain SB-KEY` explains the
# code. codes.toml has the title, cause and cure of each code, and the words of its messages.


@cache
def codes() -> dict[str, dict[str, Any]]:
    """Return the entries of codes.toml (title, cause, cure, words) by error code."""
    return tomllib.loads(Path(__file__).with_name("codes.toml").read_text("utf-8"))


def _pattern(words: str) -> str:
    """Return a regular expression that finds a code's words in a message; … matches any text."""
    begin = r"(?<![A-Za-z.])" if words[0].isalpha() else ""
    return begin + ".*".join(map(re.escape, words.split("…")))


def code_by_words(message: str) -> str | None:
    """Return the error code whose words occur in a message; None if there is none.

    Of several codes, the code with the longest words is returned.
    """
    found = [
        (len(words), code)
        for code, entry in codes().items()
        for words in entry["words"]
        if re.search(_pattern(words), message)
    ]
    return max(found)[1] if found else None


def code_by_module(module: str) -> str | None:
    """Return the error code that codes.toml assigns to a module or its package; None if absent."""
    name = module.removeprefix("switchbench.")
    raised = {name: code for code, entry in codes().items() for name in entry.get("raised", ())}
    while name not in raised and "." in name:
        name = name.rpartition(".")[0]
    return raised.get(name)


def with_code(error: SwitchbenchError) -> str:
    """Return an error's message followed by the error codes of its lines.

    Parameters
    ----------
    error
        Raised error; its traceback shows the module that raised it.
    """
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    of_module = next(filter(None, map(code_by_module, reversed(modules))), None)
    lines = str(error).splitlines() or [""]
    found = dict.fromkeys(code_by_words(line) or of_module for line in lines)
    return f"{error} [{', '.join(code for code in found if code)}]"


def explained(code_or_message: str) -> str:
    """Return the title, cause and cure of an error code, or of the code for an error message."""
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


def titles() -> str:
    """Return a text with one line per error code: the code and its title."""
    return "\n".join(f"{code:<15} {entry['title']}" for code, entry in codes().items())
