# SPDX-License-Identifier: BSD-3-Clause
"""The same matrix over several transports, side by side: TCP against bypass.

Compared is payload, on the same ports, at equal message size. A dpdk frame is a message of its own
payload; where none of that size was run, the largest frames stand beside the messages, and the
entry says so. Formulas are in doc/reference/measures.md, the form in the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from ..base.model import Trial
from ..base.transports import BASELINES
from ..records.summary_form import Entry, PlanEntry, filled
from . import measures as m

NOT_IN_TURN = "the transports did not take turns repeat by repeat"


@dataclass
class TransportSeries:
    """One transport at one setting: its plans, one for each repeat."""

    transport: str
    options: Entry  # what the sweep chose of the transport's own
    plans: list[PlanEntry] = field(default_factory=list)

    @property
    def by_repeat(self) -> dict[int, PlanEntry]:
        """Its plans by number of repetition."""
        return {plan["repeat"]: plan for plan in self.plans}

    @property
    def message_bytes(self) -> int | None:
        """Payload of one message, or of one frame; None for a mixture, or when nothing came."""
        plan = self.plans[0]
        if plan["size_unit"] == "message":
            return plan["size"] if isinstance(plan["size"], int) else None
        frames = m.total_int(plan["delivered_frames"] for plan in self.plans)
        payload = m.total_int(plan["delivered_bytes"] for plan in self.plans)
        if isinstance(plan["size"], list) or not frames or payload is None:
            return None
        return round(payload / frames)

    @property
    def rates(self) -> dict[int, float | None]:
        """Mean payload rate of a flow by repetition, Mbit/s."""
        return {number: plan["throughput"]["mean"] for number, plan in self.by_repeat.items()}

    @property
    def rate(self) -> float | None:
        """The mean of these."""
        return m.mean(self.rates.values())

    def cpu_per_gb(self, name: Literal["cpu_s", "cpu_process_s"]) -> float | None:
        """CPU seconds of all repetitions by all their payload."""
        seconds = m.total(plan[name] for plan in self.plans)
        delivered = m.total(plan["delivered_bytes"] for plan in self.plans)
        return None if seconds is None or not delivered else seconds / (delivered / m.GIGA)


def compare(
    trials: Mapping[tuple[int, int], Trial], plans: Sequence[PlanEntry], reason: str | None
) -> list[Entry]:
    """Return one entry for each matrix and message size that at least two transports carried.

    `trials`: by number and repetition; `reason`: why transports did not alternate, where the run
    could not let them.
    """
    matrices: dict[str, list[PlanEntry]] = {}
    for plan in plans:
        trial = trials[plan["trial"], plan["repeat"]]
        # Who sends to whom, and how it ends: equal for trials that can be compared.
        parts = [[part.network, [port.name for port in part.ranks]] for part in trial.parts]
        matrix = [trial.pattern, parts, plan["network"], trial.seed, trial.traffic]
        matrices.setdefault(json.dumps(matrix, sort_keys=True), []).append(plan)
    return [
        _entry(row, reason)
        for sharing in matrices.values()
        if len({plan["transport"] for plan in sharing}) > 1
        for row in rows(list(series(sharing)))
    ]


def series(plans: Iterable[PlanEntry]) -> Iterator[TransportSeries]:
    """Yield the plans of one matrix, by transport and setting."""
    found: dict[str, TransportSeries] = {}
    for plan in plans:
        own = {key: value for key, value in plan["parameters"].items() if "." in key}
        setting = json.dumps([plan["transport"], own, plan["size"], plan["load"]], sort_keys=True)
        found.setdefault(setting, TransportSeries(plan["transport"], own)).plans.append(plan)
    yield from found.values()


def rows(every: list[TransportSeries]) -> Iterator[list[TransportSeries]]:
    """Yield what stands side by side: for each message size and load, each transport's settings."""
    messages = [one for one in every if one.plans[0]["size_unit"] == "message"]
    frames = [one for one in every if one.plans[0]["size_unit"] == "frame"]
    for size in sorted({one.message_bytes for one in messages if one.message_bytes}):
        equal = [one for one in messages if one.message_bytes == size]
        row = equal + _frames_for(size, frames)
        if len({one.transport for one in row}) > 1:
            yield from _by_load(row)


def _frames_for(size: int, frames: list[TransportSeries]) -> list[TransportSeries]:
    """Of each transport frames with this payload, else its largest: they cost the least by byte."""
    found = []
    for name in dict.fromkeys(one.transport for one in frames):
        own = [one for one in frames if one.transport == name]
        known = {one.message_bytes for one in own if one.message_bytes}
        chosen = size if size in known else max(known, default=None)
        found += [one for one in own if chosen is not None and one.message_bytes == chosen]
    return found


def _by_load(row: list[TransportSeries]) -> Iterator[list[TransportSeries]]:
    """Yield one row for each load of the baseline.

    A transport without that load has its greatest.
    """
    base = _baseline_name(row)
    loads = list(dict.fromkeys(_load(one) for one in row if one.transport == base))
    for load in loads:
        chosen = []
        for name in dict.fromkeys(one.transport for one in row):
            own = [one for one in row if one.transport == name]
            same = [one for one in own if _load(one) == load]
            most = max(_asked(one) for one in own)
            chosen += same or [one for one in own if _asked(one) == most]
        yield sorted(chosen, key=lambda one: BASELINES.index(one.transport))


def _load(one: TransportSeries) -> str:
    return json.dumps(one.plans[0]["load"], sort_keys=True)


def _asked(one: TransportSeries) -> float:
    """Return the load as a number to order by: percent of line where it is known."""
    plan = one.plans[0]
    share = plan["intended_load"]
    return float(next(iter(plan["load"].values())) if share is None else share)


def _baseline_name(row: Iterable[TransportSeries]) -> str:
    names = {one.transport for one in row}
    return next(name for name in BASELINES if name in names)


def _entry(row: list[TransportSeries], reason: str | None) -> Entry:
    name = _baseline_name(row)
    # Of several settings the best one is what the others have to beat.
    base = max((one for one in row if one.transport == name), key=lambda one: one.rate or 0.0)
    first = base.plans[0]
    of_messages = (one.message_bytes for one in row if one.plans[0]["size_unit"] == "message")
    size = next(size for size in of_messages if size is not None)
    turns = alternated(row)
    return filled(
        "ComparisonEntry",
        first,
        parameters={key: v for key, v in first["parameters"].items() if "." not in key},
        message_bytes=size,
        baseline=name,
        alternated=turns,
        reason=(reason or NOT_IN_TURN) if turns is False else None,
        transports=[_transport(one, base, size) for one in row],
    )


def alternated(row: Iterable[TransportSeries]) -> bool | None:
    """Return whether each repetition of all was over before the next one of any.

    None with only one.
    """
    turns: dict[int, list[int]] = {}
    for one in row:
        for repeat, plan in one.by_repeat.items():
            turns.setdefault(repeat, []).append(plan["trial"])
    if len(turns) < 2:
        return None
    in_order = [turns[repeat] for repeat in sorted(turns)]
    return all(max(turn) < min(following) for turn, following in pairwise(in_order))


def _transport(one: TransportSeries, base: TransportSeries, size: int | None) -> Entry:
    first = one.plans[0]
    cpu, base_cpu = one.cpu_per_gb("cpu_s"), base.cpu_per_gb("cpu_s")
    ratios = [_ratio(rate, base.rates.get(number)) for number, rate in one.rates.items()]
    rates = one.rates.values()
    polling = {plan["polling"] for plan in one.plans}
    return filled(
        "ComparedEntry",
        first,
        options=one.options,
        message_bytes=one.message_bytes,
        equal_size=one.message_bytes == size,
        repeats=len(one.plans),
        trials=[plan["trial"] for plan in one.plans],
        throughput=filled(
            "ComparedThroughput",
            layer="payload",
            unit="Mbit/s",
            mean=one.rate,
            min=m.least(rates),
            max=m.greatest(rates),
        ),
        percent_of_line=m.mean(plan["throughput"]["percent_of_line"] for plan in one.plans),
        cpu_s_per_gb=cpu,
        cpu_process_s_per_gb=one.cpu_per_gb("cpu_process_s"),
        polling=True if True in polling else None if None in polling else False,
        ratio={
            "throughput": _ratio(one.rate, base.rate),
            "throughput_min": m.least(ratios),
            "throughput_max": m.greatest(ratios),
            "cpu_s_per_gb": _ratio(cpu, base_cpu),
        },
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base
