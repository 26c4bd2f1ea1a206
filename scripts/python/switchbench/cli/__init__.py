# SPDX-License-Identifier: BSD-3-Clause
"""Commands of `switchbench`, grouped by subject (main.py)."""
