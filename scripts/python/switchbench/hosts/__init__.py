# SPDX-License-Identifier: BSD-3-Clause
"""Hosts before a run: what they lack, how they differ, the engine on them, their drivers."""
