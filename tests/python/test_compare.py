# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare` on results made by hand: what differs, how sure, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scipy.special import stdtrit

from compared import Repeats, make, rate_mbps
from recorded import replace_rows, rows_in
from simulated import Choice, simulate
from switchbench.base.format import signed
from switchbench.cli.main import main
from switchbench.render.comparison import relative

SLOW = Repeats([(7000, 6800), (7010, 6810), (6990, 6790)])
FAST = Repeats([(7700, 7710), (7720, 7690), (7710, 7700)])


def result(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> dict[str, Any]:
    """What the command writes as JSON."""
    assert main(["compare", *map(str, words), "--json", "-"]) == status
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def refused(capsys: pytest.CaptureFixture[str], *words: object, shown: bool = False) -> str:
    """The one sentence of a command that compares nothing; `shown`: what it read is shown."""
    assert main(["compare", *map(str, words)]) == 2
    said = capsys.readouterr()
    assert bool(said.out) == shown
    return said.err.removeprefix("switchbench: ").strip()


def row(rows: list[dict[str, Any]], measure: str, of: str | None = None) -> dict[str, Any]:
    """The only row of that measure."""
    (found,) = [one for one in rows if one["measure"] == measure and one["of"] == of]
    return found


# --- differences ---------------------------------------------------------------------------------


def test_a_difference_of_two_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = make(tmp_path / "old", SLOW), make(tmp_path / "new", FAST)
    found = result(capsys, old, new)
    assert [one["name"] for one in found["results"]] == ["old", "new"]
    (comparison,) = found["comparisons"]
    mean = row(comparison["plans"], "mean_rate")
    assert mean["baseline"] == pytest.approx(rate_mbps(6900), abs=1e-5)
    assert mean["other"] == pytest.approx(rate_mbps(7705), abs=1e-5)
    assert mean["difference"] == pytest.approx(rate_mbps(805), abs=1e-5)
    assert mean["percent"] == pytest.approx(100 * 805 / 6900, abs=1e-4)
    assert mean["ci_low"] < mean["difference"] < mean["ci_high"]
    assert mean["repeats"] == [3, 3]
    assert mean["verdict"] == "better"
    assert row(comparison["plans"], "slowest_rate")["baseline"] == pytest.approx(rate_mbps(6800))
    flows = {one["of"]: one for one in comparison["flows"] if one["measure"] == "rate"}
    assert comparison["flows_compared"] == 2
    first = flows["node1:e0 → node2:e0"]
    assert first["difference"] == pytest.approx(rate_mbps(7710 - 7000), abs=1e-5)
    assert first["verdict"] == "better"


def test_the_interval_is_welchs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the first flow: variances 100 and 100 frames squared, 3 repeats each, and what two runs
    may differ by (0.2 % of each mean) or is rounded (0.05 %)."""
    a = make(tmp_path / "a", Repeats([(7000, 7000), (7010, 7000), (6990, 7000)]))
    b = make(tmp_path / "b", Repeats([(7100, 7000), (7110, 7000), (7090, 7000)]))
    (comparison,) = result(capsys, a, b)["comparisons"]
    flows = [one for one in comparison["flows"] if one["of"] == "node1:e0 → node2:e0"]
    means = (7000, 7100)
    variance = 100 / 3 + 100 / 3 + sum((0.002 * mean) ** 2 for mean in means)
    freedom = variance**2 / (2 * (100 / 3) ** 2 / 2)
    assert flows[0]["degrees_of_freedom"] == pytest.approx(freedom)
    half = stdtrit(freedom, 0.975) * (variance + sum((0.0005 * m) ** 2 for m in means)) ** 0.5
    assert flows[0]["ci_low"] == pytest.approx(rate_mbps(100 - half), abs=1e-4)
    assert flows[0]["ci_high"] == pytest.approx(rate_mbps(100 + half), abs=1e-4)


def test_without_repeats_there_is_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = (make(tmp_path / name, Repeats([window])) for name, window in
            (("a", (7000, 7000)), ("b", (7700, 7700))))  # fmt: skip
    (comparison,) = result(capsys, a, b)["comparisons"]
    mean = row(comparison["plans"], "mean_rate")
    assert mean["difference"] == pytest.approx(rate_mbps(700), abs=1e-5)
    assert [mean[key] for key in ("ci_low", "ci_high", "p", "p_adjusted")] == [None] * 4
    few = "no interval: needs at least 2 repeats per side"
    assert (mean["verdict"], mean["reason"]) == ("not known", few)
    assert main(["compare", str(a), str(b)]) == 0
    said = capsys.readouterr().out
    assert f"{few} (`repeat: 5`)" in " ".join(said.split())
    assert "By flow" not in said  # nothing says which of them is the surest
    assert main(["compare", str(a), str(b), "--all"]) == 0
    assert "By flow" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "+0"), (-0.0, "+0"), (-1e-12, "+0"), (-0.0004, "-4.000e-04"), (0.197, "+0.197"),
     (-12.345, "-12.35")],
)  # fmt: skip
def test_no_difference_is_a_signed_zero(value: float, text: str) -> None:
    assert signed(value) == text


def test_no_percent_is_a_signed_zero() -> None:
    assert relative({"percent": -0.01}) == "+0.0 %"


def test_no_spread_is_no_certainty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still = Repeats([(7000, 7000)] * 3)
    a, b = make(tmp_path / "a", still), make(tmp_path / "b", Repeats(still.windows, lost=70))
    (comparison,) = result(capsys, a, b)["comparisons"]
    assert row(comparison["plans"], "mean_rate")["verdict"] == "same"
    loss = row(comparison["plans"], "loss")
    assert loss["other"] == pytest.approx(100 * 70 / (2 * 7300 + 70), abs=1e-5)
    assert loss["verdict"] == "worse"
    assert 0 < loss["ci_low"] < loss["difference"] < loss["ci_high"]
    lossy = [one for one in comparison["flows"] if one["measure"] == "loss" and one["difference"]]
    assert [one["of"] for one in lossy] == ["node2:e0 → node1:e0"]


def test_noise_is_not_taken_for_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs of 16 ranks that differ by chance alone: of hundreds of flows and phases none."""
    choice = Choice(16, transports=("dpdk",), patterns=("aapc",), repeats=4)
    a = simulate(tmp_path / "a", choice)
    b = simulate(tmp_path / "b", Choice(**{**vars(choice), "seed": 2}))
    (comparison,) = result(capsys, a, b, "--all")["comparisons"]
    rates = [one for one in comparison["flows"] if one["measure"] == "rate"]
    assert len(rates) == comparison["flows_compared"] == 16 * 15
    known = [one for one in rates if one["p"] is not None]
    assert len(known) > 100
    levels = ("plans", "phases", "flows")
    rows = [one for level in levels for one in comparison[level]]
    assert not [one for one in rows if one["verdict"] in ("better", "worse")]


# --- what is beside what -------------------------------------------------------------------------


def test_by_transport_within_one_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = simulate(tmp_path / "run", Choice(8, patterns=("pairs", "aapc"), repeats=3))
    found = result(capsys, one, "--by", "transport")
    assert [subject["name"] for subject in found["results"]] == ["tcp", "dpdk"]
    assert {"of": None, "setting": "transport", "values": ["tcp", "dpdk"]} in found["question"]
    (comparison,) = found["comparisons"]
    titles = [pair["baseline"]["title"] for pair in comparison["pairs"]]
    assert [title.partition(",")[0] for title in titles] == ["pairs neighbours", "aapc shift"]
    summary = json.loads((one / "summary.json").read_text())
    for entry, pair in zip(summary["comparisons"], comparison["pairs"], strict=True):
        rates = {side["transport"]: side["throughput"]["mean"] for side in entry["transports"]}
        number = comparison["pairs"].index(pair)
        rows = [one for one in comparison["plans"] if one["pair"] == number]
        assert row(rows, "mean_rate")["baseline"] == pytest.approx(rates["tcp"], abs=1e-4)
        assert row(rows, "mean_rate")["other"] == pytest.approx(rates["dpdk"], abs=1e-4)


def test_tcp_in_one_directory_against_dpdk_in_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = (
        simulate(tmp_path / name, Choice(8, transports=(name,), patterns=("pairs",), repeats=2))
        for name in ("tcp", "dpdk")
    )
    (comparison,) = result(capsys, a, b)["comparisons"]
    assert len(comparison["pairs"]) == 1
    assert comparison["differing"] == []


def test_other_names_of_the_hosts_are_compared_by_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST, hosts=("east1", "east2"))
    (comparison,) = result(capsys, a, b)["comparisons"]
    assert comparison["flows_compared"] == 2
    assert "node1:e0 with east1:e0" in comparison["notes"][0]


def test_switch_and_firmware_are_named_and_do_not_hinder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switch = {"model": "SN2100", "serial": "MT1"}
    a, b = (
        make(tmp_path / firmware, FAST, about={"switches": [switch | {"firmware": firmware}]})
        for firmware in ("1.0", "1.1")
    )
    found = result(capsys, a, b)
    assert [one["name"] for one in found["results"]] == ["SN2100 1.0", "SN2100 1.1"]
    assert found["question"] == [
        {"of": None, "setting": "about.switches.0.firmware", "values": ["1.0", "1.1"]}
    ]


def test_several_results_and_another_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"{name}={make(tmp_path / name, test)}" for name, test in
             (("x", SLOW), ("y", FAST), ("z", FAST))]  # fmt: skip
    found = result(capsys, *words, "--baseline", "y")
    assert found["baseline"] == "y"
    assert [one["result"] for one in found["comparisons"]] == ["x", "z"]
    verdicts = [row(one["plans"], "mean_rate")["verdict"] for one in found["comparisons"]]
    assert verdicts == ["worse", "same"]


# --- what can't be compared ----------------------------------------------------------------------


def test_other_loads_are_other_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, load=50.0, pattern="ring"))
    b = make(
        tmp_path / "b", Repeats(FAST.windows, load=80.0), Repeats(SLOW.windows, 0, 50.0, "ring")
    )
    (comparison,) = result(capsys, a, b, status=2)["comparisons"]
    assert [one["baseline"]["settings"]["pattern"] for one in comparison["pairs"]] == ["ring"]
    assert [(one["setting"], one["values"]) for one in comparison["differing"]] == [
        ("load", ["95%", "80%"])
    ]
    assert main(["compare", str(a), str(b)]) == 2
    said = capsys.readouterr()
    assert "a and b are not the same measurement: load differs; what can be compared" in said.err
    assert "pairs neighbours, dpdk: load is 95% and 80%" in said.out
    assert "ring neighbours, 2 ranks" in said.out  # what can be compared
    assert result(capsys, a, b, "--question", "load")["comparisons"][0]["differing"] == []


def test_transports_of_other_loads_are_other_measurements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tcp at 100 % beside dpdk at 30 %: no figure stands beside another, and nothing is worse."""
    choice = Choice(4, transports=("tcp", "dpdk"), patterns=("pairs",), repeats=3)
    made = simulate(tmp_path / "run", choice)
    summary = json.loads((made / "summary.json").read_text())
    for entry in (*summary["plans"], *summary["trials"]):
        percent = 100.0 if entry["transport"] == "tcp" else 30.0
        entry |= {"load": {"percent": percent}, "intended_load": percent}
    (made / "summary.json").write_text(json.dumps(summary))
    (comparison,) = result(capsys, made, "--by", "transport", status=2)["comparisons"]
    assert comparison["pairs"] == comparison["plans"] == []
    assert {"of": "pairs neighbours, tcp", "setting": "load", "values": ["100%", "30%"]} in (
        comparison["differing"]
    )
    assert "tcp and dpdk are not the same measurement: load" in refused(
        capsys, made, "--by", "transport", shown=True
    )
    # Asked for, the figures stand beside each other; none is called better or worse.
    asked = result(capsys, made, "--by", "transport", "--question", "load")
    rows = asked["comparisons"][0]["plans"]
    assert row(rows, "mean_rate")["difference"] is not None
    assert {one["verdict"] for one in rows} == {"not known"}
    assert row(rows, "mean_rate")["reason"] == "not judged: the intended loads differ"


def test_cpu_of_one_machine_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All nodes of a lab share it with all else; it is the nodes' own, too."""
    one = simulate(tmp_path / "run", Choice(4, patterns=("pairs",), repeats=3))
    (comparison,) = result(capsys, one, "--by", "transport")["comparisons"]
    cpu = row(comparison["plans"], "cpu")
    summary = json.loads((one / "summary.json").read_text())
    tcp = [plan for plan in summary["plans"] if plan["transport"] == "tcp"]
    each = [1e9 * plan["cpu_process_s"] / plan["delivered_bytes"] for plan in tcp]
    assert cpu["baseline"] == pytest.approx(sum(each) / len(each), rel=1e-5)
    assert (cpu["verdict"], cpu["ci_low"]) == ("not known", None)
    assert cpu["reason"] == "not judged: the nodes share a machine's CPUs"


def test_a_side_of_several_runs_differs_as_its_runs_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Repeats agree within 0.1 %, runs of either side within 3 %: 1 % is no difference."""

    def side(name: str, levels: tuple[int, ...]) -> list[str]:
        made = []
        for run, level in enumerate(levels):
            windows = [(level + k, level - k) for k in (0, 3, 5)]
            made.append(f"{name}={make(tmp_path / f'{name}{run}', Repeats(windows))}")
        return made

    words = [*side("a", (6900, 7000, 7100)), *side("b", (6970, 7070, 7170))]
    (comparison,) = result(capsys, *words)["comparisons"]
    mean = row(comparison["plans"], "mean_rate")
    assert mean["repeats"] == [3, 3]
    assert mean["difference"] == pytest.approx(rate_mbps(70), abs=1e-4)
    assert mean["verdict"] == "not sure"
    assert mean["degrees_of_freedom"] == pytest.approx(4.0)
    words = [*side("c", (6990, 7000, 7010)), *side("d", (7340, 7350, 7360))]
    (comparison,) = result(capsys, *words)["comparisons"]
    assert row(comparison["plans"], "mean_rate")["verdict"] == "better"
    assert len(comparison["flows"]) == 2


def test_what_the_tester_limited_is_in_no_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST)
    summary = json.loads((b / "summary.json").read_text())
    limit = {
        "port": "node1:e0", "shortfall_percent": 9.0, "dropped_frames": None,
        "start_delay_ms": None, "window_error_percent": None, "reason": "offered less",
    }  # fmt: skip
    for entry in summary["trials"][:2]:
        entry["tester_limited"] = [limit]
    (b / "summary.json").write_text(json.dumps(summary))
    (comparison,) = result(capsys, a, b)["comparisons"]
    rates = [one for one in comparison["flows"] if one["measure"] == "rate"]
    assert [one["repeats"] for one in rates] == [[3, 1], [3, 1]]
    assert row(comparison["plans"], "loss")["repeats"] == [3, 1]


def test_a_phase_that_the_summary_lacks_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = simulate(tmp_path / "a", Choice(4, transports=("dpdk",), patterns=("aapc",), repeats=2))
    summary = json.loads((a / "summary.json").read_text())
    summary["trials"] = [entry for entry in summary["trials"] if entry["phase"] != 1]
    b = Path(shutil.copytree(a, tmp_path / "b"))
    (a / "summary.json").write_text(json.dumps(summary))
    found = result(capsys, a, b, status=2)
    assert "summary.json lacks phase 1 of trial 0" in found["damage"][0]
    assert found["comparisons"][0]["flows_compared"] == 8


def test_another_window_or_seed_is_said_and_the_figures_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make(tmp_path / "a", FAST)
    b = make(tmp_path / "b", Repeats(FAST.windows, settings={"window": "5s", "seed": 2}))
    (comparison,) = result(capsys, a, b, status=2)["comparisons"]
    assert {one["setting"] for one in comparison["differing"]} == {"window", "seed"}
    assert row(comparison["plans"], "mean_rate")["difference"] == 0
    question = ("--question", "window", "--question", "seed")
    assert result(capsys, a, b, *question)["exit_status"] == 0


def test_a_pattern_that_only_one_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, pattern="ring"))
    b = make(tmp_path / "b", FAST)
    (comparison,) = result(capsys, a, b)["comparisons"]
    assert comparison["alone"] == ["ring neighbours, 2 ranks: dpdk, 1518 B frames, 95 %: only in a"]
    c = make(tmp_path / "c", Repeats(SLOW.windows, pattern="ring"))
    assert main(["compare", str(b), str(c)]) == 2
    assert "nothing of b and c can be compared: no pattern is in both" in capsys.readouterr().err


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = make(tmp_path / "one", FAST)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"no results in {tmp_path}/none: there is no such" in refused(
        capsys, one, tmp_path / "none"
    )
    assert f"no results in {empty}: No such file" in refused(capsys, one, empty)
    assert "there is one result only: name a second" in refused(capsys, one)
    assert "has only transport dpdk, so there is nothing" in refused(
        capsys, one, "--by", "transport"
    )
    assert "has no setting 'colour'" in refused(capsys, one, "--by", "colour")
    assert "no result is called so (results: a, b)" in refused(
        capsys, f"a={one}", f"b={one}", "--baseline", "c"
    )
    assert "no setting 'lode' in any of the results" in refused(
        capsys, one, one, "--question", "lode"
    )
    assert "takes 50 to less than 100 %" in refused(capsys, one, one, "--confidence", "100")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": "switchbench-summary/9"}', "newer"),
        ("{", "is damaged"),
    ],
)
def test_damaged_or_newer(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    (bad / "summary.json").write_text(text)
    for stream in bad.glob("*.arrows"):
        stream.unlink()
    said = refused(capsys, one, bad)
    assert sentence in said
    assert str(bad) in said
    assert "\n" not in said


def test_a_damaged_table_is_said_and_the_rest_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    (bad / "flows.parquet").write_bytes(b"PAR1 and no more")
    found = result(capsys, one, bad, status=2)
    (damage,) = found["damage"]
    assert damage.startswith(f"{bad}: flows.parquet can't be read as Parquet")
    assert row(found["comparisons"][0]["plans"], "mean_rate")["difference"] == 0
    assert main(["compare", str(one), str(bad)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_half_a_last_piece_that_nothing_needs_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make(tmp_path / "one", FAST)
    half = Path(shutil.copytree(one, tmp_path / "half"))
    with (half / "flows.1.arrows").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x08")
    (comparison,) = result(capsys, one, half)["comparisons"]
    assert comparison["notes"] == [
        f"{half}: a table ends in half a piece: nothing is lost by it that the summary was made of"
    ]


def test_flows_that_one_result_lacks_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make(tmp_path / "one", FAST)
    less = Path(shutil.copytree(one, tmp_path / "less"))
    kept = [row for row in rows_in(less, "flows") if row["dst"] != "node1:e0"]
    replace_rows(less, "flows", kept)
    (comparison,) = result(capsys, one, less)["comparisons"]
    assert comparison["flows_compared"] == 1
    assert (
        "pairs neighbours, 2 ranks: dpdk, 1518 B frames, 95 %: 1 flow is in both, of 2 and 1"
        in (comparison["notes"])
    )


def test_nothing_measured_says_what_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    summary = json.loads((bad / "summary.json").read_text()) | {"plans": "none"}
    (bad / "summary.json").write_text(json.dumps(summary))
    said = refused(capsys, one, bad)
    assert f"{bad / 'summary.json'} is damaged: at `plans`" in said
    assert "nor can it be made again" in said
