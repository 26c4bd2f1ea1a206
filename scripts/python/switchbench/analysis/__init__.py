# SPDX-License-Identifier: BSD-3-Clause
"""Conclusions from records: measures, statistics, findings, the summary and the verdict."""
