# SPDX-License-Identifier: BSD-3-Clause
"""The commands by their subjects (main.py)."""
