# SPDX-License-Identifier: BSD-3-Clause
"""Results beside each other: what differs, by how much.

And how sure that is (doc/how-to/compare.md).

subjects.py     results directories, or parts of one, and the cases that were measured in each
settings.py     what a case was measured with; which differences are the question
match.py        which case of one result stands beside which of another
differences.py  measures of plans, phases and flows, and their differences
welch.py        how sure a difference of two means is
figures.py      figures of one definition from several programs, ours among them, as cases
document.py     all of it as one value, `switchbench-comparison/2`
"""
