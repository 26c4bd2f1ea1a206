# SPDX-License-Identifier: BSD-3-Clause
"""YAML with positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchbench.base.errors import ConfigurationError
from switchbench.base.source import parse_assignment, parse_text, read_file


def test_every_value_has_its_line() -> None:
    """Keys and list entries are marked where they stand; a missing key where its mapping is."""
    document = parse_text("a: 1\nb:\n- c: 2\n- {d: 3,\n   e: 4}\n", "x.yaml")
    assert document.data == {"a": 1, "b": [{"c": 2}, {"d": 3, "e": 4}]}
    assert str(document.mark(("b", 1, "e"))) == "x.yaml:5"
    assert str(document.mark(("b", 1, "missing"))) == "x.yaml:4"
    assert str(document.problem(("b", 0, "c"), "is wrong")) == "x.yaml:3: b.0.c: is wrong"


def test_an_alias_is_the_value_again() -> None:
    """Each a value of its own; marked where its anchor stands."""
    document = parse_text("a: &x {l: [1, &y 2]}\nb: *x\nc: *y\n", "x.yaml")
    assert document.data == {"a": {"l": [1, 2]}, "b": {"l": [1, 2]}, "c": 2}
    nested = parse_text("a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n", "x.yaml").data
    assert nested["c"] == [[[1], [1]], [[1], [1]]]
    assert document.data["a"] is not document.data["b"]
    assert str(document.mark(("b", "l"))) == "x.yaml:1"


def test_scalars_are_those_of_yaml_1_2() -> None:
    """No base-60 numbers, no `yes`: a PCI address and a MAC address stay text."""
    text = "pci: 0000:03:00.0\nmac: 12:34:56:11:22:33\nyes: no\nn: ~\nt: true\ni: -3\nf: 1.5e3\n"
    assert parse_text(text, "x").data == {
        "pci": "0000:03:00.0", "mac": "12:34:56:11:22:33", "yes": "no", "n": None, "t": True,
        "i": -3, "f": 1500.0,
    }  # fmt: skip


DIGITS = "7" * 5001
ALIASES = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ALIASES, "x:6: is too large to be read: more than 50000 values, those of aliases"),
        ("a: " + "[" * 20_000, "x:1: is too large to be read: .* more than 64 deep"),
        ("a: " + "{a: " * 20_000, "x:1: is too large to be read: .* more than 64 deep"),
        (f"seed: {DIGITS}\n", 'x:1: "7{56}[.]{3}" is a number of 5001 digits'),
    ],
)
def test_hostile(text: str, sentence: str) -> None:
    """Nothing is made of what no configuration needs."""
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        parse_text(text, "x")
    assert len(str(caught.value)) < 200


def test_a_file_beyond_any_configuration(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text("a: 1\n# " + "x" * (5 << 20))
    with pytest.raises(ConfigurationError, match=r"long\.yaml: is too large .* 4 MiB"):
        read_file(tmp_path / "long.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and one that is no text say so."""
    with pytest.raises(ConfigurationError, match=r"no\.yaml: can't be read: No such file"):
        read_file(tmp_path / "no.yaml")
    (tmp_path / "latin1.yaml").write_bytes(b"a: \xe4\n")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_file(tmp_path / "latin1.yaml")


def test_assignments() -> None:
    """`--set` has a dotted path and a YAML value."""
    assert parse_assignment("tests.0.load=95%")[:2] == (("tests", 0, "load"), "95%")
    assert parse_assignment("loads=[50%, 95%]")[:2] == (("loads",), ["50%", "95%"])
    for argument in ("window", "=1s", "a..b=1"):
        with pytest.raises(ConfigurationError, match=f"--set {argument}"):
            parse_assignment(argument)
    with pytest.raises(ConfigurationError, match=r"--set loads=.*: is too large .* 64 deep"):
        parse_assignment("loads=" + "[" * 20_000)
