# SPDX-License-Identifier: BSD-3-Clause
"""Configurations for tests: an example, a hall of hosts, and short ways to read and compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.base.programs import find_engine
from switchbench.base.source import read_file
from switchbench.config import CheckedConfiguration, read, read_values
from switchbench.plan.compile import compile_run

PROJECT = Path(__file__).resolve().parents[2]
LAB = "switchbench: 1\nsite: {lab: one-switch}\n"

# The first configuration that the page on the reference shows.
PAGE = (PROJECT / "doc" / "reference" / "configuration.md").read_text()
LAB_EXAMPLE = PAGE.partition("```yaml\n")[2].partition("```")[0]
TEXTS: dict[str, str] = read_file(PROJECT / "tests/python/data/configurations.yaml").data


def engine_is_built() -> bool:
    """Return true where the engine is built, which plans need."""
    try:
        find_engine()
    except ConfigurationError:
        return False
    return True


needs_engine = pytest.mark.skipif(not engine_is_built(), reason="switchbench-node is not built")


def write_files(folder: Path, text: str) -> Path:
    """Write the configuration, with a site file beside it."""
    sites = folder / "sites"
    sites.mkdir(exist_ok=True)
    wires = (
        f'  "node{i:02d}:e0": [leaf{(i + 31) // 32}, Eth1/{(i - 1) % 32 + 1}]\n'
        for i in range(1, 65)
    )
    (sites / "hall2.yaml").write_text(f"{TEXTS['hall2']}wiring:\n{''.join(wires)}")
    path = folder / "conf.yaml"
    path.write_text(text)
    return path


def read_text(folder: Path, text: str, *assignments: str, **options: str) -> CheckedConfiguration:
    """Read a configuration as the command does."""
    given = [(f"--{name}", value) for name, value in options.items()]
    given += [("--set", assignment) for assignment in assignments]
    return read(write_files(folder, text), given)


def compile_text(folder: Path, text: str, *assignments: str, **options: str) -> Run:
    """Read and compile a configuration as the command does."""
    return compile_run(read_text(folder, text, *assignments, **options))


def again(run: Run) -> Run:
    """Return the run of a run's effective configuration, written as YAML and read again."""
    return compile_run(read_values(yaml.safe_load(yaml.safe_dump(run.effective, sort_keys=False))))


def assert_has(found: Any, wanted: Any) -> None:
    """Check wanted values: below `only` there are no other keys, and "A .. B" is a range."""
    for key, value in wanted.items():
        span = value.split(" .. ") if isinstance(value, str) else []
        if key == "only":
            assert {name: found[name] for name in value} == value
        elif isinstance(value, dict):
            assert_has(found[key], value)
        elif len(span) == 2:
            assert float(span[0]) <= found[key] <= float(span[1]), key
        else:
            assert found.get(key) == value, key
