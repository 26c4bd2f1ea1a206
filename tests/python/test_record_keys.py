# SPDX-License-Identifier: BSD-3-Clause
"""Each key of each record, as the engine's own test keeps them, is in
doc/developer/node-protocol.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVERYWHERE = {"type", "node"}
WORDS = re.compile(r"`([a-z][a-z_0-9]*)`")


def golden() -> dict[str, set[str]]:
    """Return the keys of each type of record in the lines with which report_records is compared."""
    keys: dict[str, set[str]] = {}
    for line in (ROOT / "tests/unit/report_records.ndjson").read_text().splitlines():
        record = json.loads(line)
        keys.setdefault(record["type"], set()).update(record)
    return keys


def described() -> dict[str, set[str]]:
    """Return the words in code letters of each row of the table of records."""
    text = (ROOT / "doc/developer/node-protocol.md").read_text().split("## Records")[1]
    rows = re.findall(r"^\| `([a-z-]+)` \|[^|]*\|(.*)\|$", text, re.M)
    words = {name: set(WORDS.findall(row)) for name, row in rows}
    return words


@pytest.mark.parametrize("name", golden())
def test_each_key_of_a_record_is_described(name: str) -> None:
    assert golden()[name] - EVERYWHERE - described()[name] == set()
