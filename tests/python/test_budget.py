# SPDX-License-Identifier: BSD-3-Clause
"""`--budget`: the part of a configuration that fits into a time, and what is omitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from configs import again, needs_engine, read_text
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.plan.budget import Fit, fitted, longest_s
from switchbench.plan.compile import compile_run

pytestmark = needs_engine

SUITE = "switchbench: 1\nsite: {lab: model-good, nodes: 8}\nprofile: standard\nsuite: rfc2544\n"
SWEPT = """\
switchbench: 1
site: {lab: one-switch, nodes: 4}
transport: dpdk
repeat: 8
window: 4s
loads: [10%, 50%, 95%]
frame_sizes: [64, 256, 512, 1518]
tests: [{pattern: pairs}]
"""
UNLIKE = """\
switchbench: 1
site: {lab: one-switch, nodes: 4}
transport: dpdk
frame_size: 1518
tests:
- {pattern: pairs, load: 1%, window: 500ms, repeat: 1}
- {pattern: aapc, loads: [2%, 50%, 95%], window: 10s, repeat: 6}
- {pattern: pairs, load: 1Mbit, window: 1s, repeat: 1}
- {pattern: pairs, traffic: pingpong, message_size: 64, transport: tcp, window: 1s, repeat: 1}
"""


def fit_of(folder: Path, text: str, budget_s: float, locate_s: float | None = None) -> Fit:
    """What fits; it takes no longer, and its configuration compiles to the same."""
    reading = read_text(folder, text)
    whole = replace(compile_run(reading), locate_s=locate_s)
    fit = fitted(reading, whole, budget_s)
    assert longest_s(fit.run) <= budget_s
    assert again(fit.run).trials == fit.run.trials
    assert again(fit.run).searches == fit.run.searches
    for test in {trial.test for trial in (*whole.trials, *whole.searches)}:
        before, after = (
            [t for t in (*run.trials, *run.searches) if t.test == test] for run in (whole, fit.run)
        )
        assert {t.load for t in after} <= {t.load for t in before}
        assert {t.sizes for t in after} <= {t.sizes for t in before}
        for most in ("window_s", "interval_s"):
            assert max(getattr(t, most) for t in after) <= max(getattr(t, most) for t in before)
        assert max(t.repeats.most for t in after) <= max(t.repeats.most for t in before)
        assert after  # each test keeps a trial
    return fit


@pytest.mark.parametrize(
    ("text", "budget_s", "words"),
    [
        (SWEPT, 3600.0, ""),
        (SWEPT, 400.0, "5 repeats, not up to 8"),
        (SWEPT, 150.0, "3 repeats, not up to 8; omitted: frame sizes 256"),
        (
            SWEPT,
            40.0,
            "2 repeats, not up to 8; windows of 2 s, not 4 s; omitted: frame sizes 256, 512; "
            "omitted: loads 50%",
        ),
        (
            SWEPT,
            8.0,
            "1 repeat, not up to 8; windows of 1 s, not 4 s; omitted: frame sizes 64, 256, 512; "
            "omitted: loads 10%, 50%",
        ),
        (
            SUITE,
            7200.0,
            "latency_repeats 5, not 20; burst_repeats 5, not 50; trial_s 30, not 60; "
            "latency_s 30, not 120; recovery_s 30, not 60",
        ),
        (UNLIKE, 450.0, "test 1: 3 repeats, not up to 6"),
        (
            UNLIKE + "expect: [{measure: lost_frames, max: 0, where: {load: 50%}}]\n",
            40.0,
            "test 1: 1 repeat, not up to 6; test 1: windows of 2 s, not 10 s",
        ),
        (SWEPT + "remeasure: 4\n", 800.0, "remeasure 2, not 4; 3 repeats, not up to 8"),
        (SWEPT.replace("window: 4s", "sweep: {window: [1s, 4s]}"), 20.0,
         "1 repeat, not up to 8; windows of 2 s, not 4 s; omitted: frame sizes 256, 512; "
         "omitted: loads 50%"),
    ],
)  # fmt: skip
def test_repeats_go_first_then_times_then_sizes(
    tmp_path: Path, text: str, budget_s: float, words: str
) -> None:
    """What a clause is about is kept; a test takes what is its own."""
    assert fit_of(tmp_path, text, budget_s).words == words


def test_the_shorter_of_budget_and_time_limit_holds(tmp_path: Path) -> None:
    fit = fit_of(tmp_path, SWEPT + "time_limit: 60s\n", 3600.0)
    assert longest_s(fit.run) <= 60.0 == fit.run.time_limit_s


def test_trials_that_locate_are_within_the_budget(tmp_path: Path) -> None:
    fit = fit_of(tmp_path, SWEPT, 150.0, locate_s=100.0)
    assert fit.run.locate_s == 100.0
    assert fit.run.longest_s <= 50.0


def test_a_shorter_budget_never_gives_a_longer_run(tmp_path: Path) -> None:
    fits = [fit_of(tmp_path, SWEPT, budget_s) for budget_s in (1000.0, 400.0, 120.0, 60.0, 10.0)]
    took = [longest_s(fit.run) for fit in fits]
    assert took == sorted(took, reverse=True)
    sizes = dict.fromkeys(trial.sizes for trial in fits[2].run.trials)
    assert list(sizes) == [(1518,), (64,), (512,)]  # the most telling first


def test_a_budget_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"--budget 1s: nothing fits: what can be made shorter takes"
    ):
        fit_of(tmp_path, SWEPT, 1.0)


def test_plan_says_what_is_omitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "conf.yaml").write_text(SWEPT)
    assert main(["plan", str(tmp_path / "conf.yaml"), "--budget", "150s"]) == 0
    said = capsys.readouterr()
    assert "what fits takes" in said.err
    assert "omitted: frame sizes 256" in said.err
    assert "256" not in said.out
