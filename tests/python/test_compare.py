# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare` on results made by hand: what differs, how sure, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from claims import DESIGNS, Design, share_claiming, share_found
from compared import Repeats, compared, make, rate_mbps
from recorded import replace_rows, rows_in, told_in, write_tables
from simulated import Choice, simulate
from switchbench.analysis import statistics
from switchbench.cli.main import main
from switchbench.compare.comparison import Sample, WelchTest, holm, welch
from switchbench.records.directory import PLAN, read_plan
from switchbench.records.rows import Floats

SLOW = Repeats([(7000, 6800), (7010, 6810), (6990, 6790)])
FAST = Repeats([(7700, 7710), (7720, 7690), (7710, 7700)])
FEW = "no interval: needs at least 2 repeats per side"
Rows = list[dict[str, Any]]
Capture = pytest.CaptureFixture[str]


def result(capsys: Capture, *words: object, status: int = 0) -> dict[str, Any]:
    """What the command writes as JSON."""
    assert main(["compare", *map(str, words), "--json", "-"]) == status
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def only(capsys: Capture, *words: object, status: int = 0) -> dict[str, Any]:
    """The only comparison."""
    return compared(capsys, *words, status=status)[1]


def refused(capsys: Capture, *words: object, shown: bool = False) -> str:
    """The one sentence of a command that compares nothing; `shown`: what it read is shown."""
    assert main(["compare", *map(str, words)]) == 2
    said = capsys.readouterr()
    assert bool(said.out) == shown
    assert said.err.count("\n") == 1
    return re.sub(r" \[SB-[A-Z]+\]$", "", said.err.removeprefix("switchbench: ").strip())


def row(rows: Rows, measure: str, of: str | None = None) -> dict[str, Any]:
    """The only row of that measure."""
    (found,) = [one for one in rows if one["measure"] == measure and one["of"] == of]
    return found


def change(directory: Path, entries: Callable[[dict[str, Any]], None], *lists: str) -> None:
    """Change the entries of these lists of a summary."""
    file = directory / "summary.json"
    summary = json.loads(file.read_text())
    for name in lists:
        for entry in summary[name]:
            entries(entry)
    file.write_text(json.dumps(summary))


# --- differences ---------------------------------------------------------------------------------


def test_a_difference_of_two_switches(tmp_path: Path, capsys: Capture) -> None:
    found = result(capsys, make(tmp_path / "old", SLOW), make(tmp_path / "new", FAST))
    assert [one["name"] for one in found["results"]] == ["old", "new"]
    (comparison,) = found["comparisons"]
    mean = row(comparison["plans"], "mean_rate")
    for key, value in (("baseline", 6900), ("other", 7705), ("difference", 805)):
        assert mean[key] == pytest.approx(rate_mbps(value), abs=1e-5)
    assert mean["percent"] == pytest.approx(100 * 805 / 6900, abs=1e-4)
    assert mean["ci_low"] < mean["difference"] < mean["ci_high"]
    assert (mean["repeats"], mean["verdict"]) == ([3, 3], "better")
    assert row(comparison["plans"], "slowest_rate")["baseline"] == pytest.approx(rate_mbps(6800))
    first = row(comparison["flows"], "rate", "node1:e0 → node2:e0")
    assert comparison["flows_compared"] == 2
    assert first["difference"] == pytest.approx(rate_mbps(7710 - 7000), abs=1e-5)
    assert first["verdict"] == "better"


def test_the_interval_is_welchs(tmp_path: Path, capsys: Capture) -> None:
    """Of the first flow: variances 100 and 100 frames squared, 3 repeats each, and what two runs
    may differ by (0.2 % of each mean) or is rounded (0.05 %)."""
    a = make(tmp_path / "a", Repeats([(7000, 7000), (7010, 7000), (6990, 7000)]))
    b = make(tmp_path / "b", Repeats([(7100, 7000), (7110, 7000), (7090, 7000)]))
    flow = row(only(capsys, a, b)["flows"], "rate", "node1:e0 → node2:e0")
    means = (7000, 7100)
    variance = 100 / 3 + 100 / 3 + sum((0.002 * mean) ** 2 for mean in means)
    freedom = variance**2 / (2 * (100 / 3) ** 2 / 2)
    assert flow["degrees_of_freedom"] == pytest.approx(freedom)
    half = stdtrit(freedom, 0.975) * (variance + sum((0.0005 * m) ** 2 for m in means)) ** 0.5
    assert flow["ci_low"] == pytest.approx(rate_mbps(100 - half), abs=1e-4)
    assert flow["ci_high"] == pytest.approx(rate_mbps(100 + half), abs=1e-4)


def test_without_repeats_there_is_no_interval(tmp_path: Path, capsys: Capture) -> None:
    a, b = (make(tmp_path / name, Repeats([window])) for name, window in
            (("a", (7000, 7000)), ("b", (7700, 7700))))  # fmt: skip
    mean = row(only(capsys, a, b)["plans"], "mean_rate")
    assert mean["difference"] == pytest.approx(rate_mbps(700), abs=1e-5)
    assert [mean[key] for key in ("ci_low", "ci_high", "p", "p_adjusted")] == [None] * 4
    assert (mean["verdict"], mean["reason"]) == ("not known", FEW)
    for more, shown in (([], False), (["--all"], True)):  # nothing says which flow is the surest
        assert main(["compare", str(a), str(b), *more]) == 0
        said = capsys.readouterr().out
        assert f"{FEW} (`repeat: 5`)" in " ".join(said.split())
        assert ("By flow" in said) == shown


def test_no_spread_is_no_certainty(tmp_path: Path, capsys: Capture) -> None:
    still = Repeats([(7000, 7000)] * 3)
    a, b = make(tmp_path / "a", still), make(tmp_path / "b", Repeats(still.windows, lost=70))
    comparison = only(capsys, a, b)
    assert row(comparison["plans"], "mean_rate")["verdict"] == "same"
    loss = row(comparison["plans"], "loss")
    assert loss["other"] == pytest.approx(100 * 70 / (2 * 7300 + 70), abs=1e-5)
    assert loss["verdict"] == "worse"
    assert 0 < loss["ci_low"] < loss["difference"] < loss["ci_high"]
    lossy = [one for one in comparison["flows"] if one["measure"] == "loss" and one["difference"]]
    assert [one["of"] for one in lossy] == ["node2:e0 → node1:e0"]


def test_noise_is_not_taken_for_a_difference(tmp_path: Path, capsys: Capture) -> None:
    """Two runs of 16 ranks that differ by chance alone: of hundreds of flows and phases none."""
    choice = Choice(16, transports=("dpdk",), patterns=("aapc",), repeats=4)
    a = simulate(tmp_path / "a", choice)
    b = simulate(tmp_path / "b", Choice(**{**vars(choice), "seed": 2}))
    comparison = only(capsys, a, b, "--all")
    rates = [one for one in comparison["flows"] if one["measure"] == "rate"]
    assert len(rates) == comparison["flows_compared"] == 16 * 15
    assert sum(one["p"] is not None for one in rates) > 100
    rows = [one for level in ("plans", "phases", "flows") for one in comparison[level]]
    assert {one["verdict"] for one in rows}.isdisjoint({"better", "worse"})


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_equal_networks_seldom_differ_and_others_do(design: Design) -> None:
    """At most 5 of 100 comparisons claim anything; true differences are found in 11 of 12."""
    assert share_claiming(design, 100, 2) <= 0.05
    for difference in (0.02, 0.05) if design.repeats == 5 else ():
        assert share_found(design, -difference, 60, 3) >= 11 / 12


def test_a_side_of_several_runs_differs_as_its_runs_do(tmp_path: Path, capsys: Capture) -> None:
    """Repeats agree within 0.1 %, runs of either side within 3 %: 1 % is no difference."""

    def side(name: str, levels: tuple[int, ...]) -> list[str]:
        made = []
        for run, level in enumerate(levels):
            windows = [(level + k, level - k) for k in (0, 3, 5)]
            made.append(f"{name}={make(tmp_path / f'{name}{run}', Repeats(windows))}")
        return made

    words = [*side("a", (6900, 7000, 7100)), *side("b", (6970, 7070, 7170))]
    mean = row(only(capsys, *words)["plans"], "mean_rate")
    assert (mean["repeats"], mean["verdict"]) == ([3, 3], "not sure")
    assert mean["difference"] == pytest.approx(rate_mbps(70), abs=1e-4)
    assert mean["degrees_of_freedom"] == pytest.approx(4.0)
    comparison = only(capsys, *side("c", (6990, 7000, 7010)), *side("d", (7340, 7350, 7360)))
    assert row(comparison["plans"], "mean_rate")["verdict"] == "better"
    assert len(comparison["flows"]) == 2


# --- what is beside what -------------------------------------------------------------------------


def test_by_transport_within_one_directory(tmp_path: Path, capsys: Capture) -> None:
    one = simulate(tmp_path / "run", Choice(4, patterns=("pairs", "aapc"), repeats=3))
    found = result(capsys, one, "--by", "transport")
    assert [subject["name"] for subject in found["results"]] == ["tcp", "dpdk"]
    assert {"of": None, "setting": "transport", "values": ["tcp", "dpdk"]} in found["question"]
    (comparison,) = found["comparisons"]
    titles = [pair["baseline"]["title"] for pair in comparison["pairs"]]
    assert [title.partition(",")[0] for title in titles] == ["pairs neighbours", "aapc shift"]
    summary = json.loads((one / "summary.json").read_text())
    for number, entry in enumerate(summary["comparisons"]):
        rates = {side["transport"]: side["throughput"]["mean"] for side in entry["transports"]}
        mean = row([r for r in comparison["plans"] if r["pair"] == number], "mean_rate")
        assert mean["baseline"] == pytest.approx(rates["tcp"], abs=1e-4)
        assert mean["other"] == pytest.approx(rates["dpdk"], abs=1e-4)
    # All nodes of a lab share its CPUs with all else: nothing is called better or worse.
    cpu = row([r for r in comparison["plans"] if r["pair"] == 0], "cpu")
    tcp = [p for p in summary["plans"] if (p["transport"], p["pattern"]) == ("tcp", "pairs")]
    each = [1e9 * plan["cpu_process_s"] / plan["delivered_bytes"] for plan in tcp]
    assert cpu["baseline"] == pytest.approx(sum(each) / len(each), rel=1e-5)
    assert (cpu["verdict"], cpu["ci_low"]) == ("not known", None)
    assert cpu["reason"] == "not judged: the nodes share a machine's CPUs"


def test_tcp_in_one_directory_against_dpdk_in_another(tmp_path: Path, capsys: Capture) -> None:
    a, b = (
        simulate(tmp_path / name, Choice(8, transports=(name,), patterns=("pairs",), repeats=2))
        for name in ("tcp", "dpdk")
    )
    comparison = only(capsys, a, b)
    assert (len(comparison["pairs"]), comparison["differing"]) == (1, [])


def test_hosts_and_switches_of_other_names(tmp_path: Path, capsys: Capture) -> None:
    """Ports are compared by their places; firmware is the question, and does not hinder."""
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST, hosts=("east1", "east2"))
    comparison = only(capsys, a, b)
    assert comparison["flows_compared"] == 2
    assert "node1:e0 with east1:e0" in comparison["notes"][0]
    switch = {"model": "SN2100", "serial": "MT1"}
    a, b = (
        make(tmp_path / firmware, FAST, about={"switches": [switch | {"firmware": firmware}]})
        for firmware in ("1.0", "1.1")
    )
    found = result(capsys, a, b)
    assert [one["name"] for one in found["results"]] == ["SN2100 1.0", "SN2100 1.1"]
    firmware = {"of": None, "setting": "about.switches.0.firmware", "values": ["1.0", "1.1"]}
    assert found["question"] == [firmware]


def test_several_results_and_another_baseline(tmp_path: Path, capsys: Capture) -> None:
    words = [f"{name}={make(tmp_path / name, test)}" for name, test in
             (("x", SLOW), ("y", FAST), ("z", FAST))]  # fmt: skip
    found = result(capsys, *words, "--baseline", "y")
    assert found["baseline"] == "y"
    assert [one["result"] for one in found["comparisons"]] == ["x", "z"]
    verdicts = [row(one["plans"], "mean_rate")["verdict"] for one in found["comparisons"]]
    assert verdicts == ["worse", "same"]


# --- what can't be compared ----------------------------------------------------------------------


def test_other_loads_are_other_measurements(tmp_path: Path, capsys: Capture) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, load=50.0, pattern="ring"))
    b = make(
        tmp_path / "b", Repeats(FAST.windows, load=80.0), Repeats(SLOW.windows, 0, 50.0, "ring")
    )
    comparison = only(capsys, a, b, status=2)
    assert [one["baseline"]["settings"]["pattern"] for one in comparison["pairs"]] == ["ring"]
    differing = [(one["setting"], one["values"]) for one in comparison["differing"]]
    assert differing == [("load", ["95%", "80%"])]
    assert main(["compare", str(a), str(b)]) == 2
    said = capsys.readouterr()
    assert "a and b are not the same measurement: load differs; what can be compared" in said.err
    assert "pairs neighbours, dpdk: load is 95% and 80%" in said.out
    assert "ring neighbours, 2 ranks" in said.out  # what can be compared
    assert only(capsys, a, b, "--question", "load")["differing"] == []


def test_transports_of_other_loads_are_other_measurements(tmp_path: Path, capsys: Capture) -> None:
    """tcp at 100 % beside dpdk at 30 %: no figure stands beside another, and nothing is worse."""

    def loads(entry: dict[str, Any]) -> None:
        percent = 100.0 if entry["transport"] == "tcp" else 30.0
        entry |= {"load": {"percent": percent}, "intended_load": percent}

    choice = Choice(4, transports=("tcp", "dpdk"), patterns=("pairs",), repeats=3)
    made = simulate(tmp_path / "run", choice)
    change(made, loads, "plans", "trials")
    comparison = only(capsys, made, "--by", "transport", status=2)
    assert comparison["pairs"] == comparison["plans"] == []
    load = {"of": "pairs neighbours, tcp", "setting": "load", "values": ["100%", "30%"]}
    assert load in comparison["differing"]
    said = refused(capsys, made, "--by", "transport", shown=True)
    assert "tcp and dpdk are not the same measurement: load" in said
    # Asked for, the figures stand beside each other; none is called better or worse.
    rows = only(capsys, made, "--by", "transport", "--question", "load")["plans"]
    assert row(rows, "mean_rate")["difference"] is not None
    assert {one["verdict"] for one in rows} == {"not known"}
    assert row(rows, "mean_rate")["reason"] == "not judged: the intended loads differ"


def test_what_the_tester_limited_is_in_no_mean(tmp_path: Path, capsys: Capture) -> None:
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST)
    limit = {
        "port": "node1:e0", "shortfall_percent": 9.0, "dropped_frames": None,
        "start_delay_ms": None, "window_error_percent": None, "reason": "offered less",
    }  # fmt: skip
    change(b, lambda e: e.update(tester_limited=[limit] * (e["repeat"] < 2)), "trials")
    comparison = only(capsys, a, b)
    rates = [one for one in comparison["flows"] if one["measure"] == "rate"]
    assert [one["repeats"] for one in rates] == [[3, 1], [3, 1]]
    assert row(comparison["plans"], "loss")["repeats"] == [3, 1]


def test_a_phase_that_the_summary_lacks_is_said(tmp_path: Path, capsys: Capture) -> None:
    a = simulate(tmp_path / "a", Choice(4, transports=("dpdk",), patterns=("aapc",), repeats=2))
    summary = json.loads((a / "summary.json").read_text())
    summary["trials"] = [entry for entry in summary["trials"] if entry["phase"] != 1]
    b = Path(shutil.copytree(a, tmp_path / "b"))
    (a / "summary.json").write_text(json.dumps(summary))
    found = result(capsys, a, b, status=2)
    assert "summary.json lacks phase 1 of trial 0" in found["damage"][0]
    assert found["comparisons"][0]["flows_compared"] == 8


def test_another_window_or_seed_is_said_and_the_figures_shown(
    tmp_path: Path, capsys: Capture
) -> None:
    a = make(tmp_path / "a", FAST)
    b = make(tmp_path / "b", Repeats(FAST.windows, settings={"window": "5s", "seed": 2}))
    comparison = only(capsys, a, b, status=2)
    assert {one["setting"] for one in comparison["differing"]} == {"window", "seed"}
    assert row(comparison["plans"], "mean_rate")["difference"] == 0
    question = ("--question", "window", "--question", "seed")
    assert result(capsys, a, b, *question)["exit_status"] == 0


def test_a_pattern_that_only_one_has(tmp_path: Path, capsys: Capture) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, pattern="ring"))
    b, c = make(tmp_path / "b", FAST), make(tmp_path / "c", Repeats(SLOW.windows, pattern="ring"))
    alone = "ring neighbours, 2 ranks: dpdk, 1518 B frames, 95 %: only in a"
    assert only(capsys, a, b)["alone"] == [alone]
    said = refused(capsys, b, c, shown=True)
    assert said == "nothing of b and c can be compared: no pattern is in both"


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: Capture) -> None:
    one = make(tmp_path / "one", FAST)
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, said in (
        ((one, tmp_path / "none"), f"no results in {tmp_path}/none: there is no such"),
        ((one, empty), f"no results in {empty}: No such file"),
        ((one,), "there is one result only: name a second"),
        ((one, "--by", "transport"), "has only transport dpdk, so there is nothing"),
        ((one, "--by", "colour"), "has no setting 'colour'"),
        ((f"a={one}", f"b={one}", "--baseline", "c"), "no result is called so (results: a, b)"),
        ((one, one, "--question", "lode"), "no setting 'lode' in any of the results"),
        ((one, one, "--confidence", "100"), "takes 50 to less than 100 %"),
    ):
        assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": "switchbench-summary/9"}', "newer"),
        ("{", "is damaged"),
        (None, "summary.json is damaged: at `plans`"),
    ],
)
def test_damaged_or_newer(text: str | None, sentence: str, tmp_path: Path, capsys: Capture) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    summary = json.loads((bad / "summary.json").read_text()) | {"plans": "none"}
    (bad / "summary.json").write_text(text or json.dumps(summary))
    for file in bad.glob("*.parquet" if text else PLAN):
        file.unlink()
    said = refused(capsys, one, bad)
    assert sentence in said
    assert str(bad) in said
    assert ("nor can it be made again" in said) == (text is None)


def test_damaged_tables_are_said_and_the_rest_is_compared(tmp_path: Path, capsys: Capture) -> None:
    one = make(tmp_path / "one", FAST)
    bad, half, less = (
        Path(shutil.copytree(one, tmp_path / name)) for name in ("bad", "half", "less")
    )
    (bad / "flows.parquet").write_bytes(b"PAR1 and no more")
    found = result(capsys, one, bad, status=2)
    (damage,) = found["damage"]
    assert damage.startswith(f"{bad}: flows.parquet can't be read as Parquet")
    assert row(found["comparisons"][0]["plans"], "mean_rate")["difference"] == 0
    assert refused(capsys, one, bad, shown=True)
    for table in half.glob("*.parquet"):
        table.unlink()
    ends = {"phase": 1, "trial": 2}
    records = sorted(told_in(one), key=lambda record: ends.get(record["type"], 0))
    write_tables(half, read_plan(half), records)
    with (half / "flows.1.arrows").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x08")
    lost = "a table ends in half a piece: nothing is lost by it that the summary was made of"
    assert only(capsys, one, half)["notes"] == [f"{half}: {lost}"]
    kept = [row for row in rows_in(less, "flows") if row["dst"] != "node1:e0"]
    replace_rows(less, "flows", kept)
    comparison = only(capsys, one, less)
    assert comparison["flows_compared"] == 1
    both = "pairs neighbours, 2 ranks: dpdk, 1518 B frames, 95 %: 1 flow is in both, of 2 and 1"
    assert both in comparison["notes"]


# --- the page ------------------------------------------------------------------------------------


def test_the_page_is_one_file_that_asks_for_nothing(tmp_path: Path) -> None:
    loads = (95.0, 80.0, 60.0)
    fast = make(tmp_path / "a", *(Repeats(FAST.windows, load=load) for load in loads))
    slow = make(tmp_path / "b", *(Repeats(SLOW.windows, load=load) for load in loads))
    page = tmp_path / "page.html"
    assert main(["compare", f"new <1>={fast}", f"old={slow}", "--html", str(page)]) == 0
    text = page.read_text()
    assert "<h1>new &lt;1&gt; and old beside each other</h1>" in text
    assert not re.search(r'(?:src|href)="(?!#)', text)
    contents = text.split("<nav", 1)[1].split("</nav>", 1)[0]
    titles = re.findall(r'href="#section-[^"]*">([^<]*)<', contents)
    assert titles == ["What is compared", "By pattern", "By flow", "What the numbers mean"]
    other = make(tmp_path / "c", Repeats(FAST.windows, settings={"window": "9s"}))
    one = make(tmp_path / "d", FAST)
    assert main(["compare", str(one), str(other), "--html", str(page)]) == 2
    notice = page.read_text().split('role="alert"', 1)[1].split("</div>", 1)[0]
    assert "window is 1s and 9s" in notice


# --- Welch's t -----------------------------------------------------------------------------------

# The first two examples of the article "Welch's t-test" in Wikipedia: samples of equal size ...
ONE = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
TWO = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
# ... and of 10 and 20 values.
TEN = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8]
TWENTY = [21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8]
TWENTY += [20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5, 21.5, 21.8]


def column(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)[:, None]


def welch_of(*sides: Floats, **more: Any) -> WelchTest:
    return welch(*(Sample(side, **more) for side in sides), 0.95)


def covered(found: WelchTest) -> float:
    """The share of tests whose interval covers 0."""
    return float((np.abs(found.difference) <= found.half_width(0.95)).mean())


@pytest.mark.parametrize(
    ("one", "two", "t", "freedom", "p"),
    [(ONE, TWO, 2.45536, 24.9885, 0.021378), (TEN, TWENTY, 1.565, 9.905, 0.149)],
)
def test_published(one: list[float], two: list[float], t: float, freedom: float, p: float) -> None:
    found = welch_of(column(one), column(two))
    assert found.difference[0] / found.error[0] == pytest.approx(t, rel=1e-3)
    assert found.freedom[0] == pytest.approx(freedom, rel=1e-3)
    assert found.p[0] == pytest.approx(p, rel=5e-3)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Of 4,000 pairs of samples without a difference, of unequal spread and size; and of runs of
    five repeats that deviate by 0.1 %, and by 2 % from run to run, which an allowance covers."""
    random = np.random.default_rng(6)
    found = welch_of(random.normal(5.0, 1.0, (4, 4000)), random.normal(5.0, 3.0, (9, 4000)))
    assert 0.94 < covered(found) < 0.96
    assert np.nanmean(found.p < 0.05) == pytest.approx(1.0 - covered(found), abs=1e-9)
    runs = [100 + random.normal(0, 2, 4000) + random.normal(0, 0.1, (5, 4000)) for _ in range(2)]
    assert covered(welch_of(*runs)) < 0.2
    assert 0.94 < covered(welch_of(*runs, shared=0.02)) < 0.96


@pytest.mark.parametrize("deviation", [0.005, 0.01, 0.02, 0.04])
def test_repeats_until_the_mean_is_sure_cover_the_truth(deviation: float) -> None:
    """Of both sides the repeats ended when their interval was 2 % wide, or after ten."""
    random = np.random.default_rng(8)
    sides = []
    for _ in range(2):
        values = random.normal(1.0, deviation, (10, 2000))
        for count in range(9, 2, -1):  # the first count that would do ends the repeats
            found = statistics.estimates(values[:count], 0.95, chosen=True)
            sure = 2 * statistics.t_quantile(0.95, count - 1) * found.error <= 0.02
            values[count:, sure] = np.nan
        sides.append(values)
    chosen, plain = welch_of(*sides, chosen=True), welch_of(*sides)
    assert covered(chosen) > 0.95
    assert (plain.half_width(0.95) < chosen.half_width(0.95)).all()


def test_nothing_is_made_up() -> None:
    """One repeat, none, or no spread but of rounding: no probability, no interval."""
    nan = np.nan
    base = np.array([[1.0, nan, 5.0, 0.1], [nan, nan, 5.0, 0.2], [nan, nan, 5.0, 0.3]])
    other = np.array([[2.0, 3.0, 6.0, 1.1], [2.5, 3.5, 6.0, 1.2], [2.6, 3.1, 6.0, 1.3]])
    found = welch_of(base, other)
    for values in (found.p, found.half_width(0.95)):
        assert np.isnan(values).tolist() == [True, True, True, False]
    assert found.difference[2] == 1.0
    assert found.base.count.tolist() == [1, 0, 3, 3]
    assert np.isnan(welch_of(column([0.1 + 0.2] * 3), column([0.3, 0.1 + 0.2, 0.3])).p[0])


def test_repeats_that_follow_each_other_are_worth_less() -> None:
    drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    mixed = [1.4, 1.1, 1.7, 1.0, 1.6, 1.2, 1.5, 1.3]
    calm = column([1.0, 1.2, 1.1, 1.0, 1.1, 1.2, 1.0, 1.2])
    slow, quick = welch_of(calm, column(drift)), welch_of(calm, column(mixed))
    assert (bool(slow.other.dependent[0]), bool(quick.other.dependent[0])) == (True, False)
    assert slow.difference[0] == pytest.approx(quick.difference[0])
    assert slow.error[0] > 1.5 * quick.error[0]
    single = statistics.interval(drift, 0.95)
    assert single is not None
    # The half width that the summary's `statistics` gives this side alone.
    error = slow.other.error[0]
    assert single.half_width == pytest.approx(statistics.t_quantile(0.95, 7) * error)


def test_holm() -> None:
    p = holm(np.array([0.01, 0.04, np.nan, 0.03, 0.005]))
    assert p[[0, 1, 3, 4]] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert np.isnan(p[2])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
