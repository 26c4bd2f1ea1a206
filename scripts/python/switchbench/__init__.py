# SPDX-License-Identifier: BSD-3-Clause
"""Switchbench: does this network still hold when every port is busy at once?"""

__version__ = "0.1.0"
