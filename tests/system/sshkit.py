# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that are reached by ssh: the nodes of a lab, each with an sshd, a port and keys of its own.

The command runs in the lab's switch, on the control network: a machine beside the hosts. No sshd
of this system is started or asked, and no file outside of a test's folder is read by ssh.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyroute2 import IPRoute

import runs
import underway
from switchbench import labs
from switchbench.base.programs import find_engine
from switchbench.labs import namespaces
from switchbench.topology import lab_addresses

SSHD = "/usr/sbin/sshd"
PORT = 22022
CONTROLLER = "100.64.255.254"
PRIVILEGE_SEPARATION = Path("/run/sshd")

needs_sshd = pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None,
    reason="needs OpenSSH's server and client: apt-get install openssh-server",
)

SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host-{name}
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication yes
PermitRootLogin yes
PermitUserEnvironment no
MaxStartups 200
LogLevel INFO
SetEnv HOME={folder}/home-{name} PATH={folder}/home-{name}/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""

CLIENT_HOST = """\
Host {name}
  HostName {address}
"""

CLIENT_ALL = """\
Host *
  User root
  Port {port}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""


QUICK: dict[str, Any] = {"warmup": "100ms", "window": "300ms", "load": "80%", "repeat": 1}
PAIRS = {"pattern": "pairs"}
ALL_TO_ALL = {"pattern": "aapc", "order": "shift"}


def configuration(site: runs.Record, **more: Any) -> runs.Record:
    """Short pairs over tcp, with other keys."""
    return {"site": site, "transport": "tcp", **QUICK, "tests": [PAIRS], **more}


def long(site: runs.Record) -> runs.Record:
    """A run that lasts until something has happened to it."""
    return configuration(site, tests=[ALL_TO_ALL], window="1s")


@dataclass
class LabHosts:
    """Nodes of a lab as hosts, and the machine beside them, where commands run."""

    lab: labs.Lab
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """Of the commands' environment."""
        return {}

    def near(self, launch: str, *names: str, **way: Any) -> dict[str, Any]:
        """A site of all hosts, or of these; `way`: keys of the launcher."""
        nodes = [node for node in self.lab.nodes if not names or node.name in names]
        return {
            "launch": launch,
            "hosts": [node.name for node in nodes],
            "control": {
                "addresses": {node.name: node.control_ipv4 for node in nodes},
                "heartbeat_timeout": "1s",
                "barrier_timeout": "10s",
            },
            "ports": {"e0": {"network": "lab", "iface": "eth0", "line_rate": "20Mbit"}},
            launch: {"engine": str(find_engine()), **way},
        }

    def popen(self, words: list[str], **more: str) -> subprocess.Popen[str]:
        """Starts a command on the machine beside the hosts, with more variables."""
        pipe, variables = subprocess.PIPE, os.environ | self.variables | more
        return self.lab.popen("switch", words, stdout=pipe, stderr=pipe, text=True, env=variables)

    def command(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """`switchbench WORDS` there, done."""
        process = self.popen(runs.command(*words), **variables)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def write(self, directory: Path, configuration: Mapping[str, Any]) -> Path:
        """A configuration in a file."""
        directory.mkdir(exist_ok=True)
        path = directory / "conf.yaml"
        path.write_text(yaml.safe_dump({"switchbench": 1, **configuration}, sort_keys=False))
        return path

    def run(
        self, directory: Path, configuration: Mapping[str, Any], **variables: str
    ) -> runs.Result:
        """A run, to its end."""
        path, out = self.write(directory, configuration), directory / "results"
        done = self.command("run", str(path), "--out", str(out), **variables)
        return runs.Result(done.returncode, done.stdout, done.stderr, out)

    @contextmanager
    def started(self, directory: Path, configuration: Mapping[str, Any]) -> Iterator[Underway]:
        """A run that something happens to; whatever the block leaves of it is killed."""
        path, out = self.write(directory, configuration), directory / "results"
        process = self.popen(runs.command("run", str(path), "--out", str(out)))
        run = Underway(process, out)
        try:
            yield run
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


@dataclass
class Hosts(LabHosts):
    """The hosts, and what a person has set up to reach them."""

    servers: dict[str, subprocess.Popen[bytes]]

    @property
    def names(self) -> list[str]:
        """In the order of the lab."""
        return [node.name for node in self.lab.nodes]

    def site(self, *names: str, **ssh: Any) -> dict[str, Any]:
        """A site of all hosts, or of these."""
        return self.near("ssh", *names, **{"config": str(self.folder / "config"), **ssh})

    def home(self, name: str) -> Path:
        """Of who logs in there: the hosts share this machine's disks, but not that."""
        return self.folder / f"home-{name}"

    def log(self, name: str) -> str:
        """What the host's sshd has written."""
        return (self.folder / f"sshd-{name}.log").read_text()

    def ssh(self, name: str) -> list[str]:
        """The client's words to a host."""
        return ["ssh", "-F", str(self.folder / "config"), "-o", "BatchMode=yes", name]

    def rewrite(self, directory: Path, *hosts: str) -> Path:
        """The client's configuration with settings of single hosts before all others."""
        directory.mkdir(exist_ok=True)
        path = directory / "ssh_config"
        path.write_text("\n".join(hosts) + "\n" + (self.folder / "config").read_text())
        return path


class Underway(underway.Underway):
    """A run by ssh."""

    def clients(self) -> dict[str, int]:
        """Pids of the ssh clients that the command holds, by host."""
        found = {}
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in map(int, children.split()):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[0] == "ssh":
                found[words[words.index("--") + 1]] = pid
        return found

    def pid(self, name: str) -> int:
        """Of the node on that host."""
        (pid,) = [
            int(record["pid"])
            for record in self.records()
            if record["type"] == "hello" and record["node"] == name
        ]
        return pid


def keygen(path: Path) -> str:
    """Makes a key without a passphrase; its public half."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(words, check=True)
    return Path(f"{path}.pub").read_text().strip()


def known(node: labs.LabNode, key: str) -> str:
    """A line of known_hosts."""
    kind, data, _comment = key.split()
    return f"[{node.control_ipv4}]:{PORT} {kind} {data}\n"


@contextmanager
def hosts(topology: Path | str, folder: Path, **overrides: Any) -> Iterator[Hosts]:
    """Brings them up, each with a running sshd; takes all of it down again."""
    folder.mkdir(exist_ok=True)
    keygen(folder / "user")
    with ExitStack() as stack:
        if not PRIVILEGE_SEPARATION.exists():
            PRIVILEGE_SEPARATION.mkdir(mode=0o755)
            stack.callback(PRIVILEGE_SEPARATION.rmdir)
        lab = stack.enter_context(labs.session(labs.load(topology, overrides)))
        made = Hosts(lab, folder, {})
        join_control(lab)
        keys = {node.name: keygen(folder / f"host-{node.name}") for node in lab.nodes}
        known_hosts = "".join(known(node, keys[node.name]) for node in lab.nodes)
        (folder / "known_hosts").write_text(known_hosts)
        ways = [CLIENT_HOST.format(name=n.name, address=n.control_ipv4) for n in lab.nodes]
        (folder / "config").write_text("".join(ways) + CLIENT_ALL.format(port=PORT, folder=folder))
        for node in lab.nodes:
            made.home(node.name).mkdir()
            made.servers[node.name] = stack.enter_context(_server(made, node))
        underway.wait_until(
            lambda: all("listening on" in made.log(name) for name in made.names), "all listen", 30
        )
        yield made


def join_control(lab: labs.Lab) -> None:
    """Puts the machine beside the hosts onto the control network."""

    def add() -> None:
        with IPRoute() as netlink:
            (index,) = netlink.link_lookup(ifname="ctl")
            netlink.addr("add", index=index, address=CONTROLLER, prefixlen=16)
            for name in ("ctl", "lo"):
                netlink.link("set", index=netlink.link_lookup(ifname=name)[0], state="up")

    namespaces.inside(lab_addresses.NAMESPACES / lab_addresses.switch_name(lab.name), add)


@contextmanager
def _server(made: Hosts, node: labs.LabNode) -> Iterator[subprocess.Popen[bytes]]:
    """One sshd, on its host."""
    config = made.folder / f"sshd-{node.name}.conf"
    config.write_text(
        SSHD_CONFIG.format(port=PORT, address=node.control_ipv4, folder=made.folder, name=node.name)
    )
    with (made.folder / f"sshd-{node.name}.log").open("wb") as log:
        words = [SSHD, "-D", "-e", "-f", str(config)]
        server = made.lab.popen(node.name, words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield server
    finally:
        server.terminate()
        server.wait()
