# SPDX-License-Identifier: BSD-3-Clause
"""Readers of other programs' files: what each reads and refuses, and `switchbench import`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import Command
from foreign_data import EXPECTED, FOREIGN, bring_in, commands_of, transcript
from recorded import validate_summary
from switchbench.config import read
from switchbench.importers import directory as kinds
from switchbench.records.directory import SUMMARY, load_summary, replace_json
from switchbench.topology.cabling import lldp_neighbours

INPUTS = sorted(path.name for path in FOREIGN.iterdir() if path.suffix not in (".md", ".yaml"))
REFUSED: list[dict[str, Any]] = yaml.safe_load((FOREIGN / "refused.yaml").read_text())


@pytest.mark.parametrize("name", [name for name in INPUTS if not name.endswith(EXPECTED)])
def test_what_is_read(name: str) -> None:
    expected = FOREIGN / f"{name}{EXPECTED}"
    assert transcript(commands_of(expected)) == expected.read_text()


LONG = {
    "<digits>": "9" * 5000,
    "<blanks>": " " * 300_000,
    "<lines>": "\n" * 300_000,
    "<levels>": "[" * 100_000,
    "<objects>": '{"a":' * 200_000,
}


def changed(case: dict[str, Any]) -> str:
    """Return the input of a case."""
    text = str(case["text"]) if "text" in case else (FOREIGN / case["of"]).read_text()
    if "share" in case:
        return text[: int(case["share"] * len(text))]
    if old := case.get("until", case.get("old")):
        assert old in text
        text = text.partition(old)[0] if "until" in case else text.replace(old, case["new"])
    for word, long in LONG.items():
        text = text.replace(word, long)
    return text


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.get('of', '')}: {case['says']}")
def test_what_is_refused(case: dict[str, Any], tmp_path: Path, cli: Command) -> None:
    path, out = tmp_path / Path(case.get("of", "given.txt")).name, tmp_path / "out"
    path.write_text(changed(case))
    words = case.get("command", "import FILE --out OUT").split()
    places = {"FILE": str(path), "OUT": str(out)}
    said = cli.refuses(*(places.get(word, word) for word in words))
    assert case["says"] in said
    assert len(said) < 1000
    option = case["says"].startswith(("--", "found"))
    assert option or re.search(rf"{re.escape(str(path))}|\bnode1\b", said)
    assert not out.exists()


# --- hosts -------------------------------------------------------------------------------------

HOSTS: list[dict[str, Any]] = yaml.safe_load((FOREIGN / "hosts.yaml").read_text())


@pytest.mark.parametrize("case", HOSTS, ids=lambda case: repr(case["hosts"]))
def test_lists_of_hosts(case: dict[str, Any], tmp_path: Path, cli: Command) -> None:
    conf = tmp_path / "conf.yaml"
    site = {
        "launch": "ssh",
        "hosts": case["hosts"],
        "ports": {"e0": {"network": "n", "iface": "e"}},
    }
    tests = [{"pattern": "pairs", "transport": "tcp"}]
    conf.write_text(yaml.safe_dump({"switchbench": 1, "site": site, "tests": tests}))
    if "says" in case:
        said = cli.refuses("plan", conf)
        assert case["says"] in said
        return
    hosts = [process.name for process in read(conf).site.processes]
    assert hosts == case.get("are", hosts)
    assert len(hosts) == case.get("count", len(hosts))
    assert (hosts[0], hosts[-1]) == (case.get("first", hosts[0]), case.get("last", hosts[-1]))


@pytest.mark.parametrize("command", [["import"], ["topology", "import", "--ibnetdiscover"]])
def test_files_without_an_end_are_not_read(
    command: list[str], tmp_path: Path, cli: Command
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "terabyte").open("wb") as sparse:
        sparse.truncate(1 << 40)
    for path in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path / "terabyte"), str(tmp_path)):
        said = cli.refuses(*command, path)
        assert re.search("is not a regular file|is too large|Is a directory", said)


# --- what holds for every program --------------------------------------------------------------

_NO_FIGURES = ("ibnet", "lldp")
PROGRAMS = [n for n in INPUTS if not (n.endswith(EXPECTED) or n.startswith(_NO_FIGURES))]
every = pytest.mark.parametrize("name", PROGRAMS)


def test_every_program_has_a_file_here() -> None:
    tools = {kinds.read(FOREIGN / name).figures[0].tool for name in PROGRAMS}
    assert tools == {kind.tool for kind in kinds.KINDS}


@every
def test_a_file_is_known_by_one_reader(name: str) -> None:
    (found, *_) = kinds.read(FOREIGN / name).figures
    text = kinds.Source(FOREIGN / name, (FOREIGN / name).read_text()).text
    assert [kind.tool for kind in kinds.KINDS if kind.knows(text)] == [found.tool]


@every
def test_a_file_that_windows_has_kept(name: str, tmp_path: Path) -> None:
    """The file begins with a byte order mark, and its lines end with CR and LF."""
    kept = tmp_path / name
    kept.write_bytes(b"\xef\xbb\xbf" + (FOREIGN / name).read_bytes().replace(b"\n", b"\r\n"))
    assert kinds.read(kept, 4).figures == kinds.read(FOREIGN / name, 4).figures


@every
def test_a_file_that_was_cut_is_refused_or_says_less(name: str, tmp_path: Path) -> None:
    """A cut file has no figure that the whole file lacks, and raises no other error."""
    content = (FOREIGN / name).read_bytes()
    whole = kinds.read(FOREIGN / name, 4).figures
    path = tmp_path / name
    for at in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:at])
        found, refusal = [], f"{path}: no figure"
        try:
            found = kinds.read(path, 4).figures
        except kinds.ConfigurationError as error:
            refusal = str(error)
        assert all(figure in whole for figure in found)
        assert refusal.startswith(f"{path}: ")
        assert "\n" not in refusal


def test_an_interface_with_several_neighbours_is_not_blamed() -> None:
    """`doctor --site` takes the neighbour that forwards, in any order of the neighbours."""
    said = json.loads((FOREIGN / "lldp-bmc" / "node1.json").read_text())
    for _ in range(2):
        assert lldp_neighbours(json.dumps(said))["ens1"].switch == "leaf1"
        said["lldp"]["interface"].reverse()


# --- `switchbench import` -------------------------------------------------------------------------


# --- the directory -----------------------------------------------------------------------------


def test_originals_are_kept(tmp_path: Path) -> None:
    names = ("hpcc-2.txt", "imb-2019.txt", "hpcc-2.txt")
    out = bring_in(tmp_path / "out", *(FOREIGN / name for name in names))
    summary = load_summary(out)
    validate_summary(summary)
    assert {one["file"] for one in summary["imported"]} == {
        "originals/hpcc-2.txt", "originals/imb-2019.txt", "originals/hpcc-2-2.txt",
    }  # fmt: skip
    for kept in (out / "originals").iterdir():
        read = FOREIGN / kept.name.replace("2-2", "2")
        assert kept.read_bytes() == read.read_bytes()


def test_a_directory_that_holds_something_is_not_touched(tmp_path: Path, cli: Command) -> None:
    (tmp_path / "mine").write_text("x")
    assert "is not empty" in cli.refuses("import", FOREIGN / "osu.txt", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_that_is_not_there(tmp_path: Path, cli: Command) -> None:
    said = cli.refuses("import", tmp_path / "none", "--out", tmp_path / "out")
    assert "can't be read: No such file or directory" in said


def test_the_command_says_what_it_read(tmp_path: Path, cli: Command) -> None:
    out = tmp_path / "out"
    shown = cli.prints("import", FOREIGN / "hpcc-4.txt", "--out", out, "--all")
    assert "hpcc 1.5.0" in shown
    assert "31 figures, 12 with a definition that several programs share" in shown
    assert json.loads((out / "summary.json").read_text())["run"]["launch"] == "import"


@pytest.mark.rows
def test_table_of_a_damaged_figure(damage: Any, tmp_path: Path, cli: Command) -> None:
    """The command names the damage in one sentence: the results have no tables to rebuild from."""
    out = bring_in(tmp_path / "out", FOREIGN / "hpcc-4.txt")
    summary = load_summary(out)
    entries = summary["imported"]
    entries[0] = damage if isinstance(damage, str) else entries[0] | damage
    replace_json(out / SUMMARY, summary)
    said = cli.refuses("table", out)
    assert re.match(r"switchbench: .*summary\.json is damaged: at `imported\.0", said)
