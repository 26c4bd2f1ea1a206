# SPDX-License-Identifier: BSD-3-Clause
"""Commands with an output that is closed or full, and with little memory."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import runs
from golden import unpack

COMMAND = f"{shlex.quote(sys.executable)} -m switchbench"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a run with exit status 0."""
    return shlex.quote(str(unpack("acceptance", tmp_path_factory.mktemp("golden"))))


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.rows
def test_a_lost_output_changes_nothing_else(run: str, line: str, status: int, words: str) -> None:
    done = shell(line.format(command=COMMAND, run=run))
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == (1 if words else 0)


def test_a_run_whose_table_is_lost_says_so(tmp_path: Path) -> None:
    """Its live view left standard output on /dev/null, so that the status was 0."""
    code = (
        "import sys\nfrom switchbench.cli.main import Streams\n"
        "from switchbench.analysis.summary import Summary\n"
        "from rich.console import Console\nfrom switchbench.run.live.screen import Watch\n"
        "from test_run_command import one_run\n"
        "streams, run = Streams(), one_run()\n"
        "shown = Watch(run, 'x', Console(stderr=True), live=False)\n"
        "with shown.of(run, Summary(run)):\n    pass\n"
        "print('the table')\nprint(streams.lost(), file=sys.stderr)\n"
    )
    paths = (str(Path(__file__).parents[1] / name) for name in ("python", "system"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} > /dev/full"
    done = runs.program("bash", "-c", command, env=environment, check=True)
    assert done.stderr.endswith("standard output can't be written: No space left on device\n")
