# SPDX-License-Identifier: BSD-3-Clause
"""Contents of a results directory for a report: its summary, and columns of its tables.

Only the directory is read, not the site or lab. `damage` has a sentence for each part that cannot
be read; the other parts are returned. A run of 1,024 ranks has a million flows, so figures are made
from columns by plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..base import format
from ..base.errors import ConfigurationError, SwitchbenchError
from ..base.model import ONE_WAY
from ..records.directory import SUMMARY, as_read, load_summary, read_plan, refuse_endless
from ..records.rows import MIDDLES, NOTHING, Floats, Histogram, PhaseFlows, Rows
from ..records.schema import MOMENT
from ..records.store import TableFile, has_tables
from ..records.summary_form import (
    PhaseEntry,
    PlanEntry,
    SummaryDocument,
    by,
    checked,
    filled,
    plan_key,
)
from . import measures as m
from .location.wired import group_of_port
from .phases import Intervals
from .summary import NOT_ENDED, is_begun_only, remade

Ints = NDArray[np.int32]

# Columns of the tables that figures need.
_FLOW = (*MOMENT, "network", "src", "dst")
_WANTED: dict[str, tuple[str, ...]] = {
    "flows": (*_FLOW, "destination_reported", "sent_frames", "received_frames", "corrupted",
              "received_window_ns", "received_window_payload_bytes"),
    "intervals": (*_FLOW, "from_ms", "to_ms", "payload_bytes"),
    "histograms": (*_FLOW, "kind", "bound_ns", "bucket", "bucket_count"),
}  # fmt: skip


@dataclass(frozen=True)
class FlowColumns:
    """Results of a trial's flows in one network: arrays with an element for each flow and phase."""

    phase: Ints
    src: Ints  # index into the run's list of ports
    dst: Ints
    mbps: Floats  # payload verified in the window; NaN: not observed
    # frames that the source sent; NaN: not observed, or the transport has no frames
    offered: Floats
    lost: Floats  # offered frames that did not arrive; NaN as for `offered`


# --- a run's results -----------------------------------------------------------------------------


@dataclass
class Measured:
    """Summary and table columns of one run, as figures and reports use them."""

    directory: Path
    summary: SummaryDocument
    # a sentence for each part that could not be read
    damage: list[str] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)  # module by port, if the wiring is known
    # ordered by module, else as in the site; src and dst of flows are indices into this list
    ports: list[str] = field(default_factory=list)
    _tables: dict[str, pa.Table] = field(default_factory=dict)
    _flows: dict[tuple[int, int, str], FlowColumns | None] = field(default_factory=dict)

    @classmethod
    def load(cls, directory: Path) -> Measured:
        """Read a results directory; ConfigurationError if no part of it can be shown."""
        damage: list[str] = []
        summary = whole_summary(directory, damage)
        wired = {port["port"]: port["switch"] for port in summary["ports"] if port["switch"]}
        groups: Mapping[str, Sequence[str]] = {}
        with suppress(ConfigurationError):  # results of other programs have no plan
            groups = {} if wired else read_plan(directory).site.groups
        modules = wired or group_of_port(groups)
        measured = cls(directory, summary, damage, modules, _in_order(summary, modules))
        measured.read()
        return measured

    def read(self) -> None:
        """Read all tables; append a sentence to `damage` for each table that cannot be read."""
        for name, columns in _WANTED.items():
            try:
                self._tables[name] = TableFile(self.directory, name, columns).whole()
            except ConfigurationError as error:
                self.damage.append(str(error).removeprefix(f"{self.directory}/"))

    def flows(self, plan: PlanEntry) -> FlowColumns | None:
        """Return a trial's flows in one network that destinations reported; None without flows."""
        key = plan_key(plan)
        if key not in self._flows:
            phase, src, dst, rows = self._of_plan("flows", plan)
            flows = PhaseFlows.of(rows)
            lost = m.lost_frames(flows)
            stopped = [one["phase"] for one in self.phases_of(plan) if one["state"] in m.UNSETTLED]
            lost[np.isin(phase, stopped)] = np.nan
            mine = flows.reported("destination") & (src >= 0) & (dst >= 0)
            mbps = m.flow_column(flows, "throughput")
            every: list[Any] = [phase, src, dst, mbps, flows["sent_frames"], lost]
            found = FlowColumns(*(column[mine] for column in every)) if mine.any() else None
            self._flows[key] = found
        return self._flows[key]

    def intervals(self, plan: PlanEntry, number: int) -> Intervals:
        """Return the flows' interval results (rates over time) of one phase in one network."""
        phase, src, dst, rows = self._of_plan("intervals", plan)
        mine = rows.select((phase == number) & (src >= 0) & (dst >= 0))
        return Intervals.of(mine, frozenset(), plan["traffic"] == "stream")

    def times(self, plan: PlanEntry, kind: str) -> Histogram | None:
        """Return a trial's histogram of one kind of times in one network; None without times.

        `kind`: one of model.LATENCY_KINDS. One-way delays between different clocks are left out:
        only the summary corrects them.
        """
        ns, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        rows = self._of_plan("histograms", plan)[-1]
        mine = rows.objects("kind") == kind
        if kind == ONE_WAY:
            mine &= rows.floats("bound_ns") == 0
        for row in rows.select(mine).records():
            ns.append(MIDDLES[row["bucket"]])
            counts.append(row["bucket_count"])
        distinct, place = np.unique(np.concatenate(ns), return_inverse=True)
        sums = np.bincount(place, np.concatenate(counts), len(distinct)).astype(np.int64)
        total = int(sums.sum())
        times = dict(zip(distinct.tolist(), sums.tolist(), strict=True))
        return Histogram(times, count=total) if total else None

    def _of_plan(self, table: str, plan: PlanEntry) -> tuple[Ints, Ints, Ints, Rows]:
        """Return a trial's rows of a table in one network, with numbers of phases and ports.

        The result has four parts: phases, source and destination indices, rows.
        """
        rows = NOTHING
        if table in self._tables:
            names = ("trial", "repeat", "network")
            mine = [pc.equal(self._tables[table][name], plan[name]) for name in names]
            rows = Rows.from_arrow(self._tables[table].filter(reduce(pc.and_, mine)))
            rows = rows.select(np.argsort(rows.floats("phase"), kind="stable"))
        src, dst = (
            np.array([self.places.get(port, -1) for port in rows.texts(end)], dtype=np.int32)
            for end in ("src", "dst")
        )
        return rows.floats("phase").astype(np.int32), src, dst, rows

    def phases_of(self, plan: PlanEntry) -> list[PhaseEntry]:
        """Return the summary's entries of the phases of a trial in one network, in order."""
        return self._phases.get(plan_key(plan), [])

    @cached_property
    def names(self) -> list[str]:
        """Return each port's shown name: its host, if every host has one port of the same name."""
        same = len({port.partition(":")[2] for port in self.ports}) == 1
        return [port.partition(":")[0] if same else port for port in self.ports]

    @cached_property
    def places(self) -> dict[str, int]:
        """Return each port's index in the list `ports`, by the port's name."""
        return {name: place for place, name in enumerate(self.ports)}

    @cached_property
    def _phases(self) -> dict[tuple[int, int, str], list[PhaseEntry]]:
        return by(self.summary["trials"], plan_key)


def whole_summary(directory: Path, damage: list[str]) -> SummaryDocument:
    """Return a directory's summary; rebuild a damaged or unfinished one from the tables.

    The reasons for a rebuilt summary are appended to `damage`.
    """
    refuse_endless(directory)
    summary: SummaryDocument = {}
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
    # The errors in `damage` make the run partial.
    machine = filled("MachineEntry", host="unknown", system="unknown", cpus=0)
    about = filled(
        "BegunRun", id=directory.name, started="unknown", command=[], launch="hand",
        excluded_hosts=[], versions={}, machine=machine,
    )  # fmt: skip
    known = {"run": summary.get("run", about), "errors": damage, "exit_status": 0}
    try:
        again = remade(read_plan(directory), directory, known, ended=False)
    except SwitchbenchError as error:
        raise ConfigurationError(
            f"{damage[-1]}; the summary can't be rebuilt from the tables: {error}"
        ) from error
    damage.append("this summary was rebuilt from the tables that can be read")
    shown: SummaryDocument = as_read(again)  # text that is safe for a terminal
    return shown


# --- ports and modules -------------------------------------------------------------------------


def _in_order(summary: SummaryDocument, modules: Mapping[str, str]) -> list[str]:
    """Return the ports sorted by module, then in natural order (node2 before node10)."""
    names = list(dict.fromkeys(port["port"] for port in summary["ports"]))
    if not modules:
        return names
    first = {module: place for place, module in reversed(list(enumerate(modules.values())))}
    last = len(modules)
    return sorted(
        names, key=lambda name: (first.get(modules.get(name, ""), last), format.natural(name))
    )
