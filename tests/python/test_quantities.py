# SPDX-License-Identifier: BSD-3-Clause
"""One grammar of quantities: what is printed is read back; a spelling means the same anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from switchbench.base import quantities
from switchbench.base.model import Load
from switchbench.base.quantities import COUNT, DURATION, RATE, SIZE, Quantity
from switchbench.cli import networks
from switchbench.config import fields
from switchbench.config.clauses import parse_clause
from switchbench.topology import topology
from switchbench.topology.form import Behaviour

KINDS = [DURATION, SIZE, RATE, COUNT]
WHOLE = st.integers(min_value=0, max_value=10**21)


def named(kind: Quantity) -> str:
    return kind.name


def spellings(kind: Quantity) -> dict[str, int]:
    return {**kind.units, **kind.spellings}


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_what_is_printed_is_read_back(kind: Quantity) -> None:
    @given(number=WHOLE)
    def holds(number: int) -> None:
        assert kind.whole(kind.text(number)) == number

    holds()


@given(bps=st.integers(min_value=1000, max_value=10**15))
def test_link_rates_are_read_back(bps: int) -> None:
    assert quantities.link_rate_bps(quantities.link_rate_text(bps)) == bps


def test_an_unshaped_link_is_read_back() -> None:
    text = quantities.link_rate_text(quantities.UNSHAPED)
    assert quantities.link_rate_bps(text) == quantities.UNSHAPED


POSITIVE = st.floats(min_value=1e-3, max_value=1e15)
LOADS = st.one_of(
    st.builds(Load, percent=st.floats(min_value=1e-6, max_value=100.0)),
    st.builds(Load, bps=POSITIVE),
    st.builds(Load, fps=POSITIVE),
)


@given(load=LOADS)
def test_loads_are_read_back(load: Load) -> None:
    assert quantities.load(quantities.load_text(load)) == load


def test_a_load_is_percent_bits_or_frames() -> None:
    assert quantities.load("99.98%") == Load(percent=99.98)
    assert quantities.load("1Gbit/s") == Load(bps=1e9)
    assert quantities.load("7720 fps") == Load(fps=7720.0)


def test_what_needs_no_unit() -> None:
    assert (quantities.size_bytes(1518), quantities.count(7)) == (1518, 7)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_every_spelling_is_the_number_times_its_unit(kind: Quantity) -> None:
    units = spellings(kind)

    @given(
        number=st.decimals(min_value=0, max_value=10**9, places=3),
        unit=st.sampled_from(sorted(units)),
        space=st.sampled_from(["", " "]),
    )
    def holds(number: Any, unit: str, space: str) -> None:
        if unit or kind.bare:
            assert kind.parse(f"{number:f}{space}{unit}") == number * units[unit]

    holds()


def of_topology(text: str) -> int:
    """A rate of a topology file's link."""
    read = topology.parse({"topology": 1, "rate": text, "modules": ["m"], "nodes": {"n1": {}}}, "t")
    return read.nodes[0].rate_bps


def of_model(text: str) -> int:
    return Behaviour.model_validate({"capacity": text}).capacity[0].rate  # type: ignore[index]


def of_option(text: str) -> int | None:
    return networks._rate_bps(text)


def of_test(text: str) -> int:
    load: Load = TypeAdapter(fields.LoadField).validate_python(text)
    assert load.bps is not None
    return int(load.bps)


def of_site(text: str) -> int:
    rate: int = TypeAdapter(fields.Rate).validate_python(text)
    return rate


def of_clause(text: str) -> int:
    spec = {"measure": "throughput", "require": f">= {text}"}
    return round(parse_clause(spec).limit * 1e6)


PLACES = [of_topology, of_model, of_option, of_site, of_test, of_clause]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("unit", [unit for unit in spellings(RATE) if unit])
def test_a_rate_is_the_same_in_every_place(place: Callable[[str], int], unit: str) -> None:
    text = f"2500{unit}"
    if place is of_test and "b" not in unit:  # a load may be of frames
        with pytest.raises(ValueError, match="a load of bits or of frames"):
            place(text)
    else:
        assert place(text) == 2500 * spellings(RATE)[unit]


@pytest.mark.parametrize("unit", spellings(SIZE))
def test_a_size_is_the_same_in_every_place(unit: str) -> None:
    text, size = f"2{unit}", 2 * spellings(SIZE)[unit]
    read = topology.parse(
        {
            "topology": 1,
            "queue": f"4096{unit}",
            "modules": ["m"],
            "nodes": {"n1": {}},
            "rate": "1M",
        },
        "t",
    )
    assert read.nodes[0].queue_bytes == 2048 * size
    assert TypeAdapter(fields.Size).validate_python(text) == size
    assert Behaviour.model_validate({"memory": text}).memory == size


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("unit", ["MB/s", "MB", "MBps"])
def test_bytes_are_refused_where_bits_are_meant(place: Callable[[str], int], unit: str) -> None:
    with pytest.raises(Exception, match="is in bytes, but a rate is in bits: write 800Mbit"):
        place(f"100{unit}")


def test_a_limit_in_another_unit_of_its_kind() -> None:
    def limit(measure: str, require: str) -> float:
        return parse_clause({"measure": measure, "require": require}).limit

    assert limit("round_trip_p99_us", "<= 5 ms") == 5000
    assert limit("round_trip_p99_us", "<= 5 us") == 5
    assert limit("elapsed_s", "<= 2min") == 120
    assert limit("throughput", ">= 0.9 Gbit/s") == 900
    assert limit("lost_frames", "<= 10k") == 10_000
    assert math.isclose(limit("start_skew_us", "> -5 ms"), -5000)


@pytest.mark.parametrize(
    ("parse", "value", "sentence"),
    [
        (quantities.duration_ns, 2, "2 has no unit: a time is written as 2s or 500ms"),
        (quantities.duration_ns, "2KiB", "KiB is no unit of a time"),
        (quantities.duration_ns, "2S", 'S is no unit of a time; .*did you mean "s"'),
        (quantities.duration_ns, "fast", 'found "fast", but a time is needed'),
        (quantities.duration_ns, "-1s", 'found "-1s", but a time is needed'),
        (quantities.duration_ns, True, "found true"),
        (quantities.duration_ns, "0.1ns", "no whole number"),
        (quantities.size_bytes, "64KB", "1000 to some and 1024 to others: write 64kB or 64KiB"),
        (quantities.size_bytes, "64K", "1000 to some and 1024 to others: write 64kB or 64KiB"),
        (quantities.size_bytes, "64kbit", "in bits, but a size is in bytes: write 8kB"),
        (quantities.size_bytes, "1bit", "in bits, but a size is in bytes: write 0.125B"),
        (quantities.rate_bps, 100, "100 has no unit: a rate is written as 100Mbit"),
        (quantities.rate_bps, "100MB/s", "in bytes, but a rate is in bits: write 800Mbit$"),
        (quantities.rate_bps, "1.5GiB/s", "write 12884901888bit$"),
        (quantities.rate_bps, "100mbit", 'mbit is no unit of a rate; .*did you mean "Mbit"'),
        (quantities.rate_bps, "0bit", "carries nothing"),
        (quantities.load, 95, "found 95, but a load is needed"),
        (quantities.load, "10M", "a load of bits or of frames\\? write 10Mbit or 10Mfps"),
        (quantities.load, "100MB/s", "in bytes, but a rate is in bits: write 800Mbit$"),
        (quantities.load, "100mbit", 'did you mean "Mbit"'),
        (quantities.load, "6553501%", "above line rate"),
        (quantities.load, "0%", "sends nothing"),
        (quantities.count, "10s", "s is no unit of a number"),
    ],
)
def test_refused(parse: Callable[[object], Any], value: Any, sentence: str) -> None:
    """What is no such quantity is refused with what is."""
    with pytest.raises(ValueError, match=sentence):
        parse(value)
