# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare`: results beside each other."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base import quantities
from ..base.errors import ConfigurationError
from ..records.directory import replace_json
from ..render.printer import make_console
from .common import print_json, said

# Nothing but a percentage can be meant.
_PERCENT = replace(quantities.PERCENT, bare=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "results",
        metavar="[NAME=]DIR",
        nargs="+",
        help="results directories, those of one NAME the runs of one side; the others are compared "
        "with the first",
    )
    parser.add_argument(
        "--by", metavar="SETTING", help="compare the parts of results by this, e.g. transport"
    )
    parser.add_argument(
        "--question",
        metavar="SETTING",
        action="append",
        default=[],
        help="a setting that may differ, because it is what is asked about",
    )
    parser.add_argument("--baseline", metavar="NAME", help="compare with this one, not the first")
    parser.add_argument(
        "--confidence",
        metavar="PERCENT",
        type=said(lambda text: float(_PERCENT.parse(text))),
        default=95.0,
        help="of intervals (95%%)",
    )
    parser.add_argument("--all", action="store_true", help="every phase and flow, not the foremost")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write the report, one HTML file")
    parser.add_argument(
        "--json", metavar="FILE", help="write everything as JSON; -: print it alone"
    )


def main(args: argparse.Namespace) -> int:
    """Print the comparison; 2 where not all could be compared."""
    # With Arrow, which takes longer to load than all else.
    from ..compare import cases, comparison
    from ..render import comparison as shown

    if not 50.0 <= args.confidence < 100.0:
        raise ConfigurationError(f"--confidence {args.confidence:g}: takes 50 to less than 100 %")
    found = cases.load(args.results, args.by)
    if len(found) < 2:
        raise ConfigurationError(
            "there is one result only: name a second directory, or say --by SETTING (transport, "
            "load, size ...) to compare the parts of this one"
        )
    found = cases.with_baseline(found, args.baseline)
    most = None if args.all else comparison.CompareOptions.most_flows
    asked = comparison.CompareOptions(args.confidence / 100, frozenset(args.question), most)
    compared = comparison.compare(found, asked)
    status = 0 if compared.whole else ConfigurationError.status
    if args.html:
        shown.write(compared, args.html)
    value = compared.document()
    if args.json == "-":
        print_json(value, ascii_only=False)
    else:
        shown.show_comparison(compared, make_console(), everything=args.all)
        if args.json:
            replace_json(Path(args.json), value)
    if status:
        print(f"switchbench: {_why(compared)}", file=sys.stderr)
    return status


def _why(compared: Any) -> str:
    """Return one sentence for what could not be compared; the rest is in the output."""
    names = " and ".join(subject.name for subject in compared.subjects)
    differing = dict.fromkeys(one.setting for one in compared.differing)
    if differing:
        settings = ", ".join(differing)
        some = any(one.pairs for one in compared.compared)
        shown = "what can be compared is shown" if some else "nothing of them can be compared"
        return (
            f"{names} are not the same measurement: {settings} differs; {shown} (measure again "
            "with equal settings, or say --question SETTING where that is what you ask)"
        )
    if compared.damage:
        return f"not all could be read, and the rest was compared: {compared.damage[0]}"
    if any(subject.imported for subject in compared.subjects):
        return (
            f"nothing of {names} can be compared: no measure is in both at the same number of "
            "ranks and the same size (doc/how-to/compare.md)"
        )
    return f"nothing of {names} can be compared: no pattern is in both"
