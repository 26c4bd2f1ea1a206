# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: figures and tables in one file, made from a results directory alone."""
