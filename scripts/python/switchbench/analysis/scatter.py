# SPDX-License-Identifier: BSD-3-Clause
"""Single round-trip times of ping-pong messages, and computation beside messages.

A mean over such times misleads (Salmon, Stein and Sterling 1998), so each is kept, as a row of the
table `samples`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.model import Part, Trial
from ..records.document.series import Computing, PieceTimes, ScatterTimes
from ..records.record_forms import Record
from ..records.store import TableFile
from .statistics import interval
from .sweep import about

_CONFIDENCE = 0.95  # that nodes compute slower, or faster, beside messages


def summarize(directory: Path, trials: Sequence[Trial]) -> list[ScatterTimes]:
    """Return one entry for each scatter in each network."""
    scattered = [trial for trial in trials if "scatter" in trial.parameters]
    if not scattered:
        return []
    import pyarrow.compute as pc

    table = TableFile(directory, "samples").whole()
    found = []
    for trial in scattered:
        if trial.traffic != "pingpong":
            continue
        for part in trial.parts:
            chosen = pc.and_(
                pc.and_(
                    pc.equal(table["trial"], trial.id), pc.equal(table["repeat"], trial.repeat)
                ),
                pc.equal(table["network"], part.network),
            )
            rows = table.filter(chosen)
            if rows.num_rows:
                found.append(_entry(trial, part, rows))
    return found


def _entry(trial: Trial, part: Part, rows: Any) -> ScatterTimes:
    size, time_us = rows["size"].to_numpy(), rows["time_ns"].to_numpy() / 2000.0
    p50, p99, most = (float(value) for value in np.quantile(time_us, (0.5, 0.99, 1.0)))
    return {
        **about(trial, part),
        "trial": trial.id,
        "repeat": trial.repeat,
        "messages": len(size),
        "min_size": int(size.min()),
        "max_size": int(size.max()),
        "p50_us": p50,
        "p99_us": p99,
        "max_us": most,
    }


class ComputeTable:
    """How much slower nodes computed beside their messages than alone."""

    def __init__(self) -> None:
        """No record yet."""
        self._records: dict[tuple[int, int], list[Record]] = {}

    def feed(self, record: Record) -> None:
        """Take one `compute` record."""
        key = (record["trial"], record.get("repeat") or 0)
        self._records.setdefault(key, []).append(record)

    def forget(self, trial: tuple[int, int]) -> None:
        """Drop the records of a trial (id, repeat)."""
        self._records.pop(trial, None)

    def summary(self, trials: Sequence[Trial]) -> list[Computing]:
        """Return one entry for each trial that computed."""
        return [
            _slowdown(trial, self._records[trial.id, trial.repeat])
            for trial in trials
            if (trial.id, trial.repeat) in self._records
        ]


def _slowdown(trial: Trial, records: Sequence[Record]) -> Computing:
    """Rates are while computing: operations by the time that pieces took."""
    alone, beside = (_rate(records, part) for part in ("compute_only", "concurrent"))
    nodes = {
        record["node"]: slower(_rate([record], "compute_only"), _rate([record], "concurrent"))
        for record in records
    }
    known = {node: share for node, share in nodes.items() if share is not None}
    worst = max(known, key=lambda node: known[node], default=None)
    spread = interval(list(known.values()), _CONFIDENCE)
    return {
        "trial": trial.id,
        "repeat": trial.repeat,
        "transport": trial.transport,
        "parameters": dict(trial.parameters),
        "nodes": len(nodes),
        "share": records[0]["share"],
        "compute_only_mflops": alone,
        "concurrent_mflops": beside,
        "slowdown_percent": slower(alone, beside),
        "slowdown_ci_half_width_percent": None if spread is None else spread.half_width,
        "slowest_node": worst,
        "max_slowdown_percent": None if worst is None else known[worst],
        "piece_us": {
            "compute_only": _pieces(records, "compute_only"),
            "concurrent": _pieces(records, "concurrent"),
        },
    }


def _pieces(records: Sequence[Record], part: str) -> PieceTimes:
    p50, p99, most = (
        max(record[part][f"piece_{name}_ns"] for record in records) / 1000
        for name in ("p50", "p99", "max")
    )
    return {"p50": p50, "p99": p99, "max": most}


def _rate(records: Sequence[Record], part: str) -> float | None:
    """Mflop/s of one thread, the mean over all."""
    busy_ns = sum(record[part]["busy_ns"] for record in records)
    operations = sum(record[part]["operations"] for record in records)
    return operations / busy_ns * 1000 if busy_ns else None


def slower(alone: float | None, beside: float | None) -> float | None:
    """By how many percent a rate fell."""
    return None if not alone or beside is None else 100 * (1 - beside / alone)
