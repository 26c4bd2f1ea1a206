# SPDX-License-Identifier: BSD-3-Clause
"""Records of nodes, gathered to rows of tables: a phase at a time, once all nodes have ended it.

A record that contradicts those before it is refused: a second one of a flow's side, or one of a
phase or trial that all nodes have ended. So the rows of a run fit together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..base.model import Run, Trial
from .latency import Histogram
from .record_forms import DamagedRecord, Record
from .rows import EXECUTION, PhaseRows, Rows
from .schema import BY_PHASE, Row, columns_of, flow_side

PROBE = -1  # the phase of the connectivity check

Moment = tuple[int, int, int]  # trial, repeat, phase
PhaseData = dict[str, list[Row]]  # of a phase that has ended: rows by table

_CLOCK = {one.key: one.name for one in columns_of("phases").values() if one.key} | {
    name: name for name in ("maxerror_ns", "esterror_ns")
}  # columns of a node's clock by the record's keys
_PER_PHASE = frozenset(
    ("flow", "port", "phase", "clock", "histogram", "interval", "reorder", EXECUTION)
)
_BESIDE = ("misdelivered-flow",)  # events that a phase's result is made of
_ORDERED = _PER_PHASE.union(_BESIDE, ("trial",))
_LIVE = frozenset(("progress", "samples"))  # for the screen, and for a table of their own


@dataclass
class _Open:
    """A phase that not all nodes have ended."""

    flows: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    ports: dict[tuple[str, str], Row] = field(default_factory=dict)
    nodes: dict[str, Row] = field(default_factory=dict)
    clocks: dict[str, Row] = field(default_factory=dict)
    times: dict[tuple[str, str, str, str], tuple[Row, Histogram]] = field(default_factory=dict)
    spans: list[Row] = field(default_factory=list)


class Collector:
    """Takes the records of a run as they come, and gives each phase when it has ended."""

    def __init__(self, run: Run) -> None:
        self._nodes = {process.name for process in run.site.processes}
        self._open: dict[tuple[int, int], dict[int, _Open]] = {}
        self._ended: dict[tuple[int, int], set[int]] = {}  # phases by trial
        self._ending: dict[tuple[int, int], set[str]] = {}  # nodes that ended a trial
        self._done: set[tuple[int, int]] = set()  # trials that all nodes have ended

    def take(self, record: Record) -> list[PhaseData]:
        """Take one record; return the phases that have ended with it, rows by table.

        An event belongs to no row of a phase: it is only held against what came before.
        """
        kind = record["type"]
        if kind not in _ORDERED:
            return []
        key = (record["trial"], record.get("repeat") or 0)
        self._refuse_late(key, record)
        if kind == "trial":
            return self._end_trial(key, record)
        if kind in _BESIDE:
            return []
        phases = self._open.setdefault(key, {})
        phase = phases.setdefault(record["phase"], _Open())
        _TAKERS[kind](phase, record)
        if kind == "phase" and phase.nodes.keys() >= self._nodes:
            return self._closed(key, [record["phase"]])
        return []

    def rest(self) -> list[PhaseData]:
        """Return the phases that not all nodes have ended; no more records are taken of them."""
        return [
            found
            for key, phases in self._open.items()
            for found in self._closed(key, sorted(phases))
        ]

    def _end_trial(self, key: tuple[int, int], record: Record) -> list[PhaseData]:
        nodes = self._ending.setdefault(key, set())
        nodes.add(record["node"])
        if not nodes >= self._nodes:
            return []
        found = self._closed(key, sorted(self._open.get(key, ())))
        self._done.add(key)
        for known in (self._ending, self._open, self._ended):
            known.pop(key, None)
        return found

    def _refuse_late(self, key: tuple[int, int], record: Record) -> None:
        if key in self._done:
            raise DamagedRecord(f"it comes after all nodes have ended trial {key[0]}")
        phase = record.get("phase", PROBE)
        if phase in self._ended.get(key, ()):
            raise DamagedRecord(f"it comes after all nodes have ended phase {phase} of it")

    def _closed(self, key: tuple[int, int], phases: Iterable[int]) -> list[PhaseData]:
        return [found for phase in phases if (found := self._close(key, phase))]

    def _close(self, key: tuple[int, int], phase: int) -> PhaseData:
        if phase != PROBE:
            self._ended.setdefault(key, set()).add(phase)
        found = self._open[key].pop(phase)
        place = {"trial": key[0], "repeat": key[1], "phase": phase}
        tables = {
            "flows": list(found.flows.values()),
            "ports": list(found.ports.values()),
            "phases": [row | found.clocks.get(node, {}) for node, row in found.nodes.items()],
            "histograms": [row | times.row() for row, times in found.times.values()],
            "intervals": found.spans,
        }
        return {name: [row | place for row in rows] for name, rows in tables.items() if rows}


def _take_flow(phase: _Open, record: Record) -> None:
    src, dst, side = record["src"], record["dst"], record["side"]
    row = {"network": record["network"], "src": src, "dst": dst}
    row |= {"source_reported": False, "destination_reported": False}
    row = phase.flows.setdefault((record["network"], src, dst), row)
    if row[f"{side}_reported"]:
        raise DamagedRecord(f"a second record of the {side} of {src} -> {dst} in one phase")
    row[f"{side}_reported"] = True
    names = flow_side(side)
    measures = record.get("measures") or {}
    for key, name in names.items():
        column = columns_of("flows")[name]
        value = (measures if column.kind == "number" else record).get(key)
        if value is not None:
            row[name] = value


def _take_reorder(phase: _Open, record: Record) -> None:
    row = phase.flows.get((record["network"], record["src"], record["dst"]))
    if row is not None:
        for key in ("reordered", "extent_sum", "extent_max", "three_reordered"):
            row[key] = record[key]


def _columns(table: str, record: Record) -> Row:
    known = columns_of(table)
    return {key: value for key, value in record.items() if key in known}


def _take_port(phase: _Open, record: Record) -> None:
    phase.ports[record["network"], record["port"]] = _columns("ports", record)


def _take_node(phase: _Open, record: Record) -> None:
    phase.nodes[record["node"]] = _columns("phases", record)


def _take_clock(phase: _Open, record: Record) -> None:
    phase.clocks[record["node"]] = {name: record.get(key) for key, name in _CLOCK.items()}


def _take_times(phase: _Open, record: Record) -> None:
    if record["type"] == EXECUTION:
        src = dst = record["rank"]
        kind = EXECUTION
        record = record | {"count": record["batches"], "lost": None}
    else:
        src, dst, kind = record["src"], record["dst"], record["kind"]
    key = (record["network"], src, dst, kind)
    row, times = phase.times.setdefault(key, ({}, Histogram()))
    times.add_record(record)
    row |= {"network": key[0], "src": src, "dst": dst, "kind": kind}
    if kind == EXECUTION:
        row |= {name: record.get(name) for name in ("repetitions", "verified")}


def _take_spans(phase: _Open, record: Record) -> None:
    ends = record["at_ms"]
    begins = [record["from_ms"], *ends]
    for src, counts in record["flows"]:
        for begin, end, count in zip(begins, ends, counts, strict=False):
            if end > begin:
                span = {"from_ms": begin, "to_ms": end, "payload_bytes": count}
                flow = {"network": record["network"], "src": src, "dst": record["dst"]}
                phase.spans.append(flow | span)


_TAKERS = {
    "flow": _take_flow,
    "reorder": _take_reorder,
    "port": _take_port,
    "phase": _take_node,
    "clock": _take_clock,
    "histogram": _take_times,
    EXECUTION: _take_times,
    "interval": _take_spans,
}


def is_event(record: Record) -> bool:
    """Return whether a record is a row of `events`."""
    return record["type"] not in _PER_PHASE and record["type"] not in _LIVE


def phase_rows(tables: PhaseData) -> PhaseRows:
    """Return the rows of a phase that has ended, as they are read."""
    first = next(iter(tables.values()))[0]
    moment = (first["trial"], first["repeat"], first["phase"])
    return PhaseRows(
        moment, {name: Rows.of(name, tables[name]) for name in BY_PHASE if name in tables}
    )


# --- whose records can be in a run's results -----------------------------------------------------

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
