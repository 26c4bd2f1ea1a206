# SPDX-License-Identifier: BSD-3-Clause
"""A run under way: nodes started, controlled and shown."""
