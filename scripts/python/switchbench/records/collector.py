# SPDX-License-Identifier: BSD-3-Clause
"""Records of nodes, gathered to rows of tables: a phase at a time, once all nodes have ended it.

A record that contradicts those before it is refused: a second one of a flow's side, or one of a
phase or trial that all nodes have ended. So the rows of a run fit together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.model import Run, Trial
from .record_forms import DamagedRecord, Record
from .rows import EXECUTION, Histogram, PhaseRows
from .schema import MOMENT, Row, columns_of, flow_side, record_batch

PROBE = -1  # the phase of the connectivity check

Moment = tuple[int, int, int]  # trial, repeat, phase
PhaseData = dict[str, Any]  # of a phase that has ended: Arrow record batches by table

_CLOCK = {one.key: one.name for one in columns_of("phases").values() if one.key} | {
    name: name for name in ("maxerror_ns", "esterror_ns")
}  # columns of a node's clock by the record's keys
_PER_PHASE = frozenset(
    ("flow", "port", "phase", "clock", "histogram", "interval", "reorder", EXECUTION)
)
_BESIDE = "misdelivered-flow"  # an event that a phase's result is made of
_LIVE = frozenset(("progress", "samples"))  # for the screen, and for a table of their own


class _Phase:
    """The rows of a phase that not all nodes have ended."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str, str], Row] = {}
        self._ports: dict[tuple[str, str], Row] = {}
        self.nodes: dict[str, Row] = {}
        self._clocks: dict[str, Row] = {}
        self._times: dict[tuple[str, str, str, str], tuple[Row, Histogram]] = {}
        self._spans: list[Row] = []

    def take(self, record: Record) -> None:
        """Take one record; DamagedRecord where its end of a flow is known."""
        match record["type"]:
            case "flow":
                self._take_flow(record)
            case "reorder":
                row = self._flows.get((record["network"], record["src"], record["dst"]), {})
                row |= {key: record[key] for key in _REORDER if row}
            case "port":
                self._ports[record["network"], record["port"]] = _columns("ports", record)
            case "phase":
                self.nodes[record["node"]] = _columns("phases", record)
            case "clock":
                clock = {name: record.get(key) for key, name in _CLOCK.items()}
                self._clocks[record["node"]] = clock
            case "interval":
                self._take_spans(record)
            case _:
                self._take_times(record)

    def _take_flow(self, record: Record) -> None:
        src, dst, side = record["src"], record["dst"], record["side"]
        row = {"network": record["network"], "src": src, "dst": dst}
        row |= {"source_reported": False, "destination_reported": False}
        row = self._flows.setdefault((record["network"], src, dst), row)
        if row[f"{side}_reported"]:
            raise DamagedRecord(f"a second record of the {side} of {src} -> {dst} in one phase")
        row[f"{side}_reported"] = True
        measures = record.get("measures") or {}
        for key, name in flow_side(side).items():
            is_measure = columns_of("flows")[name].kind == "number"
            value = (measures if is_measure else record).get(key)
            if value is not None:
                row[name] = value

    def _take_times(self, record: Record) -> None:
        if record["type"] == EXECUTION:
            ends = {"src": record["rank"], "dst": record["rank"], "kind": EXECUTION}
            more = {name: record.get(name) for name in ("repetitions", "verified")}
            record = record | ends | {"count": record["batches"], "lost": None}
        else:
            more = {}
        row = {name: record[name] for name in ("network", "src", "dst", "kind")}
        _, times = self._times.setdefault(tuple(row.values()), (row, Histogram()))
        times.add_record(record)
        self._times[tuple(row.values())] = row | more, times

    def _take_spans(self, record: Record) -> None:
        ends = record["at_ms"]
        for src, counts in record["flows"]:
            flow = {"network": record["network"], "src": src, "dst": record["dst"]}
            self._spans += [
                {**flow, "from_ms": begin, "to_ms": end, "payload_bytes": count}
                for begin, end, count in zip([record["from_ms"], *ends], ends, counts, strict=False)
                if end > begin
            ]

    def tables(self, moment: Moment) -> PhaseData:
        """Return the rows by table."""
        place = dict(zip(MOMENT, moment, strict=True))
        tables = {
            "flows": list(self._flows.values()),
            "ports": list(self._ports.values()),
            "phases": [row | self._clocks.get(node, {}) for node, row in self.nodes.items()],
            "histograms": [row | times.row() for row, times in self._times.values()],
            "intervals": self._spans,
        }
        return {
            name: record_batch(name, [row | place for row in rows])
            for name, rows in tables.items()
            if rows
        }


_REORDER = ("reordered", "extent_sum", "extent_max", "three_reordered")


def _columns(table: str, record: Record) -> Row:
    known = columns_of(table)
    return {key: value for key, value in record.items() if key in known}


class Collector:
    """Takes the records of a run as they come, and gives each phase when it has ended."""

    def __init__(self, run: Run) -> None:
        self._nodes = {process.name for process in run.site.processes}
        self._open: dict[tuple[int, int], dict[int, _Phase]] = {}
        self._ended: dict[tuple[int, int], set[int]] = {}  # phases by trial
        self._ending: dict[tuple[int, int], set[str]] = {}  # nodes that ended a trial
        self._done: set[tuple[int, int]] = set()  # trials that all nodes have ended

    def take(self, record: Record) -> list[PhaseData]:
        """Take one record; return the phases that have ended with it, rows by table.

        An event belongs to no row of a phase: it is only held against what came before.
        """
        kind = record["type"]
        if kind not in (*_PER_PHASE, _BESIDE, "trial"):
            return []
        key = (record["trial"], record.get("repeat") or 0)
        own = record.get("phase", PROBE)
        if key in self._done:
            raise DamagedRecord(f"it comes after all nodes have ended trial {key[0]}")
        if own in self._ended.get(key, ()):
            raise DamagedRecord(f"it comes after all nodes have ended phase {own} of it")
        if kind == "trial":
            nodes = self._ending.setdefault(key, set())
            nodes.add(record["node"])
            if not nodes >= self._nodes:
                return []
            found = self._closed(key, sorted(self._open.get(key, ())))
            self._done.add(key)
            for known in (self._ending, self._open, self._ended):
                known.pop(key, None)
            return found
        if kind == _BESIDE:
            return []
        phase = self._open.setdefault(key, {}).setdefault(own, _Phase())
        phase.take(record)
        is_ended = kind == "phase" and phase.nodes.keys() >= self._nodes
        return self._closed(key, [own]) if is_ended else []

    def rest(self) -> list[PhaseData]:
        """Return the phases that not all nodes have ended; no more records are taken of them."""
        return [
            found
            for key, phases in self._open.items()
            for found in self._closed(key, sorted(phases))
        ]

    def _closed(self, key: tuple[int, int], phases: Iterable[int]) -> list[PhaseData]:
        self._ended.setdefault(key, set()).update(phase for phase in phases if phase != PROBE)
        every = [self._open[key].pop(phase).tables((*key, phase)) for phase in phases]
        return [found for found in every if found]


def is_event(record: Record) -> bool:
    """Return whether a record is a row of `events`."""
    return record["type"] not in _PER_PHASE and record["type"] not in _LIVE


# --- whose records can be in a run's results -----------------------------------------------------

# Which end of a flow a record is of, and so which node has to have written it.
_OF_DESTINATION = {"one_way", "ipdv"}  # kinds of times
_OWN_PORT = {
    "port-open": "port", "port": "port", "misdelivered-flow": "port", "event": "port",
    "interval": "dst", "reorder": "dst", EXECUTION: "rank",
}  # fmt: skip
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
        self._trials: dict[tuple[object, object], Trial] = {}
        self._ranks: dict[tuple[object, object], dict[str, set[str]]] = {}  # by network
        for trial in run.trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """One more trial, which a search chose."""
        key = trial.id, trial.repeat
        self._trials[key] = trial
        self._ranks[key] = {p.network: {port.name for port in p.ranks} for p in trial.parts}

    def check(self, record: Record) -> None:
        """DamagedRecord where no node of this run can have written the record."""
        node = record.get("node")
        if node not in self._nodes:
            raise DamagedRecord(f"it is of the node {node!r}, and this run has none of that name")
        if "trial" in record:
            number, phase, network = map(record.get, ("trial", "phase", "network"))
            own = phase if isinstance(phase, int) else PROBE  # some types have no form
            every = self._ranks_of(number, record.get("repeat") or 0, own)
            named = isinstance(network, str)
            ranks = _of_network(every, network, number) if named else self._owner.keys()
            for end in (record.get("src"), record.get("dst")):
                if isinstance(end, str) and end not in ranks:
                    raise DamagedRecord(f"trial {number} has no rank {end!r}")
        for port in _own_ports(record):
            if self._owner.get(port) != node:
                raise DamagedRecord(f"it is of the node {node}, and {port!r} is no port of that")

    def check_phase(self, phase: PhaseRows) -> None:
        """DamagedRecord where the rows of a phase are not the run's, or there twice."""
        number, repeat, own = phase.moment
        every = self._ranks_of(number, repeat, own)
        strange = set(phase.rows("phases").texts("node")) - self._nodes
        if strange:
            raise DamagedRecord(f"this run has no node {sorted(strange)[0]!r}")
        for table, names in _NAMES.items():
            for network, rows in phase.rows(table).by_network():
                ranks = _of_network(every, network, number)
                for name in names:
                    for port in sorted(set(rows.texts(name)) - ranks)[:1]:
                        raise DamagedRecord(f"trial {number} has no rank {port!r}")
                if table in _SINGLE and own >= 0:
                    ids = list(zip(*map(rows.texts, _SINGLE[table]), strict=True))
                    if len(set(ids)) < len(ids):
                        twice = " ".join(next(one for one in ids if ids.count(one) > 1))
                        raise DamagedRecord(
                            f"{twice} is there twice in phase {own} of trial {number}: {table}"
                        )

    def _ranks_of(self, number: object, repeat: object, phase: int) -> dict[str, set[str]]:
        """Return the ranks of a trial by network; DamagedRecord where it has no such phase."""
        known = isinstance(number, int) and isinstance(repeat, int)
        trial = self._trials.get((number, repeat)) if known else None
        if trial is None:
            raise DamagedRecord(f"this run has no trial {number}, repeat {repeat}")
        chosen = range(trial.phases) if trial.chosen is None else trial.chosen
        if phase >= 0 and phase not in chosen:
            raise DamagedRecord(f"trial {number} has no phase {phase}")
        return self._ranks[number, repeat]


def _of_network(ranks: dict[str, set[str]], network: Any, number: object) -> set[str]:
    if network not in ranks:
        raise DamagedRecord(f"trial {number} has no network {network!r}")
    return ranks[network]


def _own_ports(record: Record) -> list[str]:
    """Return the ports that the record's node has to have."""
    kind = record["type"]
    key = _OWN_PORT.get(kind, "")
    if kind == "flow":
        key = "src" if record["side"] == "source" else "dst"
    elif kind == "histogram":
        key = "dst" if record["kind"] in _OF_DESTINATION else "src"
    names = [record[key]] if record.get(key) is not None else []
    return [name for name, *_ in record.get("ports") or ()] if kind == "progress" else names
