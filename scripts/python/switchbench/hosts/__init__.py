# SPDX-License-Identifier: BSD-3-Clause
"""Preparation of hosts before a run: checks, installing the engine, binding drivers."""
