# SPDX-License-Identifier: BSD-3-Clause
"""What stands first on a screen: at most eight lines, true of what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import NAMES, kept_summary, unpack
from switchbench.render.first_screen import AtLoad, lines, ports_at_load, transport_name


def said(name: str, tmp_path: Path) -> dict[str, str]:
    return {line.label: line.text for line in lines(kept_summary(unpack(name, tmp_path)))}


@pytest.mark.parametrize("name", NAMES)
def test_at_most_eight_lines_of_one_line_each(name: str, tmp_path: Path) -> None:
    found = lines(kept_summary(unpack(name, tmp_path)))
    assert 4 <= len(found) <= 8
    assert found[0].label == "Result"
    assert found[-1].label == "Findings"
    assert all("\n" not in line.text and len(line.text) <= 200 for line in found)


def test_a_contract_that_is_met(tmp_path: Path) -> None:
    found = said("clauses", tmp_path)
    assert found["Result"] == "PASS: 2 of 2 clauses met; 2 trials on 8 ports, complete in 9.9 s"
    assert found["Lost"] == "0 of 444,465 frames in the network, 0 in hosts"
    assert found["Tester"] == "was not the limit in any phase"
    assert found["Findings"] == "none"


def test_a_network_that_loses_half(tmp_path: Path) -> None:
    found = said("tree", tmp_path)
    assert found["Lost"] == "111,468 of 207,875 frames in the network (53.6 %), 0 in hosts"
    assert found["Worst port"].startswith("node2:e0 (leaf1 p2) sent 18.5 % of line over dpdk (")
    assert found["Findings"] == "200 findings: below"


def test_a_clause_that_fails_and_a_tester_that_was_the_limit(tmp_path: Path) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    (limited,) = [entry for entry in summary["trials"] if entry["tester_limited"]]
    limited["tester_limited"][0]["shortfall_percent"] = 7.94
    summary["expectations"] = [{"verdict": "accepted"}, {"verdict": "refused"}]
    summary["verdict"] = {"verdict": "refused"}
    summary["trials"][0]["lost_frames"] = 12
    summary["trials"][0]["host_dropped_frames"] = 5
    found = {line.label: (line.text, line.style) for line in lines(summary)}
    assert found["Result"][0].startswith("FAIL: 1 of 2 clauses met; 12 trials on 8 ports")
    assert found["Result"][1] == "bold red"
    tester = "limited 1 of 44 phases (T): offered up to 7.9 % less than intended"
    assert found["Tester"] == (tester, "yellow")
    lost = f"12 of 1,006,259 frames in the network ({12 / 1.006259:.3g} ppm), 5 in hosts"
    assert found["Lost"] == (lost, "yellow")


def test_a_driver_of_the_kernel_is_named(tmp_path: Path) -> None:
    summary = kept_summary(unpack("matrices", tmp_path))
    assert transport_name(summary, "dpdk") == "dpdk (af_packet)"
    assert transport_name(summary, "tcp") == "tcp"


def test_ports_at_the_load_asked(tmp_path: Path) -> None:
    """In every phase, and in the median one; a port that is behind over one transport is behind."""
    summary = kept_summary(unpack("matrices", tmp_path))
    assert ports_at_load(summary) == AtLoad(8, 8, 8)
    summary["ports"][0]["as_destination"]["min_percent_of_line"] = 92.0  # of 95 asked
    assert ports_at_load(summary) == AtLoad(7, 8, 8)
    summary["ports"][0]["as_destination"]["median_percent_of_line"] = 92.0
    assert ports_at_load(summary) == AtLoad(7, 7, 8)
    assert ports_at_load(kept_summary(unpack("tree", tmp_path))) == AtLoad(0, 0, 16)
    assert ports_at_load(kept_summary(unpack("imb", tmp_path))) is None
