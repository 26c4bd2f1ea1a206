# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench init`: write a configuration with comments, of options or of answers."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

import yaml

from ..base import node_names, transports
from ..base.errors import ConfigurationError
from ..config import Request, read
from ..plan.compile import compile_run

_TEXT = """\
# Made by `switchbench init`; all keys: doc/reference/configuration.md.
switchbench: 1

# Hosts that send and receive all at once, and their interface under test, or a lab on this machine.
site: {site}

# tcp needs no rights; dpdk sends raw frames and finds loss and disorder that TCP hides; udp; verbs.
transports: {transports}

# Of each port's line rate. `loads: [50%, 95%]` measures at several.
load: 95%

tests:
- {{pattern: pairs, partners: halves}}    # each half of the hosts to the other: half the bisection
- {{pattern: aapc}}                       # all to all, phase by phase: every pair of ports
{expect}"""
_EXPECT = """
# The contract: exit status 0 when every clause holds, 1 when one fails, 4 when one can't be judged.
expect:
- id: "1"
  clause: "Every port reaches {percent} of line rate"
  measure: percent_of_line              # doc/reference/measures.md has the others
  over: port                            # flow | port | phase | plan | run
  require: ">= {number}"
{loss}"""
_LOSS = """- id: "no-loss-{transport}"
  clause: "No frame is lost"
  where: {where:<31}# TCP retransmits what the network loses
  measure: lost_frames
  over: flow
  require: "== 0"
"""
_UNPRIVILEGED = next(one.name for one in transports.TRANSPORTS if one.kernel)  # needs no rights


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, default=Path("switchbench.yaml"),
        help="to write (switchbench.yaml)",
    )  # fmt: skip
    parser.add_argument("--lab", metavar="NAME", help="a lab on this machine, e.g. one-switch")
    parser.add_argument("--hosts", metavar="SET", help="hosts that ssh reaches, or a file of them")
    parser.add_argument("--iface", metavar="NAME", help="the hosts' interface under test")
    parser.add_argument(
        "--transport", metavar="NAME,...", help="of dpdk, packet, tcp, udp and verbs (tcp)"
    )
    parser.add_argument("--accept", metavar="PERCENT", help="of line rate at each port, e.g. 94%%")


def main(args: argparse.Namespace) -> int:
    """Write the configuration, and remove it where `run` would not take it."""
    if args.file.exists():
        raise ConfigurationError(f"{args.file} is there already: name another file")
    _complete(args)
    text = _text(args)
    try:
        args.file.write_text(text)
    except OSError as error:
        raise ConfigurationError(f"{args.file} can't be written: {error.strerror}") from None
    try:
        compile_run(read(Request(args.file)))
    except ConfigurationError:
        args.file.unlink()
        raise
    print(f"{args.file}: see it with `switchbench plan {args.file}`, then run it")
    return 0


def _complete(args: argparse.Namespace) -> None:
    """Ask for what no option says, where somebody can answer."""
    if args.lab is not None and (args.hosts is not None or args.iface is not None):
        raise ConfigurationError(
            "--lab says already where it runs: leave it out, or --hosts and --iface"
        )
    asks = args.lab is None and args.hosts is None
    if asks and not sys.stdin.isatty():
        raise ConfigurationError("init: give --lab NAME, or --hosts SET with --iface NAME")
    if asks:
        args.hosts = _ask("Hosts that ssh reaches, e.g. node[1-8] (empty: a lab here)")
        args.lab = None if args.hosts else "one-switch"
    if args.hosts and args.iface is None:
        args.iface = _ask("Their interface under test, e.g. enp3s0") if asks else None
    if args.hosts and not args.iface:
        raise ConfigurationError("--iface is missing: hosts and their interface go together")
    if asks:
        args.transport = args.transport or _ask("Transports of dpdk, packet, tcp, udp, verbs (tcp)")
        args.accept = args.accept or _ask("Accept from what percent of line rate (empty: any)")


def _ask(question: str) -> str:
    try:
        return input(f"{question}: ").strip()
    except EOFError:
        raise ConfigurationError("init: no answer: give options instead") from None


def _text(args: argparse.Namespace) -> str:
    """Return the configuration of the arguments."""
    if args.hosts:
        site = {"hosts": node_names.hosts_of_option(args.hosts), "iface": args.iface}
    else:
        site = {"lab": args.lab}
    named = (args.transport or _UNPRIVILEGED).replace(" ", "").split(",")
    expect = ""
    if args.accept:
        number = _percentage(args.accept)
        counted = (one.name for one in transports.TRANSPORTS if one.frames and one.name in named)
        loss = "".join(
            _LOSS.format(transport=name, where=f"{{transport: {name}}}") for name in counted
        )
        expect = _EXPECT.format(percent=f"{number} %", number=number, loss=loss)
    return _TEXT.format(site=_flow(site), transports=_flow(named), expect=expect)


def _percentage(accept: str) -> str:
    """Return the number of `--accept`; ConfigurationError unless it is above 0 and up to 100."""
    number = accept.removesuffix("%").strip()
    with suppress(ValueError):
        if 0 < float(number) <= 100:
            return number
    raise ConfigurationError(
        f"--accept {accept}: give a percentage above 0 and up to 100, e.g. 94%"
    )


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=1_000_000, sort_keys=False).strip()
