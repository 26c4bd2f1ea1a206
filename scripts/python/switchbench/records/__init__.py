# SPDX-License-Identifier: BSD-3-Clause
"""Records of nodes, read and checked, and the directory with a run's results."""
