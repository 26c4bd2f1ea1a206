# SPDX-License-Identifier: BSD-3-Clause
"""One map from error to exit status (doc/developer/architecture.md).

0 done and PASS, 1 FAIL, 2 invalid configuration, 3 the run could not be completed, 4 INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def printable(value: Any, keep: str = "") -> Any:
    """Return a value with escapes for characters that a terminal would obey or not show.

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
# The map from error to exit status (doc/developer/architecture.md).


class SwitchbenchError(Exception):
    """Error in one sentence for the user: what, where, what to do. Printed once, by the command."""

    status = 3

    def __str__(self) -> str:
        """Return the message with escapes for control characters in its quoted texts."""
        return str(printable(super().__str__(), keep="\n"))


class ConfigurationError(SwitchbenchError):
    """Error of an invalid configuration or option: nothing was started."""

    status = 2


class Mistakes:
    """Collector of configuration mistakes, which are reported together."""

    def __init__(self) -> None:
        """Start without mistakes."""
        self.found: list[ConfigurationError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a mistake in the enclosed code, on which no later code may depend."""
        try:
            yield
        except ConfigurationError as error:
            self.found.append(error)

    def refuse(self) -> None:
        """Raise one ConfigurationError with a line for each collected mistake, if there are any."""
        lines = list(dict.fromkeys(line for one in self.found for line in str(one).splitlines()))
        more = len(lines) - MISTAKES_MOST
        if more > 0:
            lines = [*lines[:MISTAKES_MOST], f"and {more} more"]
        if lines:
            raise ConfigurationError("\n".join(lines))


MISTAKES_MOST = 30


class RunError(SwitchbenchError):
    """Error of a run that could not be completed; its measurements are kept."""

    status = 3
