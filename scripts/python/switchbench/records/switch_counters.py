# SPDX-License-Identifier: BSD-3-Clause
"""The switch's own counters, by a command of the user's: before the first trial, after the last.

The output is kept as it came. Lines that end in a whole number are compared: the text before it is
the counter's name. So the output of `ethtool -S`, `snmpwalk` and most switches' `show` commands
needs no translation.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ..base.errors import RunError
from ..base.model import SwitchCountersCommand
from .summary_form import Entry

BEFORE = "switch-counters-before.txt"
AFTER = "switch-counters-after.txt"

_COUNTER = re.compile(r"\s*(\S.*?)[\s:=]+(-?[0-9]+)\s*")


def read_counters(asked: SwitchCountersCommand, path: Path) -> None:
    """Run the command and keeps what it printed; RunError when it fails."""
    printed = run_command(asked, "switch_counters")
    try:
        path.write_bytes(printed)
    except OSError as error:
        raise RunError(f"can't write {path}: {error.strerror}") from error


def run_command(asked: SwitchCountersCommand, key: str) -> bytes:
    """Return what the command of this key of the configuration prints; RunError when it fails."""
    name = asked.command[0]
    try:
        done = subprocess.run(
            asked.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=asked.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{key}: {name} took more than {asked.timeout_s:g} s") from None
    except OSError as error:
        raise RunError(f"{key}: {name} can't be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        words = f": {said[-1]}" if said else ""
        raise RunError(f"{key}: {name} ended with status {done.returncode}{words}")
    return done.stdout


def parse_counters(text: str) -> dict[str, int]:
    """Return the counters of an output, by name; of equal names the last."""
    found = (_COUNTER.fullmatch(line) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in found if match}


def compare_counters(asked: SwitchCountersCommand | None, directory: Path) -> Entry | None:
    """Return the summary's `switch_counters`; None where no command was configured."""
    if asked is None:
        return None
    before, after = (_parsed(directory / name) for name in (BEFORE, AFTER))
    differences = None
    if before is not None and after is not None:
        differences = {
            name: after[name] - count
            for name, count in before.items()
            if name in after and after[name] != count
        }
    return {
        "command": list(asked.command),
        "before": BEFORE if before is not None else None,
        "after": AFTER if after is not None else None,
        "compared": len(before.keys() & after.keys()) if before and after else 0,
        "differences": differences,
    }


def _parsed(path: Path) -> dict[str, int] | None:
    try:
        return parse_counters(path.read_text("utf-8", errors="replace"))
    except OSError:
        return None
