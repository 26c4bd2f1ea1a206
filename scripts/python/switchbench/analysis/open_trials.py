# SPDX-License-Identifier: BSD-3-Clause
"""Trials whose records still come: a phase is kept until all nodes have told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ..records.document.trials import PhaseEntry
from ..records.expected import PROBE
from ..records.flows import PhaseRecords
from ..records.record_forms import DamagedRecord, Record
from ..records.rows import PhaseKey, Rows

_OF_NODE = ""  # the network of what nodes say of a phase as a whole


@dataclass
class OpenTrial:
    """One trial: the phases that have not ended, and what came of those that have."""

    phases: dict[int, dict[str, PhaseRecords]] = field(default_factory=dict)  # by network
    done: set[int] = field(default_factory=set)  # phases that all nodes have told of
    ended: dict[str, Record] = field(default_factory=dict)  # `trial` records by node
    entries: dict[str, list[PhaseEntry]] = field(default_factory=dict)  # by network
    alarms: list[tuple[int, int, list[str]]] = field(default_factory=list)  # by part, phase
    _told: dict[int, set[str]] = field(default_factory=dict)  # nodes by phase

    def add(self, kind: str, key: PhaseKey, rows: Rows) -> None:
        """Takes records of a phase."""
        if kind == "phase":
            if key.phase == PROBE:
                return
            self._told.setdefault(key.phase, set()).update(rows.texts("node"))
        self.records(key, int(rows.lines[0])).add(kind, rows)

    def add_record(self, key: PhaseKey, line: int, record: Record) -> None:
        """Takes one of them."""
        if record["type"] == "phase":
            if key.phase == PROBE:
                return
            self._told.setdefault(key.phase, set()).add(record["node"])
        self.records(key, line).add_record(line, record)

    def records(self, key: PhaseKey, line: int) -> PhaseRecords:
        """Those of a phase in a network, to take one more on this line."""
        if key.phase in self.done:
            raise DamagedRecord(
                f"it comes after all nodes have ended phase {key.phase} of trial {key.trial}", line
            )
        return self.phases.setdefault(key.phase, {}).setdefault(key.network, PhaseRecords())

    def told(self, nodes: Collection[str]) -> list[int]:
        """The phases that all nodes have told of, in the order in which they have."""
        ready = [phase for phase, names in self._told.items() if names.issuperset(nodes)]
        return sorted(ready, key=lambda phase: self.phases[phase][_OF_NODE].last_line)

    def close(self, phase: int) -> tuple[Rows, dict[str, PhaseRecords]]:
        """Ends a phase: what nodes say of it, and its records by network."""
        networks = self.phases.pop(phase)
        self.done.add(phase)
        self._told.pop(phase, None)
        return networks.pop(_OF_NODE, PhaseRecords()).last_rows("phase", "node"), networks

    def last_lines(self) -> Iterator[int]:
        """Of all that has not ended."""
        for networks in self.phases.values():
            yield from (records.last_line for records in networks.values())
