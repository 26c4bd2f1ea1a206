# SPDX-License-Identifier: BSD-3-Clause
"""Collector of nodes' records, which returns the rows of each phase that all nodes have ended.

A record that contradicts earlier ones raises DamagedRecord: a second record of a flow's end, or a
record of a phase or trial that all nodes have ended. So the rows of a run are consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..base.model import Run, Trial
from .rows import EXECUTION, Moment, PhaseRows
from .schema import (
    MOMENT,
    DamagedRecord,
    PhaseData,
    Record,
    Row,
    columns_of,
    flow_side,
    record_batch,
)

PROBE = -1  # phase number of the connectivity check


_CLOCK = {one.key: one.name for one in columns_of("phases").values() if one.key} | {
    "maxerror_ns": "maxerror_ns"
}  # column by key of a `clock` record
_PER_PHASE = frozenset(("flow", "port", "phase", "clock", "histogram", "interval", EXECUTION))
_BESIDE = "misdelivered-flow"  # event that changes the result of a phase


class _Phase:
    """Rows of a phase that not all nodes have ended."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str, str], Row] = {}
        self._ports: dict[tuple[str, str], Row] = {}
        self.nodes: dict[str, Row] = {}
        self._clocks: dict[str, Row] = {}
        self._times: dict[tuple[str, str, str, str], Row] = {}
        self._spans: list[Row] = []

    def take(self, record: Record) -> None:
        """Store one record; raise DamagedRecord for a second record of a flow's end or times."""
        match record["type"]:
            case "flow":
                src, dst, side = record["src"], record["dst"], record["side"]
                row = {"network": record["network"], "src": src, "dst": dst}
                row |= {"source_reported": False, "destination_reported": False}
                row = self._flows.setdefault((record["network"], src, dst), row)
                if row[f"{side}_reported"]:
                    raise DamagedRecord(
                        f"the node reported the {side} side of flow {src} -> {dst} twice in one "
                        "phase"
                    )
                row[f"{side}_reported"] = True
                measures = record.get("measures") or {}
                for key, name in flow_side(side).items():
                    is_measure = columns_of("flows")[name].kind == "number"
                    value = (measures if is_measure else record).get(key)
                    if value is not None:
                        row[name] = value
            case "port":
                self._ports[record["network"], record["port"]] = _columns("ports", record)
            case "phase":
                self.nodes[record["node"]] = _columns("phases", record)
            case "clock":
                clock = {name: record.get(key) for key, name in _CLOCK.items()}
                self._clocks[record["node"]] = clock
            case "interval":
                ends = record["at_ms"]
                spans = list(zip([record["from_ms"], *ends], ends, strict=False))
                self._spans += [
                    {"network": record["network"], "src": src, "dst": record["dst"],
                     "from_ms": begin, "to_ms": end, "payload_bytes": count}
                    for src, counts in record["flows"]
                    for (begin, end), count in zip(spans, counts, strict=False)
                    if end > begin
                ]  # fmt: skip
            case _:
                row = times_row(record)
                network, src, dst, kind = (row[name] for name in ("network", "src", "dst", "kind"))
                if self._times.setdefault((network, src, dst, kind), row) is not row:
                    raise DamagedRecord(
                        f"the node reported the {kind} times of flow {src} -> {dst} twice in "
                        "one phase"
                    )

    def tables(self, moment: Moment) -> PhaseData:
        """Return the rows of the phase by table."""
        place = dict(zip(MOMENT, moment, strict=True))
        tables = {
            "flows": list(self._flows.values()),
            "ports": list(self._ports.values()),
            "phases": [row | self._clocks.get(node, {}) for node, row in self.nodes.items()],
            "histograms": list(self._times.values()),
            "intervals": self._spans,
        }
        return {
            name: record_batch(name, [row | place for row in rows])
            for name, rows in tables.items()
            if rows
        }


def _columns(table: str, record: Record) -> Row:
    known = columns_of(table)
    return {key: value for key, value in record.items() if key in known}


def times_row(record: Record) -> Row:
    """Convert a `histogram` or an `execution` record to a row of the table `histograms`."""
    if record["type"] == EXECUTION:
        ends = {"src": record["rank"], "dst": record["rank"], "kind": EXECUTION}
        record = record | ends | {"count": record["batches"], "lost": None}
    words = (word.partition(":") for word in str(record.get("buckets") or "").split())
    counts = sorted((int(bucket), int(count)) for bucket, _, count in words)
    own = {"bucket": [one[0] for one in counts], "bucket_count": [one[1] for one in counts]}
    return _columns("histograms", record) | own


class _Trial:
    """Phases of a trial that not all nodes have ended."""

    def __init__(self) -> None:
        self.open: dict[int, _Phase] = {}
        self.ended: set[int] = set()
        self.nodes: set[str] = set()  # nodes that ended the trial

    def closed(self, key: tuple[int, int], phases: Iterable[int]) -> list[PhaseData]:
        """Close phases, so that later records raise an error; return the phases' rows by table."""
        self.ended.update(phase for phase in phases if phase != PROBE)
        every = [self.open.pop(phase).tables((*key, phase)) for phase in phases]
        return [found for found in every if found]


class Collector:
    """Collector of a run's records; it returns each phase once all nodes have ended it."""

    def __init__(self, run: Run) -> None:
        self._nodes = {process.name for process in run.site.processes}
        # None: all nodes have ended the trial
        self._trials: dict[tuple[int, int], _Trial | None] = {}

    def take(self, record: Record) -> list[PhaseData]:
        """Store a record; return the rows of the phases that this record ends, by table.

        An event becomes a row of the table `events`: only its order is checked, and no phase is
        returned for the event.
        """
        kind = record["type"]
        if kind not in (*_PER_PHASE, _BESIDE, "trial"):
            return []
        key = (record["trial"], record.get("repeat") or 0)
        own = record.get("phase", PROBE)
        trial = self._trials.setdefault(key, _Trial())
        if trial is None:
            raise DamagedRecord(f"the record comes after all nodes have ended trial {key[0]}")
        if own in trial.ended:
            raise DamagedRecord(f"the record comes after all nodes ended phase {own} of its trial")
        if kind == "trial":
            trial.nodes.add(record["node"])
            if not trial.nodes >= self._nodes:
                return []
            self._trials[key] = None
            return trial.closed(key, sorted(trial.open))
        if kind == _BESIDE:
            return []
        phase = trial.open.setdefault(own, _Phase())
        phase.take(record)
        is_ended = kind == "phase" and phase.nodes.keys() >= self._nodes
        return trial.closed(key, [own]) if is_ended else []

    def rest(self) -> list[PhaseData]:
        """Return the rows of the phases that not all nodes have ended.

        Later records of these phases raise DamagedRecord.
        """
        return [
            found
            for key, trial in self._trials.items()
            if trial is not None
            for found in trial.closed(key, sorted(trial.open))
        ]


def is_event(record: Record) -> bool:
    """Return whether a record becomes a row of the table `events`."""
    return record["type"] not in _PER_PHASE | {"progress"}


# --- records that fit a run ----------------------------------------------------------------------

# By type of record: the key that names a port of the record's node.
_OWN_PORT = {
    "port-open": "port", "port": "port", "misdelivered-flow": "port", "event": "port",
    "interval": "dst", EXECUTION: "rank",
}  # fmt: skip
# By table: columns that name ports, and columns that identify a row of a phase and network.
_NAMES = {"flows": ("src", "dst"), "ports": ("port",), "histograms": ("src", "dst"),
          "intervals": ("src", "dst")}  # fmt: skip
_SINGLE = {"flows": ("src", "dst"), "ports": ("port",), "histograms": ("src", "dst", "kind")}


class Expected:
    """Nodes, ports and trials of a run, against which records and rows are checked."""

    def __init__(self, run: Run) -> None:
        """Read the names and numbers of the run's site and trials."""
        processes = run.site.processes
        self._owner = {port.name: process.name for process in processes for port in process.ports}
        self._nodes = {process.name for process in processes}
        self.trials: dict[tuple[int, int], Trial] = {}
        self._ranks: dict[tuple[int, int], dict[str, set[str]]] = {}  # of each trial, by network
        for trial in run.trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Add a trial that a search chose."""
        key = trial.id, trial.repeat
        self.trials[key] = trial
        self._ranks[key] = {p.network: {port.name for port in p.ranks} for p in trial.parts}

    def check(self, record: Record) -> None:
        """Raise DamagedRecord if no node of this run can have written the record."""
        node = record.get("node")
        if node not in self._nodes:
            raise DamagedRecord(f"the record comes from node {node!r}, which is not in this run")
        if "trial" in record:
            number, phase, network = map(record.get, ("trial", "phase", "network"))
            own = phase if isinstance(phase, int) else PROBE  # some types have no declared form
            every = self._ranks_of(number, record.get("repeat") or 0, own)
            named = isinstance(network, str)
            ranks = _of_network(every, network, number) if named else self._owner.keys()
            for end in (record.get("src"), record.get("dst")):
                if isinstance(end, str) and end not in ranks:
                    raise DamagedRecord(f"trial {number} has no rank {end!r}")
        kind = record["type"]
        key = _OWN_PORT.get(kind, "")
        if kind == "flow":
            key = "src" if record["side"] == "source" else "dst"
        elif kind == "histogram":
            key = "dst" if record["kind"] == "one_way" else "src"
        ports = [record[key]] if record.get(key) is not None else []
        if kind == "progress":
            ports = [name for name, *_ in record.get("ports") or ()]
        for port in ports:
            if self._owner.get(port) != node:
                raise DamagedRecord(f"the record names port {port!r}, which node {node} lacks")

    def check_phase(self, phase: PhaseRows) -> None:
        """Raise DamagedRecord if a phase has rows of another run, or duplicate rows."""
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
                    ids = Counter(zip(*map(rows.texts, _SINGLE[table]), strict=True))
                    if len(ids) < len(rows):
                        twice = " ".join(ids.most_common(1)[0][0])
                        raise DamagedRecord(
                            f"duplicate row {twice} in phase {own} of trial {number}, in the table "
                            f"{table}"
                        )

    def _ranks_of(self, number: Any, repeat: Any, phase: int) -> dict[str, set[str]]:
        """Return a trial's ranks by network; raise DamagedRecord if the trial has no such phase."""
        known = isinstance(number, int) and isinstance(repeat, int)
        trial = self.trials.get((number, repeat)) if known else None
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
