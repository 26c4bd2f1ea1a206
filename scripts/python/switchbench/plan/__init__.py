# SPDX-License-Identifier: BSD-3-Clause
"""Planning: tests become trials and phases, with durations and cores."""
