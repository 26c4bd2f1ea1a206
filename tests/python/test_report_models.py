# SPDX-License-Identifier: BSD-3-Clause
"""The report's figures of what models predict: of a lab's results, and none without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from configs import needs_engine
from recorded import write_tables
from switchbench.analysis.data import Columns, Measured
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run
from switchbench.predict.models import MODELS
from switchbench.predict.predictor import Predictor, fabric_of, points
from switchbench.records.directory import read_plan, write_plan
from switchbench.render.report import times
from switchbench.render.report.chart import unpacked
from switchbench.render.tables import Heading
from synthetic import frame_side

CONF = """\
switchbench: 1
site: {lab: two-racks, nodes: {"node[1-4]": {module: left}, "node[5-8]": {module: right}}}
transport: dpdk
load: 95%
repeat: 3
window: 1s
tests:
- {pattern: random, ranks: [8], degree: 1, count: 4}
- {pattern: random, ranks: [8], degree: 3, count: 4}
"""
FRAMES_PER_MBPS = 1e6 / 8 / 1538
OFF = 1.3  # what the first flow of each phase is measured too fast by


def measured_of(directory: Path, conf: str = CONF) -> Measured:
    """Results in which each flow got what `proportional` predicts, but the first of each phase."""
    path = directory / "conf.yaml"
    path.write_text(conf)
    run = compile_run(read(Request(path)))
    write_plan(directory, run)
    ports = [port.name for port in run.site.ports]
    predictor = Predictor(fabric_of(run, None), ["proportional"])
    lines = []
    for point in points(run):
        repeats = [trial for trial in run.trials if trial.point == point.point]
        for prediction in predictor.predict(point):
            factor = np.ones(len(prediction.ranks))
            factor[0] = OFF
            for number, trial in enumerate(repeats):
                # The median of three is the middle one.
                mbps = prediction.rates["proportional"] * factor / 1e6 * (0.5, 1.0, 2.0)[number]
                place = {"trial": trial.id, "repeat": trial.repeat, "phase": prediction.phase}
                for (src, dst), rate in zip(prediction.pairs(), mbps, strict=True):
                    frames = round(rate * FRAMES_PER_MBPS)
                    lines.append(frame_side("destination", src, dst, frames, frames, **place))
    write_tables(directory, run, lines)
    columns = Columns(ports)
    columns.read(directory)
    summary: dict[str, Any] = {"plans": [{"traffic": "stream"}]}
    return Measured(directory, summary, ports=ports, records=columns)


@needs_engine
def test_rates_of_each_model(tmp_path: Path) -> None:
    """Eight flows, one a phase, are 30 % off the line, the others on it; one model is shown."""
    measured = measured_of(tmp_path)
    (figure,) = times.predictions(measured)
    assert measured.notes == []
    assert figure.section == Heading.PREDICTED
    shown = [trace for trace in figure.data if trace.get("visible") is True]
    ratio = unpacked(shown[0]["y"]) / unpacked(shown[0]["x"])
    flows = len(ratio)
    assert [trace["name"] for trace in shown] == [f"proportional: {1 - 8 / flows:.1%}"]
    assert np.sum(np.abs(ratio - 1) < 0.02) == flows - 8
    assert np.sum(np.abs(ratio - OFF) < 0.02) == 8
    hidden = [trace["name"].split(":")[0] for trace in figure.data if trace.get("visible")][1:]
    assert {"proportional", *hidden} == set(MODELS)


@needs_engine
def test_no_network_no_figure_and_a_note_why(tmp_path: Path) -> None:
    measured = measured_of(tmp_path)
    run = read_plan(tmp_path)
    write_plan(tmp_path, replace(run, site=replace(run.site, launch="hand", lab=None)))
    assert list(times.predictions(measured)) == []
    (note,) = measured.notes
    assert note.startswith("What models predict is not drawn: a site of real hosts says nothing")


@needs_engine
def test_too_many_flows_are_left_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = measured_of(tmp_path)
    monkeypatch.setattr(times, "_MOST_FLOWS", 3)
    assert list(times.predictions(measured)) == []
    (note,) = measured.notes
    assert "`switchbench predict` says it" in note
    monkeypatch.undo()
    monkeypatch.setattr(times, "_MOST_SLOW_FLOWS", 3)
    (rates,) = times.predictions(measured)
    assert not any("constrained" in trace["name"] for trace in rates.data)


def test_results_without_streams_have_nothing_to_say(tmp_path: Path) -> None:
    measured = Measured(tmp_path, {"plans": [{"traffic": "pingpong"}]})
    assert list(times.predictions(measured)) == []
    assert measured.notes == []
