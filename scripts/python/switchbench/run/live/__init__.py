# SPDX-License-Identifier: BSD-3-Clause
"""Live view of a run (doc/how-to/live.md): state, screen, plain lines, metrics."""
