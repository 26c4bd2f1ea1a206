# SPDX-License-Identifier: BSD-3-Clause
"""One grammar of quantities: what is printed is read back; a spelling means the same anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from configs import PROJECT
from switchbench.base import quantities
from switchbench.base.model import Load
from switchbench.base.quantities import COUNT, DURATION, RATE, SIZE, Quantity
from switchbench.base.source import read_file
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


@given(bps=st.integers(min_value=1000, max_value=10**15) | st.just(quantities.UNSHAPED))
def test_link_rates_are_read_back(bps: int) -> None:
    assert quantities.link_rate_bps(quantities.link_rate_text(bps)) == bps


POSITIVE = st.floats(min_value=1e-3, max_value=1e15)
LOADS = st.one_of(
    st.builds(Load, percent=st.floats(min_value=1e-6, max_value=100.0)),
    st.builds(Load, bps=POSITIVE),
    st.builds(Load, fps=POSITIVE),
)


@given(load=LOADS)
def test_loads_are_read_back(load: Load) -> None:
    assert quantities.load(quantities.load_text(load)) == load


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
    keys = {"queue": f"4096{unit}", "modules": ["m"], "nodes": {"n1": {}}, "rate": "1M"}
    read = topology.parse({"topology": 1} | keys, "t")
    assert read.nodes[0].queue_bytes == 2048 * size
    assert TypeAdapter(fields.Size).validate_python(text) == size
    assert Behaviour.model_validate({"memory": text}).memory == size


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("unit", ["MB/s", "MB", "MBps"])
def test_bytes_are_refused_where_bits_are_meant(place: Callable[[str], int], unit: str) -> None:
    with pytest.raises(Exception, match="is in bytes, but a rate is in bits: write 800Mbit"):
        place(f"100{unit}")


def limit(clause: Any) -> float:
    return parse_clause({"measure": clause[0], "require": clause[1]}).limit


READERS: dict[str, Callable[[Any], Any]] = {
    "duration_ns": quantities.duration_ns,
    "size_bytes": quantities.size_bytes,
    "rate_bps": quantities.rate_bps,
    "load_text": lambda text: quantities.load_text(quantities.load(text)),
    "count": quantities.count,
    "cores": lambda text: list(fields.cores(text)),
    "hosts": fields.written_order,
    "limit": limit,
}
VALUES: dict[str, Any] = read_file(PROJECT / "tests/python/data/values.yaml").data


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_and_what_is_refused(name: str) -> None:
    for text, value in VALUES[name].get("reads", ()):
        assert READERS[name](text) == value, text
    for text, words in VALUES[name].get("refuses", ()):
        with pytest.raises(ValueError, match=re.escape(words)):
            READERS[name](text)


@pytest.mark.parametrize("names", ["n" + "[1]" * 20_000, "n" + "[" * 20_000])
def test_brackets_without_end(names: str) -> None:
    with pytest.raises(ValueError, match=r"^.{1,80} has more than 8 brackets in one name$"):
        fields.written_order(names)


def test_many_hosts_are_read_at_once() -> None:
    """In time that grows with their number: 60,000 of them took minutes."""
    names = [f"n{number}" for number in range(60_000)]
    assert fields.written_order(",".join(names)) == names
