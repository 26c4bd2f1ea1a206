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
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyroute2 import IPRoute

import labkit
import runs
from switchbench import labs
from switchbench.base.programs import find_engine

SSHD = "/usr/sbin/sshd"
PORT = 22022
CONTROLLER = "100.64.255.254"
PRIVILEGE_SEPARATION = Path("/run/sshd")

needs_sshd = pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None,
    reason="needs OpenSSH's server and client: apt-get install openssh-server",
)

SSHD_CONFIG = (labkit.DATA / "sshd_config").read_text()

CLIENT = (labkit.DATA / "ssh_config").read_text()


QUICK: dict[str, Any] = {"warmup": "100ms", "window": "300ms", "load": "80%", "repeat": 1}
PAIRS = {"pattern": "pairs"}
ALL_TO_ALL = {"pattern": "aapc", "order": "shift"}


def configuration(site: runs.Record, **more: Any) -> runs.Record:
    """Short pairs over tcp, with other keys."""
    return {"site": site, "transport": "tcp", **QUICK, "tests": [PAIRS], **more}


def long(site: runs.Record) -> runs.Record:
    """Return a run that lasts until something has happened to it."""
    return configuration(site, tests=[ALL_TO_ALL], window="1s")


@dataclass
class LabHosts:
    """Nodes of a lab as hosts, and the machine beside them, where commands run."""

    lab: labs.Lab
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    """Of the commands' environment."""

    @property
    def names(self) -> list[str]:
        """Return the hosts in the order of the lab."""
        return [node.name for node in self.lab.nodes]

    def near(self, launch: str, *names: str, **way: Any) -> runs.Record:
        """Return a site of all hosts, or of these; `way`: keys of the launcher."""
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
        """Start a command on the machine beside the hosts, with more variables."""
        pipe, variables = subprocess.PIPE, os.environ | self.variables | more
        return self.lab.popen("switch", words, stdout=pipe, stderr=pipe, text=True, env=variables)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `switchbench WORDS` there to its end."""
        process = self.popen(runs.command(*words))
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def run(self, directory: Path, configuration: Mapping[str, Any]) -> runs.Result:
        """Run a configuration there to its end."""
        return runs.run(directory, configuration, start=self.popen)

    def started(
        self, directory: Path, configuration: Mapping[str, Any]
    ) -> AbstractContextManager[runs.Underway]:
        """Start a run there that something happens to."""
        return runs.started(directory, configuration, start=self.popen)


@dataclass
class Hosts(LabHosts):
    """The hosts, and what a person has set up to reach them."""

    def site(self, *names: str, **ssh: Any) -> runs.Record:
        """Return a site of all hosts, or of these."""
        return self.near("ssh", *names, **{"config": str(self.folder / "config"), **ssh})

    def home(self, name: str) -> Path:
        """Return the home of a login at this host; other folders are this machine's."""
        return self.folder / f"home-{name}"

    def log(self, name: str) -> str:
        """Return what the host's sshd has written."""
        return (self.folder / f"sshd-{name}.log").read_text()

    def rewrite(self, directory: Path, *hosts: str) -> Path:
        """Write the client's configuration with settings of single hosts before all others."""
        directory.mkdir(exist_ok=True)
        path = directory / "ssh_config"
        path.write_text("\n".join(hosts) + "\n" + (self.folder / "config").read_text())
        return path


def engine(folder: Path, before: str) -> str:
    """Write an engine that does something in a shell before it is the engine."""
    path = folder / "wrapped-node"
    path.write_text(f'#!/bin/sh\n{before}\nexec {find_engine()} "$@"\n')
    path.chmod(0o755)
    for above in (folder, folder.parent):
        above.chmod(0o755)
    return str(path)


def keygen(path: Path) -> str:
    """Makes a key without a passphrase; its public half."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(words, check=True)
    return Path(f"{path}.pub").read_text().strip()


def known(node: labs.LabNode, key: str) -> str:
    """Return a line of known_hosts."""
    kind, data, _comment = key.split()
    return f"[{node.control_ipv4}]:{PORT} {kind} {data}\n"


@contextmanager
def hosts(topology: Path | str, folder: Path) -> Iterator[Hosts]:
    """Bring hosts up, each with a running sshd; take all of it down again."""
    folder.mkdir(exist_ok=True)
    keygen(folder / "user")
    with ExitStack() as stack:
        if not PRIVILEGE_SEPARATION.exists():
            PRIVILEGE_SEPARATION.mkdir(mode=0o755)
            stack.callback(PRIVILEGE_SEPARATION.rmdir)
        lab = stack.enter_context(labs.session(labs.load(topology)))
        made = Hosts(lab, folder)
        join_control(lab)
        ways, known_hosts = "", ""
        for node in lab.nodes:
            known_hosts += known(node, keygen(folder / f"host-{node.name}"))
            ways += f"Host {node.name}\n  HostName {node.control_ipv4}\n"
            made.home(node.name).mkdir()
            config = folder / f"sshd-{node.name}.conf"
            values = {"port": PORT, "address": node.control_ipv4, "folder": folder}
            config.write_text(SSHD_CONFIG.format(name=node.name, **values))
            stack.enter_context(
                daemon(made, node.name, [SSHD, "-D", "-e", "-f", str(config)], f"sshd-{node.name}")
            )
        (folder / "known_hosts").write_text(known_hosts)
        (folder / "config").write_text(ways + CLIENT.format(port=PORT, folder=folder))
        runs.wait_until(
            lambda: all("listening on" in made.log(name) for name in made.names), "all listen", 30
        )
        yield made


def join_control(lab: labs.Lab) -> None:
    """Put the machine beside the hosts onto the control network."""

    def add(netlink: IPRoute) -> None:
        index = labkit.index_of(netlink, "ctl")
        netlink.addr("add", index=index, address=CONTROLLER, prefixlen=16)
        for name in ("ctl", "lo"):
            netlink.link("set", index=labkit.index_of(netlink, name), state="up")

    labkit.over_netlink(lab, "switch", add)


@contextmanager
def daemon(
    made: LabHosts, node: str, words: list[str], log: str, own_sys: bool = True
) -> Iterator[None]:
    """Run a daemon on a host, or beside them, until the block is left.

    Without a /sys of its own it has this machine's: slurmd looks for its cgroups.
    """
    with (made.folder / f"{log}.log").open("wb") as out:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        options["env"] = os.environ | made.variables
        process = (
            made.lab.popen(node, words, **options)
            if own_sys
            else labkit.in_node(made.lab, node, lambda: subprocess.Popen(words, **options))
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
