# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench bind`: PCI devices leave their kernel driver for DPDK, until `restore`."""

from __future__ import annotations

import argparse

from ..hosts import bind
from .common import add_site, load_site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_site(parser)
    parser.add_argument(
        "--driver",
        choices=("vfio-pci", "uio_pci_generic", "igb_uio"),
        help="instead of the site's",
    )


def main(args: argparse.Namespace) -> int:
    """Bind the ports of the hosts."""
    site = load_site(args)
    return bind.carry_out(site, bind.bind_orders(site, args.nodes, args.driver))
