# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the highest load that a goal allows (RFC 9971), without I/O."""
