# SPDX-License-Identifier: BSD-3-Clause
"""What commands have in common: which configuration is meant, and how JSON is printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..base import node_names
from ..base.errors import ConfigurationError
from ..base.model import Run, Site
from ..base.programs import configurations
from ..config import Request, read
from ..plan.compile import compile_run, refuse_unrunnable
from ..plan.documents import RateError, check_lab_rates


def said(parse: Callable[[str], float]) -> Callable[[str], float]:
    """Return an option's type that says what is wrong in the parser's own words."""

    def checked(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


_OPTIONS = (
    *("--lab", "--hosts", "--iface", "--suite", "--pattern", "--transport", "--load", "--duration"),
)


def _options(args: argparse.Namespace) -> Iterator[tuple[str, str, Any]]:
    """Option, key of the configuration and value of those that were given."""
    given = {name: getattr(args, name[2:], None) for name in _OPTIONS}
    if given["--lab"] and given["--hosts"]:
        raise ConfigurationError("--hosts: --lab says already where it runs: give one of them")
    if bool(given["--hosts"]) != bool(given["--iface"]):
        missing = "--iface" if given["--hosts"] else "--hosts"
        raise ConfigurationError(f"{missing} is missing: hosts and their interface go together")
    if given["--lab"]:
        yield f"--lab {given['--lab']}", "site", {"lab": given["--lab"]}
    if given["--hosts"]:
        site = {"hosts": node_names.hosts_of_option(given["--hosts"]), "iface": given["--iface"]}
        yield f"--hosts {given['--hosts']}", "site", site
    if given["--transport"] is not None:
        names = given["--transport"].split(",")
        yield f"--transport {given['--transport']}", "transports", names
    for name, key in (
        ("--suite", "suite"),
        ("--pattern", "pattern"),
        ("--load", "load"),
        ("--duration", "window"),
    ):
        if given[name] is not None:
            yield f"{name} {given[name]}", key, given[name]


def names_site(args: argparse.Namespace) -> bool:
    """Return whether the arguments name a site.

    ConfigurationError where they ask for something of one that they do not name.
    """
    if any((args.conf, args.site, args.lab, args.hosts)):
        return True
    given = [name for name in (*_OPTIONS, "--nodes", "--profile") if getattr(args, name[2:], None)]
    given += ["--set"] if args.assignments else []
    if given:
        raise ConfigurationError(
            f"{given[0]} is about the hosts of a site: give --site FILE or --hosts SET --iface "
            "NAME as well"
        )
    return False


def request(args: argparse.Namespace, without: tuple[str, ...] = ()) -> Request:
    """Return what the arguments ask for, without some hosts."""
    options = tuple(_options(args))
    return Request(args.conf, args.assignments, args.site, args.profile, without, options)


def configuration(text: str) -> Path:
    """Return the file, or the example of that name where there is no such file."""
    path = Path(text)
    if not path.exists():
        name = text.removeprefix("conf/").removesuffix(".yaml")
        example = configurations() / f"{name}.yaml"
        if example.is_file():
            return example
    return path


def load_run(args: argparse.Namespace, without: tuple[str, ...] = ()) -> Run:
    """Read and compile the configuration that the arguments name, without some hosts."""
    return compile_run(read(request(args, without)))


def load_site(args: argparse.Namespace) -> Site:
    """Return the site of the configuration; one alone is enough, as nothing is run."""
    alone = args.conf is None and (args.site or args.lab or args.hosts)
    if alone and args.profile is None:
        args.profile = "quick"
    return load_run(args).site


def load_runnable(args: argparse.Namespace) -> Run:
    """Return the run, one that can start here: `plan` and `run` refuse the same."""
    reading = read(request(args))
    run = compile_run(reading)
    refuse_unrunnable(reading, run)
    try:
        check_lab_rates(run)
    except RateError as error:
        path = reading.tests[error.trial.test].path
        raise reading.document.problem(path, str(error)) from None
    return run


def print_json(value: object, ascii_only: bool = True) -> None:
    """Print one JSON value on standard output."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=ascii_only)
    print()
