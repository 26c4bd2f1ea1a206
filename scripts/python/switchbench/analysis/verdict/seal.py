# SPDX-License-Identifier: BSD-3-Clause
"""What is to be judged is fixed before traffic starts.

The clauses are written in their canonical form, whose SHA-256 is the file's own, and the hash is
the first event of the tables: whoever has noted it down knows that nothing was judged by other
words afterwards.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from ...base.errors import ConfigurationError
from ...base.model import Run
from ...config.clauses import canonical, clauses_sha256
from ...records.directory import CLAUSES, RunDirectory, replace_bytes
from ...records.record_forms import Record
from ...records.store import Tables, TableWriter

RECORD = "clauses"  # the record's type


def fix_clauses(run: Run, directory: RunDirectory) -> None:
    """Write the clauses and their hash. To be called before the first node starts."""
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
    with TableWriter(directory.path) as tables:
        tables.add_event(record)


def changed_clauses(sha256: str | None, directory: Path) -> str | None:
    """Return what is no longer as it was fixed before traffic, in a sentence; None: all is.

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
    first = _first_event(directory)
    if first is None or first.get("type") != RECORD:
        return "the table `events` does not begin with the clauses' hash, which was its first row"
    if first.get("sha256") != sha256:
        return "the first row of the table `events` has the hash of other clauses"
    return None


def _first_event(directory: Path) -> Record | None:
    try:
        return next(Tables(directory, ()).events(), None)
    except ConfigurationError:
        return None
