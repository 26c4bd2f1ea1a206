# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages of the command and its commands, made from the parser by argparse-manpage."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Iterator

from argparse_manpage.manpage import Manpage

from .. import __version__

_SUMMARY = "measure a network with every port busy at once"


def command_pages(root: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of switchbench(1), and of a page for each command.

    The same source gives the same pages: they have no date.
    """
    found = [one for one in root._actions if isinstance(one, argparse._SubParsersAction)]
    alone = copy.copy(root)  # its commands have pages of their own
    alone._action_groups = [group for group in root._action_groups if group is not root._subparsers]
    names = [f"switchbench-{name}(1)" for name in found[0].choices]
    yield _page(alone, "switchbench", _SUMMARY, names)
    summaries = {one.dest: one.help or "" for one in found[0]._choices_actions}
    for name, parser in found[0].choices.items():
        yield _page(parser, f"switchbench-{name}", summaries[name], ["switchbench(1)"])


def _page(
    parser: argparse.ArgumentParser, name: str, summary: str, others: list[str]
) -> tuple[str, str]:
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
