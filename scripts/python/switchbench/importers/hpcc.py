# SPDX-License-Identifier: BSD-3-Clause
"""hpccoutf.txt of the HPC Challenge benchmark: the lines NAME=VALUE of its summary section.

What each name is: P. Luszczek et al., Introduction to the HPC Challenge Benchmark Suite, 2005;
prefixes: `Star` on all processes at once, of one of them; `Single` on one alone; `MPI` together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..base.bounded import count, number
from .figure import ComparableFigure, ImportedFigure, Kind, Read, Source, numbered, refuse_newer

TOOL = "hpcc"
_NEWEST = (1, 5)
_BANNER = "HPC Challenge Benchmark version"
_NAME = re.compile(r"[A-Za-z]\w{0,100}")
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_LATENCY_BYTES, _BANDWIDTH_BYTES = 8, 2_000_000  # bench_lat_bw, "Benchmark conditions"


@dataclass(frozen=True)
class _Output:
    """One name; `ours`: measure, factor to its unit, and how."""

    name: str
    benchmark: str
    unit: str
    definition: str
    size: int | None = None
    ours: tuple[str, Callable[[int], float], str] | None = None
    pair: bool = False  # two processes at a time, whatever their number


def _times(factor: float) -> Callable[[int], float]:
    return lambda _: factor


def _all(factor: float) -> Callable[[int], float]:
    return lambda ranks: factor * ranks


_TOGETHER = "of one process times their number"
_HALF_RING = "HPCC counts both of a process's flows: half of it, as one flow"


def _local(kind: str, unit: str, what: str) -> Iterator[_Output]:
    """A benchmark on all processes at once, and on one alone."""
    for prefix, words in (("Star", "on all at once, mean of one process"),
                          ("Single", "on one process, the others idle")):  # fmt: skip
        yield _Output(
            f"{prefix}{kind}", f"{prefix}{kind.partition('_')[0]}", unit, f"{what} {words}"
        )


_MESSAGE_TIME = ("pingpong_time", _times(1.0), "as it is")
_MESSAGE_RATE = ("pingpong_rate", _times(8e3), "8,000 Mbit/s a GB/s")


def _pingpong() -> Iterator[_Output]:
    for word, what in (("Min", "minimum"), ("Avg", "mean"), ("Max", "maximum")):
        mean = word == "Avg"
        yield _Output(
            f"{word}PingPongLatency_usec", "PingPong", "us",
            f"half the round trip of 8 B, {what} over pairs",
            _LATENCY_BYTES, _MESSAGE_TIME if mean else None, pair=True,
        )  # fmt: skip
        yield _Output(
            f"{word}PingPongBandwidth_GBytes", "PingPong", "GB/s",
            f"message / half the round trip of 2,000,000 B, {what} over pairs",
            _BANDWIDTH_BYTES, _MESSAGE_RATE if mean else None, pair=True,
        )  # fmt: skip


def _rings() -> Iterator[_Output]:
    for word, prefix, what in (
        ("Naturally", "", "naturally ordered ring"),
        ("Randomly", "random_", "geometric mean over randomly ordered rings"),
    ):
        yield _Output(
            f"{word}OrderedRingLatency_usec", f"{word}OrderedRing", "us",
            f"half the slowest process's time for 8 B to and from both neighbours, {what}",
            _LATENCY_BYTES, (f"{prefix}ring_time", _times(1.0), "as it is"),
        )  # fmt: skip
        yield _Output(
            f"{word}OrderedRingBandwidth_GBytes", f"{word}OrderedRing", "GB/s",
            f"2 x 2,000,000 B / the slowest process's time for both neighbours, {what}",
            _BANDWIDTH_BYTES, (f"{prefix}ring_rate", _times(4e3), _HALF_RING),
        )  # fmt: skip


_GLOBAL = (
    _Output("HPL_Tflops", "HPL", "TFlop/s", "HPL of all processes",
            ours=("hpl", _times(1e12), "as it is")),
    _Output("PTRANS_GBs", "PTRANS", "GB/s", "transpose of a matrix over all processes",
            ours=("ptrans", _times(1e9), "as it is")),
    _Output("MPIRandomAccess_GUPs", "MPIRandomAccess", "GUpdate/s",
            "random updates of a table over all processes",
            ours=("random_access", _times(1e9), "as it is")),
    _Output("MPIRandomAccess_LCG_GUPs", "MPIRandomAccess_LCG", "GUpdate/s",
            "the same with linear congruential random numbers"),
    _Output("MPIFFT_Gflops", "MPIFFT", "GFlop/s", "one FFT over all processes",
            ours=("fft", _times(1e9), "as it is")),
    _Output("StarDGEMM_Gflops", "StarDGEMM", "GFlop/s",
            "matrix product on all at once, mean of one process",
            ours=("dgemm", _all(1e9), _TOGETHER)),
    _Output("StarSTREAM_Copy", "StarSTREAM", "GB/s",
            "STREAM Copy on all at once, mean of one process",
            ours=("stream_copy", _all(1e9), _TOGETHER)),
)  # fmt: skip
_LOCAL = (
    ("DGEMM_Gflops", "GFlop/s", "matrix product"),
    ("RandomAccess_GUPs", "GUpdate/s", "random updates of a process's own table"),
    ("RandomAccess_LCG_GUPs", "GUpdate/s", "the same with linear congruential random numbers"),
    ("FFT_Gflops", "GFlop/s", "FFT"),
    *((f"STREAM_{name}", "GB/s", f"STREAM {name}") for name in ("Copy", "Scale", "Add", "Triad")),
)


def _outputs() -> dict[str, _Output]:
    every = [one for kind in _LOCAL for one in _local(*kind)]
    return {one.name: one for one in (*every, *_GLOBAL, *_pingpong(), *_rings())}


_OUTPUTS = _outputs()


def in_ours(name: str, ranks: int, value: float) -> ComparableFigure | None:
    """What a figure of this name is by a definition that others share; None: nothing."""
    output = _OUTPUTS.get(name)
    if output is None or output.ours is None:
        return None
    measure, factor, how = output.ours
    at_once = 2 if output.pair else ranks
    return ComparableFigure(measure, at_once, output.size, value * factor(ranks), how)


def _knows(text: str) -> bool:
    return _BANNER in text or _BEGIN in text


def _read(source: Source) -> Read:
    """All runs: HPCC appends to a file that is there."""
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
    for name, output in _OUTPUTS.items():
        if name not in values:
            continue
        value = number(values[name])
        if value is None:
            raise source.refuse(f"{name} is {values[name][:40]!r}, which is no number")
        if value <= 0:  # was not run
            continue
        yield ImportedFigure(
            TOOL, version, output.benchmark, ranks, output.size, name, value, output.unit,
            output.definition, in_ours(name, ranks, value),
        )  # fmt: skip


KIND = Kind(TOOL, "HPCC's hpccoutf.txt", _knows, _read)
