# SPDX-License-Identifier: BSD-3-Clause
"""What nodes said, read and checked, and the directory that holds a run's results."""
