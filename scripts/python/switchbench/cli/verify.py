# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench verify`: check what was measured, its clauses and its signature."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from .. import __version__
from ..analysis.data import Measured
from ..analysis.verify import VerifyCheck, VerifyOptions, verify
from ..base.errors import ConfigurationError
from ..records.directory import REPORT
from ..render.report import build

_MARKS = {True: "ok", False: "NO", None: "-"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    parser.add_argument(
        "--allowed-signers", metavar="FILE", type=Path, help="who may have signed; somebody must"
    )
    parser.add_argument(
        "--clauses", metavar="SHA256", help="the hash of the clauses that were agreed on"
    )
    parser.add_argument(
        "--no-again",
        action="store_false",
        dest="again",
        help="hashes and signature only: the verdict is not made again from the records",
    )


def main(args: argparse.Namespace) -> int:
    """Print a line for each check; what does not hold is a sentence and status 2."""
    failures = []
    checks = verify(args.directory, VerifyOptions(args.allowed_signers, args.clauses, args.again))
    for check in chain(checks, _report(args.directory) if args.again else ()):
        print(f"{_MARKS[check.holds]:3}{check.name:11}{check.words}")
        if check.holds is False:
            failures.append(check.words)
    if failures:
        raise ConfigurationError(f"{args.directory} can't be relied on: {'; '.join(failures)}")
    return 0


def _report(directory: Path) -> Iterator[VerifyCheck]:
    """Check that report.html is what these results give; made by another version it can't be."""
    path = directory / REPORT
    if not path.exists():
        return
    kept = path.read_text("utf-8", "replace")
    if kept == build.make(Measured.load(directory)).text:
        yield VerifyCheck("report", True, f"{REPORT} shows these results")
    elif f"reported with {__version__}." in kept:
        again = f"`switchbench report {directory}` makes it again"
        yield VerifyCheck("report", False, f"{REPORT} does not show these results: {again}")
    else:
        yield VerifyCheck("report", None, f"{REPORT} is of another version: not compared")
