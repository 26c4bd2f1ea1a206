# SPDX-License-Identifier: BSD-3-Clause
"""Tables of tests: a test that is marked `rows` runs with each row of its table."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml


@cache
def tables(module: Path) -> dict[str, list[list[Any]]]:
    """Return the tables of rows of a module's tests, by test: the first row names the columns."""
    text = (module.parent / "data" / "rows" / f"{module.stem}.yaml").read_text()
    found: dict[str, list[list[Any]]] = yaml.load(text, yaml.CSafeLoader)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is marked `rows` with each row of its table in data/rows beside it."""
    if metafunc.definition.get_closest_marker("rows"):
        columns, *rows = tables(metafunc.definition.path)[metafunc.definition.originalname]
        metafunc.parametrize(columns, rows)
