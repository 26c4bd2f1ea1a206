# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench push`: the engine and all that it needs, to the hosts of a site."""

from __future__ import annotations

import argparse

from ..base.programs import ENGINE
from ..hosts import push
from ..run.launch.far import chosen
from ..run.launch.ssh import CURRENT, SHARED_FOLDER, OpenSsh, side_by_side
from .common import add_site, load_site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_site(parser)
    parser.add_argument("--privilege", choices=push.PRIVILEGES, help="instead of the site's")
    parser.add_argument("--to", metavar="FOLDER", help="another folder, the same on all hosts")


def main(args: argparse.Namespace) -> int:
    """Copy the engine; return the worst host's status."""
    site = load_site(args)
    wanted = push.order(site, args.privilege, args.to)
    results = push.push(site, chosen(site, args.nodes), wanted)
    for line in side_by_side(results):
        print(line)
    for note in _notes(OpenSsh.of(site), wanted):
        print(note)
    return max(result.status for result in results)


def _notes(way: OpenSsh, wanted: push.PushOrder) -> list[str]:
    """Return what the site must say for `run` to use what was pushed."""
    if wanted.folder not in ("", SHARED_FOLDER):
        engine = f"{wanted.folder}/{CURRENT}/{ENGINE}"
        known = way.engine == engine
    else:
        engine, known = ENGINE, way.engine == ENGINE
    notes = [] if known else [f"the site names another engine: give it `ssh: {{engine: {engine}}}`"]
    if wanted.privilege != way.privilege:
        notes.append(f"give the site `ssh: {{privilege: {wanted.privilege}}}`")
    return notes
