# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench sign`: a signature over all that a run left."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..analysis import sealing
from ..analysis.summary import NOT_ENDED
from ..base.errors import ConfigurationError
from ..records.directory import SUMMARY, load_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    parser.add_argument("--key", metavar="FILE", type=Path, required=True, help="of ssh-keygen")


def main(args: argparse.Namespace) -> int:
    """Sign what is there, if it is what the run left."""
    directory = args.directory
    if NOT_ENDED in load_summary(directory)["errors"]:
        raise ConfigurationError(f"{directory / SUMMARY} is half written: {NOT_ENDED}")
    sealing.try_key(args.key)
    if sealing.is_signed(directory):
        raise ConfigurationError(
            f"{directory} is signed already: {sealing.SIGNATURE}; move that away to sign again"
        )
    if (directory / sealing.MANIFEST).exists():
        sealed = sealing.load(directory)
        changed = list(sealing.differences(directory, sealed))
        if changed:
            raise ConfigurationError(f"{directory} is not signed: {'; '.join(changed)}")
    print(sealing.sign(directory, args.key))
    return 0
