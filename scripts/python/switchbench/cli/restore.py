# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench restore`: what was bound goes back to its kernel driver, as the journal has it."""

from __future__ import annotations

import argparse

from ..hosts import bind
from .common import add_site, load_site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_site(parser)


def main(args: argparse.Namespace) -> int:
    """Restore on the hosts; without a configuration, here."""
    if args.conf is None and args.site is None:
        return bind.here(["restore"])
    site = load_site(args)
    return bind.carry_out(site, bind.restore_orders(site, args.nodes))
