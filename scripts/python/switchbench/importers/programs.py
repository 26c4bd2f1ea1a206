# SPDX-License-Identifier: BSD-3-Clause
"""Readers of other programs' output: HPCC, IMB-MPI1, OSU, iperf3 and perftest.

A megabyte is 10^6 bytes, except in perftest and in IMB up to 4.1, where it is 2^20 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..base.source import count, json_decoder, number, unique
from ..records.summary_form import Entry
from .reading import (
    MEGA,
    PROGRAMS,
    Form,
    ImportedFigure,
    PrintedColumn,
    PrintedTable,
    Shared,
    Source,
    collective,
    comparable,
    figures,
    tables,
)

_MEBI = float(1 << 20)
IN_GPU = "its buffers are in GPU memory: figures of host memory are read, which go another way"
_IMB, _OSU, _PERFTEST = map(Form, ("imb", "osu", "perftest"))
_UNITS, _SHARED = (PROGRAMS["hpcc"][part] for part in ("units", "shared"))
_PAIR, _OSU_NAMES = (PROGRAMS["osu"][part] for part in ("pairs", "names"))

# --- HPCC: the lines NAME=VALUE of the summary section of hpccoutf.txt ----------------------------
# Names of figures: P. Luszczek et al., Introduction to the HPC Challenge Benchmark Suite, 2005.
# Prefixes: `Star`: one of all processes, which run at the same time; `Single`: one process alone;
# `MPI`: all processes together.

_BANNER = "HPC Challenge Benchmark version"
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_VALUE = re.compile(r"^([A-Za-z]\w{0,100})=(.*)$", re.MULTILINE)
_SIZES = {"usec": 8, "GBytes": 2_000_000}  # bench_lat_bw, "Benchmark conditions"


def _read_hpcc(source: Source) -> list[ImportedFigure]:
    """Return the figures of all runs in an HPCC output file; HPCC appends each run."""
    before, *sections = source.text.split(_BEGIN)
    if not sections:
        raise source.refuse("it ends before HPCC's summary section: the run has not ended")
    runs: list[dict[str, str]] = []
    for section in sections:
        said, end, _ = section.partition(_END)
        if not end:
            raise source.refuse("it ends within HPCC's summary section")
        runs.append({})
        for pair in _VALUE.finditer(said):
            if pair[1] in runs[-1]:
                line = before.count("\n") + said.count("\n", 0, pair.start()) + 1
                raise source.refuse(f"{pair[1]} is in one summary section twice", line)
            runs[-1][pair[1]] = pair[2].strip()
        before += section
    found = [one for values in runs for one in _hpcc_figures(source, values)]
    if not found:
        raise source.refuse("HPCC measured nothing in this run: all figures of its summary are -1")
    for values in runs:
        if values.get("Success") == "0":
            source.warn(
                "HPCC says that a check of its own failed (Success=0) on "
                f"{values['CommWorldProcs']} processes"
            )
    begun = source.text.count(_BANNER)
    if begun > len(runs):
        source.warn(f"{begun - len(runs)} of {begun} runs in it have no summary")
    return found


def _hpcc_figures(source: Source, values: Mapping[str, str]) -> Iterator[ImportedFigure]:
    if "VersionMajor" not in values or "CommWorldProcs" not in values:
        raise source.refuse("its summary lacks VersionMajor or CommWorldProcs: it is damaged")
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
        if value <= 0:  # HPCC did not run the test
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
        yield ImportedFigure(
            "hpcc", version, benchmark, ranks, size, name, value, _UNITS[unit], ours
        )


# --- IMB-MPI1: a table for each benchmark and number of processes ---------------------------------
# Factors of IMB's Mbytes/sec: Intel MPI Benchmarks User Guide, "Benchmark methodology"; PingPong
# and PingPing 1, Sendrecv 2, Exchange 4. A megabyte is 2^20 bytes up to 4.1 and 10^6 in 2019: a
# table's times show which.

_LAST_MEBI = (4, 1)  # last version with 2^20 bytes; decides if a table has no times
_SURE = 0.01  # max relative error of a rate from its time; the two megabytes differ by 0.049
_IMB_VERSION = re.compile(
    r"(?:Intel ?\(R\) MPI Benchmarks?|PALLAS MPI Benchmark)(?: Suite)?\s+V?(\d[\d.]{0,20})"
    r"(?: Update (\d{1,9}))?, *([\w-]{1,40}) part"
)
IMB_RATE = "Mbytes/sec"
_PROCESSES = re.compile(r"# \(? ?#processes = (\d{1,9})\b")
_GROUPS = re.compile(r"\b(\d{1,9}) groups of (\d{1,9}) processes")
_IMB_END = "# All processes entering MPI_Finalize"
OF_TWO = ("pingpong", "pingping")  # only two ranks communicate in these functions


def imb_shared(function: str, mega: float = MEGA) -> Shared:
    """Return the shared measures of an IMB function's columns: bandwidth and mean time.

    `mega`: bytes of a megabyte.
    """
    measure, times = PROGRAMS["imb"]["rates"].get(function, ("", 1))
    rate: Shared = {IMB_RATE: (measure, 8 * mega / MEGA / times)} if measure else {}
    if function == "pingpong":
        return rate | {"t[usec]": ("pingpong_time", 1.0)}
    return rate | collective(function, "t_avg[usec]")


def _read_imb(source: Source) -> list[ImportedFigure]:
    version = None
    if title := _IMB_VERSION.search(source.text):
        source.refuse_newer(_IMB.tool, title[1], (2021,))
        if title[3] != "MPI-1":
            raise source.refuse(f"it is of IMB's part {title[3]}: only MPI-1 is read (IMB-MPI1)")
        version = title[1] + (f" Update {title[2]}" if title[2] else "")
    found = tables(source, _IMB)
    if _IMB_END not in source.text:
        raise source.refuse(
            "it is truncated: IMB's last line (All processes entering MPI_Finalize) is missing"
        )
    mega = _megabyte(found, version)
    made: list[ImportedFigure] = []
    for table in found:
        benchmark, notes = table.title[1], "\n".join(table.notes)
        processes, groups = _PROCESSES.search(notes), _GROUPS.search(notes)
        ranks = int(processes[1]) if processes else 0
        ranks = int(groups[1]) * int(groups[2]) if groups else ranks
        if table.rows and not ranks:
            raise source.refuse(f"{benchmark} does not say on how many processes")
        if mega == _MEBI:
            table.columns |= {IMB_RATE: PrintedColumn(IMB_RATE, "MiB/s")}
        like = ImportedFigure("imb", version, benchmark, ranks)
        made += figures(table.rows, table.columns, like, imb_shared(benchmark.lower(), mega))
    if not made:
        raise source.refuse("there is no table with results in it")
    return made


def _megabyte(found: Sequence[PrintedTable], version: str | None) -> float:
    """Return the bytes of the megabyte in an IMB table: 10^6 or 2^20.

    The largest message with a time and a rate shows the unit; without any, IMB's version decides.
    """
    rows = [(row.size, row, table) for table in found for row in table.rows]
    for size, row, table in sorted(rows, key=lambda one: -one[0]):
        rate = row.values.get(IMB_RATE)
        time_us = row.values.get("t[usec]") or row.values.get("t_max[usec]")
        _, times = PROGRAMS["imb"]["rates"].get(table.title[1].lower(), ("", 0))
        messages = row.values.get("Msg/sec") or (times * 1e6 / time_us if time_us else 0.0)
        for mega in (_MEBI, MEGA) if rate else ():
            if abs(size * messages / ((rate or 0.0) * mega) - 1) < _SURE:
                return mega
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version or "")[:2])
    return _MEBI if numbers and numbers <= _LAST_MEBI else MEGA


# --- OSU micro-benchmarks: a title, a line of columns, a row per size -----------------------------
# OSU's tests of collectives do not print the number of processes.

_PAIRS = re.compile(r"\[ pairs: (\d{1,9}) \]")
_PLACES = re.compile(r"(?:Buffer|Memory) on (\w+)")


def _read_osu(source: Source) -> list[ImportedFigure]:
    found = tables(source, _OSU)
    if not source.text.endswith("\n"):
        raise source.refuse("it is truncated: its last line has no line feed")
    made: list[ImportedFigure] = []
    for table in found:
        nccl, device, benchmark, version = table.title.groups()
        source.refuse_newer(_OSU.tool, version, (7,))
        notes = "\n".join(table.notes)
        places = set(_PLACES.findall(notes))
        if (nccl or device or places) and places != {"HOST"}:
            raise source.refuse(IN_GPU)
        if not table.rows:
            raise source.refuse(f"OSU's {benchmark} has no results: it is cut, or the test failed")
        pairs = _PAIRS.search(notes)
        ranks = 2 if benchmark in _PAIR or benchmark.startswith("MPI_") else source.ranks
        if pairs:
            ranks = 2 * int(pairs[1]) or None
        first = next(iter(table.rows[0].values), "")
        called = benchmark.removesuffix(" Latency")
        function = _OSU_NAMES.get(called, called.lower().replace("-", "_").replace(" ", "_"))
        shared = collective(function, first)
        if benchmark in _PAIR:
            shared = {first: _PAIR[benchmark]} if ranks == 2 else {}
        like = ImportedFigure("osu", version, benchmark, ranks)
        made += figures(table.rows, table.columns, like, shared)
    if any(one.ranks is None for one in made):
        source.warn(
            "OSU's collectives do not say on how many processes they ran, and without that they "
            "stand beside nothing: say --ranks N"
        )
    return made


_RANKS = 2  # iperf3 and perftest have two processes

# --- iperf3 --json and --json-stream: one JSON value per test or event ----------------------------
# A rate counts the payload that the receiver got. A server that only received has no record of the
# bytes sent.

_REVERSE = "_bidir_reverse"
_OF_EACH = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")  # one for each connection


def _read_iperf3(source: Source) -> list[ImportedFigure]:
    found: list[ImportedFigure] = []
    for test in _tests(source):
        try:
            found += _iperf3_figures(source, test)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise source.refuse(f"it is damaged: {error}") from error
    return found


def _tests(source: Source) -> Iterator[Entry]:
    # iperf3 repeats some keys. Versions 3.7 to 3.10 also repeat the sums with --bidir
    # (esnet/iperf issue 952): output with repeated sums is rejected like other duplicate keys.
    decoder = json_decoder(lambda pairs: unique([one for one in pairs if one[0] not in _OF_EACH]))
    text = source.text.strip()
    events: Entry = {}
    while text:
        try:
            value, place = decoder.raw_decode(text)
        except (ValueError, RecursionError) as error:
            raise source.refuse(f"it is cut or damaged: {error}") from error
        if not isinstance(value, dict):
            raise source.refuse("it is not a result of iperf3: a JSON object is expected")
        if "event" in value:
            events[str(value["event"])] = value.get("data")
        if "event" not in value or value["event"] == "end":
            yield events or value
            events = {}
        text = text[place:].lstrip()
    if events:
        yield events


def _iperf3_figures(source: Source, test: Entry) -> Iterator[ImportedFigure]:
    if "error" in test:
        raise source.refuse(f"iperf3 failed: {str(test['error'])[:200]}")
    start, end = test.get("start") or {}, test.get("end") or {}
    version = str(start.get("version", "")).removeprefix("iperf ") or None
    if version is not None:
        source.refuse_newer("iperf3", version, (3,))
    asked = start.get("test_start") or {}
    if asked.get("protocol", "TCP") != "TCP":
        raise source.refuse("it is a UDP test, whose rate is the configured one: use a TCP test")
    size = _whole(asked, "blksize") if "blksize" in asked else None
    streams = _whole(asked, "num_streams") if "num_streams" in asked else 1
    benchmark = "TCP, 1 connection" if streams == 1 else f"TCP, {streams} connections"
    measure = "both_ways_rate" if f"sum_received{_REVERSE}" in end else "one_way_rate"
    known = False
    for way in ("", _REVERSE) if asked else ():
        rate = (end.get(f"sum_received{way}") or {}).get("bits_per_second")
        if rate:
            known = True
            ours, name = comparable(measure, _RANKS, None, rate / MEGA), f"sum_received{way}"
            yield ImportedFigure(
                "iperf3", version, benchmark, _RANKS, size, f"{name}.bits_per_second", float(rate),
                "bit/s", ours,
            )  # fmt: skip
    if not known:
        raise source.refuse(
            "iperf3 measured nothing: there is no sum of what was received in `end`"
        )


def _whole(asked: Entry, key: str) -> int:
    value = asked[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {str(value)[:40]!r}, which is not a whole number")
    return value


# --- perftest: the tables of ib_write_bw, ib_send_lat and the others ------------------------------
# In perftest MB and MiB are 2^20 bytes, Gb 10^9 bits. The latency of write and send is half a round
# trip, the latency of read and atomic is a whole round trip.

# ctx_print_test_info in perftest_parameters.c builds titles of this form.
_TEST = re.compile(
    r"(?:(?:Send|RDMA_Write)(?:_imm)?|RDMA_Read|Atomic(?: CMP_AND_SWAP| FETCH_AND_ADD))"
    r"(?: Bidirectional)?(?: Post List)? (?:BW|Latency)( forwarding)?( Multicast)?"
)
_MBPS = {"[MiB/sec]": _MEBI * 8 / MEGA, "[MB/sec]": _MEBI * 8 / MEGA, "[Gb/sec]": 1e3}
_ON_GPU = re.compile(
    r"initializing (?:CUDA|MUSA)|Picking (?:GPU number|device No\.)|allocated GPU buffer"
    r"|Using ROCm|hipDevice|NEURON_RT_VISIBLE_CORES|accelerator buffer"
)


def _read_perftest(source: Source) -> list[ImportedFigure]:
    if _ON_GPU.search(source.text):
        raise source.refuse(IN_GPU)
    found = tables(source, _PERFTEST)
    made: list[ImportedFigure] = []
    for table in found:
        benchmark = table.title[1]
        test = _TEST.fullmatch(benchmark)
        if test is None:
            raise source.refuse(f"perftest has a test that is unknown here: {benchmark[:60]!r}")
        shared: Shared = {}
        if not (test[1] or test[2] or benchmark.startswith("Atomic")):
            both = "Bidirectional" in benchmark  # the figure sums both directions
            measure, share = ("both_ways_rate", 0.5) if both else ("one_way_rate", 1.0)
            shared = {f"BW average{unit}": (measure, share * mbps) for unit, mbps in _MBPS.items()}
            if not benchmark.startswith("RDMA_Read"):  # t_avg of a read is a whole round trip
                shared["t_avg[usec]"] = ("pingpong_time", 1.0)
        like = ImportedFigure("perftest", None, benchmark, _RANKS)
        # perftest prints a peak of 0 if it did not measure one.
        made += (one for one in figures(table.rows, table.columns, like, shared) if one.value)
    if not made:
        raise source.refuse(
            f"perftest's {found[0].title[1]} has no results: it failed, or this is the end that "
            "shows none"
        )
    if not all(table.rows for table in found):
        source.warn("a table without results was skipped")
    return made


_READERS: dict[str, Callable[[Source], list[ImportedFigure]]] = {
    "hpcc": _read_hpcc,
    "imb": _read_imb,
    "osu": _read_osu,
    "perftest": _read_perftest,
    "iperf3": _read_iperf3,
}


class Kind(NamedTuple):
    """Program whose output files are read; `title` names these files for users."""

    tool: str
    title: str
    contents: list[str]  # regular expressions that all match the program's output

    def knows(self, text: str) -> bool:
        """Return whether a text is output of this program."""
        return all(re.search(one, text, re.MULTILINE) for one in self.contents)

    def read(self, source: Source) -> list[ImportedFigure]:
        """Return the figures in an output file of this program."""
        return _READERS[self.tool](source)


KINDS = tuple(Kind(tool, *declared.values()) for tool, declared in PROGRAMS["files"].items())
