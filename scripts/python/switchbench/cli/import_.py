# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench import`: other programs' results as a results directory of ours."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..importers import directory
from ..records.directory import default_path, load_summary
from ..render.printer import make_console
from ..render.terminal import show_imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="what a program wrote")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="a new results directory (results/TIME-import)"
    )
    parser.add_argument(
        "--ranks", metavar="N", type=_count, help="processes, of OSU's tests that do not say it"
    )
    parser.add_argument("--all", action="store_true", help="show every figure that was read")


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 1 << 20:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of processes")
    return int(word)


def main(args: argparse.Namespace) -> int:
    """Write the directory, and print what is in it."""
    out = args.out or default_path("import")
    command = ["switchbench", "import", *map(str, args.files), "--out", str(out)]
    command += ["--ranks", str(args.ranks)] if args.ranks else []
    warnings = directory.write(args.files, out, args.ranks, command)
    show_imported(load_summary(out), make_console(), everything=args.all)
    for sentence in warnings:
        print(f"switchbench: {sentence}", file=sys.stderr)
    print(out)
    return 0
