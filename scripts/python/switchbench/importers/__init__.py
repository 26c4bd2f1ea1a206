# SPDX-License-Identifier: BSD-3-Clause
"""Results of other programs, read into records of ours (doc/how-to/compare.md, "Other programs").

measures.py   what several programs measure, each in one unit, by one definition
figure.py     one figure of another program, and what it is in our terms
table.py      printed tables, by the names of their columns
hpcc.py ...   one reader a program: text in, figures out
kinds.py      which program wrote a file
directory.py  the results directory that is made of them
"""
