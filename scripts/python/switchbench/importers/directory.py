# SPDX-License-Identifier: BSD-3-Clause
"""A results directory made of other programs' files.

Their figures as a summary, and the files themselves, so that nothing of what they say is lost.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

from .. import __version__
from ..base.errors import ConfigurationError
from ..records.directory import SCHEMA, RunDirectory, replace_bytes
from ..records.document.summary import NOTHING_LOCATED, ImportedEntry, SummaryDocument
from . import kinds

ORIGINALS = "originals"


def write(files: Sequence[Path], out: Path, ranks: int | None, command: Sequence[str]) -> list[str]:
    """Read all files before it makes `out`: of a file that can't be read nothing stays.

    Returns what their programs warn of.
    """
    contents = [kinds.content_of(path) for path in files]
    parts = [kinds.read(*each) for each in zip(files, repeat(ranks), contents)]
    directory = RunDirectory(out)
    entries: list[ImportedEntry] = []
    for path, content, part in zip(files, contents, parts, strict=True):
        file = _keep(path, content, out)
        entries += [figure.entry(file) for figure in part.figures]
    warnings = [sentence for part in parts for sentence in part.warnings]
    directory.write_summary(_summary(out, files, entries, warnings, command))
    return warnings


def _keep(path: Path, content: bytes, out: Path) -> str:
    """Put a file among the originals, of equal names each with its number; return where."""
    folder = out / ORIGINALS
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be kept in {folder}: {error.strerror}") from error
    place, number = folder / path.name, 1
    while place.exists():
        number += 1
        place = folder / f"{path.stem}-{number}{path.suffix}"
    replace_bytes(place, content)
    return f"{ORIGINALS}/{place.name}"


def _summary(
    out: Path,
    files: Sequence[Path],
    entries: list[ImportedEntry],
    warnings: list[str],
    command: Sequence[str],
) -> SummaryDocument:
    """Of the form of a run's; what the files do not say is unknown."""
    oldest = min(path.stat().st_mtime for path in files)
    return {
        "schema": SCHEMA,
        "status": "complete",
        "exit_status": 0,
        "errors": [],
        "run": {
            "id": out.resolve().name,
            "started": datetime.fromtimestamp(oldest, UTC).isoformat(timespec="seconds"),
            "elapsed_s": None,
            "command": list(command),
            "launch": "import",
            "lab": None,
            "excluded_hosts": [],
            "versions": {"switchbench": __version__, "python": platform.python_version()},
            "machine": {
                "host": "unknown", "system": "unknown", "cpus": 0, "cpu": None,
                "memory_bytes": None,
            },
            "seed": 0,
            "nodes": [],
        },
        "trials": [],
        "plans": [],
        "statistics": [],
        "switch_counters": None,
        "comparisons": [],
        "messages": {"curves": [], "crossovers": [], "scatter": [], "concurrent_computation": []},
        "ports": [],
        "clocks": [],
        "expectations": [],
        "verdict": None,
        "location": NOTHING_LOCATED,
        "findings": [],
        "warnings": warnings,
        "not_measured": [],
        "imported": entries,
    }  # fmt: skip
