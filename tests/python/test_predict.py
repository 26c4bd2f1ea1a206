# SPDX-License-Identifier: BSD-3-Clause
"""Models of contention: the numbers of Zhu et al. 2012, and what fairness means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from configs import PROJECT, needs_engine
from conftest import Command
from recorded import fed
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import CableBundle
from switchbench.config import read
from switchbench.plan.compile import compile_run
from switchbench.plan.engine import PlanRefused, plan_phases
from switchbench.predict.models import arriving, constrained_bps, max_min_bps
from switchbench.predict.models import rates as model_rates
from switchbench.predict.predictor import (
    PredictedTrial,
    Predictor,
    demand_bps,
    fabric_of,
    measured_bps,
    measured_trials,
    points,
    share_close,
)
from switchbench.records.directory import SUMMARY, write_plan
from switchbench.topology.fabric import Fabric, Rates, Routes
from synthetic import about, make_run, make_site, make_trial, pair_records

NIC = 940e6
"""Rate that the paper's Gigabit links carry, bit/s."""


def racks(nodes: int, backbone_bps: float) -> Routes:
    """Return the paper's platform: two racks of nodes, joined by one cable."""
    names = tuple(f"{rack}{i}" for rack in "xy" for i in range(nodes))
    access = (CableBundle(name, f"rack {name[0]}", int(NIC)) for name in names)
    links = (*access, CableBundle("rack x", "rack y", int(backbone_bps)))
    return Routes(Fabric("racks", names, ("rack x", "rack y"), links))


def rates(routes: Routes, flows: list[tuple[int, int]], model: Any = constrained_bps) -> Rates:
    """Return the rates of a model in Mbit/s."""
    ranks = np.array(flows, dtype=np.int64)
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    mbps: Rates = model(routes, paths, np.full(len(flows), np.inf)) / 1e6
    return mbps


def test_a_cable_between_two_hosts_is_shared_by_nobody() -> None:
    """The cable is the first and the last link of its flow, and counts once."""
    pair = Fabric("pair", ("a", "b"), (), (CableBundle("a", "b", 100),))
    ranks = np.array([[0, 1], [1, 0]])
    found = model_rates(Routes(pair), ranks, np.full(2, np.inf), ("max-min", "proportional"))
    for name, bps in found.items():
        assert bps == pytest.approx([100, 100]), name


def across(links: int) -> list[tuple[int, int]]:
    """Return this number of flows from one rack to the other."""
    return [(i, 15 + i) for i in range(links)]


@pytest.mark.rows
def test_the_paper_s_cases(
    what: str, backbone: float, flows: list[tuple[int, int]], each: list[float]
) -> None:
    assert rates(racks(15, backbone), flows)[: len(each)] == pytest.approx(each)
    if what == "two in, one out":
        fair = rates(racks(15, backbone), flows, max_min_bps)
        assert fair == pytest.approx([470, 470, 940])


def test_no_rate_depends_on_the_order_of_flows() -> None:
    """Flows of one key (7), for which the paper's queue has no order, are calculated together."""
    flows = [(0, 2), (0, 6), (1, 7), (2, 6), (5, 6), (5, 7), (6, 5), (6, 9), (8, 6), (9, 6)]
    flows += [(9, 7), (9, 1)]
    assert rates(racks(5, 9.4e9), flows)[-1] == pytest.approx(376)
    generator = np.random.default_rng(5)
    routes = racks(10, 9.4e9)
    for _ in range(100):
        sources = np.repeat(np.arange(20), 3)[generator.random(60) < 0.5]
        ranks = np.column_stack([sources, (sources + generator.integers(1, 20, sources.size)) % 20])
        ranks = np.unique(ranks, axis=0)
        found = rates(routes, [tuple(row) for row in ranks.tolist()])
        order = generator.permutation(len(ranks))
        shuffled = rates(routes, [tuple(row) for row in ranks[order].tolist()])
        assert shuffled == pytest.approx(found[order])


def test_max_min_fills_resources_and_favours_nobody() -> None:
    """Its definition: each flow crosses a full resource on which none has more than it."""
    routes = racks(15, 3e9)
    generator = np.random.default_rng(7)
    for _ in range(50):
        sources = generator.integers(0, 30, 40)
        paths = routes.paths(sources, (sources + generator.integers(1, 30, 40)) % 30)
        bps = max_min_bps(routes, paths, np.full(40, np.inf))
        used = np.bincount(paths.ravel(), np.repeat(bps, paths.shape[1]), routes.nothing + 1)[:-1]
        assert (used <= routes.capacity_bps * (1 + 1e-9)).all()
        full = np.append(used >= routes.capacity_bps * (1 - 1e-9), False)
        for path, own in zip(paths, bps, strict=True):
            most = [bps[(paths == r).any(axis=1)].max() for r in path if full[r]]
            assert min(most) == pytest.approx(own)


def test_the_model_gives_every_flow_something() -> None:
    """Random patterns as the paper's section 7 draws them; nobody gets more than its NIC. Between
    switches of other uplinks no rate is 0 or less, though by the paper's formula earlier flows can
    have taken more of an uplink than it has."""
    hosts = tuple(f"h{i}" for i in range(15))
    access = (CableBundle(host, f"s{i // 5}", 1000) for i, host in enumerate(hosts))
    uplinks = (CableBundle(f"s{i}", "root", rate) for i, rate in enumerate((1800, 1700, 100)))
    tree = Routes(Fabric("tree", hosts, ("s0", "s1", "s2", "root"), (*access, *uplinks)))
    generator = np.random.default_rng(2012)
    for routes, count, most in ((racks(15, 9.4e9), 30, NIC), (tree, 15, 1000)) * 50:
        sources = generator.integers(0, count, 2 * count)
        paths = routes.paths(sources, (sources + generator.integers(1, count, 2 * count)) % count)
        bps = constrained_bps(routes, paths, np.full(len(paths), np.inf))
        assert (bps > 0).all()
        assert (bps <= most * (1 + 1e-9)).all()


@pytest.mark.rows
def test_drop_tail_serves_who_sends_more(
    backbone: float, flows: list[tuple[int, int]], sent: list[float], found: list[float]
) -> None:
    """Frames that were lost on one link do not fill the next."""
    routes, ranks = racks(15, backbone), np.array(flows)
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    assert arriving(routes, paths, np.array(sent)) / 1e6 == pytest.approx(found)


def test_a_demand_is_not_exceeded_and_what_it_leaves_goes_to_others() -> None:
    routes, ranks = racks(15, 9.4e9), np.array([(1, 0), (2, 0), (3, 0)])
    paths = routes.paths(ranks[:, 0], ranks[:, 1])
    demand = np.array([100e6, np.inf, np.inf])
    assert max_min_bps(routes, paths, demand) / 1e6 == pytest.approx([100, 420, 420])


@needs_engine
def test_the_engines_plans_are_read() -> None:
    [chain] = plan_phases(4, {"name": "chain", "forward": True}, 1)
    assert (chain.number, chain.name) == (0, "chain")
    assert chain.flows.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert chain.forwards.tolist() == [False, True, True]
    assert [phase.number for phase in plan_phases(6, {"name": "aapc"}, 1, [3, 1])] == [3, 1]
    with pytest.raises(PlanRefused, match="rank"):
        list(plan_phases(1, {"name": "pairs"}, 1))


@needs_engine
def test_the_command_predicts_the_trunk(cli: Command) -> None:
    """conf/two-modules.yaml: 7, 8, 9 and 12 pairs over a trunk of eight links."""
    conf = str(PROJECT / "conf" / "two-modules.yaml")
    trials = json.loads(cli.prints("predict", conf, "--models", "max-min", "--json"))["trials"]
    across = [trial["models"]["max-min"]["mean_bps"] / 10e6 for trial in trials[:4]]
    assert across == pytest.approx([1.0, 1.0, 8 / 9, 8 / 12], rel=1e-3)


@needs_engine
def test_models_that_show_the_same_rates_share_a_row(cli: Command) -> None:
    """The rate is 80 / 12 Mbit/s, and the last digits of models differ by their order of adding."""
    conf = str(PROJECT / "conf" / "two-modules.yaml")
    said = cli.prints("predict", conf, "--models", "max-min,proportional")
    rows = [line for line in said.splitlines() if "count 12" in line]
    assert [row.split().count("6.667") for row in rows] == [3]
    assert "max-min, proportional" in rows[0]


@needs_engine
@pytest.mark.parametrize(
    ("transport", "load", "each"), [("tcp", "100%", 10), ("tcp", "80%", 4), ("dpdk", "100%", 5)]
)
def test_only_flows_that_the_engine_paces_have_a_share_of_the_load(
    transport: str, load: str, each: float, tmp_path: Path
) -> None:
    """On a ring each port sends two flows. Messages at 100 % are unpaced (offered_load.c), so that
    one of them could have a line to itself; frames are paced at any load."""
    path = tmp_path / "ring.yaml"
    path.write_text(
        "switchbench: 1\nsite: {lab: one-switch, rate: 10M}\nwarmup: 100ms\n"
        f"transport: {transport}\nload: {load}\ntests: [{{pattern: ring, count: 0}}]\n"
    )
    run = compile_run(read(path))
    (trial,) = points(run)
    (prediction,) = Predictor(fabric_of(run, None), ["max-min"]).predict(trial)
    demand = demand_bps(trial, prediction.part, prediction.ranks)
    assert demand / 1e6 == pytest.approx(each)


def test_the_error_is_that_of_the_time() -> None:
    """Predicted 10, measured 5: the time was predicted as half, -50 %, as the paper counts. A flow
    of which nothing arrived was measured and is no success; one without a record was not."""
    rates = {"bad": np.array([20.0, 10, 5, 5]), "good": np.array([10.0, 5.5, 5, 5])}
    seen = np.array([10.0, 5.0, 0.0, np.nan])
    trial: Any = SimpleNamespace(point=0)
    found = PredictedTrial(trial, 1, rates, seen)
    assert found.known == 3
    assert found.best_first() == ["good", "bad"]
    assert found.errors("good") == pytest.approx([0.0, -1 / 11, -1.0])
    assert found.errors("bad") == pytest.approx([-0.5, -0.5, -1.0])
    assert share_close(found.errors("good")) == pytest.approx(2 / 3)


@needs_engine
@pytest.mark.rows
def test_a_topology_that_can_be_none_is_refused_in_one_sentence(
    file: str, words: str, tmp_path: Path, cli: Command
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(f"topology: 1\ndescription: none\n{file}\n")
    assert words in cli.refuses("predict", PROJECT / "conf/chain.yaml", "--topology", path)


@needs_engine
def test_a_topology_that_does_not_fit(cli: Command) -> None:
    for words, conf, *arguments in (
        ("one-switch has no host node9", "conf/two-modules.yaml", "--topology", "one-switch"),
        ("give --topology FILE", "conf/verbs-site.yaml"),
        ("is not limited", "conf/two-modules.yaml", "--topology", "open"),
    ):
        assert words in cli.refuses("predict", PROJECT / conf, *arguments)


@needs_engine
def test_collective_operations_are_left_out(tmp_path: Path, cli: Command) -> None:
    head = "switchbench: 1\nsite: {lab: one-switch}\ntransport: tcp\ntests:\n"
    steps = "- {pattern: allreduce, ranks: [4], message_sizes: [1KiB]}\n"
    path = tmp_path / "steps.yaml"
    path.write_text(head + steps)
    assert "no prediction is possible for collective operations" in cli.refuses("predict", path)
    path.write_text(head + steps + "- {pattern: chain, ranks: [4]}\n")
    said = cli.prints("predict", path, "--models", "max-min")
    assert "not predicted: 1 setting of collective operations" in said
    assert "chain" in said
    assert "allreduce" not in said


@needs_engine
def test_fast_rates_are_written_out(cli: Command) -> None:
    arguments = ["predict", str(PROJECT / "conf/chain.yaml"), "--models", "max-min"]
    said = cli.prints(*arguments, "--set", "site.rate=25G")
    assert re.search(r"max-min +\d+ +2[35]\.\d\d ", said)
    assert "e+" not in said


@needs_engine
def test_results_without_records(tmp_path: Path, cli: Command) -> None:
    write_plan(tmp_path, compile_run(read(PROJECT / "conf/chain.yaml")))
    said = cli.refuses("predict", tmp_path, "--set", "load=50%")
    assert "--set changes a configuration" in said
    said = cli.refuses("predict", tmp_path)
    assert f"no results in {tmp_path}: it has no summary.json" in said
    assert not measured_bps({}, tmp_path)
    (tmp_path / "flows.parquet").write_text("none")
    with pytest.raises(ConfigurationError, match=r"flows\.parquet can't be read as a table"):
        measured_bps({}, tmp_path)


@pytest.mark.rows
def test_results_that_say_of_nothing_what_it_is(
    plans: list[dict[str, Any]], sentence: str, tmp_path: Path
) -> None:
    run = make_run(make_site(), make_trial(make_site(), 0))
    summary = fed(run, pair_records()).finish(about(), [])
    summary["plans"] = [summary["plans"][0] | plan for plan in plans]
    (tmp_path / SUMMARY).write_text(json.dumps(summary))
    with pytest.raises(ConfigurationError, match=sentence):
        measured_trials(run, tmp_path)
