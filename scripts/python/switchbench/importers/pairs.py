# SPDX-License-Identifier: BSD-3-Clause
"""Readers of two-host benchmarks: iperf3's JSON, perftest's JSON and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.source import Pairs, json_decoder, unique
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
    Read,
    Row,
    Source,
    comparable,
    figures,
    tables,
    warnings,
)

_RANKS = 2

# --- iperf3 --json and --json-stream: one JSON value a test or event, one after the other ---------
# A rate counts payload that the receiver got; a server that only received has no record of the sent
# bytes.

_REVERSE = "_bidir_reverse"
_OF_EACH = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual")  # repeated for each connection


def _knows_iperf3(text: str) -> bool:
    begin = text.lstrip()[:1] == "{"
    return begin and ('"iperf ' in text or '"intervals"' in text or '"event"' in text[:200])


def _read_iperf3(source: Source) -> Read:
    found: list[ImportedFigure] = []
    for test in _tests(source):
        try:
            found += _iperf3_figures(source, test)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise source.refuse(f"it is damaged: {error}") from error
    return Read(found, [])


def _both_ways(pairs: Pairs) -> dict[str, Any]:
    """Return a JSON object in which the second of two equal sums becomes the reverse direction's.

    iperf3 3.7 to 3.10 repeat the key (esnet/iperf issue 952); 3.11 names it apart.
    """
    seen: set[str] = set()
    named = []
    for key, value in pairs:
        if key not in seen:
            named.append((key, value))
        elif key not in _OF_EACH:
            back = key in ("sum", "sum_sent", "sum_received")
            named.append((key + _REVERSE if back else key, value))
        seen.add(key)
    return unique(named)


def _tests(source: Source) -> Iterator[Mapping[str, Any]]:
    decoder, text = json_decoder(_both_ways), source.text.strip()
    events: dict[str, Any] = {}
    while text:
        try:
            value, place = decoder.raw_decode(text)
        except (ValueError, RecursionError) as error:
            raise source.refuse(f"it is cut or damaged: {error}") from error
        if not isinstance(value, dict):
            raise source.refuse("it is no result of iperf3: a JSON object is expected")
        if "event" in value:
            events[str(value["event"])] = value.get("data")
        if "event" not in value or value["event"] == "end":
            yield events or value
            events = {}
        text = text[place:].lstrip()
    if events:
        yield events


def _iperf3_figures(source: Source, test: Mapping[str, Any]) -> Iterator[ImportedFigure]:
    if "error" in test:
        raise source.refuse(f"iperf3 failed: {str(test['error'])[:200]}")
    start, end = test.get("start") or {}, test.get("end") or {}
    version = str(start.get("version", "")).removeprefix("iperf ") or None
    if version is not None:
        source.refuse_newer("iperf3", version, (3,))
    asked = start.get("test_start") or {}
    found = list(_sums(asked, end)) if asked else []
    if not any(ours or "received" in name for name, _, _, ours in found):
        raise source.refuse(
            "iperf3 measured nothing: there is no sum of what was received in `end`"
        )
    size = _whole(asked, "blksize") if "blksize" in asked else None
    streams = _whole(asked, "num_streams") if "num_streams" in asked else 1
    connections = "1 connection" if streams == 1 else f"{streams} connections"
    benchmark = f"{asked.get('protocol', 'TCP')}, {connections}"
    for name, unit, value, ours in found:
        yield ImportedFigure(
            "iperf3", version, benchmark, _RANKS, size, name, float(value), unit, ours
        )


def _sums(
    asked: Mapping[str, Any], end: Mapping[str, Any]
) -> Iterator[tuple[str, str, float, Entry | None]]:
    """Yield name, unit, value and comparable figure for each sum in an iperf3 test."""
    tcp = asked.get("protocol", "TCP") == "TCP"  # UDP's rate is the requested rate
    measure = "both_ways_rate" if f"sum_received{_REVERSE}" in end else "one_way_rate"
    for way in ("", _REVERSE):
        rate = (end.get(f"sum_received{way}") or {}).get("bits_per_second")
        if rate:
            ours = comparable(measure, _RANKS, None, rate / MEGA) if tcp else None
            yield f"sum_received{way}.bits_per_second", "bit/s", rate, ours
    for way in ("", _REVERSE):  # up to 3.10, UDP has no other sums
        sums = end.get(f"sum{way}") or {}
        if "lost_percent" in sums and "sum_received" not in end:
            rate, lost = sums["bits_per_second"], sums["lost_percent"]
            if not 0 <= lost <= 100:
                raise ValueError(f"lost_percent is {lost:g}")
            yield f"sum{way}.bits_per_second", "bit/s", rate, None
            yield f"sum{way} received", "bit/s", rate * (1 - lost / 100), None
    streams = end.get("streams") or []
    for number, stream in enumerate(streams if len(streams) > 1 else ()):
        rate = (stream.get("receiver") or {}).get("bits_per_second")
        if rate:
            yield f"streams.{number}.receiver.bits_per_second", "bit/s", rate, None
    for way in ("", _REVERSE):
        for where, name, unit in (
            ("sum_sent", "retransmits", ""),
            ("sum", "lost_percent", "%"),
            ("sum", "jitter_ms", "ms"),
        ):
            value = (end.get(where + way) or {}).get(name)
            if value is not None:
                yield f"{where}{way}.{name}", unit, value, None


def _whole(asked: Mapping[str, Any], key: str) -> int:
    value = asked[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {str(value)[:40]!r}, which is no whole number")
    return value


# --- perftest: the tables of ib_write_bw, ib_send_lat and the others, and --out_json --------------
# perftest's MB and MiB are 2^20 bytes, its Gb 10^9 bits. A latency of write and send is half a
# round trip; one of read and atomic is a whole round trip.

# ctx_print_test_info in perftest_parameters.c puts titles together in this form.
_TEST = re.compile(
    r"(?:(?:Send|RDMA_Write)(?:_imm)?|RDMA_Read|Atomic(?: CMP_AND_SWAP| FETCH_AND_ADD))"
    r"(?: Bidirectional)?(?: Post List)? (?:BW|Latency)( forwarding)?( Multicast)?"
)
_TITLE = re.compile(r"^ {10,30}(\S.{0,80}?) Test\s*$", re.MULTILINE)
_RULE = re.compile(r"^-{20,}\s*$", re.MULTILINE)
_MEBI, _GIGA = "[MiB/sec]", "[Gb/sec]"
_MBPS = {_MEBI: (1 << 20) * 8 / MEGA, "[MB/sec]": (1 << 20) * 8 / MEGA, _GIGA: 1e3}
_ON_GPU = re.compile(
    r"initializing (?:CUDA|MUSA)|Picking (?:GPU number|device No\.)|allocated GPU buffer"
    r"|Using ROCm|hipDevice|NEURON_RT_VISIBLE_CORES|accelerator buffer"
)


def _read_perftest(source: Source) -> Read:
    if source.text.lstrip().startswith("{"):
        made = list(_of_json(source))
        return Read(made, list(warnings(source, (), made)))
    found = tables(source, _PERFTEST)
    made = []
    for table in found:
        _refuse_unknown(source, table.title[1])
        on_gpu = any(map(_ON_GPU.search, (*table.before, *table.notes)))
        made += _perftest_figures(table.title[1], table.rows, table.columns, on_gpu)
    if not made:
        raise source.refuse(
            f"perftest's {found[0].title[1]} has no results: it failed, or this is the end that "
            "shows none"
        )
    empty = [] if all(table.rows for table in found) else [
        f"{source.path}: a table without results was passed over"
    ]  # fmt: skip
    return Read(made, [*empty, *warnings(source, found, made)])


def _refuse_unknown(source: Source, test: str) -> None:
    if _TEST.fullmatch(test) is None:
        raise source.refuse(f"perftest has a test that is not known here: {test[:60]!r}")


def _perftest_figures(
    benchmark: str, rows: Sequence[Row], columns: Mapping[str, PrintedColumn], on_gpu: bool
) -> Iterator[ImportedFigure]:
    test = _TEST.fullmatch(benchmark)
    other = test is None or test[1] or test[2] or benchmark.startswith("Atomic")

    def ours(row: Row, name: str, value: float) -> Entry | None:
        if row.part or other:
            return None
        if name.startswith("BW average"):
            mbps = value * _MBPS[name.removeprefix("BW average")]
            if "Bidirectional" in benchmark:  # the figure sums both directions
                return comparable("both_ways_rate", _RANKS, row.size, mbps / 2)
            return comparable("one_way_rate", _RANKS, row.size, mbps)
        # t_avg is a whole round trip
        if name == "t_avg[usec]" and not benchmark.startswith("RDMA_Read"):
            return comparable("pingpong_time", _RANKS, row.size, value)
        return None

    like = ImportedFigure("perftest", None, benchmark, _RANKS, memory=GPU if on_gpu else HOST)
    # The peak is 0 where perftest did not measure it.
    return (one for one in figures(rows, columns, like, ours) if one.value)


_PERFTEST, _NAMES = Form("perftest"), PROGRAMS["perftest"]["names"]
_COUNTS = ("MsgSize", "n_iterations")


def _of_json(source: Source) -> Iterator[ImportedFigure]:
    try:
        whole = json_decoder().decode(source.text)
        info, results = whole["test_info"], dict(whole["results"])
        benchmark = info["test"].removesuffix("_Test")
        size, _ = counts = [results.pop(name) for name in _COUNTS]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise source.refuse(f"it is cut, damaged or no result of perftest: {error}") from error
    for name in ("Bidirectional", "Post_List", "BW", "Latency", "forwarding", "Multicast"):
        benchmark = benchmark.replace(f"_{name}", f" {name.replace('_', ' ')}")
    benchmark = re.sub("^Atomic_", "Atomic ", benchmark)
    _refuse_unknown(source, benchmark)
    for name, value in (*zip(_COUNTS, counts, strict=True), *results.items()):
        if name not in (*_COUNTS, *_NAMES):
            raise source.refuse(f"perftest has a result that is not known here: {name[:40]!r}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise source.refuse(f"{name} is {str(value)[:40]!r}, which is no number")
    unit = _json_unit(source, size, results) if "BW_average" in results else ""
    values = {
        _NAMES[name] + (unit if name.startswith("BW_") else ""): float(value)
        for name, value in results.items()
    }
    columns = {
        name: next(column for column in _PERFTEST.columns if re.fullmatch(column.name, name))
        for name in values
    }
    uses = (info.get("Use_ROCm_memory"), info.get("Use_MUSA_memory"))
    on_gpu = "ON" in uses or "cuda_device" in info or "musa_device" in info
    yield from _perftest_figures(benchmark, [Row(int(size), "", values)], columns, on_gpu)


def _json_unit(source: Source, size: float, results: Mapping[str, Any]) -> str:
    """Return the unit of BW in perftest's JSON, which omits it, by comparison with MsgRate."""
    mbps = 8 * int(size) * results.get("MsgRate", 0)
    for unit in (_MEBI, _GIGA):
        if abs(results["BW_average"] * _MBPS[unit] - mbps) <= 0.02 * mbps:
            return unit
    raise source.refuse(
        "perftest's JSON does not name the unit of BW_average, and MsgRate does not tell it"
    )


def _knows_perftest(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return '"test_info"' in text[:4096]
    return bool(_TITLE.search(text) and _RULE.search(text))


IPERF3 = Kind("iperf3", "iperf3's output with --json", _knows_iperf3, _read_iperf3)
PERFTEST = Kind("perftest", "perftest's table or JSON", _knows_perftest, _read_perftest)
