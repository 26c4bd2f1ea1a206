# SPDX-License-Identifier: BSD-3-Clause
"""What is to be judged is fixed before traffic starts.

The clauses are written in their canonical form, whose SHA-256 is the file's own, and the hash is
the first line of the records: whoever has noted it down knows that nothing was judged by other
words afterwards.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

from ...base.model import Run
from ...config.clauses import canonical, clauses_sha256
from ...records.directory import CLAUSES, RECORDS, RunDirectory, replace_bytes

RECORD = "clauses"  # the record's type


def fix_clauses(run: Run, directory: RunDirectory) -> None:
    """Writes the clauses and their hash. To be called before the first node starts."""
    if not run.expectations:
        return
    replace_bytes(directory.path / CLAUSES, canonical(run.expectations))
    record = {
        "type": RECORD,
        "node": None,
        "clauses": len(run.expectations),
        "sha256": clauses_sha256(run.expectations),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    with directory.open_lines(RECORDS) as records:
        records.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def changed_clauses(sha256: str | None, directory: Path) -> str | None:
    """What is no longer as it was fixed before traffic, in a sentence; None: all is.

    `sha256`: what the clauses' hash is; None: there are none.
    """
    if sha256 is None:
        return None
    try:
        found = hashlib.sha256((directory / CLAUSES).read_bytes()).hexdigest()
    except OSError:
        found = ""
    if found != sha256:
        return f"{CLAUSES} is not what was fixed before traffic: the clauses were changed since"
    first = _read_first_line(directory / RECORDS)
    if first is None or first.get("type") != RECORD:
        return f"{RECORDS} does not begin with the clauses' hash, which was its first line"
    if first.get("sha256") != sha256:
        return f"the first line of {RECORDS} has the hash of other clauses"
    return None


def _read_first_line(path: Path) -> dict[str, object] | None:
    try:
        with path.open("rb") as file:
            record = json.loads(file.readline())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
