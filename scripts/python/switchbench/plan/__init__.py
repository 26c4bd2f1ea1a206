# SPDX-License-Identifier: BSD-3-Clause
"""What will run: tests as trials and phases, how long they take, on which cores."""
