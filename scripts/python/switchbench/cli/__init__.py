# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one module each.

Each has `add_arguments(parser)` and `main(args) -> int`, its exit status; commands.toml has what it
does and what its help says.
"""
