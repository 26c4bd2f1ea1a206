# SPDX-License-Identifier: BSD-3-Clause
"""Commands `help`, `explain` and `completion`, and the manual pages, made from the parser.

`python -m switchbench.cli.manual SHARE [ENGINE]` writes the files installed beside the Python
package (`meson install`, scripts/wheel): manual pages and completions below the folder SHARE, and
the engine with its libraries in the folder ENGINE.
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import shtab

from .. import __version__
from ..base.errors import SwitchbenchError, explained, titles
from .main import build_parser

_SUMMARY = "measure a network with every port busy at once"
# Completion of an argument, by its placeholder in help. Options with choices complete these.
_OFFERS = {
    **dict.fromkeys(("DIR", "[NAME=]DIR", "FOLDER", "RESULTS"), shtab.DIRECTORY),
    **dict.fromkeys(("FILE", "CONF", "SITE", "TOPOLOGY", "KEY"), shtab.FILE),
}
SHELLS = {
    "bash": "bash-completion/completions/switchbench",
    "zsh": "zsh/site-functions/_switchbench",
    "fish": "fish/vendor_completions.d/switchbench.fish",
}
"""Path of a shell's completion file below `share`."""


def help_command(args: argparse.Namespace) -> int:
    """Print the help of a command; exit with status 0, or 2 for an unknown command."""
    build_parser(args.commands).parse_args([*args.commands, "--help"])
    raise AssertionError("argparse ends after --help")


def explain_command(args: argparse.Namespace) -> int:
    """Print the explanation of a code or message, or all codes with their titles."""
    print(explained(" ".join(args.words)) if args.words else titles())
    return 0


def completion_command(args: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    print(script(build_parser(), args.shell))
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return a shell's completion script for the command of a parser."""
    for action in _actions(parser):
        if str(action.metavar) in _OFFERS:
            action.complete = _OFFERS[str(action.metavar)]  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of all its subparsers."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def command_pages(root: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield file name and text of switchbench(1), and of a manual page for each command.

    The pages have no date, so that the same source gives the same pages.
    """
    found = [one for one in root._actions if isinstance(one, argparse._SubParsersAction)]
    alone = copy.copy(root)  # without its commands, which have pages of their own
    alone._action_groups = [group for group in root._action_groups if group is not root._subparsers]
    names = [f"switchbench-{name}(1)" for name in found[0].choices]
    yield _page(alone, "switchbench", _SUMMARY, names)
    summaries = {one.dest: one.help or "" for one in found[0]._choices_actions}
    for name, parser in found[0].choices.items():
        yield _page(parser, f"switchbench-{name}", summaries[name], ["switchbench(1)"])


def _page(
    parser: argparse.ArgumentParser, name: str, summary: str, others: list[str]
) -> tuple[str, str]:
    from argparse_manpage.manpage import Manpage  # where packages are built

    parser = copy.copy(parser)
    epilog, parser.epilog = parser.epilog or "", None
    made = Manpage(parser, format="single-commands-section")
    made.prog, made.description = name, summary
    made.date, made.source, made.manual = "", f"Switchbench {__version__}", "Switchbench"
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fP", str(made).rstrip())
    if epilog:
        escaped = re.sub(r"^([.'])", r"\\&\1", epilog.replace("\\", "\\e"), flags=re.MULTILINE)
        text += f"\n.SH NOTES\n.nf\n{escaped}\n.fi"
    return f"{name}.1", f"{text}\n.SH SEE ALSO\n{', '.join(others)}\n"


def install(words: Sequence[str]) -> int:
    """Write manual pages, completions and the engine below SHARE, in `meson install`'s prefix."""
    from ..hosts.push import collect

    prefix = Path(os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", ""))
    share, *engines = map(Path, words)
    parser = build_parser()
    pages = {f"man/man1/{file}": text for file, text in command_pages(parser)}
    pages |= {place: script(parser, shell) for shell, place in SHELLS.items()}
    for place, text in pages.items():
        path = prefix / share / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        for engine in engines:
            collect().write(engine)
    except SwitchbenchError as error:
        print(f"switchbench.cli.manual: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:]))
