# SPDX-License-Identifier: BSD-3-Clause
"""What a results directory holds, read once for a report.

From the directory alone: nothing is asked of site or lab. What can't be read is said in `damage`, a
sentence each, and what can be is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..base import source
from ..base.errors import ConfigurationError, SwitchbenchError
from ..base.model import Port
from ..config.names import Names
from ..records.directory import (
    CONFIGURATION,
    SUMMARY,
    as_read,
    load_summary,
    refuse_endless,
)
from ..records.document.schema import checked
from ..records.document.summary import BegunRun, MachineEntry, SummaryDocument
from ..records.document.trials import PhaseEntry, PlanEntry
from ..records.plan_file import read_plan
from ..records.store import has_tables, refuse_old_form
from .columns import Columns, PlanKey
from .location.wired import group_of_port
from .measures import UNSETTLED
from .remake import is_begun_only, remade
from .summary import NOT_ENDED


@dataclass
class Measured:
    """One run's results."""

    directory: Path
    summary: SummaryDocument
    damage: list[str] = field(default_factory=list)  # what could not be read, a sentence each
    modules: dict[str, str] = field(default_factory=dict)  # by port, where the wiring is known
    ports: list[str] = field(default_factory=list)  # module by module, else as the site has them
    records: Columns = field(default_factory=lambda: Columns([]))
    notes: list[str] = field(default_factory=list)  # what is not drawn, though nothing is wrong

    @classmethod
    def load(cls, directory: Path) -> Measured:
        """Read a results directory; ConfigurationError where nothing in it can be shown."""
        damage: list[str] = []
        summary = whole_summary(directory, damage)
        modules = _modules(directory, summary)
        ports = _in_order(summary, modules)
        columns = Columns(ports, _unsettled(summary))
        columns.read(directory)
        damage += columns.damage
        return cls(directory, summary, damage, modules, ports, columns)

    def phases_of(self, plan: PlanEntry) -> list[PhaseEntry]:
        """Return the phases of one of the summary's plans, in order."""
        return self._phases.get(plan_key(plan), [])

    @cached_property
    def names(self) -> list[str]:
        """What people are shown for each of `ports`: its host, where each has the same one port."""
        same = len({port.partition(":")[2] for port in self.ports}) == 1
        return [port.partition(":")[0] if same else port for port in self.ports]

    @cached_property
    def _phases(self) -> dict[PlanKey, list[PhaseEntry]]:
        found: dict[PlanKey, list[PhaseEntry]] = {}
        for entry in self.summary["trials"]:
            found.setdefault(plan_key(entry), []).append(entry)
        return found


def plan_key(entry: Mapping[str, Any]) -> PlanKey:
    """Return which plan an entry of trials or plans belongs to."""
    return PlanKey(entry["trial"], entry["repeat"], entry["network"])


def _unsettled(summary: SummaryDocument) -> dict[PlanKey, set[int]]:
    """Return the phases that were stopped while frames were in flight."""
    found: dict[PlanKey, set[int]] = {}
    for entry in summary["trials"]:
        if entry["state"] in UNSETTLED:
            found.setdefault(plan_key(entry), set()).add(entry["phase"])
    return found


# --- the summary -------------------------------------------------------------------------------


def whole_summary(directory: Path, damage: list[str]) -> SummaryDocument:
    """Return the summary, made again of the records where it is damaged or not whole.

    `damage` gets what was wrong.
    """
    refuse_endless(directory)
    refuse_old_form(directory)
    summary: Mapping[str, Any] = {}
    try:
        summary = load_summary(directory)
        whole = checked(summary, directory / SUMMARY)
        begun = is_begun_only(summary) and has_tables(directory)
        if NOT_ENDED not in summary["errors"] and not begun:
            return whole
        damage.append(NOT_ENDED)
    except ConfigurationError as error:
        if not has_tables(directory) or summary.get("imported"):
            raise
        damage.append(str(error))
    try:
        again = _again(directory, summary, damage)
    except SwitchbenchError as error:
        raise ConfigurationError(f"{damage[-1]}; nor can it be made again: {error}") from error
    damage.append("what is shown here was made of the tables that there are")
    return cast("SummaryDocument", as_read(again))  # its text as a terminal can show it


def _again(directory: Path, summary: Mapping[str, Any], faults: list[str]) -> SummaryDocument:
    """Of the records; what was wrong with the summary makes the run a partial one."""
    known = {"run": summary.get("run", _about(directory)), "errors": faults, "exit_status": 0}
    return remade(read_plan(directory), directory, known, ended=False)


def _about(directory: Path) -> BegunRun:
    """Return what a summary says of its run, where only the records are left."""
    unknown = MachineEntry(host="unknown", system="unknown", cpus=0, cpu=None, memory_bytes=None)
    return {
        "id": directory.name,
        "started": "unknown",
        "elapsed_s": None,
        "command": [],
        "launch": "hand",
        "lab": None,
        "excluded_hosts": [],
        "versions": {},
        "machine": unknown,
    }


# --- ports and modules -------------------------------------------------------------------------


def _modules(directory: Path, summary: SummaryDocument) -> dict[str, str]:
    """By port: the switch or module that it is wired to, else the site's group that it is in."""
    wired = {port["port"]: port["switch"] for port in summary["ports"] if port["switch"]}
    return wired or _groups(directory, [port["port"] for port in summary["ports"]])


def _groups(directory: Path, ports: list[str]) -> dict[str, str]:
    try:
        effective = source.load(directory / CONFIGURATION)
        groups = effective["site"]["groups"]
        names = Names([Port(port, port.partition(":")[0], "", (), {}) for port in ports])
        members = {
            name: [
                port.name
                for text in (texts if isinstance(texts, list) else [texts])
                for port in names.ports(text)
            ]
            for name, texts in groups.items()
        }
    except (ConfigurationError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # a site that names no groups, or is in a file of its own
    return group_of_port(members)


def _in_order(summary: SummaryDocument, modules: Mapping[str, str]) -> list[str]:
    """Order module by module; within one by name, as people count: node2 before node10."""
    names = list(dict.fromkeys(port["port"] for port in summary["ports"]))
    if not modules:
        return names
    first = {module: place for place, module in reversed(list(enumerate(modules.values())))}
    last = len(modules)
    return sorted(names, key=lambda name: (first.get(modules.get(name, ""), last), _natural(name)))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
