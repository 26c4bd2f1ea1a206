#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""From the command to the last hello over ssh: 64 hosts in namespaces on one machine, an sshd each.

`switchbench run` as a person starts it, tcp. Both ends of all connections share this machine's
cores: one login a host, which costs a key exchange at both ends. The parts:

  reach   Python, the configuration, the plan; 64 logins, of which each says its version and waits
  nodes   the job to all, ports opened, to the last hello
  join    control endpoints, handshake, first barrier

The peer is ClusterShell itself on the same hosts: one `switchbench-node --version` for each, as
`clush` would ask for it. `reach` must do the same and more.

    tests/bench/launch_ssh.py [--node build/engine/switchbench-node] [--rounds 5] [--hosts 64]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
if sys.prefix == sys.base_prefix and PYTHON.exists():  # the tests' kit needs the environment
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "scripts/python")]

from common import SKIPPED, skip, verdict  # noqa: E402

import sshkit  # noqa: E402

REACH_S = 15.0
RUN_TIMEOUT_S = 90
POLL_S = 0.005
PARTS = ("reach", "nodes", "join")

CLUSH = """
import sys
from ClusterShell.Task import task_self
task = task_self()
task.set_info("ssh_options", f"-F {sys.argv[1]}")
task.run(sys.argv[2], nodes=sys.argv[3])
bad = [nodes for status, nodes in task.iter_retcodes() if status != 0]
sys.exit(bool(bad))
"""


def now_s() -> float:
    """A clock that only goes on."""
    return time.monotonic()


def launch(hosts: sshkit.Hosts, folder: Path) -> dict[str, float]:
    """One run: seconds of each part."""
    tests = [{"pattern": "pairs", "transport": "tcp", "window": "200ms", "warmup": "100ms"}]
    control = {
        "control": hosts.site()["control"] | {"barrier_timeout": "30s", "heartbeat_timeout": "5s"}
    }
    site = hosts.site() | control
    configuration = {"site": site, "tests": tests, "repeat": 1, "load": "20%"}
    started_s = now_s()
    marks: dict[str, float] = {}
    with hosts.started(folder, configuration) as run:
        while len(marks) < len(PARTS) and now_s() - started_s < RUN_TIMEOUT_S:
            if run.process.poll() is not None:
                break
            if run.directory.exists():
                marks.setdefault("reach", now_s())
            for part, kind in (("nodes", "hello"), ("join", "ready")):
                said = sum(record["type"] == kind for record in run.records())
                if part not in marks and said == len(hosts.names):
                    marks[part] = now_s()
            time.sleep(POLL_S)
        result = run.end(RUN_TIMEOUT_S)
    if result.status != 0 or len(marks) < len(PARTS):
        raise SystemExit(f"the run failed: {result.errors.strip().splitlines()[-1:]}")
    ends = [started_s, *(marks[part] for part in PARTS)]
    return {part: ends[i + 1] - ends[i] for i, part in enumerate(PARTS)}


def clush(hosts: sshkit.Hosts) -> float:
    """Seconds that ClusterShell takes to ask every host for the version."""
    config, site = str(hosts.folder / "config"), hosts.site()
    words = [sys.executable, "-c", CLUSH, config, f"{site['ssh']['engine']} --version"]
    started_s = now_s()
    process = hosts.popen([*words, ",".join(hosts.names)])
    errors = process.communicate(timeout=RUN_TIMEOUT_S)[1]
    if process.returncode != 0:
        raise SystemExit(f"ClusterShell did not reach all hosts: {errors}")
    return now_s() - started_s


def topology(folder: Path, count: int) -> Path:
    """A switch of slow nodes: nothing here is about its rate."""
    path = folder / f"launch{os.getpid()}.yaml"
    path.write_text(
        f"topology: 1\nrate: 10M\nmodules: [switch]\nnodes: {{'node[1-{count}]': {{}}}}\n"
    )
    return path


def main() -> int:
    """Ours and ClusterShell's in turn, then the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--node", type=Path, default=ROOT / "build/engine/switchbench-node")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hosts", type=int, default=64)
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("the lab needs root here")
    if not Path(sshkit.SSHD).exists():
        print("skipped: openssh-server is not installed")
        return SKIPPED
    os.environ["SWITCHBENCH_NODE"] = str(options.node.absolute())
    runs_s: list[dict[str, float]] = []
    peer_s: list[float] = []
    with tempfile.TemporaryDirectory(prefix="switchbench-launch-") as name:
        folder = Path(name)
        with sshkit.hosts(topology(folder, options.hosts), folder / "keys") as hosts:
            for number in range(options.rounds):
                runs_s.append(launch(hosts, folder / str(number)))
                peer_s.append(clush(hosts))
    medians = {part: statistics.median(one[part] for one in runs_s) for part in PARTS}
    print(
        f"medians of {options.rounds}: " + ", ".join(f"{k} {v:.2f} s" for k, v in medians.items())
    )
    print(f"ClusterShell asks {options.hosts} hosts in {statistics.median(peer_s):.2f} s")
    total_s = statistics.median(one["reach"] + one["nodes"] for one in runs_s)
    verdict(f"{options.hosts} hosts, to the last hello", total_s, REACH_S, unit="s", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
