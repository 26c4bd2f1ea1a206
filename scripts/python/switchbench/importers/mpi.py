# SPDX-License-Identifier: BSD-3-Clause
"""Readers of MPI's and NCCL's benchmarks: HPCC, IMB-MPI1, OSU micro-benchmarks, nccl-tests.

Megabytes are 10^6 bytes, but for IMB's up to 4.1, which are 2^20.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..base.source import count, number
from ..records.summary_form import Entry
from .reading import (
    GPU,
    HOST,
    MEGA,
    PROGRAMS,
    Form,
    ImportedFigure,
    Kind,
    PrintedColumn,
    PrintedTable,
    Read,
    Row,
    Source,
    collective,
    comparable,
    figures,
    tables,
    warnings,
)

_IMB, _OSU, _NCCL = map(Form, ("imb", "osu", "nccl"))
_UNITS, _SHARED = PROGRAMS["hpcc"].values()
_PAIR, _OSU_NAMES = PROGRAMS["osu"].values()

# --- HPCC: the lines NAME=VALUE of the summary section of hpccoutf.txt ----------------------------
# Names of figures: P. Luszczek et al., Introduction to the HPC Challenge Benchmark Suite, 2005.
# Prefixes: `Star` for one of all processes that run at once, `Single` for one process alone, `MPI`
# for all processes together.

_BANNER = "HPC Challenge Benchmark version"
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_VALUE = re.compile(r"^([A-Za-z]\w{0,100})=(.*)$", re.MULTILINE)
_SIZES = {"usec": 8, "GBytes": 2_000_000}  # bench_lat_bw, "Benchmark conditions"
# The shared measure of a figure, and the factor to its unit. `Star` is one process of many, so the
# factor has their number. A ring's bandwidth counts both flows of a process: one flow has half.


def _read_hpcc(source: Source) -> Read:
    """Return the figures of all runs in a file: HPCC appends to an existing file."""
    runs = list(_summaries(source))
    found = [one for values in runs for one in _hpcc_figures(source, values)]
    if not found:
        raise source.refuse("HPCC measured nothing in this run: each figure of its summary is -1")
    said = [
        f"{source.path}: HPCC says that a check of its own failed (Success=0) on "
        f"{values['CommWorldProcs']} processes"
        for values in runs
        if values.get("Success") == "0"
    ]
    begun = source.text.count(_BANNER)
    if begun > len(runs):
        said.append(f"{source.path}: {begun - len(runs)} of {begun} runs in it have no summary")
    return Read(found, said)


def _summaries(source: Source) -> Iterator[dict[str, str]]:
    """Yield the NAME=VALUE pairs of each summary section."""
    before, *sections = source.text.split(_BEGIN)
    if not sections:
        raise source.refuse("it is cut before HPCC's summary section: the run has not ended")
    for section in sections:
        said, end, _ = section.partition(_END)
        if not end:
            raise source.refuse("it is cut within HPCC's summary section")
        values: dict[str, str] = {}
        for found in _VALUE.finditer(said):
            if found[1] in values:
                line = before.count("\n") + said.count("\n", 0, found.start()) + 1
                raise source.refuse(f"{found[1]} is in one summary section twice", line)
            values[found[1]] = found[2].strip()
        yield values
        before += section


def _hpcc_figures(source: Source, values: Mapping[str, str]) -> Iterator[ImportedFigure]:
    if "VersionMajor" not in values or "CommWorldProcs" not in values:
        raise source.refuse(
            "its summary section lacks VersionMajor or CommWorldProcs: it is damaged"
        )
    parts = (f"Version{part}" for part in ("Major", "Minor", "Micro"))
    version = ".".join(values[part] for part in parts if part in values)
    source.refuse_newer("HPCC", version, (1, 5))
    if version.startswith("0."):
        raise source.refuse(f"HPCC {version} measured otherwise than 1.0 and later, which are read")
    ranks = count(values["CommWorldProcs"])
    if not ranks:
        raise source.refuse(
            f"CommWorldProcs is {values['CommWorldProcs'][:40]!r}, which is no number of processes"
        )
    for name, word in values.items():
        head, _, unit = name.rpartition("_")
        if unit not in _UNITS:
            continue
        value = number(word)
        if value is None:
            raise source.refuse(f"{name} is {word[:40]!r}, which is no number")
        if value <= 0:  # the test was not run
            continue
        pingpong, size = "PingPong" in head, _SIZES.get(unit)
        benchmark = "PingPong" if pingpong else re.sub("(Latency|Bandwidth)$", "", head)
        if name.startswith(("Star", "Single")):
            benchmark = name.partition("_")[0]
        ours = None
        if name in _SHARED:
            measure, factor = _SHARED[name]
            factor *= ranks if name.startswith("Star") else 1
            ours = comparable(measure, 2 if pingpong else ranks, size, value * factor)
        like = ImportedFigure("hpcc", version, benchmark, ranks, size, name, value, _UNITS[unit])
        yield replace(like, comparable=ours)


# --- IMB-MPI1: a table for each benchmark and number of processes ---------------------------------
# Factors of IMB's Mbytes/sec: Intel MPI Benchmarks User Guide, "Benchmark methodology"; PingPong
# and PingPing 1, Sendrecv 2, Exchange 4. A megabyte is 2^20 bytes up to 4.1 and 10^6 in 2019: a
# table's times show which.

_LAST_MEBI = (4, 1)  # last version known to use 2^20; used where a table has no time beside a rate
_MEBI = float(1 << 20)
_SURE = 0.01  # relative tolerance between a rate and a time; the two megabytes differ by 0.049
_IMB_VERSION = re.compile(
    r"(?:Intel ?\(R\) MPI Benchmarks?|PALLAS MPI Benchmark)(?: Suite)?\s+V?(\d[\d.]{0,20})"
    r"(?: Update (\d{1,9}))?, *([\w-]{1,40}) part"
)
_IMB_RATE = "Mbytes/sec"
_PROCESSES = re.compile(r"# \(? ?#processes = (\d{1,9})\b")
_GROUPS = re.compile(r"\b(\d{1,9}) groups of (\d{1,9}) processes")
_IMB_END = "# All processes entering MPI_Finalize"
# The measure of a function, and how many times IMB counts a flow's message.
OF_TWO = ("pingpong", "pingping")  # functions of two ranks, whatever the number of processes


def rate_in_ours(function: str, ranks: int, size: int, bytes_per_s: float) -> Entry | None:
    """Return an IMB bandwidth as a comparable figure; None where no shared measure matches it."""
    if function not in PROGRAMS["imb"]["rates"] or bytes_per_s <= 0:
        return None
    measure, times = PROGRAMS["imb"]["rates"][function]
    return comparable(measure, ranks, size, bytes_per_s * 8 / MEGA / times)


def time_in_ours(function: str, ranks: int, size: int, time_us: float) -> Entry | None:
    """Return an IMB function's t_avg, or PingPong's t, as a comparable figure.

    None without a measure.
    """
    measure = "pingpong_time" if function == "pingpong" else collective(function)
    return None if measure is None else comparable(measure, ranks, size, time_us)


def _read_imb(source: Source) -> Read:
    version = None
    if title := _IMB_VERSION.search(source.text):
        source.refuse_newer(_IMB.tool, title[1], (2021,))
        if title[3] != "MPI-1":
            raise source.refuse(f"it is of IMB's part {title[3]}: only MPI-1 is read (IMB-MPI1)")
        version = title[1] + (f" Update {title[2]}" if title[2] else "")
    found = tables(source, _IMB)
    if _IMB_END not in source.text:
        raise source.refuse(
            "it is cut: IMB's last line (All processes entering MPI_Finalize) is missing"
        )
    mega = _megabyte(found, version)
    made = [one for table in found for one in _imb_figures(source, table, version, mega)]
    if not made:
        raise source.refuse("there is no table with results in it")
    return Read(made, list(warnings(source, found, made)))


def _imb_figures(
    source: Source, table: PrintedTable, version: str | None, mega: float
) -> Iterator[ImportedFigure]:
    benchmark, notes = table.title[1], "\n".join(table.notes)
    function = benchmark.lower()
    processes, groups = _PROCESSES.search(notes), _GROUPS.search(notes)
    ranks = int(processes[1]) if processes else 0
    ranks = int(groups[1]) * int(groups[2]) if groups else ranks
    if table.rows and not ranks:
        raise source.refuse(f"{benchmark} does not say on how many processes")
    if mega == _MEBI:
        table.columns |= {_IMB_RATE: PrintedColumn(_IMB_RATE, "MiB/s")}

    def ours(row: Row, name: str, value: float) -> Entry | None:
        if name == _IMB_RATE:
            return rate_in_ours(function, ranks, row.size, value * mega)
        wanted = "t[usec]" if function == "pingpong" else "t_avg[usec]"
        return time_in_ours(function, ranks, row.size, value) if name == wanted else None

    return figures(
        table.rows, table.columns, ImportedFigure("imb", version, benchmark, ranks), ours
    )


def _megabyte(found: Sequence[PrintedTable], version: str | None) -> float:
    """Return the bytes of IMB's megabyte: 10^6 or 2^20.

    The largest message with a time and a rate decides; without one, the version does.
    """
    rows = [(row.size, row, table) for table in found for row in table.rows]
    for size, row, table in sorted(rows, key=lambda one: -one[0]):
        rate = row.values.get(_IMB_RATE)
        time_us = row.values.get("t[usec]") or row.values.get("t_max[usec]")
        _, times = PROGRAMS["imb"]["rates"].get(table.title[1].lower(), ("", 0))
        messages = row.values.get("Msg/sec") or (times * 1e6 / time_us if time_us else 0.0)
        for mega in (_MEBI, MEGA) if rate else ():
            if abs(size * messages / ((rate or 0.0) * mega) - 1) < _SURE:
                return mega
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version or "")[:2])
    return _MEBI if numbers and numbers <= _LAST_MEBI else MEGA


def _knows_imb(text: str) -> bool:
    return _IMB_VERSION.search(text) is not None or ("# Benchmarking " in text and "#bytes" in text)


# --- OSU micro-benchmarks: a title, a line of columns, a row a size -------------------------------
# The tests of collectives do not print their number of processes.

# `MPI` is the library; `MPI_Put` is the operation.
_PAIRS = re.compile(r"\[ pairs: (\d{1,9}) \]")
_PLACES = re.compile(r"(?:Buffer|Memory) on (\w+)")
# Words of a title: the measure of the first column, and the factor to our unit. OSU adds both
# directions.


def _read_osu(source: Source) -> Read:
    found = tables(source, _OSU)
    if not source.text.endswith("\n"):
        raise source.refuse("it is cut: its last line has no end")
    made = [one for table in found for one in _osu_figures(source, table)]
    said = list(warnings(source, found, made))
    if any(one.ranks is None for one in made):
        said.append(
            f"{source.path}: OSU's collectives do not say on how many processes they ran, and "
            "without that they stand beside nothing: say --ranks N"
        )
    return Read(made, said)


def _osu_figures(source: Source, table: PrintedTable) -> Iterator[ImportedFigure]:
    nccl, device, benchmark, version = table.title.groups()
    source.refuse_newer(_OSU.tool, version, (7,))
    if not table.rows:
        raise source.refuse(f"OSU's {benchmark} has no results: it is cut, or the test failed")
    notes = "\n".join(table.notes)
    pairs = _PAIRS.search(notes)
    ranks = 2 if benchmark in _PAIR or benchmark.startswith("MPI_") else source.ranks
    if pairs:
        ranks = 2 * int(pairs[1]) or None
    on_host = set(_PLACES.findall(notes)) == {"HOST"}
    first = next(iter(table.rows[0].values), "")
    called = benchmark.removesuffix(" Latency")
    function = _OSU_NAMES.get(called, called.lower().replace("-", "_").replace(" ", "_"))

    def ours(row: Row, name: str, value: float) -> Entry | None:
        if name != first or ranks is None:
            return None
        if benchmark in _PAIR:
            measure, factor = _PAIR[benchmark]
            return comparable(measure, 2, row.size, factor * value) if ranks == 2 else None
        shared = collective(function)
        return None if shared is None else comparable(shared, ranks, row.size, value)

    memory = GPU if (nccl or device) and not on_host else HOST
    shown = f"{nccl or 'MPI'}{device or ''} {benchmark}" if memory is GPU else benchmark
    like = ImportedFigure("osu", version, shown, ranks, memory=memory)
    return figures(table.rows, table.columns, like, ours)


# --- nccl-tests and rccl-tests: a row a size, out of place and in place ---------------------------
# A GB is 10^9 bytes. algbw is size / time; busbw is the load of a link, by the factors in
# nccl-tests' doc/PERFORMANCE.md, which identify the operation. `size` is a rank's whole buffer;
# MPI's size is the part for one rank.

_OUT, _IN = "out-of-place", "in-place"
_RANK = re.compile(r"#\s+Rank\s+(\d{1,9}) ")
_NCCL_VERSION = re.compile(r"# nccl-tests version (\d[\w.]{0,20})")
_OPERATION = re.compile(r"Collective test starting: (\w{1,40})_perf")
# The measure of the time, or None; busbw / algbw as multiples of 1 and of (n - 1) / n; true where
# MPI's size is a rank's share.


def _read_nccl(source: Source) -> Read:
    found = tables(source, _NCCL)
    made: list[ImportedFigure] = []
    unnamed = []
    for table in found:
        if not table.rows:
            raise source.refuse("nccl-tests have no results: it is cut, or the test failed")
        operation = _operation(source, table)
        if operation is None:
            unnamed.append(
                f"{source.path}: nccl-tests before 2.17 do not name the operation: call the file "
                "after the program, as all_reduce_perf.txt; until then it stands beside nothing"
            )
        made += _nccl_figures(source, table, operation)
    return Read(made, [*unnamed, *warnings(source, found, made)])


def _operation(source: Source, table: PrintedTable) -> str | None:
    """Return the operation that nccl-tests ran: named in the output, else in the file's name."""
    for named in map(_OPERATION.search, (*table.before, *table.notes)):
        if named and named[1] not in PROGRAMS["nccl"]["operations"]:
            raise source.refuse(f"nccl-tests' {named[1]} is not known here")
        if named:
            return named[1]
    called = [name for name in PROGRAMS["nccl"]["operations"] if f"{name}_perf" in source.path.name]
    return max(called, key=len, default=None)


def _nccl_figures(
    source: Source, table: PrintedTable, operation: str | None
) -> Iterator[ImportedFigure]:
    numbers = {int(found[1]) for text in table.notes if (found := _RANK.match(text))}
    ranks = len(numbers) if numbers == set(range(len(numbers))) else 0
    measure, whole, others, shares = PROGRAMS["nccl"]["operations"].get(
        operation or "", ("", 1, 0, False)
    )
    factor = whole + others * (ranks - 1) / ranks if ranks else 0.0
    for row in table.rows if operation and ranks else ():
        algbw, busbw = (row.values.get(f"{_OUT} {name}", 0.0) for name in ("algbw", "busbw"))
        if algbw >= 1 and abs(busbw / algbw - factor) > 0.02 * factor:
            raise source.refuse(
                f"busbw is {busbw / algbw:.2f} times algbw, and {factor:.2f} in {operation}: it is "
                "of another operation, or damaged"
            )

    def ours(row: Row, name: str, value: float) -> Entry | None:
        if operation == "sendrecv" and ranks and name == f"{_OUT} algbw":
            return comparable("sendrecv_rate", ranks, row.size, value * 8e3)
        if not measure or not ranks or name != f"{_OUT} time":
            return None
        return comparable(measure, ranks, row.size // ranks if shares else row.size, value)

    version = next(filter(None, map(_NCCL_VERSION.match, table.before)), None)
    like = ImportedFigure(
        "nccl-tests", version and version[1], operation or "unknown", ranks or None, memory=GPU
    )
    return figures(table.rows, table.columns, like, ours)


HPCC = Kind(
    "hpcc", "HPCC's hpccoutf.txt", lambda text: _BANNER in text or _BEGIN in text, _read_hpcc
)
IMB = Kind("imb", "IMB-MPI1's output", _knows_imb, _read_imb)
OSU = Kind(
    "osu",
    "output of the OSU micro-benchmarks",
    lambda text: any(map(_OSU.title.match, text.splitlines())),
    _read_osu,
)
NCCL = Kind(
    "nccl-tests",
    "output of nccl-tests",
    lambda text: re.search(_NCCL.title.pattern, text, re.MULTILINE) is not None,
    _read_nccl,
)
