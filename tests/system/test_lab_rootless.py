# SPDX-License-Identifier: BSD-3-Clause
"""Labs of a user without privilege, from separate commands as that user would type them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labkit import PREFIX, python
from underway import is_alive

NOBODY = 65534
NAME = f"{PREFIX}-user"

PROBE = """
import json
from switchbench.labs import missing, rootless
print(json.dumps([str(lack) for lack in missing.missing()] if not rootless.is_privileged()
    else ["this user has privilege"]))
"""

COMMAND = """
import json, sys
from switchbench.labs import LabError, commands
function, arguments = sys.argv[1], json.loads(sys.argv[2])
try:
    if function == "run":
        sys.exit(commands.run(*arguments))
    getattr(commands, function)(sys.stdout, *arguments)
except LabError as error:
    sys.exit(str(error))
"""

SESSION = """
import socket, sys
from switchbench.labs import load, namespaces, rootless, session
with rootless.joined(), session(load("one-switch"), sys.argv[1]) as lab:
    def bound(node):
        def make():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((node.ipv4, 7600))
            sock.settimeout(3)
            return sock
        return namespaces.inside(node.namespace, make)
    first, last = lab.nodes[0], lab.nodes[-1]
    receiver = bound(last)
    bound(first).sendto(b"ping", (last.ipv4, 7600))
    print(receiver.recv(64).decode(), flush=True)
    if len(sys.argv) > 2:
        sys.stdin.read()
"""


def as_user(command: list[str]) -> list[str]:
    """The command as a user without privilege: this one, or nobody where this one is root."""
    if os.geteuid() != 0:
        return command
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*drop, *command]


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder for the user's holder, in place of the one of its login session."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    probe = subprocess.run(
        as_user(python(PROBE)), capture_output=True, text=True, check=False, timeout=30
    )
    try:
        if probe.returncode != 0:
            pytest.skip(f"the user can't run Switchbench: {probe.stderr.strip()[-200:]}")
        if lacks := json.loads(probe.stdout):
            pytest.skip("; ".join(lacks))
        yield folder
        assert list(folder.iterdir()) == []
    finally:
        shutil.rmtree(folder)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lab(runtime: Path) -> Command:
    """Runs one command of `switchbench.labs.commands` as the user."""

    def run(function: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            as_user(python(COMMAND, function, json.dumps(arguments))),
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    return run


def holder(runtime: Path) -> int:
    return int(json.loads((runtime / "switchbench" / "holder").read_text())[0])


def test_up_exec_status_down(lab: Command, runtime: Path) -> None:
    up = lab("up", "one-switch", NAME)
    assert up.returncode == 0, up.stderr
    pid = holder(runtime)
    assert is_alive(pid)
    assert not Path(f"/run/netns/sb-{NAME}-node1").exists()

    addresses = lab("run", "node5", ["cat", "/proc/net/fib_trie"], NAME)
    assert "198.18.0.5" in addresses.stdout
    assert lab("run", "switch", ["sh", "-c", "exit 7"], NAME).returncode == 7
    assert f"{NAME}: up: 8 nodes of 100M" in lab("print_status").stdout
    again = lab("up", "one-switch", NAME)
    assert (again.returncode, again.stderr.strip()) == (
        1,
        f"lab {NAME} is already up: `switchbench lab down {NAME}` first",
    )
    assert lab("down", NAME).stdout == f"lab {NAME} is down\n"
    assert not is_alive(pid)


def test_commands_without_a_lab_leave_no_holder(lab: Command, runtime: Path) -> None:
    assert lab("print_status").stdout == "no lab is up\n"
    assert list(runtime.iterdir()) == []


def test_two_labs_share_a_holder_that_the_last_one_ends(lab: Command, runtime: Path) -> None:
    lab("up", "one-switch", f"{NAME}1")
    lab("up", "open", f"{NAME}2")
    pid = holder(runtime)
    assert lab("down", f"{NAME}1").returncode == 0
    assert holder(runtime) == pid
    assert is_alive(pid)
    assert lab("down", f"{NAME}2").returncode == 0
    assert not is_alive(pid)


def test_a_session_carries_traffic(runtime: Path) -> None:
    done = subprocess.run(
        as_user(python(SESSION, NAME)),
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, "ping\n"), done.stderr


def test_a_killed_session_is_cleaned_by_the_next_command(lab: Command, runtime: Path) -> None:
    with subprocess.Popen(
        as_user(python(SESSION, NAME, "wait")),
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"ping\n"
        refused = lab("up", "one-switch", NAME)
        assert f"lab {NAME} is in use by process {session.pid}" in refused.stderr
        session.kill()
    pid = holder(runtime)
    assert f"{NAME}: left by a crash" in lab("print_status").stdout
    assert lab("down", NAME).returncode == 0
    assert not is_alive(pid)


def test_a_dead_holder_takes_its_labs_along(lab: Command, runtime: Path) -> None:
    lab("up", "one-switch", NAME)
    os.kill(holder(runtime), 9)
    time.sleep(0.1)
    assert lab("print_status").stdout == "no lab is up\n"
