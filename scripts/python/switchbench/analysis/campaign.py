# SPDX-License-Identifier: BSD-3-Clause
"""Joining of a campaign's rounds into one run, which is judged, shown and verified like any run.

The rounds of a campaign test the ports of one device with different cabling. A host port that was
cabled to several ports of the device becomes one port for each, named by both (`p11@node3:e0`). Its
host and its cable remain single elements, so that location can tell a bad port of the device from a
bad host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.model import Part, Port, Run
from ..base.programs import Later
from ..records.directory import SUMMARY, load_summary, read_plan, replace_json, write_plan
from ..records.schema import columns_of
from ..records.store import join
from ..records.summary_form import SummaryDocument
from .summary import remade

pa, pc = map(Later, ("pyarrow", "pyarrow.compute"))

Names = Mapping[str, str]
"""Names of ports in the campaign, by their names in one round."""
STRIDE = 1000
"""Offset of trial numbers per round: the trials of round 3 are 3001, 3002 and so on."""
_ONCE = ("hello", "ready")  # records that are kept from the first round only


def summarize(
    directory: Path, whole: Run, rounds: Mapping[int, Path], left: Sequence[str]
) -> SummaryDocument:
    """Write the tables, plan and summary of all rounds measured so far to a campaign's directory.

    Parameters
    ----------
    directory
        Directory of the campaign, which takes tables, plan and summary.
    whole
        Configuration of the campaign as a run.
    rounds
        Results directories by round, from 1 on.
    left
        Sentences on rounds that are not measured yet.
    """
    runs = {number: read_plan(path) for number, path in rounds.items()}
    run, names = merged(whole, runs)
    join(directory, [(path, _change(n, names[n])) for n, path in rounds.items()])
    write_plan(directory, run)
    summaries = {number: load_summary(path) for number, path in rounds.items()}
    about = summaries[1]["run"] | {
        "id": f"{summaries[1]['run']['id']}-campaign",
        "elapsed_s": sum(one["run"]["elapsed_s"] or 0.0 for one in summaries.values()),
        "command": ["switchbench", "campaign", str(directory)],
    }
    faults = [f"round {n}: {fault}" for n, one in summaries.items() for fault in one["errors"]]
    known = {"run": about, "errors": [*faults, *left], "exit_status": 0}
    summary = remade(run, directory, known)
    replace_json(directory / SUMMARY, summary)
    return summary


def merged(whole: Run, runs: Mapping[int, Run]) -> tuple[Run, dict[int, Names]]:
    """Join the runs of all rounds; return the joined run, and each round's new port names."""
    ports: dict[str, Port] = {}
    names: dict[int, Names] = {}
    for number, run in runs.items():
        names[number] = {port.name: f"{port.switch_port}@{port.name}" for port in run.site.ports}
        for port in run.site.ports:
            name = names[number][port.name]
            before = ports[name].rounds if name in ports else ()
            ports[name] = replace(port, name=name, tester=port.name, rounds=(*before, number))
    trials = [
        replace(
            trial,
            id=number * STRIDE + trial.id,
            point=number * STRIDE + trial.point,
            parameters={**trial.parameters, "round": number},
            parts=tuple(
                Part(part.network, tuple(ports[names[number][rank.name]] for rank in part.ranks))
                for part in trial.parts
            ),
        )
        for number, run in runs.items()
        for trial in run.trials
    ]
    first = next(iter(runs.values()))
    site = first.site
    assert site.device is not None
    order = {name: place for place, name in enumerate(site.device.ports)}
    every = sorted(ports.values(), key=lambda port: (order[str(port.switch_port)], port.tester))
    (network,) = site.networks
    site = replace(
        site,
        processes=tuple(
            replace(process, ports=tuple(port for port in every if port.tester in testers))
            for process in site.processes
            for testers in [{port.name for port in process.ports}]
        ),
        networks={network: tuple(every)},
        groups={
            name: tuple(port.name for port in every if port.switch_port in members)
            for name, members in site.device.groups.items()
        },
    )
    return replace(
        first,
        site=site,
        trials=tuple(trials),
        effective=whole.effective,
        remeasured=sum(run.remeasured for run in runs.values()),
        superseded=(),
    ), names


def _change(number: int, names: Names) -> Any:
    """Return the function that converts a round's table to the campaign's names and numbers."""
    quoted = re.compile("|".join(re.escape(f'"{name}"') for name in names))

    def change(table: str, data: Any) -> Any:
        for key in ("src", "dst", "port"):
            if key in data.schema.names and columns_of(table)[key].kind == "text":
                data = _put(data, key, [names.get(one, one) for one in data[key].to_pylist()])
        data = _put(data, "trial", pc.add(data["trial"], number * STRIDE).to_pylist())
        if table != "events":
            return data
        details = [
            text and quoted.sub(lambda found: f'"{names[found[0][1:-1]]}"', text)
            for text in data["details"].to_pylist()
        ]
        data = _put(data, "details", details)
        is_once = pc.is_in(data["type"], pa.array(_ONCE))
        return data if number == 1 else data.filter(pc.invert(is_once))

    return change


def _put(data: Any, key: str, values: Sequence[Any]) -> Any:
    place = data.schema.get_field_index(key)
    field = data.schema.field(place)
    return data.set_column(place, field, pa.array(values, field.type))
