# SPDX-License-Identifier: BSD-3-Clause
"""hpccoutf.txt of the HPC Challenge benchmark: the lines NAME=VALUE of its summary section.

What each name is: P. Luszczek et al., Introduction to the HPC Challenge Benchmark Suite, 2005;
prefixes: `Star` on all processes at once, of one of them; `Single` on one alone; `MPI` together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..base.source import count, number
from .figure import ComparableFigure, ImportedFigure, Kind, Read, Source, numbered, refuse_newer

TOOL = "hpcc"
_NEWEST = (1, 5)
_BANNER = "HPC Challenge Benchmark version"
_NAME = re.compile(r"[A-Za-z]\w{0,100}")
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_LATENCY_BYTES, _BANDWIDTH_BYTES = 8, 2_000_000  # bench_lat_bw, "Benchmark conditions"


_UNITS = {
    "usec": "us", "GBytes": "GB/s", "Gflops": "GFlop/s", "Tflops": "TFlop/s", "GUPs": "GUpdate/s",
    "GBs": "GB/s",
}  # fmt: skip
# By the name's beginning: the size of a message.
_SIZES = {
    f"{of}{kind}": size
    for of in ("MinPingPong", "AvgPingPong", "MaxPingPong", "NaturallyOrderedRing",
               "RandomlyOrderedRing")
    for kind, size in (("Latency", _LATENCY_BYTES), ("Bandwidth", _BANDWIDTH_BYTES))
}  # fmt: skip
_STREAM = ("Copy", "Scale", "Add", "Triad")
_NAMES = (
    *(
        f"{kind}{name}"
        for name in ("DGEMM_Gflops", "RandomAccess_GUPs", "RandomAccess_LCG_GUPs", "FFT_Gflops",
                     *(f"STREAM_{part}" for part in _STREAM))
        for kind in ("Star", "Single")
    ),
    *("HPL_Tflops", "PTRANS_GBs", "MPIRandomAccess_GUPs", "MPIRandomAccess_LCG_GUPs"),
    "MPIFFT_Gflops",
    *(f"{name}_{'usec' if size == _LATENCY_BYTES else 'GBytes'}" for name, size in _SIZES.items()),
)  # fmt: skip
# The measure that others share, and the factor to its unit; of `Star` one process times their
# number. A ring's bandwidth counts both of a process's flows: half of it is one flow's.
_SHARED = {
    "StarDGEMM_Gflops": ("dgemm", 1e9),
    "StarSTREAM_Copy": ("stream_copy", 1e9),
    "HPL_Tflops": ("hpl", 1e12),
    "PTRANS_GBs": ("ptrans", 1e9),
    "MPIRandomAccess_GUPs": ("random_access", 1e9),
    "MPIFFT_Gflops": ("fft", 1e9),
    "AvgPingPongLatency_usec": ("pingpong_time", 1.0),
    "AvgPingPongBandwidth_GBytes": ("pingpong_rate", 8e3),
    "NaturallyOrderedRingLatency_usec": ("ring_time", 1.0),
    "NaturallyOrderedRingBandwidth_GBytes": ("ring_rate", 4e3),
    "RandomlyOrderedRingLatency_usec": ("random_ring_time", 1.0),
    "RandomlyOrderedRingBandwidth_GBytes": ("random_ring_rate", 4e3),
}


def _knows(text: str) -> bool:
    return _BANNER in text or _BEGIN in text


def _read(source: Source) -> Read:
    """Return all runs: HPCC appends to a file that is there."""
    runs = list(_runs(source))
    figures = [one for values in runs for one in _figures(source, values)]
    if not figures:
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
    return Read(figures, said)


def _runs(source: Source) -> Iterator[dict[str, str]]:
    """Yield what each summary section says, by name."""
    values: dict[str, str] | None = None
    whole = False
    for line, text in numbered(source.text):
        name, equals, value = text.partition("=")
        if _BEGIN in text and values is None:
            values = {}
        elif values is None:
            continue
        elif _END in text:
            yield values
            values, whole = None, True
        elif _BEGIN in text:
            break
        elif equals and _NAME.fullmatch(name):
            if name in values:
                raise source.refuse(f"{name} is in one summary section twice", line)
            values[name] = value.strip()
    if values is not None:
        raise source.refuse("it is cut within HPCC's summary section")
    if not whole:
        raise source.refuse("it is cut before HPCC's summary section: the run has not ended")


def _figures(source: Source, values: Mapping[str, str]) -> Iterator[ImportedFigure]:
    if "VersionMajor" not in values or "CommWorldProcs" not in values:
        raise source.refuse(
            "its summary section lacks VersionMajor or CommWorldProcs: it is damaged"
        )
    parts = (f"Version{part}" for part in ("Major", "Minor", "Micro"))
    version = ".".join(values[part] for part in parts if part in values)
    refuse_newer(source, "HPCC", version, _NEWEST)
    if version.startswith("0."):
        raise source.refuse(f"HPCC {version} measured otherwise than 1.0 and later, which are read")
    ranks = count(values["CommWorldProcs"])
    if not ranks:
        raise source.refuse(
            f"CommWorldProcs is {values['CommWorldProcs'][:40]!r}, which is no number of processes"
        )
    for name in _NAMES:
        if name not in values:
            continue
        value = number(values[name])
        if value is None:
            raise source.refuse(f"{name} is {values[name][:40]!r}, which is no number")
        if value <= 0:  # was not run
            continue
        head, _, word = name.rpartition("_")
        pingpong = "PingPong" in head
        ring = head.removesuffix("Latency").removesuffix("Bandwidth")
        benchmark = "PingPong" if pingpong else ring if head in _SIZES else _benchmark(name)
        ours = None
        if name in _SHARED:
            measure, factor = _SHARED[name]
            factor *= ranks if name.startswith("Star") else 1
            at_once = 2 if pingpong else ranks
            ours = ComparableFigure(measure, at_once, _SIZES.get(head), value * factor)
        yield ImportedFigure(
            TOOL, version, benchmark, ranks, _SIZES.get(head), name, value,
            _UNITS.get(word, "GB/s"), ours,
        )  # fmt: skip


def _benchmark(name: str) -> str:
    """`StarSTREAM` of `StarSTREAM_Copy`; `MPIRandomAccess_LCG` keeps its generator."""
    alone = name.startswith(("Star", "Single"))
    return name.partition("_")[0] if alone else name.rpartition("_")[0]


KIND = Kind(TOOL, "HPCC's hpccoutf.txt", _knows, _read)
