# SPDX-License-Identifier: BSD-3-Clause
"""Which cores workers get: as written, as dealt in a lab, and what is refused."""

from __future__ import annotations

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from configs import compile_text, needs_engine
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Load, Run
from switchbench.plan import documents
from switchbench.plan.documents import Deal, LocalCores, check_rates, frames_per_s, job_document
from switchbench.records.record_forms import Record

pytestmark = needs_engine


def compiled(values: dict[str, Any]) -> Run:
    """The run of a configuration's values; JSON is YAML too."""
    with tempfile.TemporaryDirectory() as folder:
        return compile_text(Path(folder), json.dumps(values))


def machine(present: int, usable: range | None = None) -> LocalCores:
    """A machine of so many cores, of which the command may use some."""
    every = frozenset(range(present))
    return LocalCores(every, frozenset(usable) if usable is not None else every)


def a_lab(nodes: int = 4, **site: Any) -> Run:
    """A lab's run of `nodes` nodes with these keys of the site, `worker` at the top."""
    top = {"worker": site.pop("worker")} if "worker" in site else {}
    return compiled(
        {"switchbench": 1, "site": {"lab": "one-switch", "nodes": nodes} | site}
        | top
        | {"tests": [{"pattern": "ring", "count": 1}]}
    )


@pytest.mark.parametrize(
    ("site", "here", "worker", "cores"),
    [
        ({}, machine(5), "sleep", []),
        ({"queues": 2}, machine(10), "poll", [2, 2, 2, 2]),
        ({"pack": 2, "cores": "2-5"}, machine(8), "poll", [(2, 4), (3, 5)]),
        ({"cores": "2"}, machine(8), "sleep", None),
        ({"cores": "0-7", "worker": "sleep"}, machine(8), "sleep", None),
    ],
)
def test_cores_are_dealt_where_there_are_enough(
    site: dict[str, Any], here: LocalCores, worker: str, cores: list[Any] | None
) -> None:
    """In turn; few are shared, and sleeping workers may have all."""
    deal = documents.deal(a_lab(4, **site), here)
    assert deal.worker == worker
    if site == {"queues": 2}:
        assert deal.polled == frozenset(range(2, 10))
        assert [len(own) for own in deal.cores.values()] == cores
    elif cores is not None:
        assert list(deal.cores.values()) == cores
    assert documents.written([5, 2, 3, 0]) == "0,2-3,5"


@pytest.mark.parametrize(
    ("site", "here", "says"),
    [
        ({"cores": "0-8"}, machine(8), "cores: 8: this machine has only 0-7"),
        ({"cores": "0-7"}, machine(8), "the command needs one: leave one out"),
        ({"cores": "2-5"}, machine(8, range(3, 4)), "cores: 3: the command itself was given 3"),
        ({"cores": "2", "worker": "poll"}, machine(8), "4 node processes need a core each"),
        ({"worker": "poll"}, machine(4), "this machine has 4 to use"),
    ],
)
def test_what_can_not_be_is_refused(site: dict[str, Any], here: LocalCores, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        documents.deal(a_lab(4, **site), here)


def test_the_job_says_what_was_dealt() -> None:
    run = a_lab(2, queues=3)
    job = job_document(run, "r", Deal("poll", {"node1": (4, 5)}))
    assert job["worker"] == "poll"
    assert job["nodes"][0]["cores"] == [4, 5]
    assert "cores" not in job["nodes"][1]
    assert all(node["ports"][0]["queues"] == 3 for node in job["nodes"])


SITE = {
    "launch": "hand",
    "hosts": "node[1-3]",
    "cores": "2-3",
    "host_cores": {"node2": [8]},
    "ports": {"e0": {"network": "rail0", "pci": "0000:3b:00.0", "queues": 2}},
}


def a_site(**keys: Any) -> Run:
    """A site's run."""
    return compiled(
        {"switchbench": 1, "site": SITE | keys, "tests": [{"pattern": "ring", "count": 1}]}
    )


def test_a_site_names_cores_for_all_hosts_and_for_one() -> None:
    run = a_site()
    assert documents.deal(run).cores == {"node1": (2, 3), "node2": (8,), "node3": (2, 3)}
    assert run.effective["site"]["host_cores"] == {"node2": [8]}
    assert job_document(run, "r")["nodes"][1]["cores"] == [8]


def test_frames_per_s() -> None:
    assert frames_per_s(Load(fps=5.0), (64,), 0) == 5.0
    assert frames_per_s(Load(percent=50.0), (1518,), 10**9) == pytest.approx(40637, rel=1e-4)
    assert frames_per_s(Load(percent=50.0), (1518,), 0) == 0.0


def opened(run: Run, **keys: Any) -> list[Record]:
    """What nodes say of the run's ports."""
    return [
        {"node": port.host, "port": port.name, "transport": "dpdk", "driver": "net_af_packet"}
        | {"queues": 1, "core_fps": 1_000_000, "line_rate_bps": 10**9}
        | keys
        for port in run.site.ports
    ]


@pytest.mark.parametrize(
    ("load", "keys", "workers", "says"),
    [
        ("2Mfps", {"line_rate_bps": None}, 1, "more than 1 core"),
        ("2Mfps", {"line_rate_bps": None}, 2, "more than 1 core"),
        ("2Mfps", {"line_rate_bps": None, "queues": 2}, 1, "more than 1 core"),
        ("2Mfps", {"line_rate_bps": None, "queues": 2}, 2, None),
        ("100%", {"core_fps": 10_000}, 1, "81274.4 frames/s"),
        ("100%", {"core_fps": None}, 1, None),
    ],
)
def test_rates_beyond_the_cores_are_refused(
    load: str, keys: dict[str, Any], workers: int, says: str | None
) -> None:
    run = compiled(
        {"switchbench": 1, "site": {"lab": "open", "nodes": 2, "line_rate": "100Gbit"}}
        | {"tests": [{"pattern": "ring", "count": 1, "load": load, "transport": "dpdk"}]}
    )
    hellos = [{"node": port.host, "workers": workers} for port in run.site.ports]
    refusal = pytest.raises(ConfigurationError, match=says) if says else nullcontext()
    with refusal:
        check_rates(run, hellos, opened(run, **keys))


def test_a_packed_node_is_checked_as_a_whole() -> None:
    run = a_lab(4, pack=4)
    records = [record | {"node": "node[1-4]"} for record in opened(run, core_fps=200_000)]
    check_rates(run, [{"node": "node[1-4]", "workers": 4}], records)
    records = [record | {"core_fps": 100_000} for record in records]
    with pytest.raises(ConfigurationError, match="1 worker"):
        check_rates(run, [{"node": "node[1-4]", "workers": 1}], records)
