# SPDX-License-Identifier: BSD-3-Clause
"""Launcher of nodes in a lab of network namespaces on this machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from ... import labs as lab
from ...base.errors import RunError
from ...base.model import Process, Site
from ...labs import namespaces, switches
from .far import Launcher, piped


class LabLauncher(Launcher):
    """Launcher that makes a lab for one run, locks it, and removes it afterwards.

    A lab made by `switchbench lab up` is used and kept.
    """

    def __init__(self, site: Site) -> None:
        """Store the site without reading or making anything."""
        self._site = site
        self._stack = ExitStack()
        self._lab: lab.Lab | None = None

    def __enter__(self) -> Self:
        """Make the lab; ConfigurationError where it is in use or something is missing."""
        with ExitStack() as stack:
            topology = lab.load(self._site.lab or "", self._site.lab_overrides)
            namespaces.enter_user_namespace()
            self._lab = stack.enter_context(lab.session(topology))
            if topology.model is not None:
                switches.clear(self._lab.name, topology)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the lab with every process in it."""
        try:
            self._stack.close()
        except lab.LabError as problem:
            raise RunError(f"{problem}; remove the lab with `switchbench lab down`") from problem

    def check(self) -> None:
        """Raise LabError where a modelled switch has ended."""
        if self._lab is not None and self._lab.topology.model is not None:
            switches.check(self._lab.name, self._lab.topology)

    def keep_truth(self, folder: Path) -> None:
        """Write the counters of the lab's modelled switch, if there is one, into `folder`."""
        if self._lab is None or self._lab.topology.model is None:
            return
        records = switches.report(self._lab.name, self._lab.topology)
        with (folder / switches.TRUTH).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def start(self, process: Process, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a node process in the network namespace of its first port.

        The lab finds its processes by their namespaces. A node with several ports enters the other
        namespaces by itself.
        """
        if self._lab is None:
            raise RuntimeError("the lab is not up")
        return piped(command, partial(self._lab.popen, process.ports[0].host))
