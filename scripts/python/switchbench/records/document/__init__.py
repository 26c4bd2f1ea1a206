# SPDX-License-Identifier: BSD-3-Clause
"""The form of summary.json, as types."""
