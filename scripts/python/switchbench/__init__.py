# SPDX-License-Identifier: BSD-3-Clause
"""Switchbench measures whether a network still holds when every port is busy at once."""

import os

__version__ = "0.1.0"

# numpy's BLAS starts threads as it is imported, and a process that has threads may not join a user
# namespace (setns(2)), as labs of users without privilege do. No large matrix is multiplied here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
