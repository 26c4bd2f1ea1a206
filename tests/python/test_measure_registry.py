# SPDX-License-Identifier: BSD-3-Clause
"""The registry of measures: each stands there once, and all that names one takes it there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pages
from switchbench.analysis.judge import _RELATIVE
from switchbench.analysis.measures import DERIVED, REDUCERS
from switchbench.analysis.phases import reduced
from switchbench.base.measures import LATENCY_MEASURES, MEASURES, REDUCED
from switchbench.compare import cases as compared
from switchbench.importers.reading import COMMON
from switchbench.records.schema import columns_of
from switchbench.records.summary_form import summary_schema
from synthetic import flows_of, frame_side, frames_count

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "scripts" / "python" / "switchbench"
FRAMES = MEASURES.keys() - LATENCY_MEASURES.keys()
PAGE = (ROOT / "doc" / "reference" / "measures.md").read_text("utf-8")


def test_every_measure_is_whole() -> None:
    for key, measure in MEASURES.items():
        assert key == measure.key
        assert all((measure.title, measure.unit, measure.definition)), key
        assert measure.over_phases in ("min", "max", "sum"), key
        assert measure.better in (-1, +1), key
        assert callable(measure.reduce) or measure.reduce in ("", *REDUCERS), key
        assert measure.flow in ("", *DERIVED, *columns_of("flows")), key
        assert measure.port in ("", "host_drops", "discards", *columns_of("ports")), key
        assert measure.flow or "flow" not in measure.overs, key
        assert measure.entry or measure.key in _RELATIVE, key
    assert not COMMON.keys() & MEASURES.keys()
    entries = [measure.entry or key for key, measure in MEASURES.items()]
    assert len(set(entries)) == len(entries)  # no two have one place in a summary


def test_the_schema_has_the_registry_s_words() -> None:
    parts = summary_schema()["$defs"]
    names = {"throughput": "Throughput", "intervals": "IntervalsEntry", "reduced": "Reduced"}
    entries = [m for m in MEASURES.values() if m.entry and not m.entry.startswith("lat")]
    assert len(entries) > 20
    for measure in entries:
        outer, _, key = measure.entry.rpartition(".")
        words = parts[names.get(outer, "PhaseEntry")]["properties"][key]["description"]
        assert words == measure.definition, measure.key


def test_comparisons_have_the_registry_s_directions() -> None:
    own = {"repetition", "whole"}  # of steps: no clause can name them
    for measure in compared.MEASURES:
        if measure.name not in own:
            units = {(m.unit, m.better) for m in MEASURES.values()}
            assert (measure.unit, measure.better) in units, measure.name


def test_the_page_is_made_of_the_registry() -> None:
    rows = set(re.findall(r"^\| `([\w.]+)` \| [^\n]* \|$", PAGE, re.MULTILINE))
    formulas = {m.entry.removeprefix("intervals.") for m in MEASURES.values() if m.formula}
    assert formulas - rows == set()
    stale = PAGE.replace("sum over flows of offered - delivered", "offered - delivered")
    assert pages.measures(stale) == PAGE


@pytest.mark.parametrize(
    ("came", "index"),
    [((7, 7, 7, 7), 1.0), ((8, 0, 0, 0), 0.25), ((3, 1), 0.8), ((0, 0), None), ((5, None), None)],
)
def test_fairness_is_jains_index_of_the_flows(
    came: tuple[int | None, ...], index: float | None
) -> None:
    records = []
    for number, frames in enumerate(came):
        ends = (f"node{number}:e0", "node9:e0")
        records.append(frame_side("source", *ends, 9, 9))
        counts = frames_count("window_", frames)
        records.append(frame_side("destination", *ends, 9, 0) | counts)
    assert reduced(flows_of(*records))["fairness"] == (index and pytest.approx(index))


def test_equal_flows_are_exactly_fair() -> None:
    (fairness,) = REDUCED
    assert callable(fairness.reduce)
    rates = (0.1, 9.09, 92.637, 941.482)
    assert {fairness.reduce([rate] * n) for rate in rates for n in range(1, 40)} == {1.0}
