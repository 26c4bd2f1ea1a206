# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench import`: the results directory of other programs' files. What is read and refused of
them: test_foreign.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foreign_data import FOREIGN as DATA
from foreign_data import bring_in
from schemas import validate_summary
from switchbench.cli.main import main
from switchbench.records.directory import SUMMARY, load_summary, replace_json
from switchbench.render.tables import TABLES


def imported(tmp_path: Path, *names: str, ranks: int | None = None) -> list[dict[str, Any]]:
    """The figures of these files, as a directory's summary has them."""
    out = tmp_path / "out"
    more = [] if ranks is None else ["--ranks", str(ranks)]
    assert main(["import", *(str(DATA / name) for name in names), "--out", str(out), *more]) == 0
    summary = load_summary(out)
    validate_summary(summary)
    entries: list[dict[str, Any]] = summary["imported"]
    return entries


# --- the directory -------------------------------------------------------------------------------


def test_originals_are_kept(tmp_path: Path) -> None:
    entries = imported(tmp_path, "hpcc-2.txt", "imb-2019.txt", "hpcc-2.txt")
    out = tmp_path / "out"
    assert {one["file"] for one in entries} == {
        "originals/hpcc-2.txt", "originals/imb-2019.txt", "originals/hpcc-2-2.txt",
    }  # fmt: skip
    for one in entries:
        assert (out / one["file"]).read_bytes().startswith((DATA / "hpcc-2.txt").read_bytes()[:1])


def test_a_directory_that_holds_something_is_not_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["import", str(DATA / "osu.txt"), "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "can't be read: No such file or directory" in capsys.readouterr().err


def test_the_command_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["import", str(DATA / "hpcc-4.txt"), "--out", str(out), "--all"]) == 0
    shown = capsys.readouterr().out
    assert "hpcc 1.5.0" in shown
    assert "31 figures, 12 by a definition that others share" in shown
    assert json.loads((out / "summary.json").read_text())["run"]["launch"] == "import"


@pytest.mark.parametrize(
    "damage",
    [
        {"value": "fast"},
        {"comparable": 7},
        {"comparable": {"measure": 3}},
        {"size": []},
        {"file": None},
        "x",
    ],
)
def test_table_of_a_damaged_figure(
    damage: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence that names it: no record of ours replaces it."""
    out = bring_in(tmp_path / "out", DATA / "hpcc-4.txt")
    summary = load_summary(out)
    entries = summary["imported"]
    entries[0] = damage if isinstance(damage, str) else entries[0] | damage
    replace_json(out / SUMMARY, summary)
    capsys.readouterr()
    assert main(["table", str(out)]) == 2
    said = capsys.readouterr()
    assert re.match(r"switchbench: .*summary\.json is damaged: at `imported\.0", said.err)
    assert said.err.count("\n") == 1


def test_table_and_report_show_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "hpcc-4.txt")
    out = tmp_path / "out"
    capsys.readouterr()
    assert main(["table", str(out)]) == 0
    assert "RandomlyOrderedRingBandwidth_GBytes" in capsys.readouterr().out
    table = TABLES["imported"](load_summary(out))
    assert table is not None
    assert table.rows == 31
    assert main(["report", str(out)]) == 0
    assert "Other programs" in (out / "report.html").read_text()
