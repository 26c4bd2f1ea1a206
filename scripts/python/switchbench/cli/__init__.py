# SPDX-License-Identifier: BSD-3-Clause
"""The commands, one module each.

`EXAMPLES` for its help, `add_arguments(parser)` and `main(args) -> int`, its exit status.
"""
