# SPDX-License-Identifier: BSD-3-Clause
"""Every example in conf/ with a lab runs as it stands, but for its times: windows are short, counts
small, and of listed sizes and ranks the first and the last is measured.

All are planned whole, those of sites with their own hosts, too, in
tests/python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import labkit
import runs
from switchbench.base.errors import ConfigurationError
from switchbench.config import read
from switchbench.plan.compile import compile_run

CONF = Path(__file__).resolve().parents[2] / "conf"


def _has_a_lab(path: Path) -> bool:
    return "lab" in yaml.safe_load(path.read_text())["site"]


EXAMPLES = sorted(path for path in CONF.glob("*.yaml") if _has_a_lab(path))
LISTED = ("message_sizes", "frame_sizes", "loads", "ranks")
COUNT = 2
SHORT = {"warmup": "100ms", "window": "150ms", "repeat": 1}
# What a file leaves to the program.
SHORT_BY_NAME: dict[str, dict[str, Any]] = {"rfc2544": {"frame_sizes": [64, 1518]}}
DONE = (0, 1, 4)  # times this short may fail a clause, or leave it open

pytestmark = labkit.needs_lab


def shortened(value: Any) -> Any:
    """A configuration, or a part of it, with small counts, short lists and no times of its own."""
    if isinstance(value, list):
        return [shortened(part) for part in value]
    if not isinstance(value, dict):
        return value
    short = {key: shortened(part) for key, part in value.items() if key not in SHORT}
    for key in LISTED:
        if isinstance(short.get(key), list):
            short[key] = [short[key][0], *short[key][1:][-1:]]
    if isinstance(short.get("count"), int):
        short["count"] = COUNT
    return short


def takes(conf: Path, configuration: runs.Record) -> bool:
    """Return what counts its messages has no window, and is refused one."""
    conf.write_text(yaml.safe_dump(configuration, sort_keys=False))
    try:
        compile_run(read(conf))
    except ConfigurationError as error:
        if "has no effect" not in str(error):
            raise
        return False
    return True


def write_short(example: Path, conf: Path) -> None:
    """The example with short times, in a lab of this run of the tests."""
    configuration = shortened(yaml.safe_load(example.read_text()))
    configuration["site"]["lab"] = labkit.own(configuration["site"]["lab"])
    configuration |= SHORT_BY_NAME.get(example.stem, {})
    for key, value in SHORT.items():
        if takes(conf, configuration | {key: value}):
            configuration[key] = value
    assert takes(conf, configuration)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    conf, out = tmp_path / "conf.yaml", tmp_path / "results"
    write_short(example, conf)
    done = runs.execute("run", str(conf), "--out", str(out), "--quiet", timeout_s=600)
    assert done.returncode in DONE, done.stderr
    summary = runs.Result(done.returncode, "", "", out).summary
    assert (summary["status"], summary["errors"]) == ("complete", [])
    for trial in summary["trials"]:
        # By steps some messages are empty: over dpdk a frame each.
        came = ("delivered_bytes", "delivered_messages", "delivered_frames")
        assert any(trial[name] for name in came), trial
        assert trial["flows_observed"] == trial["flows"]
