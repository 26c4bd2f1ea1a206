# SPDX-License-Identifier: BSD-3-Clause
"""doc/reference/configuration.md describes every key and every unit, and its example is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from configs import LAB_EXAMPLE, PROJECT, needs_engine, read_text
from switchbench.base import quantities
from switchbench.base.transports import NAMES
from switchbench.config import schema
from switchbench.config.rules import NESTED, PROFILES
from switchbench.plan.engine import PlanRefused, plan_size

DOC = (PROJECT / "doc" / "reference" / "configuration.md").read_text()
# The keys that begin the rows of its tables.
ROWS = {
    key
    for line in DOC.splitlines()
    if line.startswith("| `")
    for key in re.findall(r"`([^`]+)`", line.split("|")[1])
}


# Models by the keys that they stand below, which have no rows of their own.
MODELS: dict[str, tuple[type[BaseModel], ...]] = {
    "": (
        schema.Configuration, schema.Expectation, schema.LabSite, schema.HostSite, schema.PortKeys,
    ),
    "about": (schema.About,),
    "switch_counters": (schema.SwitchCountersKeys,),
    "device_reset": (schema.SwitchCountersKeys,),
    "dpdk": (schema.DpdkOptions,),
    "packet": (schema.PacketOptions,),
    "tcp": (schema.TcpOptions,),
    "udp": (schema.UdpOptions,),
    "verbs": (schema.VerbsOptions,),
    "control": (schema.SiteControl,),
    "ssh": (schema.Ssh,),
    "slurm": (schema.Slurm,),
    "command": (schema.StartCommand,),
}  # fmt: skip


def test_the_rows_are_the_keys() -> None:
    """A key without a row is not documented; a row of a key that is gone would mislead."""
    keys = {
        f"{below}.{key}".removeprefix(".")
        for below, models in MODELS.items()
        for model in models
        for key in model.model_fields
    }
    assert keys - set(MODELS) <= ROWS <= keys | set(PROFILES)


def known(pattern: dict[str, object]) -> list[str]:
    """The words that the engine takes in the place of one that it does not know."""
    with pytest.raises(PlanRefused) as refused:
        plan_size(4, pattern, 1)
    return re.split(", | or ", str(refused.value).rpartition(" one of ")[2])


@needs_engine
def test_patterns_and_their_algorithms_are_the_engines() -> None:
    assert known({"name": "nowhere"}) == list(schema.PATTERNS)
    for name, form in schema.PATTERNS.items():
        if len(form.algorithms) > 1:
            asked = known({"name": name, "algorithm": "nowhere", "bytes": 64})
            assert set(asked) == set(form.algorithms)


def default_in(row: str, column: int) -> str:
    return row.split("|")[column].strip(" `%").lower()


@pytest.mark.parametrize("pattern", schema.PATTERNS)
def test_defaults_of_patterns(pattern: str) -> None:
    """The default column says what the table of defaults has."""
    for key, value in schema.PATTERNS[pattern].parameters.items():
        rows = [line for line in DOC.splitlines() if line.startswith(f"| `{key}` |")]
        owned = [row for row in rows if pattern in re.split(r"[, ]+", row.split("|")[2])]
        assert value is None or [default_in(row, 4) for row in owned] == [str(value).lower()]


@pytest.mark.parametrize("transport", NAMES)
def test_defaults_of_options(transport: str) -> None:
    for key, value in NESTED[transport]().in_effect().items():
        (row,) = [line for line in DOC.splitlines() if line.startswith(f"| `{transport}.{key}` |")]
        assert default_in(row, 3) == str(value).lower()


def test_verbs_options_are_the_nodes() -> None:
    """The keys of the node's `verbs` mapping."""
    source = (PROJECT / "verbs" / "lane.c").read_text()
    names = re.findall(r'MEMBER\(OPTION_\w+, "(\w+)"', source)
    assert names == list(schema.VerbsOptions.model_fields)


def test_units() -> None:
    """The table of quantities has every unit."""
    table = DOC.partition("### Quantities")[2].partition("### Order")[0]
    for quantity in (quantities.DURATION, quantities.SIZE, quantities.COUNT):
        assert all(f"`{unit}`" in table for unit in quantity.units if unit)
    for unit in ("kbit", "Mbit", "Gbit", "Tbit", "fps", "kfps", "Mfps"):
        assert f"`{unit}`" in table


def test_first_example_is_the_designs(tmp_path: Path) -> None:
    """What one sees first works."""
    example = DOC.partition("```yaml\n")[2].partition("```")[0]
    assert example == LAB_EXAMPLE.partition("\n")[2]
    assert len(read_text(tmp_path, example).tests) == 8
