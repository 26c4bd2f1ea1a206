# SPDX-License-Identifier: BSD-3-Clause
"""doc/reference/configuration.md describes every key and every unit, and its example is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from configs import LAB_EXAMPLE, PROJECT, read_text
from switchbench.base import quantities
from switchbench.base.transports import NAMES
from switchbench.config import options, schema
from switchbench.config.profiles import PROFILES
from switchbench.config.rules import PARAMETERS
from switchbench.config.settings import NESTED

DOC = (PROJECT / "doc" / "reference" / "configuration.md").read_text()
# The keys that begin the rows of its tables.
ROWS = {
    key
    for line in DOC.splitlines()
    if line.startswith("| `")
    for key in re.findall(r"`([^`]+)`", line.split("|")[1])
}


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        (schema.Configuration, ""),
        (schema.Expectation, ""),
        (schema.About, "about."),
        (schema.SwitchCountersKeys, "switch_counters."),
        (schema.SwitchCountersKeys, "device_reset."),
        (options.DpdkOptions, "dpdk."),
        (options.TcpOptions, "tcp."),
        (options.UdpOptions, "udp."),
        (options.VerbsOptions, "verbs."),
        (schema.LabSite, ""),
        (schema.HostSite, ""),
        (schema.SiteControl, "control."),
        (schema.PortKeys, ""),
        (schema.Ssh, "ssh."),
        (schema.Slurm, "slurm."),
    ],
)
def test_every_key_has_a_row(model: type[BaseModel], prefix: str) -> None:
    """A key without a row is not documented."""
    # Their keys have rows of their own.
    whole = {"dpdk", "tcp", "udp", "verbs", "control", "switch_counters", "ssh", "slurm"} | {
        "device_reset"
    }
    missing = {f"{prefix}{key}" for key in model.model_fields if key not in whole} - ROWS
    assert not missing


def test_every_row_is_a_key() -> None:
    """A row of a key that is gone would mislead."""
    known = {
        f"{prefix}{key}"
        for model, prefix in (
            (schema.Configuration, ""), (schema.Expectation, ""), (schema.LabSite, ""),
            (schema.HostSite, ""), (schema.PortKeys, ""), (schema.SiteControl, "control."),
            (options.DpdkOptions, "dpdk."),
            (options.TcpOptions, "tcp."), (options.UdpOptions, "udp."),
            (options.VerbsOptions, "verbs."), (schema.SwitchCountersKeys, "switch_counters."),
            (schema.SwitchCountersKeys, "device_reset."),
            (schema.Ssh, "ssh."), (schema.Slurm, "slurm."), (schema.About, "about."),
        )
        for key in model.model_fields
    }  # fmt: skip
    assert set(PROFILES) | known >= ROWS


@pytest.mark.parametrize("pattern", PARAMETERS)
def test_defaults_of_patterns(pattern: str) -> None:
    """The default column says what the table of defaults has."""
    for key, value in PARAMETERS[pattern].items():
        if value is None:
            continue
        rows = [line for line in DOC.splitlines() if line.startswith(f"| `{key}` |")]
        (row,) = [row for row in rows if pattern in re.split(r"[, ]+", row.split("|")[2])]
        said = row.split("|")[4].strip(" `%").lower()
        assert said == str(value).lower()


@pytest.mark.parametrize("transport", NAMES)
def test_defaults_of_options(transport: str) -> None:
    """The same for transports."""
    for key, value in NESTED[transport]().in_effect().items():
        (row,) = [line for line in DOC.splitlines() if line.startswith(f"| `{transport}.{key}` |")]
        assert row.split("|")[3].strip(" `") == str(value).lower()


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
