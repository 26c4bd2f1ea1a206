# SPDX-License-Identifier: BSD-3-Clause
"""Ten results directories of real runs, kept so that their numbers stay the same.

Each folder of data/golden holds a run's configuration, its plan, its records and its summary.
Where a mended defect changes a number, `PYTHONPATH=tests/system .venv/bin/python
tests/python/golden.py NAME...` makes the kept summary anew, and the commit says which numbers
changed and why."""

from __future__ import annotations

import base64
import gzip
import json
import lzma
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorded import write_tables
from switchbench.analysis.summary import remade
from switchbench.records.directory import read_plan
from switchbench.records.schema import Record, parse
from switchbench.records.store import finish

RECORDS, SUMMARY = "records.ndjson.xz", "summary.json.xz"
KEPT = Path(__file__).parent / "data" / "golden"
NAMES = tuple(sorted(path.name for path in KEPT.iterdir()))


def unpack(name: str, target: Path) -> Path:
    """Return the results directory of this name, below `target`."""
    directory = target / name
    directory.mkdir(parents=True)
    for path in (KEPT / name).iterdir():
        if path.suffix == ".xz" and path != KEPT / name / RECORDS:
            (directory / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        elif path.suffix != ".xz":
            shutil.copy(path, directory)
    run = read_plan(directory)
    write_tables(directory, run, records_of(name))
    finish(directory, run)
    return directory


def records_of(name: str) -> list[Record]:
    """Return the records of a kept run, as its nodes wrote them."""
    lines = lzma.decompress((KEPT / name / RECORDS).read_bytes()).splitlines()
    return [parse(line) for line in lines]


def summary_of(name: str) -> dict[str, Any]:
    """Return the summary of a kept run."""
    summary: dict[str, Any] = json.loads(lzma.decompress((KEPT / name / SUMMARY).read_bytes()))
    return summary


def unpacked(values: Any) -> NDArray[np.float64]:
    """Return the array that `packed` of the report encoded; null and gaps are NaN."""
    if not isinstance(values, Mapping):
        return np.asarray(values, dtype=np.float64)
    array = np.frombuffer(base64.b64decode(values["bdata"]), dtype="<" + values["dtype"])
    shape = [int(part) for part in values.get("shape", str(len(array))).split(",")]
    return array.reshape(shape).astype(np.float64)


def kept_summary(directory: Path) -> dict[str, Any]:
    """Return the summary in a results directory."""
    summary: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return summary


def block(page: str, name: str) -> Any:
    """Return the data of one table or figure, as the page's script unpacks it; None without it."""
    found = re.search(rf'id="data-{name}">([^<]+)</script>', page)
    return None if found is None else json.loads(gzip.decompress(base64.b64decode(found[1])))


def main(names: list[str]) -> None:
    """Write the kept summaries of these runs again."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            directory = unpack(name, Path(folder))
            summary = remade(read_plan(directory), directory, kept_summary(directory))
        packed = lzma.compress(json.dumps(summary, indent=1).encode(), preset=9)
        (KEPT / name / SUMMARY).write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1:])
