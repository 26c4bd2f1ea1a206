# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of older and newer versions: what is known of them is shown, and all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reports
from switchbench.analysis.data import Measured
from switchbench.analysis.known import fitted
from switchbench.records.directory import RECORDS, SUMMARY

Json = dict[str, Any]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return reports.make_directory(tmp_path / "run")


def changed(directory: Path, change: Callable[[Json], Any]) -> Measured:
    """The results with another summary."""
    summary = json.loads((directory / SUMMARY).read_text())
    change(summary)
    (directory / SUMMARY).write_text(json.dumps(summary))
    return Measured.load(directory)


def test_unknown_keys_cost_nothing_and_are_said_once(directory: Path) -> None:
    whole = Measured.load(directory)
    assert whole.damage == []

    def newer(summary: Json) -> None:
        summary["schema"] = "switchbench-summary/3"
        summary["mood"] = "good"
        for entry in summary["trials"]:
            entry["colour"] = "blue"
            entry["throughput"]["shade"] = 3

    found = changed(directory, newer)
    assert len(found.summary["trials"]) == len(whole.summary["trials"])
    assert found.summary["plans"] == whole.summary["plans"]
    assert "is of a newer form" in found.damage[0]
    assert found.damage[1:] == [
        "summary.json: keys that this version does not know: `trials.throughput.shade`, "
        "`trials.colour`, `mood`"
    ]


def test_what_older_ones_lack_was_not_observed(directory: Path) -> None:
    def older(summary: Json) -> None:
        for entry in summary["trials"]:
            del entry["latency"], entry["intervals"], entry["cpu_process_s"], entry["parameters"]
        for port in summary["ports"]:
            del port["link_downs"], port["rdma"]
        del summary["messages"], summary["loopback_baselines"], summary["run"]["seed"]

    found = changed(directory, older)
    assert found.damage == []
    assert len(found.summary["trials"]) == reports.PHASES
    trial, port = found.summary["trials"][0], found.summary["ports"][0]
    assert (trial["cpu_process_s"], trial["parameters"]) == (None, {})
    assert set(trial["latency"].values()) == {None}
    assert (port["link_downs"], port["rdma"]) == (None, None)
    assert found.summary["messages"]["curves"] == []


def test_another_form_costs_its_own_place(directory: Path) -> None:
    """A part that may be unknown is unknown; an entry without its trial is none; all else stays."""

    def damage(summary: Json) -> None:
        summary["trials"][0]["start_skew_us"] = "long"
        summary["trials"][1]["start_skew_us"] = []
        summary["trials"][2]["trial"] = "first"
        summary["findings"] = 7
        summary["run"]["launch"] = {"by": "hand"}

    found = changed(directory, damage)
    assert len(found.summary["trials"]) == reports.PHASES - 1
    assert [entry["start_skew_us"] for entry in found.summary["trials"][:2]] == [None, None]
    assert found.summary["trials"][2]["start_skew_us"] is not None
    assert (found.summary["findings"], found.summary["run"]["id"]) == ([], "run-1")
    assert found.damage == [
        "summary.json: `run.launch` has a form that is not known, and is left out",
        "summary.json: 2 of `trials.start_skew_us` have a form that is not known, and are left out",
        "summary.json: `trials` has a form that is not known, and is left out",
        "summary.json: `findings` has a form that is not known, and is left out",
    ]


def test_values_that_the_form_has_not_are_found_in_any_entry(directory: Path) -> None:
    """One that looks like those before it, of the same types: another word, a count below 0."""

    def damage(summary: Json) -> None:
        summary["trials"][1]["state"] = "melted"
        summary["trials"][2]["lost_frames"] = -7

    found = changed(directory, damage)
    assert len(found.summary["trials"]) == reports.PHASES - 1
    assert "melted" not in {entry["state"] for entry in found.summary["trials"]}
    assert found.summary["trials"][1]["lost_frames"] is None
    assert found.damage == [
        "summary.json: `trials` has a form that is not known, and is left out",
        "summary.json: `trials.lost_frames` has a form that is not known, and is left out",
    ]


def test_what_refers_to_other_forms_is_damaged_like_all_else(directory: Path) -> None:
    """A list where the schema has a reference, or null."""

    def damage(summary: Json) -> None:
        summary["trials"][2]["interval"] = {"slowest": [None]}

    found = changed(directory, damage)
    assert len(found.summary["trials"]) == reports.PHASES
    assert any("`trials.interval" in sentence for sentence in found.damage)


def test_parts_that_nobody_wants_are_no_damage(directory: Path) -> None:
    """Compare needs nothing of messages there and back."""
    reports.change_summary(directory, messages={"by_size": 3})
    assert Measured.load(directory).damage == [
        "summary.json: keys that this version does not know: `messages.by_size`"
    ]
    assert Measured.load(directory, ("trials", "plans", "ports")).damage == []


def test_the_schema_s_own_words_fit(directory: Path) -> None:
    summary = json.loads((directory / SUMMARY).read_text())
    found, known = fitted(summary)
    assert {name: found[name] for name in summary} == summary
    assert list(known.sentences()) == []


@pytest.mark.parametrize(
    ("kept", "sentence"),
    [
        (0, "records.ndjson is empty: what is made of single flows and times is not shown"),
        (100, "records.ndjson is cut short: of {all} lines that summary.json was made of the "
              "first 100 are there, and what is made of single flows and times lacks the rest"),
    ],
)  # fmt: skip
def test_records_that_are_cut_short_are_said(directory: Path, kept: int, sentence: str) -> None:
    lines = (directory / RECORDS).read_text().splitlines(keepends=True)
    trials = Measured.load(directory).summary["trials"]
    last = max(entry["records"]["last_line"] for entry in trials)
    (directory / RECORDS).write_text("".join(lines[:kept]))
    found = Measured.load(directory)
    assert found.damage == [sentence.format(all=f"{last:,}")]
    assert len(found.summary["trials"]) == reports.PHASES  # the summary has them all the same
    (directory / RECORDS).write_text("".join(lines[:last]) + '{"type":"bye","no')
    assert Measured.load(directory).damage == []
