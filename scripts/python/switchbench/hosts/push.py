# SPDX-License-Identifier: BSD-3-Clause
"""The engine with all that it needs, copied to the hosts of a site (doc/how-to/cluster.md).

A host is asked first whether it has this very build, by its sums; only who lacks it is sent the
archive, in a second login. In the end each runs what it has now, and says its version. Nothing is
ever asked of a person: `sudo -n`.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.model import Process, Site
from ..base.programs import ENGINE
from ..run.launch.far import Answer, fan_out
from ..run.launch.ssh import (
    CURRENT,
    NOT_ASKED,
    SHARED_FOLDER,
    OpenSsh,
    Result,
    find_client,
    lack,
    refusal,
)
from .collect import Collection, collect

PRIVILEGES = ("none", "setcap", "sudo")

# What a node may do beside what everybody may, and what for.
CAPABILITIES: Mapping[str, str] = {
    "cap_net_raw": "packet sockets: ports of dpdk",
    "cap_net_admin": "promiscuous ports, offloads, routes of a port's own",
    "cap_ipc_lock": "memory that devices write to stays where it is: verbs, AF_XDP",
    "cap_sys_nice": "a worker that sleeps on a shared core is woken in time",
}
# As good as root, so only where a port needs them.
NAMESPACES = ("cap_sys_admin",)  # of a host with several ports: each has one of its own
AF_XDP = ("cap_bpf", "cap_sys_admin")  # libxdp looks its maps up by their numbers

_SCRIPT = Path(__file__).parents[1] / "run/launch/receive.sh"
_AS_ROOT = '[ "$(id -u)" = 0 ] && exec "$@"; exec sudo -n "$@"'
_ASK_S = 60.0  # logging in, and the sums of 35 MB from a cold disk
_TAKE_S = 300.0  # 14 MB, through a gateway that all share


@dataclass(frozen=True)
class PushOrder:
    """What is to lie where on each host, and what it may do there."""

    collection: Collection
    privilege: str
    folder: str  # "": in the home folder
    capabilities: tuple[str, ...] = ()

    def words(self, task: str) -> list[str]:
        """Return the command there: `ask` or `take`."""
        one = self.collection
        digest = hashlib.sha256(one.sums.encode()).hexdigest()
        what = [one.name, one.machine, self.privilege, ",".join(self.capabilities), digest]
        script = ["sh", "-c", _SCRIPT.read_text("utf-8"), "sh", task, self.folder, *what]
        return script if self.privilege == "none" else ["sh", "-c", _AS_ROOT, "sh", *script]


def order(site: Site, privilege: str | None, folder: str | None) -> PushOrder:
    """Return what to push to a site's hosts; refuse what its ports can't do with."""
    if not site.launcher.logs_in:
        raise ConfigurationError(
            f"push: hosts are reached by ssh, and this site says launch: {site.launch}; "
            "`--set site.launch=ssh` where they can be"
        )
    chosen = privilege or OpenSsh.of(site).privilege
    capabilities = _capabilities(site) if chosen == "setcap" else ()
    default = "" if chosen == "none" else SHARED_FOLDER
    if folder is not None and not folder.startswith("/"):
        raise ConfigurationError(f"push: --to {folder}: a full path is needed, the same on all")
    return PushOrder(collect(), chosen, folder or default, capabilities)


def _capabilities(site: Site) -> tuple[str, ...]:
    devices = [port.name for port in site.ports if "pci" in port.engine]
    if devices:
        raise ConfigurationError(
            f"push: --privilege setcap does not do for ports with `pci` ({devices[0]}): their "
            "devices and drivers are root's files; say --privilege sudo, or log in as root"
        )
    several = any(len(process.ports) > 1 for process in site.processes)
    xdp = any(port.engine.get("driver") == "af_xdp" for port in site.ports)
    more = (*(NAMESPACES if several else ()), *(AF_XDP if xdp else ()))
    return tuple(dict.fromkeys((*CAPABILITIES, *more)))


def push(site: Site, processes: Sequence[Process], wanted: PushOrder) -> list[Result]:
    """Bring it to these hosts; what happened on each."""
    find_client()
    way = replace(OpenSsh.of(site), privilege=wanted.privilege)
    hosts = [process.name for process in processes]
    answers = _send(way, hosts, wanted, "ask", _ASK_S)
    lacking = [
        host
        for host in hosts
        if answers[host].status == 0 and any(map(_LACKS.search, answers[host].output))
    ]
    if lacking:
        with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
            wanted.collection.archive(file)
            file.flush()
            answers |= _send(way, lacking, wanted, "take", _TAKE_S, Path(file.name))
            size_mb = Path(file.name).stat().st_size / 1e6
    else:
        size_mb = 0.0
    done = [host for host in hosts if _done(answers[host]) is not None]
    versions = _versions(way, done, answers)
    return [_result(host, answers[host], versions.get(host), wanted, size_mb) for host in hosts]


def _send(
    way: OpenSsh,
    hosts: Sequence[str],
    wanted: PushOrder,
    task: str,
    limit_s: float,
    archive: Path | None = None,
) -> dict[str, Answer]:
    line = f"exec {shlex.join(wanted.words(task))}"
    commands = {host: way.command(host, line) for host in hosts}
    return fan_out(commands, way.fanout, way.timeout_s + limit_s, archive)


# A login may write text of its own around what receive.sh says, also on the same line. A run can't
# do with that, and the engine's version is then answered by why (`lack`).
_OURS = "switchbench push: "
_LACKS = re.compile(rf"{_OURS}lack$")
_DONE = re.compile(rf"{_OURS}(have|copied) (/.*)$")


def _done(answer: Answer) -> tuple[str, str] | None:
    """Return what it has done (`have`, `copied`), and the folder."""
    found = [done for line in answer.output if (done := _DONE.search(line))]
    return (found[-1][1], found[-1][2]) if answer.status == 0 and found else None


def _versions(
    way: OpenSsh, hosts: Sequence[str], answers: Mapping[str, Answer]
) -> dict[str, Answer]:
    """Return what the engine says that was pushed, run as `run` will run it."""
    commands = {}
    for host in hosts:
        there = replace(way, engine=_engine(answers[host]))
        commands[host] = there.node(host, ["--version"])
    return fan_out(commands, way.fanout, way.timeout_s + _ASK_S)


def _engine(answer: Answer) -> str:
    _, folder = _done(answer) or ("", "")
    return f"{folder}/{CURRENT}/{ENGINE}"


def _result(
    host: str, answer: Answer, version: Answer | None, wanted: PushOrder, size_mb: float
) -> Result:
    if answer.status is None:
        return Result(
            host, NOT_ASKED, ("it took too long: it is not known what it has; push again",)
        )
    done = _done(answer)
    if done is None or version is None:
        why = refusal(host, answer, "sh") or _own_words(answer)
        return Result(host, NOT_ASKED, (why,))
    word, folder = done
    reason = lack(host, version, _engine(answer))
    if reason is not None:
        return Result(host, NOT_ASKED, (reason,))
    how = "has it already" if word == "have" else f"copied, {size_mb:.1f} MB"
    more = {"none": "", "setcap": ", with capabilities", "sudo": ", run by sudo"}
    where = f"{wanted.collection.name} in {folder}{more[wanted.privilege]}"
    return Result(host, 0, (f"{how}: {where}",))


def _own_words(answer: Answer) -> str:
    last = (answer.errors or answer.output or ["without a word"])[-1]
    return last.rpartition(_OURS)[2].strip()
