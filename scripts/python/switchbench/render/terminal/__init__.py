# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the terminal."""
