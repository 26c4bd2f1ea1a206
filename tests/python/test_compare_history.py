# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare --history`: runs of one network by date, what became worse, and trends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compared import Repeats, make
from switchbench.cli.main import main
from switchbench.render.comparison import sparkline

Capture = pytest.CaptureFixture[str]


def runs(folder: Path, frames: Sequence[int], load: float = 95.0) -> list[str]:
    """Results of as many runs, a day after another, whose flows delivered so many frames."""
    found = []
    for day, each in enumerate(frames, 1):
        repeats = Repeats([(each - 3, each), (each, each + 3), (each + 3, each - 3)], load=load)
        directory = make(folder / f"run{day}", repeats)
        summary = json.loads((directory / "summary.json").read_text())
        summary["run"]["started"] = f"2026-01-{day:02}T00:00:00Z"
        (directory / "summary.json").write_text(json.dumps(summary))
        found.append(str(directory))
    return found


def course(capsys: Capture, words: Sequence[str], status: int) -> dict[str, Any]:
    """The course of the mean rate, as the command writes it."""
    assert main(["compare", "--history", *words, "--json", "-"]) == status
    found = json.loads(capsys.readouterr().out)
    (rate,) = [one for one in found["courses"] if one["measure"] == "mean_rate"]
    return dict(rate)


@pytest.mark.parametrize(
    ("frames", "verdict", "trend", "status"),
    [
        ((7000, 7010, 6990, 7005), "not sure", "", 0),  # too few for a trend
        ((7000, 7010, 6990, 7005, 6995, 7008), None, "none", 0),
        ((7000, 7010, 6990, 6300), "worse", None, 1),
        ((7000, 6990, 6980, 6970, 6960, 6950), None, "worse", 1),
        ((6950, 6960, 6970, 6980, 6990, 7000), None, "better", 0),
        ((7000, 6300), "worse", None, 1),  # too few for a trend
    ],
)
def test_what_a_history_says(
    frames: Sequence[int], verdict: str, trend: str, status: int, tmp_path: Path, capsys: Capture
) -> None:
    found = course(capsys, runs(tmp_path, frames), status)
    if verdict is not None:
        assert found["verdict"] == verdict
    if trend is not None:
        assert found["trend"] == (trend or None)
    values = found["values"]
    assert [value / values[0] for value in values] == pytest.approx(
        [each / frames[0] for each in frames]
    )


def test_a_slope_is_that_of_the_runs(tmp_path: Path, capsys: Capture) -> None:
    """10 frames of the median 6,975 a run: 0.1434 %."""
    found = course(capsys, runs(tmp_path, (7000, 6990, 6980, 6970, 6960, 6950)), 1)
    assert found["slope_percent"] == pytest.approx(-1000 / 6975)
    assert found["p"] == pytest.approx(2 / 720)  # one of 6! orders, or its reverse


def test_runs_are_in_the_order_of_their_dates(tmp_path: Path, capsys: Capture) -> None:
    words = runs(tmp_path, (7000, 7000, 7000, 6300))
    assert course(capsys, words[::-1], 1) == course(capsys, words, 1)


def test_regressions_are_named(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compare", "--history", *runs(tmp_path, (7000, 7010, 6990, 6300))]) == 1
    said = capsys.readouterr().out
    assert "4 runs, 2026-01-01T00:00:00Z to 2026-01-04T00:00:00Z" in said
    assert "Regressions" in said
    assert "mean flow of the last run" in said
    assert "CPU" not in said.partition("Regressions")[2]  # nodes of a lab share one machine
    assert sparkline([7000, 7010, 6990, 6300]) in said


def test_a_history_of_unlike_runs_is_refused(tmp_path: Path, capsys: Capture) -> None:
    words = [*runs(tmp_path / "a", (7000, 7000)), *runs(tmp_path / "b", (7000,), load=50.0)]
    assert main(["compare", "--history", *words]) == 2
    said = capsys.readouterr().err
    assert "these are not runs of one measurement: " in said
    assert "b/run1 has no pairs" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--history takes two results directories or more"),
        (["--by", "load"], "--history goes without --by"),
        (["--html", "x.html"], "--history goes without"),
    ],
)
def test_what_a_history_cannot_do(
    options: list[str], says: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["compare", "--history", *runs(tmp_path, (7000,)), *options]) == 2
    assert says in capsys.readouterr().err


def test_noise_is_no_trend(tmp_path: Path, capsys: Capture) -> None:
    """Of many measures that vary by chance some are in order: they are corrected for."""
    random = np.random.default_rng(1)
    for seed in range(5):
        frames = [int(each) for each in random.normal(7000, 5, 6)]
        main(["compare", "--history", *runs(tmp_path / str(seed), frames), "--json", "-"])
        courses = json.loads(capsys.readouterr().out)["courses"]
        assert {one["trend"] for one in courses} <= {"none", None}


def test_one_directory_is_one_run(tmp_path: Path, capsys: Capture) -> None:
    words = runs(tmp_path, (7000, 7000))
    assert main(["compare", "--history", *words, words[0]]) == 2
    assert "duplicate directory" in capsys.readouterr().err


def test_a_damaged_run_is_named_so(tmp_path: Path, capsys: Capture) -> None:
    words = runs(tmp_path, (7000, 7000))
    (Path(words[0]) / "configuration.yaml").write_text("- 1\n")
    assert main(["compare", "--history", *words]) == 2
    said = capsys.readouterr().err
    assert "not all could be read" in said
    assert "not runs of one measurement" not in said


def test_bars() -> None:
    assert sparkline([1.0, None, 2.0, 1.5]) == "▁ █▅"
    assert sparkline([3.0, 3.0]) == "▄▄"
    assert sparkline([]) == ""
