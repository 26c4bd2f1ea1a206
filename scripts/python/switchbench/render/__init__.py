# SPDX-License-Identifier: BSD-3-Clause
"""What people see: tables of the terminal, the report and its figures."""
