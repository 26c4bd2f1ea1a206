# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run: each declared once, for the terminal, the report and CSV files."""
