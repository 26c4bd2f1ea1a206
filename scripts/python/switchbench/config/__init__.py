# SPDX-License-Identifier: BSD-3-Clause
"""The user's configuration: read, checked and resolved (doc/reference/configuration.md).

`read` gives a `CheckedConfiguration`: the site that exists and the tests with every default; the
compiler makes a run of it. Each mistake is one sentence with file, line, key, what was found and
what is possible.
"""

from __future__ import annotations

from .read import CheckedConfiguration, Request, effective, read, read_values

__all__ = ["CheckedConfiguration", "Request", "effective", "read", "read_values"]
