# SPDX-License-Identifier: BSD-3-Clause
"""Configuration: read, checked and resolved (doc/reference/configuration.md).

`read` returns a `CheckedConfiguration`: the site, and the tests with every default; the compiler
makes a run of it. Each mistake is one sentence with file, line, key, value and valid values.
"""

from __future__ import annotations

from .read import CheckedConfiguration, effective, read, read_values

__all__ = ["CheckedConfiguration", "effective", "read", "read_values"]
