# SPDX-License-Identifier: BSD-3-Clause
"""`--budget`: the part of a configuration that fits into a time, and what is omitted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from configs import PROJECT, needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.config import Request, read
from switchbench.plan.budget import STEPS, fitted
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


def request(folder: Path, text: str) -> Request:
    path = folder / "conf.yaml"
    path.write_text(text)
    return Request(path)


def test_what_fits_is_not_changed(tmp_path: Path) -> None:
    asked = request(tmp_path, SWEPT)
    fit = fitted(asked, 3600.0)
    assert (fit.request, fit.words) == (asked, "")


@pytest.mark.parametrize(
    ("text", "budget_s", "words"),
    [
        (SWEPT, 400.0, "5 repeats, not up to 8"),
        (
            SWEPT,
            150.0,
            "3 repeats, not up to 8; omitted: frame sizes 256",
        ),
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
    ],
)  # fmt: skip
def test_repeats_go_first_then_times_then_sizes(
    tmp_path: Path, text: str, budget_s: float, words: str
) -> None:
    """The words are a run's that takes no longer than the budget; each step before takes longer."""
    fit = fitted(request(tmp_path, text), budget_s)
    assert fit.words == words
    run = compile_run(read(fit.request))
    assert run.longest_s == fit.fits_s <= budget_s == run.time_limit_s
    whole = compile_run(read(request(tmp_path, text)))
    assert whole.longest_s == fit.whole_s > budget_s
    named = {trial.parameters.get("subtest") for trial in (*whole.trials, *whole.searches)}
    assert {trial.parameters.get("subtest") for trial in (*run.trials, *run.searches)} == named


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


@pytest.mark.parametrize("budget_s", [500.0, 300.0, 100.0, 40.0])
def test_no_test_gets_more_than_it_asked_for(tmp_path: Path, budget_s: float) -> None:
    """Loads, windows, repeats and sizes of each test are its own, or fewer of them."""
    asked = request(tmp_path, UNLIKE)
    whole, run = compile_run(read(asked)), compile_run(read(fitted(asked, budget_s).request))
    assert run.longest_s <= budget_s < whole.longest_s
    for test in range(4):
        before, after = ([t for t in of.trials if t.test == test] for of in (whole, run))
        assert after
        assert {t.load for t in after} <= {t.load for t in before}
        assert {t.sizes for t in after} <= {t.sizes for t in before}
        assert max(t.window_s for t in after) <= max(t.window_s for t in before)
        assert max(t.repeats.most for t in after) <= max(t.repeats.most for t in before)


def test_the_shorter_of_budget_and_time_limit_holds(tmp_path: Path) -> None:
    fit = fitted(request(tmp_path, SWEPT + "time_limit: 60s\n"), 3600.0)
    assert fit.fits_s <= 60.0
    assert compile_run(read(fit.request)).time_limit_s == 60.0


def test_what_a_test_does_not_take_keeps_no_other_from_being_shorter(tmp_path: Path) -> None:
    """A ping-pong takes no stream's sizes."""
    conf = Request(PROJECT / "conf/first-hour.yaml")
    whole_s = compile_run(read(conf)).longest_s
    assert fitted(conf, 0.8 * whole_s).fits_s <= 0.8 * whole_s


def test_steps_only_take_away(tmp_path: Path) -> None:
    """A shorter budget never gives a longer run."""
    asked = request(tmp_path, SWEPT)
    took = [fitted(asked, budget_s).fits_s for budget_s in (1000.0, 400.0, 120.0, 60.0, 30.0, 10.0)]
    assert took == sorted(took, reverse=True)
    for one, shorter in pairwise(STEPS):
        limited = [pair for pair in zip(one, shorter, strict=True) if pair[0] is not None]
        assert all(next_one is not None and next_one <= was for was, next_one in limited)


def test_the_most_telling_comes_first(tmp_path: Path) -> None:
    run = compile_run(read(fitted(request(tmp_path, SWEPT), 150.0).request))
    assert list(dict.fromkeys(trial.sizes for trial in run.trials)) == [(1518,), (64,), (512,)]


def test_a_budget_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"--budget 1s: nothing fits: what can be made shorter takes"
    ):
        fitted(request(tmp_path, SWEPT), 1.0)


def test_plan_says_what_is_omitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = request(tmp_path, SWEPT).conf
    assert main(["plan", str(path), "--budget", "150s"]) == 0
    said = capsys.readouterr()
    assert "what fits takes" in said.err
    assert "omitted: frame sizes 256" in said.err
    assert "256" not in said.out
