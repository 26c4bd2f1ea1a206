# SPDX-License-Identifier: BSD-3-Clause
"""Every example in conf/ with a lab runs as it stands, but for its times.

Those on guests run in tests/vm; those of sites with their own hosts are planned in tests/python.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

import labkit
import runs
from switchbench.base.errors import ConfigurationError
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run

CONF = Path(__file__).resolve().parents[2] / "conf"


def _has_a_lab(path: Path) -> bool:
    return "lab" in yaml.safe_load(path.read_text())["site"] and not path.stem.endswith("-guests")


EXAMPLES = sorted(path for path in CONF.glob("*.yaml") if _has_a_lab(path))
# Many trials or ranks, 15 s to two minutes however short their windows; and what another quick test
# runs much the same: test_show.py, test_acceptance.py, test_compare.py, test_detection.py,
# test_steps.py.
LONG = {
    *("paper-sokolowski", "paper-salmon", "paper-switchbench-table1", "paper-zhu"),
    *("sixty-four", "tree", "four-matrices", "two-modules", "frames"),
    *("acceptance", "two-switches", "paper-switchbench-figure1", "parameters", "clauses"),
    *("paper-salmon-table1", "paper-salmon-figures5-7", "imb", "hpcc", "kernels"),
    *("paper-salmon-figures3-4", "paper-salmon-table2", "paper-zhu-section5"),
    *("paper-saini", "paper-saini-figures1-5", "paper-sokolowski-figures11-14"),
    *("paper-switchbench-figures2-3", "paper-switchbench-figures4-5"),
}
SHORT = ("warmup=100ms", "window=150ms", "repeat=1")
DONE = (0, 1, 4)  # times this short may fail a clause, or leave it open

pytestmark = labkit.needs_lab


def has_effect(setting: str, conf: Path) -> bool:
    """What counts its messages has no window, and is refused one."""
    try:
        compile_run(read(Request(conf, assignments=(setting,))))
    except ConfigurationError as error:
        if "has no effect" not in str(error):
            raise
        return False
    return True


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in EXAMPLES
    ],
)
def test_example_runs(conf: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    short = [word for setting in SHORT if has_effect(setting, conf) for word in ("--set", setting)]
    done = subprocess.run(
        runs.command("run", str(conf), "--out", str(out), "--quiet", *short),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in DONE, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["status"] == "complete"
    assert summary["errors"] == []
    for trial in summary["trials"]:
        # By steps some messages are empty: over dpdk a frame each.
        came = ("delivered_bytes", "delivered_messages", "delivered_frames")
        assert any(trial[name] for name in came), trial
        assert trial["flows_observed"] == trial["flows"]
