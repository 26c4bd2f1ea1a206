# SPDX-License-Identifier: BSD-3-Clause
"""A verdict sealed, signed and checked again."""
