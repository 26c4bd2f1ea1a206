# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: figures and tables in one file, made of a results directory alone."""
