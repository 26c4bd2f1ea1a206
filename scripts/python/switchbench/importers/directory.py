# SPDX-License-Identifier: BSD-3-Clause
"""Results directories made from other programs' files (doc/how-to/compare.md, "Other programs").

The figures become a summary; the directory also keeps the files themselves.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..base.errors import ConfigurationError
from ..base.source import read_regular
from ..records.directory import RunDirectory, replace_bytes
from ..records.summary_form import NOTHING_LOCATED, SCHEMA, Entry, filled
from .programs import KINDS
from .reading import ImportedFigure, Source

ORIGINALS = "originals"
_MOST_BYTES = 64 << 20  # max size of a file; real files have a few MB
# Regular expressions for files that users pass by mistake, with advice.
_MISTAKES = (
    (r"\A\s*\Z", "it is empty"),
    (r"\AHPLinpack benchmark input file", "it is HPCC's input: take hpccoutf.txt"),
    (r"\AConnecting to host|^\[ *ID\] Interval", "it is iperf3's text: run it with --json"),
    (r"\A\s*\{\s*\"schema\": *\"switchbench",
     "it is a result of Switchbench itself: `switchbench compare` takes its directory"),
)  # fmt: skip


class Read(NamedTuple):
    """Figures of a file, and warnings about the file or its figures."""

    figures: list[ImportedFigure]
    warnings: list[str]


def read(path: Path, ranks: int | None = None, content: bytes | None = None) -> Read:
    """Read the figures in a program's output; raise ConfigurationError if there are none."""
    names = "{}, {}, {}, {} and {}".format(*(kind.title for kind in KINDS))
    try:  # a file from Windows begins with a byte order mark
        text = (read_regular(path, _MOST_BYTES) if content is None else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not text: give an output file of {names}") from error
    source = Source(path, text, ranks)
    kind = next((kind for kind in KINDS if kind.knows(source.text)), None)
    if kind is None:
        mistaken = (said for pattern, said in _MISTAKES if re.search(pattern, text, re.MULTILINE))
        raise source.refuse(next(mistaken, f"it is not an output of {names}"))
    found = kind.read(source)
    if not found:
        raise source.refuse(f"there are no results in it ({kind.title})")
    for one in found:  # JSON cannot represent infinity and NaN
        same = one.comparable
        if not math.isfinite(one.value + (same["value"] if same else 0.0)) or (
            same and one.value < 0
        ):
            raise source.refuse(
                f"{one.name} of {one.benchmark} is {one.value:g}: it is damaged, or the test failed"
            )
    return Read(found, source.warnings)


def write(files: Sequence[Path], out: Path, ranks: int | None, command: Sequence[str]) -> list[str]:
    """Import files into the new results directory `out`; return warnings about the files.

    All files are read before `out` is made, so that an unreadable file leaves nothing behind.
    """
    contents = [read_regular(path, _MOST_BYTES) for path in files]
    parts = [read(path, ranks, content) for path, content in zip(files, contents, strict=True)]
    directory = RunDirectory(out)
    entries: list[Entry] = []
    folder = out / ORIGINALS
    for path, content, part in zip(files, contents, parts, strict=True):
        place, number = folder / path.name, 1
        while place.exists():  # files of equal names get numbers
            number += 1
            place = folder / f"{path.stem}-{number}{path.suffix}"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{path} can't be copied into {folder}: {error.strerror}"
            ) from error
        replace_bytes(place, content)
        kept = f"{ORIGINALS}/{place.name}"
        entries += [{**vars(figure), "file": kept} for figure in part.figures]
    warnings = [sentence for part in parts for sentence in part.warnings]
    oldest = min(path.stat().st_mtime for path in files)
    run = filled(
        "RunEntry", id=out.resolve().name, launch="import", seed=0, nodes=[], excluded_hosts=[],
        started=datetime.fromtimestamp(oldest, UTC).isoformat(timespec="seconds"),
        command=list(command),
        versions={"switchbench": __version__, "python": platform.python_version()},
        machine=filled("MachineEntry", host="unknown", system="unknown", cpus=0),
    )  # fmt: skip
    lists = (
        "errors", "trials", "plans", "statistics", "comparisons", "ports", "clocks", "expectations",
        "findings", "not_measured",
    )  # fmt: skip
    summary = filled(
        "SummaryDocument", {name: [] for name in lists}, schema=SCHEMA, status="complete",
        exit_status=0, run=run, messages={"curves": []}, location=NOTHING_LOCATED,
        warnings=warnings, imported=entries,
    )  # fmt: skip
    directory.write_summary(summary)
    return warnings
