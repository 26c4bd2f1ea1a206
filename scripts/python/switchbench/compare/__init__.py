# SPDX-License-Identifier: BSD-3-Clause
"""Results beside each other: what differs, by how much, how sure (doc/how-to/compare.md)."""
