# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench bundle`: one archive for machines without network or without our packages."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base.errors import ConfigurationError, RunError
from ..packaging import bundle
from .main import build_parser

EXAMPLES = """\
examples:
  switchbench bundle                               ./switchbench-VERSION-MACHINE.tar.gz
  switchbench bundle --out /media/stick/sb.tar.gz

There: tar -xzf sb.tar.gz && switchbench-*/install /opt/switchbench

The archive brings its own C library, loader, DPDK drivers, RDMA providers and Python: it runs on
any Linux of this machine's architecture, and needs no network (doc/how-to/install.md)."""

_MIB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the archive, instead of one in this folder"
    )


def main(args: argparse.Namespace) -> int:
    """Makes it and says where it is."""
    archive: Path = args.out or bundle.default_path()
    if not archive.parent.is_dir() or archive.is_dir():
        raise ConfigurationError(f"bundle: {archive} can't be written: give a file in a folder")
    try:
        size = bundle.write(archive, build_parser())
    except OSError as error:
        raise RunError(f"bundle: {error.filename or archive}: {error.strerror}") from None
    print(f"{archive}: {size / _MIB:.0f} MiB")
    return 0
