# SPDX-License-Identifier: BSD-3-Clause
"""Results of other programs, read into records of ours (doc/how-to/compare.md, "Other programs").

programs.toml   what each program prints, and the measures that several share
reading.py      a file, its printed tables, one figure
mpi.py          HPCC, IMB-MPI1, OSU micro-benchmarks, nccl-tests: text in, figures out
pairs.py        iperf3 and perftest
directory.py    which program wrote a file, and the results directory that is made of them
"""
