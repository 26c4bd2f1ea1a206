# SPDX-License-Identifier: BSD-3-Clause
"""Commands `plan`, which prints trials and flows, and `init`, which writes a configuration."""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import yaml

from ..base import quantities, transports
from ..base.errors import ConfigurationError
from ..base.source import write_text
from ..config import read
from ..config.read import SITE_OPTIONS, document_of
from ..plan import documents
from ..plan.compile import compile_run
from ..plan.listing import listing
from ..render.printer import make_console
from ..render.terminal import show_plan
from .common import TYPES as TYPES
from .common import load_runnable, print_json

# --- plan -----------------------------------------------------------------------------------------


def plan_command(args: argparse.Namespace) -> int:
    """Print the plan of a run; with --job, write the job file for nodes started by hand."""
    run = load_runnable(args)
    if run.searches:
        if args.job is not None:
            raise ConfigurationError(
                "--job: not possible for a suite, which chooses its loads while it runs: write "
                "`tests` with fixed loads"
            )
        print(f"suite {run.suite}: adaptive: starts at the loads below", file=sys.stderr)
        times = zip(run.searches, run.estimates_s, strict=True)
        trials = tuple(replace(trial, expected_s=took_s) for trial, took_s in times)
        run = replace(run, trials=trials, searches=(), estimates_s=())
    if args.job is not None:
        job = documents.hand_job(run, time.strftime("hand-%Y%m%d-%H%M%S"))
        write_text(args.job, job, is_secret=True)
        print(f"{args.job}: the job, with the run's key in it: mode 0600", file=sys.stderr)
    plan = listing(run, everything=args.all or args.json, in_words=not args.json)
    if args.json:
        print_json(plan)
    else:
        show_plan(plan, make_console(), args.all)
    return 0


# --- init -----------------------------------------------------------------------------------------


# Templates of a new configuration: the whole text, its part `expect`, and a clause on loss.
_PARTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("init.toml").read_text("utf-8"))
# the transport that needs no privilege
_UNPRIVILEGED = next(one.name for one in transports.TRANSPORTS if one.kernel)


def init_command(args: argparse.Namespace) -> int:
    """Write a new configuration; remove the file where `run` would reject it."""
    args.file = args.file or Path("switchbench.yaml")
    if args.file.exists():
        raise ConfigurationError(f"{args.file} exists already: name another file")
    # The options that set keys; those for a site that are missing are asked for.
    given = {"--transport": _UNPRIVILEGED, **dict(args.options)}
    if not SITE_OPTIONS & given.keys():
        if not sys.stdin.isatty():
            raise ConfigurationError(
                "init: the network is not named, and there is no terminal to ask: give --lab NAME, "
                "or --hosts SET with --iface NAME"
            )
        given["--hosts"] = _ask("Hosts that ssh reaches, e.g. node[1-8] (empty: a lab here)")
        if given["--hosts"]:
            given["--iface"] = _ask("Interface under test of these hosts, e.g. enp3s0")
        else:
            given["--lab"] = "one-switch"
        if "--transport" not in dict(args.options):
            names = _ask("Transports, from dpdk, packet, tcp, udp and verbs (default: tcp)")
            given["--transport"] = names.replace(" ", "") or _UNPRIVILEGED
        question = "Required percent of line rate at each port (empty: none)"
        args.accept = args.accept or _ask(question)
        given = {option: text for option, text in given.items() if text}
    made = document_of(None, list(given.items())).data
    site, named = made["site"], made["transports"]
    expect = ""
    if args.accept:
        share = quantities.percentage(f"{args.accept.removesuffix('%').strip()}%")
        if share is None or not 0 < share <= 100:
            raise ConfigurationError(
                f"--accept {args.accept}: give a percentage above 0 and up to 100, e.g. 94%"
            )
        number = f"{share:f}"
        loss = "".join(
            _PARTS["loss"].format(transport=one.name, where=f"{{transport: {one.name}}}")
            for one in transports.TRANSPORTS
            if one.frames and one.name in named
        )
        expect = _PARTS["expect"].format(percent=f"{number} %", number=number, loss=loss)
    text = _PARTS["text"].format(site=_flow(site), transports=_flow(named), expect=expect)
    write_text(args.file, text)
    try:
        compile_run(read(args.file))
    except ConfigurationError:
        args.file.unlink()
        raise
    print(f"{args.file}: see it with `switchbench plan {args.file}`, then run it")
    return 0


def _ask(question: str) -> str:
    try:
        return input(f"{question}: ").strip()
    except EOFError:
        raise ConfigurationError(
            "init: the input ended before the answers: give --lab NAME, or --hosts SET --iface NAME"
        ) from None


def _flow(value: object) -> str:
    """Return a value as one line of YAML."""
    return yaml.safe_dump(value, default_flow_style=True, width=1_000_000, sort_keys=False).strip()
