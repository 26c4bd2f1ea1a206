# SPDX-License-Identifier: BSD-3-Clause
"""Hosts before a run: missing parts, differences, installing the engine, binding drivers."""
