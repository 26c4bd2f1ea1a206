# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of results: differences with confidence intervals (doc/how-to/compare.md)."""
