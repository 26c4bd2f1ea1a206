# SPDX-License-Identifier: BSD-3-Clause
"""What is concluded from records: measures, statistics, findings, the summary, the verdict."""
