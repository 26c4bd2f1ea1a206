# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench report`: a finished run as one HTML file, its figures as pictures.

Its flows as a tidy table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..analysis import sealing
from ..analysis.data import Measured
from ..base.errors import ConfigurationError
from ..records.directory import REPORT, replace_bytes
from ..render.printer import write_csv
from ..render.report import build
from ..render.tables import EVERY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="a run's results directory")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"the file to write (DIR/{REPORT})"
    )
    parser.add_argument(
        "--figures", metavar="FOLDER", type=Path, help="every figure as PNG and SVG (Chromium)"
    )
    parser.add_argument(
        "--table",
        metavar="FOLDER",
        type=Path,
        help="a row for each flow and phase, as CSV and Parquet, a codebook of its columns, and "
        "the report's tables as CSV",
    )


def main(args: argparse.Namespace) -> int:
    """Write what is asked for; 2 where not all of the results could be shown."""
    program = build.find_browser() if args.figures else ""
    path = args.out or args.directory / REPORT
    inside = path.resolve().is_relative_to(args.directory.resolve())
    if inside and sealing.is_signed(args.directory):
        raise ConfigurationError(f"{args.directory} is signed: name a file elsewhere with --out")
    measured = Measured.load(args.directory)
    report = build.make(measured)
    replace_bytes(path, report.text.encode())
    print(path)
    if args.figures:
        written = build.write_figures(path, args.figures, program)
        print(f"{args.figures}: {len(written)} files")
    if args.table:
        from ..analysis import tidy  # with Arrow, which takes longer to load than all else

        written = tidy.write(args.directory, measured.summary, args.table)
        written += write_csv(EVERY, measured.summary, args.table)
        for path in written:
            print(path)
    if inside:
        sealing.renew(args.directory)
    for sentence in report.damage:
        print(f"switchbench: {sentence}", file=sys.stderr)
    return ConfigurationError.status if report.damage else 0
