# SPDX-License-Identifier: BSD-3-Clause
"""The launchers: what each way to start nodes can do, for all who would otherwise ask for its name.

A further launcher is an entry here, its keys (config/schema.py) and its module (run/launch).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LauncherKind:
    """What planning and the commands ask of a launcher."""

    name: str
    in_lab: bool = False  # all nodes are on this machine and share its cores
    starts_nodes: bool = True  # `run` does; else people do
    is_far: bool = False  # on hosts of which some may be missing
    logs_in: bool = False  # hosts run other commands as well: push, doctor, bind


LAUNCHERS = (
    LauncherKind("lab", in_lab=True),
    LauncherKind("ssh", is_far=True, logs_in=True),
    LauncherKind("slurm", is_far=True),
    LauncherKind("command", is_far=True),
    LauncherKind("hand", starts_nodes=False),
)

_BY_NAME = {launcher.name: launcher for launcher in LAUNCHERS}

NAMES = tuple(_BY_NAME)
FAR = tuple(launcher.name for launcher in LAUNCHERS if launcher.is_far)


def of(name: str) -> LauncherKind:
    """Return the launcher of a name that was checked."""
    return _BY_NAME[name]
