# SPDX-License-Identifier: BSD-3-Clause
"""Readers of other programs' results (doc/how-to/compare.md, "Other programs").

programs.toml   tables and names of each program, and measures that several programs share
reading.py      a file, its printed tables, one figure
programs.py     HPCC, IMB-MPI1, OSU micro-benchmarks, iperf3 and perftest: text in,
                figures out
directory.py    identifies the program of a file; makes a results directory of the files
"""
