# SPDX-License-Identifier: BSD-3-Clause
"""Hosts of tests that need none: sites of them, and programs that stand for ssh and others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from switchbench.base.model import Run, Site
from switchbench.config.read import check, document_of
from switchbench.plan.compile import compile_run

# Of an ssh that is a script: skips its options, so that `$host` and the words to be run are left.
SSH_HEAD = 'while [ "$1" != -- ]; do shift; done; host=$2; set -- sh -c "$3"'


def plan(folder: Path, missing: tuple[str, ...] = (), **keys: Any) -> Run:
    """Return a run of pairs on node1 to node4; `keys`: of the site, or `tests`, or a `lab`."""
    ports = {"e0": {"network": "n", "iface": "eth7", "line_rate": "1Gbit"}}
    hosts = {"launch": "ssh", "hosts": "node[1-4]", "ports": ports}
    site = {} if "lab" in keys else hosts
    tests = keys.pop("tests", [{"pattern": "pairs", "transport": "tcp", "repeat": 1}])
    path = folder / "conf.yaml"
    path.write_text(yaml.safe_dump({"switchbench": 1, "site": site | keys, "tests": tests}))
    return compile_run(check(document_of(path), missing))


def site(folder: Path, **keys: Any) -> Site:
    """Return the site of such a run."""
    return plan(folder, **keys).site


def program(path: Path, text: str) -> Path:
    """Return an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def in_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder where programs are looked for first."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def ssh_script(script: str) -> str:
    """Return a script of ssh that stays here; `$host` is the name of the host."""
    return f'#!/bin/sh\n{SSH_HEAD}\n{script}\nexec "$@"\n'
