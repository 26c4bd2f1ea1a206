# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for several commands: reading the configuration and options, printing JSON."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from ..base import format
from ..base.errors import ConfigurationError, code_by_module, code_by_words
from ..base.model import Run, Site
from ..base.programs import configurations
from ..base.quantities import duration_ns
from ..config import read
from ..config.read import SITE_OPTIONS
from ..plan.budget import fitted, longest_s
from ..plan.compile import compile_run, refuse_unrunnable


def names_site(args: argparse.Namespace) -> bool:
    """Return true where the arguments name a site (hosts or a lab).

    Raise ConfigurationError where they do not, but have options that need a site.
    """
    given = [option for option, _ in args.options]
    if args.conf or SITE_OPTIONS.intersection(given):
        return True
    given += ["--nodes"] if args.nodes else []
    if given:
        raise ConfigurationError(
            f"{given[0]} applies to the hosts of a site: also give --site FILE or --hosts SET and "
            "--iface NAME"
        )
    return False


def configuration(text: str) -> Path:
    """Return the path of a configuration: the file `text`, else the example with this name."""
    path = Path(text)
    if not path.exists():
        name = text.removeprefix("conf/").removesuffix(".yaml")
        example = configurations() / f"{name}.yaml"
        if example.is_file():
            return example
    return path


def load_run(args: argparse.Namespace) -> Run:
    """Return the run made from the configuration and options in the arguments."""
    return compile_run(read(args.conf, args.options))


def load_site(args: argparse.Namespace) -> Site:
    """Return the site that the arguments name, with or without a configuration for a run."""
    if args.conf is None and "--profile" not in dict(args.options):
        args.options = [*args.options, ("--profile", "quick")]
    return load_run(args).site


def load_runnable(args: argparse.Namespace) -> Run:
    """Return the run made from the arguments, after a check that it can start on this machine.

    `plan` and `run` both call this function, so they reject the same configurations.
    """
    reading = read(args.conf, args.options)
    run = compile_run(reading)
    if getattr(args, "locate", False):
        run = replace(run, locate_s=LOCATE_S)
    if getattr(args, "budget", None) is not None:
        fit = fitted(reading, run, args.budget)
        if fit.words:
            print(
                f"the whole run takes {format.human(longest_s(run))}; the part within --budget "
                f"takes {format.human(longest_s(fit.run))}: {fit.words}",
                file=sys.stderr,
            )
        reading, run = fit.reading, fit.run
    refuse_unrunnable(reading, run)
    return run


LOCATE_S = 60.0  # time for the trials of --locate


def seconds(text: str) -> float:
    """Parse a duration such as `3h` to seconds."""
    return duration_ns(text) / 1e9


def say_error(sentence: str, package: str) -> None:
    """Print an error message and its code, for a command that ends without an exception."""
    code = code_by_words(sentence) or code_by_module(package)
    print(f"switchbench: {sentence} [{code}]", file=sys.stderr)


TYPES = {
    "CONF": configuration,
    "--budget": seconds,
}
"""Parsers of the arguments that several commands take."""


def print_json(value: object) -> None:
    """Print one JSON value on standard output."""
    json.dump(value, sys.stdout, indent=1)
    print()
