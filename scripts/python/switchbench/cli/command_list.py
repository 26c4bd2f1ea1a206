# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their help, read from commands.toml without loading their modules."""

import tomllib
from pathlib import Path

HELP = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
PROGRAM = HELP.pop("switchbench")
COMMANDS = {name: entry["summary"] for name, entry in HELP.items()}
