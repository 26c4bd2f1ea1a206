# SPDX-License-Identifier: BSD-3-Clause
"""A run while it runs (doc/how-to/live.md): its state, the screen and plain lines, metrics."""
