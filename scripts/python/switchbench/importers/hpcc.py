# SPDX-License-Identifier: BSD-3-Clause
"""hpccoutf.txt of the HPC Challenge benchmark: the lines NAME=VALUE of its summary section.

What each name is: P. Luszczek et al., Introduction to the HPC Challenge Benchmark Suite, 2005;
prefixes: `Star` on all processes at once, of one of them; `Single` on one alone; `MPI` together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..base.bounded import count, number
from .figure import ComparableFigure, ImportedFigure, Kind, Read, Source, numbered, refuse_newer

TOOL = "hpcc"
_NEWEST = (1, 5)
_BANNER = "HPC Challenge Benchmark version"
_NAME = re.compile(r"[A-Za-z]\w{0,100}")
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_LATENCY_BYTES, _BANDWIDTH_BYTES = 8, 2_000_000  # bench_lat_bw, "Benchmark conditions"


_PAIR, _EACH, _ALL = "of two", "of one process", "of all"
_HALF_RING = "HPCC counts both of a process's flows: half of it, as one flow"
_AT_ONCE = "on all at once, mean of one process"
_ALONE = "on one process, the others idle"
_UNITS = {
    "usec": "us", "GBytes": "GB/s", "Gflops": "GFlop/s", "Tflops": "TFlop/s", "GUPs": "GUpdate/s",
    "GBs": "GB/s",
}  # fmt: skip


@dataclass(frozen=True)
class _Output:
    """One name: what it is, and the measure of ours with the factor to its unit, if there is one.

    `of`: whether two processes measured at a time, or the figure is of one process of several.
    """

    benchmark: str
    unit: str
    definition: str
    size: int | None = None
    measure: str | None = None
    factor: float = 1.0
    how: str = "as it is"
    of: str = _ALL


def _outputs() -> Iterator[tuple[str, _Output]]:
    """Yield each name of the summary section that has a figure."""
    for name, what in (
        ("DGEMM_Gflops", "matrix product"),
        ("RandomAccess_GUPs", "random updates of a process's own table"),
        ("RandomAccess_LCG_GUPs", "the same with linear congruential random numbers"),
        ("FFT_Gflops", "FFT"),
        *((f"STREAM_{name}", f"STREAM {name}") for name in ("Copy", "Scale", "Add", "Triad")),
    ):
        unit = _UNITS.get(name.rpartition("_")[2], "GB/s")
        measure = {"DGEMM_Gflops": "dgemm", "STREAM_Copy": "stream_copy"}.get(name)
        kind, how = name.partition("_")[0], "of one process times their number"
        star = (f"Star{kind}", unit, f"{what} {_AT_ONCE}", None, measure, 1e9, how, _EACH)
        yield f"Star{name}", _Output(*star)
        yield f"Single{name}", _Output(f"Single{kind}", unit, f"{what} {_ALONE}")
    for name, measure, factor, what in (
        ("HPL_Tflops", "hpl", 1e12, "HPL of all processes"),
        ("PTRANS_GBs", "ptrans", 1e9, "transpose of a matrix over all processes"),
        ("MPIRandomAccess_GUPs", "random_access", 1e9,
         "random updates of a table over all processes"),
        ("MPIRandomAccess_LCG_GUPs", None, 1.0, "the same with linear congruential random numbers"),
        ("MPIFFT_Gflops", "fft", 1e9, "one FFT over all processes"),
    ):  # fmt: skip
        benchmark, _, unit = name.rpartition("_")
        yield name, _Output(benchmark, _UNITS[unit], what, None, measure, factor)
    for word, what in (("Min", "minimum"), ("Avg", "mean"), ("Max", "maximum")):
        for kind, unit, size, definition, measure, factor, how in (
            ("Latency", "usec", _LATENCY_BYTES, "half the round trip of 8 B",
             "pingpong_time", 1.0, "as it is"),
            ("Bandwidth", "GBytes", _BANDWIDTH_BYTES,
             "message / half the round trip of 2,000,000 B",
             "pingpong_rate", 8e3, "8,000 Mbit/s a GB/s"),
        ):  # fmt: skip
            yield f"{word}PingPong{kind}_{unit}", _Output(
                "PingPong", _UNITS[unit], f"{definition}, {what} over pairs", size,
                measure if word == "Avg" else None, factor, how, _PAIR,
            )  # fmt: skip
    for word, prefix, what in (
        ("Naturally", "", "naturally ordered ring"),
        ("Randomly", "random_", "geometric mean over randomly ordered rings"),
    ):
        ring = f"{word}OrderedRing"
        yield f"{ring}Latency_usec", _Output(
            ring, "us",
            f"half the slowest process's time for 8 B to and from both neighbours, {what}",
            _LATENCY_BYTES, f"{prefix}ring_time",
        )  # fmt: skip
        yield f"{ring}Bandwidth_GBytes", _Output(
            ring, "GB/s",
            f"2 x 2,000,000 B / the slowest process's time for both neighbours, {what}",
            _BANDWIDTH_BYTES, f"{prefix}ring_rate", 4e3, _HALF_RING,
        )  # fmt: skip


_OUTPUTS = dict(_outputs())


def in_ours(name: str, ranks: int, value: float) -> ComparableFigure | None:
    """What a figure of this name is by a definition that others share; None: nothing."""
    output = _OUTPUTS.get(name)
    if output is None or output.measure is None:
        return None
    value *= output.factor * (ranks if output.of == _EACH else 1)
    at_once = 2 if output.of == _PAIR else ranks
    return ComparableFigure(output.measure, at_once, output.size, value, output.how)


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
