# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench restore`: what was bound goes back to its kernel driver, as the journal has it."""

from __future__ import annotations

import argparse

from ..hosts import bind
from .common import add_site, load_site

EXAMPLES = """\
examples:
  switchbench restore                                  this machine
  switchbench restore --site hall2.yaml --nodes node[1-4]

For use after `bind`, and after a run whose program on the host was killed: other runs restore
their devices themselves. After a reboot there is nothing to restore but the journal
(doc/how-to/bind.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_site(parser)


def main(args: argparse.Namespace) -> int:
    """Restore on the hosts; without a configuration, here."""
    if args.conf is None and args.site is None:
        return bind.here(["restore"])
    site = load_site(args)
    return bind.carry_out(site, bind.restore_orders(site, args.nodes))
