# SPDX-License-Identifier: BSD-3-Clause
"""Labs of a user without privilege."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import labkit
import runs
from labkit import PREFIX, python

NOBODY = 65534
NAME = f"{PREFIX}-user"

PROBE = """
import json
from switchbench.labs import devices, namespaces
print(json.dumps(list(devices.missing()) if not namespaces.is_privileged()
    else ["this user has privilege"]))
"""

SESSION = """
import sys
from labkit import heard
from switchbench.labs import load, namespaces, session
namespaces.enter_user_namespace()
with session(load("one-switch"), sys.argv[1]) as lab:
    print(heard(lab, lab.nodes[0].name, lab.nodes[-1].name, "ipv4"), flush=True)
    sys.stdin.read()
"""


def as_user(command: list[str]) -> list[str]:
    """The command as a user without privilege: this one, or nobody where this one is root."""
    if os.geteuid() != 0:
        return command
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*drop, *command]


@pytest.fixture(autouse=True)
def user() -> None:
    """Skip where the user can make no lab."""
    probe = runs.program(*as_user(python(PROBE)), timeout=30)
    if probe.returncode != 0:
        pytest.skip(f"the user can't run Switchbench: {probe.stderr.strip()[-200:]}")
    if lacks := json.loads(probe.stdout):
        pytest.skip("; ".join(lacks))


def test_a_session_carries_traffic_and_leaves_nothing() -> None:
    """The lab's namespaces are visible in its process only, and end with it."""
    with subprocess.Popen(
        as_user(python(SESSION, NAME)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    ) as session:  # fmt: skip
        assert session.stdout is not None
        assert session.stdout.readline() == b"True\n"
        assert not Path(f"/run/netns/sb-{NAME}-node1").exists()
        assert not Path(f"/run/switchbench/{NAME}.json").exists()
        session.kill()
    assert labkit.leftovers() == []


def test_a_lab_that_stays_needs_root() -> None:
    command = [sys.executable, "-m", "switchbench", "lab", "up", "one-switch"]
    done = subprocess.run(as_user(command), capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert (
        "lab up needs root; `switchbench run` without root makes a lab for each run" in done.stderr
    )
