# SPDX-License-Identifier: BSD-3-Clause
"""Launchers, which start node processes: one for each kind of site."""

from __future__ import annotations

from collections.abc import Callable

from ...base.errors import ConfigurationError
from ...base.model import Site
from .command import CommandLauncher
from .far import FarLauncher, Launcher
from .lab import LabLauncher
from .slurm import SlurmLauncher
from .ssh import SshLauncher

_LAUNCHERS: dict[str, Callable[[Site], Launcher]] = {
    "lab": LabLauncher,
    "ssh": SshLauncher,
    "slurm": SlurmLauncher,
    "command": CommandLauncher,
}


def launcher_for(site: Site) -> Launcher:
    """Return the launcher of a site; ConfigurationError where `run` cannot start its nodes."""
    launcher = _LAUNCHERS.get(site.launch)
    if launcher is not None:
        return launcher(site)
    raise ConfigurationError(
        "launch: hand: `run` can't start the nodes of this site: write the job with "
        "`switchbench plan CONF --job FILE` and start switchbench-node with it on each host"
    )


__all__ = ["FarLauncher", "Launcher", "launcher_for"]
