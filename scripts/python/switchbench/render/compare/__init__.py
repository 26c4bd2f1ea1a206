# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as tables, figures and a page."""
