# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says: one check a line."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
LACK = "lack"  # something can't be done; `remedy` says how it could
NOTE = "note"  # worth knowing; nothing is lost


@dataclass(frozen=True)
class HostCheck:
    """One line of the doctor's."""

    part: str  # engine | tcp | dpdk | verbs | lab | machine
    what: str
    state: str  # ok | lack | note
    detail: str = ""
    remedy: str = ""
