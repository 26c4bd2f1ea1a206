# SPDX-License-Identifier: BSD-3-Clause
"""Where frames went missing, how they were out of order, and what the switch says of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from configs import LAB, compile_text, needs_engine
from switchbench.analysis.tester import in_network
from switchbench.base.errors import ConfigurationError, RunError
from switchbench.base.model import SwitchCountersCommand
from switchbench.records.directory import (
    AFTER,
    BEFORE,
    compare_counters,
    parse_counters,
    read_counters,
)


@pytest.mark.parametrize(
    ("network", "lost", "said"), [(4, None, 0), (5, None, 5), (4, 4, 4), (None, 4, None)]
)
def test_a_frame_per_rank_may_be_the_counters_own(
    network: int | None, lost: int | None, said: int | None
) -> None:
    location = {"network": network, "lost_frames": lost}
    assert in_network({"loss_location": location, "ranks": 4}) == said


# --- the switch's counters -------------------------------------------------------------------


def test_outputs_of_several_tools() -> None:
    text = """
NIC statistics:
     rx_packets: 1200
     tx_dropped: 0
IF-MIB::ifOutDiscards.1 = Counter32: 17
Eth1/1 input errors   3
uptime 3 days
temperature 41.5
-12
"""
    assert parse_counters(text) == {
        "rx_packets": 1200,
        "tx_dropped": 0,
        "IF-MIB::ifOutDiscards.1 = Counter32": 17,
        "Eth1/1 input errors": 3,
    }


def counters(code: str, timeout_s: float = 10.0) -> SwitchCountersCommand:
    return SwitchCountersCommand((sys.executable, "-c", code), timeout_s)


def test_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("5")
    asked = counters(f"n = open({str(path)!r}).read(); print('drops:', n); print('same: 1')")
    read_counters(asked, tmp_path / BEFORE)
    early = compare_counters(asked, tmp_path)  # of a run that ended early
    assert early is not None
    assert (early["after"], early["differences"]) == (None, None)
    path.write_text("47")
    read_counters(asked, tmp_path / AFTER)
    assert (tmp_path / BEFORE).read_text() == "drops: 5\nsame: 1\n"
    found = compare_counters(asked, tmp_path)
    assert found is not None
    assert found["differences"] == {"drops": 42}
    assert found["compared"] == 2
    assert compare_counters(None, tmp_path) is None
    (tmp_path / AFTER).unlink()
    (tmp_path / AFTER).symlink_to("/proc/self/mem")  # a file that can't be read
    assert compare_counters(asked, tmp_path) == early


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (SwitchCountersCommand(("/no/such/command",), 1.0), "can't be run: No such file"),
        (counters("import sys; print('no login', file=sys.stderr); sys.exit(3)"), "3: no login"),
        (counters("import time; time.sleep(9)", 0.2), r"took more than 0\.2 s"),
    ],
)
def test_a_command_that_fails(asked: SwitchCountersCommand, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=sentence):
        read_counters(asked, tmp_path / BEFORE)


@needs_engine
def test_configured(tmp_path: Path) -> None:
    key = "switch_counters: {command: [./c, -v], timeout: 3s}\n"
    run = compile_text(tmp_path, f"{LAB}{key}pattern: chain\n")
    assert run.switch_counters == SwitchCountersCommand(("./c", "-v"), 3.0)
    assert run.effective["switch_counters"] == {"command": ["./c", "-v"], "timeout": "3s"}
    assert compile_text(tmp_path, f"{LAB}pattern: chain\n").switch_counters is None
    with pytest.raises(ConfigurationError, match="is an empty list"):
        compile_text(tmp_path, f"{LAB}switch_counters: {{command: []}}\npattern: chain\n")
