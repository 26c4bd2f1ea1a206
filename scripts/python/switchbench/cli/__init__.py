# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one module each: `add_parser(subparsers)` and `main(args) -> int`."""
