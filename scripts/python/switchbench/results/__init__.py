# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves behind: its directory, its records, and what is computed from them."""
