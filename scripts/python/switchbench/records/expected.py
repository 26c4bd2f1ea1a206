# SPDX-License-Identifier: BSD-3-Clause
"""Whose records can be in a run's results: each node speaks for its own ports, of the run's trials
alone. What a damaged file or a strange node says of others is no part of a result."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..base.model import Run, Trial
from .record_forms import DamagedRecord, Record
from .rows import KINDS, PhaseKey, Rows

PROBE = -1  # the phase of the connectivity check
LATE = "it comes after all nodes have ended trial {}"
_ORDERED = {*KINDS, "reorder", "misdelivered-flow", "trial"}  # what belongs to one phase or trial
# Which end of a flow a record is of, and so which node has to have written it.
_OF_DESTINATION = {"one_way", "ipdv"}  # kinds of times


class Expected:
    """The names and numbers of a run."""

    def __init__(self, run: Run) -> None:
        """Of its site and its trials."""
        processes = run.site.processes
        self._owner = {port.name: process.name for process in processes for port in process.ports}
        self._nodes = {process.name for process in processes}
        self._trials = {(trial.id, trial.repeat): _Names(trial) for trial in run.trials}

    def add(self, trial: Trial) -> None:
        """One more trial, which a search chose."""
        self._trials[trial.id, trial.repeat] = _Names(trial)

    def check(self, record: Record) -> None:
        """DamagedRecord where no node of this run can have written the record."""
        node = record.get("node")
        if node not in self._nodes:
            raise DamagedRecord(f"it is of the node {node!r}, and this run has none of that name")
        if "trial" in record:
            self._check_trial(record)
        for port in _own_ports(record):
            if self._owner.get(port) != node:
                raise DamagedRecord(f"it is of the node {node}, and {port!r} is no port of that")

    def check_rows(self, kind: str, key: PhaseKey, rows: Rows) -> None:
        """The same of records of one phase: DamagedRecord for the first that is not the run's."""
        trial = self._trials.get((key.trial, key.repeat))
        ranks = trial.ranks.get(key.network) if trial and key.network else self._owner.keys()
        sound = ranks is not None and trial is not None and trial.has_phase(key.phase)
        for name in ("src", "dst"):
            if sound and ranks is not None and name in rows.columns:
                sound = set(rows.texts(name)) <= ranks
        if sound:
            nodes, ports = rows.texts("node"), _own_ports_of(kind, rows)
            if ports is None:
                sound = self._nodes.issuperset(nodes)
            else:
                sound = nodes == list(map(self._owner.get, ports))
        if not sound:
            for line, record in zip(rows.lines.tolist(), rows.records(kind), strict=True):
                try:
                    self.check(record)
                except DamagedRecord as error:
                    raise DamagedRecord(str(error), line) from None

    def _check_trial(self, record: Record) -> None:
        number, repeat = record["trial"], record.get("repeat") or 0
        numbers = isinstance(number, int) and isinstance(repeat, int)  # some types have no form
        trial = self._trials.get((number, repeat)) if numbers else None
        if trial is None:
            raise DamagedRecord(f"this run has no trial {number}, repeat {repeat}")
        network = record.get("network")  # some types have none; then it is no text, perhaps
        if isinstance(network, str) and network not in trial.ranks:
            raise DamagedRecord(f"trial {number} has no network {network!r}")
        phase = record.get("phase", -1)
        if isinstance(phase, int) and not trial.has_phase(phase):
            raise DamagedRecord(f"trial {number} has no phase {phase}")
        ranks = trial.ranks[network] if isinstance(network, str) else self._owner
        for end in (record.get("src"), record.get("dst")):
            if isinstance(end, str) and end not in ranks:
                raise DamagedRecord(f"trial {number} has no rank {end!r}")


class Order:
    """Refuses a record that contradicts those before it, so that a run's records fit together: a
    second one of a flow's side, and one of a phase or trial that all nodes have ended."""

    def __init__(self, run: Run) -> None:
        """Begin a run."""
        self._count = len(run.site.processes)
        self._trials: dict[tuple[int, int], _TrialOrder] = {}

    def check(self, record: Record) -> None:
        """Take one record that is the run's; DamagedRecord where it contradicts an earlier one."""
        kind = record["type"]
        if kind not in _ORDERED:
            return
        number, phase = record["trial"], record.get("phase", PROBE)
        trial = self._trials.setdefault((number, record.get("repeat") or 0), _TrialOrder())
        if len(trial.ended) == self._count:
            raise DamagedRecord(LATE.format(number))
        if kind == "trial":
            trial.ended.add(record["node"])
            return
        told = trial.told.setdefault(phase, set())
        if len(told) == self._count and phase != PROBE:
            raise DamagedRecord(f"it comes after all nodes have ended phase {phase} of it")
        if kind == "flow":
            side = (record["network"], record["side"], record["src"], record["dst"])
            sides = trial.sides.setdefault(phase, set())
            if side in sides:
                ends = f"{side[2]} -> {side[3]}"
                raise DamagedRecord(f"a second record of the {side[1]} of {ends} in one phase")
            sides.add(side)
        elif kind == "phase":
            told.add(record["node"])
            if len(told) == self._count:
                trial.sides.pop(phase, None)


@dataclass
class _TrialOrder:
    ended: set[str] = field(default_factory=set)  # nodes
    told: dict[int, set[str]] = field(default_factory=dict)  # by phase, the nodes that ended it
    sides: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)  # by open phase


class _Names:
    """What a trial's records may name."""

    def __init__(self, trial: Trial) -> None:
        self.ranks = {part.network: {port.name for port in part.ranks} for part in trial.parts}
        self._phases = trial.phases
        self._chosen = trial.chosen  # None: all

    def has_phase(self, phase: int) -> bool:
        if phase < 0:
            return True
        return phase in self._chosen if self._chosen is not None else phase < self._phases


def _own_ports_of(kind: str, rows: Rows) -> list[str] | None:
    """For each row the port that its node has to have; None: nodes speak of no port."""
    if kind == "phase":
        return None
    if kind == "port":
        return rows.texts("port")
    if kind == "interval":
        return rows.texts("dst")
    if kind == "flow":
        is_source = rows.columns["side"] == "source"
    else:
        is_source = np.array([name not in _OF_DESTINATION for name in rows.texts("kind")])
    found: list[str] = np.where(is_source, rows.columns["src"], rows.columns["dst"]).tolist()
    return found


def _own_ports(record: Record) -> list[str]:
    """The ports that the record's node has to have."""
    kind = record["type"]
    if kind in ("port-open", "port", "misdelivered-flow"):
        return [record["port"]]
    if kind == "flow":
        return [record["src" if record["side"] == "source" else "dst"]]
    if kind == "histogram":
        return [record["dst" if record["kind"] in _OF_DESTINATION else "src"]]
    if kind in ("interval", "reorder"):
        return [record["dst"]]
    if kind == "execution":
        return [record["rank"]]
    if kind == "progress":
        return [name for name, *_ in record.get("ports") or ()]
    if kind == "event" and record.get("port") is not None:
        return [record["port"]]
    return []
