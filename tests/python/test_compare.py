# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench compare`: what differs and how sure it is, what is refused; histories, collective
operations, other programs' results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.special import stdtrit

import recorded
import synthetic
from claims import DESIGNS, Design, share_claiming, share_found
from conftest import Command
from foreign_data import DATA, FOREIGN, bring_in, hpccoutf
from recorded import Repeats, make, rate_mbps
from simulated import Choice, simulate
from switchbench.analysis import statistics
from switchbench.base.format import spark
from switchbench.base.model import Trial
from switchbench.compare.comparison import Sample, WelchTest, holm, welch
from switchbench.records.directory import PLAN, SUMMARY, replace_json
from switchbench.records.rows import Floats
from synthetic import blank
from test_steps import execution, kernel_run, steps_trial

SLOW = Repeats([(7000, 6800), (7010, 6810), (6990, 6790)])
FAST = Repeats([(7700, 7710), (7720, 7690), (7710, 7700)])
FEW = "no interval: needs at least 2 repeats per side"
Rows = list[dict[str, Any]]


def result(cli: Command, *words: object, status: int = 0) -> dict[str, Any]:
    """Return what the command writes as JSON."""
    said = cli.prints("compare", *words, "--json", "-", status=status)
    value: dict[str, Any] = json.loads(said, parse_constant=pytest.fail)  # NaN is no JSON
    return value


def only(cli: Command, *words: object, status: int = 0) -> dict[str, Any]:
    """Return the only comparison."""
    (one,) = result(cli, *words, status=status)["comparisons"]
    return dict(one)


def refused(cli: Command, *words: object, shown: bool = False) -> str:
    """Return the sentence of a command that compares nothing; `shown`: it shows what it read."""
    said = cli("compare", *words)
    assert (said.status, bool(said.out), said.err.count("\n")) == (2, shown, 1)
    return re.sub(r" \[SB-[A-Z]+\]$", "", said.err.removeprefix("switchbench: ").strip())


def row(rows: Rows, measure: str) -> dict[str, Any]:
    """Return the only row of that measure."""
    (found,) = [one for one in rows if one["measure"] == measure]
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


def test_a_difference_of_two_switches(tmp_path: Path, cli: Command) -> None:
    found = result(cli, make(tmp_path / "old", SLOW), make(tmp_path / "new", FAST))
    assert [one["name"] for one in found["results"]] == ["old", "new"]
    (comparison,) = found["comparisons"]
    mean = row(comparison["plans"], "mean_rate")
    for key, value in (("baseline", 6900), ("other", 7705), ("difference", 805)):
        assert mean[key] == pytest.approx(rate_mbps(value), abs=1e-5)
    assert mean["percent"] == pytest.approx(100 * 805 / 6900, abs=1e-4)
    assert mean["ci_low"] < mean["difference"] < mean["ci_high"]
    assert (mean["repeats"], mean["verdict"]) == ([3, 3], "better")
    assert row(comparison["plans"], "slowest_rate")["baseline"] == pytest.approx(rate_mbps(6800))


def test_the_interval_is_welchs(tmp_path: Path, cli: Command) -> None:
    """Variances are 100 frames squared, of 3 repeats each, with what two runs may differ by (0.2 %
    of each mean) or is rounded (0.05 %)."""
    a = make(tmp_path / "a", Repeats([(7000, 7000), (7010, 7010), (6990, 6990)]))
    b = make(tmp_path / "b", Repeats([(7100, 7100), (7110, 7110), (7090, 7090)]))
    mean = row(only(cli, a, b)["plans"], "mean_rate")
    means = (7000, 7100)
    variance = 100 / 3 + 100 / 3 + sum((0.002 * mean) ** 2 for mean in means)
    freedom = variance**2 / (2 * (100 / 3) ** 2 / 2)
    assert mean["degrees_of_freedom"] == pytest.approx(freedom)
    half = stdtrit(freedom, 0.975) * (variance + sum((0.0005 * m) ** 2 for m in means)) ** 0.5
    assert mean["ci_low"] == pytest.approx(rate_mbps(100 - half), abs=1e-4)
    assert mean["ci_high"] == pytest.approx(rate_mbps(100 + half), abs=1e-4)


def test_without_repeats_there_is_no_interval(tmp_path: Path, cli: Command) -> None:
    a, b = (make(tmp_path / name, Repeats([window])) for name, window in
            (("a", (7000, 7000)), ("b", (7700, 7700))))  # fmt: skip
    mean = row(only(cli, a, b)["plans"], "mean_rate")
    assert mean["difference"] == pytest.approx(rate_mbps(700), abs=1e-5)
    assert [mean[key] for key in ("ci_low", "ci_high", "p", "p_adjusted")] == [None] * 4
    assert (mean["verdict"], mean["reason"]) == ("not known", FEW)
    assert f"{FEW} (`repeat: 5`)" in " ".join(cli.prints("compare", a, b).split())


def test_no_spread_is_no_certainty(tmp_path: Path, cli: Command) -> None:
    still = Repeats([(7000, 7000)] * 3)
    a, b = make(tmp_path / "a", still), make(tmp_path / "b", Repeats(still.windows, lost=70))
    comparison = only(cli, a, b)
    assert row(comparison["plans"], "mean_rate")["verdict"] == "same"
    loss = row(comparison["plans"], "loss")
    assert loss["other"] == pytest.approx(100 * 70 / (2 * 7300 + 70), abs=1e-5)
    assert loss["verdict"] == "worse"
    assert 0 < loss["ci_low"] < loss["difference"] < loss["ci_high"]


def test_noise_is_not_taken_for_a_difference(tmp_path: Path, cli: Command) -> None:
    """Two runs of 16 ranks differ by chance alone: no figure is better or worse."""
    choice = Choice(16, transports=("dpdk",), patterns=("aapc",), repeats=4)
    a = simulate(tmp_path / "a", choice)
    b = simulate(tmp_path / "b", Choice(**{**vars(choice), "seed": 2}))
    rows = only(cli, a, b)["plans"]
    assert sum(one["p"] is not None for one in rows) > 5
    assert {one["verdict"] for one in rows}.isdisjoint({"better", "worse"})


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_equal_networks_seldom_differ_and_others_do(design: Design) -> None:
    """At most 5 of 100 comparisons claim anything; true differences are found in 11 of 12."""
    assert share_claiming(design, 100, 2) <= 0.05
    for difference in (0.02, 0.05) if design.repeats == 5 else ():
        assert share_found(design, -difference, 60, 3) >= 11 / 12


def test_a_side_of_several_runs_differs_as_its_runs_do(tmp_path: Path, cli: Command) -> None:
    """Repeats agree within 0.1 %, runs of either side within 3 %: 1 % is no difference."""

    def side(name: str, levels: tuple[int, ...]) -> list[str]:
        made = []
        for run, level in enumerate(levels):
            windows = [(level + k, level - k) for k in (0, 3, 5)]
            made.append(f"{name}={make(tmp_path / f'{name}{run}', Repeats(windows))}")
        return made

    words = [*side("a", (6900, 7000, 7100)), *side("b", (6970, 7070, 7170))]
    mean = row(only(cli, *words)["plans"], "mean_rate")
    assert (mean["repeats"], mean["verdict"]) == ([3, 3], "not sure")
    assert mean["difference"] == pytest.approx(rate_mbps(70), abs=1e-4)
    assert mean["degrees_of_freedom"] == pytest.approx(4.0)
    comparison = only(cli, *side("c", (6990, 7000, 7010)), *side("d", (7340, 7350, 7360)))
    assert row(comparison["plans"], "mean_rate")["verdict"] == "better"


# --- what is beside what -------------------------------------------------------------------------


def test_by_transport_within_one_directory(tmp_path: Path, cli: Command) -> None:
    one = simulate(tmp_path / "run", Choice(4, patterns=("pairs", "aapc"), repeats=3))
    found = result(cli, one, "--by", "transport")
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


def test_repeats_that_took_no_turns_are_less_sure(tmp_path: Path, cli: Command) -> None:
    """The network may have changed between the repeats of one transport and of the other."""
    one = simulate(tmp_path / "run", Choice(4, patterns=("pairs",), repeats=3))
    widths = []
    for _ in range(2):
        (comparison,) = result(cli, one, "--by", "transport")["comparisons"]
        mean = row(comparison["plans"], "mean_rate")
        widths.append(mean["ci_high"] - mean["ci_low"])
        for entries in ("plans", "trials"):  # tcp's last repeat becomes its first
            change(
                one,
                lambda e: e.update({"repeat": 2 - e["repeat"]} if e["transport"] == "tcp" else {}),
                entries,
            )
    assert widths[1] > 1.5 * widths[0]


def test_hosts_and_switches_of_other_names(tmp_path: Path, cli: Command) -> None:
    """Hosts may have other names; firmware is the question, and does not hinder."""
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST, hosts=("east1", "east2"))
    assert row(only(cli, a, b)["plans"], "mean_rate")["verdict"] == "better"
    switch = {"model": "SN2100", "serial": "MT1"}
    a, b = (
        make(tmp_path / firmware, FAST, about={"switches": [switch | {"firmware": firmware}]})
        for firmware in ("1.0", "1.1")
    )
    found = result(cli, a, b)
    assert [one["name"] for one in found["results"]] == ["1.0", "1.1"]
    firmware = {"of": None, "setting": "about.switches.0.firmware", "values": ["1.0", "1.1"]}
    assert found["question"] == [firmware]


def test_several_results(tmp_path: Path, cli: Command) -> None:
    words = [f"{name}={make(tmp_path / name, test)}" for name, test in
             (("y", FAST), ("x", SLOW), ("z", FAST))]  # fmt: skip
    found = result(cli, *words)
    assert found["baseline"] == "y"
    assert [one["result"] for one in found["comparisons"]] == ["x", "z"]
    verdicts = [row(one["plans"], "mean_rate")["verdict"] for one in found["comparisons"]]
    assert verdicts == ["worse", "same"]


# --- what can't be compared ----------------------------------------------------------------------


def test_other_loads_are_other_measurements(tmp_path: Path, cli: Command) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, load=50.0, pattern="ring"))
    b = make(
        tmp_path / "b", Repeats(FAST.windows, load=80.0), Repeats(SLOW.windows, 0, 50.0, "ring")
    )
    comparison = only(cli, a, b, status=2)
    assert [one["baseline"]["settings"]["pattern"] for one in comparison["pairs"]] == ["ring"]
    differing = [(one["setting"], one["values"]) for one in comparison["differing"]]
    assert differing == [("load", ["95%", "80%"])]
    said = cli("compare", a, b)
    assert "a and b are not the same measurement: load differs; what can be compared" in said.err
    assert "pairs neighbours, dpdk: load is 95% and 80%" in said.out
    assert "ring neighbours, 2 ranks" in said.out  # what can be compared


def test_transports_of_other_loads_are_other_measurements(tmp_path: Path, cli: Command) -> None:
    """tcp at 100 % and dpdk at 30 % are not compared, so nothing is better or worse."""

    def loads(entry: dict[str, Any]) -> None:
        percent = 100.0 if entry["transport"] == "tcp" else 30.0
        entry |= {"load": {"percent": percent}, "intended_load": percent}

    choice = Choice(4, transports=("tcp", "dpdk"), patterns=("pairs",), repeats=3)
    made = simulate(tmp_path / "run", choice)
    change(made, loads, "plans", "trials")
    comparison = only(cli, made, "--by", "transport", status=2)
    assert comparison["pairs"] == comparison["plans"] == []
    load = {"of": "pairs neighbours, tcp", "setting": "load", "values": ["100%", "30%"]}
    assert load in comparison["differing"]
    said = refused(cli, made, "--by", "transport", shown=True)
    assert "tcp and dpdk are not the same measurement: load" in said
    # Asked for, the figures stand beside each other; none is called better or worse.
    rows = only(cli, made, "--by", "load")["plans"]
    assert row(rows, "mean_rate")["difference"] is not None
    assert {one["verdict"] for one in rows} == {"not known"}
    assert row(rows, "mean_rate")["reason"] == "not judged: the intended loads differ"


def test_what_the_tester_limited_is_in_no_mean(tmp_path: Path, cli: Command) -> None:
    a, b = make(tmp_path / "a", SLOW), make(tmp_path / "b", FAST)
    limit = {
        "port": "node1:e0", "shortfall_percent": 9.0, "dropped_frames": None,
        "start_delay_ms": None, "window_error_percent": None, "reason": "offered less",
    }  # fmt: skip
    change(b, lambda e: e.update(tester_limited=[limit] * (e["repeat"] < 2)), "trials")
    comparison = only(cli, a, b)
    assert row(comparison["plans"], "loss")["repeats"] == [3, 1]


def test_another_window_or_seed_is_said_and_the_figures_shown(tmp_path: Path, cli: Command) -> None:
    a = make(tmp_path / "a", FAST)
    b = make(tmp_path / "b", Repeats(FAST.windows, settings={"window": "5s", "seed": 2}))
    comparison = only(cli, a, b, status=2)
    assert {one["setting"] for one in comparison["differing"]} == {"window", "seed"}
    assert row(comparison["plans"], "mean_rate")["difference"] == 0


def test_a_pattern_that_only_one_has(tmp_path: Path, cli: Command) -> None:
    a = make(tmp_path / "a", FAST, Repeats(SLOW.windows, pattern="ring"))
    b, c = make(tmp_path / "b", FAST), make(tmp_path / "c", Repeats(SLOW.windows, pattern="ring"))
    alone = "ring neighbours, 2 ranks: dpdk, 1518 B frames, 95 %: only in a"
    assert only(cli, a, b)["alone"] == [alone]
    said = refused(cli, b, c, shown=True)
    assert said == "nothing of b and c can be compared: no pattern is in both"


def test_bad_input_is_one_sentence(tmp_path: Path, cli: Command) -> None:
    one = make(tmp_path / "one", FAST)
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, said in (
        ((one, tmp_path / "none"), f"no results in {tmp_path}/none: there is no such"),
        ((one, empty), f"no results in {empty}: it has no summary.json"),
        ((one,), "there is one result only: name a second"),
        ((one, "--by", "transport"), "has only transport dpdk, so --by has nothing to compare"),
        ((one, "--by", "colour"), "has no setting 'colour'"),
    ):
        assert said in refused(cli, *words)


@pytest.mark.rows
def test_damaged_or_newer(text: str | None, sentence: str, tmp_path: Path, cli: Command) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    summary = json.loads((bad / "summary.json").read_text()) | {"plans": "none"}
    (bad / "summary.json").write_text(text or json.dumps(summary))
    for file in bad.glob("*.parquet" if text else PLAN):
        file.unlink()
    said = refused(cli, one, bad)
    assert sentence in said
    assert str(bad) in said
    assert ("the summary can't be rebuilt from the tables" in said) == (text is None)


def test_damaged_tables_are_said_and_the_rest_is_compared(tmp_path: Path, cli: Command) -> None:
    one = make(tmp_path / "one", FAST)
    bad = Path(shutil.copytree(one, tmp_path / "bad"))
    (bad / "flows.parquet").write_bytes(b"PAR1 and no more")
    found = result(cli, one, bad, status=2)
    (damage,) = found["damage"]
    assert damage.startswith(f"{bad}: flows.parquet can't be read as a table")
    assert row(found["comparisons"][0]["plans"], "mean_rate")["difference"] == 0
    assert refused(cli, one, bad, shown=True)


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
    return welch(*(Sample(side, **more) for side in sides))


def covered(found: WelchTest) -> float:
    """Return the share of tests with an interval that covers 0."""
    return float((np.abs(found.difference) <= found.half_width).mean())


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
    """The repeats of both sides end when their interval is 2 % wide, or after ten."""
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
    assert (plain.half_width < chosen.half_width).all()


def test_nothing_is_made_up() -> None:
    """One repeat, none, or a spread by rounding alone gives no probability and no interval."""
    nan = np.nan
    base = np.array([[1.0, nan, 5.0, 0.1], [nan, nan, 5.0, 0.2], [nan, nan, 5.0, 0.3]])
    other = np.array([[2.0, 3.0, 6.0, 1.1], [2.5, 3.5, 6.0, 1.2], [2.6, 3.1, 6.0, 1.3]])
    found = welch_of(base, other)
    for values in (found.p, found.half_width):
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
    assert single.ci_half_width == pytest.approx(statistics.t_quantile(0.95, 7) * error)


def test_holm() -> None:
    p = holm(np.array([0.01, 0.04, np.nan, 0.03, 0.005]))
    assert p[[0, 1, 3, 4]] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert np.isnan(p[2])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


# --- `switchbench compare` with other programs' results -------------------------------------------


MIB = 1 << 20


def figures(cli: Command, *words: object, status: int = 0) -> dict[Any, tuple[float, float]]:
    """Return the values of both sides."""
    one = only(cli, *words, status=status)
    found = {}
    for row in one["plans"]:
        sides = [one["pairs"][row["pair"]][side]["settings"] for side in ("baseline", "other")]
        programs = " ".join(side["transport"] for side in sides)
        size = sides[0]["size"]
        key = (row["measure"], programs, int(sides[0]["ranks"]), None if size == "-" else int(size))
        found[key] = (row["baseline"], row["other"])
    return found


def ours(path: Path, mean_mbps: float = 5000.0, **changes: Any) -> Path:
    """Return a result of ours over TCP; `changes`: of its plans and phases."""
    make(path, Repeats([(7000, 6800)]))
    summary = json.loads((path / SUMMARY).read_text())
    for entry in (*summary["plans"], *summary["trials"]):
        entry |= {"transport": "tcp", "size": MIB, "size_unit": "message", "intended_load": None}
        entry |= {name: value for name, value in changes.items() if name in entry}
        entry["throughput"]["mean"] = mean_mbps
    replace_json(path / SUMMARY, summary)
    return path


def function(name: str, time_us: float, size: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a summary's entry of a collective function on 4 ranks."""
    times = blank("RepetitionTimes") | {"mean": time_us, "slowest_rank": time_us}
    return {
        **blank("Function"),
        **{"transport": "tcp", "network": "lab", "ranks": 4, "pattern": name},
        "parameters": parameters,
        "points": [blank("FunctionPoint") | {"size": size, "repetition_us": times}],
    }


def side(path: Path, files: Sequence[str] = (), ranks: int | None = None, **result: Any) -> Path:
    """Return other programs' results, or one of ours with functions or a curve of messages."""
    if files:
        return bring_in(path, *(FOREIGN / name for name in files), ranks=ranks)
    functions = [function(*one) for one in result.pop("functions", ())]
    curve = [blank("Curve") | one for one in result.pop("curves", ())]
    for one in curve:
        one["points"] = [blank("CurvePoint") | point for point in one["points"]]
    ours(path, **result)
    summary = json.loads((path / SUMMARY).read_text())
    summary["messages"]["curves"] = curve
    summary["steps"] = blank("Steps") | {"functions": functions}
    replace_json(path / SUMMARY, summary)
    return path


@pytest.mark.rows
def test_programs_side_by_side(
    one: dict[str, Any], other: dict[str, Any], found: list[Any], lacks: list[Any],
    tmp_path: Path, cli: Command,
) -> None:  # fmt: skip
    """Figures by measure, programs, ranks and size; `lacks`: how none of their keys begins."""
    sides = [side(tmp_path / str(n), **keys) for n, keys in enumerate((one, other))]
    seen = figures(cli, *sides, status=0 if found else 2)
    for *key, base, others in found:
        assert seen[tuple(key)] == pytest.approx((base, others))
    assert {key[1] for key in seen} == {key[1] for key in found}
    assert not any(key[: len(part)] == tuple(part) for part in lacks for key in seen)


def test_values_of_several_files_are_repeats(tmp_path: Path, cli: Command) -> None:
    """The one comparison serves: two files of one program have an interval and a verdict."""
    files = []
    for number, share in enumerate((1.0, 1.001, 0.999)):
        for name, slower in (("a", 1.0), ("b", 3.0)):
            file = tmp_path / f"{name}{number}" / "hpccoutf.txt"
            latency = 10 * share * slower
            files.append(hpccoutf(file, AvgPingPongLatency_usec=latency))
    one, other = bring_in(tmp_path / "a", *files[::2]), bring_in(tmp_path / "b", *files[1::2])
    rows = {row["measure"]: row for row in only(cli, one, other)["plans"]}
    row = rows["pingpong_time"]
    assert (row["repeats"], row["verdict"], row["better"]) == ([3, 3], "worse", "less")
    assert rows["hpl"]["verdict"] == "same"


def test_nothing_in_common(tmp_path: Path, cli: Command) -> None:
    hpcc = bring_in(tmp_path / "hpcc", FOREIGN / "hpcc-4.txt")
    old = bring_in(tmp_path / "old", FOREIGN / "imb-3.2.txt")
    said = refused(cli, hpcc, old, shown=True)
    assert "no measure is in both at the same number of ranks" in said


# --- `switchbench compare --history` --------------------------------------------------------------


def runs(folder: Path, frames: Sequence[int], load: float = 95.0) -> list[str]:
    """Return results of runs, a day apart, with these numbers of delivered frames per flow."""
    found = []
    for day, each in enumerate(frames, 1):
        repeats = Repeats([(each - 3, each), (each, each + 3), (each + 3, each - 3)], load=load)
        directory = make(folder / f"run{day}", repeats)
        summary = json.loads((directory / "summary.json").read_text())
        summary["run"]["started"] = f"2026-01-{day:02}T00:00:00Z"
        (directory / "summary.json").write_text(json.dumps(summary))
        found.append(str(directory))
    return found


def course(cli: Command, words: Sequence[str], status: int) -> dict[str, Any]:
    """Return the course of the mean rate, as the command writes it."""
    found = result(cli, "--history", *words, status=status)
    (rate,) = [one for one in found["courses"] if one["measure"] == "mean_rate"]
    return dict(rate)


@pytest.mark.rows
def test_what_a_history_says(
    frames: Sequence[int], verdict: str, trend: str, status: int, tmp_path: Path, cli: Command
) -> None:
    found = course(cli, runs(tmp_path, frames), status)
    if verdict is not None:
        assert found["verdict"] == verdict
    if trend is not None:
        assert found["trend"] == (trend or None)
    values = found["values"]
    assert [value / values[0] for value in values] == pytest.approx(
        [each / frames[0] for each in frames]
    )


def test_a_slope_is_that_of_the_runs(tmp_path: Path, cli: Command) -> None:
    """The slope is 10 frames per run of the median 6,975: 0.1434 %."""
    found = course(cli, runs(tmp_path, (7000, 6990, 6980, 6970, 6960, 6950)), 1)
    assert found["slope_percent"] == pytest.approx(-1000 / 6975)
    assert found["p"] == pytest.approx(2 / 720)  # one of 6! orders, or its reverse


def test_runs_are_in_the_order_of_their_dates(tmp_path: Path, cli: Command) -> None:
    words = runs(tmp_path, (7000, 7000, 7000, 6300))
    assert course(cli, words[::-1], 1) == course(cli, words, 1)


def test_regressions_are_named(tmp_path: Path, cli: Command) -> None:
    said = cli.prints("compare", "--history", *runs(tmp_path, (7000, 7010, 6990, 6300)), status=1)
    assert "4 runs, 2026-01-01T00:00:00Z to 2026-01-04T00:00:00Z" in said
    assert "Regressions" in said
    assert "mean flow of the last run" in said
    assert "CPU" not in said.partition("Regressions")[2]  # nodes of a lab share one machine
    assert spark([7000, 7010, 6990, 6300], False) in said


def test_a_history_of_unlike_runs_is_refused(tmp_path: Path, cli: Command) -> None:
    words = [*runs(tmp_path / "a", (7000, 7000)), *runs(tmp_path / "b", (7000,), load=50.0)]
    said = refused(cli, "--history", *words, shown=True)
    assert "these are not runs of one measurement: " in said
    assert "b/run1 has no pairs" in said


@pytest.mark.rows
def test_what_a_history_cannot_do(
    options: list[str], says: str, tmp_path: Path, cli: Command
) -> None:
    assert says in cli.refuses("compare", "--history", *runs(tmp_path, (7000,)), *options)


def test_noise_is_no_trend(tmp_path: Path, cli: Command) -> None:
    """Some of many measures are in order by chance, which the correction allows for."""
    random = np.random.default_rng(1)
    for seed in range(5):
        frames = [int(each) for each in random.normal(7000, 5, 6)]
        said = cli("compare", "--history", *runs(tmp_path / str(seed), frames), "--json", "-")
        courses = json.loads(said.out)["courses"]
        assert {one["trend"] for one in courses} <= {"none", None}


def test_one_directory_is_one_run(tmp_path: Path, cli: Command) -> None:
    words = runs(tmp_path, (7000, 7000))
    assert "duplicate directory" in cli.refuses("compare", "--history", *words, words[0])


def test_a_damaged_run_is_named_so(tmp_path: Path, cli: Command) -> None:
    words = runs(tmp_path, (7000, 7000))
    (Path(words[0]) / "configuration.yaml").write_text("- 1\n")
    said = refused(cli, "--history", *words, shown=True)
    assert "not all could be read" in said
    assert "not runs of one measurement" not in said


def test_bars() -> None:
    assert spark([1.0, None, 2.0, 1.5], False) == "▁ █▄"
    assert spark([3.0, 3.0], False) == "▄▄"
    assert spark([], False) == ""


# --- `switchbench compare` of what goes by steps --------------------------------------------------


Times = Sequence[tuple[float, float]]  # of both ranks, by repeat
RANKS = ("node1:e0", "node2:e0")


def repeated(number: int, name: str, size: int, times: Times, **more: Any) -> list[Any]:
    """Return a function's trials with their records."""
    return [
        (trial, [execution(trial, rank, [us]) for rank, us in zip(RANKS, both, strict=True)])
        for repeat, both in enumerate(times)
        for trial in [
            steps_trial(
                number + repeat, repeat=repeat, pattern={"name": name}, sizes=(size,), point=number,
                **more,
            )
        ]
    ]  # fmt: skip


def made(path: Path, *parts: list[tuple[Trial, list[dict[str, Any]]]]) -> Path:
    """Return a results directory of these trials; all flows carry the same."""
    trials = [trial for part in parts for trial, _ in part]
    site = synthetic.make_site()
    understood = {"switchbench": 1, "site": {"lab": "one-switch"}, "tests": [{"pattern": "any"}]}
    run = replace(synthetic.make_run(site, *trials), effective=understood)
    records = [synthetic.hello(node) for node in ("node1", "node2")]
    for trial, executions in (one for part in parts for one in part):
        place: dict[str, Any] = {"trial": trial.id, "repeat": trial.repeat}
        for phase in range(trial.phases):
            for ends in (RANKS, RANKS[::-1]):
                records += [
                    synthetic.tcp_side(side, *ends, 10**6, 10**6, **place, phase=phase)
                    for side in ("source", "destination")
                ]
            records += [record | {"phase": phase} for record in executions]
            records += [
                synthetic.phase_record(node, **place, phase=phase) for node in ("node1", "node2")
            ]
        records += [synthetic.trial_record(node, **place) for node in ("node1", "node2")]
    return recorded.results(path, run, records)


def rows(cli: Command, *words: object) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows by the pair's title and measure."""
    one = only(cli, *words)
    titles = [pair["baseline"]["title"] for pair in one["pairs"]]
    return {(titles[row["pair"]], row["measure"]): row for row in one["plans"]}


STEADY: Times = [(99.0, 100.0), (100.0, 101.0), (101.0, 102.0)]
SLOWER: Times = [(2 * one, 2 * other) for one, other in STEADY]
SENDRECV = "sendrecv, 2 ranks: tcp, 1 KiB messages"


def test_times_of_functions_have_intervals(tmp_path: Path, cli: Command) -> None:
    """Less time is better; over repeats they are as sure as rates."""
    a = made(tmp_path / "a", repeated(0, "sendrecv", 1024, STEADY))
    b = made(tmp_path / "b", repeated(0, "sendrecv", 1024, SLOWER))
    found = rows(cli, a, b)
    time = found[SENDRECV, "repetition"]
    assert (time["baseline"], time["other"], time["unit"]) == (100.5, 201.0, "us")
    assert (time["verdict"], time["better"], time["repeats"]) == ("worse", "less", [3, 3])
    # Welch: s^2 is 1 and 4 of three each, and runs may differ by 10 % (0.05 % is rounded).
    shared, rounding = ((part * 100.5) ** 2 + (part * 201) ** 2 for part in (0.1, 0.0005))
    freedom = (5 / 3 + shared) ** 2 / ((1 / 9 + 16 / 9) / 2)
    assert time["degrees_of_freedom"] == pytest.approx(freedom)
    half = stdtrit(freedom, 0.975) * (5 / 3 + shared + rounding) ** 0.5
    assert time["ci_high"] - time["difference"] == pytest.approx(half, rel=1e-3)
    assert rows(cli, b, a)[SENDRECV, "repetition"]["verdict"] == "better"


def test_empty_messages_have_times_and_no_rates(tmp_path: Path, cli: Command) -> None:
    """A barrier has no rate: 0 Mbit/s on both sides would be the same."""
    parts = repeated(0, "barrier", 0, STEADY)
    a = made(tmp_path / "a", parts)
    summary = json.loads((a / SUMMARY).read_text())
    for entry in (*summary["plans"], *summary["trials"]):
        entry["delivered_bytes"] = 0
    replace_json(a / SUMMARY, summary)
    found = rows(cli, a, f"other={a}")
    assert {name for _, name in found} == {"repetition"}


def kernels(number: int, times: Times) -> list[Any]:
    """Return repeats of a kernel of 15 iterations."""
    found = []
    for repeat, both in enumerate(times):
        trial, records = kernel_run("tcp", number, both)
        trial = replace(trial, id=number + repeat, repeat=repeat)
        place = {"trial": trial.id, "repeat": repeat}
        found.append((trial, [record | place for record in records]))
    return found


def test_kernels_by_the_time_of_the_whole_benchmark(tmp_path: Path, cli: Command) -> None:
    a = made(tmp_path / "a", kernels(0, STEADY))
    b = made(tmp_path / "b", kernels(0, SLOWER))
    found = rows(cli, a, b)
    ((_, row),) = ((key, row) for key, row in found.items() if key[1] == "whole")
    assert row["baseline"] == pytest.approx(15 * 101e-6)  # the slower rank's mean
    assert (row["unit"], row["better"], row["verdict"]) == ("s", "less", "worse")


def test_transports_of_one_result(tmp_path: Path, cli: Command) -> None:
    """What goes by steps has no load; kernels and empty messages have no size to be matched by."""
    steps: list[Any] = []
    number = 0
    makers: tuple[Callable[..., list[Any]], ...] = (
        lambda n, **more: repeated(n, "barrier", 0, STEADY, **more),
        lambda n, **more: repeated(n, "sendrecv", 1024, STEADY, **more),
    )
    for transport in ("tcp", "verbs"):
        for maker in makers:
            some = maker(number, transport=transport, test=len(steps))
            steps.append(some)
            number += len(some)
    one = only(cli, made(tmp_path / "both", *steps), "--by", "transport")
    assert [pair["baseline"]["title"] for pair in one["pairs"]] == [
        "barrier, 2 ranks: tcp, messages by steps",
        SENDRECV,
    ]
    assert [one["alone"], one["differing"]] == [[], []]


# --- doc/papers/saini_ratios.py with the numbers that Saini et al. 2005 (HPCC and IMB -------------


SCRIPT = Path(__file__).parents[2] / "doc" / "papers" / "saini_ratios.py"
PAPER: dict[str, Any] = yaml.safe_load((DATA / "saini2005.yaml").read_text())
TERA, GIGA = 1e12, 1e9


def ask(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def ratios(*words: object) -> dict[str, Any]:
    """Return what the script writes as JSON."""
    found: dict[str, Any] = json.loads(ask("--json", *words).stdout)
    return found


def run_of(path: Path, processes: int, hpl: float, ring_by_hpl: float, **more: Any) -> Path:
    """Write what HPCC would have written on a system with this ratio, in B/kFlop."""
    ring = ring_by_hpl / 1e3 * hpl / processes
    return hpccoutf(
        path,
        CommWorldProcs=processes,
        HPL_Tflops=hpl / TERA,
        RandomlyOrderedRingBandwidth_GBytes=ring / GIGA,
        **more,
    )


def test_all_axes_of_figure_5(tmp_path: Path) -> None:
    """One system has what Table 2 has as the greatest, the other half of each ratio."""
    table, places = PAPER["table2"], []
    for name, share in (("best", 1.0), ("half", 0.5)):
        hpl, processes = share * table["hpl"], 512
        file = run_of(
            tmp_path / f"{name}.txt",
            processes,
            hpl,
            1e3 * share * table["ring"],
            StarDGEMM_Gflops=share * table["dgemm"] * hpl / processes / GIGA,
            MPIFFT_Gflops=share * table["fft"] * hpl / GIGA,
            PTRANS_GBs=share * table["ptrans"] * hpl / GIGA,
            StarSTREAM_Copy=share * table["stream"] * hpl / processes / GIGA,
            MPIRandomAccess_GUPs=share * table["random_access"] * hpl / GIGA,
            RandomlyOrderedRingLatency_usec=1 / (share * table["ring_latency"]),
        )
        places.append(bring_in(tmp_path / name, file))
    found = ratios(*places)
    axes = found["ratios"]
    best = max(row["STREAM / HPL, B/Flop"] for row in found["systems"])
    assert best == pytest.approx(table["stream"], rel=1e-5)
    assert sorted(axis["1 is"] for axis in axes) == pytest.approx(sorted(table.values()), rel=1e-5)
    for axis in axes:
        assert (axis["best 512"], axis["half 512"]) == (1.0, pytest.approx(0.5, rel=1e-5))


def test_our_rings_by_the_hpl_that_is_given(tmp_path: Path) -> None:
    mine = make(tmp_path / "mine", Repeats([(7000, 6800)]))
    summary = json.loads((mine / SUMMARY).read_text())
    for plan in summary["plans"]:
        plan |= {"pattern": "ring", "parameters": {"natural": False}}
    replace_json(mine / SUMMARY, summary)
    (row,) = ratios(mine, "--hpl", 2)["systems"]
    ring = rate_mbps(7000 + 6800) * 1e6 / 8
    assert row["random ring, GB/s"] == pytest.approx(ring / GIGA)
    assert row["ring / HPL, B/kFlop"] == pytest.approx(ring / 2e9 * 1e3)
    assert "no system has HPL" in ask(mine, status=2).stderr
    assert "is not a results directory" in ask(tmp_path, status=2).stderr


def test_a_point_for_each_number_of_processes(tmp_path: Path) -> None:
    out = bring_in(tmp_path / "out", *(FOREIGN / f"hpcc-{count}.txt" for count in (2, 4)))
    shown = ask(out).stdout
    assert "Figures 1 to 4" in shown
    assert "2092" in shown  # 2 processes: 2 flows of 19,903 Mbit/s each, 4.75619 GFlop/s
    assert "8059" in shown  # 4 processes: 2 flows of 5,804.52 Mbit/s each, 0.720273 GFlop/s
