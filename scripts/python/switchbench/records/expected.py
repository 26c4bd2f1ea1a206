# SPDX-License-Identifier: BSD-3-Clause
"""Whose records can be in a run's results.

Each node speaks for its own ports, of the run's trials alone. What a damaged file or a strange node
says of others is no part of a result.
"""

from __future__ import annotations

from ..base.model import Run, Trial
from .record_forms import DamagedRecord, Record
from .rows import PhaseRows

# Which end of a flow a record is of, and so which node has to have written it.
_OF_DESTINATION = {"one_way", "ipdv"}  # kinds of times
# By table: the columns that name ports, and those that tell rows of a phase and network apart.
_NAMES = {"flows": ("src", "dst"), "ports": ("port",), "histograms": ("src", "dst"),
          "intervals": ("src", "dst")}  # fmt: skip
_SINGLE = {"flows": ("src", "dst"), "ports": ("port",), "histograms": ("src", "dst", "kind")}


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

    def check_phase(self, phase: PhaseRows) -> None:
        """DamagedRecord where the rows of a phase are not the run's, or there twice."""
        number, repeat, own = phase.moment
        trial = self._trials.get((number, repeat))
        if trial is None:
            raise DamagedRecord(f"this run has no trial {number}, repeat {repeat}")
        if not trial.has_phase(own):
            raise DamagedRecord(f"trial {number} has no phase {own}")
        strange = set(phase.rows("phases").texts("node")) - self._nodes
        if strange:
            raise DamagedRecord(f"this run has no node {sorted(strange)[0]!r}")
        for table, names in _NAMES.items():
            for network, rows in phase.rows(table).by_network():
                ranks = trial.ranks.get(network)
                if ranks is None:
                    raise DamagedRecord(f"trial {number} has no network {network!r}")
                for name in names:
                    strange = set(rows.texts(name)) - ranks
                    if strange:
                        raise DamagedRecord(f"trial {number} has no rank {sorted(strange)[0]!r}")
                if table in _SINGLE and own >= 0:
                    ids = list(zip(*map(rows.texts, _SINGLE[table]), strict=True))
                    if len(set(ids)) < len(ids):
                        twice = " ".join(next(one for one in ids if ids.count(one) > 1))
                        raise DamagedRecord(
                            f"{twice} is there twice in phase {own} of trial {number}: {table}"
                        )

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


def _own_ports(record: Record) -> list[str]:
    """Return the ports that the record's node has to have."""
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
