# SPDX-License-Identifier: BSD-3-Clause
"""How hosts are reached: one battery over every launcher (run/launch/far.py), command lines, sets
of nodes, what failures mean.

ssh and Slurm reach fake hosts, which are this machine; the lab is a fake that starts processes
here."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

import hostkit
import runs
from conftest import Command
from hostkit import in_path, plan, program, site, ssh_script
from switchbench import __version__, labs
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Process, Site
from switchbench.cli.hosts import carry_out
from switchbench.config import read
from switchbench.hosts import doctor
from switchbench.labs import namespaces
from switchbench.plan.compile import compile_run
from switchbench.run.launch import Launcher, far, launcher_for, ssh
from switchbench.run.launch.far import Answer, chosen, fan_out
from switchbench.run.launch.ssh import OpenSsh, resolved, side_by_side

GROUPS = {"left": "node[1-2]", "right": "node[3-4]"}


# --- fan-out -------------------------------------------------------------------------------------


def test_answers_of_many_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at a time as the fan-out says; the ssh to a gateway is another program's child: what
    it inherits keeps it from asking."""
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    code = (
        "import os, sys, time; d = sys.argv[1]; open(f'{d}/{os.getpid()}', 'w'); time.sleep(0.1)\n"
        "print(sys.stdin.read(), os.getsid(0) == os.getpid(), os.environ['SSH_ASKPASS_REQUIRE'])\n"
        "print(len(os.listdir(d))); os.unlink(f'{d}/{os.getpid()}'); sys.stderr.write('oh')\n"
        "sys.exit(3)"
    )
    (tmp_path / "now").mkdir()
    (tmp_path / "given").write_text("in")
    words = [sys.executable, "-c", code, str(tmp_path / "now")]
    answers = fan_out({f"n{i}": words for i in range(5)}, 2, 30, tmp_path / "given")
    assert list(answers) == [f"n{i}" for i in range(5)]
    for answer in answers.values():
        assert (answer.status, answer.output[0], answer.errors) == (3, "in True never", ["oh"])
        assert int(answer.output[1]) <= 2
    assert fan_out({"n": ["sleep", "30"]}, 1, 0.2) == {"n": Answer(None, [], [])}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle SIGINT as a program of a terminal does: tests behind a shell's `&` ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_fan_out_leaves_no_command(tmp_path: Path) -> None:
    """Neither those that run, which nothing else would end, nor those that wait for their turn."""
    code = (
        f"import os, time; path = '{tmp_path}/' + str(os.getpid()); open(path, 'w')\n"
        "time.sleep(60); open(path + '.ended', 'w')"
    )

    def interrupt() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        fan_out({f"n{i}": [sys.executable, "-c", code] for i in range(5)}, 2, 60)
    pids = [path.name for path in tmp_path.iterdir()]
    assert [len(pids), *(pid for pid in pids if not pid.isdigit())] == [2]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# --- the command line ----------------------------------------------------------------------------


def options(words: list[str]) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == "-o"]


def test_what_is_fixed_comes_first_and_what_the_site_says_is_there(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    keys = {
        "user": "bench", "config": "config",
        "engine": "/opt/a b/switchbench-node", "timeout": "3s",
    }  # fmt: skip
    way = OpenSsh.of(site(tmp_path, ssh=keys))
    words = way.node("node3", ["--name", "node3"])
    assert words[:3] == ["ssh", "-F", str(tmp_path / "config")]
    found = options(words)
    assert found[0] == "BatchMode=yes"
    assert {"User=bench", "ConnectTimeout=3"} <= set(found)
    assert not any(option.startswith("StrictHostKeyChecking") for option in found)
    assert words[-3:-1] == ["--", "node3"]
    assert shlex.split(words[-1]) == [
        "exec", "sh", "-c", "e='/opt/a b/switchbench-node'; exec \"$e\" \"$@\"", "sh",
        "--name", "node3",
    ]  # fmt: skip


def test_which_engine_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was pushed into the home folder, then into the shared one, then what is in the path;
    sudo never takes what the user can write."""
    shared = tmp_path / "opt"
    for name in ("_FIND", "_FIND_SHARED"):
        text = getattr(far, name).replace(far.SHARED_FOLDER, str(shared))
        monkeypatch.setattr(far, name, text)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
    sudo = program(tmp_path / "bin" / "sudo", '#!/bin/sh\nshift; exec "$@"\n')

    def said(privilege: str, engine: str = "switchbench-node") -> list[str]:
        words = far.engine_words(engine, privilege, ["--name", "a b"], announced=True)
        path = f"{sudo.parent}:{tmp_path}/path:/usr/bin:/bin"
        done = runs.program(*words, env=os.environ | {"PATH": path})
        return done.stdout.replace(f"{tmp_path}/", "").splitlines()

    says = '#!/bin/sh\necho "$0 $*"\n'
    plain = program(tmp_path / "path" / "switchbench-node", says)
    assert said("none") == [
        "path/switchbench-node --version", "path/switchbench-node --name a b"
    ]  # fmt: skip
    program(shared / "current" / "switchbench-node", says)
    assert said("none")[0] == "opt/current/switchbench-node --version"
    program(tmp_path / "home" / far.HOME_FOLDER / "current" / "switchbench-node", says)
    assert said("none")[0].startswith("home/.local/lib/switchbench/current/switchbench-node ")
    assert said("sudo")[0] == "opt/current/switchbench-node --version"
    told = "--connection 192.0.2.1 1 192.0.2.2 22"
    assert said("sudo")[1] == f"opt/current/switchbench-node --name a b {told}"
    assert said("none", str(plain))[1] == "path/switchbench-node --name a b"


@pytest.mark.parametrize(
    "line", ["ProxyCommand x", "  proxycommand=x", '"ProxyCommand" x', "Include y", "Match exec x"]
)
def test_a_file_for_ssh_that_runs_programs(line: str, tmp_path: Path) -> None:
    (tmp_path / "ssh_config").write_text(f"# ProxyCommand\nHost *\n  Port 7\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"ssh_config:4: .* could run a program here"):
        site(tmp_path, ssh={"config": "ssh_config"})


@pytest.mark.parametrize(
    "host",
    ["-oProxyCommand=x", "$(touch x)", "`x`", "a;b", "--evil", "a\u202eb", "a\x07", "root/x"],
)
@pytest.mark.parametrize("launch", ["ssh", "slurm", "hand"])
def test_what_is_no_hosts_name(host: str, launch: str, tmp_path: Path) -> None:
    """Names are words of command lines, and are shown on terminals."""
    with pytest.raises(ConfigurationError, match="can't be a host's name") as error:
        site(tmp_path, hosts=["node1", host], launch=launch)
    assert str(error.value).isprintable()


# --- sets of nodes -------------------------------------------------------------------------------


@pytest.mark.rows
def test_nodes_of_a_command(text: str | None, hosts: str, tmp_path: Path) -> None:
    assert [
        process.name for process in chosen(site(tmp_path, groups=GROUPS), text)
    ] == hosts.split()


@pytest.mark.rows
def test_nodes_that_are_not_there(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        chosen(site(tmp_path, groups=GROUPS), text)
    assert str(error.value).startswith(sentence)


# --- who is left out -----------------------------------------------------------------------------


def test_a_plan_without_some_hosts(tmp_path: Path) -> None:
    whole = plan(tmp_path, groups=GROUPS)
    run = plan(tmp_path, missing=("node2", "node4"), groups=GROUPS)
    assert [port.name for port in run.site.networks["n"]] == ["node1:e0", "node3:e0"]
    assert run.site.groups == {"left": ("node1:e0",), "right": ("node3:e0",)}
    assert run.trials[0].flows == 2
    kept = {port.name: port.engine for port in whole.site.ports}
    assert all(port.engine == kept[port.name] for port in run.site.ports)
    again = yaml.safe_dump(run.effective)
    path = tmp_path / "again.yaml"
    path.write_text(again)
    assert compile_run(read(path)).effective == run.effective
    assert run.effective["site"]["without"] == ["node2", "node4"]


# --- what failures mean --------------------------------------------------------------------------


@pytest.mark.rows
def test_what_keeps_the_engine_from_running(
    status: int | None, errors: list[str], sentence: str | None
) -> None:
    said = ssh.refusal("n", Answer(status, [], errors), "x")
    assert said is None if sentence is None else str(said).startswith(sentence)


@pytest.mark.parametrize("missing", ["stop", "exclude"])
def test_a_run_that_nobody_is_left_for_is_refused(
    missing: str, tmp_path: Path, fake_ssh: Path, cli: Command
) -> None:
    fake_ssh.write_text('#!/bin/sh\necho "ssh: connect to n: Connection refused" >&2; exit 255\n')
    plan(tmp_path)
    conf = tmp_path / "conf.yaml"
    conf.write_text(f"{conf.read_text()}on_missing: {missing}\n")
    known = [f"--set=site.control.addresses.node{i}=127.0.0.{i}" for i in range(1, 5)]
    said = cli.refuses("run", conf, *known, "--out", tmp_path / "out", status=3)
    assert "switchbench: 4 hosts can't be used (node1, node2, node3, node4): node1: it" in said
    assert not (tmp_path / "out").exists()


# --- side by side --------------------------------------------------------------------------------


def test_hosts_that_say_the_same_share_a_line() -> None:
    """The sentence is that of the first: it said HOST, even in commands to be copied."""
    answers = {f"n{i}": Answer(3, [f"accept it by `ssh n{i}`"]) for i in range(1, 129)} | {
        "node1": Answer(0, ["done"]),
        "node2": Answer(2, ["no such device"]),
        "node3": Answer(0, ["done"]),
        "node4": Answer(3),
        "node5": Answer(2, ["node5 has no such device"]),
    }
    assert list(side_by_side(answers)) == [
        "n[1-128]: accept it by `ssh n1`",
        "node[1,3]: done",
        "node2: no such device",
        "node4: failed with status 3, without a message",
        "node5: node5 has no such device",
    ]


def test_what_a_host_did_that_took_too_long_is_not_known(tmp_path: Path, fake_ssh: Path) -> None:
    fake_ssh.write_text("#!/bin/sh\nexec sleep 30\n")
    found = carry_out(site(tmp_path, ssh={"timeout": "1s"}), {"node1": ["restore"]}, 0.2)
    why = "no answer in time: its ports may have changed; repeat the command"
    assert found == {"node1": Answer(3, [why])}


# --- what hosts have -----------------------------------------------------------------------------


VERSION = f'[ "$1" = --version ] && echo switchbench-node {__version__} && exit'
LOCAL_SSH = """\
case $host in
node3) echo "ssh: connect to host node3 port 22: Connection refused" >&2; exit 255;;
node4) line=$(printf %s "$3" | sed 's,/sys/class/net/lo,{folder},g')
  sh -c "$line" | sed 's,{folder},/sys/class/net/lo,'; exit;;
esac
"""


def test_who_differs_from_most(tmp_path: Path, fake_ssh: Path) -> None:
    """Of hosts that are all this one, the one with another MTU is named."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "mtu").write_text("1400\n")
    (other / "operstate").write_text(Path("/sys/class/net/lo/operstate").read_text())
    fake_ssh.write_text(ssh_script(LOCAL_SSH.format(folder=other)))
    engine = program(tmp_path / "engine", f"#!/bin/sh\n{VERSION}\n")
    ports = {"e0": {"network": "n", "iface": "lo", "line_rate": "1Gbit"}}
    control = {"addresses": {f"node{i}": f"127.0.0.{i}" for i in range(1, 4)}}
    hosts = site(tmp_path, ports=ports, ssh={"engine": str(engine)}, control=control)
    survey = doctor.survey(hosts, chosen(hosts, None))
    rows, silent = survey.rows, survey.silent
    found = {row.name: row for row in rows}
    mtu = Path("/sys/class/net/lo/mtu").read_text().strip()
    assert found["e0 mtu"] == doctor.HostComparison("e0 mtu", mtu, {"node4": "1400"})
    assert found["engine"] == doctor.HostComparison("engine", __version__, {})
    assert found["kernel"] == doctor.HostComparison("kernel", platform.release(), {})
    assert found["e0 driver"] == doctor.HostComparison("e0 driver", "-", {})
    assert [row.name for row in rows if row.differ] in (["e0 mtu"], ["e0 speed", "e0 mtu"])
    assert list(silent) == ["node3"]
    assert silent["node3"].startswith("it can't be reached (")
    with pytest.raises(ConfigurationError, match="this command needs ssh"):
        doctor.survey(site(tmp_path, launch="hand"), [])


def doctors(tmp_path: Path, fake_ssh: Path, script: str) -> doctor.Survey:
    """Return two hosts that are this one, with an engine that is this script."""
    fake_ssh.write_text(ssh_script(""))
    engine = program(tmp_path / "engine", f"#!/bin/sh\n{script}\n")
    control = {"addresses": {f"node{i}": f"127.0.0.{i}" for i in (1, 2)}}
    hosts = site(tmp_path, hosts="node[1-2]", ssh={"engine": str(engine)}, control=control)
    return doctor.survey(hosts, chosen(hosts, None))


@pytest.mark.rows
def test_engines_that_are_not_this_version(
    tmp_path: Path, fake_ssh: Path, script: str, why: str
) -> None:
    survey = doctors(tmp_path, fake_ssh, script)
    (found,) = (one for one in survey.rows if one.name == "engine")
    assert found.differ.keys() == {"node1", "node2"}
    way = why.format(engine=tmp_path / "engine")
    assert all(said.startswith(way) for said in found.differ.values())
    assert not survey.is_alike


@pytest.mark.rows
def test_hosts_that_are_alike_and_unfit(
    tmp_path: Path, name: str, value: str, words: str | None
) -> None:
    """Likeness was all that counted: without hugepages on every host the status was 0."""
    ports = {"e0": {"network": "n", "pci": "0000:01:00.0", "line_rate": "1Gbit"}}
    hosts = site(tmp_path, hosts="node[1-2]", ports=ports)
    found = list(doctor.unfit(hosts.processes, {name: {"node1": value, "node2": value}}))
    assert len(found) == (0 if words is None else 1)
    assert not found or found[0].startswith(str(words))


ALIASES = """#!/bin/sh
[ "$1" = -G ] || exit 255
for host; do :; done
case $host in alias*) echo user me; echo hostname 127.0.0.7;; *) echo "hostname $host";; esac
"""


def test_an_alias_of_ssh_is_resolved_before_anything_is_copied(
    tmp_path: Path, fake_ssh: Path
) -> None:
    """The engine was copied to both hosts, and the run ended since their names were not known."""
    fake_ssh.write_text(ALIASES)
    known = resolved(site(tmp_path, hosts=["alias1.invalid", "127.0.0.9"]))
    addresses = [process.control["address"] for process in known.processes]
    assert addresses == ["127.0.0.7:7600", "127.0.0.9:7600"]
    with pytest.raises(ConfigurationError, match=r"cannot resolve n\[1-2\]\.invalid: use DNS"):
        resolved(site(tmp_path, hosts="n[1-2].invalid"))


# --- one battery over every launcher --------------------------------------------------------------


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
        """Put fakes where the launcher looks."""

    def site(self, **keys: Any) -> Site:
        return hostkit.site(self.folder, **(self.site_keys | keys))

    def alive(self) -> list[int]:
        """Return nodes that still run."""
        noted = self.folder / "pids"
        pids = [int(line) for line in noted.read_text().split()] if noted.exists() else []
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()]

    def is_given_back(self) -> bool:
        """Return whether nothing that was made is left."""
        return self.events.count("made") == self.events.count("given back")


class InLab(Place):
    """A lab on this machine."""

    site_keys: ClassVar = {"lab": "one-switch"}
    name = "one-switch"
    topology = labs.load("one-switch", {})

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(labs, "session", self.made)
        monkeypatch.setattr(namespaces, "enter_user_namespace", lambda: None)

    def popen(self, _host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([str(self.engine), *command[1:]], **options)

    @contextmanager
    def made(self, *_: Any) -> Iterator[Any]:
        self.events.append("made")
        try:
            yield self
        finally:
            self.events.append("given back")


class Far(Place):
    """Hosts that a program reaches. In what they do first, `$host` is their name."""

    way: ClassVar[dict[str, Any]] = {}  # what the site says of the launcher besides the engine
    reach: str  # the program
    head: str  # sets `$host`, and what is left are the words to be run
    cut_off: str  # what it does where it can't reach a host
    words: str  # of what it says then

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_path(self.folder / "bin", monkeypatch)
        monkeypatch.setenv("SLURM_JOB_ID", "7")
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
every_far = pytest.mark.parametrize("place", ["ssh", "slurm", "command", "shell"], indirect=True)


@contextmanager
def reached(place: Place) -> Iterator[tuple[Launcher, Sequence[Process], dict[str, str]]]:
    """Start the nodes of far hosts; yield also why some hosts can't take part."""
    site = place.site()
    launcher = launcher_for(site)
    with closing(launcher):
        yield launcher, site.processes, launcher.gather(site.processes)


def started(launcher: Launcher, process: Process) -> subprocess.Popen[bytes]:
    return launcher.start(process, ["switchbench-node", "--name", process.name])


def closed(popen: subprocess.Popen[bytes]) -> tuple[list[str], list[str], int]:
    """Return the output after the input is closed, and the status."""
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
            assert launcher.gather(left) == {}
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

    def fails() -> None:
        with reached(place) as (launcher, *_), launcher:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert place.is_given_back()
    assert place.alive() == []


# --- launchers of hosts that may be missing ------------------------------------------------------


@every_far
def test_hosts_that_are_out_of_reach_are_named(place: Far) -> None:
    place.first(f"case $host in node2|node4) {place.cut_off};; esac")
    with reached(place) as (launcher, processes, missing):
        assert list(missing) == ["node2", "node4"]
        assert launcher.start(processes[2], []).poll() is None
        with pytest.raises(KeyError):
            launcher.start(processes[1], [])


@every_far
def test_nodes_that_nobody_takes_are_ended(place: Far) -> None:
    with reached(place) as (_, _, missing):
        assert missing == {}
        deadline_s = time.monotonic() + 20
        while len(place.alive()) < 4 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert len(place.alive()) == 4
    assert place.alive() == []


@every_far
@pytest.mark.rows
def test_a_host_that_says_another_greeting_is_left_out_at_once(
    place: Far, before: str, version: str | None, sentence: str
) -> None:
    place.first(f"{before}\necho switchbench-node {version or __version__}\nexec sleep 60")
    with reached(place) as (_, _, missing):
        assert list(missing) == ["node1", "node2", "node3", "node4"]
        assert all(reason.startswith(sentence) for reason in missing.values())


@pytest.mark.parametrize("place", ["ssh", "slurm"], indirect=True)
def test_a_connection_that_ends_says_that_it_did(place: Far) -> None:
    """The node's own end is none of the connection's, nor is the loader's word in its log."""
    greeting = f"echo switchbench-node {__version__}; read job"
    loader = 'echo "node: error while loading shared libraries: x: no file" >&2; exit 127'
    place.first(
        f"case $host in\nnode2) {greeting}; {place.cut_off};;\nnode3) {greeting}; {loader};;\nesac"
    )
    with reached(place) as (launcher, processes, missing):
        assert missing == {}
        lost = []
        for process in processes[:3]:
            _, log, status = closed(started(launcher, process))
            lost.append(launcher.lost(process.name, status, log))
    assert lost[0] is lost[2] is None
    assert lost[1] is not None
    assert lost[1].startswith("is out of reach: ")
    assert place.words in lost[1]


@every_far
def test_without_its_program_there_is_one_sentence(
    place: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = place.site()
    monkeypatch.setenv("PATH", str(place.folder))
    with pytest.raises(ConfigurationError, match=f"there is no (program )?{place.reach} on this"):
        launcher_for(site)
