# SPDX-License-Identifier: BSD-3-Clause
"""A run while it runs: on a terminal, and in what Prometheus reads."""

from __future__ import annotations

import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import labkit
import ptykit
import runs
from switchbench.records.directory import load_summary

pytestmark = [labkit.needs_lab, pytest.mark.usefixtures("nothing_left")]

LINE_BPS = 20e6


def configuration(topology: Path, **more: Any) -> runs.Record:
    """Return pairs of four nodes at half the line, so that cores don't matter."""
    return {
        "site": {"lab": str(topology)},
        "transport": "dpdk",
        "load": "50%",
        "repeat": 1,
        "window": "2s",
        "tests": [{"pattern": "pairs"}],
    } | more


def words(directory: Path, conf: runs.Record, *options: str) -> list[str]:
    """`switchbench run` of this configuration."""
    conf_file, out = runs.write(directory, conf), str(directory / "results")
    return runs.command("run", str(conf_file), "--out", out, *options)


def rows(terminal: ptykit.Terminal) -> dict[str, list[str]]:
    """Return the ports' lines on the screen, by port."""
    lines = [line.split() for line in terminal.lines if re.match(r"node\d+:e0 ", line)]
    return {line[0]: line[1:] for line in lines}


def given_back(terminal: ptykit.Terminal) -> None:
    """The terminal is as it was before the command."""
    opened, closed = ptykit.SECOND_PAGE
    assert terminal.raw.count(opened) == terminal.raw.count(closed) == 1
    shown, hidden = ptykit.CURSOR_SHOWN, ptykit.CURSOR_HIDDEN
    assert terminal.raw.rindex(shown) > terminal.raw.rindex(hidden)
    assert terminal.modes_now == terminal.modes


def test_a_person_sees_every_port_and_then_the_table(topology: Path, tmp_path: Path) -> None:
    command = words(tmp_path, configuration(topology, tests=[{"pattern": "pairs"}] * 2))
    with ptykit.on_terminal(command) as terminal:
        terminal.until(
            lambda: (
                len(rows(terminal)) == 4
                and terminal.shows("1/2 pairs neighbours, dpdk, 4 ranks, window")
            ),
            "all ports are loaded",
        )
        terminal.until(
            lambda: all(float(row[0]) > 0 < float(row[1]) for row in rows(terminal).values()),
            "all ports have rates",
        )
        for row in rows(terminal).values():
            assert 0.3 * LINE_BPS < float(row[0]) * 1e6 < 0.55 * LINE_BPS
            assert 0.3 * LINE_BPS < float(row[1]) * 1e6 < 0.55 * LINE_BPS
        assert terminal.shows(" left")
        terminal.until(lambda: terminal.shows("1/2 phases"), "a phase has ended")
        assert terminal.shows("lost 0 of ")
        terminal.resize(50, 8)
        terminal.until(lambda: 0 < len(rows(terminal)) < 4, "the screen fits", 10)
        assert terminal.shows(" of 4 ports, the worst first")
        assert terminal.end() == 0
        given_back(terminal)
        after = terminal.raw.rpartition(ptykit.SECOND_PAGE[1])[2].decode()
    assert "pairs" in after
    assert str(tmp_path / "results") in after.replace("\r\n", "")
    assert load_summary(tmp_path / "results")["status"] == "complete"


def test_ctrl_c_leaves_the_terminal_sane(topology: Path, tmp_path: Path) -> None:
    command = words(tmp_path, configuration(topology, window="30s"))
    with ptykit.on_terminal(command) as terminal:
        terminal.until(lambda: terminal.shows(", window"), "the load runs")
        terminal.press("\x03")
        assert terminal.end(30) == 3
        given_back(terminal)
        after = terminal.raw.rpartition(ptykit.SECOND_PAGE[1])[2].decode()
    assert "switchbench: interrupted by signal SIGINT" in after
    assert load_summary(tmp_path / "results")["status"] == "partial"


def scraped(url: str) -> dict[str, list[Any]]:
    """Return the samples by name; none once the server has gone."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return {}
    samples: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


def test_metrics_are_there_while_the_run_lasts(topology: Path, tmp_path: Path) -> None:
    conf = configuration(topology, tests=[{"pattern": "pairs"}] * 2)
    process = subprocess.Popen(
        words(tmp_path, conf, "--metrics", "127.0.0.1:0"), stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    url = next(line for line in lines if line.startswith("metrics at "))[11:].strip()
    reader = threading.Thread(target=lambda: list(lines), daemon=True)
    reader.start()
    trials, phases, rates_bps = set(), [], [0.0]
    while process.poll() is None:
        seen = scraped(url)
        trials |= {sample.value for sample in seen.get("switchbench_run_trial", ())}
        phases += [s.value for s in seen.get("switchbench_run_completed_phases_total", ())]
        offered = seen.get("switchbench_port_offered_bytes_per_second", ())
        rates_bps += [8 * sample.value for sample in offered]
        time.sleep(0.2)
    reader.join()
    process.stderr.close()
    assert process.returncode == 0
    assert scraped(url) == {}
    assert trials == {0, 1, 2}
    assert phases == sorted(phases)
    assert phases[0] == 0 < phases[-1]
    assert 0.3 * LINE_BPS < max(rates_bps) < 0.55 * LINE_BPS
