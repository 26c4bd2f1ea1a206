# SPDX-License-Identifier: BSD-3-Clause
"""From the clauses of a contract to a verdict that can be sealed, signed and checked again."""
