# SPDX-License-Identifier: BSD-3-Clause
"""One map from error to exit status (doc/developer/architecture.md).

0 done and PASS, 1 FAIL, 2 invalid configuration, 3 the run could not be completed, 4 INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def printable(value: Any, keep: str = "") -> Any:
    """Return the same with escapes for all characters that a terminal would obey, or not show.

    Of keys, too. `keep`: of these the ones that stay.
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
# One map from error to exit status (doc/developer/architecture.md).


class SwitchbenchError(Exception):
    """One sentence for a person: what, where, what to do. Printed once, by the command."""

    status = 3

    def __str__(self) -> str:
        """With escapes for what a terminal would obey: files, arguments and nodes are quoted."""
        return str(printable(super().__str__(), keep="\n"))


class ConfigurationError(SwitchbenchError):
    """What was asked for can't be: nothing was started."""

    status = 2


class Mistakes:
    """What is wrong in several places, told at once."""

    def __init__(self) -> None:
        """None so far."""
        self.found: list[ConfigurationError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Around what may find a mistake and is not needed for what follows."""
        try:
            yield
        except ConfigurationError as error:
            self.found.append(error)

    def refuse(self) -> None:
        """Raise a ConfigurationError with a line for each mistake, if there are some."""
        lines = list(dict.fromkeys(line for one in self.found for line in str(one).splitlines()))
        more = len(lines) - MISTAKES_MOST
        if more > 0:
            lines = [*lines[:MISTAKES_MOST], f"and {more} more"]
        if lines:
            raise ConfigurationError("\n".join(lines))


MISTAKES_MOST = 30


class RunError(SwitchbenchError):
    """The run could not be completed; what was measured is kept."""

    status = 3
