# SPDX-License-Identifier: BSD-3-Clause
"""Which cores workers get, as written and as dealt in a lab; and frames that no core can send."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from configs import compile_text, needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.plan.documents import Deal, LocalCores, check_rates, deal, job_document, written

pytestmark = needs_engine
SITE = {
    "launch": "hand",
    "hosts": "node[1-3]",
    "cores": "2-3",
    "host_cores": {"node2": [8]},
    "ports": {"e0": {"network": "rail0", "pci": "0000:3b:00.0", "queues": 2}},
}


def a_run(folder: Path, site: dict[str, Any], worker: str = "auto", load: str = "50%") -> Run:
    """A run of a ring; JSON is YAML too."""
    tests = [{"pattern": "ring", "count": 1, "load": load, "transport": "dpdk"}]
    values = {"switchbench": 1, "site": site, "worker": worker, "tests": tests}
    return compile_text(folder, json.dumps(values))


@pytest.mark.parametrize(
    ("site", "cores", "usable", "expected"),
    [
        ({}, 5, None, Deal("sleep")),
        ({"pack": 2, "queues": 2}, 10, None, Deal("poll", {"a": (2, 4, 6, 8), "b": (3, 5, 7, 9)})),
        ({"pack": 2, "cores": "2-5"}, 8, None, Deal("poll", {"a": (2, 4), "b": (3, 5)})),
        ({"pack": 2, "cores": "2"}, 8, None, Deal("sleep", {"a": (2,), "b": (2,)})),
        ({"pack": 4, "cores": "0-1", "worker": "sleep"}, 2, None, Deal("sleep", {"c": (0, 1)})),
        ({"cores": "0-8"}, 8, None, "cores: 8: this machine has only 0-7"),
        ({"cores": "0-7"}, 8, None, "the command needs one: leave one out"),
        ({"cores": "2-5"}, 8, range(3, 4), "cores: 3: the command itself was given 3"),
        ({"cores": "2", "worker": "poll"}, 8, None, "4 node processes need a core each"),
        ({"worker": "poll"}, 4, None, "this machine has 4 to use"),
    ],
)
def test_cores_of_a_lab(
    site: dict[str, Any], cores: int, usable: range | None, expected: Deal | str, tmp_path: Path
) -> None:
    """In turn; few are shared, and sleeping workers may have all."""
    worker = site.pop("worker", "auto")
    run = a_run(tmp_path, {"lab": "one-switch", "nodes": 4} | site, worker)
    machine = LocalCores(frozenset(range(cores)), frozenset(usable or range(cores)))
    if isinstance(expected, str):
        with pytest.raises(ConfigurationError, match=expected):
            deal(run, machine)
        return
    names = {"a": "node[1-2]", "b": "node[3-4]", "c": "node[1-4]"}
    found = deal(run, machine)
    assert found == Deal(expected.worker, {names[key]: own for key, own in expected.cores.items()})
    polled = {core for own in found.cores.values() for core in own}
    assert found.polled == (polled if found.worker == "poll" else set())


def test_the_job_has_the_cores_of_each_host(tmp_path: Path) -> None:
    run = a_run(tmp_path, SITE)
    assert run.effective["site"]["host_cores"] == {"node2": [8]}
    assert [node["cores"] for node in job_document(run, "r")["nodes"]] == [[2, 3], [8], [2, 3]]
    job = job_document(run, "r", Deal("poll", {"node1": (4, 5)}))
    assert job["worker"] == "poll"
    assert [node.get("cores") for node in job["nodes"]] == [[4, 5], None, None]
    assert [node["ports"][0]["queues"] for node in job["nodes"]] == [2, 2, 2]
    assert written([5, 2, 3, 0]) == "0,2-3,5"


@pytest.mark.parametrize(
    ("load", "keys", "workers", "says"),
    [
        ("2Mfps", {"line_rate_bps": None}, 1, "2e+06 frames/s (trial 0) are more than 1 core"),
        ("2Mfps", {"line_rate_bps": None}, 2, "more than 1 core"),
        ("2Mfps", {"line_rate_bps": None, "queues": 2}, 1, "more than 1 core"),
        ("2Mfps", {"line_rate_bps": None, "queues": 2}, 2, None),
        ("100%", {"core_fps": 10_000}, 1, "81274.4 frames/s"),
        ("50%", {"core_fps": 40_000}, 1, "40637.2 frames/s"),
        ("100%", {"core_fps": 100_000}, 1, None),
        ("100%", {"core_fps": 100_000, "node": "both"}, 1, "both: the frames of its ports"),
        ("100%", {"core_fps": 100_000, "node": "both"}, 2, None),
        ("100%", {"core_fps": None}, 1, None),
    ],
)
def test_rates_beyond_the_cores_are_refused(
    load: str, keys: dict[str, Any], workers: int, says: str | None, tmp_path: Path
) -> None:
    """By port, and by node where it has several."""
    run = a_run(tmp_path, {"lab": "open", "nodes": 2, "line_rate": "100Gbit"}, load=load)
    opened = [
        {"node": port.host, "port": port.name, "transport": "dpdk", "driver": "net_af_packet"}
        | {"queues": 1, "core_fps": 1_000_000, "line_rate_bps": 10**9}
        | keys
        for port in run.site.ports
    ]
    hellos = [{"node": record["node"], "workers": workers} for record in opened]
    refused = pytest.raises(ConfigurationError, match=re.escape(says)) if says else nullcontext()
    with refused:
        check_rates(run, hellos, opened)
