# SPDX-License-Identifier: BSD-3-Clause
"""Commands on results: `table`, `report`, `verify`, `sign`, `compare`, `import`."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from .. import __version__
from ..analysis import sealing
from ..analysis.summary import NOT_ENDED, remade
from ..base.errors import ConfigurationError
from ..config.fields import whole
from ..importers import directory
from ..records.directory import (
    REPORT,
    SUMMARY,
    default_path,
    load_summary,
    read_plan,
    replace_bytes,
    replace_json,
)
from ..records.results import load, write_hgrm
from ..records.summary_form import checked
from ..render.printer import make_console, whole_tables
from ..render.tables import every
from ..render.terminal import SummaryPrinter, show_imported
from .common import print_json, say_error

# --- table ----------------------------------------------------------------------------------------


def table_command(args: argparse.Namespace) -> int:
    """Print a run's tables; return the run's exit status, or 2 for a damaged summary."""
    from ..analysis.data import whole_summary

    if args.again:
        begun = load_summary(args.directory)
        sealing.refuse_missing(args.directory)
        summary = remade(read_plan(args.directory), args.directory, begun, keep=True)
        checked(summary, args.directory / SUMMARY)  # some values are taken from the old summary
        replace_json(args.directory / SUMMARY, summary)
        if (args.directory / REPORT).exists():
            from ..render.report import build

            build.write(args.directory)
        sealing.seal(args.directory)
    damage: list[str] = []
    shown = whole_summary(args.directory, damage)
    if args.json or args.csv:
        known = {spec.name: spec for spec in every()}
        names = list(known) if args.only is None else args.only.split(",")
        if unknown := [name for name in names if name not in known]:
            raise ConfigurationError(
                f"--only {unknown[0]}: there is no such table (tables: {', '.join(known)})"
            )
        found = list(whole_tables([known[name] for name in names], shown))
        if args.json:
            tables = {table.name: table.json() for table in found}
            print_json({"run": shown["run"].get("id"), "tables": tables})
        else:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            for number, table in enumerate(found):
                if len(names) > 1:
                    print(f"{chr(10) * (number > 0)}# {table.name}")
                writer.writerows(table.lines())
    elif args.only is not None:
        raise ConfigurationError("--only applies to --json and --csv: add one of these options")
    else:
        console = make_console()
        show_imported(shown, console, everything=args.all)
        SummaryPrinter(shown, console, args.all).print(str(args.directory))
    if damage and damage[0] != NOT_ENDED:
        raise ConfigurationError(
            f"{'; '.join(damage)} (the option --again saves the rebuilt {SUMMARY})"
        )
    return int(shown["exit_status"])


# --- report ---------------------------------------------------------------------------------------


def report_command(args: argparse.Namespace) -> int:
    """Write the report of a run; return 2 where parts of the results could not be shown."""
    from ..analysis.data import Measured
    from ..render.report import build

    program = build.find_browser() if args.pdf else ""
    path = args.out or args.directory / REPORT
    inside = path.resolve().is_relative_to(args.directory.resolve())
    if inside and sealing.is_signed(args.directory):
        raise ConfigurationError(
            f"{args.directory} is signed, so a report in it would break the signature: name a file "
            "elsewhere with --out"
        )
    report = build.make(Measured.load(args.directory))
    replace_bytes(path, report.text.encode())
    print(path)
    if args.pdf:
        build.write_pdf(path, args.pdf, program)
        print(args.pdf)
    if args.hgrm:
        for path in write_hgrm(load(args.directory), args.hgrm):
            print(path)
    for sentence in report.damage:
        say_error(sentence, "analysis")
    if inside:
        sealing.renew(args.directory)
    return ConfigurationError.status if report.damage else 0


# --- verify ---------------------------------------------------------------------------------------


_MARKS = {True: "ok", False: "NO", None: "-"}


def verify_command(args: argparse.Namespace) -> int:
    """Check that results are unchanged, and print a line per check.

    Raise ConfigurationError with a sentence per failed check.
    """
    from ..analysis.sealing import verify

    failures = []
    made = verify(args.directory, args.allowed_signers, args.clauses, args.again)
    checks = ((one.name, one.holds, one.words) for one in made)
    for name, holds, words in chain(checks, _check_report(args.directory) if args.again else ()):
        print(f"{_MARKS[holds]:3}{name:11}{words}")
        if holds is False:
            failures.append(words)
    if failures:
        raise ConfigurationError(f"{args.directory} is not trustworthy: {'; '.join(failures)}")
    return 0


def _check_report(directory: Path) -> Iterator[tuple[str, bool | None, str]]:
    """Yield name, result and text of the check that report.html equals a rebuilt report."""
    from ..analysis.data import Measured
    from ..render.report import build

    path = directory / REPORT
    if not path.exists():
        return
    kept = path.read_text("utf-8", "replace")
    if kept == build.make(Measured.load(directory)).text:
        yield "report", True, f"{REPORT} shows these results"
    elif f"reported with {__version__}." in kept:
        again = f"`switchbench report {directory}` makes it again"
        yield "report", False, f"{REPORT} does not show these results: {again}"
    else:
        yield "report", None, f"{REPORT} is of another version: not compared"


# --- sign -----------------------------------------------------------------------------------------


def sign_command(args: argparse.Namespace) -> int:
    """Sign a results directory that is unchanged since its run; ConfigurationError otherwise."""
    directory = args.directory
    if NOT_ENDED in load_summary(directory)["errors"]:
        raise ConfigurationError(
            f"{directory / SUMMARY} is incomplete, so it can't be signed: {NOT_ENDED}"
        )
    sealing.try_key(args.key)
    if sealing.is_signed(directory):
        raise ConfigurationError(
            f"{directory} is signed already: move {sealing.SIGNATURE} away to sign again"
        )
    if (directory / sealing.MANIFEST).exists():
        sealed = sealing.load(directory)
        changed = list(sealing.differences(directory, sealed))
        if changed:
            raise ConfigurationError(
                f"{directory} can't be signed, because it changed after its run: "
                f"{'; '.join(changed)}"
            )
    print(sealing.sign(directory, args.key))
    return 0


# --- compare --------------------------------------------------------------------------------------


def compare_command(args: argparse.Namespace) -> int:
    """Print a comparison of several results; return 2 where parts could not be compared."""
    # Arrow takes longer to load than all other modules.
    from ..compare import cases, comparison
    from ..render import comparison as shown

    if args.history:
        return _history(args)
    found = cases.load(args.results, args.by)
    if len(found) < 2:
        raise ConfigurationError(
            "there is one result only: name a second directory, or say --by SETTING (transport, "
            "load, size ...) to compare the parts of this one"
        )
    compared = comparison.compare(found)
    show = partial(shown.show_comparison, compared, make_console())
    _print_or_write(compared.document(), args.json, show)
    if compared.whole:
        return 0
    say_error(_why_status(compared), "compare")
    return ConfigurationError.status


def _history(args: argparse.Namespace) -> int:
    """Print how measures changed over several results; return 1 where a measure became worse."""
    from ..compare.comparison import history
    from ..render import comparison as shown

    if args.by:
        raise ConfigurationError("--history can't be combined with --by: leave one out")
    found = history(args.results)
    _print_or_write(found.document(), args.json, partial(shown.show_history, found, make_console()))
    if found.unlike or not found.comparison.whole:
        unlike = [*found.unlike, *(one.sentence for one in found.comparison.differing)]
        why = f"these are not runs of one measurement: {unlike[0]}" if unlike else ""
        if damage := found.comparison.damage:
            why = f"not all could be read, and the rest was compared: {damage[0]}"
        say_error(why or _why_status(found.comparison), "compare")
        return ConfigurationError.status
    return 1 if found.worse else 0


def _print_or_write(value: dict[str, object], file: str | None, show: Callable[[], None]) -> None:
    """Print `value` as JSON if the file is `-`; else show tables, and write the file if given."""
    if file == "-":
        print_json(value)
        return
    show()
    if file:
        replace_json(Path(file), value)


def _why_status(compared: Any) -> str:
    """Return a sentence that says why a comparison is incomplete."""
    names = " and ".join(subject.name for subject in compared.subjects)
    differing = dict.fromkeys(one.setting for one in compared.differing)
    if differing:
        settings = ", ".join(differing)
        some = any(one.pairs for one in compared.compared)
        shown = "what can be compared is shown" if some else "nothing of them can be compared"
        return (
            f"{names} are not the same measurement: {settings} differs; {shown} (measure again "
            "with equal settings, or both settings in one run: compare DIR --by SETTING)"
        )
    if compared.damage:
        return f"not all could be read, and the rest was compared: {compared.damage[0]}"
    if any(subject.imported for subject in compared.subjects):
        return (
            f"nothing of {names} can be compared: no measure is in both at the same number of "
            "ranks and the same size (doc/how-to/compare.md)"
        )
    return f"nothing of {names} can be compared: no pattern is in both"


# --- import ---------------------------------------------------------------------------------------


TYPES = {
    "--json": str,
    "--ranks": whole(1, 1 << 20, "the number of processes"),
}


def import_command(args: argparse.Namespace) -> int:
    """Write a results directory from output files of other programs, and print its values."""
    out = args.out or default_path("import")
    command = ["switchbench", "import", *map(str, args.files), "--out", str(out)]
    command += ["--ranks", str(args.ranks)] if args.ranks else []
    warnings = directory.write(args.files, out, args.ranks, command)
    show_imported(load_summary(out), make_console(), everything=args.all)
    for sentence in warnings:
        print(f"switchbench: {sentence}", file=sys.stderr)
    print(out)
    return 0
