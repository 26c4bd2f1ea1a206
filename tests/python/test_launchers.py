# SPDX-License-Identifier: BSD-3-Clause
"""One battery over every launcher: what the controller may rely on (run/launch/far.py).

ssh and Slurm reach fake hosts, which are this machine; the lab is a fake that starts
processes here. What each of them says in its own words is in test_launch.py.
"""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hostkit
from hostkit import in_path, program
from switchbench import __version__, labs
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Process, Site
from switchbench.labs import namespaces
from switchbench.run.launch import Launcher, launcher_for

# Says its version; else repeats a line, then waits for the end of its input.
ENGINE = f"""\
#!/bin/sh
[ "$1" = --version ] && echo switchbench-node {__version__} && exit
echo $$ >> {{folder}}/pids
read line; echo "heard $line"; echo "a word" >&2
while read line; do :; done
exit 7
"""


class Place(ABC):
    """Where a launcher's nodes run; notes what was made and given back."""

    site_keys: ClassVar[dict[str, Any]]

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.engine = program(folder / "engine", ENGINE.format(folder=folder))
        self.events: list[str] = []
        self.prepare(monkeypatch)

    @abstractmethod
    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts fakes where the launcher looks."""

    def site(self, **keys: Any) -> Site:
        return hostkit.site(self.folder, **(self.site_keys | keys))

    def alive(self) -> list[int]:
        """Nodes that still run."""
        noted = self.folder / "pids"
        pids = [int(line) for line in noted.read_text().split()] if noted.exists() else []
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()]

    def is_given_back(self) -> bool:
        """Whether nothing that was made is left."""
        return self.events.count("made") == self.events.count("given back")


class Near(Place):
    """A lab on this machine."""

    def popen(self, _host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([str(self.engine), *command[1:]], **options)

    @contextmanager
    def made(self, *_: Any) -> Iterator[Any]:
        self.events.append("made")
        try:
            yield self
        finally:
            self.events.append("given back")


class InLab(Near):
    site_keys: ClassVar = {"lab": "one-switch"}
    name = "one-switch"
    topology = labs.load("one-switch", {})

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(labs, "session", self.made)
        monkeypatch.setattr(namespaces, "enter_user_namespace", lambda: None)


class Far(Place):
    """Hosts that a program reaches. In what they do first, `$host` is their name."""

    way: ClassVar[dict[str, Any]] = {}  # what the site says of the launcher besides the engine
    reach: str  # the program
    head: str  # sets `$host`, and what is left are the words to be run
    cut_off: str  # what it does where it can't reach a host
    words: str  # of what it says then

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_path(self.folder / "bin", monkeypatch)
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
        self.first("")

    def first(self, script: str) -> None:
        """What a host does before it runs the words."""
        program(self.folder / "bin" / self.reach, f'#!/bin/sh\n{self.head}\n{script}\nexec "$@"\n')

    def site(self, **keys: Any) -> Site:
        way = {self.site_keys["launch"]: {"engine": str(self.engine)} | self.way}
        return super().site(**way | keys)


class BySsh(Far):
    site_keys: ClassVar = {"launch": "ssh"}
    reach = "ssh"
    head = hostkit.SSH_HEAD
    cut_off = 'echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255'
    words = "Connection refused"


class BySlurm(Far):
    site_keys: ClassVar = {"launch": "slurm"}
    reach = "srun"
    head = (
        "for word; do case $word in --nodelist=*) host=${word#*=};; esac; done\n"
        'while [ "$1" != sh ]; do shift; done'
    )
    cut_off = 'echo "srun: error: Unable to create step for job 7: $host is down" >&2; exit 1'
    words = "node2 is down"

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().prepare(monkeypatch)
        noted = self.folder / "noted"
        program(self.folder / "bin" / "sinfo", "#!/bin/sh\n")
        granted = f'echo made >> {noted}; echo "salloc: Granted job allocation 7" >&2'
        program(self.folder / "bin" / "salloc", f"#!/bin/sh\n{granted}\n")
        program(self.folder / "bin" / "scancel", f'#!/bin/sh\necho "given back" >> {noted}\n')

    def is_given_back(self) -> bool:
        noted = self.folder / "noted"
        self.events = noted.read_text().splitlines() if noted.exists() else []
        return super().is_given_back()


class ByCommand(Far):
    site_keys: ClassVar = {"launch": "command"}
    way: ClassVar = {"start": ["starter", "--on={host}"]}
    reach = "starter"
    head = "host=${1#--on=}; shift"
    cut_off = 'echo "starter: $host is down" >&2; exit 1'


class ByRemoteShell(ByCommand):
    """As rsh: it joins the words by blanks, and a shell on the host parses them."""

    def first(self, script: str) -> None:
        path = self.folder / "bin" / self.reach
        program(path, f'#!/bin/sh\n{self.head}\n{script}\nexec sh -c "$*"\n')


PLACES: dict[str, type[Place]] = {
    "lab": InLab,
    "ssh": BySsh,
    "slurm": BySlurm,
    "command": ByCommand,
    "shell": ByRemoteShell,
}


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return PLACES[request.param](tmp_path, monkeypatch)


every = pytest.mark.parametrize("place", PLACES, indirect=True)
far = pytest.mark.parametrize("place", ["ssh", "slurm", "command", "shell"], indirect=True)


def gathered(launcher: Launcher, site: Site) -> list[str]:
    """The nodes of far hosts are started before the run; who can't take part."""
    return [host.host for host in launcher.gather(site.processes)]


def started(launcher: Launcher, process: Process) -> subprocess.Popen[bytes]:
    return launcher.start(process, ["switchbench-node", "--name", process.name])


def closed(popen: subprocess.Popen[bytes]) -> tuple[list[str], list[str], int]:
    """What it wrote after its input was closed, and its status."""
    output, log = popen.communicate(timeout=20)
    return output.decode().splitlines(), log.decode().splitlines(), popen.returncode


# --- every launcher ------------------------------------------------------------------------------


@every
def test_a_nodes_streams_and_status_are_its_process(place: Place) -> None:
    """Also in a second run, without the hosts that were lost."""
    site = place.site()
    for left in (site.processes, site.processes[:-1]):
        launcher = launcher_for(site)
        with closing(launcher):
            assert launcher.gather(left) == []
            with launcher:
                for process in left:
                    popen = started(launcher, process)
                    assert os.getsid(popen.pid) == popen.pid  # a person's Ctrl-C does not reach it
                    assert popen.stdin is not None
                    popen.stdin.write(b"a document\n")  # unbuffered
                    assert closed(popen) == (["heard a document"], ["a word"], 7)
        assert place.is_given_back()
        assert place.alive() == []


@every
def test_a_place_is_given_back_when_the_run_fails(place: Place) -> None:
    site = place.site()
    launcher = launcher_for(site)

    def fails() -> None:
        with closing(launcher):
            gathered(launcher, site)
            with launcher:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert place.is_given_back()
    assert place.alive() == []


# --- launchers of hosts that may be missing ------------------------------------------------------


@far
def test_hosts_that_are_out_of_reach_are_named(place: Far) -> None:
    place.first(f"case $host in node2|node4) {place.cut_off};; esac")
    site = place.site()
    launcher = launcher_for(site)
    with closing(launcher):
        missing = launcher.gather(site.processes)
        assert [host.host for host in missing] == ["node2", "node4"]
        assert all(host.host in str(host) for host in missing)
        assert launcher.start(site.processes[2], []).poll() is None
        with pytest.raises(KeyError):
            launcher.start(site.processes[1], [])


@far
def test_nodes_that_nobody_takes_are_ended(place: Far) -> None:
    site = place.site()
    launcher = launcher_for(site)
    with closing(launcher):
        assert gathered(launcher, site) == []
        deadline_s = time.monotonic() + 20
        while len(place.alive()) < 4 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert len(place.alive()) == 4
    assert place.alive() == []


@far
@pytest.mark.parametrize(
    ("before", "version", "sentence"),
    [
        ("printf 'Welcome> '", __version__, "its login writes text of its own ('Welcome> '), "),
        ("printf 'Welcome> '", "0.0.9", "it has version 0.0.9 ("),
        ("echo no switchbench-node yet", __version__, "its login writes text of its own ('no swit"),
    ],
)
def test_a_host_that_says_another_greeting_is_left_out_at_once(
    place: Far, before: str, version: str, sentence: str
) -> None:
    place.first(f"{before}\necho switchbench-node {version}\nexec sleep 60")
    site = place.site()
    launcher = launcher_for(site)
    with closing(launcher):
        missing = launcher.gather(site.processes)
    assert [host.host for host in missing] == ["node1", "node2", "node3", "node4"]
    assert all(host.reason.startswith(sentence) for host in missing)


@pytest.mark.parametrize("place", ["ssh", "slurm"], indirect=True)
def test_a_connection_that_ends_says_that_it_did(place: Far) -> None:
    """The node's own end is none of the connection's, nor is the loader's word in its log."""
    greeting = f"echo switchbench-node {__version__}; read job"
    loader = 'echo "node: error while loading shared libraries: x: no file" >&2; exit 127'
    place.first(
        f"case $host in\nnode2) {greeting}; {place.cut_off};;\nnode3) {greeting}; {loader};;\nesac"
    )
    site = place.site()
    launcher = launcher_for(site)
    with closing(launcher):
        assert gathered(launcher, site) == []
        lost = []
        for process in site.processes[:3]:
            _, log, status = closed(started(launcher, process))
            lost.append(launcher.lost(process.name, status, log))
    assert lost[0] is lost[2] is None
    assert lost[1] is not None
    assert lost[1].startswith("is out of reach: ")
    assert place.words in lost[1]


@far
def test_without_its_program_there_is_one_sentence(
    place: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = place.site()
    monkeypatch.setenv("PATH", str(place.folder))
    launcher = launcher_for(site)
    with pytest.raises(ConfigurationError, match=f"there is no {place.reach} here"):
        launcher.gather(site.processes)
