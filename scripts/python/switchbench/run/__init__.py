# SPDX-License-Identifier: BSD-3-Clause
"""Package for a run in progress: it starts and controls the nodes, and shows their progress."""
