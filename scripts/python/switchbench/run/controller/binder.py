# SPDX-License-Identifier: BSD-3-Clause
"""PCI ports that are bound to DPDK for the time of a run (doc/how-to/bind.md).

On each host a program stands ready before the nodes start (`port_binding.py hold`). It binds when
the node asks for it, and restores when its input ends: also when this command is killed.
"""

from __future__ import annotations

import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...base import transports
from ...base.errors import ConfigurationError, RunError, SwitchbenchError
from ...base.model import Site
from ...base.programs import PORT_BINDING
from ..launch.base import BindingLauncher, Launcher

READY_LIMIT_S = 60.0  # a login, and the check of many devices
END_LIMIT_S = 90.0  # an engine that ends, drivers and links that come back


def hold_words(site: Site, node: Mapping[str, Any]) -> list[str]:
    """Return what the program on a host is to do for its node of the job document."""
    wanted = site.effective["bind"]
    devices = [
        port["pci"]
        for port in node["ports"]
        if "pci" in port and any(transports.of(name).raw for name in port["transports"])
    ]
    if not devices:
        return []
    words = ["hold", *dict.fromkeys(devices), "--driver", wanted["driver"]]
    if wanted.get("hugepages"):
        words += ["--hugepages", str(wanted["hugepages"])]
    return [*words, "--keep"] if wanted.get("restore") == "never" else words


class Binder:
    """The programs of a run's hosts."""

    def __init__(self) -> None:
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, site: Site, job: Mapping[str, Any], launcher: Launcher) -> None:
        """Start a program on each host with ports to bind, and wait until each is ready."""
        if "bind" not in job or not isinstance(launcher, BindingLauncher):
            return
        program = PORT_BINDING.read_bytes()
        for process, node in zip(site.processes, job["nodes"], strict=True):
            words = hold_words(site, node)
            if words:
                holder = self._holders[process.name] = launcher.port_binding(process, words)
                with suppress(BrokenPipeError):  # it has ended: its output says how
                    _write(holder, program)
        deadline_s = time.monotonic() + READY_LIMIT_S
        for host, holder in self._holders.items():
            assert holder.stdout is not None
            left_s = max(0.0, deadline_s - time.monotonic())
            if not select.select([holder.stdout], [], [], left_s)[0]:
                raise RunError(f"{host}: Python did not answer within {READY_LIMIT_S:.0f} s")
            if not holder.stdout.read(1):
                raise self._ended(host)

    def bind(self, host: str) -> None:
        """Bind the ports of a host."""
        if host not in self._holders:
            raise RunError(f"{host} asks for its PCI ports to be bound, which it should not")
        with suppress(BrokenPipeError):
            _write(self._holders[host], b"bind\n")

    def check(self) -> None:
        """Raise the error of a program that has ended."""
        for host, holder in self._holders.items():
            if holder.poll() is not None:
                raise self._ended(host)

    def close(self) -> Sequence[SwitchbenchError]:
        """Restore all ports; return what failed."""
        for holder in self._holders.values():
            assert holder.stdin is not None
            with suppress(BrokenPipeError):
                holder.stdin.close()
        deadline_s = time.monotonic() + END_LIMIT_S
        faults = []
        for host, holder in list(self._holders.items()):
            with suppress(subprocess.TimeoutExpired):
                holder.wait(max(0.0, deadline_s - time.monotonic()))
            fault = self._ended(host)
            if holder.returncode != 0:
                faults.append(fault)
        return faults

    def _ended(self, host: str) -> SwitchbenchError:
        """Let go of a program; return the error of one that failed."""
        holder = self._holders.pop(host)
        late = holder.poll() is None
        try:
            status = holder.wait(1)
        except subprocess.TimeoutExpired:
            holder.kill()
            status = holder.wait()
        assert holder.stderr is not None
        words = holder.stderr.read().decode(errors="replace").splitlines()
        for pipe in (holder.stdin, holder.stdout, holder.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        if words:
            return (ConfigurationError if status == 2 else RunError)(f"{host}: {words[-1]}")
        how = "did not end" if late else f"ended with status {status}"
        return RunError(
            f"{host}: the program that binds its PCI ports {how}: `switchbench restore` restores "
            "what it bound"
        )


def _write(holder: subprocess.Popen[bytes], text: bytes) -> None:
    assert holder.stdin is not None
    holder.stdin.write(text)
    holder.stdin.flush()
