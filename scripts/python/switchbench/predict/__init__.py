# SPDX-License-Identifier: BSD-3-Clause
"""Predicted rates of a plan's flows on a network, by models of contention."""
