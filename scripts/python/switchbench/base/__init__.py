# SPDX-License-Identifier: BSD-3-Clause
"""Common types and helpers of all packages: errors, values of a run, quantities as text."""
