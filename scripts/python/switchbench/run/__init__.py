# SPDX-License-Identifier: BSD-3-Clause
"""A run in progress: nodes started, controlled and shown."""
