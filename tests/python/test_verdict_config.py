# SPDX-License-Identifier: BSD-3-Clause
"""What profile `acceptance` asks for: what is tested, each clause's wording; and what is less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from configs import needs_engine, read_text
from switchbench.config import read_values
from switchbench.config.clauses import clauses_sha256
from switchbench.plan.compile import compile_run
from switchbench.plan.listing import listing

pytestmark = needs_engine

ABOUT = {
    "switches": [{"vendor": "Example", "model": "X48", "serial": "0012", "firmware": "4.28"}],
    "cables": "8 x DAC 1 m",
}
CLAUSE = {"clause": "No frame is lost", "measure": "lost_frames", "require": "== 0"}


def values(**changes: Any) -> dict[str, Any]:
    """A run for acceptance; a key that is None is left out."""
    whole = {
        "switchbench": 1,
        "site": {"lab": "one-switch"},
        "profile": "acceptance",
        "tests": [{"pattern": "pairs", "frame_sizes": [64, 1518], "window": "2s", "repeat": 1}],
        "about": ABOUT,
        "expect": [CLAUSE],
    } | changes
    return {key: value for key, value in whole.items() if value is not None}


def text(**changes: Any) -> str:
    """The same as a file."""
    return yaml.safe_dump(values(**changes), sort_keys=False, allow_unicode=True)


def test_other_profiles_need_none_of_it(tmp_path: Path) -> None:
    bare = text(profile="quick", about=None, expect=[{"measure": "lost_frames", "require": "== 0"}])
    assert compile_run(read_text(tmp_path, bare)).about == {}


def test_it_is_kept_as_it_stands(tmp_path: Path) -> None:
    """A serial number keeps its zeros through the effective configuration."""
    run = compile_run(read_text(tmp_path, text()))
    assert run.about == ABOUT
    again = compile_run(read_values(run.effective))
    assert again.about == ABOUT
    assert clauses_sha256(again.expectations) == clauses_sha256(run.expectations)


def test_less_than_the_profile_is_said(tmp_path: Path) -> None:
    run = compile_run(read_text(tmp_path, text()))
    assert run.reservations == (
        "test 0 (pairs, dpdk) was less than profile acceptance asks: window 2s (profile: "
        "1min), at least 1 repeats (profile: 5), without frames of 128, 256, 512, 1024, 1280 bytes",
    )
    whole = compile_run(read_text(tmp_path, text(tests=[{"pattern": "aapc"}])))
    assert whole.reservations == ()


def test_the_plan_shows_clauses_and_their_hash(tmp_path: Path) -> None:
    run = compile_run(read_text(tmp_path, text()))
    shown = listing(run)
    assert shown["clauses_sha256"] == clauses_sha256(run.expectations)
    assert shown["clauses"] == [{"over": "run", "where": {}, **CLAUSE, "trials": [0, 1]}]
    assert shown["about"] == ABOUT
