# SPDX-License-Identifier: BSD-3-Clause
"""One map from error to exit status (doc/developer/architecture.md): 0 done and PASS, 1 FAIL,
2 invalid configuration, 3 the run could not be completed, 4 INCONCLUSIVE."""

from __future__ import annotations

from .text import printable


class SwitchbenchError(Exception):
    """One sentence for a person: what, where, what to do. Printed once, by the command."""

    status = 3

    def __str__(self) -> str:
        """With escapes for what a terminal would obey: files, arguments and nodes are quoted."""
        return str(printable(super().__str__(), keep="\n"))


class ConfigurationError(SwitchbenchError):
    """What was asked for can't be: nothing was started."""

    status = 2


class RunError(SwitchbenchError):
    """The run could not be completed; what was measured is kept."""

    status = 3
