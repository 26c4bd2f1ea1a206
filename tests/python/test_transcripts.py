# SPDX-License-Identifier: BSD-3-Clause
"""What people see of the golden results, whole: `table`, the report's sections and figures,
`compare`. A change of any word or number shows up here.

Written anew by: PYTHONPATH=tests/system python tests/python/test_transcripts.py
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from switchbench.analysis.data import Measured
from switchbench.cli.main import main
from switchbench.render.printer import Table
from switchbench.render.report import build
from switchbench.render.report.build import Facts, Sentences, Words
from switchbench.render.report.chart import Figure, unpacked

KEPT = Path(__file__).parent / "data" / "transcripts"


def printed(*words: str) -> str:
    """What a command prints, and its exit status."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        status = main(list(words))
    return f"{stream.getvalue()}exit status {status}\n"


def table(name: str) -> str:
    return printed("table", name, "--all", "--latency")


def compare(name: str) -> str:
    return printed("compare", name, "--by", "transport")


def report(name: str) -> str:
    """The page's sections in their order, and of each figure its traces with their ends."""
    page = build._Page(Measured.load(Path(name)))
    page.finish()
    return "\n".join(line for section in page.sections.values() for line in outline(section)) + "\n"


def outline(section: Any) -> Iterator[str]:
    if section.parts:
        yield f"{section.title}: {section.contents}{'' if section.open else ', folded'}"
    for part in section.parts:
        if isinstance(part, Figure):
            yield f"  {part.name}: {part.title}"
            yield from (f"    {line}" for line in map(trace, part.data))
        elif isinstance(part, Table):
            yield f"  table {part.name}: {part.rows} rows, {len(part.columns)} columns"
        elif isinstance(part, Words):
            yield f"  {part.text}"
        elif isinstance(part, Sentences):
            yield from (f"  {part.title}: {line}" for line in part.every)
        elif isinstance(part, Facts) and section.title != "What the numbers mean":
            yield from (f"  {key}: {value}" for key, value in part.rows)


def trace(one: dict[str, Any]) -> str:
    ends = []
    for axis in ("x", "y", "z"):
        values = one.get(axis)
        if values is None or (isinstance(values, list) and values and isinstance(values[0], str)):
            continue
        known = unpacked(values)
        known = known[~np.isnan(known)]
        if known.size:
            ends.append(f"{axis} {known.min():.5g} to {known.max():.5g}, mean {known.mean():.5g}")
    return f"{one['type']} {one.get('name', '')}: {'; '.join(ends)}"


KINDS: dict[str, Callable[[str], str]] = {"table": table, "report": report, "compare": compare}
CASES = [
    *((kind, name) for name in golden.NAMES for kind in ("table", "report")),
    ("compare", "matrices"),
]


def made(kind: str, name: str, folder: Path) -> str:
    """A transcript, of results in a folder whose own name it does not have."""
    golden.unpack(name, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return KINDS[kind](name).replace(str(folder), "FOLDER")
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_people_see(kind: str, name: str, tmp_path: Path) -> None:
    assert made(kind, name, tmp_path) == (KEPT / f"{name}.{kind}.txt").read_text()


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for kind, name in CASES:
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                (KEPT / f"{name}.{kind}.txt").write_text(made(kind, name, Path(folder)))
