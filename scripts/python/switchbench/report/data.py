# SPDX-License-Identifier: BSD-3-Clause
"""What a results directory holds, read once for a report.

From the directory alone: nothing is asked of engine, site or lab. What can't be read is said in
`damage`, a sentence each, and what can be is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..results.directory import load_summary


@dataclass
class Measured:
    """One run's results."""

    directory: Path
    summary: dict[str, Any]  # results/schema/summary.schema.json
    damage: list[str] = field(default_factory=list)  # what could not be read, a sentence each
    modules: dict[str, str] = field(default_factory=dict)  # by port, where the wiring is known

    @classmethod
    def load(cls, directory: Path) -> Measured:
        """Reads a results directory; ConfigurationError where nothing in it can be shown."""
        summary = load_summary(directory)
        modules = {port["port"]: port["switch"] for port in summary["ports"] if port["switch"]}
        return cls(directory, summary, modules=modules)
